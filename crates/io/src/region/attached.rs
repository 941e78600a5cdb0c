//! The regions that segments of I/Os name, for data that a user of the driver reads or copies itself.

use super::Region;
use crate::{RegionId, Seg};
use std::sync::Arc;

/// Regions by the identifier that a driver gave them.
#[derive(Clone, Debug, Default)]
pub struct AttachedRegions(Vec<Option<Arc<Region>>>);

impl AttachedRegions {
    /// Adds a region that is attached to the driver as `id`.
    pub fn insert(&mut self, id: RegionId, region: Arc<Region>) {
        let index = id.index() as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, None);
        }
        self.0[index] = Some(region);
    }

    /// The region of an identifier, if it was added.
    #[inline]
    pub fn get(&self, id: RegionId) -> Option<&Arc<Region>> {
        self.0.get(id.index() as usize)?.as_ref()
    }

    /// The region of a segment.
    ///
    /// # Panics
    ///
    /// If the region of the segment was never added.
    #[inline]
    pub fn of(&self, seg: Seg) -> &Arc<Region> {
        self.get(seg.region).expect("segments of I/Os are in regions that were attached")
    }

    /// Passes the bytes of a segment in pieces. Panics as [`of`](Self::of).
    pub fn for_each_chunk(&self, seg: Seg, each: impl FnMut(&[u8])) {
        self.of(seg).for_each_chunk(seg.offset, u64::from(seg.len), each);
    }
}
