//! The input of a job: which phase, of which backup, on which volumes. JSON, version 1.

use crate::{
    backend,
    backup::{BackupLoad, BackupSpec},
    spec::{DriverChoice, SpecError, VolumeSpec},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the JSON form that this crate reads.
const JOB_VERSION: u32 = 1;
const OUTSTANDING_MAX: u32 = 256;

/// One phase of an image backup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupJobSpec {
    /// Always 1.
    pub version: u32,
    /// What to do.
    pub phase: BackupPhase,
    /// Incremental backups that were made before this phase.
    #[serde(default)]
    pub incrementals: u32,
    /// Data, maps and sizes of I/Os.
    pub backup: BackupSpec,
    /// Whether a new image has all blocks from the beginning.
    #[serde(default)]
    pub kind: ImageKind,
    /// Block of a new image in bytes: a power of two from 1 to 256 MiB.
    #[serde(default = "default_block_bytes")]
    pub block_bytes: u32,
    /// A new image may replace what the volume holds.
    #[serde(default)]
    pub overwrite: bool,
    /// The volume with the image.
    pub image: VolumeSpec,
    /// The volume that backups read; None: their data are made in memory.
    #[serde(default)]
    pub source: Option<VolumeSpec>,
    /// The volume that a restore writes; None: it reads and verifies only.
    #[serde(default)]
    pub target: Option<VolumeSpec>,
    /// Seconds per interval.
    #[serde(default = "default_interval_s")]
    pub interval_s: f64,
    /// The interface to the operating system.
    #[serde(default)]
    pub driver: DriverChoice,
}

/// A phase of an image backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackupPhase {
    /// Makes the image: a fixed one is zeros from end to end.
    Create,
    /// The full backup.
    Full,
    /// An incremental backup.
    Incremental,
    /// Reads the image, and verifies what it reads.
    Restore,
}

/// The kind of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageKind {
    /// All blocks are there from the beginning.
    #[default]
    Fixed,
    /// A block is allocated at its first write.
    Dynamic,
}

impl BackupPhase {
    /// As messages name it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Full => "full backup",
            Self::Incremental => "incremental backup",
            Self::Restore => "restore",
        }
    }
}

impl BackupJobSpec {
    /// The I/Os that it asks for. Errors: which key is wrong, and what it may be (fault: the user).
    pub(super) fn load(&self) -> Result<BackupLoad, SpecError> {
        if self.version != JOB_VERSION {
            return Err(SpecError::Version(self.version));
        }
        if !(0.1..=3600.0).contains(&self.interval_s) {
            return Err(SpecError::value("interval_s", "must be 0.1 to 3600"));
        }
        for (volume, key) in self.volumes() {
            if !(1..=OUTSTANDING_MAX).contains(&volume.outstanding) {
                let key = format!("{key}.outstanding");
                return Err(SpecError::value(&key, format!("must be 1 to {OUTSTANDING_MAX}")));
            }
            if volume.netns != self.image.netns {
                return Err(SpecError::value(&format!("{key}.netns"), "must be that of the image"));
            }
        }
        if backend::kind_of(&self.image.url) == Some(backend::BackendKind::Null) {
            return Err(SpecError::value(
                "image.url",
                "a null volume keeps no image; name a file, a LUN or a share",
            ));
        }
        BackupLoad::new(self.backup.clone())
    }

    /// The volumes of this phase with their keys, in the order of [`VOLUMES`](super::VOLUMES).
    pub(super) fn volumes(&self) -> impl Iterator<Item = (&VolumeSpec, &'static str)> {
        let source = self.source.as_ref().filter(|_| self.reads_source()).map(|volume| (volume, "source"));
        let target = self
            .target
            .as_ref()
            .filter(|_| self.phase == BackupPhase::Restore)
            .map(|volume| (volume, "target"));
        [Some((&self.image, "image")), source, target].into_iter().flatten()
    }

    /// Whether the phase copies data of the source.
    fn reads_source(&self) -> bool {
        matches!(self.phase, BackupPhase::Full | BackupPhase::Incremental)
    }
}

fn default_block_bytes() -> u32 {
    32 << 20
}

fn default_interval_s() -> f64 {
    1.0
}
