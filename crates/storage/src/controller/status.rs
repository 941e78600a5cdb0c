//! The status of an array's storage. Counters only grow: the difference of two reports is that of the interval.

use crate::{
    disk::DiskStats,
    pool::{PoolStatus, VolumeStatus},
    raid::{RaidCounters, RaidLevel, RaidState, RaidTask},
};
use serde::Serialize;

/// Disks, RAID sets, pools and the pools' volumes at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StorageStatus {
    /// Those that sparse disks lie on.
    pub file_systems: Vec<FileSystemStatus>,
    /// In the order of the configuration.
    pub disks: Vec<DiskStatus>,
    /// In the order of the configuration.
    pub raid_sets: Vec<RaidSetStatus>,
    /// In the order of the configuration.
    pub pools: Vec<PoolStatus>,
    /// By name.
    pub volumes: Vec<PoolVolumeStatus>,
}

/// A file system from which sparse disks take their space.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct FileSystemStatus {
    /// A folder on it that has disks.
    pub folder: String,
    /// Names of the sparse disks on it.
    pub disks: Vec<String>,
    /// What it has left.
    pub free_bytes: u64,
    /// What its sparse disks may still take.
    pub unallocated_bytes: u64,
}

/// A disk.
#[derive(Clone, Debug, Serialize)]
pub struct DiskStatus {
    /// Its name.
    pub name: String,
    /// The drive whose timing it has; none: as fast as its bytes.
    pub model: Option<String>,
    /// What it is kept in; none: memory.
    pub path: Option<String>,
    /// How it is.
    pub state: DiskState,
    /// The RAID set that it is a member or a spare of.
    pub raid_set: Option<String>,
    /// Capacity; 0 of a disk that is not there.
    pub size_bytes: u64,
    /// It takes space as it is written.
    pub sparse: bool,
    /// It found no space when it last looked for some.
    pub lacks_space: bool,
    /// What it counted.
    #[serde(flatten)]
    pub stats: DiskStats,
}

/// See [`DiskStatus::state`].
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum DiskState {
    /// It serves.
    Online,
    /// It is out of use.
    Failed,
    /// Its place in a RAID set is empty.
    Missing,
    /// It waits for another to fail.
    Spare,
    /// Others' contents are being written to it.
    Rebuilding,
    /// Its RAID set does without it: it failed or was replaced before this start, or holds something else.
    Out,
}

/// A RAID set.
#[derive(Clone, Debug, Serialize)]
pub struct RaidSetStatus {
    /// Its name.
    pub name: String,
    /// Tells sets of one name apart: 16 hexadecimal digits.
    pub id: String,
    /// The newest superblock of each group; later ones have greater numbers.
    pub generations: Vec<u64>,
    /// How it stores.
    pub level: RaidLevel,
    /// How it is.
    pub state: RaidState,
    /// What it can hold.
    pub size_bytes: u64,
    /// The bytes of its members, without spares.
    pub raw_bytes: u64,
    /// What it does in the background.
    pub task: Option<RaidTask>,
    /// What it counted.
    #[serde(flatten)]
    pub counters: RaidCounters,
}

/// A volume of a pool, and how initiators see it.
#[derive(Clone, Debug, Serialize)]
pub struct PoolVolumeStatus {
    /// The volume.
    #[serde(flatten)]
    pub volume: VolumeStatus,
    /// The pool of its pages.
    pub pool: String,
    /// iSCSI name of the target that shows it; none: it is not shown.
    pub target: Option<String>,
    /// Its logical unit number there.
    pub lun: Option<u16>,
    /// The state of its replica, if it has one.
    pub replica: Option<serde_json::Value>,
}
