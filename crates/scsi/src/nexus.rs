//! The `I_T` nexus: one initiator port at one target port, and its way to every logical unit.

use crate::{
    Expected, Extent, Inventory, LogicalUnit, MediumError, Plan, Reply,
    command::{self, missing_lun},
    itl::Itl,
    lun_table::LunTable,
};
use linerate_scsi_proto::{lun, sense::code};
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

/// An initiator port: iSCSI name and ISID (RFC 7143 4.2.7.1). Names are compared as they are given: normalise
/// first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InitiatorPort {
    /// iSCSI name of the initiator.
    pub name: String,
    /// Initiator session ID.
    pub isid: [u8; 6],
}

/// Both ends of a nexus: what a persistent reservation is registered for. Survives logout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortPair {
    pub(crate) initiator: InitiatorPort,
    pub(crate) relative_port: u16,
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
    /// Ends ACA; ACA is not supported, so there never is one.
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

/// One initiator logged in to one target port. Logs out when it is dropped.
#[derive(Debug)]
pub struct Nexus {
    this: Weak<Self>,
    inventory: Arc<Inventory>,
    id: u64,
    port: Arc<PortPair>,
    /// By the place of the unit in the inventory. Filled by the first command, so that an idle session of a target
    /// with many LUNs stays small; what happened to the unit before that is covered by the power-on attention
    /// that the first command meets.
    itls: LunTable<Arc<Itl>>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Nexus {
    pub(crate) fn new(inventory: Arc<Inventory>, initiator: InitiatorPort, relative_port: u16) -> Arc<Self> {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let port = Arc::new(PortPair { initiator, relative_port });
        let itls = LunTable::default();
        Arc::new_cyclic(|this| Self { this: this.clone(), inventory, id, port, itls })
    }

    /// The initiator's side.
    pub fn initiator(&self) -> &InitiatorPort {
        &self.port.initiator
    }

    /// The target's side.
    pub fn relative_port(&self) -> u16 {
        self.port.relative_port
    }

    /// The target that this nexus sees.
    pub fn inventory(&self) -> &Arc<Inventory> {
        &self.inventory
    }

    /// How many units it has sent commands to.
    pub fn units_used(&self) -> usize {
        self.itls.iter().filter(|(_, itl)| !itl.unit().is_retired()).count()
    }

    /// The first unit that `is_it` holds for.
    pub(crate) fn find(&self, is_it: impl Fn(&LogicalUnit) -> bool) -> Option<&Arc<Itl>> {
        let units = self.inventory.units();
        let (lun, _) = units.iter().find(|(_, unit)| is_it(unit))?;
        self.itl_at(self.inventory.index(*lun)?)
    }

    fn itl(&self, lun: [u8; 8]) -> Option<&Arc<Itl>> {
        self.itl_at(self.inventory.index(lun::from_field(lun)?)?)
    }

    fn itl_at(&self, place: usize) -> Option<&Arc<Itl>> {
        if let Some(itl) = self.itls.get(place) {
            return Some(itl);
        }
        let (lun, unit) = self.inventory.at(place)?;
        self.itls.get_or_fill(place, || {
            let itl = Arc::new(Itl::new(unit.clone(), lun, self.id, self.port.clone(), self.this.clone()));
            unit.attach(&itl);
            itl
        })
    }

    /// Decides what a command means. `lun` is the 8-byte LUN field of the request, `cdb` its first 16 bytes.
    ///
    /// Cost of a plain READ or WRITE: tens of nanoseconds, no lock, no allocation.
    pub fn begin(&self, lun: [u8; 8], cdb: &[u8; 16], expected: Expected) -> Plan {
        match self.itl(lun) {
            Some(itl) => {
                itl.begin_plain(cdb, expected).unwrap_or_else(|| self.begin_full(itl, cdb, expected))
            }
            None => Plan::Reply(missing_lun(&self.inventory, cdb)),
        }
    }

    fn begin_full(&self, itl: &Arc<Itl>, cdb: &[u8; 16], expected: Expected) -> Plan {
        if itl.unit().is_retired() {
            return Plan::Reply(missing_lun(&self.inventory, cdb));
        }
        command::begin(itl, cdb, expected)
    }

    /// Ends a [`Plan::Write`]: exactly once per plan, after its last byte has reached the medium or it was
    /// given up.
    pub fn end_write(&self, lun: [u8; 8], extent: &Extent) {
        if let Some(itl) = self.itl(lun) {
            itl.leave(extent);
        }
    }

    /// The answer to a plain read or write whose medium failed.
    pub fn medium_failed(&self, lun: [u8; 8], error: MediumError) -> Reply {
        match self.itl(lun) {
            Some(itl) => command::refuse(itl, error.refusal()),
            None => missing_lun(&self.inventory, &[0; 16]),
        }
    }

    /// Counts aborts of this nexus's tasks on `lun`. When it differs from its value at `begin`, the command
    /// was aborted by a task management function or by PREEMPT AND ABORT: free it and send no response. Tasks
    /// check by themselves.
    pub fn abort_epoch(&self, lun: [u8; 8]) -> u32 {
        self.itl(lun).map_or(0, |itl| itl.abort_epoch())
    }

    /// Runs the unit's part of a task management function. The caller ends the tasks of its own connections,
    /// and answers once [`Nexus::abort_epoch`] has been looked at for all of them.
    pub fn manage(&self, lun: [u8; 8], function: TaskManagement) -> TaskManagementResponse {
        if function == TaskManagement::TargetReset {
            for (_, unit) in self.inventory.units() {
                unit.reset();
            }
            return TaskManagementResponse::Complete;
        }
        let Some(itl) = self.itl(lun) else { return TaskManagementResponse::NoSuchLun };
        match function {
            TaskManagement::AbortTask | TaskManagement::TargetReset => {}
            TaskManagement::ClearAca => return TaskManagementResponse::NotSupported,
            TaskManagement::AbortTaskSet => itl.abort_tasks(),
            TaskManagement::ClearTaskSet => itl.unit().change(|state| {
                state.abort(|_| true);
                state.tell_all_but(Some(self.id), code::COMMANDS_CLEARED);
            }),
            TaskManagement::LogicalUnitReset => itl.unit().reset(),
        }
        TaskManagementResponse::Complete
    }

    /// `I_T` nexus loss: the session has ended. Aborts its tasks and releases SCSI-2 reservations; persistent
    /// reservations stay. May be called again.
    pub fn logout(&self) {
        for (_, itl) in self.itls.iter() {
            itl.unit().detach(self.id);
        }
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        self.logout();
    }
}
