//! One group of members: copies, or data with parity. Open this file first.
//!
//! A write takes the group lock (shared), then the lock of its stripe (exclusive). A change of members or of the write mode
//! takes the group lock exclusively ([`members`]). Reads take no lock; a read whose checksum does not match is repeated
//! under the stripe's lock.
//!
//! A power cut must not leave a stripe whose chunks do not belong together:
//!
//! - With all members there, a region is flagged in the superblock before it is written ([`write_intent`]). After a power
//!   cut, parity of the stripes in flagged regions is computed again from their data.
//! - With a member missing, or if the configuration asks for it, the journal is written first ([`journal`]).
//!
//! A failed member is never used again: no write is acknowledged before the superblocks of the other members record the
//! failure ([`members`]).
//!
//! While all members are there and answer at once, as memory does, most operations need none of these waits: they are done
//! in the caller's call ([`nowait`]).

mod background;
mod bitmap;
mod checksums;
mod geometry;
mod journal;
mod members;
mod nowait;
mod open;
mod read;
mod reconstruct;
mod space;
mod state;
mod superblock;
mod write;
mod write_intent;

pub use background::ScrubReport;
pub(super) use background::scrubbed;
pub(super) use open::Opening;
pub(super) use superblock::{
    Found, MEMBER_BYTES_MIN, SlotRecord, SlotRecordState, Superblock, Superblocks, look,
};

use super::{
    config::Code,
    status::{MemberState, MemberStatus, RaidCounters, RaidState, RaidTask},
};
use crate::{
    Runtime,
    disk::{Disk, DiskError, Reading, Writing},
};
use background::Background;
use bytes::{Bytes, BytesMut};
use checksums::Checksums;
use futures::future::{LocalBoxFuture, ready};
use geometry::Geometry;
use journal::Journal;
use state::{Commits, Hold, Locks, Settling, Slot, SlotState, Space, WriteIntent};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use superblock::Layout;

/// Number of the lock that writers share and that changes of the members take exclusively; stripes have lower numbers.
const GROUP_LOCK: u64 = u64::MAX;
/// Number of the lock for writing checksum pages.
const PAGES: u64 = u64::MAX - 1;

/// Options that may differ at each start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) rebuild_bytes_per_s: Option<u64>,
    pub(super) is_always_journaled: bool,
    pub(super) checksums: bool,
}

/// Spare disks, shared by the groups of a set.
pub(super) type Spares = Rc<RefCell<Vec<Rc<dyn Disk>>>>;
/// Names of failed disks whose slot another disk has now.
pub(super) type Former = Rc<RefCell<Vec<String>>>;

/// A mirror or parity group; one disk of a striped set without redundancy.
pub(super) struct Group {
    runtime: Runtime,
    set_name: Rc<str>,
    options: Options,
    geometry: Geometry,
    layout: Layout,
    spares: Spares,
    former: Former,
    meta: RefCell<Superblock>,
    slots: RefCell<Vec<Slot>>,
    locks: Rc<Locks>,
    commits: Commits,
    settling: Settling,
    write_intent: WriteIntent,
    journal: Journal,
    /// Whether writes go through the journal.
    is_journaled: Cell<bool>,
    checksums: Checksums,
    space: Space,
    background: Background,
    counters: Cell<RaidCounters>,
    has_failed: Cell<bool>,
    /// The group is closing: do not wait for events that may never come.
    is_closing: Cell<bool>,
    /// Whether the set serves; false once this group has failed.
    is_served: Arc<AtomicBool>,
    turn: Cell<usize>,
    scratch: RefCell<nowait::Scratch>,
}

impl Group {
    pub(super) fn size_bytes(&self) -> u64 {
        self.geometry.size()
    }

    /// Data of a stripe: writes of whole multiples, at a multiple of it, need no reads.
    pub(super) fn width_bytes(&self) -> u64 {
        self.geometry.width()
    }

    pub(super) fn counters(&self) -> RaidCounters {
        self.counters.get()
    }

    pub(super) fn task(&self) -> Option<RaidTask> {
        self.background.task(self)
    }

    pub(super) fn state(&self) -> RaidState {
        match self.out() {
            _ if self.has_failed.get() => RaidState::Failed,
            0 => RaidState::Optimal,
            _ => RaidState::Degraded,
        }
    }

    pub(super) fn members(&self) -> Vec<MemberStatus> {
        let status = |slot: &Slot| MemberStatus {
            name: slot.name.clone(),
            state: match slot.state {
                SlotState::InSync => MemberState::Online,
                SlotState::Rebuilding(_) => MemberState::Rebuilding,
                SlotState::Failing(_) | SlotState::Failed => MemberState::Failed,
                SlotState::Missing => MemberState::Missing,
            },
        };
        self.slots.borrow().iter().map(status).collect()
    }

