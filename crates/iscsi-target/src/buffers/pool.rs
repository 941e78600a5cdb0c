//! I/O buffers of a worker: chunks of attached regions, lent to commands and returned.
//!
//! [`Chunks`] have one owner at a time: a task, a receive or volume operation that uses them, or the answers that are
//! being sent from them. They cannot be cloned, so only their owner can return them.

use crate::{
    buffers::budget::{Budget, Share},
    memory_volume::Part,
};
use linerate_io::{AttachedRegions, Driver, Region, Seg};
use linerate_iscsi_proto::digest::Crc32c;
use std::{io, sync::Arc};

/// Size of one chunk: a small I/O takes one, a large one takes several.
pub(crate) const CHUNK_BYTES: u32 = 32 * 1024;
/// Chunks of one region.
const CHUNKS_PER_REGION: u32 = 256;
/// Lists of segments kept for reuse.
const SPARE_LISTS: usize = 1024;

/// I/O buffers in order. Their owner returns them by [`ChunkPool::give_back`].
#[derive(Debug, Default)]
pub(crate) struct Chunks(Vec<Seg>);

impl Chunks {
    pub(crate) const NONE: Self = Self(Vec::new());

    pub(crate) fn segs(&self) -> &[Seg] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.0.iter().map(|seg| seg.len as usize).sum()
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        debug_assert!(self.0.is_empty() || std::thread::panicking(), "chunks go back to their pool");
    }
}

/// Chunks of memory that a driver can read into and send from. Grows when needed, up to its budget.
#[derive(Debug)]
pub(crate) struct ChunkPool {
    budget: Budget,
    /// By index of the region at the driver.
    regions: AttachedRegions,
    free: Vec<Seg>,
    lists: Vec<Vec<Seg>>,
    /// Counts returned chunks, for connections that wait for memory.
    returns: u64,
}

