//! The task table: the commands that a session has in flight, found by tag without searching.
//!
//! An Initiator Task Tag has a slot number in its low half and the slot's generation in its high half. A late PDU,
//! whose slot was used again, has the wrong generation and is unknown. The generation has 15 bits, so no tag is ever
//! the reserved one. Slots are reused last in, first out: a busy session uses as many cache lines as it has commands in
//! flight.

use crate::balance::Moves;
use crate::task::{Footprint, NewTask, Owner, Payload};
use linerate_io::Nanos;
use linerate_iscsi_proto::pdu::Lun;
use linerate_iscsi_proto::transfer::{InitiatorRead, InitiatorWrite};

/// Position of a task in its session's table.
pub(crate) type TaskIndex = u16;

/// Generations are counted in 15 bits.
const GENERATION_MASK: u16 = 0x7fff;

/// The progress of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Free,
    /// Waits in the session's queue.
    Queued,
    /// Sent and not answered.
    Sent,
    /// Answered with BUSY or a similar status; queued again when it is due.
    BackedOff,
    /// Not answered in time; an ABORT TASK is in progress.
    Aborting,
}

/// The progress of a sent task's data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress {
    None,
    Read(InitiatorRead),
    Write(InitiatorWrite),
}

/// One task. The fields for arriving data are first, then those for its end. With many sessions no cache line of a task
/// is in the core's cache by then, and most I/Os need two of the three.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Task {
    pub(crate) owner: Owner,
    generation: u16,
    pub(crate) stage: Stage,
    /// Index of the connection that it was sent over.
    pub(crate) connection: u8,
    pub(crate) payload: Payload,
    pub(crate) progress: Progress,
    pub(crate) len_bytes: u32,
    /// When it was first sent; 0 before.
    pub(crate) first_sent: Nanos,
    /// Bytes in flight on the session when it was queued, including its own.
    pub(crate) queue_bytes: u64,
    /// Its number in the order of its device's I/Os.
    pub(crate) order: u64,
    /// It is sent again after the target refused it: newer commands must not overtake it.
    pub(crate) retried: bool,
    /// Number of answers that required another attempt.
    pub(crate) refusals: u8,
    /// An I/O that was in flight when a session was lost.
    pub(crate) requeued: bool,
    /// Number of sessions that were lost with it, or have aborted it.
    pub(crate) losses: u8,
    pub(crate) cmd_sn: u32,
    /// When a backed-off task is due.
    pub(crate) due: Nanos,
    pub(crate) lun: Lun,
    pub(crate) cdb: [u8; 16],
    pub(crate) footprint: Footprint,
    /// Data of [`Payload::Kept`].
    pub(crate) reply: Vec<u8>,
}

impl Task {
    /// The task as another session needs it.
    pub(crate) fn to_new(&self) -> NewTask {
        NewTask {
            owner: self.owner,
            lun: self.lun,
            cdb: self.cdb,
            len_bytes: self.len_bytes,
            payload: self.payload,
            footprint: self.footprint,
            order: self.order,
            requeued: self.requeued,
            losses: self.losses,
        }
    }

    /// An I/O that was never lost or aborted.
    pub(crate) fn is_first_try_of_io(&self) -> bool {
        self.losses == 0 && matches!(self.owner, Owner::Io { .. })
    }

    /// Its direction and size, for the counters.
    #[inline]
    pub(crate) fn moves(&self) -> Moves {
        match self.payload {
            Payload::In(_) => Moves::Read,
            Payload::Out(_) => Moves::Write,
            Payload::None | Payload::Kept | Payload::UnmapList { .. } => Moves::Nothing,
        }
    }
}

/// All tasks of a session.
#[derive(Debug, Default)]
pub(crate) struct TaskTable {
    tasks: Vec<Task>,
    free: Vec<TaskIndex>,
    /// Tasks in use that were retried; while it is 0 no conflicts need to be checked.
    pub(crate) retried: u32,
}

