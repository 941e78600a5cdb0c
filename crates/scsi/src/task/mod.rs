//! Commands of several steps, as state machines for the caller.
//!
//! One file per family; each implements [`Steps`], which sees only successful steps. Failures (the medium, an abort by
//! another nexus, a wrong answer of the caller) are handled here, once.

mod compare;
mod parameters;
mod provisioning;
mod section;
mod simple;
mod verify;
mod write;

pub(crate) use compare::{compare_and_write, or_write};
pub(crate) use parameters::{mode_select, reserve_out};
pub(crate) use provisioning::{lba_status, unmap, write_same};
pub(crate) use section::Entry;
pub(crate) use simple::{prefetch, read, sync_then, synchronize_cache};
pub(crate) use verify::{verify, write_and_verify};
pub(crate) use write::write;

use crate::plan::Refusal;
use crate::{Plan, Reply, nexus::Itl};
use linerate_scsi_proto::sense::{Sense, SenseKey, code};
use std::{fmt, sync::Arc};
use thiserror::Error;

/// A command in progress. Call `next(Input::Start)`, then do what each [`TaskStep`] requests until `Done`. A task that
/// is dropped is aborted and releases its locks.
pub struct Task {
    itl: Arc<Itl>,
    steps: Box<dyn Steps>,
    abort_epoch: u32,
    asked_out_bytes: u32,
    /// Length of the bytes that the last step requested.
    awaited_bytes: usize,
}

/// One family's state machine.
pub(crate) trait Steps: Send {
    fn step(&mut self, itl: &Arc<Itl>, event: StepEvent) -> Result<TaskStep, Refusal>;

    /// A medium operation failed, which ends the command. Returns the reply.
    fn medium_failed(&mut self, _: &Arc<Itl>, error: MediumError) -> Refusal {
        error.refusal()
    }
}

/// An [`Input`] that went right.
#[derive(Debug)]
pub(crate) enum StepEvent {
    Start,
    Bytes(Vec<u8>),
    Done,
    Mapped { mapped: bool, len_bytes: u64 },
    Resume,
}

/// The caller's input for a task.
#[derive(Debug)]
pub enum Input {
    /// The first call.
    Start,
    /// The data-out that [`TaskStep::DataOut`] requested: exactly as many bytes.
    DataOut(Vec<u8>),
    /// How the medium operation went.
    Medium(Result<MediumResult, MediumError>),
    /// Time has passed since [`TaskStep::Wait`].
    Resume,
}

/// The next request of a task.
#[derive(Debug)]
pub enum TaskStep {
    /// Collect this many bytes of data-out (already cut to what the initiator expects; may be 0).
    DataOut {
        /// Bytes to collect.
        len_bytes: u32,
    },
    /// Do this on the volume of `lun` (the command's own LUN, except in EXTENDED COPY).
    Medium {
        /// LUN number within the inventory.
        lun: u16,
        /// The operation.
        op: MediumOp,
    },
    /// Other commands hold the blocks: call `next(Input::Resume)` after the next turn of the loop, within about 100 us.
    Wait,
    /// The command has ended.
    Done(Reply),
    /// The command was aborted in a way that permits no response (LUN RESET, PREEMPT AND ABORT): send nothing.
    Aborted,
}

/// One operation on a volume. Offsets and lengths are multiples of the block size and inside the capacity.
#[derive(Debug, PartialEq, Eq)]
pub enum MediumOp {
    /// Read; answer [`MediumResult::Data`].
    Read {
        /// First byte.
        offset_bytes: u64,
        /// Length.
        len_bytes: u32,
    },
    /// Write; answer [`MediumResult::Done`].
    Write {
        /// First byte.
        offset_bytes: u64,
        /// The bytes.
        data: Vec<u8>,
        /// On stable storage before the answer.
        durable: bool,
    },
    /// Write `pattern` (one block) repeatedly; answer [`MediumResult::Done`].
    Fill {
        /// First byte.
        offset_bytes: u64,
        /// Length.
        len_bytes: u32,
        /// One block.
        pattern: Vec<u8>,
        /// On stable storage before the answer.
        durable: bool,
    },
    /// Deallocate: the range reads as zeros afterwards; answer [`MediumResult::Done`].
    Discard {
        /// First byte.
        offset_bytes: u64,
        /// Length.
        len_bytes: u64,
    },
    /// Make everything durable that was written to the range before; answer [`MediumResult::Done`].
    Sync {
        /// First byte.
        offset_bytes: u64,
        /// Length.
        len_bytes: u64,
    },
    /// Persistent reservations for [`LogicalUnit::restore_reservations`](crate::LogicalUnit::restore_reservations)
    /// after a power loss; empty: there are none. They must be on stable storage before the answer
    /// [`MediumResult::Done`].
    Keep {
        /// It grows; a state never replaces one with a higher number.
        number: u64,
        /// The state to keep.
        reservations: Vec<u8>,
    },
    /// Provisioning state at `offset_bytes`; answer [`MediumResult::Mapped`]. A volume that does not know it answers
    /// mapped.
    Mapped {
        /// First byte.
        offset_bytes: u64,
        /// How far to look.
        len_bytes: u64,
    },
}

