//! I/O buffers of a worker: chunks of attached regions, lent to file volumes' commands and taken back.

use linerate_io::{Driver, Region, Seg};
use std::{io, sync::Arc};

/// Size of one chunk: a small I/O takes one, a large one takes several.
pub(crate) const CHUNK_BYTES: u32 = 32 * 1024;
/// Chunks of one region.
const CHUNKS_PER_REGION: u32 = 256;
/// Most regions: 64 MiB, several times the largest command.
const REGIONS_MAX: usize = 8;
const CHUNKS_MAX: usize = REGIONS_MAX * CHUNKS_PER_REGION as usize;

/// Chunks of memory that a driver can read into and send from. Grows when needed, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct ChunkPool {
    regions: Vec<(linerate_io::RegionId, Arc<Region>)>,
    free: Vec<Seg>,
    lent: usize,
}

impl ChunkPool {
    /// What one connection may hold when chunks are short: 8 MiB, the largest command.
    pub(crate) const SHARE_CHUNKS: usize = CHUNKS_MAX / 8;

    /// Lends chunks for `len` bytes; the last one is cut to what is needed. `Ok(false)`: not enough free now.
    pub(crate) fn take<D: Driver>(
        &mut self,
        driver: &mut D,
        len: u32,
        into: &mut Vec<Seg>,
    ) -> io::Result<bool> {
        let wanted = len.div_ceil(CHUNK_BYTES) as usize;
        while self.free.len() < wanted {
            if self.regions.len() == REGIONS_MAX {
                return Ok(false);
            }
            self.grow(driver)?;
        }
        let mut left = len;
        for seg in self.free.drain(self.free.len() - wanted..) {
            let piece = left.min(CHUNK_BYTES);
            into.push(Seg { len: piece, ..seg });
            left -= piece;
        }
        self.lent += wanted;
        Ok(true)
    }

    /// Whether chunks for `len` bytes are free or can still be made.
    pub(crate) fn has(&self, len: u32) -> bool {
        CHUNKS_MAX - self.lent >= len.div_ceil(CHUNK_BYTES) as usize
    }

    /// Whether so much is lent that connections have to share.
    pub(crate) fn is_short(&self) -> bool {
        self.lent >= CHUNKS_MAX / 4
    }

    /// Takes chunks back.
    pub(crate) fn give_back(&mut self, segs: &mut Vec<Seg>) {
        self.lent -= segs.len();
        self.free.extend(segs.drain(..).map(|seg| Seg { len: CHUNK_BYTES, ..seg }));
    }

    /// Bytes that are lent.
    pub(crate) fn lent_bytes(&self) -> u64 {
        self.lent as u64 * u64::from(CHUNK_BYTES)
    }

    /// Copies `bytes` into lent chunks, `at` bytes from their beginning. What does not fit is left out.
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

    /// Repeats `pattern` over all of the chunks. Chunks hold whole patterns, whose length is a power of two.
    pub(crate) fn fill(&self, segs: &[Seg], pattern: &[u8]) {
        for &seg in segs {
            self.region(seg).fill(seg.offset, u64::from(seg.len), pattern);
        }
    }

    /// The memory that a chunk lies in.
    pub(crate) fn region(&self, seg: Seg) -> &Arc<Region> {
        let held = self.regions.iter().find(|(id, _)| *id == seg.region);
        &held.expect("a chunk comes from a region of this pool").1
    }

    fn grow<D: Driver>(&mut self, driver: &mut D) -> io::Result<()> {
        let region = Region::anonymous(u64::from(CHUNK_BYTES * CHUNKS_PER_REGION))?;
        let id = driver.attach(Arc::clone(&region));
        self.regions.push((id, region));
        self.free.reserve(CHUNKS_PER_REGION as usize);
        for chunk in (0..CHUNKS_PER_REGION).rev() {
            let offset = u64::from(chunk * CHUNK_BYTES);
            self.free.push(Seg { region: id, offset, len: CHUNK_BYTES });
        }
        Ok(())
    }
}

/// The parts of `segs` that lie in `len` bytes from byte `at`: segment, start within it, length.
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
    use super::{CHUNK_BYTES, ChunkPool, pieces};
    use linerate_io::{EpollDriver, RegionId, Seg};

    #[test]
    fn chunks_are_lent_cut_and_taken_back() {
        let (mut pool, mut driver) = (ChunkPool::default(), EpollDriver::new().unwrap());
        let mut segs = Vec::new();
        assert!(pool.take(&mut driver, 3 * CHUNK_BYTES + 512, &mut segs).unwrap());
        assert_eq!(segs.iter().map(|seg| seg.len).sum::<u32>(), 3 * CHUNK_BYTES + 512);
        let bytes: Vec<u8> = (0..=255).cycle().take(CHUNK_BYTES as usize).collect();
        pool.write(&segs, CHUNK_BYTES - 100, &bytes);
        let mut back = vec![0; bytes.len()];
        pool.read(&segs, CHUNK_BYTES - 100, &mut back);
        assert_eq!(back, bytes);
        pool.give_back(&mut segs);
        assert_eq!(pool.lent_bytes(), 0);
    }

    #[test]
    fn a_full_pool_says_so_and_keeps_nothing() {
        let (mut pool, mut driver) = (ChunkPool::default(), EpollDriver::new().unwrap());
        let mut held = Vec::new();
        while pool.take(&mut driver, 8 << 20, &mut held).unwrap() {}
        let lent = pool.lent_bytes();
        assert!(lent <= 64 << 20);
        assert!(!pool.take(&mut driver, 8 << 20, &mut held).unwrap());
        assert_eq!(pool.lent_bytes(), lent);
        pool.give_back(&mut held);
        assert!(pool.take(&mut driver, 8 << 20, &mut held).unwrap());
    }

    #[test]
    fn pieces_cut_both_ends() {
        let seg = |offset| Seg { region: RegionId::new(0), offset, len: 10 };
        let found: Vec<_> = pieces(&[seg(0), seg(100), seg(200)], 5, 17).collect();
        assert_eq!(found, [(seg(0), 5, 5), (seg(100), 0, 10), (seg(200), 0, 2)]);
    }
}
