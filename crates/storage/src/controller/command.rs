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
        /// Where its pages come from; `null`: the only pool.
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
    /// Changes a volume's capacity; initiators are told. Reply: `size_bytes`.
    Resize {
        /// Which volume.
        volume: String,
        /// Its new capacity.
        size_bytes: u64,
    },
    /// Ends a volume; what it held is lost.
    Delete {
        /// Which volume.
        volume: String,
        /// Its snapshots as well; without this, a volume that has some is not deleted.
        #[serde(default)]
        with_snapshots: bool,
    },
    /// Freezes volumes of one pool at one instant. Reply: `at_s`.
    Snapshot {
        /// Which volumes.
        volumes: Vec<String>,
        /// Name of the snapshot of each of them.
        name: String,
    },
    /// Ends a snapshot of a volume.
    DeleteSnapshot {
        /// Which volume.
        volume: String,
        /// Which of its snapshots.
        snapshot: String,
    },
    /// Makes a volume what it was when a snapshot of it was taken.
    Restore {
        /// Which volume.
        volume: String,
        /// Which of its snapshots.
        snapshot: String,
    },
    /// Makes a new volume that begins as a snapshot of another. Reply: as `create_volume`.
    Clone {
        /// Whose snapshot.
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
    /// Puts a new disk in the place of another, which is rebuilt onto it.
    ReplaceDisk {
        /// Which disk goes.
        disk: String,
        /// The one that comes.
        new: DiskSpec,
        /// Although it holds something.
        #[serde(default)]
        overwrite: bool,
    },
    /// Reads a RAID set through and mends what does not agree, in the background.
    Scrub {
        /// Which RAID set.
        raid_set: String,
    },
    /// Everything that [`super::StorageStatus`] says.
    Status {},
}

/// How a volume is shown to initiators.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Export {
    /// iSCSI name of the target; `null`: the first one, of a clone the one that shows the volume it comes from.
    pub target: Option<String>,
    /// Its logical unit number; `null`: the lowest that is free.
    pub lun: Option<u16>,
    /// Logical block size; `null`: 512, of a clone that of the volume it comes from, and never less than the disks'.
    pub sector_bytes: Option<u32>,
    /// Physical block size; `null`: the logical one.
    pub physical_sector_bytes: Option<u32>,
    /// Refuse writes.
    pub read_only: bool,
    /// Report a volatile write cache. Refused unless power is protected.
    pub write_cache: bool,
    /// What is in memory survives a power cut, by a battery or otherwise.
    pub power_protected: bool,
}

/// What a command brought: an object, empty where there is nothing to say.
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
