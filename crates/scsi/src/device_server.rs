//! The device server of a target (SAM-5 4.5.7): the plan of a command to an existing or missing logical unit.

use crate::{
    Expected, Extent, MediumError, Nexus, Plan, Reply,
    command::{self, missing_lun},
    nexus::Itl,
};
use std::sync::Arc;

impl Nexus {
    /// Decides how to execute a command. `lun` is the 8-byte LUN field of the request, `cdb` its first 16 bytes.
    ///
    /// Cost of a plain READ or WRITE: tens of nanoseconds, no lock, no allocation.
    pub fn begin(&self, lun: [u8; 8], cdb: &[u8; 16], expected: Expected) -> Plan {
        match self.itl(lun) {
            Some(itl) => {
                itl.begin_plain(cdb, expected).unwrap_or_else(|| self.begin_full(itl, cdb, expected))
            }
            None => Plan::Reply(missing_lun(self.inventory(), cdb)),
        }
    }

    fn begin_full(&self, itl: &Arc<Itl>, cdb: &[u8; 16], expected: Expected) -> Plan {
        if itl.unit().is_retired() {
            return Plan::Reply(missing_lun(self.inventory(), cdb));
        }
        command::begin(itl, cdb, expected)
    }

    /// Ends a [`Plan::Write`]: exactly once per plan, after its last byte has reached the medium or the write has
    /// failed.
    pub fn end_write(&self, lun: [u8; 8], extent: &Extent) {
        if let Some(itl) = self.itl(lun) {
            itl.leave(extent);
        }
    }

    /// The answer to a plain read or write after an error of the medium.
    pub fn medium_failed(&self, lun: [u8; 8], error: MediumError) -> Reply {
        match self.itl(lun) {
            Some(itl) => itl.refuse(error.refusal()),
            None => missing_lun(self.inventory(), &[0; 16]),
        }
    }

    /// Counts aborts of this nexus's tasks on `lun`. If it differs from its value at `begin`, a task management
    /// function or PREEMPT AND ABORT has aborted the command: free it and send no response. Tasks check this
    /// themselves.
    pub fn abort_epoch(&self, lun: [u8; 8]) -> u32 {
        self.itl(lun).map_or(0, |itl| itl.abort_epoch())
    }
}
