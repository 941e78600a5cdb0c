//! Members: failures, the superblocks that record them, replacement, spares.

use super::{
    GROUP_LOCK, Group,
    geometry::Geometry,
    journal,
    state::{Hold, LOOK_FOR_SPACE_NS, Slot, SlotState},
    superblock::Superblock,
};
use crate::{
    disk::{Disk, DiskError},
    raid::RaidError,
};
use bytes::Bytes;
use futures::future::join_all;
use std::rc::Rc;

impl Slot {
    /// Its disk, if that holds this stripe.
    pub(super) fn usable(&self, stripe: u64) -> Option<&Rc<dyn Disk>> {
        let is_usable = match self.state {
            SlotState::InSync => true,
            SlotState::Rebuilding(done) => stripe < done,
            SlotState::Failing(_) | SlotState::Failed | SlotState::Missing => false,
        };
        self.disk.as_ref().filter(|_| is_usable)
    }
}

impl Group {
    /// How many members a stripe cannot rely on.
    pub(super) fn out(&self) -> usize {
        self.slots.borrow().iter().filter(|slot| slot.state != SlotState::InSync).count()
    }

    /// The disk of a slot, if it holds this stripe.
    pub(super) fn usable(&self, slot: usize, stripe: u64) -> Option<Rc<dyn Disk>> {
        self.slots.borrow()[slot].usable(stripe).cloned()
    }

    /// Slots with a disk that is written to.
    pub(super) fn alive(&self) -> Vec<(usize, Rc<dyn Disk>)> {
        let slots = self.slots.borrow();
        let alive = slots.iter().enumerate().filter(|(_, slot)| slot.is_alive());
        alive.filter_map(|(number, slot)| Some((number, slot.disk.clone()?))).collect()
    }

    /// A disk has failed: it is not used any more. The superblocks of the others record it when the group has settled. If
    /// they did before, a power cut would leave stripes torn that lack this disk, though it may be back by then.
    pub(super) fn member_failed(self: &Rc<Self>, slot: usize, disk: &Rc<dyn Disk>) {
        {
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[slot];
            // A late error of a disk that had the slot earlier is ignored.
            if !slot.is_alive() || !slot.disk.as_ref().is_some_and(|member| Rc::ptr_eq(member, disk)) {
                return;
            }
            slot.fail();
        }
        if self.out() > self.geometry.tolerance() {
            // The superblocks keep the last state: when the disks are back, the set can be assembled again.
            self.give_up();
            self.settling.waiters.wake();
            self.commits.waiters.wake();
        } else {
            self.ask_to_settle();
            self.settling.failure.set(self.settling.asked.get());
        }
    }

    /// Flushes all members.
    pub(super) async fn flush_members(self: &Rc<Self>) {
        let unsynced = self.write_intent.before_flush();
        let flushing = self.alive().into_iter().map(|(slot, disk)| {
            let flushed = disk.flush();
            async move {
                if flushed.await.is_err() {
                    self.member_failed(slot, &disk);
                }
            }
        });
        join_all(flushing).await;
        if let Some(unsynced) = unsynced {
            self.write_intent.after_flush(&unsynced);
        }
    }

    /// Writes to a member; the space is reserved. An error removes the member.
    pub(super) async fn write_member(
        self: &Rc<Self>,
        slot: usize,
        disk: Rc<dyn Disk>,
        offset: u64,
        data: Bytes,
        durable: bool,
    ) -> bool {
        loop {
            match disk.write(offset, data.clone(), durable).await {
                Ok(()) => return true,
                Err(DiskError::NoSpace(_)) if self.wait_for_space().await => {}
                Err(_) => {
                    self.member_failed(slot, &disk);
                    return false;
                }
            }
        }
    }

    /// Requests a superblock with the current state in memory; [`Self::committed`] waits for it.
    pub(super) fn ask_to_commit(&self) -> u64 {
        self.commits.asked.set(self.commits.asked.get() + 1);
        self.commits.asked.get()
    }

    /// Waits until a requested superblock is on all members.
    pub(super) async fn committed(self: &Rc<Self>, ticket: u64) {
        while self.commits.done.get() < ticket && !self.has_failed.get() {
            if self.commits.is_busy.replace(true) {
                self.commits.waiters.wait().await;
                continue;
            }
            let asked = self.commits.asked.get();
            self.write_superblocks().await;
            self.commits.done.set(asked);
            self.commits.is_busy.set(false);
            self.commits.waiters.wake();
        }
    }

