//! Regions: runs of stripes that share a flag in the superblock while they are written.
//!
//! A region has two flags. `unsynced`: after a power cut its stripes must be made to agree. `unsummed`: its
//! checksums on disk are old. Flags go up, durable, before the first write. They go down when everything has been
//! flushed: soon if there are no writes, and otherwise late, because setting them again costs writes. A caller that writes
//! region after region finds flags up already: they go up for as many more regions as there are flagged ones behind, but
//! only for a few, as a flag costs time after a power cut, and stripes if a member dies with the power. Per stripe it is
//! remembered, in memory, whether parity or copies can be relied on at all.

use super::{
    Group, PAGES,
    bitmap::Bitmap,
    geometry::{Geometry, Rows, UNIT},
    locks::Hold,
    superblock::Superblock,
};
use bytes::BytesMut;
use futures::future::join_all;
use linerate_io::Nanos;
use std::{
    cell::{Cell, RefCell},
    ops::Range,
    rc::Rc,
};

/// How long a region is left alone before its flags go down.
const REGION_IDLE_NS: Nanos = 60_000_000_000;
/// How long the group is left alone before all of its flags go down.
const GROUP_IDLE_NS: Nanos = 1_000_000_000;
const LOOK_EVERY_NS: Nanos = 500_000_000;
/// Most regions that are flagged before anybody writes to them.
const AHEAD_MAX: usize = 8;