impl ChunkPool {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        let budget = Budget::new(limit_bytes);
        Self { budget, regions: AttachedRegions::default(), free: Vec::new(), lists: Vec::new(), returns: 0 }
    }

    /// Lends chunks for `len` bytes; the last one is cut to the needed length. None: the connection must wait, or the
    /// host has no memory.
    pub(crate) fn take<D: Driver>(&mut self, driver: &mut D, share: &mut Share, len: u32) -> Option<Chunks> {
        if !self.may_take(share, len) {
            return None;
        }
        let wanted = len.div_ceil(CHUNK_BYTES) as usize;
        while self.free.len() < wanted {
            if let Err(error) = self.grow(driver) {
                tracing::error!(event = "out_of_memory", %error, "the host has no memory for I/O buffers");
                return None;
            }
        }
        self.budget.take(share, chunked_bytes(len));
        let mut list = self.lists.pop().unwrap_or_default();
        let mut left = len;
        for seg in self.free.drain(self.free.len() - wanted..) {
            let piece = left.min(CHUNK_BYTES);
            list.push(Seg { len: piece, ..seg });
            left -= piece;
        }
        Some(Chunks(list))
    }

    /// Whether a connection may take this much.
    pub(crate) fn may_take(&self, share: &Share, len: u32) -> bool {
        self.budget.allows(share, chunked_bytes(len))
    }

    /// Returns chunks to the pool.
    pub(crate) fn give_back(&mut self, share: &mut Share, mut chunks: Chunks) {
        let mut list = std::mem::take(&mut chunks.0);
        if list.capacity() == 0 {
            return;
        }
        if !list.is_empty() {
            self.returns += 1;
            self.budget.give_back(share, list.len() as u64 * u64::from(CHUNK_BYTES));
            self.free.extend(list.drain(..).map(|seg| Seg { len: CHUNK_BYTES, ..seg }));
        }
        if self.lists.len() < SPARE_LISTS {
            self.lists.push(list);
        }
    }

    /// Moves chunks to the end of others.
    pub(crate) fn append(&mut self, to: &mut Chunks, mut chunks: Chunks) {
        if to.0.capacity() == 0 {
            return *to = chunks;
        }
        let mut list = std::mem::take(&mut chunks.0);
        to.0.append(&mut list);
        self.lists.push(list);
    }

    /// Counts memory outside the pool as a part of it. None: there is not enough.
    pub(crate) fn charge(&mut self, share: &mut Share, bytes: u32) -> Option<Charge> {
        (bytes == 0 || self.budget.allows(share, bytes.into())).then(|| {
            self.budget.take(share, bytes.into());
            Charge(bytes)
        })
    }

    /// Memory that was charged is free again.
    pub(crate) fn discharge(&mut self, share: &mut Share, mut charge: Charge) {
        if charge.0 > 0 {
            self.returns += 1;
            self.budget.give_back(share, std::mem::take(&mut charge.0).into());
        }
    }

    /// Changes whenever chunks were returned.
    pub(crate) fn returns(&self) -> u64 {
        self.returns
    }

    /// Bytes that are lent or charged.
    pub(crate) fn lent_bytes(&self) -> u64 {
        self.budget.used_bytes()
    }

    /// Copies `bytes` into lent chunks, from byte `at` on. Bytes that do not fit are ignored.
    pub(crate) fn write(&self, segs: &[Seg], at: u32, bytes: &[u8]) {
        let mut done = 0;
        for (seg, start, len) in pieces(segs, at, bytes.len() as u32) {
            self.region(seg).write(seg.offset + u64::from(start), &bytes[done..done + len as usize]);
            done += len as usize;
        }
    }

    /// Copies bytes out of lent chunks.
    pub(crate) fn read(&self, segs: &[Seg], at: u32, into: &mut [u8]) {
        let mut done = 0;
        for (seg, start, len) in pieces(segs, at, into.len() as u32) {
            self.region(seg).read(seg.offset + u64::from(start), &mut into[done..done + len as usize]);
            done += len as usize;
        }
    }

    /// Copies parts of a volume in memory into lent chunks, from byte `at` on. Returns the checksum of the copied bytes.
    pub(crate) fn copy_from<'a>(
        &self,
        segs: &[Seg],
        mut at: u32,
        parts: impl Iterator<Item = Part<'a>>,
    ) -> Crc32c {
        let mut crc = Crc32c::EMPTY;
        for part in parts {
            let mut from = part.offset;
            for (seg, start, len) in pieces(segs, at, part.len as u32) {
                let (to, into) = (self.region(seg), seg.offset + u64::from(start));
                crc = crc.update_by(|sum| part.region.copy_crc32c(sum, from, to, into, u64::from(len)));
                from += u64::from(len);
            }
            at += part.len as u32;
        }
        crc
    }

    /// Repeats `pattern` over all of the chunks. The length of the pattern is a power of two, so chunks hold whole
    /// patterns.
    pub(crate) fn fill(&self, segs: &[Seg], pattern: &[u8]) {
        for &seg in segs {
            self.region(seg).fill(seg.offset, u64::from(seg.len), pattern);
        }
    }

    /// The memory of a chunk.
    pub(crate) fn region(&self, seg: Seg) -> &Arc<Region> {
        self.regions.of(seg)
    }

    /// Continues a checksum over `len` bytes of lent chunks from byte `at` on.
    pub(crate) fn digest(&self, segs: &[Seg], at: u32, len: u32, mut crc: Crc32c) -> Crc32c {
        for (seg, start, len) in pieces(segs, at, len) {
            let offset = seg.offset + u64::from(start);
            crc = crc.update_by(|sum| self.region(seg).crc32c(sum, offset, u64::from(len)));
        }
        crc
    }

    fn grow<D: Driver>(&mut self, driver: &mut D) -> io::Result<()> {
        let region = Region::anonymous(u64::from(CHUNK_BYTES * CHUNKS_PER_REGION))?;
        let id = driver.attach(Arc::clone(&region));
        self.regions.insert(id, region);
        self.free.reserve(CHUNKS_PER_REGION as usize);
        for chunk in (0..CHUNKS_PER_REGION).rev() {
            let offset = u64::from(chunk * CHUNK_BYTES);
            self.free.push(Seg { region: id, offset, len: CHUNK_BYTES });
        }
        Ok(())
    }
}

