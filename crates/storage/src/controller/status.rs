//! What an array's storage says about itself. Counters only grow: differences of two looks are an interval's.

use super::config::RaidLevelName;
use crate::disk::DiskStats;
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
    pub volumes: Vec<VolumeStatus>,
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
    pub level: RaidLevelName,
    /// How it is.
    pub state: RaidSetState,
    /// What it can hold.
    pub size_bytes: u64,
    /// The bytes of its members, without spares.
    pub raw_bytes: u64,
    /// What it does in the background.
    pub task: Option<TaskStatus>,
    /// Stripes written whole, parity from the new data alone.
    pub full_stripe_writes: u64,
    /// Writes that read old data and old parity first.
    pub read_modify_writes: u64,
    /// Writes that read the rest of the stripe first.
    pub reconstruct_writes: u64,
    /// Reads whose bytes were computed because a disk is missing.
    pub degraded_reads: u64,
    /// Blocks that did not agree with their checksum or their stripe.
    pub mismatches_found: u64,
    /// Of those, blocks made right.
    pub mismatches_mended: u64,
}

/// See [`RaidSetStatus::state`].
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum RaidSetState {
    /// All redundancy is there.
    Optimal,
    /// It serves, with less redundancy than it should have.
    Degraded,
    /// It has lost more disks than it bears.
    Failed,
}

/// Background work of a RAID set.
#[derive(Clone, Debug, Serialize)]
pub struct TaskStatus {
    /// What it is.
    pub kind: TaskKind,
    /// How much of it is done, 0 to 1.
    pub done: f64,
    /// It waits until a disk has space.
    pub lacks_space: bool,
}

/// See [`TaskStatus::kind`].
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Parity or copies are being made right for the first time.
    Initialise,
    /// A new member gets the contents of the old one.
    Rebuild,
    /// Everything is read and checked.
    Scrub,
}

/// A pool.
#[derive(Clone, Debug, Serialize)]
pub struct PoolStatus {
    /// Its name.
    pub name: String,
    /// What its pages can hold.
    pub size_bytes: u64,
    /// What pages that are in use hold.
    pub used_bytes: u64,
    /// Sum of its volumes' capacities.
    pub promised_bytes: u64,
    /// More of it is in use than it should be.
    pub warning: bool,
    /// Why nothing of it can be changed any more; none: all is well.
    pub failure: Option<String>,
}

/// A pool's volume.
#[derive(Clone, Debug, Serialize)]
pub struct VolumeStatus {
    /// Its name.
    pub name: String,
    /// Where its pages come from.
    pub pool: String,
    /// Capacity.
    pub size_bytes: u64,
    /// What its pages hold, without those that only snapshots refer to.
    pub used_bytes: u64,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<SnapshotStatus>,
    /// iSCSI name of the target that shows it; none: it is not shown.
    pub target: Option<String>,
    /// Its logical unit number there.
    pub lun: Option<u16>,
    /// How its replica is, if it has one.
    pub replica: Option<serde_json::Value>,
}

/// A snapshot of a volume.
#[derive(Clone, Debug, Serialize)]
pub struct SnapshotStatus {
    /// Its name.
    pub name: String,
    /// When it was taken, seconds since 1970.
    pub at_s: f64,
}