    pub(super) async fn commit(self: &Rc<Self>) {
        let ticket = self.ask_to_commit();
        self.committed(ticket).await;
    }

    async fn write_superblocks(self: &Rc<Self>) {
        let (writing, generation): (Vec<_>, _) = {
            let mut meta = self.meta.borrow_mut();
            meta.generation += 1;
            meta.slots = self.slots.borrow().iter().map(Slot::to_meta).collect();
            let one = |(slot, disk): (usize, Rc<dyn Disk>)| {
                let superblock = meta.encode(Some((slot, meta.slots[slot].id)));
                self.write_member(slot, disk, meta.place(), superblock, true)
            };
            (self.alive().into_iter().map(one).collect(), meta.generation)
        };
        join_all(writing).await;
        if !self.has_failed.get() {
            self.commits.generation.set(generation);
        }
    }

    /// Requests all steps that follow a change of the members, or a full journal.
    pub(super) fn ask_to_settle(self: &Rc<Self>) {
        self.settling.asked.set(self.settling.asked.get() + 1);
        if !self.settling.is_busy.replace(true) {
            self.runtime.spawn(Rc::clone(self).settle());
        }
    }

    /// Whether a member has failed and the superblocks of the others do not record it yet.
    pub(super) fn has_unknown_failure(&self) -> bool {
        self.settling.done.get() < self.settling.failure.get()
    }

    /// Waits until the state of the members is recorded: earlier writes may be acknowledged after this.
    pub(super) async fn settled(&self) {
        while self.settling.done.get() != self.settling.asked.get() && !self.has_failed.get() {
            self.settling.waiters.wait().await;
        }
    }

    async fn settle(self: Rc<Self>) {
        while self.settling.done.get() != self.settling.asked.get() && !self.has_failed.get() {
            let group_lock = self.locks.take(GROUP_LOCK, Hold::Exclusive).await;
            let asked = self.settling.asked.get();
            self.settle_once().await;
            if !self.has_failed.get() {
                self.settling.done.set(asked);
            }
            drop(group_lock);
        }
        self.settling.is_busy.set(false);
        self.settling.waiters.wake();
        self.tell_failed_members();
        self.take_spares().await;
    }

    /// No writer is in progress. All writes are flushed. Then one superblock lists the remaining members, begins a new
    /// epoch of the journal, and clears the flags of regions whose stripes are consistent.
    pub(super) async fn settle_once(self: &Rc<Self>) {
        self.flush_members().await;
        if self.has_failed.get() {
            return;
        }
        self.slots.borrow_mut().iter_mut().for_each(Slot::settle);
        let out = self.out();
        let is_journaled = self.geometry.has_parity() && (out > 0 || self.options.is_always_journaled);
        self.is_journaled.set(is_journaled);
        {
            let mut meta = self.meta.borrow_mut();
            meta.epoch += 1;
            meta.is_journaled = is_journaled;
        }
        if is_journaled {
            let in_sync =
                |(number, slot): (usize, &Slot)| (slot.state == SlotState::InSync).then_some(number);
            let copies = journal::copies(self.geometry.tolerance(), out);
            let slots = self.slots.borrow().iter().enumerate().filter_map(in_sync).take(copies).collect();
            self.journal.begin(slots);
            self.write_intent.all_written(&mut self.meta.borrow_mut());
        }
        self.commit().await;
    }

    /// Writes to a failed disk that it has failed, if it still accepts writes. If it returns alone, it is known to be
    /// old.
    fn tell_failed_members(&self) {
        if self.has_failed.get() {
            return;
        }
        let meta = self.meta.borrow();
        for (number, slot) in self.slots.borrow_mut().iter_mut().enumerate() {
            if slot.state == SlotState::Failed
                && let Some(disk) = slot.disk.take()
            {
                // It begins when it is called; its result is not needed, because it may fail.
                drop(disk.write(meta.place(), meta.encode(Some((number, slot.id))), true));
            }
        }
    }

    /// Gives spares to failed slots, as long as there are spares that fit.
    pub(in super::super) async fn take_spares(self: &Rc<Self>) {
        loop {
            if self.has_failed.get() {
                return;
            }
            let kept = self.settling.kept.get();
            let is_free = |place: &usize| !self.slots.borrow()[*place].is_alive() && kept != Some(*place);
            // All members are present.
            let Some(place) = (0..self.geometry.members).find(is_free) else { return };
            let spare = {
                let mut spares = self.spares.borrow_mut();
                let fits = spares.iter().position(|spare| self.fits(&**spare).is_ok());
                fits.map(|number| spares.remove(number))
            };
            // No spare fits.
            let Some(spare) = spare else { return };
            // A spare that fails at once cannot be used.
            if let Err(DiskError::NoSpace(_)) = self.attach(place, Rc::clone(&spare)).await {
                self.spares.borrow_mut().push(spare);
                return self.take_spares_later();
            }
        }
    }

