//! Snapshots: create, view, restore, clone, compare.

use super::{
    Doing, Pool, PoolError, PoolVolume, check_name,
    core::{Core, VolumeCore},
    map::{Found, LEAF_PAGES, SnapshotRecord},
    volume::View,
    volumes,
};
use crate::disk::Disk;
use std::{collections::BTreeSet, ops::Range, rc::Rc};

/// A range of a volume that differs between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// First byte.
    pub offset_bytes: u64,
    /// Length.
    pub len_bytes: u64,
    /// The later snapshot has no data here: it reads as zeros.
    pub is_hole: bool,
}

impl Pool {
    /// Takes a snapshot of each of `volumes`, all at one instant without a write in progress. `at_s` is the time of day
    /// in seconds since 1970. Errors: no volume, an unknown one, a name that one of them uses already.
    pub fn snapshot(&self, volumes: &[&str], name: &str, at_s: f64) -> Doing<()> {
        let volumes: BTreeSet<String> = volumes.iter().map(|volume| (*volume).to_owned()).collect();
        let (core, name) = (Rc::clone(&self.core), name.to_owned());
        self.core.runtime.start(async move {
            let _verb = core.verbs.lock().await;
            check_name(&name)?;
            core.check_room()?;
            let volumes: Vec<Rc<VolumeCore>> =
                volumes.iter().map(|volume| core.volume(volume)).collect::<Result<_, _>>()?;
            for volume in &volumes {
                if core.map.borrow().snapshot(volume.id, &name).is_some() {
                    return Err(PoolError::Exists(format!("{}@{name}", volume.name)));
                }
            }
            let mut closed = Vec::new();
            for volume in &volumes {
                closed.push(volume.quiesce.close().await);
            }
            for volume in &volumes {
                freeze(&core, volume, &name, at_s);
            }
            drop(closed);
            Ok(core.commit().await?)
        })
    }

    /// Deletes a snapshot. Its pages without other references become free.
    pub fn delete_snapshot(&self, volume: &str, snapshot: &str) -> Doing<()> {
        let (core, volume, snapshot) = (Rc::clone(&self.core), volume.to_owned(), snapshot.to_owned());
        self.core.runtime.start(async move {
            let verb = core.verbs.lock().await;
            let (volume, _) = find(&core, &volume, &snapshot)?;
            core.check()?;
            core.map.borrow_mut().put_snapshot(volume.id, &snapshot, None);
            // Only after this may its layer be merged with one that is written to.
            core.commit().await?;
            drop(verb);
            volumes::collapse(&core).await
        })
    }

    /// Restores the contents and the size of a volume. Its later contents are lost, except in other snapshots; all
    /// snapshots remain.
    pub fn restore(&self, volume: &str, snapshot: &str) -> Doing<()> {
        let (core, volume, snapshot) = (Rc::clone(&self.core), volume.to_owned(), snapshot.to_owned());
        self.core.runtime.start(async move {
            let verb = core.verbs.lock().await;
            let (volume, record) = find(&core, &volume, &snapshot)?;
            volumes::check_promise(&core, volume.size_bytes.get(), record.size_bytes)?;
            core.check_room()?;
            let closed = volume.quiesce.close().await;
            let layer = core.map.borrow_mut().add_layer(Some(record.layer), volume.id);
            volume.layer.set(layer);
            volume.found.forget();
            volume.size_bytes.set(record.size_bytes);
            volumes::put(&core, &volume);
            drop(closed);
            core.commit().await?;
            drop(verb);
            volumes::collapse(&core).await
        })
    }

    /// Makes a new volume from a snapshot. It shares the pages of the snapshot until it writes its own. The snapshot
    /// may be deleted before it.
    pub fn clone_snapshot(&self, volume: &str, snapshot: &str, name: &str) -> Doing<Rc<PoolVolume>> {
        let (volume, snapshot, name) = (volume.to_owned(), snapshot.to_owned(), name.to_owned());
        let core = Rc::clone(&self.core);
        self.core.runtime.start(async move {
            let _verb = core.verbs.lock().await;
            let (_, record) = find(&core, &volume, &snapshot)?;
            volumes::check_new(&core, &name, record.size_bytes)?;
            let clone = volumes::add(&core, &name, record.size_bytes, Some(record.layer));
            core.commit().await?;
            Ok(Rc::new(PoolVolume::new(Rc::clone(&core), clone)))
        })
    }

