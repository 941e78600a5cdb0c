//! The answer to a finished command.

use linerate_scsi_proto::status::Status;

/// A finished command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status byte.
    pub status: Status,
    /// Encoded sense data, in the format that `D_SENSE` selects; empty unless CHECK CONDITION.
    pub sense: Vec<u8>,
    /// Data-in, cut to the allocation length but not to the expected length: the transport cuts and counts.
    pub data_in: Vec<u8>,
    /// Data-out bytes that the CDB requires, for the residual of commands that write.
    pub asked_out_bytes: u32,
    /// The command has ended tasks of other nexuses (PREEMPT AND ABORT): it is answered when none of their operations
    /// is in progress any more. [`crate::Nexus::abort_epoch`] identifies the ended tasks.
    pub ended_tasks: bool,
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
