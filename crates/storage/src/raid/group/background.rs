//! Background work: initialising stripes, rebuilding members, scrubbing.
//!
//! One worker per group processes a window of stripes at a time, under their locks, and pauses in between to keep the
//! rate.

use super::{
    super::{
        config::Code,
        status::{RaidTask, TaskKind},
    },
    GROUP_LOCK, Group,
    geometry::{Rows, UNIT},
    state::SlotState,
    state::{Hold, LOOK_FOR_SPACE_NS},
};
use crate::disk::{Disk, DiskError};
use bytes::{Bytes, BytesMut};
use futures::{channel::oneshot, future::join_all};
use linerate_io::Nanos;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ops::Range,
    rc::Rc,
};

/// Bytes of each member worked on at once.
const WINDOW_BYTES: u64 = 512 << 10;
const LEN: usize = UNIT as usize;

/// How long the worker pauses if a member has no space.
const SPACE_REST_NS: Nanos = 10 * LOOK_FOR_SPACE_NS;

/// The worker of a group.
#[derive(Default)]
pub(super) struct Background {
    is_busy: Cell<bool>,
    /// It waits for space on a thin member.
    lacks_space: Cell<bool>,
    scrub: RefCell<Option<Scrub>>,
}

/// The result of one step of the worker.
enum Step {
    /// So many bytes of each member were worked on.
    Done(u64),
    /// A member has no space.
    NoSpace,
    /// There is nothing to do.
    Nothing,
}

/// The result of writing contents where they differed.
#[derive(Default)]
struct Agreed {
    /// Units that differed.
    differing: u64,
    /// Of those, repaired units.
    put: u64,
    /// Why some were not repaired.
    no_space: Option<DiskError>,
}

impl std::iter::Sum for Agreed {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| Self {
            differing: sum.differing + part.differing,
            put: sum.put + part.put,
            no_space: sum.no_space.or(part.no_space),
        })
    }
}

struct Scrub {
    next: u64,
    found: u64,
    mended: u64,
    lost: u64,
    done: Vec<oneshot::Sender<ScrubReport>>,
}

/// The result of a scrub, in blocks of 4 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Blocks that could not be read, or did not agree with their checksum or their stripe.
    pub mismatches_found: u64,
    /// Of those, repaired blocks.
    pub mismatches_mended: u64,
    /// Blocks that redundancy cannot restore; a read of them returns an error.
    pub lost: u64,
}

impl Background {
    /// The current task and its progress; a failed group has none.
    pub(super) fn task(&self, group: &Group) -> Option<RaidTask> {
        if group.has_failed.get() {
            return None;
        }
        let stripes = group.geometry.stripes;
        let lacks_space = self.lacks_space.get();
        let part =
            |kind, done: u64| Some(RaidTask { kind, done: done as f64 / stripes.max(1) as f64, lacks_space });
        let unsynced = group.write_intent.unsynced_count();
        // In the order in which the worker does them.
        if group.next_torn().is_some() && group.has_redundancy() {
            return part(TaskKind::Initialise, stripes - unsynced);
        }
        if let Some((_, done)) = group.rebuilding() {
            return part(TaskKind::Rebuild, done);
        }
        if unsynced > 0 && group.has_redundancy() {
            return part(TaskKind::Initialise, stripes - unsynced);
        }
        self.scrub.borrow().as_ref().and_then(|scrub| part(TaskKind::Scrub, scrub.next))
    }
}

impl Group {
    /// Starts the worker if it rests.
    pub(super) fn work(self: &Rc<Self>) {
        if !self.has_redundancy() || self.background.is_busy.replace(true) {
            return;
        }
        let (runtime, group) = (self.runtime.clone(), Rc::downgrade(self));
        self.runtime.spawn(async move {
            loop {
                // The set was closed.
                let Some(group) = group.upgrade() else { return };
                let is_urgent = group.next_torn().is_some();
                let step = group.step().await;
                group.background.lacks_space.set(matches!(step, Step::NoSpace));
                let rate = group.options.rebuild_bytes_per_s.filter(|_| !is_urgent);
                let rest = match step {
                    Step::Done(bytes) => {
                        rate.map_or(1, |rate| bytes.saturating_mul(1_000_000_000) / rate.max(1))
                    }
                    Step::NoSpace => SPACE_REST_NS,
                    Step::Nothing => {
                        group.background.is_busy.set(false);
                        group.end_scrub();
                        return;
                    }
                };
                drop(group);
                // The clock must move at least once, so that other tasks run.
                runtime.sleep(rest.max(1)).await;
            }
        });
    }

