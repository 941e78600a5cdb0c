//! The requests that a connection has in flight, found by their number without searching.
//!
//! Numbers ascend, so a ring by number leads to a slot. Slots are reused last in, first out: a busy connection uses as
//! many cache lines as it has requests in flight.

use super::credits::Ticket;
use super::parts::IoPart;
use crate::wire::header::SmbCommand;
use linerate_io::Nanos;

/// Numbers between the oldest request in flight and the newest; more than there are credits.
const RING: usize = 16384;
const NONE: u32 = u32::MAX;

/// Position of a task in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskSlot(u32);

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An I/O of the caller, or a part of one.
    Io(IoPart),
    /// A step of opening or closing, or an ECHO.
    Control(SmbCommand),
    /// A step behind one that failed: its answer says nothing.
    Dropped(SmbCommand),
}

/// A request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SmbTask {
    pub(super) message_id: u64,
    pub(super) purpose: Purpose,
    pub(super) charge: u16,
    pub(super) sent_at: Nanos,
    /// The server has answered that the answer comes later.
    pub(super) async_id: Option<u64>,
    pub(super) is_cancelled: bool,
}

impl SmbTask {
    pub(super) fn new(ticket: Ticket, purpose: Purpose, now: Nanos) -> Self {
        Self {
            message_id: ticket.message_id,
            purpose,
            charge: ticket.charge,
            sent_at: now,
            async_id: None,
            is_cancelled: false,
        }
    }

    /// The I/O that it does, or the part of one.
    pub(super) fn io_part(&self) -> Option<IoPart> {
        match self.purpose {
            Purpose::Io(part) => Some(part),
            Purpose::Control(_) | Purpose::Dropped(_) => None,
        }
    }

    /// Its command.
    pub(super) fn command(&self) -> SmbCommand {
        match self.purpose {
            Purpose::Io(part) => part.io.op.command(),
            Purpose::Control(command) | Purpose::Dropped(command) => command,
        }
    }
}

impl crate::event::SmbOp {
    /// The command that does it.
    pub(super) fn command(self) -> SmbCommand {
        match self {
            Self::Read(_) => SmbCommand::Read,
            Self::Write { .. } => SmbCommand::Write,
            Self::Flush => SmbCommand::Flush,
            Self::SetLength => SmbCommand::SetInfo,
        }
    }
}

/// See the module text.
#[derive(Debug)]
pub(super) struct TasksInFlight {
    ring: Box<[u32]>,
    slots: Vec<Option<SmbTask>>,
    free: Vec<u32>,
}

impl TasksInFlight {
    pub(super) fn new() -> Self {
        Self { ring: vec![NONE; RING].into(), slots: Vec::new(), free: Vec::new() }
    }

    /// Whether there is space for a request with this number: an old one may still be unanswered.
    #[inline]
    pub(super) fn has_space(&self, message_id: u64) -> bool {
        self.ring[place(message_id)] == NONE
    }

    #[inline]
    pub(super) fn insert(&mut self, task: SmbTask) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        let entry = &mut self.ring[place(task.message_id)];
        assert!(*entry == NONE, "two requests in flight with one number");
        *entry = slot;
        self.slots[slot as usize] = Some(task);
    }

    /// The request with this number, if it is in flight.
    #[inline]
    pub(super) fn find(&self, message_id: u64) -> Option<TaskSlot> {
        let slot = self.ring[place(message_id)];
        let task = self.slots.get(slot as usize)?.as_ref()?;
        (task.message_id == message_id).then_some(TaskSlot(slot))
    }

    /// A task that was found and not removed since.
    #[inline]
    pub(super) fn get(&self, slot: TaskSlot) -> &SmbTask {
        self.slots[slot.0 as usize].as_ref().expect("the slot of a task in flight")
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: TaskSlot) -> &mut SmbTask {
        self.slots[slot.0 as usize].as_mut().expect("the slot of a task in flight")
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: TaskSlot) -> SmbTask {
        let task = self.slots[slot.0 as usize].take().expect("the slot of a task in flight");
        self.ring[place(task.message_id)] = NONE;
        self.free.push(slot.0);
        task
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// All of them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SmbTask> {
        self.slots.iter_mut().flatten()
    }

    /// Removes all, in the order of their numbers.
    pub(super) fn take_all(&mut self) -> Vec<SmbTask> {
        let busy = (0..self.slots.len() as u32).filter(|slot| self.slots[*slot as usize].is_some());
        let busy: Vec<u32> = busy.collect();
        let mut all: Vec<SmbTask> = busy.into_iter().map(|slot| self.remove(TaskSlot(slot))).collect();
        all.sort_unstable_by_key(|task| task.message_id);
        all
    }
}

fn place(message_id: u64) -> usize {
    (message_id % RING as u64) as usize
}
