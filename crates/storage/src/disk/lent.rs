//! Bytes that a reader gets where a disk in memory has them, and the pages that must keep them meanwhile.
//!
//! A reader that sends bytes later reads memory that others may write to: as with every read, it may find old or new bytes
//! of the same place. It must never find bytes of another volume. Places on a disk belong to one volume for good, except
//! pages of a pool. So a reader takes a [`Lease`] of their pages, and a page with one does not become free
//! ([`LentPages`]). A lease needs no lock and no visit to end, so any thread may end it at any time.

use linerate_io::Region;
use std::{
    cell::Cell,
    fmt,
    ops::Range,
    sync::{
        Arc,
        atomic::{
            AtomicU32,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

/// Counts of one pool, 16 KiB: few pages of a pool are lent at a time, so few others share a count with one of them.
const COUNTS: usize = 4096;
/// Pages of one lease.
const LEASE_PAGES_MAX: usize = 8;

/// Bytes that a read without waiting passes on. They are copied once at most: where its reader wants them.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    source: Source<'a>,
    /// The page of a pool that they are in.
    page: Option<(&'a LentPages, u32)>,
    /// Gets the checksum of the bytes that are copied.
    sum: Option<&'a CopySum>,
}

/// Where the bytes of a chunk are.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    /// Nowhere else.
    Slice(&'a [u8]),
    /// In the memory of a disk.
    Memory { region: &'a Arc<Region>, offset: u64, len: usize },
}

/// The CRC32C of the bytes of a chunk, if they were copied from the first to the last.
#[derive(Debug, Default)]
pub(crate) struct CopySum {
    sum: Cell<u32>,
    copied: Cell<usize>,
}

impl<'a> Chunk<'a> {
    /// Bytes that are nowhere else.
    pub fn of_slice(bytes: &'a [u8]) -> Self {
        Self { source: Source::Slice(bytes), page: None, sum: None }
    }

    /// Bytes at `offset` of a disk's memory.
    pub fn at(region: &'a Arc<Region>, offset: u64, len: usize) -> Self {
        Self { source: Source::Memory { region, offset, len }, page: None, sum: None }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        match self.source {
            Source::Slice(bytes) => bytes.len(),
            Source::Memory { len, .. } => len,
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A part of it.
    #[must_use]
    pub fn part(self, range: Range<usize>) -> Self {
        assert!(range.end <= self.len(), "{range:?} is outside a chunk of {} bytes", self.len());
        let source = match self.source {
            Source::Slice(bytes) => Source::Slice(&bytes[range]),
            Source::Memory { region, offset, .. } => {
                Source::Memory { region, offset: offset + range.start as u64, len: range.len() }
            }
        };
        Self { source, ..self }
    }

    /// Copies it to `offset` of a region, which is not the disk's.
    pub fn copy_to(&self, to: &Region, offset: u64) {
        match (self.source, self.sum) {
            (Source::Slice(bytes), _) => {
                to.write(offset, bytes);
                self.add_sum(|sum| linerate_crc32c::crc32c_append(sum, bytes));
            }
            (Source::Memory { region, offset: from, len }, Some(_)) => {
                self.add_sum(|sum| region.copy_crc32c(sum, from, to, offset, len as u64));
            }
            (Source::Memory { region, offset: from, len }, None) => {
                region.copy_to(from, to, offset, len as u64);
            }
        }
    }

    /// Copies it to a slice of the same length.
    pub fn copy_to_slice(&self, to: &mut [u8]) {
        assert_eq!(to.len(), self.len(), "a chunk fills a slice of its length");
        match (self.source, self.sum) {
            (Source::Slice(bytes), _) => {
                to.copy_from_slice(bytes);
                self.add_sum(|sum| linerate_crc32c::crc32c_append(sum, bytes));
            }
            (Source::Memory { region, offset, .. }, Some(_)) => {
                self.add_sum(|sum| region.read_crc32c(sum, offset, to));
            }
            (Source::Memory { region, offset, .. }, None) => region.read(offset, to),
        }
    }

    fn add_sum(&self, append: impl FnOnce(u32) -> u32) {
        if let Some(sum) = self.sum {
            sum.sum.set(append(sum.sum.get()));
            sum.copied.set(sum.copied.get() + self.len());
        }
    }

    /// The same bytes; the checksum of those that are copied is wanted.
    #[must_use]
    pub(crate) fn summed<'b>(self, sum: &'b CopySum) -> Chunk<'b>
    where
        'a: 'b,
    {
        Chunk { sum: Some(sum), ..self }
    }

    /// The CRC32C of its bytes. `copied` is what copies of it, in order and without repeats, have found.
    pub(crate) fn crc32c(&self, copied: &CopySum) -> u32 {
        if copied.copied.get() == self.len() {
            return copied.sum.get();
        }
        match self.source {
            Source::Slice(bytes) => linerate_crc32c::crc32c(bytes),
            Source::Memory { region, offset, len } => region.crc32c(0, offset, len as u64),
        }
    }

    /// The same bytes, which are in this page of a pool.
    #[must_use]
    pub(crate) fn in_page<'b>(self, pages: &'b LentPages, page: u32) -> Chunk<'b>
    where
        'a: 'b,
    {
        Chunk { page: Some((pages, page)), ..self }
    }
}

/// Which pages of a pool are lent.
#[derive(Clone)]
pub(crate) struct LentPages(Arc<[AtomicU32; COUNTS]>);

impl Default for LentPages {
    fn default() -> Self {
        Self(Arc::new([const { AtomicU32::new(0) }; COUNTS]))
    }
}

impl LentPages {
    /// Whether a lease of this page has not ended, or of another one that has the same count.
    pub(crate) fn is_lent(&self, page: u32) -> bool {
        // Its reader has read all that it reads.
        self.0[page as usize % COUNTS].load(Acquire) > 0
    }
}

impl fmt::Debug for LentPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LentPages")
    }
}

/// Keeps the pages of one reader from becoming free, until it is dropped.
#[derive(Debug, Default)]
pub struct Lease {
    /// Those of the pool; None: the bytes are not in pages of a pool.
    pages: Option<LentPages>,
    counts: [u16; LEASE_PAGES_MAX],
    len: u8,
}

impl Lease {
    /// The place of a chunk, which may be used until the lease ends. The chunk is one that a read is passing on now. None:
    /// only its copy may be used.
    pub fn lend<'a>(&mut self, chunk: Chunk<'a>) -> Option<(&'a Arc<Region>, u64)> {
        let Source::Memory { region, offset, .. } = chunk.source else { return None };
        if let Some((pages, page)) = chunk.page {
            self.hold(pages, page)?;
        }
        Some((region, offset))
    }

    fn hold(&mut self, pages: &LentPages, page: u32) -> Option<()> {
        let held = self.pages.get_or_insert_with(|| pages.clone());
        if !Arc::ptr_eq(&held.0, &pages.0) {
            return None;
        }
        let (count, len) = ((page as usize % COUNTS) as u16, self.len as usize);
        if self.counts[..len].contains(&count) {
            return Some(());
        }
        *self.counts.get_mut(len)? = count;
        self.len += 1;
        // The pool's thread is in this read, so it looks at the count later.
        pages.0[count as usize].fetch_add(1, Relaxed);
        Some(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(pages) = &self.pages else { return };
        for count in &self.counts[..self.len as usize] {
            pages.0[*count as usize].fetch_sub(1, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_lent_until_its_last_lease_ends() {
        let (region, pages) = (Region::anonymous(8192).unwrap(), LentPages::default());
        let chunk = Chunk::at(&region, 4096, 512).part(128..512).in_page(&pages, 7);
        let mut leases = [Lease::default(), Lease::default()];
        for lease in &mut leases {
            for _ in 0..2 {
                let (memory, offset) = lease.lend(chunk).unwrap();
                assert!(Arc::ptr_eq(memory, &region) && offset == 4096 + 128 && chunk.len() == 384);
            }
        }
        assert!(pages.is_lent(7) && !pages.is_lent(8));
        let [one, other] = leases;
        drop(one);
        assert!(pages.is_lent(7));
        drop(other);
        assert!(!pages.is_lent(7));
    }

    #[test]
    fn what_has_no_place_or_no_room_is_not_lent() {
        let (region, pages) = (Region::anonymous(8192).unwrap(), LentPages::default());
        let chunk = Chunk::at(&region, 0, 512);
        let mut lease = Lease::default();
        assert!(lease.lend(Chunk::of_slice(&[0; 512]).in_page(&pages, 1)).is_none() && !pages.is_lent(1));
        assert!((0..8).all(|page| lease.lend(chunk.in_page(&pages, page)).is_some()));
        assert!(lease.lend(chunk.in_page(&pages, 8)).is_none() && !pages.is_lent(8));
        assert!(lease.lend(chunk.in_page(&LentPages::default(), 0)).is_none(), "of another pool");
    }
    #[test]
    fn copies_of_a_chunk_find_its_checksum_and_what_is_not_copied_is_read_for_it() {
        let (disk, buffer) = (Region::anonymous(8192).unwrap(), Region::anonymous(8192).unwrap());
        let bytes: Vec<u8> = (0..4096_u32).map(|at| (at % 251) as u8).collect();
        disk.write(512, &bytes);
        for chunk in [Chunk::at(&disk, 512, 4096), Chunk::of_slice(&bytes)] {
            let (sum, mut slice) = (CopySum::default(), vec![0; 1096]);
            chunk.summed(&sum).part(0..3000).copy_to(&buffer, 7);
            assert_eq!(chunk.crc32c(&sum), linerate_crc32c::crc32c(&bytes), "a part is copied");
            chunk.summed(&sum).part(3000..4096).copy_to_slice(&mut slice);
            assert_eq!((sum.copied.get(), sum.sum.get()), (4096, linerate_crc32c::crc32c(&bytes)));
            assert!(buffer.compare(7, &bytes[..3000]).is_none() && slice == bytes[3000..]);
            chunk.copy_to(&buffer, 0);
            chunk.part(0..1096).copy_to_slice(&mut slice);
            assert!(buffer.compare(0, &bytes).is_none() && slice == bytes[..1096], "without a checksum");
        }
    }
}
