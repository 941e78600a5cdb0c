//! Memory of disks that reads are sent from, as one worker's driver knows it.

use linerate_io::{Driver, Region, RegionId};
use std::sync::Arc;

/// Owners of a region that is not used any more: this list and the driver.
const OWNERS_MIN: usize = 2;

/// Regions are attached when they are used first, and let go when their disk is gone: it may have been replaced.
#[derive(Debug, Default)]
pub(crate) struct DiskRegions(Vec<(RegionId, Arc<Region>)>);

impl DiskRegions {
    /// The driver's identifier of a region.
    pub(crate) fn id<D: Driver>(&mut self, driver: &mut D, region: &Arc<Region>) -> RegionId {
        if let Some((id, _)) = self.0.iter().find(|(_, known)| Arc::ptr_eq(known, region)) {
            return *id;
        }
        let id = driver.attach(Arc::clone(region));
        self.0.push((id, Arc::clone(region)));
        id
    }

    /// Lets go of regions that nothing else has any more: neither a disk nor a read that is being sent.
    pub(crate) fn tidy<D: Driver>(&mut self, driver: &mut D) {
        self.0.retain(|(id, region)| {
            let is_used = Arc::strong_count(region) > OWNERS_MIN;
            if !is_used {
                driver.detach(*id);
            }
            is_used
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_io::EpollDriver;

    #[test]
    fn memory_of_a_disk_that_is_gone_is_returned() {
        let (mut regions, mut driver) = (DiskRegions::default(), EpollDriver::new().unwrap());
        let [stays, goes] = [4096, 8192].map(|len| Region::anonymous(len).unwrap());
        let first = regions.id(&mut driver, &stays);
        let second = regions.id(&mut driver, &goes);
        assert!(first != second && regions.id(&mut driver, &goes) == second);
        let memory = Arc::downgrade(&goes);
        regions.tidy(&mut driver);
        assert!(memory.upgrade().is_some());
        drop(goes);
        regions.tidy(&mut driver);
        assert!(memory.upgrade().is_none());
        assert_eq!(regions.id(&mut driver, &stays), first);
    }
}
