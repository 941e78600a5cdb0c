//! Checksums of a group's units: CRC32C by member and unit, in memory; pages are read when they are needed.
//!
//! A page on a member begins with a checksum of its own, which covers whose page it is, so that pages of an earlier set, of
//! another member or torn ones are ignored. Checksum 0 means "not known": such a unit is used as it is read.

mod pages;

use super::{
    geometry::UNIT,
    superblock::{Layout, SUMS_PER_PAGE},
};
use bytes::{BufMut, Bytes, BytesMut};
use pages::{Page, Pages};
use std::{cell::RefCell, collections::HashSet, ops::Range};

/// Pages kept in memory: 256 MiB.
const PAGES_MAX: usize = 64 << 10;

/// The checksum of a unit whose bytes may be any.
const UNKNOWN: u32 = 0;

/// The checksums of one group.
pub(super) struct Checksums {
    layout: Layout,
    pages: RefCell<Pages>,
    /// Per slot: which pages on disk are valid.
    slots: RefCell<Vec<OnDisk>>,
}

#[derive(Clone, Debug, Default)]
struct OnDisk {
    seed: u32,
    /// None: every page may exist.
    written: Option<HashSet<u64>>,
}

impl Checksums {
    pub(super) fn new(layout: Layout, slots: usize) -> Self {
        let on_disk = vec![OnDisk::default(); slots];
        Self { layout, pages: RefCell::new(Pages::new(slots)), slots: RefCell::new(on_disk) }
    }

    /// Starts a slot with `seed`, which distinguishes its disk from all others. Its pages on disk are read only if it
    /// `is_old`.
    pub(super) fn begin(&self, slot: usize, seed: u32, is_old: bool) {
        self.pages.borrow_mut().clear(slot);
        self.slots.borrow_mut()[slot] = OnDisk { seed, written: (!is_old).then(HashSet::new) };
    }

    /// Pages that must be read before the checksums of the units can be used: page and its offset on the member. Pages
    /// that need no reading are in memory from now on.
    pub(super) fn missing(&self, slot: usize, units: Range<u64>) -> Vec<(u64, u64)> {
        let mut pages = self.pages.borrow_mut();
        let slots = self.slots.borrow();
        let mut missing = Vec::new();
        for page in pages_of(&units) {
            if pages.get(slot, page).is_some() {
                continue;
            }
            if slots[slot].written.as_ref().is_some_and(|written| !written.contains(&page)) {
                pages.add(slot, page, Page::blank());
            } else {
                missing.push((page, self.layout.sums + page * UNIT));
            }
        }
        missing
    }

    /// Whether the checksums of the units can be used without reading.
    pub(super) fn are_here(&self, slot: usize, units: Range<u64>) -> bool {
        self.missing(slot, units).is_empty()
    }

    /// Takes a page that was read; None: the read failed. Checksums of units that `is_stale` are ignored.
    pub(super) fn take(&self, slot: usize, page: u64, bytes: Option<&[u8]>, is_stale: impl Fn(u64) -> bool) {
        let mut taken = Page::blank();
        let seed = self.slots.borrow()[slot].seed;
        if let Some(bytes) =
            bytes.filter(|bytes| bytes[..4] == page_sum(seed, page, &bytes[4..]).to_le_bytes())
        {
            for (at, (sum, bytes)) in taken.sums.iter_mut().zip(bytes[4..].chunks_exact(4)).enumerate() {
                if is_stale(page * SUMS_PER_PAGE + at as u64) {
                    taken.is_dirty = true;
                } else {
                    *sum = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                }
            }
        }
        self.pages.borrow_mut().add(slot, page, taken);
    }

    /// Numbers, within `bytes`, of the units that disagree with their checksums.
    pub(super) fn disagree(&self, slot: usize, first: u64, bytes: &[u8]) -> Vec<usize> {
        let units = bytes.chunks_exact(UNIT as usize).enumerate();
        let wrong = units
            .filter(|(at, unit)| !self.agrees(slot, first + *at as u64, || linerate_crc32c::crc32c(unit)));
        wrong.map(|(at, _)| at).collect()
    }

    /// Whether a unit whose bytes have the CRC32C `found` is right, as far as its checksum is known.
    pub(super) fn agrees(&self, slot: usize, unit: u64, found: impl FnOnce() -> u32) -> bool {
        let pages = self.pages.borrow();
        let known =
            pages.get(slot, unit / SUMS_PER_PAGE).map(|page| page.sums[(unit % SUMS_PER_PAGE) as usize]);
        known.is_none_or(|sum| sum == UNKNOWN || sum == known_sum(found()))
    }

