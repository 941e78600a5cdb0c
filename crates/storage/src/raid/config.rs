//! The configuration of a RAID set, and why it is refused.

use crate::{amount::size_text, disk::DiskError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, ops::RangeInclusive, str::FromStr};
use thiserror::Error;

/// The configuration of a RAID set. Chunk and level are fixed when it is made; the rest may change at each start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaidConfig {
    /// Name in messages, statistics and on the members.
    pub name: String,
    /// The RAID level.
    pub level: RaidLevel,
    /// Bytes on one disk before the next disk is used: a power of two, 4 KiB to 1 MiB.
    pub chunk_bytes: u32,
    /// For RAID 50 and 60: how many RAID 5 or 6 sets it is striped over. Other levels ignore it.
    pub groups: usize,
    /// How parity or copies are initialised when the set is made.
    pub initialise: Initialise,
    /// When parity groups write through their redo journal.
    pub journal: JournalUse,
    /// Limit of the bytes per second that a rebuild reads from each disk; None: no limit.
    pub rebuild_bytes_per_s: Option<u64>,
    /// Keep a CRC32C of every 4 KiB, so that silent corruption is found and repaired. RAID 0 cannot repair.
    pub checksums: bool,
}

/// How a RAID set stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RaidLevel {
    /// Striped, without redundancy.
    Raid0,
    /// Copies: one per disk, two disks or more.
    Raid1,
    /// One parity chunk per stripe.
    Raid5,
    /// Two parity chunks per stripe.
    Raid6,
    /// Striped over pairs of copies.
    Raid10,
    /// Striped over RAID 5 sets.
    Raid50,
    /// Striped over RAID 6 sets.
    Raid60,
}

/// How the parity or the copies of a new set are initialised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Initialise {
    /// In the background, while the set serves.
    #[default]
    Background,
    /// No initialisation: the disks hold zeros, or data that agree.
    AssumeClean,
}

/// When a parity group writes through its redo journal. With the journal everything is written three times (RAID 6 with
/// all members: four times).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JournalUse {
    /// While a member is missing. If a disk fails in a power cut, blocks of stripes that were being written may be
    /// lost.
    #[default]
    Degraded,
    /// Always: a power cut loses nothing, even if disks fail with it (as many as the level tolerates).
    Always,
}

/// The number of groups, the disks of each group, and their redundancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) groups: usize,
    pub(crate) members: usize,
    pub(crate) code: Code,
}

/// The redundancy of a group of disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// None; the group is one disk.
    None,
    /// Every member holds the same.
    Copies,
    /// This many of a stripe's chunks are parity: 1 (P) or 2 (P and Q).
    Parity(usize),
}

/// Most disks of one mirror or parity group.
const GROUP_DISKS_MAX: usize = 32;
/// Sizes of a chunk in bytes; powers of two.
pub const CHUNK_BYTES: RangeInclusive<u32> = 4 << 10..=1 << 20;

impl RaidConfig {
    /// A set with the defaults: chunks of 64 KiB, two groups, initialised in the background, checksums.
    pub fn new(name: impl Into<String>, level: RaidLevel) -> Self {
        Self {
            name: name.into(),
            level,
            chunk_bytes: 64 << 10,
            groups: 2,
            initialise: Initialise::default(),
            journal: JournalUse::default(),
            rebuild_bytes_per_s: None,
            checksums: true,
        }
    }

    /// Checks the configuration for this number of disks.
    pub(crate) fn shape(&self, disks: usize) -> Result<Shape, RaidError> {
        if !self.chunk_bytes.is_power_of_two() || !CHUNK_BYTES.contains(&self.chunk_bytes) {
            return Err(RaidError::Chunk(self.chunk_bytes));
        }
        self.level.shape(disks, self.groups)
    }
}

