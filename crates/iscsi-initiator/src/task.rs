//! A task for a session: the owner, the command, its data, and its blocks.

use crate::event::IoError;
use crate::request::ReadInto;
use linerate_io::Seg;
use linerate_iscsi_proto::pdu::Lun;

/// The part that waits for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The caller's I/O.
    Io { device: u32, slot: u32 },
    /// The probe that identifies a LUN after every login.
    Probe { device: u32 },
    /// A poll of the access states of a device's target port groups.
    AccessPoll { device: u32 },
    /// Our NOP-Out ping.
    Ping,
    /// ABORT TASK of the task with this tag.
    Abort { itt: u32 },
    /// `SendTargets`.
    Text,
    /// Logout.
    Logout,
}

/// The end of a command of the initiator itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// GOOD.
    Good,
    /// Not.
    Failed(IoError),
}

/// The data of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload {
    None,
    /// A read, and the destination of its data.
    In(ReadInto),
    /// A read whose data is kept in [`Task::reply`].
    Kept,
    /// A write out of a region.
    Out(Seg),
    /// The parameter list of an UNMAP of these blocks.
    UnmapList {
        block: u64,
        blocks: u32,
    },
}

/// The blocks of a task, to keep retried writes in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) changes: bool,
}

impl Footprint {
    /// Everything: for commands without a range.
    pub(crate) const ALL: Self = Self { start: 0, end: u64::MAX, changes: true };

    /// True if the order of the two matters.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        (self.changes || other.changes) && self.start < other.end && other.start < self.end
    }
}

/// The parameters of a new task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewTask {
    pub(crate) owner: Owner,
    pub(crate) lun: Lun,
    pub(crate) cdb: [u8; 16],
    pub(crate) len_bytes: u32,
    pub(crate) payload: Payload,
    pub(crate) footprint: Footprint,
    pub(crate) order: u64,
    pub(crate) requeued: bool,
    pub(crate) losses: u8,
}

impl NewTask {
    /// A task that is not a SCSI command.
    pub(crate) fn control(owner: Owner) -> Self {
        Self {
            owner,
            lun: Lun(0),
            cdb: [0; 16],
            len_bytes: 0,
            payload: Payload::None,
            footprint: Footprint { start: 0, end: 0, changes: false },
            order: 0,
            requeued: false,
            losses: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_overlapping_changes_conflict() {
        let at = |start, end, changes| Footprint { start, end, changes };
        assert!(at(0, 8, true).conflicts(&at(4, 6, false)));
        assert!(at(0, 8, false).conflicts(&at(7, 9, true)));
        assert!(!at(0, 8, false).conflicts(&at(0, 8, false)));
        assert!(!at(0, 8, true).conflicts(&at(8, 9, true)));
        assert!(Footprint::ALL.conflicts(&at(5, 6, false)));
    }
}