    /// Hint: the checksum of a unit is used soon.
    pub(super) fn prefetch(&self, slot: usize, unit: u64) {
        if let Some(page) = self.pages.borrow().get(slot, unit / SUMS_PER_PAGE) {
            linerate_io::prefetch_value(&page.sums[(unit % SUMS_PER_PAGE) as usize]);
        }
    }

    /// The units hold `bytes` from now on.
    pub(super) fn set(&self, slot: usize, first: u64, bytes: &[u8]) {
        self.set_on_each(slot..slot + 1, first, bytes);
    }

    /// The units of several slots hold the same `bytes` from now on.
    pub(super) fn set_on_each(&self, slots: Range<usize>, first: u64, bytes: &[u8]) {
        let mut pages = self.pages.borrow_mut();
        for (at, bytes) in bytes.chunks_exact(UNIT as usize).enumerate() {
            let (unit, sum) = (first + at as u64, sum_of(bytes));
            for slot in slots.clone() {
                if let Some(page) = pages.get_mut(slot, unit / SUMS_PER_PAGE) {
                    page.put(unit, sum);
                }
            }
        }
    }

    /// The units were given back and read as zeros from now on. What rots in them is found as in any other unit.
    pub(super) fn set_zeros(&self, slot: usize, units: Range<u64>) {
        self.put_all(slot, units, sum_of(&[0; UNIT as usize]));
    }

    /// The contents of the units are unknown, and so are their checksums.
    pub(super) fn forget(&self, slot: usize, units: Range<u64>) {
        self.put_all(slot, units, UNKNOWN);
    }

    /// Sets one checksum for all of the units.
    fn put_all(&self, slot: usize, units: Range<u64>, sum: u32) {
        let mut pages = self.pages.borrow_mut();
        for unit in units {
            if let Some(page) = pages.get_mut(slot, unit / SUMS_PER_PAGE) {
                page.put(unit, sum);
            }
        }
    }

    /// Changed pages of a slot that cover the units, as (offset on the member, bytes). They count as written
    /// afterwards.
    pub(super) fn changed(&self, slot: usize, units: Range<u64>) -> Vec<(u64, Bytes)> {
        let mut pages = self.pages.borrow_mut();
        let mut slots = self.slots.borrow_mut();
        let on_disk = &mut slots[slot];
        let mut changed = Vec::new();
        pages.for_each(slot, pages_of(&units), |page, content| {
            if std::mem::take(&mut content.is_dirty) {
                on_disk.written.as_mut().map(|written| written.insert(page));
                changed.push((self.layout.sums + page * UNIT, content.encode(on_disk.seed, page)));
            }
        });
        changed
    }

    /// Limits the memory. Changed pages are kept, and so are those that `is_in_use`.
    pub(super) fn trim(&self, is_in_use: impl Fn(Range<u64>) -> bool) {
        let mut pages = self.pages.borrow_mut();
        if pages.len() > PAGES_MAX {
            pages.retain(|page, content| {
                content.is_dirty || is_in_use(page * SUMS_PER_PAGE..(page + 1) * SUMS_PER_PAGE)
            });
        }
    }
}

impl Page {
    fn encode(&self, seed: u32, page: u64) -> Bytes {
        let mut out = BytesMut::with_capacity(UNIT as usize);
        out.put_u32_le(0);
        self.sums.iter().for_each(|sum| out.put_u32_le(*sum));
        let sum = page_sum(seed, page, &out[4..]);
        out[..4].copy_from_slice(&sum.to_le_bytes());
        out.freeze()
    }
}

fn pages_of(units: &Range<u64>) -> Range<u64> {
    units.start / SUMS_PER_PAGE..units.end.div_ceil(SUMS_PER_PAGE)
}

fn page_sum(seed: u32, page: u64, sums: &[u8]) -> u32 {
    linerate_crc32c::crc32c_append(linerate_crc32c::crc32c_append(seed, &page.to_le_bytes()), sums)
}

fn sum_of(unit: &[u8]) -> u32 {
    known_sum(linerate_crc32c::crc32c(unit))
}

/// The checksum of a unit by its CRC32C.
fn known_sum(crc: u32) -> u32 {
    if crc == UNKNOWN { 1 } else { crc }
}