    /// A snapshot of a volume, with its size at that time, as a read-only disk.
    pub fn view(&self, volume: &str, snapshot: &str) -> Result<Rc<dyn Disk>, PoolError> {
        let (volume, record) = find(&self.core, volume, snapshot)?;
        Ok(Rc::new(View::new(Rc::clone(&self.core), &volume, snapshot, record.size_bytes)))
    }

    /// The ranges to copy to change a volume from the contents of `from`, or from zeros, to those of `to`: in order of
    /// offset, without overlap, within the size of `to`, in whole pages (the last one is cut at the end).
    pub fn changed(&self, volume: &str, from: Option<&str>, to: &str) -> Result<Vec<Change>, PoolError> {
        let (_, to) = find(&self.core, volume, to)?;
        let from = from.map(|from| find(&self.core, volume, from)).transpose()?.map(|(_, record)| record);
        Ok(compare(&self.core, from.as_ref(), &to))
    }
}

fn find(core: &Core, volume: &str, snapshot: &str) -> Result<(Rc<VolumeCore>, SnapshotRecord), PoolError> {
    let volume = core.volume(volume)?;
    let record = core.map.borrow().snapshot(volume.id, snapshot).cloned();
    match record {
        Some(record) => Ok((volume, record)),
        None => Err(PoolError::NoSnapshot { volume: volume.name.clone(), snapshot: snapshot.to_owned() }),
    }
}

/// The snapshot gets the layer of the volume; the volume writes to a new layer from now on.
fn freeze(core: &Core, volume: &VolumeCore, name: &str, at_s: f64) {
    let (layer, size_bytes) = (volume.layer.get(), volume.size_bytes.get());
    {
        let mut map = core.map.borrow_mut();
        map.put_snapshot(volume.id, name, Some(SnapshotRecord { layer, size_bytes, at_s }));
        volume.layer.set(map.add_layer(Some(layer), volume.id));
    }
    volumes::put(core, volume);
}

fn compare(core: &Core, from: Option<&SnapshotRecord>, to: &SnapshotRecord) -> Vec<Change> {
    let page_bytes = core.page_bytes();
    let layers = &core.map.borrow().layers;
    let pages = to.size_bytes.div_ceil(page_bytes);
    let all: Range<u64> = 0..pages.div_ceil(LEAF_PAGES);
    // If the size ends within a page, the page may have hidden bytes behind the end, which another size makes visible.
    let cut = from
        .filter(|from| from.size_bytes < to.size_bytes && !from.size_bytes.is_multiple_of(page_bytes))
        .map(|from| from.size_bytes / page_bytes);
    let from = from.map(|from| from.layer);
    // Only layers that they do not share can differ.
    let common = from.and_then(|from| layers.common(from, to.layer));
    let mut leaves = layers.leaves_between(to.layer, common, &all);
    if let Some(from) = from {
        leaves.extend(layers.leaves_between(from, common, &all));
    }
    leaves.extend(cut.map(|index| index / LEAF_PAGES));
    let mut changes: Vec<Change> = Vec::new();
    for index in leaves.into_iter().flat_map(|leaf| leaf * LEAF_PAGES..(leaf + 1) * LEAF_PAGES) {
        if index >= pages {
            break;
        }
        let now = layers.find(to.layer, index);
        let before = from.map_or(Found::Zero, |from| layers.find(from, index));
        let is_cut = cut == Some(index) && now != Found::Zero;
        if now == before && !is_cut {
            continue;
        }
        let (start, is_hole) = (index * page_bytes, now == Found::Zero);
        let end = (start + page_bytes).min(to.size_bytes);
        match changes.last_mut() {
            Some(last) if last.offset_bytes + last.len_bytes == start && last.is_hole == is_hole => {
                last.len_bytes = end - last.offset_bytes;
            }
            _ => changes.push(Change { offset_bytes: start, len_bytes: end - start, is_hole }),
        }
    }
    changes
}
