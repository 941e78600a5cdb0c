//! A store in memory that can lose its power: it distinguishes written and durable data, and operations of a killed
//! array never end.

use bytes::{Bytes, BytesMut};
use futures::{
    FutureExt,
    channel::oneshot,
    future::{LocalBoxFuture, pending},
};
use linerate_sim::Rng;
use linerate_storage::{
    Disk, DiskError, Runtime,
    disk::{DiskStats, Reading, Writing},
    replica::{ReplicaExtent, Store, StoreError},
};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ops::Range,
    rc::Rc,
};

pub(crate) const PAGE_BYTES: usize = 4096;
const BLOCK_BYTES: usize = 512;

/// The contents of an array's disks, shared by all processes that serve them.
#[derive(Default)]
pub(crate) struct Platters {
    pub(crate) volumes: BTreeMap<String, Volume>,
    pub(crate) table: BTreeMap<String, Vec<u8>>,
    /// The process that may still act.
    life: u64,
}

#[derive(Clone, Default)]
pub(crate) struct Volume {
    pub(crate) now: Vec<u8>,
    durable: Vec<u8>,
    pub(crate) snapshots: Vec<(String, Vec<u8>)>,
}

impl Volume {
    pub(crate) fn snapshot(&self, name: &str) -> Option<&Vec<u8>> {
        self.snapshots.iter().find(|(snapshot, _)| snapshot == name).map(|(_, bytes)| bytes)
    }

    /// The contents after a power cut: each block that was not durable is old or new.
    fn torn(&self, rng: &mut Rng) -> Vec<u8> {
        let mut left = self.durable.clone();
        left.resize(self.now.len(), 0);
        for (old, new) in left.chunks_mut(BLOCK_BYTES).zip(self.now.chunks(BLOCK_BYTES)) {
            if rng.chance(50) {
                old.copy_from_slice(new);
            }
        }
        left
    }
}

/// One process's access to the disks.
#[derive(Clone)]
pub(crate) struct MemoryStore {
    pub(crate) platters: Rc<RefCell<Platters>>,
    life: u64,
    runtime: Runtime,
    rng: Rc<RefCell<Rng>>,
    /// Longest time of an operation.
    slowness_ns: Rc<Cell<u64>>,
}

impl MemoryStore {
    pub(crate) fn new(runtime: Runtime, rng: Rc<RefCell<Rng>>) -> Self {
        Self { platters: Rc::default(), life: 0, runtime, rng, slowness_ns: Rc::new(Cell::new(10_000)) }
    }

    /// Kills the process, cuts the power, starts another process.
    pub(crate) fn power_cut(&mut self) {
        self.life += 1;
        let mut platters = self.platters.borrow_mut();
        platters.life = self.life;
        for volume in platters.volumes.values_mut() {
            let left = volume.torn(&mut self.rng.borrow_mut());
            volume.now.clone_from(&left);
            volume.durable = left;
        }
    }

    /// Other disks with the same contents, and a process of their own.
    pub(crate) fn copied(&self) -> Self {
        let platters = self.platters.borrow();
        let (volumes, table) = (platters.volumes.clone(), platters.table.clone());
        let copy = Platters { volumes, table, life: 0 };
        Self { platters: Rc::new(RefCell::new(copy)), life: 0, ..self.clone() }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.platters.borrow().life == self.life
    }

    /// Some time passes; a process that was killed meanwhile never returns from here.
    async fn wait(&self) {
        let len = self.rng.borrow_mut().range(0, self.slowness_ns.get());
        self.runtime.sleep(len).await;
        if !self.is_alive() {
            pending::<()>().await;
        }
    }

    fn change<T>(
        &self,
        volume: &str,
        change: impl FnOnce(&mut Volume) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut platters = self.platters.borrow_mut();
        change(platters.volumes.get_mut(volume).ok_or_else(|| refused(volume))?)
    }
}

fn refused(what: &str) -> StoreError {
    StoreError::Refused(format!("no such thing: {what}"))
}

impl Store for MemoryStore {
    fn volume(&self, volume: &str) -> Option<Rc<dyn Disk>> {
        self.platters.borrow().volumes.get(volume)?;
        Some(Rc::new(Live { store: self.clone(), name: volume.into() }))
    }

