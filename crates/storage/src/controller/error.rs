//! Why an array's storage cannot be opened, or refuses a command.

use crate::{amount::size_text, disk::DiskError, pool::PoolError, raid::RaidError, replica::ReplicaError};
use linerate_blame::Blame;
use std::io;
use thiserror::Error;

/// The kind of thing that a name in a configuration or a command refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noun {
    /// A disk.
    Disk,
    /// A RAID set.
    RaidSet,
    /// A pool.
    Pool,
    /// A volume.
    Volume,
    /// A snapshot.
    Snapshot,
    /// An iSCSI target.
    Target,
}

impl std::fmt::Display for Noun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Disk => "disk",
            Self::RaidSet => "RAID set",
            Self::Pool => "pool",
            Self::Volume => "volume",
            Self::Snapshot => "snapshot",
            Self::Target => "target",
        })
    }
}

/// Why an array's storage cannot be opened, or refuses a command. A refused command changes nothing unless the variant says
/// so.
#[derive(Debug, Error)]
pub enum StorageError {
    /// An unknown name.
    #[error("there is no {noun} \"{name}\"; {}", has(known))]
    Unknown {
        /// The kind that was expected.
        noun: Noun,
        /// The name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// A name is missing, and there is more than one choice, or none.
    #[error("name the {noun}; {}", has(known))]
    Unnamed {
        /// The kind of the missing name.
        noun: Noun,
        /// The existing names.
        known: Vec<String>,
    },
    /// A name is in use.
    #[error("there is a {noun} \"{name}\" already; choose another name")]
    Taken {
        /// The kind that uses it.
        noun: Noun,
        /// The name.
        name: String,
    },
    /// An invalid name.
    #[error("\"{0}\" is not a valid name: 1 to 48 letters, digits, hyphens, underscores and dots")]
    Name(String),
    /// Something is used by two owners.
    #[error("{noun} \"{name}\" is used by \"{first}\" and by \"{second}\"; it can have one place only")]
    UsedTwice {
        /// What it is.
        noun: Noun,
        /// Its name.
        name: String,
        /// The first user.
        first: String,
        /// The second user.
        second: String,
    },
    /// An invalid value, and the rule for it.
    #[error("{noun} \"{name}\": `{key}` {rule}")]
    Value {
        /// The kind of its owner.
        noun: Noun,
        /// Its name.
        name: String,
        /// The key.
        key: &'static str,
        /// The valid values.
        rule: String,
    },
    /// The current state does not permit it.
    #[error("{0}")]
    Refused(String),
    /// A file or block device cannot be opened.
    #[error("disk \"{name}\": cannot open {path:?} ({error}); {way_out}")]
    Open {
        /// The disk's name.
        name: String,
        /// Its file or device.
        path: String,
        /// Why not.
        error: io::Error,
        /// What to do about it.
        way_out: &'static str,
    },
    /// There is too little space for new disks.
    #[error(
        "{} in {folder}: {} needed, and {} free; free some space, make them smaller, or say `sparse`: then they take \
         space as they are written",
        disks.join(", "),
        size_text(*needed_bytes),
        size_text(*free_bytes)
    )]
    Room {
        /// Their names.
        disks: Vec<String>,
        /// Their folder.
        folder: String,
        /// The space that all of them need.
        needed_bytes: u64,
        /// The free space of the file system.
        free_bytes: u64,
    },
    /// A disk holds data that would be overwritten.
    #[error(
        "disk \"{name}\" ({path}): {what}. Nothing was changed. If it may be lost, create RAID set \"{set}\" again: \
         --create {set}"
    )]
    NotBlank {
        /// The disk's name.
        name: String,
        /// Its file or device.
        path: String,
        /// What it holds.
        what: String,
        /// The RAID set that would be made on it.
        set: String,
    },
    /// A RAID set that was served before is missing.
    #[error(
        "RAID set \"{set}\" was served before, and none of its disks holds it now ({causes}). Nothing was changed. Bring \
         its disks back; only if it is lost for good, create it again: --create {set}"
    )]
    Vanished {
        /// Its name.
        set: String,
        /// Why its disks are missing.
        causes: String,
    },
    /// Too many members of a RAID set are missing.
    #[error(
        "RAID set \"{set}\" has too few disks to serve ({causes}). Nothing was changed. Bring them back; only if it is \
         lost for good, create it again: --create {set}"
    )]
    TooFew {
        /// Its name.
        set: String,
        /// Which disks, and why.
        causes: String,
    },
    /// The disks belong to another RAID set of that name.
    #[error(
        "these are not the disks of one RAID set \"{set}\" ({causes}). Nothing was changed. Remove those that do \
         not belong here, or, if they do, remove the array's record of what it served"
    )]
    OtherSet {
        /// Its name.
        set: String,
        /// Which disks hold which set.
        causes: String,
    },
    /// The disks found are not the newest ones.
    #[error(
        "the disks of RAID set \"{set}\" that are there are older than what was served last (generation {found}, \
         {served} was served): later writes are on disks that are missing. Nothing was changed. Bring them \
         back, or, if these are meant, remove the array's record of what it served"
    )]
    Old {
        /// Its name.
        set: String,
        /// The newest generation found.
        found: u64,
        /// The generation that was served.
        served: u64,
    },
    /// Two disks have the same slot.
    #[error(
        "disks \"{one}\" and \"{other}\" of RAID set \"{set}\" are copies of each other: remove the older one"
    )]
    Twins {
        /// The set.
        set: String,
        /// One of them.
        one: String,
        /// The other one.
        other: String,
    },
    /// A pool that was served before is missing.
    #[error(
        "pool \"{pool}\" {why}. Nothing was made. Restore its RAID sets; only if it is lost for good, create it \
         again: --create {pool}"
    )]
    NoPool {
        /// Its name.
        pool: String,
        /// What was found instead.
        why: String,
    },
    /// The host has too little memory for a disk.
    #[error("disk \"{name}\": the host has no {} for it ({error}); make it smaller", size_text(*size_bytes))]
    Memory {
        /// The disk's name.
        name: String,
        /// Its size.
        size_bytes: u64,
        /// Why not.
        error: io::Error,
    },
    /// A RAID set cannot be made, assembled or changed.
    #[error("RAID set \"{set}\": {error}")]
    Raid {
        /// Its name.
        set: String,
        /// Why not.
        error: RaidError,
    },
    /// A pool cannot be opened or changed.
    #[error("pool \"{pool}\": {error}")]
    Pool {
        /// Its name.
        pool: String,
        /// Why not.
        error: PoolError,
    },
    /// The host lacks what the engine needs.
    #[error(
        "the host cannot run the storage engine ({0}); raise the limits of processes, open files or memory"
    )]
    Host(String),
    /// Replication cannot continue.
    #[error(transparent)]
    Replica(#[from] ReplicaError),
    /// The storage thread has ended.
    #[error("the storage engine has ended; this is a mistake in the program")]
    Gone,
}

impl StorageError {
    /// What to do about it, where neither the message nor the kind of error says so.
    pub fn way_out(&self) -> Option<String> {
        match self {
            Self::Replica(error) => error.way_out(),
            _ => None,
        }
    }

    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Open { .. }
            | Self::Memory { .. }
            | Self::Room { .. }
            | Self::Vanished { .. }
            | Self::TooFew { .. }
            | Self::Old { .. }
            | Self::NoPool { .. }
            | Self::Host(_) => Blame::Host,
            Self::Raid { error: RaidError::Disk(error), .. }
            | Self::Pool { error: PoolError::Disk(error), .. } => of_disk(error),
            Self::Replica(error) => error.blame(),
            Self::Gone => Blame::Us,
            _ => Blame::User,
        }
    }
}

fn of_disk(error: &DiskError) -> Blame {
    match error {
        DiskError::Full(_) | DiskError::Protected(_) => Blame::User,
        DiskError::OutOfRange { .. } => Blame::Us,
        _ => Blame::Host,
    }
}

fn has(known: &[String]) -> String {
    if known.is_empty() { "there is none".into() } else { format!("there are: {}", known.join(", ")) }
}
