//! The task manager of a target (SAM-5 7): functions that abort tasks or reset units.

use crate::Nexus;
use linerate_scsi_proto::sense::code;

/// Task management functions (SAM-5 7) for a logical unit or the whole target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskManagement {
    /// The caller aborts the task; the unit only checks that the LUN exists.
    AbortTask,
    /// All tasks of this nexus on the LUN.
    AbortTaskSet,
    /// All tasks of all nexuses on the LUN.
    ClearTaskSet,
    /// Clears ACA; ACA is not supported, so there is none.
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

impl Nexus {
    /// Executes the unit's part of a task management function. The caller ends the tasks of its own connections, and
    /// answers after it has checked [`Nexus::abort_epoch`] for all of them.
    pub fn manage(&self, lun: [u8; 8], function: TaskManagement) -> TaskManagementResponse {
        if function == TaskManagement::TargetReset {
            for (_, unit) in self.inventory().units() {
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
                state.tell_all_but(Some(self.id()), code::COMMANDS_CLEARED);
            }),
            TaskManagement::LogicalUnitReset => itl.unit().reset(),
        }
        TaskManagementResponse::Complete
    }
}
