//! Volumes of pools: find, create, change, delete. The name of a volume determines its pool.

use super::{
    Controller,
    check::check_name,
    error::{Noun, StorageError},
    named,
    pools::PoolEntry,
};
use crate::pool::PoolVolume;
use bytes::Bytes;
use std::rc::Rc;

/// Data that a pool keeps for the owner of the controller, besides the volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// How the volume is shown to initiators.
    Export,
    /// Persistent reservations.
    Reservations,
}

impl Kept {
    fn prefix(self) -> &'static str {
        match self {
            Self::Export => "export/",
            Self::Reservations => "reservations/",
        }
    }
}

impl Controller {
    /// A thin volume of the configuration, created if it is missing and a size is given. `pool: None`: the only pool.
    pub async fn thin_volume(
        &self,
        pool: Option<&str>,
        name: &str,
        size_bytes: Option<u64>,
    ) -> Result<Rc<PoolVolume>, StorageError> {
        let entry = named(Noun::Pool, pool, &self.pools, |entry| &entry.spec.name)?;
        match (entry.pool.volume(name), size_bytes) {
            (Some(volume), _) => Ok(volume),
            (None, Some(size_bytes)) => self.create_volume(pool, name, size_bytes).await,
            (None, None) => Err(StorageError::Value {
                noun: Noun::Volume,
                name: name.to_owned(),
                key: "size_bytes",
                rule: format!("is missing, and pool \"{}\" has no such volume", entry.spec.name),
            }),
        }
    }

    /// Makes a volume.
    pub async fn create_volume(
        &self,
        pool: Option<&str>,
        name: &str,
        size_bytes: u64,
    ) -> Result<Rc<PoolVolume>, StorageError> {
        check_name(name)?;
        let entry = named(Noun::Pool, pool, &self.pools, |entry| &entry.spec.name)?;
        self.check_free(name)?;
        entry.pool.create_volume(name, size_bytes).await.map_err(entry.fault())
    }

    /// Makes a volume with the contents of a snapshot.
    pub async fn clone_volume(
        &self,
        volume: &str,
        snapshot: &str,
        name: &str,
    ) -> Result<Rc<PoolVolume>, StorageError> {
        check_name(name)?;
        let entry = self.pool_of(volume)?;
        self.check_free(name)?;
        entry.pool.clone_snapshot(volume, snapshot, name).await.map_err(entry.fault())
    }

    /// A volume by its name.
    pub fn volume(&self, name: &str) -> Result<Rc<PoolVolume>, StorageError> {
        let found = self.pools.iter().find_map(|entry| entry.pool.volume(name));
        found.ok_or_else(|| self.unknown(name))
    }

    /// Changes a volume's capacity.
    pub async fn resize_volume(&self, name: &str, size_bytes: u64) -> Result<(), StorageError> {
        let entry = self.pool_of(name)?;
        entry.pool.resize(name, size_bytes).await.map_err(entry.fault())
    }

    /// Whether [`Controller::delete_volume`] would succeed.
    pub fn check_delete(&self, name: &str, with_snapshots: bool) -> Result<(), StorageError> {
        let snapshots = self.snapshots_of(name)?;
        if with_snapshots || snapshots.is_empty() {
            return Ok(());
        }
        Err(StorageError::Refused(format!(
            "volume \"{name}\" has snapshots ({}); delete them first, or with it: `with_snapshots`",
            snapshots.join(", ")
        )))
    }

    /// Deletes a volume, and its snapshots if `with_snapshots`; otherwise a volume with snapshots is refused.
    pub async fn delete_volume(&self, name: &str, with_snapshots: bool) -> Result<(), StorageError> {
        self.check_delete(name, with_snapshots)?;
        let entry = self.pool_of(name)?;
        for snapshot in self.snapshots_of(name)? {
            entry.pool.delete_snapshot(name, &snapshot).await.map_err(entry.fault())?;
        }
        entry.pool.delete(name).await.map_err(entry.fault())
    }

    /// All kept data of one kind in all pools: pool, name of the volume, bytes.
    pub fn all_kept(&self, kind: Kept) -> Vec<(String, String, Bytes)> {
        let of_pool = |entry: &PoolEntry| {
            let prefix = kind.prefix();
            let keys = entry.pool.setting_keys(prefix).into_iter();
            let found = keys.filter_map(|key| {
                let volume = key.strip_prefix(prefix)?.to_owned();
                Some((entry.spec.name.clone(), volume, entry.pool.setting(&key)?))
            });
            found.collect::<Vec<_>>()
        };
        self.pools.iter().flat_map(of_pool).collect()
    }

    /// Keeps data for a volume of a pool, durably, even if the volume does not exist; `None` deletes the data.
    pub async fn keep(
        &self,
        kind: Kept,
        pool: &str,
        volume: &str,
        bytes: Option<Bytes>,
    ) -> Result<(), StorageError> {
        let entry = named(Noun::Pool, Some(pool), &self.pools, |entry| &entry.spec.name)?;
        let key = format!("{}{volume}", kind.prefix());
        entry.pool.put_setting(&key, bytes).await.map_err(entry.fault())
    }

    /// Names of the pools with a warning.
    pub fn warnings(&self) -> Vec<String> {
        let warns = self.pools.iter().filter(|entry| entry.pool.status().warning);
        warns.map(|entry| entry.spec.name.clone()).collect()
    }

    /// Names of a pool's volumes.
    pub fn volumes_of(&self, pool: &str) -> Vec<String> {
        let entry = self.pools.iter().find(|entry| entry.spec.name == pool);
        entry.into_iter().flat_map(|entry| entry.pool.volumes()).map(|volume| volume.name).collect()
    }

    /// Name of the pool that a volume is in.
    pub fn pool_name_of(&self, volume: &str) -> Result<&str, StorageError> {
        Ok(&self.pool_of(volume)?.spec.name)
    }

    pub(super) fn pool_of(&self, volume: &str) -> Result<&PoolEntry, StorageError> {
        let found = self.pools.iter().find(|entry| entry.pool.volume(volume).is_some());
        found.ok_or_else(|| self.unknown(volume))
    }

    pub(super) fn volume_names(&self) -> Vec<String> {
        let of_pool = |entry: &PoolEntry| entry.pool.volumes();
        self.pools.iter().flat_map(of_pool).map(|volume| volume.name).collect()
    }

    fn snapshots_of(&self, volume: &str) -> Result<Vec<String>, StorageError> {
        let volumes = self.pool_of(volume)?.pool.volumes();
        let found = volumes.into_iter().find(|one| one.name == volume);
        Ok(found.into_iter().flat_map(|one| one.snapshots).map(|snapshot| snapshot.name).collect())
    }

    fn check_free(&self, name: &str) -> Result<(), StorageError> {
        if self.pools.iter().any(|entry| entry.pool.volume(name).is_some()) {
            return Err(StorageError::Taken { noun: Noun::Volume, name: name.to_owned() });
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> StorageError {
        StorageError::Unknown { noun: Noun::Volume, name: name.to_owned(), known: self.volume_names() }
    }
}
