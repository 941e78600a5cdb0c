//! Chunks of thin members whose space is reserved.

use super::super::{bitmap::Bitmap, geometry::Geometry};
use linerate_io::Nanos;
use std::{cell::RefCell, ops::Range};

/// Interval of the attempts to get space.
pub(in super::super) const LOOK_FOR_SPACE_NS: Nanos = 100_000_000;

/// The chunks with reserved space, by slot and stripe; None for members that need no reservation.
pub(in super::super) struct Space {
    stripes: u64,
    reserved: RefCell<Vec<Option<Bitmap>>>,
    /// Ranges that are reserved for the user of the group, on new members too.
    pub(in super::super) kept: RefCell<Vec<Range<u64>>>,
}

impl Space {
    pub(in super::super) fn new(geometry: Geometry) -> Self {
        let reserved = RefCell::new(vec![None; geometry.members]);
        Self { stripes: geometry.stripes, reserved, kept: RefCell::default() }
    }

    /// Whether the space of a stripe is kept even if it holds nothing.
    pub(in super::super) fn is_kept(&self, stripe: u64) -> bool {
        self.kept.borrow().iter().any(|stripes| stripes.contains(&stripe))
    }

    /// A slot has another disk, whose reservations are unknown.
    pub(in super::super) fn forget(&self, slot: usize) {
        self.reserved.borrow_mut()[slot] = None;
    }

    pub(in super::super) fn is_reserved(&self, slot: usize, stripe: u64) -> bool {
        self.reserved.borrow()[slot].as_ref().is_some_and(|stripes| stripes.get(stripe))
    }

    pub(in super::super) fn set(&self, slot: usize, stripes: Range<u64>, is_reserved: bool) {
        let mut reserved = self.reserved.borrow_mut();
        reserved[slot].get_or_insert_with(|| Bitmap::new(self.stripes)).set_range(stripes, is_reserved);
    }

    /// A chunk was discarded.
    pub(in super::super) fn give_back(&self, slot: usize, stripe: u64) {
        if self.is_reserved(slot, stripe) {
            self.set(slot, stripe..stripe + 1, false);
        }
    }
}
