//! The I/O of an image backup, as a sequence of offsets, lengths and operations. Open this file first.
//!
//! A *backup* copies the used clusters of a volume (the source) into an image of the same size. The first one is full;
//! each later one is incremental and copies the clusters that have changed since the one before. A *restore* reads the
//! image and writes a volume (the target). Which clusters are used and which change follows from the seed
//! (`clusters.rs`). So the same specification gives the same sequence, and a restore knows which backup wrote the
//! bytes that it reads (`restore.rs`). `job` carries it out on volumes.
//!
//! This is a model of the backup of seed 003 of the published studies: ascending runs of 64 KiB to 1 MiB, one small
//! write of metadata among about a hundred, a flush where the source's snapshot service asks for one.

mod clusters;
mod copy;
pub mod job;
mod restore;

use crate::spec::SpecError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of the maps of used and of changed data.
pub const CLUSTER_BYTES: u64 = 64 << 10;
/// A write of the image's file system structures.
const METADATA_WRITE_BYTES: u32 = 4096;
/// The part of the image that these writes go to.
const METADATA_SHARE: u64 = 1000;
const METADATA_CLUSTERS_MAX: u64 = 1024;
/// Zeros are written in steps of this length with a flush after each: more at once ends in a timeout of the share.
const CREATE_STEP_BYTES: u64 = 2 << 40;
const TRANSFER_BYTES_MAX: u32 = 16 << 20;

/// What is backed up, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupSpec {
    /// Size of source, image and target in bytes: whole clusters.
    pub image_bytes: u64,
    /// Share of the source's clusters that are used, above 0.
    pub used_percent: f64,
    /// Share of the used clusters that change between two backups.
    pub changed_percent: f64,
    /// Mean length of a run of used clusters.
    pub used_run_clusters: u32,
    /// Mean length of a run of changed clusters.
    pub changed_run_clusters: u32,
    /// Longest read or write: whole clusters, at most 16 MiB.
    pub transfer_bytes: u32,
    /// Writes of data between two writes of metadata.
    pub writes_per_metadata_write: u32,
    /// Data between two flushes, in bytes.
    pub flush_bytes: u64,
    /// Determines both maps.
    pub seed: u64,
}

impl BackupSpec {
    /// A volume that is half full, of which a twentieth changes.
    pub fn new(image_bytes: u64, seed: u64) -> Self {
        Self {
            image_bytes,
            used_percent: 50.0,
            changed_percent: 5.0,
            used_run_clusters: 64,
            changed_run_clusters: 4,
            transfer_bytes: 1 << 20,
            writes_per_metadata_write: 100,
            flush_bytes: 1 << 30,
            seed,
        }
    }
}

/// What an I/O does, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupOp {
    /// Reads the source's map of changes; offsets begin at the map.
    ReadMap,
    /// Reads data of the source.
    ReadSource,
    /// Writes zeros to the image.
    WriteZeros,
    /// Writes data to the image.
    WriteData,
    /// Writes file system structures of the image.
    WriteMetadata,
    /// Flushes the image; no bytes.
    FlushImage,
    /// Reads data of the image and verifies them.
    ReadImage,
    /// Writes data to the target.
    WriteTarget,
    /// Flushes the target; no bytes.
    FlushTarget,
}

/// One I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupIo {
    /// What it does.
    pub op: BackupOp,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// The backup that these data belong to: 1 is the full one. 0: none.
    pub backup: u32,
}

/// A specification whose values fit together.
#[derive(Clone, Debug)]
pub struct BackupLoad {
    spec: BackupSpec,
    clusters: u64,
    /// Clusters at the beginning of the image with its file system structures; no data is there.
    metadata_clusters: u64,
}

impl BackupLoad {
    /// Errors: which value is wrong, and what it may be (fault: the user).
    pub fn new(spec: BackupSpec) -> Result<Self, SpecError> {
        let is_clusters = |bytes: u64| bytes > 0 && bytes.is_multiple_of(CLUSTER_BYTES);
        let transfer_bytes = u64::from(spec.transfer_bytes);
        let checks = [
            ("image_bytes", is_clusters(spec.image_bytes), "whole clusters of 64 KiB, more than one"),
            ("used_percent", spec.used_percent > 0.0 && spec.used_percent <= 100.0, "above 0, up to 100"),
            ("changed_percent", (0.0..=100.0).contains(&spec.changed_percent), "0 to 100"),
            ("used_run_clusters", spec.used_run_clusters > 0, "at least 1"),
            ("changed_run_clusters", spec.changed_run_clusters > 0, "at least 1"),
            (
                "transfer_bytes",
                is_clusters(transfer_bytes) && spec.transfer_bytes <= TRANSFER_BYTES_MAX,
                "whole clusters of 64 KiB up to 16 MiB",
            ),
            ("writes_per_metadata_write", spec.writes_per_metadata_write > 0, "at least 1"),
            ("flush_bytes", spec.flush_bytes > 0, "at least 1"),
        ];
        if let Some((key, _, accepted)) = checks.into_iter().find(|(_, is_right, _)| !is_right) {
            return Err(SpecError::value(&format!("backup.{key}"), format!("must be {accepted}")));
        }
        let clusters = spec.image_bytes / CLUSTER_BYTES;
        let metadata_clusters = (clusters / METADATA_SHARE).clamp(1, METADATA_CLUSTERS_MAX);
        if metadata_clusters >= clusters {
            return Err(SpecError::value("backup.image_bytes", "must be more than one cluster of 64 KiB"));
        }
        Ok(Self { spec, clusters, metadata_clusters })
    }

    /// Creates a fixed image: zeros from its beginning to its end. A dynamic image needs none of this.
    pub fn create(&self) -> impl Iterator<Item = BackupIo> + use<> {
        let (end, step) = (self.spec.image_bytes, u64::from(self.spec.transfer_bytes));
        let zeros = (0..end.div_ceil(step)).map(move |number| number * step).flat_map(move |offset| {
            let bytes = step.min(end - offset);
            let is_step_end = (offset + bytes).is_multiple_of(CREATE_STEP_BYTES) || offset + bytes == end;
            let write = BackupIo { op: BackupOp::WriteZeros, offset, bytes: bytes as u32, backup: 0 };
            [Some(write), is_step_end.then_some(BackupIo::flush(BackupOp::FlushImage))]
        });
        zeros.flatten()
    }
}

impl BackupIo {
    fn flush(op: BackupOp) -> Self {
        Self { op, offset: 0, bytes: 0, backup: 0 }
    }
}

/// Clusters as a range of bytes, in pieces of at most `most` bytes.
fn pieces(run: std::ops::Range<u64>, most: u32) -> impl Iterator<Item = (u64, u32)> {
    let (begin, end) = (run.start * CLUSTER_BYTES, run.end * CLUSTER_BYTES);
    (begin..end)
        .step_by(most as usize)
        .map(move |offset| (offset, (end - offset).min(u64::from(most)) as u32))
}

#[cfg(test)]
mod tests;
