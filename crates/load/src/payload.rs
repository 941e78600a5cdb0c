//! The memory of I/Os: one region per worker with a read buffer and a write buffer per slot.
//!
//! Write buffers are filled once with random bytes (with the compressibility of the stream) and reused. Before each
//! write the first 8 bytes of every 4 KiB get a new value, so that no two written pages are equal: an array with
//! deduplication finds no duplicates. Slots share buffers if all of them together would be large; then the bytes of
//! reads are not used, and a new value may reach the data of a write that is being sent. In verify mode, and for volumes
//! with data digests or signatures, every slot has its own buffers. Data with duplicates are made anew for each write
//! (`duplicates.rs`).

pub(crate) mod duplicates;

use crate::stream::rng::{Rng, Use};
use duplicates::Duplicates;
use linerate_io::{Region, RegionId, Seg};
use std::{io, sync::Arc};

const PAGE_BYTES: u64 = 4096;
/// Reads, and writes of one compression ratio, use at most this much memory per worker, unless every slot has its own.
const SHARED_BYTES: u64 = 128 << 20;

/// The content of written data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// Random bytes; no two pages are equal.
    Random,
    /// Zeros.
    Zeros,
}

/// Where in the region a slot's buffers are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BufferPlace {
    read: u64,
    write: u64,
}

/// The buffers of a worker.
#[derive(Debug)]
pub(crate) struct Buffers {
    region: Arc<Region>,
    id: RegionId,
    writes_start: u64,
    /// Distance between the write buffers of one compression ratio and the next.
    ratio_span: u64,
    unique: u64,
    payload: Payload,
}

/// Allocates buffers of one kind.
#[derive(Debug)]
struct Pool {
    limit: u64,
    next: u64,
    end: u64,
}

impl Pool {
    fn new(own: bool, sizes: impl Iterator<Item = u64> + Clone) -> Self {
        let total: u64 = sizes.clone().sum();
        let largest = sizes.max().unwrap_or(0);
        Self { limit: if own { total } else { total.min(SHARED_BYTES.max(largest)) }, next: 0, end: 0 }
    }

    fn deal(&mut self, bytes: u64) -> u64 {
        if self.next + bytes > self.limit {
            self.next = 0;
        }
        let at = self.next;
        self.next += bytes;
        self.end = self.end.max(self.next);
        at
    }
}

impl Buffers {
    /// For slots with these largest read and write sizes. `ratios` are the compression ratios in use (1 = incompressible);
    /// `own` = no sharing; `attach` registers the region with the backends. Returns each slot's
    /// place. Errors: not enough memory.
    pub(crate) fn new(
        attach: impl FnOnce(&Arc<Region>) -> RegionId,
        slots: &[(u32, u32)],
        ratios: &[f64],
        (own, payload): (bool, Payload),
        (seed, worker): (u64, u32),
    ) -> io::Result<(Self, Vec<BufferPlace>)> {
        let pages = |bytes: u32| u64::from(bytes).next_multiple_of(PAGE_BYTES);
        let mut reads = Pool::new(own, slots.iter().map(|slot| pages(slot.0)));
        let mut writes = Pool::new(own, slots.iter().map(|slot| pages(slot.1)));
        let places: Vec<BufferPlace> = slots
            .iter()
            .map(|&(read, write)| BufferPlace {
                read: reads.deal(pages(read)),
                write: writes.deal(pages(write)),
            })
            .collect();
        let total = reads.end + writes.end * ratios.len() as u64;
        let region = Region::anonymous(total.max(PAGE_BYTES))?;
        for (nth, &ratio) in ratios.iter().enumerate().filter(|_| payload == Payload::Random) {
            let start = reads.end + nth as u64 * writes.end;
            fill(&region, start, writes.end, ratio, &mut Rng::new(seed, worker, nth as u32, Use::Payload));
        }
        let id = attach(&region);
        let unique = u64::from(worker) << 48;
        Ok((Self { region, id, writes_start: reads.end, ratio_span: writes.end, unique, payload }, places))
    }

