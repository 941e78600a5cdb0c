//! Backups: reads of the source and writes of the image, with metadata and flushes among them.

use super::{BackupIo, BackupLoad, BackupOp, METADATA_WRITE_BYTES, pieces};
use crate::{
    backup::CLUSTER_BYTES,
    stream::rng::{Rng, Use},
};
use std::{num::NonZeroU32, ops::Range};

/// Separates the places of metadata writes from the maps.
const METADATA_MAP: u32 = u32::MAX;

impl BackupLoad {
    /// The full backup: all used clusters.
    pub fn full(&self) -> impl Iterator<Item = BackupIo> {
        self.copy(1, self.used())
    }

    /// The incremental backup after this many other incremental ones: the source's map of changes, one bit per cluster,
    /// and the clusters that have changed.
    pub fn incremental(&self, earlier: u32) -> impl Iterator<Item = BackupIo> {
        let backup = BackupLoad::number(earlier);
        let map_clusters = self.clusters.div_ceil(8).div_ceil(CLUSTER_BYTES);
        let map = pieces(0..map_clusters, CLUSTER_BYTES as u32).map(move |(offset, bytes)| BackupIo {
            op: BackupOp::ReadMap,
            offset,
            bytes,
            backup,
        });
        map.chain(self.copy(backup, self.changed(backup)))
    }

    /// The number of an incremental backup.
    pub(super) fn number(earlier: u32) -> u32 {
        earlier.saturating_add(2)
    }

    fn copy(&self, backup: u32, runs: impl Iterator<Item = Range<u64>>) -> impl Iterator<Item = BackupIo> {
        let transfer_bytes = self.spec.transfer_bytes;
        let mut pace = Pace::new(self, backup);
        runs.flat_map(move |run| pieces(run, transfer_bytes))
            .flat_map(move |(offset, bytes)| {
                let of = |op| Some(BackupIo { op, offset, bytes, backup });
                let (metadata, flush) = pace.after(bytes);
                [of(BackupOp::ReadSource), of(BackupOp::WriteData), metadata, flush]
            })
            .flatten()
            .chain([BackupIo::flush(BackupOp::FlushImage)])
    }
}

/// When metadata is written, and when the image is flushed.
struct Pace {
    rng: Rng,
    writes_per_metadata_write: NonZeroU32,
    writes: u32,
    metadata_places: u64,
    flush_bytes: u64,
    bytes: u64,
}

impl Pace {
    fn new(load: &BackupLoad, backup: u32) -> Self {
        let spec = &load.spec;
        Self {
            rng: Rng::new(spec.seed, METADATA_MAP, backup, Use::Backup),
            writes_per_metadata_write: NonZeroU32::new(spec.writes_per_metadata_write)
                .unwrap_or(NonZeroU32::MIN),
            writes: 0,
            metadata_places: load.metadata_clusters * CLUSTER_BYTES / u64::from(METADATA_WRITE_BYTES),
            flush_bytes: spec.flush_bytes,
            bytes: 0,
        }
    }

    /// What follows a write of data.
    fn after(&mut self, bytes: u32) -> (Option<BackupIo>, Option<BackupIo>) {
        self.writes = (self.writes + 1) % self.writes_per_metadata_write;
        self.bytes += u64::from(bytes);
        let metadata = (self.writes == 0).then(|| BackupIo {
            op: BackupOp::WriteMetadata,
            offset: self.rng.below(self.metadata_places) * u64::from(METADATA_WRITE_BYTES),
            bytes: METADATA_WRITE_BYTES,
            backup: 0,
        });
        let is_due = self.bytes >= self.flush_bytes;
        if is_due {
            self.bytes = 0;
        }
        (metadata, is_due.then_some(BackupIo::flush(BackupOp::FlushImage)))
    }
}
