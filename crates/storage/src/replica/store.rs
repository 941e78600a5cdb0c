//! The interface of replication to the pool that it copies from or to.

use crate::disk::{Disk, DiskError};
use std::{future::Future, rc::Rc};
use thiserror::Error;

/// A range of a volume that may differ between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaExtent {
    /// First byte.
    pub offset_bytes: u64,
    /// Length.
    pub len_bytes: u64,
    /// The later snapshot has no data here: it reads as zeros.
    pub is_hole: bool,
}

/// Volumes with snapshots, and a small durable table: a pool, or a substitute in tests.
///
/// A completed change survives a power cut. An interrupted change is applied completely or not at all, for all volumes
/// that were named. [`Store::snapshot`] extends this to the data: once it completes, neither later writes nor a power
/// cut change the contents of the snapshot.
pub trait Store {
    /// The volume as hosts see it; None if there is no such volume. It stays valid when it is restored or resized.
    fn volume(&self, volume: &str) -> Option<Rc<dyn Disk>>;
    /// Names of a volume's snapshots, oldest first; empty if there is no such volume.
    fn snapshots(&self, volume: &str) -> Vec<String>;
    /// A snapshot of a volume, with its size at that time.
    fn view(&self, volume: &str, snapshot: &str) -> Result<Rc<dyn Disk>, StoreError>;
    /// The ranges to copy to change a volume from the contents of `from` (zeros if there is none) to those of `to`. In
    /// order of offset, without overlap; may include ranges that do not differ.
    fn changed(
        &self,
        volume: &str,
        from: Option<&str>,
        to: &str,
    ) -> impl Future<Output = Result<Vec<ReplicaExtent>, StoreError>>;

    /// A new volume, full of zeros.
    fn create_volume(&self, volume: &str, size_bytes: u64) -> impl Future<Output = Result<(), StoreError>>;
    /// Changes a volume's size; a new part reads as zeros.
    fn resize(&self, volume: &str, size_bytes: u64) -> impl Future<Output = Result<(), StoreError>>;
    /// One snapshot of all `volumes` at one instant; the clocks show `at_s`.
    fn snapshot(
        &self,
        volumes: &[String],
        snapshot: &str,
        at_s: f64,
    ) -> impl Future<Output = Result<(), StoreError>>;
    /// Deletes a volume's snapshot.
    fn delete_snapshot(&self, volume: &str, snapshot: &str) -> impl Future<Output = Result<(), StoreError>>;
    /// Restores the contents and the size of a volume.
    fn restore(&self, volume: &str, snapshot: &str) -> impl Future<Output = Result<(), StoreError>>;

    /// Looks up a value in the table.
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;
    /// All keys that begin with `prefix`.
    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError>;
    /// Writes a value, or removes it.
    fn put(&self, key: &str, value: Option<Vec<u8>>) -> impl Future<Output = Result<(), StoreError>>;
}

/// Why a store refused an operation.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    /// The disks failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The request is invalid: an unknown name, a name in use, an impossible size.
    #[error("{0}")]
    Refused(String),
}