    /// Tries again when there may be space for the group's own data on a new member.
    fn take_spares_later(self: &Rc<Self>) {
        let (runtime, group) = (self.runtime.clone(), Rc::downgrade(self));
        self.runtime.spawn(async move {
            runtime.sleep(LOOK_FOR_SPACE_NS).await;
            if let Some(group) = group.upgrade() {
                group.take_spares().await;
            }
        });
    }

    /// Whether a disk fits this group.
    pub(in super::super) fn fits(&self, disk: &dyn Disk) -> Result<(), RaidError> {
        let Geometry { start, stripes, chunk, .. } = self.geometry;
        let (least_bytes, size_bytes) = (start + stripes * chunk, disk.size_bytes());
        let name = disk.name().to_owned();
        if size_bytes < least_bytes {
            return Err(RaidError::TooSmall { name, size_bytes, least_bytes });
        }
        let set_bytes = self.meta.borrow().block_bytes;
        if disk.block_bytes() > set_bytes {
            return Err(RaidError::Blocks { name, block_bytes: disk.block_bytes(), set_bytes });
        }
        Ok(())
    }

    /// Assigns a disk to a slot and begins its rebuild.
    pub(super) async fn attach(self: &Rc<Self>, place: usize, disk: Rc<dyn Disk>) -> Result<(), DiskError> {
        self.reserve_own(&*disk).await?;
        // The disk may have a newer superblock of another group.
        disk.write(0, Superblock::no_superblocks(), true).await?;
        let group_lock = self.locks.take(GROUP_LOCK, Hold::Exclusive).await;
        if self.slots.borrow()[place].is_alive() {
            // Another disk was assigned meanwhile.
            self.spares.borrow_mut().push(disk);
            return Ok(());
        }
        if self.has_unknown_failure() {
            // The superblock of the new member must not leave out one that torn stripes still need.
            self.settle_once().await;
        }
        let id = self.meta.borrow().generation + 1;
        {
            let name = disk.name().to_owned();
            let mut slots = self.slots.borrow_mut();
            if slots[place].state == SlotState::Failed && slots[place].name != name {
                self.former.borrow_mut().push(slots[place].name.clone());
            }
            self.former.borrow_mut().retain(|former| *former != name);
            slots[place] =
                Slot { name, id, disk: Some(disk), state: SlotState::Rebuilding(0), saved: 0, reads: 0 };
        }
        self.begin_sums(place, false);
        self.space.forget(place);
        self.commit().await;
        drop(group_lock);
        self.settled().await;
        self.work();
        Ok(())
    }

    /// Removes a member on request, like a disk that is pulled. Returns whether there is one of that name.
    pub(in super::super) async fn fail(self: Rc<Self>, name: String) -> bool {
        let place = self.slots.borrow().iter().position(|slot| slot.name == name);
        if let Some(place) = place {
            let disk = self.slots.borrow()[place].disk.clone();
            if let Some(disk) = disk {
                self.member_failed(place, &disk);
            }
            self.settled().await;
        }
        place.is_some()
    }

    /// Replaces a member, which is removed first, by a new disk. Refused if data would be lost.
    pub(in super::super) async fn replace(
        self: Rc<Self>,
        old: String,
        new: Rc<dyn Disk>,
    ) -> Result<bool, RaidError> {
        let place = self.slots.borrow().iter().position(|slot| slot.name == old);
        // The disk is a member of another group.
        let Some(place) = place else { return Ok(false) };
        self.check()?;
        self.fits(&*new)?;
        let is_in_sync = self.slots.borrow()[place].state == SlotState::InSync;
        if is_in_sync && self.out() == self.geometry.tolerance() {
            return Err(RaidError::Needed { set: self.set_name.to_string(), disk: old });
        }
        self.settling.kept.set(Some(place));
        Rc::clone(&self).fail(old).await;
        let attached = self.attach(place, new).await;
        self.settling.kept.set(None);
        attached?;
        self.check()?;
        Ok(true)
    }
}
