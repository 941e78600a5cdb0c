//! Commands in progress: a slab, so that a transfer tag is the index of its task and nothing is allocated after the
//! start.

use crate::{
    buffers::budget::Share,
    buffers::pool::{Charge, ChunkPool, Chunks},
    completion_guard::CompletionGuard,
    volume::VolumeId,
};
use linerate_io::{Nanos, Seg};
use linerate_iscsi_proto::transfer::TargetWrite;
use linerate_scsi::{Extent, Reply, Task};

/// Most free slots that a connection without tasks keeps.
const KEPT_SLOTS: usize = 96;

/// Identifies a task: another task may use its slot later, but never its serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskId {
    pub(super) slot: u32,
    serial: u32,
}

/// The work of a task, or the event that it waits for.
#[derive(Debug)]
pub(super) enum TaskWork {
    /// The slot is free.
    Free,
    /// A write to a memory volume: data is received in place.
    MemoryWrite(Extent),
    /// A read whose bytes are read into I/O buffers first.
    BufferedRead(Extent),
    /// A write whose data is collected in I/O buffers.
    BufferedWrite(Extent),
    /// A command of several steps.
    Steps(Box<Steps>),
    /// Answered as soon as its unsolicited data has arrived.
    Drain(Reply),
}

/// A command of several steps, and its current step.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) task: Box<Task>,
    /// Data-out that is being collected.
    pub(super) data: Vec<u8>,
    /// The task needs the data that arrives; otherwise the data is dropped.
    pub(super) collects: bool,
    /// The current volume operation, or one to be tried again when I/O buffers are free.
    pub(super) operation: Option<(VolumeId, linerate_scsi::MediumOp)>,
}

/// The owner of a task's I/O buffers; for a write to a memory volume, the one that may write to its range.
#[derive(Debug)]
pub(super) enum Buffers {
    /// The task. It may have none.
    Task(Chunks),
    /// None yet: the task is in its connection's queue for memory.
    Awaited,
    /// The current receive.
    Receive,
    /// The current volume operation.
    Operation,
}

impl Buffers {
    pub(super) const NONE: Self = Self::Task(Chunks::NONE);
}

/// One command in progress.
#[derive(Debug)]
pub(super) struct TaskEntry {
    serial: u32,
    pub(super) itt: u32,
    pub(super) immediate: bool,
    /// Aborted: no answer is due, and the slot is kept until its buffers are returned.
    pub(super) aborted: bool,
    pub(super) lun: [u8; 8],
    pub(super) volume: Option<VolumeId>,
    /// Bytes that the initiator expects to receive, and to send.
    pub(super) expected_in: u32,
    pub(super) expected_out: u32,
    pub(super) work: TaskWork,
    /// State of the command's data, if it sends any.
    pub(super) write: Option<TargetWrite>,
    pub(super) buffers: Buffers,
    /// Memory for [`Steps::data`].
    pub(super) charge: Charge,
    /// The nexus's abort count when the command began.
    pub(super) epoch: u32,
    /// The time at which it began to wait: for memory, then for data of the initiator.
    pub(super) since: Nanos,
    /// Answers that are due when this task ends.
    pub(super) guards: Vec<CompletionGuard>,
}

/// A command that begins.
#[derive(Debug)]
pub(super) struct NewTask {
    pub(super) itt: u32,
    pub(super) immediate: bool,
    pub(super) lun: [u8; 8],
    pub(super) volume: Option<VolumeId>,
    pub(super) expected_in: u32,
    pub(super) expected_out: u32,
    pub(super) work: TaskWork,
    pub(super) write: Option<TargetWrite>,
    pub(super) epoch: u32,
    pub(super) since: Nanos,
}

impl TaskEntry {
    fn is_free(&self) -> bool {
        matches!(self.work, TaskWork::Free)
    }

