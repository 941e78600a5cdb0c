//! The array's storage as its owner sees it: made from a configuration, managed while it serves, asked how it is.

mod command;
mod config;
mod error;
mod status;

pub use command::{Command, Export, Reply};
pub use config::{DiskKind, DiskSpec, Initialise, PoolSpec, RaidLevelName, RaidSetSpec, StorageConfig};
pub use error::{Blame, Noun, StorageError};
pub use status::{
    DiskState, DiskStatus, PoolStatus, RaidSetState, RaidSetStatus, SnapshotStatus, StorageStatus, TaskKind,
    TaskStatus, VolumeStatus,
};