/// The regions of a group.
pub(super) struct WriteIntent {
    pub(super) stripes_per_region: u64,
    geometry: Geometry,
    each: RefCell<Vec<Region>>,
    /// Stripes whose parity or copies may disagree with the data.
    unsynced: RefCell<Bitmap>,
    /// Regions that a power cut may have left torn: what parity says about missing chunks is not to be believed.
    /// Other stripes that are not in sync were never written: any content will do.
    torn: RefCell<Bitmap>,
    /// Stripes of torn regions whose parity or copies are not known to agree on the platters; none if all are.
    unsure: RefCell<Option<Bitmap>>,
    /// Regions whose checksum pages on disk are old.
    stale: RefCell<Bitmap>,
    is_cleaning: Cell<bool>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Region {
    writers: usize,
    last_write: Nanos,
    /// The superblock that has its flags.
    ticket: u64,
}

/// A writer at work in a region.
pub(super) struct Entered {
    group: Rc<Group>,
    region: u64,
}

impl WriteIntent {
    /// As the superblock found things. `stale` says whether flags for checksums are to be minded.
    pub(super) fn new(geometry: Geometry, stripes_per_region: u64, meta: &Superblock) -> Self {
        let count = geometry.stripes.div_ceil(stripes_per_region);
        let mut unsynced = Bitmap::new(geometry.stripes);
        let regions = Self {
            stripes_per_region,
            geometry,
            each: RefCell::new(vec![Region::default(); count as usize]),
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
        // Going through a stripe makes its checksums known too, which no flag but this asks for where there is a journal.
        for region in (0..count).filter(|region| meta.unsynced.get(*region) || meta.unsummed.get(*region)) {
            unsynced.set_range(regions.stripes(region), true);
        }
        *regions.unsynced.borrow_mut() = unsynced;
        regions
    }

    pub(super) fn region(&self, stripe: u64) -> u64 {
        stripe / self.stripes_per_region
    }

    fn stripes(&self, region: u64) -> Range<u64> {
        let first = region * self.stripes_per_region;
        first..(first + self.stripes_per_region).min(self.geometry.stripes)
    }

    fn units(&self, region: u64) -> Range<u64> {
        let per_stripe = self.geometry.chunk / UNIT;
        let stripes = self.stripes(region);
        stripes.start * per_stripe..stripes.end * per_stripe
    }

    /// The region of a member's unit.
    pub(super) fn of_unit(&self, unit: u64) -> u64 {
        self.region(unit * UNIT / self.geometry.chunk)
    }

    /// When a writer left, the last one of all; now, while there are any.
    fn last_write(&self) -> Nanos {
        let each = self.each.borrow();
        let last =
            each.iter().map(|region| if region.writers > 0 { Nanos::MAX / 2 } else { region.last_write });
        last.max().unwrap_or(0)
    }

    pub(super) fn is_synced(&self, stripe: u64) -> bool {
        !self.unsynced.borrow().get(stripe)
    }

    pub(super) fn set_synced(&self, stripe: u64) {
        self.unsynced.borrow_mut().set(stripe, false);
    }

    /// Whether another power cut that takes a disk along may bring something older to light.
    pub(super) fn is_unsure(&self, stripe: u64) -> bool {
        self.unsure.borrow().as_ref().is_some_and(|unsure| unsure.get(stripe))
    }

    /// Before the members are flushed: which stripes need not agree. None if that does not matter.
    pub(super) fn before_flush(&self) -> Option<Bitmap> {
        self.unsure.borrow().as_ref().map(|_| self.unsynced.borrow().clone())
    }

    /// All members were flushed: what agreed before does so on the platters.
    pub(super) fn after_flush(&self, unsynced: &Bitmap) {
        let mut unsure = self.unsure.borrow_mut();
        if let Some(stripes) = &mut *unsure {
            stripes.keep(unsynced);
        }
        *unsure = unsure.take().filter(|stripes| stripes.next(0).is_some());
    }

    pub(super) fn next_unsynced(&self, from: u64) -> Option<u64> {
        self.unsynced.borrow().next(from)
    }

    /// The first stripe of those that a power cut may have left torn.
    pub(super) fn next_torn(&self) -> Option<u64> {
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

    pub(super) fn unsynced_count(&self) -> u64 {
        self.unsynced.borrow().count()
    }

    /// Whether a missing chunk of the stripe may be computed from the others.
    pub(super) fn can_rely(&self, stripe: u64) -> bool {
        self.is_synced(stripe) || !self.torn.borrow().get(self.region(stripe))
    }

    pub(super) fn is_stale(&self, unit: u64) -> bool {
        let region = self.of_unit(unit);
        (region as usize) < self.each.borrow().len() && self.stale.borrow().get(region)
    }

    fn is_in_use(&self, units: Range<u64>) -> bool {
        let regions = self.each.borrow();
        let (first, last) = (self.of_unit(units.start) as usize, self.of_unit(units.end - 1) as usize);
        (first..=last).filter_map(|region| regions.get(region)).any(|region| region.writers > 0)
    }

    /// All writes are flushed and no write is under way: only stripes that were torn before need
    /// their flags.
    pub(super) fn all_written(&self, meta: &mut Superblock) {
        let unsynced = self.unsynced.borrow();
        let torn = self.torn.borrow();
        for region in 0..self.each.borrow().len() as u64 {
            let is_torn = torn.get(region) && unsynced.any_in(self.stripes(region));
            meta.unsynced.set(region, is_torn);
        }
    }
}

impl Group {
    /// Announces a writer to a region; its flags stay up for as long.
    pub(super) fn enter(self: &Rc<Self>, stripe: u64) -> Entered {
        let region = self.write_intent.region(stripe);
        self.write_intent.each.borrow_mut()[region as usize].writers += 1;
        Entered { group: Rc::clone(self), region }
    }

    /// Puts the flags up that a write needs, and waits until they are durable.
    pub(super) async fn flag(self: &Rc<Self>, stripe: u64) {
        let region = self.write_intent.region(stripe);
        if self.lacks_flags(region) {
            self.put_flags_up(region);
        }
        let ticket = self.write_intent.each.borrow()[region as usize].ticket;
        self.committed(ticket).await;
    }

    /// Whether a write to a region needs a flag that is down.
    fn lacks_flags(&self, region: u64) -> bool {
        let meta = self.meta.borrow();
        self.needs_sync_flag() && !meta.unsynced.get(region)
            || self.options.checksums && !meta.unsummed.get(region)
    }

    fn needs_sync_flag(&self) -> bool {
        self.has_redundancy() && !self.is_journaled.get()
    }

    /// Puts the flags of a region up, and of some that follow, with the next superblock.
    fn put_flags_up(&self, first: u64) {
        let is_up = |region: &u64| !self.lacks_flags(*region);
        let behind = (0..first).rev().take(AHEAD_MAX).take_while(is_up).count() as u64;
        let end = (first + 1 + behind).min(self.write_intent.each.borrow().len() as u64);
        let lacking: Vec<u64> = (first..end).filter(|region| self.lacks_flags(*region)).collect();
        let (ticket, now) = (self.ask_to_commit(), self.runtime.now());
        let mut meta = self.meta.borrow_mut();
        let mut regions = self.write_intent.each.borrow_mut();
        for number in lacking {
            if self.needs_sync_flag() {
                meta.unsynced.set(number, true);
            }
            if self.options.checksums {
                meta.unsummed.set(number, true);
            }
            let region = &mut regions[number as usize];
            (region.ticket, region.last_write) = (ticket, now);
        }
    }

    /// Clears the flags of regions without recent writes, for as long as there are any.
    pub(super) fn keep_clean(self: &Rc<Self>) {
        if self.write_intent.is_cleaning.replace(true) {
            return;
        }
        let (runtime, group) = (self.runtime.clone(), Rc::downgrade(self));
        self.runtime.spawn(async move {
            loop {
                runtime.sleep(LOOK_EVERY_NS).await;
                // The set was closed.
                let Some(group) = group.upgrade() else { return };
                if group.has_failed.get() || !group.clean(false).await {
                    group.write_intent.is_cleaning.set(false);
                    return;
                }
            }
        });
    }

    /// Takes down the flags of regions without writers: of idle ones, or of all. Returns whether any other flag is
    /// up that a look at a later time may take down.
    pub(super) async fn clean(self: &Rc<Self>, also_busy: bool) -> bool {
        let flagged = self.flagged();
        let now = self.runtime.now();
        let may_all = also_busy || now >= self.write_intent.last_write() + GROUP_IDLE_NS;
        let is_idle = |region: &Region| may_all || now >= region.last_write + REGION_IDLE_NS;
        let chosen: Vec<(u64, Region)> =
            flagged.iter().copied().filter(|(_, region)| region.writers == 0 && is_idle(region)).collect();
        if chosen.is_empty() {
            return !flagged.is_empty();
        }
        self.flush_members().await;
        for (region, _) in &chosen {
            if self.write_intent.stale.borrow().get(*region) {
                // Old checksums must not come back from disk when the region does not count as stale any more.
                for (slot, _) in self.alive() {
                    self.load_units(slot, self.write_intent.units(*region)).await;
                }
            }
            self.write_sums(self.write_intent.units(*region), None).await;
        }
        if self.has_failed.get() {
            return false;
        }
        {
            let mut meta = self.meta.borrow_mut();
            let regions = self.write_intent.each.borrow();
            for (number, before) in &chosen {
                let now = &regions[*number as usize];
                if now.writers > 0 || now.last_write != before.last_write || now.ticket != before.ticket {
                    continue;
                }
                if !self.write_intent.unsynced.borrow().any_in(self.write_intent.stripes(*number)) {
                    meta.unsynced.set(*number, false);
                }
                meta.unsummed.set(*number, false);
                self.write_intent.stale.borrow_mut().set(*number, false);
            }
        }
        self.commit().await;
        !self.flagged().is_empty()
    }

    /// Regions with a flag that need not be up for what is in memory.
    fn flagged(&self) -> Vec<(u64, Region)> {
        let meta = self.meta.borrow();
        let unsynced = self.write_intent.unsynced.borrow();
        let regions = self.write_intent.each.borrow();
        let is_flagged = |number: &u64| {
            meta.unsummed.get(*number)
                || meta.unsynced.get(*number) && !unsynced.any_in(self.write_intent.stripes(*number))
        };
        let numbers = (0..regions.len() as u64).filter(is_flagged);
        numbers.map(|number| (number, regions[number as usize])).collect()
    }

    /// The disk of a place is told apart from earlier ones by what begins its checksum pages.
    pub(super) fn begin_sums(&self, slot: usize, is_old: bool) {
        let meta = self.meta.borrow();
        let id = self.slots.borrow()[slot].id;
        let parts = [meta.set, meta.group.into(), id, slot as u64, meta.sums_series];
        let seed = parts.iter().fold(0, |sum, part| crc32c::crc32c_append(sum, &part.to_le_bytes()));
        self.checksums.begin(slot, seed, is_old);
    }

    /// Reads the checksum pages that cover these rows of some members, if they are not in memory.
    pub(super) async fn load_sums(self: &Rc<Self>, rows: Rows, slots: impl Iterator<Item = usize>) {
        let first = self.geometry.unit(rows);
        for slot in slots {
            self.load_units(slot, first..first + rows.len / UNIT).await;
        }
    }

    async fn load_units(self: &Rc<Self>, slot: usize, units: Range<u64>) {
        if !self.options.checksums {
            return;
        }
        let missing = self.checksums.missing(slot, units);
        if missing.is_empty() {
            return;
        }
        self.checksums.trim(|units| self.write_intent.is_in_use(units));
        let disk = self.slots.borrow()[slot].disk.clone();
        // A missing member has no checksum pages.
        let Some(disk) = disk else { return };
        for (page, offset) in missing {
            let bytes = disk.read(offset, BytesMut::zeroed(UNIT as usize)).await.ok();
            self.checksums.take(slot, page, bytes.as_deref(), |unit| self.write_intent.is_stale(unit));
        }
    }

    /// Writes the changed checksum pages that cover these units, durable: all members', or one's.
    pub(super) async fn write_sums(self: &Rc<Self>, units: Range<u64>, only: Option<usize>) {
        if !self.options.checksums {
            return;
        }
        // A page may cover two regions: never two writers.
        let _writer = self.locks.take(PAGES, Hold::Exclusive).await;
        let slots = self.alive().into_iter().filter(|(slot, _)| only.is_none_or(|only| only == *slot));
        let writing = slots.flat_map(|(slot, disk)| {
            let pages = self.checksums.changed(slot, units.clone());
            pages.into_iter().map(move |(at, page)| self.write_member(slot, Rc::clone(&disk), at, page, true))
        });
        join_all(writing.collect::<Vec<_>>()).await;
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        {
            let mut regions = self.group.write_intent.each.borrow_mut();
            let region = &mut regions[self.region as usize];
            region.writers -= 1;
            region.last_write = self.group.runtime.now();
        }
        self.group.keep_clean();
    }
}
