//! Bytes that a reader gets where a disk in memory has them, and the pages that must keep them meanwhile.
//!
//! A reader that sends bytes later reads memory that others may write to: as with every read, it may find old or new bytes
//! of the same place. It must never find bytes of another volume. Places on a disk belong to one volume for good, except
//! pages of a pool. So a reader takes a [`Lease`] of their pages, and a page with one does not become free
//! ([`LentPages`]). A lease needs no lock and no visit to end, so any thread may end it at any time.

use linerate_io::Region;
use std::{
    fmt,
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

/// Bytes that a read without waiting passes on.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// A copy of them.
    pub bytes: &'a [u8],
    /// The memory in which the disk has them, and their offset there.
    place: Option<(&'a Arc<Region>, u64)>,
    /// The page of a pool that they are in.
    page: Option<(&'a LentPages, u32)>,
}

impl<'a> Chunk<'a> {
    /// Bytes that are nowhere else.
    pub fn copied(bytes: &'a [u8]) -> Self {
        Self { bytes, place: None, page: None }
    }

    /// Bytes that are also at `offset` of a disk's memory.
    pub fn at(bytes: &'a [u8], region: &'a Arc<Region>, offset: u64) -> Self {
        Self { bytes, place: Some((region, offset)), page: None }
    }

    /// A part of it.
    #[must_use]
    pub fn part(self, from: usize, to: usize) -> Self {
        let place = self.place.map(|(region, offset)| (region, offset + from as u64));
        Self { bytes: &self.bytes[from..to], place, ..self }
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
        let place = chunk.place?;
        if let Some((pages, page)) = chunk.page {
            self.hold(pages, page)?;
        }
        Some(place)
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
        let chunk = Chunk::at(&[0; 512], &region, 4096).part(128, 512).in_page(&pages, 7);
        let mut leases = [Lease::default(), Lease::default()];
        for lease in &mut leases {
            for _ in 0..2 {
                let (memory, offset) = lease.lend(chunk).unwrap();
                assert!(Arc::ptr_eq(memory, &region) && offset == 4096 + 128 && chunk.bytes.len() == 384);
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
        let chunk = Chunk::at(&[0; 512], &region, 0);
        let mut lease = Lease::default();
        assert!(lease.lend(Chunk::copied(&[0; 512]).in_page(&pages, 1)).is_none() && !pages.is_lent(1));
        assert!((0..8).all(|page| lease.lend(chunk.in_page(&pages, page)).is_some()));
        assert!(lease.lend(chunk.in_page(&pages, 8)).is_none() && !pages.is_lent(8));
        assert!(lease.lend(chunk.in_page(&LentPages::default(), 0)).is_none(), "of another pool");
    }
}
