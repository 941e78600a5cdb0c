//! A cache of the positions of a volume's pages: a long chain of snapshots is searched at the first access only.

use super::{
    layers::{Found, LayerId, Layers},
    leaf::LEAF_PAGES,
};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// Cached leaves: 1 KiB each.
const MOST_LEAVES: usize = 4096;

/// The cached positions of one volume. They name the layer that owns each page, so they stay valid when the volume's
/// own layer is frozen.
#[derive(Debug, Default)]
pub(crate) struct FoundPages {
    leaves: RefCell<HashMap<u64, Box<[Found; LEAF_PAGES as usize]>, BuildHasherDefault<NumberHasher>>>,
    /// The number of layer merges that these leaves include.
    merges: Cell<u64>,
}

impl FoundPages {
    /// The content of page number `index`, seen from `top`.
    pub(crate) fn get(&self, layers: &Layers, top: LayerId, index: u64) -> Found {
        if self.merges.replace(layers.merges()) != layers.merges() {
            self.forget();
        }
        let place = (index % LEAF_PAGES) as usize;
        let mut leaves = self.leaves.borrow_mut();
        if let Some(leaf) = leaves.get(&(index / LEAF_PAGES)) {
            return leaf[place];
        }
        if leaves.len() >= MOST_LEAVES {
            leaves.clear();
        }
        let leaf = layers.find_leaf(top, index / LEAF_PAGES);
        leaves.insert(index / LEAF_PAGES, Box::new(leaf));
        leaf[place]
    }

    /// The volume's own layer has a new entry for a page.
    pub(crate) fn set(&self, index: u64, found: Found) {
        if let Some(leaf) = self.leaves.borrow_mut().get_mut(&(index / LEAF_PAGES)) {
            leaf[(index % LEAF_PAGES) as usize] = found;
        }
    }

    /// Empties the cache, because the volume has new contents.
    pub(crate) fn forget(&self) {
        self.leaves.borrow_mut().clear();
    }
}

/// One multiplication distributes the numbers of leaves: there are few, and one is looked up for each operation.
#[derive(Clone, Copy, Debug, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