    fn snapshots(&self, volume: &str) -> Vec<String> {
        let platters = self.platters.borrow();
        let snapshots = platters.volumes.get(volume).map(|volume| &volume.snapshots[..]).unwrap_or_default();
        snapshots.iter().map(|(name, _)| name.clone()).collect()
    }

    fn view(&self, volume: &str, snapshot: &str) -> Result<Rc<dyn Disk>, StoreError> {
        let bytes = self
            .change(volume, |volume| volume.snapshot(snapshot).cloned().ok_or_else(|| refused(snapshot)))?;
        Ok(Rc::new(Frozen { store: self.clone(), name: volume.into(), bytes }))
    }

    /// Pages that differ, and some that do not.
    async fn changed(
        &self,
        volume: &str,
        from: Option<&str>,
        to: &str,
    ) -> Result<Vec<ReplicaExtent>, StoreError> {
        self.wait().await;
        let (from, to) = self.change(volume, |volume| {
            let find = |name: &str| volume.snapshot(name).cloned().ok_or_else(|| refused(name));
            Ok((from.map(find).transpose()?.unwrap_or_default(), find(to)?))
        })?;
        let mut extents = Vec::new();
        for (page, new) in to.chunks(PAGE_BYTES).enumerate() {
            let start = page * PAGE_BYTES;
            let mut old =
                from.get(start.min(from.len())..(start + new.len()).min(from.len())).unwrap_or(&[]).to_vec();
            old.resize(new.len(), 0);
            if old != new || self.rng.borrow_mut().chance(10) {
                let is_hole = new.iter().all(|byte| *byte == 0);
                extents.push(ReplicaExtent {
                    offset_bytes: start as u64,
                    len_bytes: new.len() as u64,
                    is_hole,
                });
            }
        }
        Ok(extents)
    }

    async fn create_volume(&self, volume: &str, size_bytes: u64) -> Result<(), StoreError> {
        self.wait().await;
        let bytes = vec![0; size_bytes as usize];
        let fresh = Volume { now: bytes.clone(), durable: bytes, snapshots: Vec::new() };
        let old = self.platters.borrow_mut().volumes.insert(volume.into(), fresh);
        assert!(old.is_none(), "volume {volume} was there already");
        self.wait().await;
        Ok(())
    }

    async fn resize(&self, volume: &str, size_bytes: u64) -> Result<(), StoreError> {
        self.wait().await;
        self.change(volume, |volume| {
            volume.now.resize(size_bytes as usize, 0);
            volume.durable.resize(size_bytes as usize, 0);
            Ok(())
        })?;
        self.wait().await;
        Ok(())
    }

    /// A power cut may leave the snapshots without writes that were not flushed.
    async fn snapshot(&self, volumes: &[String], snapshot: &str, _at_s: f64) -> Result<(), StoreError> {
        self.wait().await;
        for name in volumes {
            self.change(name, |volume| {
                let bytes = volume.torn(&mut self.rng.borrow_mut());
                assert!(volume.snapshot(snapshot).is_none(), "{snapshot} was there already");
                volume.snapshots.push((snapshot.into(), bytes));
                Ok(())
            })?;
        }
        // The snapshots show all completed writes; only a power cut before the end would have changed that.
        let now: Vec<_> =
            volumes.iter().map(|name| self.platters.borrow().volumes[name].now.clone()).collect();
        self.wait().await;
        for (name, now) in volumes.iter().zip(now) {
            self.change(name, |volume| {
                let found = volume.snapshots.iter_mut().find(|(name, _)| name == snapshot);
                found.ok_or_else(|| refused(snapshot))?.1 = now;
                Ok(())
            })?;
        }
        Ok(())
    }

    async fn delete_snapshot(&self, volume: &str, snapshot: &str) -> Result<(), StoreError> {
        self.wait().await;
        self.change(volume, |volume| {
            volume.snapshot(snapshot).ok_or_else(|| refused(snapshot))?;
            volume.snapshots.retain(|(name, _)| name != snapshot);
            Ok(())
        })?;
        self.wait().await;
        Ok(())
    }

