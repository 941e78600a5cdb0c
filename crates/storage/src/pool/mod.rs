//! A pool: thin volumes made of pages, with snapshots and clones. Open this file first.
//!
//! - `config`: configuration, status and errors. `volumes`, `snapshots`, `settings`: the operations.
//! - `volume`: volumes and views as disks; `transfer`: moves bytes to and from pages; `quiesce`: stops operations for a
//!   while.
//! - `map`: the state of the pool, in memory; `core`: makes the state durable; `store`: the structures on disk.
//!
//! Three rules protect a pool against a power cut. The contents of a page are durable before any record refers to the page.
//! The disk always holds one past state of the memory; a transaction replaces it by a later one. A page that was freed is
//! used again only when the release is durable.

mod config;
mod core;
mod map;
mod quiesce;
mod settings;
mod snapshots;
mod store;
mod transfer;
mod volume;
mod volumes;

pub use config::{
    Extent, MAX_NAME_BYTES, MAX_PAGE_BYTES, MIN_PAGE_BYTES, PoolConfig, PoolError, PoolStatus,
    SnapshotStatus, VolumeStatus,
};
pub use snapshots::Change;
pub use volume::PoolVolume;

use crate::{
    disk::{Disk, DiskError},
    runtime::Runtime,
};
use core::Core;
use futures::future::LocalBoxFuture;
use map::{Contents, Map};
use std::rc::Rc;
use store::{Layout, Store, StoreError, Superblocks};

/// A command in progress. It begins with the call, runs to its end even if it is dropped, and is durable when it ends.
pub type Doing<T> = LocalBoxFuture<'static, Result<T, PoolError>>;

/// A pool on one disk. Cheap to clone; it closes when it, its volumes and its views are all dropped.
#[derive(Clone, Debug)]
pub struct Pool {
    core: Rc<Core>,
    repaired: usize,
}

impl Pool {
    /// Makes a pool on a disk; the old contents are lost. If it is interrupted, there is no pool.
    pub async fn create(runtime: Runtime, config: PoolConfig, disk: Rc<dyn Disk>) -> Result<Self, PoolError> {
        config.check(disk.block_bytes())?;
        let layout = Layout::new(disk.size_bytes(), config.page_bytes)?;
        layout.reserve(disk.as_ref()).await?;
        layout.wipe(disk.as_ref()).await?;
        let store = Store::create(Rc::clone(&disk), &layout).await.map_err(|error| failed(&config, error))?;
        layout.store(disk.as_ref()).await?;
        let map = Map::new(layout.pages());
        // On a thin disk the first write to a page also takes the space of the whole page.
        if config.is_disk_zeroed && !disk.is_thin() {
            map.pages.set_all_zero();
        }
        Ok(Self { core: Core::new(runtime, config, disk, layout, store, map), repaired: 0 })
    }

    /// Opens the pool on a disk, and repairs one copy of its metadata after a power cut or an unreadable block. Errors:
    /// no pool on the disk, another page size than configured, metadata that is damaged in both copies or contradicts
    /// itself.
    pub async fn open(runtime: Runtime, config: PoolConfig, disk: Rc<dyn Disk>) -> Result<Self, PoolError> {
        config.check(disk.block_bytes())?;
        let (layout, both) = match Layout::find(disk.as_ref()).await? {
            Superblocks::None => return Err(PoolError::NoPool(disk.name().to_owned())),
            Superblocks::Found { layout, both } => (layout, both),
        };
        if layout.page_bytes != config.page_bytes {
            return Err(PoolError::PageBytes(config.page_bytes));
        }
        if let Err(error @ DiskError::NoSpace(_)) = layout.reserve(disk.as_ref()).await {
            tracing::warn!(pool = config.name, %error, "changes of its metadata will wait for space");
        }
        if !both {
            layout.store(disk.as_ref()).await?;
        }
        let opened = Store::open(Rc::clone(&disk), &layout).await;
        let (store, contents, damaged): (Store, Contents, usize) =
            opened.map_err(|error| failed(&config, error))?;
        let map = Map::load(layout.pages(), contents)
            .map_err(|reason| DiskError::Corrupt { name: config.name.clone(), reason })?;
        let core = Core::new(runtime, config, disk, layout, store, map);
        core.commit_soon();
        Ok(Self { core, repaired: damaged + usize::from(!both) })
    }

    /// How many superblocks and copies of the metadata were damaged when it was opened, and repaired.
    pub fn repaired(&self) -> usize {
        self.repaired
    }

    /// Its volumes, by name.
    pub fn volumes(&self) -> Vec<VolumeStatus> {
        let core = &self.core;
        let map = core.map.borrow();
        map.volumes().iter().map(|(name, record)| volumes::status(core, &map, name, record)).collect()
    }

    /// Its fill level.
    pub fn status(&self) -> PoolStatus {
        let core = &self.core;
        let map = core.map.borrow();
        let page_bytes = core.page_bytes();
        let (count, free) = (map.pages.count(), map.pages.free());
        PoolStatus {
            name: core.config.name.clone(),
            size_bytes: count * page_bytes,
            used_bytes: (count - free) * page_bytes,
            provisioned_bytes: map.volumes().values().map(|record| record.size_bytes).sum(),
            warning: (count - free) as f64 >= core.config.warn_at * count as f64,
            failure: core.check().err().map(|error| error.to_string()),
        }
    }

    /// Makes all completed writes to any volume durable.
    pub fn flush(&self) -> Doing<()> {
        let core = Rc::clone(&self.core);
        self.core.runtime.start(async move { Ok(transfer::flush(core).await?) })
    }
}

fn failed(config: &PoolConfig, error: StoreError) -> PoolError {
    match error {
        StoreError::Disk(error) => error.into(),
        other => DiskError::Corrupt { name: config.name.clone(), reason: other.to_string() }.into(),
    }
}

/// The error for an invalid name.
fn check_name(name: &str) -> Result<(), PoolError> {
    let is_name = (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if is_name { Ok(()) } else { Err(PoolError::BadName(name.to_owned())) }
}
