//! The state of a pool in memory: volumes, snapshots, layers, pages, settings. Open this file first.
//!
//! A change is made here first, at one instant, and marked as not stored. A [`Batch`] holds all changes that are not
//! stored at one instant. So the state on disk is always one past state of the pool.

mod found;
mod layers;
mod leaf;
mod pages;

pub(crate) use found::FoundPages;
pub(crate) use layers::{Collapsed, Found, LayerId, Layers};
pub(crate) use leaf::{LEAF_PAGES, Leaf, Slot};
pub(crate) use pages::{FreshPage, Pages, Pin};

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// A volume as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeRecord {
    /// Never used again while any part of the volume remains.
    pub(crate) id: u64,
    pub(crate) size_bytes: u64,
    /// The layer to which it writes.
    pub(crate) layer: LayerId,
}

/// A snapshot as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SnapshotRecord {
    pub(crate) layer: LayerId,
    pub(crate) size_bytes: u64,
    /// Seconds since 1970.
    pub(crate) at_s: f64,
}

/// Everything that a pool stores, as it was read.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) volumes: BTreeMap<String, VolumeRecord>,
    /// By volume number and name.
    pub(crate) snapshots: BTreeMap<(u64, String), SnapshotRecord>,
    /// Layer, layer below, owner.
    pub(crate) layers: Vec<(LayerId, Option<LayerId>, u64)>,
    pub(crate) leaves: Vec<(LayerId, u64, Leaf)>,
    pub(crate) settings: BTreeMap<String, Bytes>,
}

/// The current value of each key; None if the key was removed.
type Rows<K, V> = Vec<(K, Option<V>)>;

/// The contents of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) volumes: Rows<String, VolumeRecord>,
    pub(crate) snapshots: Rows<(u64, String), SnapshotRecord>,
    /// The layer below, and the owner.
    pub(crate) layers: Rows<LayerId, (Option<LayerId>, u64)>,
    pub(crate) leaves: Rows<(LayerId, u64), Vec<u8>>,
    pub(crate) settings: Rows<String, Bytes>,
    /// Pages that it releases.
    pub(crate) released: Vec<u32>,
    /// It contains the changes up to this one.
    pub(crate) version: u64,
}

/// What changed since the last batch.
#[derive(Debug, Default)]
struct Dirty {
    volumes: BTreeSet<String>,
    snapshots: BTreeSet<(u64, String)>,
    layers: BTreeSet<LayerId>,
    leaves: BTreeSet<(LayerId, u64)>,
    settings: BTreeSet<String>,
}

/// See the module text.
#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) layers: Layers,
    pub(crate) pages: Pages,
    volumes: BTreeMap<String, VolumeRecord>,
    snapshots: BTreeMap<(u64, String), SnapshotRecord>,
    settings: BTreeMap<String, Bytes>,
    last_volume: u64,
    dirty: Dirty,
    /// Leaves of the batch that is being stored.
    storing: BTreeSet<(LayerId, u64)>,
    /// Number of the last change.
    version: u64,
    /// Number of the last change that is in a batch.
    taken: u64,
}

impl Map {
    /// An empty map over `count` free pages.
    pub(crate) fn new(count: u32) -> Self {
        Self {
            layers: Layers::default(),
            pages: Pages::new(count),
            volumes: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            settings: BTreeMap::new(),
            last_volume: 0,
            dirty: Dirty::default(),
            storing: BTreeSet::new(),
            version: 0,
            taken: 0,
        }
    }

    /// Loads the stored contents. Errors: contradictions, in words; for instance two owners of a page.
    pub(crate) fn load(count: u32, contents: Contents) -> Result<Self, String> {
        let mut map = Self::new(count);
        map.last_volume = contents.volumes.values().map(|volume| volume.id).max().unwrap_or(0);
        for (id, below, owner) in &contents.layers {
            map.layers.load(*id, *below, *owner);
            map.last_volume = map.last_volume.max(*owner);
        }
        for (id, below, _) in &contents.layers {
            // Layers are made from the bottom up, so they cannot form a ring.
            if !map.layers.link(*id) || below.is_some_and(|below| below >= *id) {
                return Err(format!("layer {id} is above a layer that cannot be below it"));
            }
        }
        for (id, number, leaf) in contents.leaves {
            for slot in leaf.slots() {
                if let Slot::Page(page) = slot
                    && !map.pages.claim(*page)
                {
                    return Err(format!("page {page} is owned twice, or is none of the pool's pages"));
                }
            }
            if !map.layers.load_leaf(id, number, leaf) {
                return Err(format!("layer {id} has leaves and no record"));
            }
        }
        let tops: BTreeSet<LayerId> = contents.volumes.values().map(|volume| volume.layer).collect();
        if tops.len() != contents.volumes.len() || !tops.iter().all(|top| map.layers.is_top(*top)) {
            return Err("a volume writes into a layer that is not its own".to_owned());
        }
        if let Some((_, name)) = contents
            .snapshots
            .iter()
            .find(|(_, snapshot)| map.layers.get(snapshot.layer).is_none())
            .map(|(key, _)| key)
        {
            return Err(format!("snapshot \"{name}\" has lost its layer"));
        }
        map.volumes = contents.volumes;
        map.snapshots = contents.snapshots;
        map.settings = contents.settings;
        while map.collapse(usize::MAX) {}
        Ok(map)
    }

