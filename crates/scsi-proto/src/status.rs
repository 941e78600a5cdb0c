//! SCSI status codes (SAM-5 5.3.1).

use std::fmt;

/// A status byte with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Good = 0x00,
    /// Failed; the sense data has the reason.
    CheckCondition = 0x02,
    /// PRE-FETCH: the blocks fit in the cache.
    ConditionMet = 0x04,
    /// The unit cannot accept the command now.
    Busy = 0x08,
    /// The reservation of another initiator forbids it.
    ReservationConflict = 0x18,
    /// The task set has no space for another task.
    TaskSetFull = 0x28,
    /// An auto contingent allegiance condition exists.
    AcaActive = 0x30,
    /// Aborted by another initiator (control mode page, TAS).
    TaskAborted = 0x40,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 8] = [
        Self::Good,
        Self::CheckCondition,
        Self::ConditionMet,
        Self::Busy,
        Self::ReservationConflict,
        Self::TaskSetFull,
        Self::AcaActive,
        Self::TaskAborted,
    ];

    /// The status of a byte; None if SAM-5 does not define it.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| *status as u8 == code)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "GOOD",
            Self::CheckCondition => "CHECK CONDITION",
            Self::ConditionMet => "CONDITION MET",
            Self::Busy => "BUSY",
            Self::ReservationConflict => "RESERVATION CONFLICT",
            Self::TaskSetFull => "TASK SET FULL",
            Self::AcaActive => "ACA ACTIVE",
            Self::TaskAborted => "TASK ABORTED",
        })
    }
}