    async fn restore(&self, volume: &str, snapshot: &str) -> Result<(), StoreError> {
        self.wait().await;
        self.change(volume, |volume| {
            let bytes = volume.snapshot(snapshot).cloned().ok_or_else(|| refused(snapshot))?;
            volume.now.clone_from(&bytes);
            volume.durable = bytes;
            Ok(())
        })?;
        self.wait().await;
        Ok(())
    }

    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.platters.borrow().table.get(key).cloned())
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let platters = self.platters.borrow();
        Ok(platters.table.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }

    async fn put(&self, key: &str, value: Option<Vec<u8>>) -> Result<(), StoreError> {
        self.wait().await;
        match value {
            Some(value) => self.platters.borrow_mut().table.insert(key.into(), value),
            None => self.platters.borrow_mut().table.remove(key),
        };
        self.wait().await;
        Ok(())
    }
}

/// A volume as hosts see it.
struct Live {
    store: MemoryStore,
    name: String,
}

impl Live {
    /// Runs an operation on a range to its end, even if no caller waits.
    fn run<T: 'static>(
        &self,
        range: Range<usize>,
        operation: impl FnOnce(&mut Volume, Range<usize>) -> T + 'static,
    ) -> LocalBoxFuture<'static, Result<T, DiskError>> {
        let (store, name) = (self.store.clone(), self.name.clone());
        let (sender, receiver) = oneshot::channel();
        let runtime = store.runtime.clone();
        runtime.spawn(async move {
            store.wait().await;
            let result = store.change(&name, |volume| {
                // A volume may shrink while an operation is in transit.
                let fits = range.end <= volume.now.len();
                fits.then(|| operation(volume, range)).ok_or_else(|| refused("range"))
            });
            store.wait().await;
            let _ = sender.send(result.map_err(|_| DiskError::Failed(name)));
        });
        // A killed process drops the sender: its callers never get an answer.
        async move {
            match receiver.await {
                Ok(result) => result,
                Err(_) => pending().await,
            }
        }
        .boxed_local()
    }
}

impl Disk for Live {
    fn name(&self) -> &str {
        &self.name
    }

    fn size_bytes(&self) -> u64 {
        self.store.platters.borrow().volumes[&self.name].now.len() as u64
    }

    fn block_bytes(&self) -> u32 {
        BLOCK_BYTES as u32
    }

    fn stats(&self) -> DiskStats {
        DiskStats::default()
    }

    fn read(&self, offset: u64, mut into: BytesMut) -> Reading {
        self.run(range(offset, into.len()), move |volume, range| {
            into.copy_from_slice(&volume.now[range]);
            into
        })
    }

    fn write(&self, offset: u64, data: Bytes, durable: bool) -> Writing {
        self.run(range(offset, data.len()), move |volume, range| {
            volume.now[range.clone()].copy_from_slice(&data);
            if durable {
                volume.durable[range].copy_from_slice(&data);
            }
        })
    }

    fn flush(&self) -> Writing {
        self.run(0..0, |volume, _| volume.durable.clone_from(&volume.now))
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        self.run(range(offset, len as usize), |volume, range| volume.now[range].fill(0))
    }
}

fn range(offset: u64, len: usize) -> Range<usize> {
    offset as usize..offset as usize + len
}

/// A volume as it was.
struct Frozen {
    store: MemoryStore,
    name: String,
    bytes: Vec<u8>,
}

impl Disk for Frozen {
    fn name(&self) -> &str {
        &self.name
    }

    fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn block_bytes(&self) -> u32 {
        BLOCK_BYTES as u32
    }

    fn stats(&self) -> DiskStats {
        DiskStats::default()
    }

    fn read(&self, offset: u64, mut into: BytesMut) -> Reading {
        let range = offset as usize..offset as usize + into.len();
        into.copy_from_slice(&self.bytes[range]);
        let store = self.store.clone();
        async move {
            store.wait().await;
            Ok(into)
        }
        .boxed_local()
    }

    fn write(&self, _offset: u64, _data: Bytes, _durable: bool) -> Writing {
        let name = self.name.clone();
        async { Err(DiskError::Protected(name)) }.boxed_local()
    }

    fn flush(&self) -> Writing {
        async { Ok(()) }.boxed_local()
    }

    fn discard(&self, offset: u64, _len: u64) -> Writing {
        self.write(offset, Bytes::new(), false)
    }
}
