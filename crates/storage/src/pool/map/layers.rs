//! The tree of layers. A volume writes into a layer of its own; a snapshot freezes that layer by putting a new one above
//! it. A page belongs to the one layer that it was allocated for, and moves to the layer above when its own is merged.

use super::leaf::{LEAF_PAGES, Leaf, Slot};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

/// Identifies a layer; never 0, and never used again while the pool is open.
pub(crate) type LayerId = u64;

/// The content of a page of a volume, seen from one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Zero,
    Page { page: u32, layer: LayerId },
}

/// One layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    /// The layer below; none: zeros.
    pub(crate) below: Option<LayerId>,
    /// The number of the volume for which the layer was made.
    pub(crate) owner: u64,
    /// Number of its pages.
    pub(crate) pages: u64,
    leaves: BTreeMap<u64, Box<Leaf>>,
    above: BTreeSet<LayerId>,
}

/// All layers of a pool.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    by_id: BTreeMap<LayerId, Layer>,
    last: LayerId,
    merges: u64,
}

/// The changes of a merge or removal of a layer.
#[derive(Debug, Default)]
pub(crate) struct Collapsed {
    /// Layers with a changed or removed record.
    pub(crate) layers: Vec<LayerId>,
    /// Changed or removed leaves.
    pub(crate) leaves: Vec<(LayerId, u64)>,
    /// Pages that have no owner any more.
    pub(crate) pages: Vec<u32>,
}

impl Layers {
    /// Puts a new, empty layer above `below`.
    pub(crate) fn add(&mut self, below: Option<LayerId>, owner: u64) -> LayerId {
        let id = self.last + 1;
        self.load(id, below, owner);
        self.link(id);
        id
    }

    /// Adds a stored layer; call [`Layers::link`] when all layers are loaded.
    pub(crate) fn load(&mut self, id: LayerId, below: Option<LayerId>, owner: u64) {
        self.last = self.last.max(id);
        self.by_id.insert(id, Layer { below, owner, ..Layer::default() });
    }

    /// Links this layer to the layer below it; false if that layer does not exist.
    pub(crate) fn link(&mut self, id: LayerId) -> bool {
        let Some(below) = self.by_id.get(&id).map(|layer| layer.below) else { return false };
        let Some(below) = below else { return true };
        self.by_id.get_mut(&below).is_some_and(|layer| layer.above.insert(id))
    }

    /// Adds a stored leaf; false if there is no such layer.
    pub(crate) fn load_leaf(&mut self, id: LayerId, number: u64, leaf: Leaf) -> bool {
        let Some(layer) = self.by_id.get_mut(&id) else { return false };
        layer.pages += leaf.pages();
        layer.leaves.insert(number, Box::new(leaf));
        true
    }

