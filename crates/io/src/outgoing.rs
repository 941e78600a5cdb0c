//! The gather list of one send: small pieces copied into an arena, large pieces by reference.

use crate::Seg;

/// One piece of a gather list, in sending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Bytes of the list's own arena.
    Bytes(&'a [u8]),
    /// Bytes of an attached region, read by the kernel when they are sent.
    Seg(Seg),
}

/// How a part is stored: arena parts by position, because the arena may move while it grows.
#[derive(Clone, Copy, Debug)]
enum Stored {
    Arena { start: usize, len: usize },
    Seg(Seg),
}

/// The list of one [`crate::Driver::send`]: headers from an arena and payload from regions, in order, without copying
/// the payload. Reuse it ([`Outgoing::clear`] keeps the memory), so that a sender allocates nothing after its start.
#[derive(Debug, Default)]
pub struct Outgoing {
    arena: Vec<u8>,
    parts: Vec<Stored>,
    len_bytes: usize,
}

impl Outgoing {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty list with space for `arena_bytes` of headers and `parts` pieces before it allocates.
    pub fn with_capacity(arena_bytes: usize, parts: usize) -> Self {
        Self { arena: Vec::with_capacity(arena_bytes), parts: Vec::with_capacity(parts), len_bytes: 0 }
    }

    /// Appends a copy of `bytes`; merges with bytes pushed just before.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.note_arena(bytes.len());
        self.arena.extend_from_slice(bytes);
    }

    /// Appends `len` zeroed bytes and returns them to the caller to fill in: this saves an encoder one copy.
    pub fn push_with(&mut self, len: usize) -> &mut [u8] {
        let start = self.arena.len();
        if len > 0 {
            self.note_arena(len);
            self.arena.resize(start + len, 0);
        }
        &mut self.arena[start..]
    }

    /// Appends a range of an attached region. The kernel sends the bytes that are there when it reads them.
    pub fn push_seg(&mut self, seg: Seg) {
        if seg.len > 0 {
            self.parts.push(Stored::Seg(seg));
            self.len_bytes += seg.len as usize;
        }
    }

    /// Total length in bytes.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Bytes that the list has copied; the others are referenced.
    pub fn copied_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    /// Empties the list and keeps its memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.parts.clear();
        self.len_bytes = 0;
    }

    /// Bytes of memory that the list keeps for reuse.
    pub fn capacity_bytes(&self) -> usize {
        self.arena.capacity() + self.parts.capacity() * size_of::<Stored>()
    }

    /// The pieces in sending order.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = Part<'_>> {
        self.parts.iter().map(|part| match *part {
            Stored::Arena { start, len } => Part::Bytes(&self.arena[start..start + len]),
            Stored::Seg(seg) => Part::Seg(seg),
        })
    }

    /// Records `len` bytes that will be appended to the arena.
    fn note_arena(&mut self, len: usize) {
        self.len_bytes += len;
        if let Some(Stored::Arena { len: last, .. }) = self.parts.last_mut() {
            *last += len;
        } else {
            self.parts.push(Stored::Arena { start: self.arena.len(), len });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Outgoing, Part};
    use crate::{RegionId, Seg};

    const SEG: Seg = Seg { region: RegionId(3), offset: 4096, len: 512 };

    #[test]
    fn adjacent_bytes_merge_and_segments_keep_their_place() {
        let mut list = Outgoing::new();
        list.push_bytes(b"head");
        list.push_with(2).copy_from_slice(b"er");
        list.push_seg(SEG);
        list.push_bytes(b"tail");
        let parts: Vec<_> = list.parts().collect();
        assert_eq!(parts, [Part::Bytes(b"header"), Part::Seg(SEG), Part::Bytes(b"tail")]);
        assert_eq!(list.len_bytes(), 522);
    }

    #[test]
    fn empty_pieces_leave_no_trace() {
        let mut list = Outgoing::new();
        list.push_bytes(b"");
        assert!(list.push_with(0).is_empty());
        list.push_seg(Seg { len: 0, ..SEG });
        assert!(list.is_empty());
        assert_eq!(list.parts().len(), 0);
    }

    #[test]
    fn clearing_keeps_the_memory() {
        let mut list = Outgoing::with_capacity(64, 4);
        list.push_bytes(&[1; 64]);
        let held = list.capacity_bytes();
        list.clear();
        assert!(list.is_empty());
        assert_eq!(list.capacity_bytes(), held);
    }
}
