//! The state that a pool's handles share, and the task that makes changes durable: all pending changes in one transaction.

use super::{
    PoolConfig, PoolError,
    map::{Batch, Found, FoundPages, FreshPage, LayerId, Map, Slot},
    quiesce::{PageLocks, Quiesce},
    store::{Layout, Store, StoreError},
};
use crate::{
    disk::{Disk, DiskError, LentPages, Meter},
    runtime::Runtime,
};
use futures::{channel::oneshot, lock::Mutex};
use linerate_io::Nanos;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt,
    rc::Rc,
};

/// How often a write that needs a page looks whether one is no longer lent.
const LEASE_LOOK_NS: Nanos = 1_000_000;

/// See the module.
pub(crate) struct Core {
    pub(crate) runtime: Runtime,
    pub(crate) config: PoolConfig,
    pub(crate) disk: Rc<dyn Disk>,
    pub(crate) layout: Layout,
    pub(crate) map: RefCell<Map>,
    /// Those of the map.
    pub(crate) lent: LentPages,
    /// What the handles of each volume share, by name.
    pub(crate) volumes: RefCell<BTreeMap<String, Rc<VolumeCore>>>,
    /// One verb at a time: verbs use quiesce locks, and wait until their changes are durable.
    pub(crate) verbs: Mutex<()>,
    store: Store,
    /// The last change that is durable.
    durable: Cell<u64>,
    is_committing: Cell<bool>,
    waiting: RefCell<Vec<(u64, oneshot::Sender<()>)>>,
    failure: RefCell<Option<DiskError>>,
}

/// What all handles of one volume share.
#[derive(Debug)]
pub(crate) struct VolumeCore {
    pub(crate) name: String,
    pub(crate) id: u64,
    pub(crate) size_bytes: Cell<u64>,
    /// The layer that it writes into.
    pub(crate) layer: Cell<LayerId>,
    /// Deleted: operations of open handles fail with this.
    pub(crate) is_gone: Cell<bool>,
    pub(crate) found: FoundPages,
    pub(crate) quiesce: Rc<Quiesce>,
    pub(crate) locks: Rc<PageLocks>,
    pub(crate) meter: Rc<Meter>,
}

impl VolumeCore {
    pub(crate) fn new(name: &str, id: u64, size_bytes: u64, layer: LayerId) -> Self {
        Self {
            name: name.to_owned(),
            id,
            size_bytes: Cell::new(size_bytes),
            layer: Cell::new(layer),
            is_gone: Cell::new(false),
            found: FoundPages::default(),
            quiesce: Rc::default(),
            locks: Rc::default(),
            meter: Rc::default(),
        }
    }
}

impl Core {
    pub(crate) fn new(
        runtime: Runtime,
        config: PoolConfig,
        disk: Rc<dyn Disk>,
        layout: Layout,
        store: Store,
        map: Map,
    ) -> Rc<Self> {
        let volumes = map
            .volumes()
            .iter()
            .map(|(name, record)| {
                let volume = VolumeCore::new(name, record.id, record.size_bytes, record.layer);
                (name.clone(), Rc::new(volume))
            })
            .collect();
        Rc::new(Self {
            runtime,
            config,
            disk,
            layout,
            lent: map.pages.lent(),
            map: RefCell::new(map),
            volumes: RefCell::new(volumes),
            verbs: Mutex::new(()),
            store,
            durable: Cell::new(0),
            is_committing: Cell::new(false),
            waiting: RefCell::default(),
            failure: RefCell::default(),
        })
    }

    pub(crate) fn volume(&self, name: &str) -> Result<Rc<VolumeCore>, PoolError> {
        self.volumes.borrow().get(name).cloned().ok_or_else(|| PoolError::NoVolume(name.to_owned()))
    }

    /// The error of a pool whose metadata could not be written; a restart finds its last durable state.
    pub(crate) fn check(&self) -> Result<(), DiskError> {
        self.failure.borrow().clone().map_or(Ok(()), Err)
    }

    /// Refuses verbs that need metadata but no page when space for metadata runs low, so that pages always have theirs.
    pub(crate) fn check_room(&self) -> Result<(), DiskError> {
        self.check()?;
        if self.store.may_grow() { Ok(()) } else { Err(DiskError::Full(self.config.name.clone())) }
    }

