//! Why a disk operation fails.

use thiserror::Error;

/// Why a disk operation failed. The upper disks pass on what they cannot mend.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DiskError {
    /// Outside the disk, or not in whole blocks: a mistake of the caller.
    #[error("{len_bytes} bytes at {offset_bytes} are outside the disk or not whole blocks")]
    OutOfRange {
        /// First byte.
        offset_bytes: u64,
        /// Length.
        len_bytes: u64,
    },
    /// The disk does not answer any more, and will not.
    #[error("disk \"{0}\" has failed")]
    Failed(String),
    /// These bytes cannot be read; writing them anew may help (SCSI: UNRECOVERED READ ERROR).
    #[error("{len_bytes} bytes at {offset_bytes} cannot be read")]
    Unreadable {
        /// First byte.
        offset_bytes: u64,
        /// Length.
        len_bytes: u64,
    },
    /// More disks have failed than the RAID level bears: what was stored is lost or out of reach.
    #[error("RAID set \"{0}\" has lost more disks than its level bears")]
    Lost(String),
    /// A thin pool has no free page left (SCSI: SPACE ALLOCATION FAILED WRITE PROTECT).
    #[error("pool \"{0}\" is full")]
    Full(String),
    /// The file system or device below a disk has no space left for what was not written before (SCSI: SPACE ALLOCATION
    /// FAILED WRITE PROTECT). The disk serves on, and writes work again once there is space.
    #[error("disk \"{0}\" has no space left on its file system")]
    NoSpace(String),
    /// A snapshot, or a volume that receives a replica, is not written by hosts (SCSI: DATA PROTECT).
    #[error("\"{0}\" is write-protected")]
    Protected(String),
    /// The disk holds something that the program cannot understand.
    #[error("\"{name}\": {reason}")]
    Corrupt {
        /// Which disk or pool.
        name: String,
        /// What is wrong.
        reason: String,
    },
}
