//! Making, resizing and deleting volumes.

use super::{
    Doing, Pool, PoolError, PoolVolume, SnapshotStatus, VolumeStatus, check_name,
    core::{Core, VolumeCore},
    map::{LayerId, Map, VolumeRecord},
    transfer,
};
use std::rc::Rc;

impl Pool {
    /// A volume by name; None if there is none.
    pub fn volume(&self, name: &str) -> Option<Rc<PoolVolume>> {
        let volume = self.core.volume(name).ok()?;
        Some(Rc::new(PoolVolume::new(Rc::clone(&self.core), volume)))
    }

    /// Makes a volume of zeros. It takes no space until it is written.
    pub fn create_volume(&self, name: &str, size_bytes: u64) -> Doing<Rc<PoolVolume>> {
        let (core, name) = (Rc::clone(&self.core), name.to_owned());
        self.core.runtime.start(async move {
            let _verb = core.verbs.lock().await;
            check_new(&core, &name, size_bytes)?;
            let volume = add(&core, &name, size_bytes, None);
            core.commit().await?;
            Ok(Rc::new(PoolVolume::new(Rc::clone(&core), volume)))
        })
    }

    /// Changes the size of a volume. A part that is cut off is lost, except in its snapshots; a new part reads as
    /// zeros.
    pub fn resize(&self, name: &str, size_bytes: u64) -> Doing<()> {
        let (core, name) = (Rc::clone(&self.core), name.to_owned());
        self.core.runtime.start(async move {
            let _verb = core.verbs.lock().await;
            let volume = core.volume(&name)?;
            let before = volume.size_bytes.get();
            check_size(&core, size_bytes)?;
            check_promise(&core, before, size_bytes)?;
            core.check_room()?;
            let closed = volume.quiesce.close().await;
            let page_end = size_bytes.min(before).next_multiple_of(core.page_bytes());
            if size_bytes > before && page_end > before {
                // An earlier end may have left bytes in this page. These bytes, and the zeros, are not visible before
                // the size is stored.
                transfer::clear(&core, &volume, before, page_end - before).await?;
            } else if before > page_end {
                // Only whole pages: there is nothing to wait for, so they are part of the same transaction as the size.
                transfer::clear(&core, &volume, page_end, before - page_end).await?;
            }
            volume.size_bytes.set(size_bytes);
            put(&core, &volume);
            drop(closed);
            Ok(core.commit().await?)
        })
    }

    /// Deletes a volume without snapshots. From now on every operation of an open handle fails.
    pub fn delete(&self, name: &str) -> Doing<()> {
        let (core, name) = (Rc::clone(&self.core), name.to_owned());
        self.core.runtime.start(async move {
            let verb = core.verbs.lock().await;
            let volume = core.volume(&name)?;
            if core.map.borrow().snapshots(volume.id).next().is_some() {
                return Err(PoolError::HasSnapshots(name));
            }
            core.check()?;
            let closed = volume.quiesce.close().await;
            volume.is_gone.set(true);
            core.volumes.borrow_mut().remove(&name);
            core.map.borrow_mut().put_volume(&name, None);
            drop(closed);
            core.commit().await?;
            drop(verb);
            collapse(&core).await
        })
    }
}

/// Removes layers without references; the loss of the references must be durable. A layer may be as large as its
/// volume. So it is removed in steps, each in its own transaction. Other work, also verbs, runs between the steps.
pub(super) async fn collapse(core: &Rc<Core>) -> Result<(), PoolError> {
    loop {
        // A change of references holds this lock until it is durable.
        let verb = core.verbs.lock().await;
        let is_more = core.map.borrow_mut().collapse(core.config.merge_leaves);
        core.commit().await?;
        drop(verb);
        if !is_more {
            return Ok(());
        }
        // The clock must move at least once.
        core.runtime.sleep(1).await;
    }
}

/// Stores the new state of a volume.
pub(super) fn put(core: &Core, volume: &VolumeCore) {
    let (id, size_bytes, layer) = (volume.id, volume.size_bytes.get(), volume.layer.get());
    core.map.borrow_mut().put_volume(&volume.name, Some(VolumeRecord { id, size_bytes, layer }));
}

/// Adds a volume that writes above `below`.
pub(super) fn add(core: &Core, name: &str, size_bytes: u64, below: Option<LayerId>) -> Rc<VolumeCore> {
    let volume = {
        let mut map = core.map.borrow_mut();
        let id = map.next_volume();
        let layer = map.add_layer(below, id);
        Rc::new(VolumeCore::new(name, id, size_bytes, layer))
    };
    put(core, &volume);
    core.volumes.borrow_mut().insert(name.to_owned(), Rc::clone(&volume));
    volume
}

/// Whether a volume can be added.
pub(super) fn check_new(core: &Core, name: &str, size_bytes: u64) -> Result<(), PoolError> {
    check_name(name)?;
    check_size(core, size_bytes)?;
    if core.volumes.borrow().contains_key(name) {
        return Err(PoolError::Exists(name.to_owned()));
    }
    check_promise(core, 0, size_bytes)?;
    Ok(core.check_room()?)
}

fn check_size(core: &Core, size_bytes: u64) -> Result<(), PoolError> {
    let is_size = size_bytes > 0
        && size_bytes <= 1 << 60
        && size_bytes.is_multiple_of(u64::from(core.disk.block_bytes()));
    if is_size { Ok(()) } else { Err(PoolError::BadSize(size_bytes)) }
}

/// Whether the pool may provision `now` instead of `before`.
pub(super) fn check_promise(core: &Core, before: u64, now: u64) -> Result<(), PoolError> {
    // No limit, or the volume does not grow.
    let Some(ratio) = core.config.overcommit.filter(|_| now > before) else { return Ok(()) };
    let promised: u64 = core.volumes.borrow().values().map(|volume| volume.size_bytes.get()).sum();
    let provisioned_bytes = promised - before + now;
    let size_bytes = core.map.borrow().pages.count() * core.page_bytes();
    let limit_bytes = (size_bytes as f64 * ratio) as u64;
    if provisioned_bytes <= limit_bytes {
        return Ok(());
    }
    Err(PoolError::Overcommitted { provisioned_bytes, limit_bytes })
}

/// See [`Pool::status`].
pub(super) fn status(core: &Core, map: &Map, name: &str, record: &VolumeRecord) -> VolumeStatus {
    let pages: u64 = map
        .layers
        .ids()
        .filter_map(|id| map.layers.get(id))
        .filter(|layer| layer.owner == record.id)
        .map(|layer| layer.pages)
        .sum();
    let mut snapshots: Vec<_> = map.snapshots(record.id).collect();
    snapshots.sort_by_key(|(_, snapshot)| snapshot.layer);
    VolumeStatus {
        name: name.to_owned(),
        size_bytes: record.size_bytes,
        used_bytes: pages * core.page_bytes(),
        snapshots: snapshots
            .into_iter()
            .map(|(name, snapshot)| SnapshotStatus {
                name: name.to_owned(),
                at_s: snapshot.at_s,
                size_bytes: snapshot.size_bytes,
            })
            .collect(),
    }
}
