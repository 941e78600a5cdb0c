//! What a command amounts to: the answer of [`Nexus::begin`](crate::Nexus::begin).

use crate::Task;
use linerate_scsi_proto::status::Status;

/// What the initiator expects to move, from the R and W bits and the Expected Data Transfer Length of its
/// request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Bytes the initiator is ready to receive (0 when the R bit is clear).
    pub in_bytes: u32,
    /// Bytes the initiator is ready to send (0 when the W bit is clear).
    pub out_bytes: u32,
}

/// The next move for one command.
#[derive(Debug)]
pub enum Plan {
    /// Send these bytes of the medium, then GOOD.
    Read(Extent),
    /// Receive these bytes into the medium, then GOOD. [`Nexus::end_write`](crate::Nexus::end_write) must
    /// follow exactly once, also if the command fails: until then the blocks are closed to COMPARE AND
    /// WRITE.
    Write(Extent),
    /// The answer is ready.
    Reply(Reply),
    /// Several steps: drive it with [`Task::next`].
    Task(Box<Task>),
}

/// A byte range of the medium that a READ or WRITE moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte on the medium.
    pub offset_bytes: u64,
    /// Bytes to move: the CDB's length, cut to what the initiator expects.
    pub len_bytes: u32,
    /// Bytes the CDB asked for: the residual is this against the expected length.
    pub asked_bytes: u32,
    /// The data must be on stable storage before GOOD (FUA, or the write cache is off).
    pub durable: bool,
}

/// A finished command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status byte.
    pub status: Status,
    /// Encoded sense data, fixed or descriptor format as `D_SENSE` says; empty unless CHECK CONDITION.
    pub sense: Vec<u8>,
    /// Data-in, cut to the allocation length but not to the expected length: the transport cuts and counts.
    pub data_in: Vec<u8>,
    /// Data-out bytes that the CDB asked for, for the residual of commands that write.
    pub asked_out_bytes: u32,
    /// The command has ended tasks of other nexuses (PREEMPT AND ABORT): it is answered when nothing of them is under way
    /// any more. What it ended, [`crate::Nexus::abort_epoch`] tells.
    pub ended_tasks: bool,
}

/// The difference between what the initiator expected and what the command moves (RFC 7143 11.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// Equal.
    None,
    /// The initiator expected this many bytes more.
    Underflow(u32),
    /// The command would have moved this many bytes more.
    Overflow(u32),
}

impl Residual {
    /// The residual of a transfer of `asked_bytes` against `expected_bytes`.
    pub fn of(expected_bytes: u32, asked_bytes: u32) -> Self {
        match asked_bytes.checked_sub(expected_bytes) {
            Some(0) => Self::None,
            Some(over) => Self::Overflow(over),
            None => Self::Underflow(expected_bytes - asked_bytes),
        }
    }
}

impl Reply {
    /// GOOD without data.
    pub fn good() -> Self {
        Self {
            status: Status::Good,
            sense: Vec::new(),
            data_in: Vec::new(),
            asked_out_bytes: 0,
            ended_tasks: false,
        }
    }

    /// GOOD with data-in, already cut to the allocation length.
    pub fn data(data_in: Vec<u8>) -> Self {
        Self { data_in, ..Self::good() }
    }

    /// A bare status without sense data.
    pub fn status(status: Status) -> Self {
        Self { status, ..Self::good() }
    }
}