impl RaidLevel {
    const NAMES: [(Self, &'static str); 7] = [
        (Self::Raid0, "raid0"),
        (Self::Raid1, "raid1"),
        (Self::Raid5, "raid5"),
        (Self::Raid6, "raid6"),
        (Self::Raid10, "raid10"),
        (Self::Raid50, "raid50"),
        (Self::Raid60, "raid60"),
    ];

    /// All levels.
    pub const ALL: [Self; 7] =
        [Self::Raid0, Self::Raid1, Self::Raid5, Self::Raid6, Self::Raid10, Self::Raid50, Self::Raid60];

    /// Groups and members of a set of this many disks; `groups` is used for RAID 50 and 60 only.
    pub(crate) fn shape(self, disks: usize, groups: usize) -> Result<Shape, RaidError> {
        let (groups, least, code) = match self {
            Self::Raid0 => (disks, 1, Code::None),
            Self::Raid1 => (1, 2, Code::Copies),
            Self::Raid10 => (disks / 2, 2, Code::Copies),
            Self::Raid5 => (1, 3, Code::Parity(1)),
            Self::Raid6 => (1, 4, Code::Parity(2)),
            Self::Raid50 => (groups, 3, Code::Parity(1)),
            Self::Raid60 => (groups, 4, Code::Parity(2)),
        };
        let wrong = RaidError::Disks { level: self, disks, groups, least };
        if groups == 0 || !disks.is_multiple_of(groups) {
            return Err(wrong);
        }
        let members = disks / groups;
        let nested = matches!(self, Self::Raid10 | Self::Raid50 | Self::Raid60);
        if !(least..=GROUP_DISKS_MAX).contains(&members) || (nested && groups < 2) {
            return Err(wrong);
        }
        Ok(Shape { groups, members, code })
    }

    /// Why a set of this many disks and spares cannot have this level. `groups` is used for RAID 50 and 60 only.
    pub fn check(self, disks: usize, groups: usize, spares: usize) -> Result<(), RaidError> {
        self.shape(disks, groups)?;
        if self == Self::Raid0 && spares > 0 {
            return Err(RaidError::SparesOfRaid0);
        }
        Ok(())
    }

    /// Whether it has parity, and so a redo journal.
    pub fn has_parity(self) -> bool {
        matches!(self, Self::Raid5 | Self::Raid6 | Self::Raid50 | Self::Raid60)
    }

    /// For messages: RAID 5.
    fn title(self) -> String {
        self.to_string().to_uppercase().replace("RAID", "RAID ")
    }

    /// How many disks may fail without a loss, in any combination.
    pub fn tolerance(self, members: usize) -> usize {
        match self {
            Self::Raid0 => 0,
            Self::Raid1 => members.saturating_sub(1),
            Self::Raid5 | Self::Raid10 | Self::Raid50 => 1,
            Self::Raid6 | Self::Raid60 => 2,
        }
    }
}

/// Why this number of disks is wrong for a level.
fn disks_text(level: RaidLevel, disks: usize, groups: usize, least: usize) -> String {
    let title = level.title();
    let divided = groups > 0 && disks.is_multiple_of(groups) && disks / groups >= least;
    match level {
        RaidLevel::Raid50 | RaidLevel::Raid60 if groups < 2 => {
            format!("{title} needs at least 2 groups; there are {groups}")
        }
        RaidLevel::Raid50 | RaidLevel::Raid60 if divided => {
            format!("a group of {title} has at most {GROUP_DISKS_MAX} disks; these are {}", disks / groups)
        }
        RaidLevel::Raid50 | RaidLevel::Raid60 => {
            format!("{disks} disks do not divide into {groups} groups of at least {least}, as {title} needs")
        }
        RaidLevel::Raid10 => {
            format!("{title} needs at least 4 disks and an even number; these are {disks}")
        }
        _ if disks > GROUP_DISKS_MAX => {
            format!("{title} has at most {GROUP_DISKS_MAX} disks; these are {disks}")
        }
        _ => format!("{title} needs at least {least} disks; these are {disks}"),
    }
}

impl fmt::Display for RaidLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(level, _)| level == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for RaidLevel {
    type Err = RaidError;

