//! The `I_T` nexus: one initiator port at one target port, and its way to every logical unit.

use crate::{
    Expected, Extent, Inventory, MediumError, Plan, Reply,
    command::{self, missing_lun},
    inventory::lun_number,
    itl::Itl,
    sense::code,
};
use std::sync::{
    Arc,
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
    inventory: Arc<Inventory>,
    id: u64,
    port: Arc<PortPair>,
    /// Indexed by LUN.
    itls: Box<[Option<Arc<Itl>>]>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Nexus {
    pub(crate) fn new(inventory: Arc<Inventory>, initiator: InitiatorPort, relative_port: u16) -> Arc<Self> {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let port = Arc::new(PortPair { initiator, relative_port });
        let nexus = Arc::new_cyclic(|weak| {
            let luns = inventory.units().last().map_or(0, |(lun, _)| usize::from(*lun) + 1);
            let mut itls = vec![None; luns];
            for (lun, unit) in inventory.units() {
                let itl = Itl::new(unit.clone(), *lun, id, port.clone(), weak.clone());
                itls[usize::from(*lun)] = Some(Arc::new(itl));
            }
            Self { inventory, id, port, itls: itls.into() }
        });
        for itl in nexus.itls.iter().flatten() {
            itl.unit().attach(itl);
        }
        nexus
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

    /// The units that this nexus can reach.
    pub(crate) fn itls(&self) -> impl Iterator<Item = &Arc<Itl>> {
        self.itls.iter().flatten()
    }

    fn itl(&self, lun: [u8; 8]) -> Option<&Arc<Itl>> {
        self.itls.get(usize::from(lun_number(lun)?))?.as_ref()
    }

    /// Decides what a command means. `lun` is the 8-byte LUN field of the request, `cdb` its first 16 bytes.
    ///
    /// Cost of READ and WRITE (10 and 16): tens of nanoseconds, no lock, no allocation.
    pub fn begin(&self, lun: [u8; 8], cdb: &[u8; 16], expected: Expected) -> Plan {
        match self.itl(lun) {
            Some(itl) => itl.begin_plain(cdb, expected).unwrap_or_else(|| command::begin(itl, cdb, expected)),
            None => Plan::Reply(missing_lun(&self.inventory, cdb)),
        }
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
            for itl in self.itls() {
                itl.unit().reset();
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
        for itl in self.itls() {
            itl.unit().detach(self.id);
        }
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        self.logout();
    }
}
