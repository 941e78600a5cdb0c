//! The commands that an owner can give to an array while it serves.

use super::config::DiskSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A management command; in JSON an object with a `verb`, such as `{"verb": "resize", "volume": "v", "size_bytes": 1}`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Makes a thin volume and shows it to initiators. Reply: `volume`, `target`, `lun`, `size_bytes`.
    CreateVolume {
        /// The pool of its pages; `null`: the only pool.
        #[serde(default)]
        pool: Option<String>,
        /// Its name.
        name: String,
        /// Capacity.
        size_bytes: u64,
        /// How it is shown.
        #[serde(flatten)]
        export: Export,
    },
    /// Changes a volume's capacity; initiators are informed. Reply: `size_bytes`.
    Resize {
        /// Which volume.
        volume: String,
        /// Its new capacity.
        size_bytes: u64,
    },
    /// Deletes a volume and its data.
    Delete {
        /// Which volume.
        volume: String,
        /// Deletes its snapshots too; without this, a volume with snapshots is not deleted.
        #[serde(default)]
        with_snapshots: bool,
    },
    /// Takes snapshots of volumes of one pool at one instant. Reply: `at_s`.
    Snapshot {
        /// Which volumes.
        volumes: Vec<String>,
        /// Name of the snapshot of each of them.
        name: String,
    },
    /// Deletes a snapshot of a volume.
    DeleteSnapshot {
        /// Which volume.
        volume: String,
        /// Which of its snapshots.
        snapshot: String,
    },
    /// Restores a volume to a snapshot of it.
    Restore {
        /// Which volume.
        volume: String,
        /// Which of its snapshots.
        snapshot: String,
    },
    /// Makes a new volume with the contents of a snapshot of another. Reply: as `create_volume`.
    Clone {
        /// The volume of the snapshot.
        volume: String,
        /// Which of its snapshots.
        snapshot: String,
        /// Name of the new volume.
        name: String,
        /// How it is shown.
        #[serde(flatten)]
        export: Export,
    },
    /// Treats a disk as failed from now on.
    FailDisk {
        /// Which disk.
        disk: String,
    },
    /// Replaces a disk by a new one, and rebuilds onto it.
    ReplaceDisk {
        /// The disk to replace.
        disk: String,
        /// The new disk.
        new: DiskSpec,
        /// Use the new disk even if it holds data.
        #[serde(default)]
        overwrite: bool,
    },
    /// Reads a whole RAID set in the background, and repairs blocks that do not agree.
    Scrub {
        /// Which RAID set.
        raid_set: String,
    },
    /// The full [`super::StorageStatus`].
    Status {},
}

/// How a volume is shown to initiators.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Export {
    /// iSCSI name of the target; `null`: the first target, or for a clone the target of its parent volume.
    pub target: Option<String>,
    /// Its logical unit number; `null`: the lowest that is free.
    pub lun: Option<u16>,
    /// Logical block size; `null`: 512, or for a clone that of its parent, and never less than the disks' size.
    pub sector_bytes: Option<u32>,
    /// Physical block size; `null`: the logical one.
    pub physical_sector_bytes: Option<u32>,
    /// Refuse writes.
    pub read_only: bool,
    /// Report a volatile write cache. Refused unless power is protected.
    pub write_cache: bool,
    /// Data in memory survives a power cut, for instance by a battery.
    pub power_protected: bool,
}

/// The result of a command: an object, which may be empty.
pub type Reply = Map<String, Value>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_take_their_own_keys_and_no_others() {
        let json = r#"{"verb": "create_volume", "name": "v", "size_bytes": 4096, "lun": 3}"#;
        let command: Command = serde_json::from_str(json).unwrap();
        let Command::CreateVolume { pool: None, name, size_bytes: 4096, export } = command else { panic!() };
        assert_eq!((&*name, export.lun, export.sector_bytes), ("v", Some(3), None));
        let wrong = r#"{"verb": "resize", "volume": "v", "size_bytes": 4096, "lun": 3}"#;
        let error = serde_json::from_str::<Command>(wrong).unwrap_err();
        assert!(error.to_string().contains("`lun`"), "{error}");
        let wrong = r#"{"verb": "create_volume", "name": "v", "size_bytes": 4096, "lnu": 3}"#;
        assert!(serde_json::from_str::<Command>(wrong).is_err());
    }
}