/// The result of a medium operation.
#[derive(Debug, PartialEq, Eq)]
pub enum MediumResult {
    /// Done.
    Done,
    /// The bytes read.
    Data(Vec<u8>),
    /// State of the run that starts at the requested offset.
    Mapped {
        /// Allocated (true) or deallocated (false).
        mapped: bool,
        /// Length of the run in bytes, at least one block, at most the requested length.
        len_bytes: u64,
    },
}

impl Task {
    /// Data-out bytes that the CDB requires, for the residual.
    pub fn asked_out_bytes(&self) -> u32 {
        self.asked_out_bytes
    }

    /// One step. Never blocks.
    pub fn next(&mut self, input: Input) -> TaskStep {
        if self.itl.abort_epoch() != self.abort_epoch {
            return TaskStep::Aborted;
        }
        let event = match input {
            Input::DataOut(bytes) | Input::Medium(Ok(MediumResult::Data(bytes)))
                if bytes.len() != self.awaited_bytes =>
            {
                return self.done(self.itl.refuse(MediumError::Hardware.refusal()));
            }
            Input::Start => StepEvent::Start,
            Input::Resume => StepEvent::Resume,
            Input::DataOut(bytes) | Input::Medium(Ok(MediumResult::Data(bytes))) => StepEvent::Bytes(bytes),
            Input::Medium(Ok(MediumResult::Done)) => StepEvent::Done,
            Input::Medium(Ok(MediumResult::Mapped { mapped, len_bytes })) => {
                StepEvent::Mapped { mapped, len_bytes }
            }
            Input::Medium(Err(error)) => {
                let refusal = self.steps.medium_failed(&self.itl, error);
                return self.done(self.itl.refuse(refusal));
            }
        };
        let step = match self.steps.step(&self.itl, event) {
            // A request for no data is completed at once.
            Ok(TaskStep::DataOut { len_bytes: 0 }) => {
                self.steps.step(&self.itl, StepEvent::Bytes(Vec::new()))
            }
            step => step,
        };
        match step {
            Ok(TaskStep::Done(reply)) => self.done(reply),
            Ok(step) => {
                self.awaited_bytes = step.awaited_bytes();
                step
            }
            Err(refusal) => self.done(self.itl.refuse(refusal)),
        }
    }

    fn done(&mut self, reply: Reply) -> TaskStep {
        // Locks are released before the answer: the initiator's next command must not find them.
        self.steps = Box::new(Finished);
        TaskStep::Done(Reply { asked_out_bytes: self.asked_out_bytes, ..reply })
    }
}

impl TaskStep {
    /// Length of the bytes that answer this step.
    fn awaited_bytes(&self) -> usize {
        match self {
            Self::DataOut { len_bytes } | Self::Medium { op: MediumOp::Read { len_bytes, .. }, .. } => {
                *len_bytes as usize
            }
            _ => 0,
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Task").field("lun", &self.itl.lun()).finish_non_exhaustive()
    }
}

struct Finished;

impl Steps for Finished {
    fn step(&mut self, _: &Arc<Itl>, _: StepEvent) -> Result<TaskStep, Refusal> {
        out_of_turn()
    }
}

/// The caller's answer does not fit the request.
pub(crate) fn out_of_turn() -> Result<TaskStep, Refusal> {
    Err(Sense::new(SenseKey::HardwareError, code::INTERNAL_TARGET_FAILURE).into())
}

/// A plan for a command with `asked_out_bytes` of data-out.
pub(crate) fn plan(itl: &Arc<Itl>, asked_out_bytes: u32, steps: impl Steps + 'static) -> Plan {
    let (abort_epoch, itl) = (itl.abort_epoch(), itl.clone());
    let steps = Box::new(steps);
    Plan::Task(Box::new(Task { itl, steps, abort_epoch, asked_out_bytes, awaited_bytes: 0 }))
}

/// The volume failed an operation (fault: host, i.e. the storage of the volume).
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum MediumError {
    /// Bytes cannot be read back. Becomes MEDIUM ERROR, UNRECOVERED READ ERROR.
    #[error("unrecovered read error")]
    Read,
    /// Bytes cannot be written. Becomes MEDIUM ERROR, WRITE ERROR.
    #[error("write error")]
    Write,
    /// A thin volume has no space. Becomes DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT.
    #[error("no space left behind the volume")]
    NoSpace,
    /// The volume must not be written now. Becomes DATA PROTECT, SOFTWARE WRITE PROTECTED.
    #[error("the volume is write-protected")]
    Protected,
    /// The storage has failed. Becomes HARDWARE ERROR, INTERNAL TARGET FAILURE.
    #[error("storage failure")]
    Hardware,
}

impl MediumError {
    pub(crate) fn refusal(self) -> Refusal {
        let (key, code) = match self {
            Self::Read => (SenseKey::MediumError, code::UNRECOVERED_READ),
            Self::Write => (SenseKey::MediumError, code::WRITE_ERROR),
            Self::NoSpace => (SenseKey::DataProtect, code::SPACE_ALLOCATION_FAILED),
            Self::Protected => (SenseKey::DataProtect, code::SOFTWARE_WRITE_PROTECTED),
            Self::Hardware => (SenseKey::HardwareError, code::INTERNAL_TARGET_FAILURE),
        };
        Sense::new(key, code).into()
    }
}
