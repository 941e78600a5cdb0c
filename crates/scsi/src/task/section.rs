//! Holding stripes over several steps; see `unit/write_exclusion.rs`. Both kinds release them when dropped.

use crate::{
    LogicalUnit,
    unit::{Claim, Mask},
};
use std::sync::Arc;

/// A task's plain write: shares its stripes with other writes.
pub(crate) struct Entry {
    unit: Arc<LogicalUnit>,
    mask: Mask,
}

impl Entry {
    /// Enters, or returns `None` while a section has any of the stripes.
    pub(crate) fn enter(unit: &Arc<LogicalUnit>, offset_bytes: u64, len_bytes: u64) -> Option<Self> {
        let mask = Mask::of(offset_bytes, len_bytes);
        unit.stripes().enter(mask).then(|| Self { unit: unit.clone(), mask })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.unit.stripes().leave(self.mask);
    }
}

/// A read-modify-write: it has its stripes exclusively once [`Section::advance`] returns true.
pub(crate) struct Section {
    unit: Arc<LogicalUnit>,
    claim: Claim,
}

impl Section {
    pub(crate) fn new(unit: &Arc<LogicalUnit>, offset_bytes: u64, len_bytes: u64) -> Self {
        Self { unit: unit.clone(), claim: Claim::new(Mask::of(offset_bytes, len_bytes)) }
    }

    pub(crate) fn advance(&mut self) -> bool {
        self.claim.advance(self.unit.stripes())
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        self.claim.release(self.unit.stripes());
    }
}
