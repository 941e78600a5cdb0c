//! Write intent: regions, which are runs of stripes that share flags in the superblock while they are written.
//!
//! A region has two flags. `unsynced`: after a power cut its stripes must be made consistent. `unsummed`: its checksums
//! on disk are old. Flags are set, durably, before the first write. They are cleared after a flush: soon if there are
//! no writes, otherwise late, because setting them again costs writes. If a caller writes region after region, flags
//! are set ahead: as many as are set behind it, but only a few, because each flag costs time after a power cut, and
//! stripes if a member fails in the power cut. The memory also records per stripe whether its parity or copies are
//! valid.

use super::{
    Group, PAGES,
    geometry::{Rows, UNIT},
    state::{Hold, IntentRegion},
};
use bytes::BytesMut;
use futures::future::join_all;
use linerate_io::Nanos;
use std::{ops::Range, rc::Rc};

/// Time without writes to a region after which its flags are cleared.
const REGION_IDLE_NS: Nanos = 60_000_000_000;
/// Time without writes to the group after which all of its flags are cleared.
const GROUP_IDLE_NS: Nanos = 1_000_000_000;
const LOOK_EVERY_NS: Nanos = 500_000_000;
/// Most regions that are flagged before they are written to.
const AHEAD_MAX: usize = 8;

/// A writer in a region.
pub(super) struct Entered {
    group: Rc<Group>,
    region: u64,
}

impl Group {
    /// Registers a writer in a region; the flags of the region stay set until it ends.
    pub(super) fn enter(self: &Rc<Self>, stripe: u64) -> Entered {
        let region = self.write_intent.region(stripe);
        self.write_intent.each.borrow_mut()[region as usize].writers += 1;
        Entered { group: Rc::clone(self), region }
    }

    /// Sets the flags that a write needs, and waits until they are durable.
    pub(super) async fn flag(self: &Rc<Self>, stripe: u64) {
        let region = self.write_intent.region(stripe);
        if self.lacks_flags(region) {
            self.put_flags_up(region);
        }
        let ticket = self.write_intent.each.borrow()[region as usize].ticket;
        self.committed(ticket).await;
    }

    /// Whether a write to a stripe needs no flag that is not durable yet.
    pub(super) fn is_flagged(&self, stripe: u64) -> bool {
        let region = self.write_intent.region(stripe);
        let ticket = self.write_intent.each.borrow()[region as usize].ticket;
        !self.lacks_flags(region) && self.commits.done.get() >= ticket
    }

    /// Whether a write to a region needs a flag that is not set.
    fn lacks_flags(&self, region: u64) -> bool {
        let meta = self.meta.borrow();
        self.needs_sync_flag() && !meta.unsynced.get(region)
            || self.options.checksums && !meta.unsummed.get(region)
    }

    fn needs_sync_flag(&self) -> bool {
        self.has_redundancy() && !self.is_journaled.get()
    }

    /// Sets the flags of a region, and of some following ones, with the next superblock.
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

    /// Clears the flags of regions without writers: of idle ones, or of all. Returns whether a later call may clear
    /// other flags.
    pub(super) async fn clean(self: &Rc<Self>, also_busy: bool) -> bool {
        let flagged = self.flagged();
        let now = self.runtime.now();
        let may_all = also_busy || now >= self.write_intent.last_write() + GROUP_IDLE_NS;
        let is_idle = |region: &IntentRegion| may_all || now >= region.last_write + REGION_IDLE_NS;
        let chosen: Vec<(u64, IntentRegion)> =
            flagged.iter().copied().filter(|(_, region)| region.writers == 0 && is_idle(region)).collect();
        if chosen.is_empty() {
            return !flagged.is_empty();
        }
        self.flush_members().await;
        for (region, _) in &chosen {
            if self.write_intent.stale.borrow().get(*region) {
                // Old checksums must not be read from disk again when the region does not count as stale any more.
                for (slot, _) in self.alive() {
                    self.load_units(slot, self.write_intent.units(*region)).await;
                }
            }
            self.write_sums(self.write_intent.units(*region), None).await;
        }
        if self.has_failed.get() {
            return false;
        }
        if self.has_unknown_failure() {
            // By its superblocks that member is in sync, but it lacks what the others have flushed.
            return true;
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

    /// Regions with a flag that the state in memory does not need.
    fn flagged(&self) -> Vec<(u64, IntentRegion)> {
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

    /// The seed of its checksum pages distinguishes the disk of a slot from earlier ones.
    pub(super) fn begin_sums(&self, slot: usize, is_old: bool) {
        let meta = self.meta.borrow();
        let id = self.slots.borrow()[slot].id;
        let parts = [meta.set, meta.group.into(), id, slot as u64, meta.sums_series];
        let seed = parts.iter().fold(0, |sum, part| linerate_crc32c::crc32c_append(sum, &part.to_le_bytes()));
        self.checksums.begin(slot, seed, is_old);
    }

    /// Reads the checksum pages that cover these rows of some members, if they are not in memory.
    pub(super) async fn load_sums(self: &Rc<Self>, rows: Rows, slots: impl Iterator<Item = usize>) {
        let first = self.geometry.unit(rows);
        for slot in slots {
            self.load_units(slot, first..first + rows.len / UNIT).await;
        }
    }

    /// The same for all members that are written to.
    pub(super) async fn load_all_sums(self: &Rc<Self>, rows: Rows) {
        self.load_sums(rows, self.alive().into_iter().map(|(slot, _)| slot)).await;
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

    /// Writes the changed checksum pages that cover these units, durably: those of all members, or of one.
    pub(super) async fn write_sums(self: &Rc<Self>, units: Range<u64>, only: Option<usize>) {
        if !self.options.checksums {
            return;
        }
        // A page may cover two regions: there must be only one writer.
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