    /// One window of the most urgent task.
    async fn step(self: &Rc<Self>) -> Step {
        if self.has_failed.get() {
            return Step::Nothing;
        }
        let window = (WINDOW_BYTES / self.geometry.chunk).max(1);
        let up_to = |from: u64| from..(from + window).min(self.geometry.stripes);
        let worked = if let Some(from) = self.next_torn() {
            // Until they agree again, these stripes would not survive a failure.
            self.sync(up_to(from)).await
        } else if let Some((slot, from)) = self.rebuilding() {
            self.rebuild(slot, up_to(from)).await
        } else if let Some(from) = self.write_intent.next_unsynced(0) {
            self.sync(up_to(from)).await
        } else if self.meta.borrow().initialised < self.geometry.stripes {
            self.save_initialised().await;
            return Step::Done(0);
        } else {
            let from = self.background.scrub.borrow().as_ref().map(|scrub| scrub.next);
            let Some(from) = from else { return Step::Nothing };
            self.scrub(up_to(from)).await;
            Ok(())
        };
        match worked {
            Ok(()) => Step::Done(window * self.geometry.chunk),
            Err(_) => Step::NoSpace,
        }
    }

    /// The member that is being rebuilt, and its progress.
    fn rebuilding(&self) -> Option<(usize, u64)> {
        let slots = self.slots.borrow();
        let mut rebuilding = slots.iter().enumerate().filter_map(|(number, slot)| match slot.state {
            SlotState::Rebuilding(done) => Some((number, done)),
            _ => None,
        });
        rebuilding.next()
    }

    /// The first stripe that a power cut may have left torn. Not a stripe of which only one copy is left while a rebuild
    /// makes the next: the rebuild comes to it.
    fn next_torn(&self) -> Option<u64> {
        let stripe = self.write_intent.next_torn()?;
        let copies =
            || (0..self.geometry.members).filter(|&slot| self.usable(slot, stripe).is_some()).count();
        let is_rebuilt = self.geometry.code == Code::Copies && self.rebuilding().is_some() && copies() == 1;
        (!is_rebuilt).then_some(stripe)
    }

    /// Stripes before this one agree. A superblock may say so after a flush that begins later.
    fn agreeing(&self) -> u64 {
        let saved = self.meta.borrow().initialised;
        self.write_intent.next_unsynced(saved).unwrap_or(self.geometry.stripes)
    }

    /// The next superblock says that these stripes agree; the members were flushed.
    fn set_initialised(&self, stripes: u64) {
        let initialised = &mut self.meta.borrow_mut().initialised;
        *initialised = stripes.max(*initialised);
    }