    /// For a group of one disk: the disk, and the offset of its data.
    pub(super) fn plain(&self) -> Option<(Rc<dyn Disk>, u64)> {
        if self.geometry.code != Code::None {
            return None;
        }
        let slots = self.slots.borrow();
        let disk = slots[0].disk.clone().filter(|_| slots[0].state == SlotState::InSync)?;
        Some((disk, self.geometry.start))
    }

    /// Begins a read.
    pub(super) fn begin_read(self: &Rc<Self>, offset: u64, mut into: BytesMut) -> Reading {
        if let Some((disk, start)) = self.plain() {
            let reading = disk.read(start + offset, into);
            let group = Rc::clone(self);
            return Box::pin(async move { reading.await.map_err(|error| group.plain_error(&error, &disk)) });
        }
        if self.fill_nowait(offset, &mut into).is_some() {
            return Box::pin(ready(Ok(into)));
        }
        self.begin(Rc::clone(self).read(offset, into))
    }

    /// Begins a write.
    pub(super) fn begin_write(self: &Rc<Self>, offset: u64, data: Bytes, durable: bool) -> Writing {
        if let Some((disk, start)) = self.plain() {
            let writing = disk.write(start + offset, data, durable);
            return self.plain_writing(disk, writing);
        }
        if self.write_nowait(offset, &data, durable).is_some() {
            return Box::pin(ready(Ok(())));
        }
        self.begin(Rc::clone(self).write(offset, data, durable))
    }

    /// Begins to make all written data durable.
    pub(super) fn begin_flush(self: &Rc<Self>) -> Writing {
        if let Some((disk, _)) = self.plain() {
            let flushing = disk.flush();
            return self.plain_writing(disk, flushing);
        }
        self.begin(Rc::clone(self).flush())
    }

    /// Begins to discard a range.
    pub(super) fn begin_discard(self: &Rc<Self>, offset: u64, len: u64) -> Writing {
        if let Some((disk, start)) = self.plain() {
            let discarding = disk.discard(start + offset, len);
            return self.plain_writing(disk, discarding);
        }
        self.begin(Rc::clone(self).discard(offset, len))
    }

    /// An operation of several steps continues even if its caller has stopped waiting.
    fn begin<T: 'static>(
        self: &Rc<Self>,
        work: impl Future<Output = Result<T, DiskError>> + 'static,
    ) -> LocalBoxFuture<'static, Result<T, DiskError>> {
        if self.has_failed.get() {
            return Box::pin(ready(Err(self.lost())));
        }
        self.runtime.start(work)
    }

    fn plain_writing(self: &Rc<Self>, disk: Rc<dyn Disk>, writing: Writing) -> Writing {
        let group = Rc::clone(self);
        Box::pin(async move { writing.await.map_err(|error| group.plain_error(&error, &disk)) })
    }

    /// Without redundancy, the failure of a disk is the failure of the set. An unreadable block, or missing space, is
    /// passed on as it is.
    fn plain_error(self: &Rc<Self>, error: &DiskError, disk: &Rc<dyn Disk>) -> DiskError {
        match error {
            &DiskError::Unreadable { offset_bytes, len_bytes } => {
                DiskError::Unreadable { offset_bytes: offset_bytes - self.geometry.start, len_bytes }
            }
            DiskError::NoSpace(_) => error.clone(),
            _ => {
                self.member_failed(0, disk);
                self.lost()
            }
        }
    }

    pub(super) fn has_redundancy(&self) -> bool {
        self.geometry.tolerance() > 0
    }

    /// Number of the set, and of the newest superblock that is on all members. After a power cut the superblock is not
    /// older.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.meta.borrow().set, self.commits.generation.get())
    }

    /// Block size, and the size that all members have at least.
    pub(super) fn member_sizes(&self) -> (u32, u64) {
        let meta = self.meta.borrow();
        (meta.block_bytes, meta.member_bytes)
    }

    /// The set does not serve any more.
    fn give_up(&self) {
        self.has_failed.set(true);
        self.is_served.store(false, Ordering::Release);
    }

    fn lost(&self) -> DiskError {
        DiskError::Lost(self.set_name.to_string())
    }

    fn count(&self, change: impl FnOnce(&mut RaidCounters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }

    fn check(&self) -> Result<(), DiskError> {
        if self.has_failed.get() { Err(self.lost()) } else { Ok(()) }
    }

    async fn flush(self: Rc<Self>) -> Result<(), DiskError> {
        self.check()?;
        self.flush_members().await;
        self.settled().await;
        self.check()
    }

    /// Completes all work, so that the next start has none.
    pub(super) async fn close(self: Rc<Self>) -> Result<(), DiskError> {
        self.is_closing.set(true);
        let group_lock = self.locks.take(GROUP_LOCK, Hold::Exclusive).await;
        self.check()?;
        self.clean(true).await;
        drop(group_lock);
        self.settled().await;
        self.check()
    }
}