/// Bytes of the chunks that `len` bytes need.
fn chunked_bytes(len: u32) -> u64 {
    u64::from(len.div_ceil(CHUNK_BYTES)) * u64::from(CHUNK_BYTES)
}

/// Bytes of a task outside the pool, counted as a part of it.
#[derive(Debug, Default)]
pub(crate) struct Charge(u32);

impl Charge {
    pub(crate) const NONE: Self = Self(0);
}

impl Drop for Charge {
    fn drop(&mut self) {
        debug_assert!(self.0 == 0 || std::thread::panicking(), "a charge goes back to its pool");
    }
}

/// The parts of `segs` in `len` bytes from byte `at` on: segment, start in it, length.
pub(crate) fn pieces(segs: &[Seg], at: u32, len: u32) -> impl Iterator<Item = (Seg, u32, u32)> {
    let (mut skip, mut left) = (at, len);
    segs.iter().filter_map(move |&seg| {
        if skip >= seg.len {
            skip -= seg.len;
            return None;
        }
        let piece = (seg.len - skip).min(left);
        let start = std::mem::take(&mut skip);
        left -= piece;
        (piece > 0).then_some((seg, start, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, ChunkPool, Chunks, pieces};
    use crate::buffers::budget::Share;
    use linerate_io::{EpollDriver, RegionId, Seg};

    #[test]
    fn chunks_are_lent_cut_and_taken_back() {
        let (mut pool, mut driver) = (ChunkPool::new(64 << 20), EpollDriver::new().unwrap());
        let mut share = Share::default();
        let chunks = pool.take(&mut driver, &mut share, 3 * CHUNK_BYTES + 512).unwrap();
        assert_eq!(chunks.len_bytes(), 3 * CHUNK_BYTES as usize + 512);
        let bytes: Vec<u8> = (0..=255).cycle().take(CHUNK_BYTES as usize).collect();
        pool.write(chunks.segs(), CHUNK_BYTES - 100, &bytes);
        let mut back = vec![0; bytes.len()];
        pool.read(chunks.segs(), CHUNK_BYTES - 100, &mut back);
        assert_eq!(back, bytes);
        pool.give_back(&mut share, chunks);
        assert_eq!((pool.lent_bytes(), share.bytes()), (0, 0));
    }

    #[test]
    fn what_is_lent_stays_below_the_limit() {
        let (mut pool, mut driver) = (ChunkPool::new(64 << 20), EpollDriver::new().unwrap());
        let mut held: Vec<(Share, Vec<Chunks>)> = Vec::new();
        for _ in 0..100 {
            let (mut share, mut chunks) = (Share::default(), Vec::new());
            while let Some(more) = pool.take(&mut driver, &mut share, 1 << 20) {
                chunks.push(more);
            }
            held.push((share, chunks));
        }
        assert!(pool.lent_bytes() <= 64 << 20);
        for (share, chunks) in &mut held {
            chunks.drain(..).for_each(|chunks| pool.give_back(share, chunks));
        }
        assert_eq!(pool.lent_bytes(), 0);
        let mut share = Share::default();
        let again = pool.take(&mut driver, &mut share, 8 << 20).unwrap();
        pool.give_back(&mut share, again);
    }

    #[test]
    fn pieces_cut_both_ends() {
        let seg = |offset| Seg { region: RegionId::new(0), offset, len: 10 };
        let found: Vec<_> = pieces(&[seg(0), seg(100), seg(200)], 5, 17).collect();
        assert_eq!(found, [(seg(0), 5, 5), (seg(100), 0, 10), (seg(200), 0, 2)]);
    }
}