    /// Whether an operation is in progress that must end before the task can end.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.buffers, Buffers::Receive | Buffers::Operation)
    }

    /// The I/O buffers, while the task owns them.
    pub(super) fn segs(&self) -> &[Seg] {
        match &self.buffers {
            Buffers::Task(chunks) => chunks.segs(),
            Buffers::Awaited | Buffers::Receive | Buffers::Operation => &[],
        }
    }

    /// Passes the buffers to `to`, which is a receive or an operation.
    pub(super) fn lend(&mut self, to: Buffers) -> Chunks {
        match std::mem::replace(&mut self.buffers, to) {
            Buffers::Task(chunks) => chunks,
            Buffers::Awaited | Buffers::Receive | Buffers::Operation => {
                unreachable!("a task lends what it owns")
            }
        }
    }

    /// The buffers are back.
    pub(super) fn take_back(&mut self, chunks: Chunks) {
        debug_assert!(self.is_busy(), "what comes back was lent");
        self.buffers = Buffers::Task(chunks);
    }

    /// Whether data of the initiator is due: a task that waits for memory or for a volume does not wait for the
    /// initiator.
    fn awaits_data(&self) -> bool {
        self.write.is_some() && !self.is_free() && matches!(self.buffers, Buffers::Task(_) | Buffers::Receive)
    }
}

/// The slab.
#[derive(Debug)]
pub(super) struct Tasks {
    entries: Vec<TaskEntry>,
    free: Vec<u32>,
    next_serial: u32,
}

