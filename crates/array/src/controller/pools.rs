//! An array's pools, their volumes and what is kept beside them.

use super::{
    config::PoolSpec,
    error::StorageError,
    status::{PoolStatus, SnapshotStatus, VolumeStatus},
};
use crate::{
    disk::Disk,
    pool::{Pool, PoolConfig, PoolError},
    runtime::Runtime,
};
use std::rc::Rc;

/// A pool and what was asked for.
pub(super) struct PoolEntry {
    pub(super) spec: PoolSpec,
    pub(super) pool: Pool,
}

impl PoolEntry {
    /// Opens the pool on a disk, or makes one where there is none.
    pub(super) async fn open(
        runtime: &Runtime,
        spec: PoolSpec,
        disk: Rc<dyn Disk>,
    ) -> Result<Self, StorageError> {
        let config = PoolConfig {
            page_bytes: u64::from(spec.page_bytes),
            warn_at: spec.warn_at,
            overcommit: spec.overcommit,
            ..PoolConfig::new(&spec.name)
        };
        let found = Pool::open(runtime.clone(), config.clone(), Rc::clone(&disk)).await;
        let pool = match found {
            Err(PoolError::NoPool(_)) => Pool::create(runtime.clone(), config, disk).await,
            found => found,
        };
        match pool {
            Ok(pool) => Ok(Self { spec, pool }),
            Err(error) => Err(StorageError::Pool { pool: spec.name, error }),
        }
    }

    /// What went wrong, and where.
    pub(super) fn fault(&self) -> impl FnOnce(PoolError) -> StorageError + use<> {
        let pool = self.spec.name.clone();
        |error| StorageError::Pool { pool, error }
    }

    pub(super) fn status(&self) -> (PoolStatus, Vec<VolumeStatus>) {
        let status = self.pool.status();
        let volumes = status.volumes.into_iter().map(|volume| VolumeStatus {
            name: volume.name,
            pool: self.spec.name.clone(),
            size_bytes: volume.size_bytes,
            used_bytes: volume.used_bytes,
            snapshots: volume
                .snapshots
                .into_iter()
                .map(|snapshot| SnapshotStatus { name: snapshot.name, at_s: snapshot.at_s })
                .collect(),
            target: None,
            lun: None,
            replica: None,
        });
        let pool = PoolStatus {
            name: self.spec.name.clone(),
            size_bytes: status.size_bytes,
            used_bytes: status.used_bytes,
            promised_bytes: status.promised_bytes,
            warning: status.warning,
            failure: status.failure,
        };
        (pool, volumes.collect())
    }
}
