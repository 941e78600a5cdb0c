//! The regions of a group in memory: which stripes can be relied on, and which regions are being written.

use super::super::{
    bitmap::Bitmap,
    geometry::{Geometry, UNIT},
    superblock::Superblock,
};
use linerate_io::Nanos;
use std::{
    cell::{Cell, RefCell},
    ops::Range,
};

/// The regions of a group.
pub(in super::super) struct WriteIntent {
    pub(in super::super) stripes_per_region: u64,
    geometry: Geometry,
    pub(in super::super) each: RefCell<Vec<IntentRegion>>,
    /// Stripes whose parity or copies may disagree with the data.
    pub(in super::super) unsynced: RefCell<Bitmap>,
    /// Regions that a power cut may have left torn: missing chunks must not be computed from their parity. Other
    /// stripes that are not in sync were never written: any content is right.
    torn: RefCell<Bitmap>,
    /// Stripes of torn regions whose parity or copies may not agree on the medium; None if all agree.
    unsure: RefCell<Option<Bitmap>>,
    /// Regions whose checksum pages on disk are old.
    pub(in super::super) stale: RefCell<Bitmap>,
    pub(in super::super) is_cleaning: Cell<bool>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct IntentRegion {
    pub(in super::super) writers: usize,
    pub(in super::super) last_write: Nanos,
    /// The superblock that contains its flags.
    pub(in super::super) ticket: u64,
}

impl WriteIntent {
    /// The state of the superblock. `stale` says whether flags for checksums are used.
    pub(in super::super) fn new(geometry: Geometry, stripes_per_region: u64, meta: &Superblock) -> Self {
        let count = geometry.stripes.div_ceil(stripes_per_region);
        let mut unsynced = Bitmap::new(geometry.stripes);
        let regions = Self {
            stripes_per_region,
            geometry,
            each: RefCell::new(vec![IntentRegion::default(); count as usize]),
            unsynced: RefCell::default(),
            torn: RefCell::new(meta.unsynced.clone()),
            unsure: RefCell::default(),
            stale: RefCell::new(meta.unsummed.clone()),
            is_cleaning: Cell::new(false),
        };
        if meta.unsynced.next(0).is_some() {
            let mut unsure = Bitmap::new(geometry.stripes);
            for region in (0..count).filter(|region| meta.unsynced.get(*region)) {
                unsure.set_range(regions.stripes(region), true);
            }
            *regions.unsure.borrow_mut() = Some(unsure);
        }
        unsynced.set_range(meta.initialised.min(geometry.stripes)..geometry.stripes, true);
        // To check a stripe also makes its checksums known. With a journal, no other flag requests this.
        for region in (0..count).filter(|region| meta.unsynced.get(*region) || meta.unsummed.get(*region)) {
            unsynced.set_range(regions.stripes(region), true);
        }
        *regions.unsynced.borrow_mut() = unsynced;
        regions
    }

    pub(in super::super) fn region(&self, stripe: u64) -> u64 {
        stripe / self.stripes_per_region
    }

    pub(in super::super) fn stripes(&self, region: u64) -> Range<u64> {
        let first = region * self.stripes_per_region;
        first..(first + self.stripes_per_region).min(self.geometry.stripes)
    }

    pub(in super::super) fn units(&self, region: u64) -> Range<u64> {
        let per_stripe = self.geometry.chunk / UNIT;
        let stripes = self.stripes(region);
        stripes.start * per_stripe..stripes.end * per_stripe
    }

    /// The region of a member's unit.
    pub(in super::super) fn of_unit(&self, unit: u64) -> u64 {
        self.region(unit * UNIT / self.geometry.chunk)
    }

    /// The time of the last write; now, while there are writers.
    pub(in super::super) fn last_write(&self) -> Nanos {
        let each = self.each.borrow();
        let last =
            each.iter().map(|region| if region.writers > 0 { Nanos::MAX / 2 } else { region.last_write });
        last.max().unwrap_or(0)
    }

    pub(in super::super) fn is_synced(&self, stripe: u64) -> bool {
        !self.unsynced.borrow().get(stripe)
    }

    pub(in super::super) fn set_synced(&self, stripe: u64) {
        self.unsynced.borrow_mut().set(stripe, false);
    }

    /// Whether older data may reappear after another power cut that also fails a disk.
    pub(in super::super) fn is_unsure(&self, stripe: u64) -> bool {
        self.unsure.borrow().as_ref().is_some_and(|unsure| unsure.get(stripe))
    }

    /// Before the members are flushed: the stripes that need not agree. None if this does not matter.
    pub(in super::super) fn before_flush(&self) -> Option<Bitmap> {
        self.unsure.borrow().as_ref().map(|_| self.unsynced.borrow().clone())
    }

    /// All members were flushed: parts that agreed before now agree on the medium.
    pub(in super::super) fn after_flush(&self, unsynced: &Bitmap) {
        let mut unsure = self.unsure.borrow_mut();
        if let Some(stripes) = &mut *unsure {
            stripes.keep(unsynced);
        }
        *unsure = unsure.take().filter(|stripes| stripes.next(0).is_some());
    }

    pub(in super::super) fn next_unsynced(&self, from: u64) -> Option<u64> {
        self.unsynced.borrow().next(from)
    }

    /// The first stripe that a power cut may have left torn.
    pub(in super::super) fn next_torn(&self) -> Option<u64> {
        let (torn, unsynced) = (self.torn.borrow(), self.unsynced.borrow());
        let mut region = torn.next(0)?;
        loop {
            let stripes = self.stripes(region);
            if let Some(stripe) = unsynced.next(stripes.start).filter(|stripe| stripes.contains(stripe)) {
                return Some(stripe);
            }
            region = torn.next(region + 1)?;
        }
    }

    pub(in super::super) fn unsynced_count(&self) -> u64 {
        self.unsynced.borrow().count()
    }

    /// Whether a missing chunk of the stripe may be computed from the others.
    pub(in super::super) fn can_rely(&self, stripe: u64) -> bool {
        self.is_synced(stripe) || !self.torn.borrow().get(self.region(stripe))
    }

    pub(in super::super) fn is_stale(&self, unit: u64) -> bool {
        let region = self.of_unit(unit);
        (region as usize) < self.each.borrow().len() && self.stale.borrow().get(region)
    }

    pub(in super::super) fn is_in_use(&self, units: Range<u64>) -> bool {
        let regions = self.each.borrow();
        let (first, last) = (self.of_unit(units.start) as usize, self.of_unit(units.end - 1) as usize);
        (first..=last).filter_map(|region| regions.get(region)).any(|region| region.writers > 0)
    }

    /// All writes are flushed and no write is in progress: only stripes that were torn before need their flags.
    pub(in super::super) fn all_written(&self, meta: &mut Superblock) {
        let unsynced = self.unsynced.borrow();
        let torn = self.torn.borrow();
        for region in 0..self.each.borrow().len() as u64 {
            let is_torn = torn.get(region) && unsynced.any_in(self.stripes(region));
            meta.unsynced.set(region, is_torn);
        }
    }
}