    async fn sync(self: &Rc<Self>, stripes: Range<u64>) -> Result<(), DiskError> {
        let syncing = stripes
            .filter(|stripe| !self.write_intent.is_synced(*stripe))
            .map(|stripe| self.sync_one(stripe));
        join_all(syncing.collect::<Vec<_>>()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        let saved = self.meta.borrow().initialised;
        if saved + self.geometry.stripes / 64 < self.agreeing() {
            self.save_initialised().await;
        }
        Ok(())
    }

    async fn sync_one(self: &Rc<Self>, stripe: u64) -> Result<(), DiskError> {
        let _group_lock = self.locks.take(GROUP_LOCK, Hold::Shared).await;
        let _stripe = self.locks.take(stripe, Hold::Exclusive).await;
        let _region = self.enter(stripe);
        if !self.write_intent.is_synced(stripe) && !self.has_failed.get() {
            self.sync_stripe(stripe).await?;
        }
        Ok(())
    }

    /// After a power cut copies may differ, and parity may match older data. Data that a host has read must survive
    /// another power cut, even if a disk fails with it. So first all parts are made to agree, durably. If a thin member
    /// has no space for this, reads continue without it.
    pub(super) async fn make_sure(self: &Rc<Self>, stripe: u64) {
        while self.write_intent.is_unsure(stripe) && !self.has_failed.get() {
            if !self.write_intent.is_synced(stripe) && self.sync_one(stripe).await.is_err() {
                return;
            }
            self.flush_members().await;
        }
    }

    async fn save_initialised(self: &Rc<Self>) {
        let agreeing = self.agreeing();
        self.flush_members().await;
        if self.has_unknown_failure() {
            // By its superblocks that member is in sync, but it may lack parity of these stripes.
            return self.settled().await;
        }
        if !self.has_failed.get() {
            self.set_initialised(agreeing);
            self.commit().await;
        }
    }

    /// Makes parity, or copies, agree with the data. The caller has the lock of the stripe. Error: a thin member has no
    /// space.
    pub(super) async fn sync_stripe(self: &Rc<Self>, stripe: u64) -> Result<(), DiskError> {
        let rows = self.geometry.all_rows(stripe);
        // A checksum is recorded only if its page is in memory.
        self.load_all_sums(rows).await;
        let no_space = match self.geometry.code {
            Code::None => None,
            Code::Copies => self.agree(rows).await.0.no_space,
            Code::Parity(_) => {
                let data: Vec<usize> = (0..self.geometry.data()).collect();
                let mut fetched = self.fetch(rows, &data).await;
                self.mark_lost(rows, &fetched.lost).await;
                let blocks: BTreeMap<usize, Bytes> =
                    data.iter().map(|&position| (position, fetched.take(position).freeze())).collect();
                let agreed = self.put_parity(rows, &blocks).await;
                self.know(rows, &blocks, &[fetched.lost, fetched.marked].concat());
                agreed.no_space
            }
        };
        match no_space {
            Some(error) => return Err(error),
            None if !self.has_failed.get() => self.write_intent.set_synced(stripe),
            None => {}
        }
        Ok(())
    }

    /// Writes the parity of data where it differs.
    async fn put_parity(self: &Rc<Self>, rows: Rows, blocks: &BTreeMap<usize, Bytes>) -> Agreed {
        let parity = self.parity_of(rows, blocks);
        let putting =
            parity.into_iter().map(|(position, bytes)| self.put_if_other(rows, position, bytes, &[]));
        join_all(putting.collect::<Vec<_>>()).await.into_iter().sum()
    }

    /// Writes the content of a position unless it is there already, and records its checksums; units in `but` are not
    /// changed.
    async fn put_if_other(
        self: &Rc<Self>,
        rows: Rows,
        position: usize,
        bytes: Bytes,
        but: &[usize],
    ) -> Agreed {
        let slot = self.geometry.slot(rows.stripe, position);
        // There is nothing to compare on a missing member.
        let Some(disk) = self.usable(slot, rows.stripe) else { return Agreed::default() };
        let place = self.geometry.place(rows);
        let there = disk.read(place, BytesMut::zeroed(bytes.len())).await;
        let is_same = |unit: &usize| {
            let at = unit * LEN..(unit + 1) * LEN;
            there.as_ref().is_ok_and(|there| there[at.clone()] == bytes[at])
        };
        let units = (0..bytes.len() / LEN).filter(|unit| !but.contains(unit));
        let (same, differing): (Vec<usize>, Vec<usize>) = units.partition(is_same);
        for unit in same {
            let part = &bytes[unit * LEN..(unit + 1) * LEN];
            self.sums_set(slot, self.geometry.unit(rows) + unit as u64, part);
        }
        let count = differing.len() as u64;
        let agreed = Agreed { differing: count, put: count, no_space: None };
        if differing.is_empty() {
            return agreed;
        }
        if let Err(error) = self.reserve_chunk(slot, &disk, rows.stripe).await {
            return Agreed { put: 0, no_space: Some(error), ..agreed };
        }
        if differing.len() == bytes.len() / LEN {
            self.sums_set(slot, self.geometry.unit(rows), &bytes);
            self.write_member(slot, disk, place, bytes, false).await;
            return agreed;
        }
        for unit in &differing {
            let part = bytes.slice(unit * LEN..(unit + 1) * LEN);
            self.sums_set(slot, self.geometry.unit(rows) + *unit as u64, &part);
            self.write_member(slot, Rc::clone(&disk), place + (unit * LEN) as u64, part, false).await;
        }
        agreed
    }

    /// Makes copies agree with the first readable one. Also returns the number of lost units.
    async fn agree(self: &Rc<Self>, rows: Rows) -> (Agreed, u64) {
        let slots: Vec<usize> =
            (0..self.geometry.members).filter(|&slot| self.usable(slot, rows.stripe).is_some()).collect();
        // Every copy is missing: reads report it.
        let Some((&first, others)) = slots.split_first() else { return (Agreed::default(), 0) };
        let mut fetched = self.fetch(rows, &[first]).await;
        let lost: Vec<usize> =
            fetched.lost.iter().filter(|(position, _)| *position == first).map(|(_, unit)| *unit).collect();
        let bytes = fetched.take(first).freeze();
        let putting = others.iter().map(|&other| self.put_if_other(rows, other, bytes.clone(), &lost));
        let agreed: Agreed = join_all(putting.collect::<Vec<_>>()).await.into_iter().sum();
        if lost.is_empty() && agreed.no_space.is_none() {
            self.sums_set(first, self.geometry.unit(rows), &bytes);
        }
        (agreed, lost.len() as u64)
    }

    /// Records the checksums of data that was read and is right, except for some units.
    fn know(&self, rows: Rows, blocks: &BTreeMap<usize, Bytes>, but: &[(usize, usize)]) {
        let first = self.geometry.unit(rows);
        for (&position, bytes) in blocks {
            let slot = self.geometry.slot(rows.stripe, position);
            self.sums_set(slot, first, bytes);
            for (_, unit) in but.iter().filter(|(of, _)| *of == position) {
                self.checksums.forget(slot, first + *unit as u64..first + *unit as u64 + 1);
            }
        }
    }

    async fn rebuild(self: &Rc<Self>, slot: usize, stripes: Range<u64>) -> Result<(), DiskError> {
        let group_lock = self.locks.take(GROUP_LOCK, Hold::Shared).await;
        let mut locks = Vec::new();
        for stripe in stripes.clone() {
            locks.push(self.locks.take(stripe, Hold::Exclusive).await);
        }
        let disk = self.slots.borrow()[slot].disk.clone();
        // The disk has failed again.
        let Some(disk) = disk else { return Ok(()) };
        let rebuilt = join_all(stripes.clone().map(|stripe| self.rebuild_stripe(stripe, slot, &disk))).await;
        rebuilt.into_iter().collect::<Result<Vec<_>, _>>()?;
        let saved = {
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[slot];
            // It may have failed or been replaced since.
            let is_other = !slot.disk.as_ref().is_some_and(|member| Rc::ptr_eq(member, &disk));
            if is_other || slot.state != SlotState::Rebuilding(stripes.start) || self.has_failed.get() {
                return Ok(());
            }
            slot.state = SlotState::Rebuilding(stripes.end);
            slot.saved
        };
        drop((locks, group_lock));
        if stripes.end == self.geometry.stripes {
            self.end_rebuild(slot, &disk).await;
        } else if saved + self.geometry.stripes / 64 < stripes.end {
            let agreeing = self.agreeing();
            // What the new member was computed from must be durable too: without parity it was written past the journal.
            self.flush_members().await;
            if self.has_failed.get() || self.has_unknown_failure() {
                return Ok(());
            }
            {
                let mut slots = self.slots.borrow_mut();
                let slot = &mut slots[slot];
                if slot.state != SlotState::Rebuilding(stripes.end) {
                    return Ok(());
                }
                slot.saved = stripes.end;
            }
            // It made them agree: after a kill they are not initialised again.
            self.set_initialised(agreeing);
            self.commit().await;
        }
        Ok(())
    }

    /// Error: a thin member has no space: the new member, or another one whose parity must be repaired first.
    async fn rebuild_stripe(
        self: &Rc<Self>,
        stripe: u64,
        slot: usize,
        disk: &Rc<dyn Disk>,
    ) -> Result<(), DiskError> {
        let _region = self.enter(stripe);
        let rows = self.geometry.all_rows(stripe);
        let position = self.geometry.position(stripe, slot);
        self.load_sums(rows, std::iter::once(slot)).await;
        if !self.write_intent.is_synced(stripe) {
            self.sync_stripe(stripe).await?;
        }
        let mut fetched = self.fetch(rows, &[position]).await;
        if !fetched.lost.is_empty() {
            // A block that cannot be restored must not be read as the zeros that the new disk gets instead.
            self.mark_lost(rows, &fetched.lost).await;
            fetched = self.fetch(rows, &[position]).await;
        }
        let bytes = fetched.take(position).freeze();
        if self.has_failed.get() {
            return Ok(());
        }
        let is_nothing = disk.is_thin() && !self.space.is_kept(stripe) && bytes.iter().all(|byte| *byte == 0);
        if !is_nothing {
            self.reserve_chunk(slot, disk, stripe).await?;
        }
        self.sums_set(slot, self.geometry.unit(rows), &bytes);
        if is_nothing {
            self.space.give_back(slot, stripe);
            self.discard_member(slot, Rc::clone(disk), rows).await;
        } else {
            self.write_member(slot, Rc::clone(disk), self.geometry.place(rows), bytes, false).await;
        }
        Ok(())
    }

    /// The member is complete: it counts from the next superblock on.
    async fn end_rebuild(self: &Rc<Self>, slot: usize, disk: &Rc<dyn Disk>) {
        let units = self.geometry.stripes * self.geometry.chunk / UNIT;
        self.write_sums(0..units, Some(slot)).await;
        let group_lock = self.locks.take(GROUP_LOCK, Hold::Exclusive).await;
        if disk.flush().await.is_err() {
            self.member_failed(slot, disk);
        }
        {
            let mut slots = self.slots.borrow_mut();
            let is_other = !slots[slot].disk.as_ref().is_some_and(|member| Rc::ptr_eq(member, disk));
            if is_other || slots[slot].state != SlotState::Rebuilding(self.geometry.stripes) {
                return;
            }
            slots[slot].state = SlotState::InSync;
        }
        self.settle_once().await;
        drop(group_lock);
        self.settled().await;
    }

    /// Reads and checks everything, from the beginning, after all other background work.
    pub(in super::super) fn start_scrub(self: &Rc<Self>) -> oneshot::Receiver<ScrubReport> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut scrub = self.background.scrub.borrow_mut();
            let (found, mended) = (self.counters().mismatches_found, self.counters().mismatches_mended);
            let scrub =
                scrub.get_or_insert_with(|| Scrub { next: 0, found, mended, lost: 0, done: Vec::new() });
            scrub.done.push(sender);
        }
        self.work();
        receiver
    }

    async fn scrub(self: &Rc<Self>, stripes: Range<u64>) {
        let lost = join_all(stripes.clone().map(|stripe| self.scrub_stripe(stripe))).await;
        let is_done = {
            let mut scrub = self.background.scrub.borrow_mut();
            // The scrub was stopped.
            let Some(scrub) = scrub.as_mut() else { return };
            scrub.next = stripes.end;
            scrub.lost += lost.into_iter().sum::<u64>();
            scrub.next == self.geometry.stripes
        };
        if is_done {
            self.flush_members().await;
            self.end_scrub();
        }
    }

    /// Completes the callers that wait for the scrub.
    fn end_scrub(&self) {
        // No scrub is in progress.
        let Some(scrub) = self.background.scrub.take() else { return };
        let report = ScrubReport {
            mismatches_found: self.counters().mismatches_found - scrub.found,
            mismatches_mended: self.counters().mismatches_mended - scrub.mended,
            lost: scrub.lost,
        };
        // Otherwise an aborted scrub would look like a complete one.
        if !self.has_failed.get() {
            for done in scrub.done {
                let _ = done.send(report);
            }
        }
    }

    /// Returns the number of lost units.
    async fn scrub_stripe(self: &Rc<Self>, stripe: u64) -> u64 {
        let _group_lock = self.locks.take(GROUP_LOCK, Hold::Shared).await;
        let _stripe = self.locks.take(stripe, Hold::Exclusive).await;
        let _region = self.enter(stripe);
        if self.make_ready(stripe).await.is_err() {
            return 0;
        }
        let rows = self.geometry.all_rows(stripe);
        let (agreed, lost) = match self.geometry.code {
            Code::None => (Agreed::default(), 0),
            Code::Copies => self.scrub_copies(rows).await,
            Code::Parity(_) => self.scrub_parity(rows).await,
        };
        self.count(|counters| {
            counters.mismatches_found += agreed.differing;
            counters.mismatches_mended += agreed.put;
        });
        lost
    }

    async fn scrub_copies(self: &Rc<Self>, rows: Rows) -> (Agreed, u64) {
        // A unit with a checksum is checked by it first.
        let slots: Vec<usize> =
            (0..self.geometry.members).filter(|&slot| self.usable(slot, rows.stripe).is_some()).collect();
        self.fetch(rows, &slots).await;
        self.agree(rows).await
    }

    async fn scrub_parity(self: &Rc<Self>, rows: Rows) -> (Agreed, u64) {
        let is_usable =
            |position: &usize| self.usable(self.geometry.slot(rows.stripe, *position), rows.stripe).is_some();
        let there: Vec<usize> = (0..self.geometry.members).filter(is_usable).collect();
        let mut fetched = self.fetch(rows, &there).await;
        let data = 0..self.geometry.data();
        let is_lost = |(position, _): &&(usize, usize)| data.contains(position) && there.contains(position);
        let lost = fetched.lost.iter().filter(is_lost).count() as u64;
        if !fetched.lost.is_empty() || !data.clone().all(|position| there.contains(&position)) {
            return (Agreed::default(), lost);
        }
        let blocks: BTreeMap<usize, Bytes> =
            data.map(|position| (position, fetched.take(position).freeze())).collect();
        let agreed = self.put_parity(rows, &blocks).await;
        self.know(rows, &blocks, &fetched.marked);
        (agreed, lost)
    }
}

/// The result for a scrub of a group that failed during it.
pub(in super::super) async fn scrubbed(
    group: Rc<Group>,
    report: oneshot::Receiver<ScrubReport>,
) -> Result<ScrubReport, DiskError> {
    report.await.map_err(|_| group.lost())
}
