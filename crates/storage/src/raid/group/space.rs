//! Space on thin members.
//!
//! A write that finds space on some members and not on others would leave a stripe whose chunks do not belong together, and
//! nothing to make them agree with. So the space that a write needs is reserved on all members first, chunk by chunk. If
//! there is none, the write is refused before anything has changed. What was reserved is remembered, so that each chunk
//! costs this once. A group's own space is reserved when a member comes.
//!
//! Some file systems do not keep a reservation: copy-on-write file systems need space for each write. A write that finds
//! none in spite of its reservation waits for it.

use super::{GROUP_LOCK, Group, bitmap::Bitmap, geometry::Geometry, locks::Hold, members::State};
use crate::disk::{Disk, DiskError, Writing};
use futures::future::join_all;
use linerate_io::Nanos;
use std::{cell::RefCell, ops::Range, rc::Rc};

/// How often space is looked for where there was none.
pub(super) const LOOK_FOR_SPACE_NS: Nanos = 100_000_000;

/// Which chunks have their space, by slot and stripe; none of members that need not be asked.
pub(super) struct Space {
    stripes: u64,
    reserved: RefCell<Vec<Option<Bitmap>>>,
    /// What is reserved for the group's user, on new members too.
    kept: RefCell<Vec<Range<u64>>>,
}

impl Space {
    pub(super) fn new(geometry: Geometry) -> Self {
        let reserved = RefCell::new(vec![None; geometry.members]);
        Self { stripes: geometry.stripes, reserved, kept: RefCell::default() }
    }

    /// Whether a stripe has its space even if it holds nothing.
    pub(super) fn is_kept(&self, stripe: u64) -> bool {
        self.kept.borrow().iter().any(|stripes| stripes.contains(&stripe))
    }

    /// A slot has another disk, of which nothing is known.
    pub(super) fn forget(&self, slot: usize) {
        self.reserved.borrow_mut()[slot] = None;
    }

    fn is_reserved(&self, slot: usize, stripe: u64) -> bool {
        self.reserved.borrow()[slot].as_ref().is_some_and(|stripes| stripes.get(stripe))
    }

    fn set(&self, slot: usize, stripes: Range<u64>, is_reserved: bool) {
        let mut reserved = self.reserved.borrow_mut();
        reserved[slot].get_or_insert_with(|| Bitmap::new(self.stripes)).set_range(stripes, is_reserved);
    }

    /// A chunk was given back.
    pub(super) fn give_back(&self, slot: usize, stripe: u64) {
        if self.is_reserved(slot, stripe) {
            self.set(slot, stripe..stripe + 1, false);
        }
    }
}

impl Group {
    /// Whether any member may run out of space.
    pub(in super::super) fn is_thin(&self) -> bool {
        self.alive().iter().any(|(_, disk)| disk.is_thin())
    }

    /// Reserves chunks of a stripe, whose lock the caller holds. Error: one of the disks has no space for its chunk.
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
                    // The others will do.
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
            // What a new member does not hold yet is reserved when it is rebuilt.
            let end = match self.slots.borrow()[slot].state {
                State::Rebuilding(done) => stripes.end.min(done),
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

    /// Reserves what the group keeps on a member for itself.
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
