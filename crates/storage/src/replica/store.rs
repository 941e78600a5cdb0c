//! What replication asks of the pool that it copies from or into.

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
    /// In the later snapshot nothing is stored here: it reads as zeros.
    pub is_hole: bool,
}

/// Volumes with snapshots, and a small durable table. A pool is one; tests have another.
///
/// A completed change survives a power cut, and an interrupted one is applied as a whole or not at all, for all
/// volumes that were named. [`Store::snapshot`] makes that true of the data too: once it completes, what the snapshot
/// shows never changes any more, neither by later writes nor by a power cut.
pub trait Store {
    /// The volume as hosts see it; none if there is no such volume. Stays valid when it is restored or resized.
    fn volume(&self, volume: &str) -> Option<Rc<dyn Disk>>;
    /// Names of a volume's snapshots, oldest first; empty if there is no such volume.
    fn snapshots(&self, volume: &str) -> Vec<String>;
    /// A volume as it was, with the size that it had.
    fn view(&self, volume: &str, snapshot: &str) -> Result<Rc<dyn Disk>, StoreError>;
    /// What to copy so that a volume that is as `from` was (full of zeros if there is none) becomes as `to`
    /// was. In order of offset, without overlap; may name more than really differs.
    fn changed(
        &self,
        volume: &str,
        from: Option<&str>,
        to: &str,
    ) -> impl Future<Output = Result<Vec<ReplicaExtent>, StoreError>>;

    /// A new volume, full of zeros.
    fn create_volume(&self, volume: &str, size_bytes: u64) -> impl Future<Output = Result<(), StoreError>>;
    /// Changes a volume's size; what is new reads as zeros.
    fn resize(&self, volume: &str, size_bytes: u64) -> impl Future<Output = Result<(), StoreError>>;
    /// One snapshot of all `volumes` at one instant, which the clocks show as `at_s`.
    fn snapshot(
        &self,
        volumes: &[String],
        snapshot: &str,
        at_s: f64,
    ) -> impl Future<Output = Result<(), StoreError>>;
    /// Forgets a volume's snapshot.
    fn delete_snapshot(&self, volume: &str, snapshot: &str) -> impl Future<Output = Result<(), StoreError>>;
    /// Makes a volume what it was, with the size that it had.
    fn restore(&self, volume: &str, snapshot: &str) -> impl Future<Output = Result<(), StoreError>>;

    /// Looks up a value in the table.
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;
    /// All keys that begin with `prefix`.
    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError>;
    /// Writes a value, or removes it.
    fn put(&self, key: &str, value: Option<Vec<u8>>) -> impl Future<Output = Result<(), StoreError>>;
}

/// Why a store could not do it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    /// The disks below.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// What was asked for makes no sense to it: an unknown name, a name that is taken, an impossible size.
    #[error("{0}")]
    Refused(String),
}
