//! The pools of an array, their volumes, and their settings.

use super::{
    assembly::{Assembly, begins_with_zeros},
    config::PoolSpec,
    error::StorageError,
    sets::SetOrigin,
    status::PoolVolumeStatus,
};
use crate::{
    disk::Disk,
    pool::{Pool, PoolConfig, PoolError, PoolStatus},
    runtime::Runtime,
};
use std::rc::Rc;

/// Whether a missing pool may be created: the RAID sets are empty, and it was not served before.
async fn check_missing(assembly: &Assembly<'_>, pool: &str, disk: &dyn Disk) -> Result<(), StorageError> {
    let refused = |why: &str| Err(StorageError::NoPool { pool: pool.to_owned(), why: why.to_owned() });
    if assembly.served.pools.iter().any(|served| served == pool) {
        return refused("was served before, and its RAID sets do not hold it now");
    }
    match begins_with_zeros(disk).await {
        Ok(true) => Ok(()),
        Ok(false) => refused("is not there, and its RAID sets hold something else"),
        Err(error) => Err(StorageError::Pool { pool: pool.to_owned(), error: error.into() }),
    }
}

/// A pool and its configuration.
pub(super) struct PoolEntry {
    pub(super) spec: PoolSpec,
    pub(super) pool: Pool,
}

impl PoolEntry {
    /// Opens the pool on a disk, or creates it if this is permitted: on sets that were all made at this start, or that
    /// are empty. `sets`: the least of their origins.
    pub(super) async fn open(
        runtime: &Runtime,
        assembly: &Assembly<'_>,
        spec: PoolSpec,
        disk: Rc<dyn Disk>,
        sets: SetOrigin,
    ) -> Result<Self, StorageError> {
        let config = PoolConfig {
            page_bytes: u64::from(spec.page_bytes),
            warn_at: spec.warn_at,
            overcommit: spec.overcommit,
            is_disk_zeroed: sets == SetOrigin::MadeOfZeros,
            ..PoolConfig::new(&spec.name)
        };
        let fault = |error| StorageError::Pool { pool: spec.name.clone(), error };
        let pool = if assembly.may_create(&spec.name) {
            Pool::create(runtime.clone(), config, disk).await
        } else {
            match Pool::open(runtime.clone(), config.clone(), Rc::clone(&disk)).await {
                Err(PoolError::NoPool(_)) => {
                    if sets == SetOrigin::Assembled {
                        check_missing(assembly, &spec.name, &*disk).await?;
                    }
                    Pool::create(runtime.clone(), config, disk).await
                }
                found => found,
            }
        };
        let pool = pool.map_err(fault)?;
        if pool.repaired() > 0 {
            let text =
                "a superblock or a copy of its metadata was damaged; it was repaired from the other copy";
            assembly.findings.care(format!("pool {}", spec.name), text);
        }
        Ok(Self { spec, pool })
    }

    /// Adds the pool's name to an error.
    pub(super) fn fault(&self) -> impl FnOnce(PoolError) -> StorageError + use<> {
        let pool = self.spec.name.clone();
        |error| StorageError::Pool { pool, error }
    }

    pub(super) fn status(&self) -> (PoolStatus, Vec<PoolVolumeStatus>) {
        let shown = |volume| PoolVolumeStatus {
            volume,
            pool: self.spec.name.clone(),
            target: None,
            lun: None,
            replica: None,
        };
        (self.pool.status(), self.pool.volumes().into_iter().map(shown).collect())
    }
}
