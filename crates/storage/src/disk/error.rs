//! Why a disk operation fails.

use thiserror::Error;

/// Why a disk operation failed. Upper disks pass on errors that they cannot repair.
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
    /// The disk has failed for good.
    #[error("disk \"{0}\" has failed")]
    Failed(String),
    /// These bytes cannot be read; writing them again may help (SCSI: UNRECOVERED READ ERROR).
    #[error("{len_bytes} bytes at {offset_bytes} cannot be read")]
    Unreadable {
        /// First byte.
        offset_bytes: u64,
        /// Length.
        len_bytes: u64,
    },
    /// More disks have failed than the RAID level tolerates: the data is lost or cannot be read.
    #[error("RAID set \"{0}\" has lost more disks than its level bears")]
    Lost(String),
    /// A thin pool has no free page left (SCSI: SPACE ALLOCATION FAILED WRITE PROTECT).
    #[error("pool \"{0}\" is full")]
    Full(String),
    /// The file system or device below a disk has no space for blocks that were not written before (SCSI: SPACE
    /// ALLOCATION FAILED WRITE PROTECT). The disk continues to serve, and writes work again as soon as there is space.
    #[error("disk \"{0}\" has no space left on its file system")]
    NoSpace(String),
    /// Hosts cannot write to a snapshot, or to a volume that receives a replica (SCSI: DATA PROTECT).
    #[error("\"{0}\" is write-protected")]
    Protected(String),
    /// The disk holds data that the program cannot interpret.
    #[error("\"{name}\": {reason}")]
    Corrupt {
        /// Which disk or pool.
        name: String,
        /// What is wrong.
        reason: String,
    },
}
