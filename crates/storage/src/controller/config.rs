//! The storage configuration of an array, as read from JSON.
//!
//! Unknown keys are refused. [`super::Controller::open`] checks whether the parts fit together.

use crate::raid::{Initialise, JournalUse, RaidLevel};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Disks, RAID sets of disks, pools on RAID sets.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct StorageConfig {
    /// The disks.
    pub disks: Vec<DiskSpec>,
    /// The RAID sets.
    pub raid_sets: Vec<RaidSetSpec>,
    /// The pools.
    pub pools: Vec<PoolSpec>,
    /// What an array remembers of earlier starts.
    pub served: Served,
    /// Names of RAID sets and pools that are created again; what their disks hold is lost.
    pub create: Vec<String>,
}

/// What was served before. It is created again only if its name is in `create`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Served {
    /// RAID sets by name.
    pub raid_sets: BTreeMap<String, ServedSet>,
    /// Names of pools.
    pub pools: Vec<String>,
    /// Names of disks that were kept in files.
    pub disks: Vec<String>,
}

/// A RAID set that was served before.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ServedSet {
    /// Distinguishes sets of the same name: 16 hexadecimal digits.
    pub id: String,
    /// The newest superblock of each group, as it was then: later ones have greater numbers.
    #[serde(default)]
    pub generations: Vec<u64>,
}

impl ServedSet {
    /// The id as a number.
    pub(super) fn id(&self) -> Option<u64> {
        u64::from_str_radix(&self.id, 16).ok()
    }
}

/// One disk, or several equal ones.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Its name. With `count`, the disks are called `<name>0`, `<name>1` and so on.
    pub name: String,
    /// Where its bytes are.
    #[serde(default)]
    pub kind: DiskKind,
    /// Capacity; may be left out for a file or block device that exists.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// File or block device; with `count`, the number of the disk is appended.
    #[serde(default)]
    pub path: Option<String>,
    /// A file disk takes space as it is written, and may find none; otherwise a file is allocated as a whole.
    #[serde(default)]
    pub sparse: bool,
    /// Smallest unit that is written as a whole: 512 or 4096.
    #[serde(default = "default_sector")]
    pub sector_bytes: u32,
    /// Name of the drive whose timing it has, such as `sata_7200_3_5`; `null`: no model.
    #[serde(default)]
    pub model: Option<String>,
    /// How long an operation of a file disk may take before the disk counts as failed.
    #[serde(default = "default_io_timeout")]
    pub io_timeout_s: f64,
    /// How many disks this describes; `null`: one, whose name has no number.
    #[serde(default)]
    pub count: Option<u32>,
}

/// See [`DiskSpec::kind`].
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum DiskKind {
    /// Lost when the array stops.
    #[default]
    Memory,
    /// In a file or on a block device.
    File,
}

/// A RAID set.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RaidSetSpec {
    /// Its name.
    pub name: String,
    /// The RAID level.
    pub level: RaidLevel,
    /// Names of its member disks, in order.
    pub disks: Vec<String>,
    /// Names of disks that take over for a member that fails.
    #[serde(default)]
    pub spares: Vec<String>,
    /// Bytes on one disk before the next disk is used.
    #[serde(default = "default_chunk")]
    pub chunk_bytes: u32,
    /// Of RAID 50 and 60: how many RAID 5 or 6 sets it is striped over.
    #[serde(default = "default_groups")]
    pub groups: u32,
    /// How parity or copies are initialised when the set is made.
    #[serde(default)]
    pub initialise: Initialise,
    /// When parity groups write through their redo journal.
    #[serde(default)]
    pub journal: JournalUse,
    /// Limit of the bytes per second that a rebuild reads from each disk; `null`: no limit.
    #[serde(default)]
    pub rebuild_bytes_per_s: Option<u64>,
    /// Keep a checksum of every block, so that silent corruption is found, and repaired if there is redundancy.
    #[serde(default = "yes")]
    pub checksums: bool,
}

/// A pool that volumes take their pages from.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PoolSpec {
    /// Its name.
    pub name: String,
    /// Names of the RAID sets that hold it, one after the other.
    pub raid_sets: Vec<String>,
    /// What is allocated at a time.
    #[serde(default = "default_page")]
    pub page_bytes: u32,
    /// Share of the pool in use above which it warns.
    #[serde(default = "default_warn_at")]
    pub warn_at: f64,
    /// Most bytes that its volumes may show, as a multiple of the pool's size; `null`: no limit.
    #[serde(default)]
    pub overcommit: Option<f64>,
}

fn default_sector() -> u32 {
    512
}

fn default_io_timeout() -> f64 {
    30.0
}

fn default_chunk() -> u32 {
    64 << 10
}

fn default_groups() -> u32 {
    2
}

fn default_page() -> u32 {
    1 << 20
}

fn default_warn_at() -> f64 {
    0.8
}

fn yes() -> bool {
    true
}

impl StorageConfig {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.disks.is_empty() && self.raid_sets.is_empty() && self.pools.is_empty()
    }
}

impl DiskSpec {
    /// The disks that it describes, each with a name and a path of its own.
    pub fn each(&self) -> Vec<Self> {
        let Some(count) = self.count else { return vec![self.clone()] };
        let numbered = |number| Self {
            name: format!("{}{number}", self.name),
            path: self.path.as_ref().map(|path| format!("{path}{number}")),
            count: None,
            ..self.clone()
        };
        (0..count).map(numbered).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_configuration_has_defaults_and_disks_are_counted() {
        let json = r#"{"disks": [{"name": "d", "kind": "file", "size_bytes": 1048576, "path": "/d/", "count": 3}],
            "raid_sets": [{"name": "r", "level": "raid5", "disks": ["d0", "d1", "d2"]}],
            "pools": [{"name": "p", "raid_sets": ["r"]}]}"#;
        let config: StorageConfig = serde_json::from_str(json).unwrap();
        let disks = config.disks[0].each();
        let named: Vec<_> = disks.iter().map(|disk| (&*disk.name, disk.path.as_deref().unwrap())).collect();
        assert_eq!(named, [("d0", "/d/0"), ("d1", "/d/1"), ("d2", "/d/2")]);
        let set = &config.raid_sets[0];
        assert_eq!((set.level, set.chunk_bytes, set.checksums), (RaidLevel::Raid5, 65536, true));
        assert_eq!((config.pools[0].page_bytes, config.pools[0].overcommit), (1 << 20, None));
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let error = serde_json::from_str::<StorageConfig>(r#"{"disk": []}"#).unwrap_err();
        assert!(error.to_string().contains("`disk`"), "{error}");
    }
}