impl Tasks {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new(), next_serial: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Slot that the next [`Tasks::insert`] will use.
    pub(super) fn next_slot(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.entries.len() as u32)
    }

    /// Starts a task.
    pub(super) fn insert(&mut self, new: NewTask) -> TaskId {
        let serial = self.next_serial;
        self.next_serial = serial.wrapping_add(1);
        let NewTask { itt, immediate, lun, volume, expected_in, expected_out, work, write, epoch, since } =
            new;
        let entry = TaskEntry {
            serial,
            itt,
            immediate,
            aborted: false,
            lun,
            volume,
            expected_in,
            expected_out,
            work,
            write,
            buffers: Buffers::NONE,
            charge: Charge::NONE,
            epoch,
            since,
            guards: Vec::new(),
        };
        let Some(slot) = self.free.pop() else {
            self.entries.push(entry);
            return TaskId { slot: self.entries.len() as u32 - 1, serial };
        };
        self.entries[slot as usize] = entry;
        TaskId { slot, serial }
    }

    /// A task that must be in progress, aborted or not: the caller has just started it, or waits for an operation of
    /// it, which keeps its slot. None would be a defect of this program: then tests fail, and other builds drop the
    /// event.
    pub(super) fn known(&mut self, id: TaskId) -> Option<&mut TaskEntry> {
        let entry = self.get_mut(id);
        debug_assert!(entry.is_some(), "the slot of a task was freed too early");
        entry
    }

    /// A task in progress, aborted or not; None if it has ended.
    pub(super) fn get_mut(&mut self, id: TaskId) -> Option<&mut TaskEntry> {
        let entry = self.entries.get_mut(id.slot as usize)?;
        (entry.serial == id.serial && !entry.is_free()).then_some(entry)
    }

    /// A task in progress that has not been aborted. None is normal whenever the task had to wait.
    pub(super) fn live(&mut self, id: TaskId) -> Option<&mut TaskEntry> {
        self.get_mut(id).filter(|entry| !entry.aborted)
    }

    /// The time since which a task is in its present state, as far as [`TaskEntry::since`] tells.
    pub(super) fn since(&self, id: TaskId) -> Option<Nanos> {
        let entry = self.entries.get(id.slot as usize)?;
        (entry.serial == id.serial && !entry.is_free()).then_some(entry.since)
    }

    /// The task that has a slot now.
    pub(super) fn at(&self, slot: u32) -> Option<TaskId> {
        let entry = self.entries.get(slot as usize).filter(|entry| !entry.is_free())?;
        Some(TaskId { slot, serial: entry.serial })
    }

    /// A task by its tag; if two have the same tag, the one that has not been aborted. Rare: transfer tags name slots,
    /// so only unsolicited data and aborts need this.
    pub(super) fn find(&self, itt: u32) -> Option<TaskId> {
        let is_it = |entry: &&TaskEntry| entry.itt == itt && !entry.is_free();
        let named = (0..).zip(&self.entries).filter(|(_, entry)| is_it(entry));
        let (slot, entry) = named.min_by_key(|(_, entry)| entry.aborted)?;
        Some(TaskId { slot, serial: entry.serial })
    }

    /// Frees a slot and its memory. After a burst that needed many slots, the last task frees all of them.
    pub(super) fn remove(&mut self, id: TaskId, pool: &mut ChunkPool, share: &mut Share) {
        let Some(entry) = self.known(id) else { return };
        debug_assert!(!entry.is_busy(), "something of the task is still under way");
        if let Buffers::Task(chunks) = std::mem::replace(&mut entry.buffers, Buffers::NONE) {
            pool.give_back(share, chunks);
        }
        pool.discharge(share, std::mem::take(&mut entry.charge));
        entry.work = TaskWork::Free;
        entry.write = None;
        entry.guards = Vec::new();
        self.free.push(id.slot);
        if self.entries.len() > KEPT_SLOTS && self.len() == 0 {
            self.entries = Vec::new();
            self.free = Vec::new();
        }
    }

    /// All tasks, aborted or not.
    pub(super) fn ids(&self) -> Vec<TaskId> {
        let taken = (0..).zip(&self.entries).filter(|(_, entry)| !entry.is_free());
        taken.map(|(slot, entry)| TaskId { slot, serial: entry.serial }).collect()
    }

    /// Every task.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut TaskEntry> {
        self.entries.iter_mut().filter(|entry| !entry.is_free())
    }

    /// Whether the initiator must still send data of a write.
    pub(super) fn expects_data(&self) -> bool {
        self.entries.iter().any(TaskEntry::awaits_data)
    }

    /// The time since which the oldest write waits for data of the initiator.
    pub(super) fn oldest_write(&self) -> Option<Nanos> {
        self.entries.iter().filter(|entry| entry.awaits_data()).map(|entry| entry.since).min()
    }

    /// Whether a write is in progress whose data has not arrived completely, with or without memory.
    pub(super) fn has_unfinished_write(&self) -> bool {
        let is_one = |entry: &TaskEntry| {
            !entry.is_free() && entry.write.as_ref().is_some_and(|write| !write.is_complete())
        };
        self.entries.iter().any(is_one)
    }

    /// Ends all tasks except those with an operation in progress. Returns how many were ended.
    pub(super) fn clear(&mut self, pool: &mut ChunkPool, share: &mut Share) -> u64 {
        let mut ended = 0;
        for id in self.ids() {
            let Some(entry) = self.known(id) else { continue };
            if entry.is_busy() {
                entry.aborted = true;
            } else {
                self.remove(id, pool, share);
                ended += 1;
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::{NewTask, TaskWork, Tasks};
    use crate::buffers::{budget::Share, pool::ChunkPool};
    use linerate_scsi::Reply;

    #[test]
    fn the_name_of_a_task_that_is_over_names_nothing() {
        let (mut tasks, mut pool, mut share) = (Tasks::new(), ChunkPool::new(1 << 20), Share::default());
        let new = || NewTask {
            itt: 7,
            immediate: false,
            lun: [0; 8],
            volume: None,
            expected_in: 0,
            expected_out: 0,
            work: TaskWork::Drain(Reply::good()),
            write: None,
            epoch: 0,
            since: 0,
        };
        let first = tasks.insert(new());
        tasks.remove(first, &mut pool, &mut share);
        let second = tasks.insert(new());
        assert_eq!((first.slot, tasks.at(first.slot)), (second.slot, Some(second)));
        assert!(tasks.live(first).is_none() && tasks.get_mut(first).is_none());
        assert!(tasks.live(second).is_some() && tasks.since(first).is_none());
        assert_eq!(tasks.len(), 1);
    }
}