    /// Starts to make the changes durable, without waiting.
    pub(crate) fn commit_soon(self: &Rc<Self>) {
        if !self.is_committing.replace(true) {
            let core = Rc::clone(self);
            self.runtime.spawn(async move { core.commit_all().await });
        }
    }

    /// Waits until change number `version` is durable.
    pub(crate) async fn committed(self: &Rc<Self>, version: u64) -> Result<(), DiskError> {
        if self.durable.get() < version {
            self.check()?;
            self.commit_soon();
            let (sender, receiver) = oneshot::channel();
            self.waiting.borrow_mut().push((version, sender));
            // A dropped sender is a signal as well.
            let _ = receiver.await;
        }
        if self.durable.get() < version { self.check() } else { Ok(()) }
    }

    /// Whether change number `version` is durable.
    pub(crate) fn is_durable(&self, version: u64) -> bool {
        self.durable.get() >= version
    }

    /// Waits until everything that has changed so far is durable.
    pub(crate) async fn commit(self: &Rc<Self>) -> Result<(), DiskError> {
        let version = self.map.borrow().version();
        self.committed(version).await
    }

    async fn commit_all(self: Rc<Self>) {
        loop {
            let batch = self.map.borrow_mut().take_batch();
            let Some(batch) = batch else { break };
            let version = batch.version;
            match self.store_batch(&batch).await {
                Ok(()) => {
                    self.map.borrow_mut().stored(batch.released);
                    self.durable.set(version);
                    self.wake(version);
                }
                Err(error) => {
                    // The state in memory is newer than the disk for good: every later transaction fails.
                    *self.failure.borrow_mut() = Some(error);
                    self.wake(u64::MAX);
                    return;
                }
            }
        }
        self.is_committing.set(false);
    }

    /// The data of pages is durable before the map refers to them.
    async fn store_batch(&self, batch: &Batch) -> Result<(), DiskError> {
        self.disk.flush().await?;
        self.store.transact(batch).map_err(|error| self.disk_error(error))?;
        self.store.write(&self.runtime).await
    }

    fn wake(&self, version: u64) {
        let waiting = self.waiting.take();
        let (due, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(wanted, _)| *wanted <= version);
        *self.waiting.borrow_mut() = rest;
        for (_, sender) in due {
            // This fails only if the caller has stopped waiting.
            let _ = sender.send(());
        }
    }

    fn disk_error(&self, error: StoreError) -> DiskError {
        match error {
            StoreError::Disk(error) => error,
            other => DiskError::Corrupt { name: self.config.name.clone(), reason: other.to_string() },
        }
    }

    /// Takes a free page; waits first for pages that will soon be free.
    pub(crate) async fn take_page(self: &Rc<Self>) -> Result<FreshPage, DiskError> {
        loop {
            self.check()?;
            let pages = self.map.borrow().pages.clone();
            if let Some(page) = pages.take() {
                return Ok(page);
            }
            if pages.returning() > 0 {
                self.commit().await?;
            } else if pages.awaits_lease() {
                self.runtime.sleep(LEASE_LOOK_NS).await;
            } else if pages.lingering() > 0 {
                pages.unpinned().await;
            } else {
                return Err(DiskError::Full(self.config.name.clone()));
            }
        }
    }

    /// Sets a page in the volume's own layer, and returns the number of this change.
    pub(crate) fn set_page(&self, volume: &VolumeCore, index: u64, slot: Slot) -> u64 {
        let layer = volume.layer.get();
        let mut map = self.map.borrow_mut();
        map.set(layer, index, slot);
        let found = match slot {
            // Without a layer below, unmapped pages need no entry.
            Slot::Below | Slot::Zero => Found::Zero,
            Slot::Page(page) => Found::Page { page, layer },
        };
        volume.found.set(index, found);
        map.version()
    }

    /// Unit of allocation.
    pub(crate) fn page_bytes(&self) -> u64 {
        self.layout.page_bytes
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("config", &self.config).finish_non_exhaustive()
    }
}
