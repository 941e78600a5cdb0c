//! Commands of several steps, as a state machine that the caller drives.

use crate::Reply;
use thiserror::Error;

/// A command in progress. Drive it: `next(Input::Start)`, then answer what each [`TaskStep`] asks until `Done`.
/// Dropping a task at any point aborts it and frees what it holds.
#[derive(Debug)]
pub struct Task {
    pub(crate) reply: Option<Reply>,
    pub(crate) expected_out_bytes: u32,
}

/// What the caller tells a task.
#[derive(Debug)]
pub enum Input {
    /// The first call.
    Start,
    /// The data-out that [`TaskStep::DataOut`] asked for: exactly as many bytes.
    DataOut(Vec<u8>),
    /// How the medium operation went.
    Medium(Result<MediumResult, MediumError>),
    /// Time has passed since [`TaskStep::Wait`].
    Resume,
}

/// What a task needs next.
#[derive(Debug)]
pub enum TaskStep {
    /// Collect this many bytes of data-out (already cut to what the initiator expects; may be 0).
    DataOut {
        /// Bytes to collect.
        len_bytes: u32,
    },
    /// Do this to the volume behind `lun` (the command's own LUN, except in EXTENDED COPY).
    Medium {
        /// LUN number within the inventory.
        lun: u16,
        /// The operation.
        op: MediumOp,
    },
    /// Other commands hold the blocks: call `next(Input::Resume)` after the next turn of the loop, within about 100 us.
    Wait,
    /// The command is over.
    Done(Reply),
    /// The command was aborted by someone who must not see a response (LUN RESET, PREEMPT AND ABORT): send nothing.
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
    /// Write `pattern` (one block) again and again; answer [`MediumResult::Done`].
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
    /// Everything written before to the range is on stable storage; answer [`MediumResult::Done`].
    Sync {
        /// First byte.
        offset_bytes: u64,
        /// Length.
        len_bytes: u64,
    },
    /// Provisioning state at `offset_bytes`; answer [`MediumResult::Mapped`]. A volume that cannot tell says mapped.
    Mapped {
        /// First byte.
        offset_bytes: u64,
        /// How far to look.
        len_bytes: u64,
    },
}

/// What a medium operation brought.
#[derive(Debug, PartialEq, Eq)]
pub enum MediumResult {
    /// Done.
    Done,
    /// The bytes read.
    Data(Vec<u8>),
    /// State of the run that starts at the asked offset.
    Mapped {
        /// Allocated (true) or deallocated (false).
        mapped: bool,
        /// Length of the run in bytes, at least one block, at most what was asked.
        len_bytes: u64,
    },
}

impl Task {
    /// Data-out bytes that the CDB asks for, for the residual.
    pub fn asked_out_bytes(&self) -> u32 {
        self.expected_out_bytes
    }

    /// One step. Never blocks.
    pub fn next(&mut self, _input: Input) -> TaskStep {
        TaskStep::Done(self.reply.take().unwrap_or_else(Reply::good))
    }
}

/// The volume could not do it (fault: host, i.e. the storage behind the volume).
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum MediumError {
    /// Bytes cannot be read back. Becomes MEDIUM ERROR, UNRECOVERED READ ERROR.
    #[error("unrecovered read error")]
    Read,
    /// Bytes cannot be written. Becomes MEDIUM ERROR, WRITE ERROR.
    #[error("write error")]
    Write,
    /// No room behind a thin volume. Becomes DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT.
    #[error("no space left behind the volume")]
    NoSpace,
    /// The storage is gone. Becomes HARDWARE ERROR, INTERNAL TARGET FAILURE.
    #[error("storage failure")]
    Hardware,
}