    pub(crate) fn get(&self, id: LayerId) -> Option<&Layer> {
        self.by_id.get(&id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = LayerId> {
        self.by_id.keys().copied()
    }

    pub(crate) fn leaf(&self, id: LayerId, number: u64) -> Option<&Leaf> {
        self.by_id.get(&id)?.leaves.get(&number).map(AsRef::as_ref)
    }

    /// Whether no layer is above.
    pub(crate) fn is_top(&self, id: LayerId) -> bool {
        self.by_id.get(&id).is_some_and(|layer| layer.above.is_empty())
    }

    /// A layer and all layers below it, from the top.
    pub(crate) fn chain(&self, top: Option<LayerId>) -> impl Iterator<Item = (LayerId, &Layer)> {
        let with_id = |id: Option<LayerId>| id.and_then(|id| Some((id, self.by_id.get(&id)?)));
        std::iter::successors(with_id(top), move |(_, layer)| with_id(layer.below))
    }

    /// The content of page number `index` of a volume, seen from `top`.
    pub(crate) fn find(&self, top: LayerId, index: u64) -> Found {
        find_in(self.chain(Some(top)), index)
    }

    /// The contents of all pages of a leaf, seen from `top`.
    pub(crate) fn find_leaf(&self, top: LayerId, number: u64) -> [Found; LEAF_PAGES as usize] {
        let mut found = [None; LEAF_PAGES as usize];
        for (id, layer) in self.chain(Some(top)) {
            let Some(leaf) = layer.leaves.get(&number) else { continue };
            for (found, slot) in found.iter_mut().zip(leaf.slots()).filter(|(found, _)| found.is_none()) {
                *found = said(id, *slot);
            }
        }
        found.map(|found| found.unwrap_or(Found::Zero))
    }

    /// Counts the calls that moved pages between layers.
    pub(crate) fn merges(&self) -> u64 {
        self.merges
    }

    /// The content if `top` had no entry.
    pub(crate) fn find_below(&self, top: LayerId, index: u64) -> Found {
        find_in(self.chain(Some(top)).skip(1), index)
    }

    /// Sets the slot of a page in a layer. Returns the page that the layer owned there before and owns no longer.
    pub(crate) fn set(&mut self, id: LayerId, index: u64, slot: Slot) -> Option<u32> {
        let layer = self.by_id.get_mut(&id)?;
        let number = index / LEAF_PAGES;
        let leaf = layer.leaves.entry(number).or_insert_with(|| Box::new(Leaf::new()));
        let before = leaf.set((index % LEAF_PAGES) as usize, slot);
        if leaf.is_empty() {
            layer.leaves.remove(&number);
        }
        layer.pages += u64::from(matches!(slot, Slot::Page(_)));
        match before {
            Slot::Page(page) => {
                layer.pages -= 1;
                Some(page).filter(|_| slot != before)
            }
            Slot::Below | Slot::Zero => None,
        }
    }

    /// The leaves within `numbers` for which any layer from `top` down to `end` (not included) has an entry.
    pub(crate) fn leaves_between(
        &self,
        top: LayerId,
        end: Option<LayerId>,
        numbers: &Range<u64>,
    ) -> BTreeSet<u64> {
        self.chain(Some(top))
            .take_while(|(id, _)| Some(*id) != end)
            .flat_map(|(_, layer)| layer.leaves.range(numbers.clone()).map(|(number, _)| *number))
            .collect()
    }

    /// The highest layer that is at or below both.
    pub(crate) fn common(&self, one: LayerId, other: LayerId) -> Option<LayerId> {
        let ones: BTreeSet<LayerId> = self.chain(Some(one)).map(|(id, _)| id).collect();
        self.chain(Some(other)).map(|(id, _)| id).find(|id| ones.contains(id))
    }

    /// Removes the unreferenced layer `id`, if at most one layer is above it. The layer above gets the entries that it
    /// lacks, and its parent becomes the parent of `id`. One call moves at most `most` leaves; the layer is removed
    /// together with its last one. Readers see the same bytes all the time. Returns the number of moved leaves.
    pub(crate) fn collapse(&mut self, id: LayerId, most: usize, changes: &mut Collapsed) -> usize {
        let Some(layer) = self.by_id.get(&id).filter(|layer| layer.above.len() <= 1) else { return 0 };
        let (heir, below) = (layer.above.first().copied(), layer.below);
        self.merges += 1;
        let mut moved = 0;
        while moved < most
            && let Some((number, leaf)) = self.take_leaf(id)
        {
            moved += 1;
            changes.leaves.push((id, number));
            changes.leaves.extend(heir.map(|heir| (heir, number)));
            let Some(leaf) = self.bequeath_leaf(heir, number, leaf, below.is_none()) else { continue };
            for (place, slot) in leaf.slots().iter().enumerate() {
                self.bequeath(heir, number * LEAF_PAGES + place as u64, *slot, changes);
            }
        }
        if self.by_id.get(&id).is_some_and(|layer| layer.leaves.is_empty()) {
            self.unlink(id, heir, below);
            changes.layers.push(id);
            changes.layers.extend(heir);
        }
        moved
    }

    fn take_leaf(&mut self, id: LayerId) -> Option<(u64, Box<Leaf>)> {
        let layer = self.by_id.get_mut(&id)?;
        let (number, leaf) = layer.leaves.pop_first()?;
        layer.pages -= leaf.pages();
        Some((number, leaf))
    }

    /// Unlinks a layer between two others.
    fn unlink(&mut self, id: LayerId, above: Option<LayerId>, below: Option<LayerId>) {
        self.by_id.remove(&id);
        if let Some(below) = below.and_then(|below| self.by_id.get_mut(&below)) {
            below.above.remove(&id);
            below.above.extend(above);
        }
        if let Some(above) = above.and_then(|above| self.by_id.get_mut(&above)) {
            above.below = below;
        }
    }

    /// Moves a whole leaf, if the layer above has none there. Otherwise returns it.
    fn bequeath_leaf(
        &mut self,
        heir: Option<LayerId>,
        number: u64,
        mut leaf: Box<Leaf>,
        is_bottom: bool,
    ) -> Option<Box<Leaf>> {
        // No layer above: its owner frees the leaf.
        let Some(heir) = heir.and_then(|heir| self.by_id.get_mut(&heir)) else { return Some(leaf) };
        if heir.leaves.contains_key(&number) {
            return Some(leaf);
        }
        if is_bottom {
            leaf.drop_zeros();
        }
        if !leaf.is_empty() {
            heir.pages += leaf.pages();
            heir.leaves.insert(number, leaf);
        }
        None
    }

    /// Moves the entry of a removed layer for one page to the layer above it.
    fn bequeath(&mut self, heir: Option<LayerId>, index: u64, slot: Slot, changes: &mut Collapsed) {
        let said = heir.and_then(|heir| self.leaf(heir, index / LEAF_PAGES));
        let said = said.map_or(Slot::Below, |leaf| leaf.get((index % LEAF_PAGES) as usize));
        let Some(heir) = heir.filter(|_| said == Slot::Below && slot != Slot::Below) else {
            if let Slot::Page(page) = slot {
                changes.pages.push(page);
            }
            // Entries of zeros are needed only if a layer below has data there.
            if let Some(heir) = heir.filter(|_| said == Slot::Zero) {
                self.drop_idle_zero(heir, index);
            }
            return;
        };
        self.set(heir, index, slot);
        if slot == Slot::Zero {
            self.drop_idle_zero(heir, index);
        }
    }

    fn drop_idle_zero(&mut self, id: LayerId, index: u64) {
        if self.find_below(id, index) == Found::Zero {
            self.set(id, index, Slot::Below);
        }
    }
}

/// The content of a page by the first layer with an entry.
fn find_in<'a>(chain: impl Iterator<Item = (LayerId, &'a Layer)>, index: u64) -> Found {
    let place = (index % LEAF_PAGES) as usize;
    for (id, layer) in chain {
        let slot = layer.leaves.get(&(index / LEAF_PAGES)).map_or(Slot::Below, |leaf| leaf.get(place));
        if let Some(found) = said(id, slot) {
            return found;
        }
    }
    Found::Zero
}

/// The content of an entry; None if the layer below decides.
fn said(layer: LayerId, slot: Slot) -> Option<Found> {
    match slot {
        Slot::Below => None,
        Slot::Zero => Some(Found::Zero),
        Slot::Page(page) => Some(Found::Page { page, layer }),
    }
}