    fn from_str(text: &str) -> Result<Self, RaidError> {
        let found = Self::NAMES.iter().find(|(_, name)| *name == text);
        found.map(|(level, _)| *level).ok_or_else(|| RaidError::Level(text.to_owned()))
    }
}

/// Why a RAID set cannot be made, assembled or changed. The user can correct all of them but [`RaidError::Disk`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RaidError {
    /// Not a level.
    #[error("\"{0}\" is not a RAID level: take raid0, raid1, raid5, raid6, raid10, raid50 or raid60")]
    Level(String),
    /// Not a chunk size.
    #[error("a chunk of {}: take a power of two from 4 KiB to 1 MiB", size_text((*.0).into()))]
    Chunk(u32),
    /// The number of disks is wrong for the level.
    #[error("{}", disks_text(*level, *disks, *groups, *least))]
    Disks {
        /// The level.
        level: RaidLevel,
        /// Disks given.
        disks: usize,
        /// Groups to be made of them.
        groups: usize,
        /// Fewest disks of a group.
        least: usize,
    },
    /// RAID 0 has no redundancy.
    #[error("RAID 0 has no redundancy from which a spare could be filled")]
    SparesOfRaid0,
    /// A disk is too small.
    #[error("disk \"{name}\" has {}, at least {} are needed", size_text(*size_bytes), size_text(*least_bytes))]
    TooSmall {
        /// The disk.
        name: String,
        /// Its capacity.
        size_bytes: u64,
        /// The size that it needs.
        least_bytes: u64,
    },
    /// Its blocks are larger than those of the others, or than those of the set when it was made.
    #[error("disk \"{name}\" has blocks of {block_bytes} bytes, the RAID set of {set_bytes}")]
    Blocks {
        /// The disk.
        name: String,
        /// Its blocks.
        block_bytes: u32,
        /// The set's.
        set_bytes: u32,
    },
    /// No member has this name.
    #[error("RAID set \"{set}\" has no disk \"{disk}\"")]
    NoSuchDisk {
        /// The set.
        set: String,
        /// The name.
        disk: String,
    },
    /// Two disks of one name.
    #[error("RAID set \"{set}\" has a disk \"{disk}\" already")]
    SameName {
        /// The set.
        set: String,
        /// The name.
        disk: String,
    },
    /// Data would be lost.
    #[error(
        "RAID set \"{set}\" cannot do without disk \"{disk}\": wait for the rebuild, or replace what has failed"
    )]
    Needed {
        /// The set.
        set: String,
        /// The disk.
        disk: String,
    },
    /// A scrub would have no result.
    #[error("RAID set \"{set}\" cannot be scrubbed: it has {why}")]
    NoScrub {
        /// The set.
        set: String,
        /// The reason.
        why: &'static str,
    },
    /// The disks hold no such set.
    #[error("none of the disks holds RAID set \"{0}\": make it first")]
    NotFound(String),
    /// The disks hold a set that differs from the configuration.
    #[error("RAID set \"{set}\" was made otherwise: {what}")]
    Differs {
        /// The set.
        set: String,
        /// What differs.
        what: String,
    },
    /// Too few of its disks are present and up to date.
    #[error("RAID set \"{set}\" lacks disks: {lacks}")]
    Incomplete {
        /// The set.
        set: String,
        /// Names of the others, and the reasons.
        lacks: String,
    },
    /// A disk operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_must_suit_the_level() {
        let shape = |level: &str, disks| RaidConfig::new("r", level.parse().unwrap()).shape(disks);
        let made = |groups, members, code| Ok(Shape { groups, members, code });
        assert_eq!(shape("raid0", 3), made(3, 1, Code::None));
        assert_eq!(shape("raid1", 3), made(1, 3, Code::Copies));
        assert_eq!(shape("raid10", 8), made(4, 2, Code::Copies));
        assert_eq!(shape("raid50", 28), made(2, 14, Code::Parity(1)));
        for (level, disks) in [
            ("raid0", 0),
            ("raid1", 1),
            ("raid5", 2),
            ("raid6", 3),
            ("raid10", 5),
            ("raid10", 2),
            ("raid60", 7),
        ] {
            assert!(matches!(shape(level, disks), Err(RaidError::Disks { .. })), "{level} of {disks}");
        }
        let odd = RaidConfig { chunk_bytes: 3 << 12, ..RaidConfig::new("r", RaidLevel::Raid0) };
        assert_eq!(odd.shape(2), Err(RaidError::Chunk(3 << 12)));
    }
}