    /// The memory itself, for verification.
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// Destination of a read of `len` bytes.
    pub(crate) fn read(&self, place: BufferPlace, len: u32) -> Seg {
        Seg { region: self.id, offset: place.read, len }
    }

    /// Source of a write of `len` bytes; `ratio` is an index into the ratios given at the start.
    pub(crate) fn write(&self, place: BufferPlace, ratio: u32, len: u32) -> Seg {
        let offset = self.writes_start + u64::from(ratio) * self.ratio_span + place.write;
        Seg { region: self.id, offset, len }
    }

    /// Makes every page of a write differ from all others, unless all are zeros.
    pub(crate) fn make_unique(&mut self, seg: Seg) {
        if self.payload == Payload::Zeros {
            return;
        }
        for page in 0..u64::from(seg.len).div_ceil(PAGE_BYTES) {
            self.unique += 1;
            self.region.write(seg.offset + page * PAGE_BYTES, &self.unique.to_le_bytes());
        }
    }
}

impl Buffers {
    /// Makes the data of a write at a byte of the volume, some of them duplicates.
    pub(crate) fn make_duplicates(&mut self, seg: Seg, offset: u64, duplicates: &Duplicates) {
        if self.payload == Payload::Zeros {
            return;
        }
        for part in duplicates.parts(offset, seg.len.into()) {
            self.unique += 1;
            self.region.write(seg.offset + part.at, duplicates.bytes(part, self.unique));
            for (at, stamp) in duplicates.stamps(part, self.unique) {
                self.region.write(seg.offset + at, &stamp);
            }
        }
    }
}

/// Fills whole pages with random bytes, of which only the first 1/ratio is not zero.
fn fill(region: &Region, start: u64, len: u64, ratio: f64, rng: &mut Rng) {
    let mut page = [0; PAGE_BYTES as usize];
    for at in (0..len).step_by(PAGE_BYTES as usize) {
        fill_random(&mut page, ratio, rng);
        region.write(start + at, &page);
    }
}

/// Fills a page of any size with random bytes, of which only the first 1/ratio is not zero.
pub(crate) fn fill_random(page: &mut [u8], ratio: f64, rng: &mut Rng) {
    let random = ((page.len() as f64 / ratio.max(1.0)) as usize).next_multiple_of(8).min(page.len());
    for word in page[..random].chunks_mut(8) {
        word.copy_from_slice(&rng.bits().to_le_bytes()[..word.len()]);
    }
    page[random..].fill(0);
}

#[cfg(test)]
mod tests {
    use super::{Pool, Region, SHARED_BYTES, fill};
    use crate::stream::rng::{Rng, Use};

    #[test]
    fn small_totals_are_not_shared_and_large_ones_are_bounded() {
        let mut pool = Pool::new(false, [4096_u64; 100].into_iter());
        let mut places: Vec<u64> = (0..100).map(|_| pool.deal(4096)).collect();
        places.dedup();
        assert_eq!((places.len(), pool.end), (100, 409_600));
        let mut pool = Pool::new(false, [1_u64 << 20; 1000].into_iter());
        (0..1000).for_each(|_| assert!(pool.deal(1 << 20) + (1 << 20) <= SHARED_BYTES));
        let mut own = Pool::new(true, [1_u64 << 20; 1000].into_iter());
        (0..1000).for_each(|nth| assert_eq!(own.deal(1 << 20), nth << 20));
    }

    #[test]
    fn a_ratio_leaves_that_much_of_a_page_random() {
        let region = Region::anonymous(8192).unwrap();
        fill(&region, 0, 8192, 4.0, &mut Rng::new(1, 0, 0, Use::Payload));
        let mut page = vec![0; 4096];
        region.read(4096, &mut page);
        assert!(page[1024..].iter().all(|byte| *byte == 0));
        let words_of_zeros = page[..1024].chunks(8).filter(|word| **word == [0; 8]).count();
        assert_eq!(words_of_zeros, 0);
    }
}
