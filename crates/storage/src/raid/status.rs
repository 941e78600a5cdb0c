//! The status of a RAID set.

use super::RaidLevel;
use serde::Serialize;

/// A RAID set at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct RaidStatus {
    /// Its name.
    pub name: String,
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
    pub counters: RaidCounters,
    /// Its members, in order; places that are empty have the name of the last disk.
    pub members: Vec<MemberStatus>,
    /// Names of the spares that wait.
    pub spares: Vec<String>,
    /// Names of disks that failed in a place that another disk has now.
    pub former: Vec<String>,
    /// Tells sets of one name apart.
    pub id: u64,
    /// The newest superblock of each group.
    pub generations: Vec<u64>,
}

/// See [`RaidStatus::state`]. The worst comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RaidState {
    /// All redundancy is there.
    Optimal,
    /// It serves, with less redundancy than it should have.
    Degraded,
    /// It has lost more disks than it tolerates.
    Failed,
}

/// Background work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RaidTask {
    /// What it is.
    pub kind: TaskKind,
    /// How much of it is done, 0 to 1.
    pub done: f64,
    /// It waits until a disk has space.
    pub lacks_space: bool,
}

/// See [`RaidTask::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Parity or copies are made right: for the first time, or where a power cut may have left them torn.
    Initialise,
    /// A new member gets the contents of the old one.
    Rebuild,
    /// Everything is read and checked.
    Scrub,
}

/// A place in a RAID set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// The disk's name.
    pub name: String,
    /// How it is.
    pub state: MemberState,
}

/// See [`MemberStatus::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It serves.
    Online,
    /// Others' contents are being written to it.
    Rebuilding,
    /// It is out of use.
    Failed,
    /// The disk was not there, or not up to date, when the set was put together.
    Missing,
}

/// Counters since the start; all only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RaidCounters {
    /// Stripes (or parts of all their chunks) written whole, parity from the new data alone. Copies have none.
    pub full_stripe_writes: u64,
    /// Writes that read old data and old parity first.
    pub read_modify_writes: u64,
    /// Writes that read the rest of the stripe first.
    pub reconstruct_writes: u64,
    /// Reads whose bytes were computed because a disk is missing.
    pub degraded_reads: u64,
    /// Blocks of 4 KiB that could not be read, or did not agree with their checksum or their stripe.
    pub mismatches_found: u64,
    /// Of those, blocks made right.
    pub mismatches_mended: u64,
}

impl std::ops::AddAssign for RaidCounters {
    fn add_assign(&mut self, other: Self) {
        self.full_stripe_writes += other.full_stripe_writes;
        self.read_modify_writes += other.read_modify_writes;
        self.reconstruct_writes += other.reconstruct_writes;
        self.degraded_reads += other.degraded_reads;
        self.mismatches_found += other.mismatches_found;
        self.mismatches_mended += other.mismatches_mended;
    }
}
