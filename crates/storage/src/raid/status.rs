//! The status of a RAID set.

use super::RaidLevel;
use serde::Serialize;

/// The status of a RAID set.
#[derive(Clone, Debug, PartialEq)]
pub struct RaidStatus {
    /// Its name.
    pub name: String,
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
    pub counters: RaidCounters,
    /// Its members, in order; an empty slot has the name of its last disk.
    pub members: Vec<MemberStatus>,
    /// Names of its spares.
    pub spares: Vec<String>,
    /// Names of failed disks whose slot another disk has now.
    pub former: Vec<String>,
    /// Distinguishes sets of the same name.
    pub id: u64,
    /// The newest superblock of each group.
    pub generations: Vec<u64>,
}

/// See [`RaidStatus::state`]. The worst comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RaidState {
    /// It has all of its redundancy.
    Optimal,
    /// It serves with less redundancy than configured.
    Degraded,
    /// It has lost more disks than it tolerates.
    Failed,
}

/// Background work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RaidTask {
    /// Its kind.
    pub kind: TaskKind,
    /// The completed part, 0 to 1.
    pub done: f64,
    /// It waits until a disk has space.
    pub lacks_space: bool,
}

/// See [`RaidTask::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Parity or copies are made consistent: for the first time, or where a power cut may have left them torn.
    Initialise,
    /// A new member gets its contents.
    Rebuild,
    /// Everything is read and checked.
    Scrub,
}

/// A slot of a RAID set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// The disk's name.
    pub name: String,
    /// Its state.
    pub state: MemberState,
}

/// See [`MemberStatus::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It serves.
    Online,
    /// A rebuild writes to it.
    Rebuilding,
    /// It is not used.
    Failed,
    /// The disk was missing, or not up to date, when the set was assembled.
    Missing,
}

/// Counters since the start; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RaidCounters {
    /// Stripes (or the same rows of all their chunks) written as a whole, with parity from the new data alone. Copies
    /// have none.
    pub full_stripe_writes: u64,
    /// Writes that read old data and old parity first.
    pub read_modify_writes: u64,
    /// Writes that read the rest of the stripe first.
    pub reconstruct_writes: u64,
    /// Reads whose bytes were computed because a disk is missing.
    pub degraded_reads: u64,
    /// Blocks of 4 KiB that could not be read, or did not agree with their checksum or their stripe.
    pub mismatches_found: u64,
    /// Of those, repaired blocks.
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
