//! The I_T nexus: one initiator port at one target port, and its way to every logical unit.

use crate::{Expected, Extent, Inventory, MediumError, Plan, Reply, Status};
use std::sync::Arc;

/// An initiator port: iSCSI name and ISID (RFC 7143 4.2.7.1). Names are compared as they are given: normalise first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InitiatorPort {
    /// iSCSI name of the initiator.
    pub name: String,
    /// Initiator session ID.
    pub isid: [u8; 6],
}

/// Task management functions (SAM-5 7) that reach a logical unit or the whole target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskManagement {
    /// The caller aborts the one task; the unit only checks that the LUN exists.
    AbortTask,
    /// All tasks of this nexus on the LUN.
    AbortTaskSet,
    /// All tasks of all nexuses on the LUN.
    ClearTaskSet,
    /// Ends ACA; ACA is not supported, so nothing to do.
    ClearAca,
    /// LUN reset.
    LogicalUnitReset,
    /// Reset of every LUN of the target.
    TargetReset,
}

/// Outcome of a task management function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskManagementResponse {
    /// Done.
    Complete,
    /// LUN does not exist.
    NoSuchLun,
    /// Function is not supported.
    NotSupported,
}

/// One initiator logged in to one target port. Dropped by the caller after [`Nexus::logout`].
#[derive(Debug)]
pub struct Nexus {
    inventory: Arc<Inventory>,
    initiator: InitiatorPort,
    relative_port: u16,
}

impl Nexus {
    pub(crate) fn new(inventory: Arc<Inventory>, initiator: InitiatorPort, relative_port: u16) -> Self {
        Self { inventory, initiator, relative_port }
    }

    /// The initiator's side.
    pub fn initiator(&self) -> &InitiatorPort {
        &self.initiator
    }

    /// The target's side.
    pub fn relative_port(&self) -> u16 {
        self.relative_port
    }

    /// The target that this nexus sees.
    pub fn inventory(&self) -> &Arc<Inventory> {
        &self.inventory
    }

    /// Decides what a command means. `lun` is the 8-byte LUN field of the request, `cdb` its first 16 bytes.
    ///
    /// Cost of READ and WRITE: a few nanoseconds, no lock, no allocation.
    pub fn begin(&self, _lun: [u8; 8], _cdb: &[u8; 16], _expected: Expected) -> Plan {
        Plan::Reply(Reply::status(Status::Busy))
    }

    /// Ends a [`Plan::Write`]: exactly once per plan, after its last byte has reached the medium or it was given up.
    pub fn end_write(&self, _lun: [u8; 8], _extent: &Extent) {}

    /// The answer to a plain read or write whose medium failed.
    pub fn medium_failed(&self, _lun: [u8; 8], _error: MediumError) -> Reply {
        Reply::status(Status::Busy)
    }

    /// Counts aborts of this nexus's tasks on `lun` by others. When it differs from its value at `begin`, the command
    /// was aborted: free it and send no response. Tasks check by themselves.
    pub fn abort_epoch(&self, _lun: [u8; 8]) -> u32 {
        0
    }

    /// Runs the unit's part of a task management function. The caller ends the tasks of its own connections.
    pub fn manage(&self, _lun: [u8; 8], _function: TaskManagement) -> TaskManagementResponse {
        TaskManagementResponse::Complete
    }

    /// I_T nexus loss: the session has ended. Releases SCSI-2 reservations; persistent reservations stay.
    pub fn logout(&self) {}
}
