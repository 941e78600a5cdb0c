//! A pool as replication sees it.

use super::{ReplicaExtent, Store, StoreError};
use crate::{
    disk::Disk,
    pool::{Pool, PoolError},
};
use bytes::Bytes;
use std::rc::Rc;

impl Store for Pool {
    fn volume(&self, volume: &str) -> Option<Rc<dyn Disk>> {
        Some(Pool::volume(self, volume)?)
    }

    fn snapshots(&self, volume: &str) -> Vec<String> {
        let found = self.volumes().into_iter().find(|status| status.name == volume);
        let snapshots = found.map(|status| status.snapshots).unwrap_or_default();
        snapshots.into_iter().map(|snapshot| snapshot.name).collect()
    }

    fn view(&self, volume: &str, snapshot: &str) -> Result<Rc<dyn Disk>, StoreError> {
        Ok(Pool::view(self, volume, snapshot)?)
    }

    async fn changed(
        &self,
        volume: &str,
        from: Option<&str>,
        to: &str,
    ) -> Result<Vec<ReplicaExtent>, StoreError> {
        let changes = Pool::changed(self, volume, from, to)?.into_iter().map(|change| ReplicaExtent {
            offset_bytes: change.offset_bytes,
            len_bytes: change.len_bytes,
            is_hole: change.is_hole,
        });
        Ok(changes.collect())
    }

    async fn create_volume(&self, volume: &str, size_bytes: u64) -> Result<(), StoreError> {
        Pool::create_volume(self, volume, size_bytes).await?;
        Ok(())
    }

    async fn resize(&self, volume: &str, size_bytes: u64) -> Result<(), StoreError> {
        Ok(Pool::resize(self, volume, size_bytes).await?)
    }

    async fn snapshot(&self, volumes: &[String], snapshot: &str, at_s: f64) -> Result<(), StoreError> {
        let names: Vec<&str> = volumes.iter().map(String::as_str).collect();
        Pool::snapshot(self, &names, snapshot, at_s).await?;
        // Writes that hosts had not flushed are visible in the snapshot, and must stay in it.
        Ok(self.flush().await?)
    }

    async fn delete_snapshot(&self, volume: &str, snapshot: &str) -> Result<(), StoreError> {
        Ok(Pool::delete_snapshot(self, volume, snapshot).await?)
    }

    async fn restore(&self, volume: &str, snapshot: &str) -> Result<(), StoreError> {
        Ok(Pool::restore(self, volume, snapshot).await?)
    }

    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.setting(key).map(Vec::from))
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.setting_keys(prefix))
    }

    async fn put(&self, key: &str, value: Option<Vec<u8>>) -> Result<(), StoreError> {
        Ok(self.put_setting(key, value.map(Bytes::from)).await?)
    }
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Disk(error) => Self::Disk(error),
            other => Self::Refused(other.to_string()),
        }
    }
}
