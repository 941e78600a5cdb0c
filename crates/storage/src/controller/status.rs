//! The status of an array's storage. Counters only grow: the difference of two reports is the figure of the interval.

use crate::{
    disk::DiskStats,
    pool::{PoolStatus, VolumeStatus},
    raid::{RaidCounters, RaidLevel, RaidState, RaidTask},
};
use serde::Serialize;

/// Disks, RAID sets, pools and the pools' volumes at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StorageStatus {
    /// File systems of sparse disks.
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
    /// Free space.
    pub free_bytes: u64,
    /// Space that its sparse disks may still need.
    pub unallocated_bytes: u64,
}

/// A disk.
#[derive(Clone, Debug, Serialize)]
pub struct DiskStatus {
    /// Its name.
    pub name: String,
    /// The drive whose timing it has; None: no model.
    pub model: Option<String>,
    /// Its file or device; None: memory.
    pub path: Option<String>,
    /// Its state.
    pub state: DiskState,
    /// The RAID set of which it is a member or a spare.
    pub raid_set: Option<String>,
    /// Capacity; 0 for a missing disk.
    pub size_bytes: u64,
    /// It takes space as it is written.
    pub sparse: bool,
    /// The last write that needed space found none.
    pub lacks_space: bool,
    /// Its counters.
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
    /// Its place in a RAID set has no disk.
    Missing,
    /// It is ready to replace a failed member.
    Spare,
    /// A rebuild writes to it.
    Rebuilding,
    /// Its RAID set does not use it: it failed or was replaced before this start, or holds something else.
    Out,
    /// An inspection found that an array that serves uses it, and left it alone.
    InUse,
}

/// A RAID set.
#[derive(Clone, Debug, Serialize)]
pub struct RaidSetStatus {
    /// Its name.
    pub name: String,
    /// Distinguishes sets of the same name: 16 hexadecimal digits.
    pub id: String,
    /// The newest superblock of each group; later ones have greater numbers.
    pub generations: Vec<u64>,
    /// The RAID level.
    pub level: RaidLevel,
    /// Its state.
    pub state: RaidState,
    /// Its capacity.
    pub size_bytes: u64,
    /// The bytes of its members, without spares.
    pub raw_bytes: u64,
    /// Its background task.
    pub task: Option<RaidTask>,
    /// Its counters.
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
    /// iSCSI name of its target; None: it is not exported.
    pub target: Option<String>,
    /// Its logical unit number there.
    pub lun: Option<u16>,
    /// The state of its replica, if it has one.
    pub replica: Option<serde_json::Value>,
}
