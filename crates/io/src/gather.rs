//! From segments and gather lists to the `iovec` arrays that system calls take.

use crate::{Buffer, Outgoing, Part, Region, RegionId, Seg};
use libc::iovec;
use std::{io, sync::Arc};

/// `UIO_MAXIOV`: the limit of pieces for one system call.
pub(crate) const PIECES_PER_CALL: usize = 1024;

/// The regions attached to one driver.
#[derive(Debug, Default)]
pub(crate) struct Regions(Vec<Option<Arc<Region>>>);

impl Regions {
    /// Attaches a region; the same region keeps its id.
    pub(crate) fn attach(&mut self, region: Arc<Region>) -> RegionId {
        let is_it = |held: &Option<Arc<Region>>| held.as_ref().is_some_and(|held| Arc::ptr_eq(held, &region));
        let index = self.0.iter().position(is_it).unwrap_or_else(|| {
            let free = self.0.iter().position(Option::is_none);
            free.unwrap_or_else(|| {
                self.0.push(None);
                self.0.len() - 1
            })
        });
        self.0[index] = Some(region);
        RegionId::new(index as u32)
    }

    /// Lets go of a region. Another one may get its id.
    pub(crate) fn detach(&mut self, id: RegionId) {
        if let Some(held) = self.0.get_mut(id.index() as usize) {
            *held = None;
        }
    }

    /// The memory of a segment. Errors: an unknown region, or a range outside it (a mistake of the caller).
    pub(crate) fn resolve(&self, seg: Seg) -> io::Result<iovec> {
        let region = self.0.get(seg.region.index() as usize).and_then(Option::as_ref);
        match region.filter(|region| region.contains(seg.offset, u64::from(seg.len))) {
            Some(region) => {
                let first = region.range(seg.offset, u64::from(seg.len));
                Ok(iovec { iov_base: first.cast(), iov_len: seg.len as usize })
            }
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "segment outside its region")),
        }
    }

    /// Appends the memory of `segs`.
    pub(crate) fn resolve_all(&self, segs: &[Seg], into: &mut Vec<iovec>) -> io::Result<()> {
        for &seg in segs {
            into.push(self.resolve(seg)?);
        }
        Ok(())
    }
}

/// How far a gather list has been sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendProgress {
    part: usize,
    offset: usize,
}

impl SendProgress {
    /// Fills `into` with the next pieces to send, at most [`PIECES_PER_CALL`].
    pub(crate) fn pieces(&self, list: &Outgoing, regions: &Regions, into: &mut Vec<iovec>) -> io::Result<()> {
        into.clear();
        let mut skip = self.offset;
        for part in list.parts().skip(self.part).take(PIECES_PER_CALL) {
            let mut piece = match part {
                Part::Bytes(bytes) => iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() },
                Part::Seg(seg) => regions.resolve(seg)?,
            };
            piece.iov_base = piece.iov_base.wrapping_byte_add(skip);
            piece.iov_len -= skip;
            skip = 0;
            into.push(piece);
        }
        Ok(())
    }

    /// Records `sent` bytes. Returns whether the list is finished.
    pub(crate) fn advance(&mut self, list: &Outgoing, sent: usize) -> bool {
        let mut at = self.offset + sent;
        for part in list.parts().skip(self.part) {
            let len = match part {
                Part::Bytes(bytes) => bytes.len(),
                Part::Seg(seg) => seg.len as usize,
            };
            if at < len {
                self.offset = at;
                return false;
            }
            at -= len;
            self.part += 1;
        }
        self.offset = 0;
        true
    }
}

/// Drops the first `moved` bytes of a scatter list. Returns whether anything is left.
pub(crate) fn drop_front(pieces: &mut Vec<iovec>, moved: usize) -> bool {
    let mut left = moved;
    let mut whole = 0;
    for piece in pieces.iter_mut() {
        if left < piece.iov_len {
            piece.iov_base = piece.iov_base.wrapping_byte_add(left);
            piece.iov_len -= left;
            break;
        }
        left -= piece.iov_len;
        whole += 1;
    }
    pieces.drain(..whole);
    !pieces.is_empty()
}

/// Appends a buffer's memory.
pub(crate) fn push_buffer(buffer: &mut Buffer, into: &mut Vec<iovec>) {
    if !buffer.is_empty() {
        into.push(iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() });
    }
}

#[cfg(test)]
mod tests {
    use super::{Regions, SendProgress, drop_front};
    use crate::{Outgoing, Region, Seg};

    fn collect(pieces: &[libc::iovec]) -> Vec<u8> {
        let piece_bytes = |piece: &libc::iovec| {
            // SAFETY: the test's list and region are alive and no thread writes to them.
            unsafe { std::slice::from_raw_parts(piece.iov_base.cast::<u8>(), piece.iov_len) }.to_vec()
        };
        pieces.iter().flat_map(piece_bytes).collect()
    }

    #[test]
    fn a_list_resumes_at_every_byte() {
        let mut regions = Regions::default();
        let region = Region::anonymous(4096).unwrap();
        region.write(10, b"payload");
        let id = regions.attach(region);
        let mut list = Outgoing::new();
        list.push_bytes(b"header");
        list.push_seg(Seg { region: id, offset: 10, len: 7 });
        list.push_bytes(b"tail");
        let whole = b"headerpayloadtail";
        for first in 0..=whole.len() {
            let mut progress = SendProgress::default();
            let mut pieces = Vec::new();
            let finished = progress.advance(&list, first);
            assert_eq!(finished, first == whole.len());
            progress.pieces(&list, &regions, &mut pieces).unwrap();
            assert_eq!(collect(&pieces), &whole[first..], "after {first} bytes");

            progress = SendProgress::default();
            progress.pieces(&list, &regions, &mut pieces).unwrap();
            assert_eq!(drop_front(&mut pieces, first), first < whole.len());
            assert_eq!(collect(&pieces), &whole[first..], "scatter list after {first} bytes");
        }
    }

    #[test]
    fn a_detached_region_is_unknown_and_its_id_is_used_again() {
        let mut regions = Regions::default();
        let [one, other, third] = [4096; 3].map(|len| Region::anonymous(len).unwrap());
        let (first, second) = (regions.attach(one), regions.attach(other.clone()));
        regions.detach(first);
        assert!(regions.resolve(Seg { region: first, offset: 0, len: 1 }).is_err());
        assert!(regions.resolve(Seg { region: second, offset: 0, len: 1 }).is_ok());
        assert_eq!((regions.attach(other), regions.attach(third)), (second, first));
    }

    #[test]
    fn a_segment_outside_its_region_is_an_error() {
        let mut regions = Regions::default();
        let id = regions.attach(Region::anonymous(4096).unwrap());
        assert!(regions.resolve(Seg { region: id, offset: 4000, len: 97 }).is_err());
        assert!(regions.resolve(Seg { region: id, offset: u64::MAX, len: 2 }).is_err());
        assert!(regions.resolve(Seg { region: id, offset: 4000, len: 96 }).is_ok());
    }
}
