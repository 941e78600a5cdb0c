//! Space on thin members.
//!
//! A write that finds space on some members only would leave a torn stripe that nothing can repair. So the space for a
//! write is reserved on all members first, chunk by chunk. If there is none, the write is refused before anything has
//! changed. Reservations are remembered, so each chunk costs this once. The group's own space is reserved when a member
//! is added.
//!
//! Copy-on-write file systems do not keep reservations: they need space for each write. A write that finds no space in
//! spite of its reservation waits for it.

use super::{
    GROUP_LOCK, Group,
    geometry::Geometry,
    state::{Hold, LOOK_FOR_SPACE_NS, SlotState},
};
use crate::disk::{Disk, DiskError, Writing};
use futures::future::join_all;
use std::{ops::Range, rc::Rc};

impl Group {
    /// Whether any member may run out of space.
    pub(in super::super) fn is_thin(&self) -> bool {
        self.alive().iter().any(|(_, disk)| disk.is_thin())
    }

    /// Reserves chunks of a stripe; the caller has its lock. Error: one of the disks has no space for its chunk.
    pub(super) async fn reserve_chunks(
        self: &Rc<Self>,
        stripe: u64,
        positions: impl Iterator<Item = usize>,
    ) -> Result<(), DiskError> {
        let slots = positions.map(|position| self.geometry.slot(stripe, position));
        let lacking = slots.filter_map(|slot| {
            let disk = self.usable(slot, stripe)?;
            (disk.is_thin() && !self.space.is_reserved(slot, stripe)).then_some((slot, disk))
        });
        let lacking: Vec<_> = lacking.collect();
        if lacking.is_empty() {
            return Ok(());
        }
        self.reserve_on(lacking, stripe..stripe + 1).await
    }

    /// Reserves the chunk of a member that is being rebuilt.
    pub(super) async fn reserve_chunk(
        self: &Rc<Self>,
        slot: usize,
        disk: &Rc<dyn Disk>,
        stripe: u64,
    ) -> Result<(), DiskError> {
        if !disk.is_thin() || self.space.is_reserved(slot, stripe) {
            return Ok(());
        }
        self.reserve_on(vec![(slot, Rc::clone(disk))], stripe..stripe + 1).await
    }

    async fn reserve_on(
        self: &Rc<Self>,
        members: Vec<(usize, Rc<dyn Disk>)>,
        stripes: Range<u64>,
    ) -> Result<(), DiskError> {
        let Geometry { start, chunk, .. } = self.geometry;
        let (offset, len) = (start + stripes.start * chunk, (stripes.end - stripes.start) * chunk);
        let reserving = members.into_iter().map(|(slot, disk)| {
            let (reserving, stripes) = (disk.reserve(offset, len), stripes.clone());
            async move {
                let reserved = reserving.await;
                match &reserved {
                    Ok(()) => self.space.set(slot, stripes, true),
                    Err(DiskError::NoSpace(_)) => return reserved,
                    // The other members are enough.
                    Err(_) => self.member_failed(slot, &disk),
                }
                Ok(())
            }
        });
        join_all(reserving.collect::<Vec<_>>()).await.into_iter().collect()
    }

    /// Reserves a range for the group's user.
    pub(in super::super) fn begin_reserve(self: &Rc<Self>, offset: u64, len: u64) -> Writing {
        if let Some((disk, start)) = self.plain() {
            let reserving = disk.reserve(start + offset, len);
            return self.plain_writing(disk, reserving);
        }
        self.begin(Rc::clone(self).reserve(offset, len))
    }

    async fn reserve(self: Rc<Self>, offset: u64, len: u64) -> Result<(), DiskError> {
        let width = self.geometry.width();
        let stripes = offset / width..(offset + len).div_ceil(width);
        let group_lock = self.locks.take(GROUP_LOCK, Hold::Exclusive).await;
        self.check()?;
        self.space.kept.borrow_mut().push(stripes.clone());
        let thin = self.alive().into_iter().filter(|(_, disk)| disk.is_thin());
        let reserving = thin.map(|(slot, disk)| {
            // The rest of a new member is reserved when it is rebuilt.
            let end = match self.slots.borrow()[slot].state {
                SlotState::Rebuilding(done) => stripes.end.min(done),
                _ => stripes.end,
            };
            self.reserve_on(vec![(slot, disk)], stripes.start..end.max(stripes.start))
        });
        let reserved = join_all(reserving.collect::<Vec<_>>()).await.into_iter().collect();
        drop(group_lock);
        self.settled().await;
        self.check()?;
        reserved
    }

    /// Reserves the space of the group's own data on a member.
    pub(super) async fn reserve_own(&self, disk: &dyn Disk) -> Result<(), DiskError> {
        if disk.is_thin() { disk.reserve(0, self.geometry.start).await } else { Ok(()) }
    }

    /// Waits for space until the group closes.
    pub(super) async fn wait_for_space(&self) -> bool {
        let waits = !self.is_closing.get() && !self.has_failed.get();
        if waits {
            self.runtime.sleep(LOOK_FOR_SPACE_NS).await;
        }
        waits
    }
}