impl TaskTable {
    /// Takes a slot; None if 65535 are in use.
    #[inline]
    pub(crate) fn insert(&mut self, new: &NewTask) -> Option<TaskIndex> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.grow(new)?,
        };
        let task = &mut self.tasks[usize::from(index)];
        task.owner = new.owner;
        task.stage = Stage::Queued;
        task.generation = task.generation.wrapping_add(1) & GENERATION_MASK;
        task.lun = new.lun;
        task.cdb = new.cdb;
        task.len_bytes = new.len_bytes;
        task.payload = new.payload;
        task.progress = Progress::None;
        task.footprint = new.footprint;
        task.first_sent = 0;
        task.retried = false;
        task.refusals = 0;
        task.order = new.order;
        task.requeued = new.requeued;
        task.losses = new.losses;
        Some(index)
    }

    #[cold]
    fn grow(&mut self, new: &NewTask) -> Option<TaskIndex> {
        let index = TaskIndex::try_from(self.tasks.len()).ok().filter(|index| *index < TaskIndex::MAX)?;
        self.tasks.push(Task {
            owner: new.owner,
            generation: 0,
            stage: Stage::Free,
            connection: 0,
            payload: Payload::None,
            progress: Progress::None,
            len_bytes: 0,
            first_sent: 0,
            queue_bytes: 0,
            order: 0,
            retried: false,
            refusals: 0,
            requeued: false,
            losses: 0,
            cmd_sn: 0,
            due: 0,
            lun: new.lun,
            cdb: new.cdb,
            footprint: new.footprint,
            reply: Vec::new(),
        });
        // Space for every slot, so that freeing never allocates.
        self.free.reserve(self.tasks.len());
        Some(index)
    }

    /// Frees a slot.
    #[inline]
    pub(crate) fn remove(&mut self, index: TaskIndex) {
        let task = &mut self.tasks[usize::from(index)];
        debug_assert_ne!(task.stage, Stage::Free, "a slot is freed once");
        task.stage = Stage::Free;
        if task.retried {
            self.retried -= 1;
        }
        self.free.push(index);
    }

    /// Marks a task as retried.
    pub(crate) fn mark_retried(&mut self, index: TaskIndex) {
        let task = &mut self.tasks[usize::from(index)];
        if !task.retried {
            task.retried = true;
            self.retried += 1;
        }
    }

    /// The task of a tag that the target sent; none if there is no such task any more.
    #[inline]
    pub(crate) fn find(&self, itt: u32) -> Option<TaskIndex> {
        let index = itt as TaskIndex;
        let task = self.tasks.get(usize::from(index))?;
        let known =
            task.generation == (itt >> 16) as u16 && matches!(task.stage, Stage::Sent | Stage::Aborting);
        known.then_some(index)
    }

    /// The tag of a task.
    #[inline]
    pub(crate) fn itt(&self, index: TaskIndex) -> u32 {
        u32::from(self[index].generation) << 16 | u32::from(index)
    }

    /// Every task in use.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TaskIndex, &Task)> {
        self.tasks
            .iter()
            .enumerate()
            .filter(|(_, t)| t.stage != Stage::Free)
            .map(|(i, t)| (i as TaskIndex, t))
    }
}

impl std::ops::Index<TaskIndex> for TaskTable {
    type Output = Task;

    #[inline]
    fn index(&self, index: TaskIndex) -> &Task {
        &self.tasks[usize::from(index)]
    }
}

impl std::ops::IndexMut<TaskIndex> for TaskTable {
    #[inline]
    fn index_mut(&mut self, index: TaskIndex) -> &mut Task {
        &mut self.tasks[usize::from(index)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(table: &mut TaskTable) -> TaskIndex {
        let index = table.insert(&NewTask::control(Owner::Ping)).unwrap();
        table[index].stage = Stage::Sent;
        index
    }

    #[test]
    fn a_late_tag_is_unknown() {
        let mut table = TaskTable::default();
        let first = sent(&mut table);
        let tag = table.itt(first);
        assert_eq!(table.find(tag), Some(first));
        table.remove(first);
        assert_eq!(table.find(tag), None);
        let second = sent(&mut table);
        assert_eq!(second, first, "the slot is reused");
        assert_eq!(table.find(tag), None, "but not its tag");
        assert_eq!(table.find(table.itt(second)), Some(second));
    }

    #[test]
    fn no_two_tasks_in_flight_share_a_tag_and_none_is_reserved() {
        let mut table = TaskTable::default();
        for _ in 0..70_000 {
            let (a, b) = (sent(&mut table), sent(&mut table));
            assert_ne!(table.itt(a), table.itt(b));
            assert!(table.itt(a) != u32::MAX && table.itt(b) != u32::MAX);
            table.remove(a);
            table.remove(b);
        }
    }

    #[test]
    fn a_task_takes_three_cache_lines_and_arriving_data_looks_at_one() {
        assert_eq!(size_of::<Task>(), 3 * 64);
        assert!(std::mem::offset_of!(Task, progress) + size_of::<InitiatorRead>() < 64);
    }
}