    pub(crate) fn volumes(&self) -> &BTreeMap<String, VolumeRecord> {
        &self.volumes
    }

    pub(crate) fn settings(&self) -> &BTreeMap<String, Bytes> {
        &self.settings
    }

    /// A volume's snapshots by name.
    pub(crate) fn snapshots(&self, volume: u64) -> impl Iterator<Item = (&str, &SnapshotRecord)> {
        let range = (volume, String::new())..(volume + 1, String::new());
        self.snapshots.range(range).map(|((_, name), snapshot)| (name.as_str(), snapshot))
    }

    pub(crate) fn snapshot(&self, volume: u64, name: &str) -> Option<&SnapshotRecord> {
        self.snapshots.get(&(volume, name.to_owned()))
    }

    /// A number for a new volume.
    pub(crate) fn next_volume(&mut self) -> u64 {
        self.last_volume += 1;
        self.last_volume
    }

    /// Adds, changes or removes a volume.
    pub(crate) fn put_volume(&mut self, name: &str, record: Option<VolumeRecord>) {
        put(&mut self.volumes, name.to_owned(), record);
        self.dirty.volumes.insert(name.to_owned());
        self.version += 1;
    }

    /// Adds or removes a snapshot.
    pub(crate) fn put_snapshot(&mut self, volume: u64, name: &str, record: Option<SnapshotRecord>) {
        put(&mut self.snapshots, (volume, name.to_owned()), record);
        self.dirty.snapshots.insert((volume, name.to_owned()));
        self.version += 1;
    }

    /// Adds, changes or removes a setting.
    pub(crate) fn put_setting(&mut self, key: &str, value: Option<Bytes>) {
        put(&mut self.settings, key.to_owned(), value);
        self.dirty.settings.insert(key.to_owned());
        self.version += 1;
    }

    /// Puts a new layer above `below`.
    pub(crate) fn add_layer(&mut self, below: Option<LayerId>, owner: u64) -> LayerId {
        let id = self.layers.add(below, owner);
        self.dirty.layers.insert(id);
        self.version += 1;
        id
    }

    /// Sets the slot of a page in a layer. A page that the layer owned there before is released.
    pub(crate) fn set(&mut self, layer: LayerId, index: u64, slot: Slot) {
        if let Some(page) = self.layers.set(layer, index, slot) {
            self.pages.release(page);
        }
        self.dirty.leaves.insert((layer, index / LEAF_PAGES));
        self.version += 1;
    }

    /// Removes and merges the layers without references, up to so many of their leaves. The loss of the references must
    /// be durable: as long as a crash could restore a snapshot, its layer must not be merged into one that is written
    /// to. Returns whether work may be left.
    pub(crate) fn collapse(&mut self, most: usize) -> bool {
        let used: BTreeSet<LayerId> = self
            .volumes
            .values()
            .map(|volume| volume.layer)
            .chain(self.snapshots.values().map(|snapshot| snapshot.layer))
            .collect();
        let (mut changes, mut left) = (Collapsed::default(), most);
        // From the top, so that the layer below a removed one is checked afterwards.
        let idle: Vec<LayerId> = self.layers.ids().filter(|id| !used.contains(id)).collect();
        for id in idle.into_iter().rev() {
            left -= self.layers.collapse(id, left, &mut changes);
            if left == 0 {
                break;
            }
        }
        if changes.layers.is_empty() && changes.leaves.is_empty() {
            return false;
        }
        self.dirty.layers.extend(changes.layers);
        self.dirty.leaves.extend(changes.leaves);
        changes.pages.into_iter().for_each(|page| self.pages.release(page));
        self.version += 1;
        left == 0
    }

    /// Number of the last change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The change that makes the slot of a page durable; None if it is durable already.
    pub(crate) fn pending(&self, layer: LayerId, index: u64) -> Option<u64> {
        let leaf = (layer, index / LEAF_PAGES);
        if self.dirty.leaves.contains(&leaf) {
            Some(self.version)
        } else {
            self.storing.contains(&leaf).then_some(self.taken)
        }
    }

    /// All changes since the last batch; None if there are none.
    pub(crate) fn take_batch(&mut self) -> Option<Batch> {
        if self.taken == self.version {
            return None;
        }
        self.taken = self.version;
        let dirty = std::mem::take(&mut self.dirty);
        self.storing.clone_from(&dirty.leaves);
        let now = |layer: LayerId| self.layers.get(layer).map(|layer| (layer.below, layer.owner));
        let leaf = |(layer, number): (LayerId, u64)| self.layers.leaf(layer, number).map(Leaf::encode);
        Some(Batch {
            volumes: dirty
                .volumes
                .into_iter()
                .map(|key| (key.clone(), self.volumes.get(&key).cloned()))
                .collect(),
            snapshots: dirty
                .snapshots
                .into_iter()
                .map(|key| (key.clone(), self.snapshots.get(&key).cloned()))
                .collect(),
            layers: dirty.layers.into_iter().map(|id| (id, now(id))).collect(),
            leaves: dirty.leaves.into_iter().map(|key| (key, leaf(key))).collect(),
            settings: dirty
                .settings
                .into_iter()
                .map(|key| (key.clone(), self.settings.get(&key).cloned()))
                .collect(),
            released: self.pages.take_released(),
            version: self.version,
        })
    }

    /// The last batch is durable.
    pub(crate) fn stored(&mut self, released: Vec<u32>) {
        self.storing.clear();
        self.pages.settle(released);
    }
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}
