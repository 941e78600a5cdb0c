//! One SCSI target device: its LUNs, and answers for LUNs that do not exist.

use crate::{LogicalUnit, lun_table::LunTable};
use linerate_scsi_proto::lun::MAX_LUN;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, Ordering},
};
use thiserror::Error;

/// The logical units of one target. They are added and removed while it serves; a lookup takes no lock.
#[derive(Debug, Default)]
pub struct Inventory {
    /// Every unit that was ever added, in order.
    units: LunTable<Member>,
    /// By LUN: the index of its unit in `units` plus one; 0 = none.
    by_lun: LunTable<AtomicU32>,
    /// How many entries of `units` are filled. A thread that changes the inventory locks it.
    count: Mutex<usize>,
}

#[derive(Debug)]
struct Member {
    lun: u16,
    unit: Arc<LogicalUnit>,
}

impl Inventory {
    /// A target with these LUNs.
    pub fn new(units: Vec<(u16, Arc<LogicalUnit>)>) -> Result<Arc<Self>, InventoryError> {
        let inventory = Arc::new(Self::default());
        for (lun, unit) in units {
            inventory.insert(lun, unit)?;
        }
        Ok(inventory)
    }

    /// Adds a unit while the target serves. The other units report REPORTED LUNS DATA HAS CHANGED to the initiators.
    pub fn add(&self, lun: u16, unit: Arc<LogicalUnit>) -> Result<(), InventoryError> {
        self.insert(lun, unit)?;
        self.announce();
        Ok(())
    }

    /// Removes a unit: from now on its LUN answers like one that does not exist. Commands in progress are completed;
    /// its LUN is free again after [`Inventory::forget`]. Returns the unit.
    pub fn retire(&self, lun: u16) -> Option<Arc<LogicalUnit>> {
        let unit = self.unit(lun)?;
        unit.retire();
        self.announce();
        Some(unit)
    }

    /// Frees the LUN of a removed unit. Its last write must have ended: [`LogicalUnit::is_idle`].
    pub fn forget(&self, lun: u16) {
        let _count = self.count();
        if let Some(entry) = self.by_lun.get(usize::from(lun)) {
            entry.store(0, Ordering::Release);
        }
    }

    /// LUN numbers and units, ascending.
    pub fn units(&self) -> Vec<(u16, Arc<LogicalUnit>)> {
        let entry_of = |member: &Member| {
            self.by_lun.get(usize::from(member.lun)).map(|entry| entry.load(Ordering::Acquire))
        };
        let is_listed = |(index, member): &(usize, &Member)| {
            entry_of(member) == Some(*index as u32 + 1) && !member.unit.is_retired()
        };
        let listed = self.units.iter().filter(is_listed);
        let mut units: Vec<_> = listed.map(|(_, member)| (member.lun, Arc::clone(&member.unit))).collect();
        units.sort_by_key(|(lun, _)| *lun);
        units
    }

    /// The unit behind a LUN.
    pub fn unit(&self, lun: u16) -> Option<Arc<LogicalUnit>> {
        let (_, unit) = self.at(self.index(lun)?)?;
        (!unit.is_retired()).then(|| Arc::clone(unit))
    }

    /// The tag of a LUN's unit ([`crate::UnitConfig::tag`]), also of a removed one.
    pub fn tag(&self, lun: u16) -> Option<u64> {
        self.at(self.index(lun)?).map(|(_, unit)| unit.config().tag)
    }

    /// Index of a LUN's unit.
    pub(crate) fn index(&self, lun: u16) -> Option<usize> {
        (self.by_lun.get(usize::from(lun))?.load(Ordering::Acquire) as usize).checked_sub(1)
    }

    /// LUN and unit of an index.
    pub(crate) fn at(&self, index: usize) -> Option<(u16, &Arc<LogicalUnit>)> {
        self.units.get(index).map(|member| (member.lun, &member.unit))
    }

    fn insert(&self, lun: u16, unit: Arc<LogicalUnit>) -> Result<(), InventoryError> {
        if lun > MAX_LUN {
            return Err(InventoryError::LunRange(lun));
        }
        let mut count = self.count();
        let by_lun = self.by_lun.get_or_fill(usize::from(lun), AtomicU32::default);
        let by_lun = by_lun.ok_or(InventoryError::LunRange(lun))?;
        if by_lun.load(Ordering::Acquire) != 0 {
            return Err(InventoryError::LunTwice(lun));
        }
        self.units.get_or_fill(*count, || Member { lun, unit }).ok_or(InventoryError::TooMany)?;
        *count += 1;
        by_lun.store(*count as u32, Ordering::Release);
        Ok(())
    }

    fn announce(&self) {
        for (_, unit) in self.units() {
            unit.tell_luns_changed();
        }
    }

    fn count(&self) -> MutexGuard<'_, usize> {
        // An entry is filled before it is counted, so the data behind a poisoned lock is consistent.
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An invalid LUN table (fault: user, in the array's configuration).
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InventoryError {
    /// Out of range.
    #[error("LUN {0} is out of range: use 0 to {MAX_LUN}")]
    LunRange(u16),
    /// Twice.
    #[error("LUN {0} is given to two volumes")]
    LunTwice(u16),
    /// The table is full: more units were added and removed than it has entries.
    #[error("this target has had more volumes than it can count; start the array again")]
    TooMany,
}
