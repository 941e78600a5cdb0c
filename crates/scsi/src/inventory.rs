//! One SCSI target device: its LUNs, and answers for LUNs that do not exist.

use crate::{InitiatorPort, LogicalUnit, Nexus, places::Places, sense::Sense, wire::be32};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, Ordering},
};
use thiserror::Error;

/// Largest LUN (flat space addressing, SAM-5 4.7.7.3).
pub const MAX_LUN: u16 = 16_383;

/// The logical units of one target. They come and go while it serves; finding one takes no lock.
#[derive(Debug, Default)]
pub struct Inventory {
    /// Every unit that there ever was, in the order of their coming.
    units: Places<Member>,
    /// By LUN: the place of its unit plus one; 0 = none.
    by_lun: Places<AtomicU32>,
    /// How many places are filled; held by whoever changes anything.
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
            inventory.place_unit(lun, unit)?;
        }
        Ok(inventory)
    }

    /// Adds a unit while the target serves. Initiators are told REPORTED LUNS DATA HAS CHANGED by the others.
    pub fn add(&self, lun: u16, unit: Arc<LogicalUnit>) -> Result<(), InventoryError> {
        self.place_unit(lun, unit)?;
        self.announce();
        Ok(())
    }

    /// Takes a unit out: from now on its LUN answers as if it had never been. Commands that have begun are finished; its
    /// LUN is free again after [`Inventory::forget`]. Returns the unit.
    pub fn retire(&self, lun: u16) -> Option<Arc<LogicalUnit>> {
        let unit = self.unit(lun)?;
        unit.retire();
        self.announce();
        Some(unit)
    }

    /// Frees the LUN of a unit that was retired. Its last write must have ended: [`LogicalUnit::is_idle`].
    pub fn forget(&self, lun: u16) {
        let _count = self.count();
        if let Some(place) = self.by_lun.get(usize::from(lun)) {
            place.store(0, Ordering::Release);
        }
    }

    /// LUN numbers and units, ascending.
    pub fn units(&self) -> Vec<(u16, Arc<LogicalUnit>)> {
        let place_of = |member: &Member| {
            self.by_lun.get(usize::from(member.lun)).map(|place| place.load(Ordering::Acquire))
        };
        let is_listed = |(place, member): &(usize, &Member)| {
            place_of(member) == Some(*place as u32 + 1) && !member.unit.is_retired()
        };
        let listed = self.units.iter().filter(is_listed);
        let mut units: Vec<_> = listed.map(|(_, member)| (member.lun, Arc::clone(&member.unit))).collect();
        units.sort_by_key(|(lun, _)| *lun);
        units
    }

    /// The unit behind a LUN.
    pub fn unit(&self, lun: u16) -> Option<Arc<LogicalUnit>> {
        let (_, unit) = self.at(self.place(lun)?)?;
        (!unit.is_retired()).then(|| Arc::clone(unit))
    }

    /// The tag of the unit behind a LUN ([`crate::UnitConfig::tag`]), also of one that was retired.
    pub fn tag(&self, lun: u16) -> Option<u64> {
        self.at(self.place(lun)?).map(|(_, unit)| unit.config().tag)
    }

    /// Place of a LUN's unit.
    pub(crate) fn place(&self, lun: u16) -> Option<usize> {
        (self.by_lun.get(usize::from(lun))?.load(Ordering::Acquire) as usize).checked_sub(1)
    }

    /// LUN and unit of a place.
    pub(crate) fn at(&self, place: usize) -> Option<(u16, &Arc<LogicalUnit>)> {
        self.units.get(place).map(|member| (member.lun, &member.unit))
    }

    fn place_unit(&self, lun: u16, unit: Arc<LogicalUnit>) -> Result<(), InventoryError> {
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
        // A place is filled before it is counted, so a poisoned lock still guards sound data.
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new `I_T` nexus. A session that is reinstated must [`Nexus::logout`] its predecessor first.
    pub fn login(self: &Arc<Self>, initiator: InitiatorPort, relative_port: u16) -> Arc<Nexus> {
        Nexus::new(self.clone(), initiator, relative_port)
    }
}

/// The number in an 8-byte LUN field: single level, peripheral device or flat space addressing (SAM-5 4.7).
pub(crate) fn lun_number(lun: [u8; 8]) -> Option<u16> {
    if lun[2..] != [0; 6] {
        return None;
    }
    match lun[0] >> 6 {
        0 if lun[0] == 0 => Some(u16::from(lun[1])),
        1 => Some(u16::from_be_bytes([lun[0] & 0x3F, lun[1]])),
        _ => None,
    }
}

/// The LUN field for a number: peripheral device addressing below 256, flat space above.
fn lun_field(lun: u16) -> [u8; 8] {
    let [high, low] = lun.to_be_bytes();
    let method = if lun < 256 { 0 } else { 0x40 };
    [method | high, low, 0, 0, 0, 0, 0, 0]
}

/// REPORT LUNS (SPC-4 6.33). There are no well known logical units to report.
pub(crate) fn report_luns(inventory: &Inventory, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let units = match cdb[2] {
        0 | 2 => inventory.units(),
        1 => Vec::new(),
        _ => return Err(Sense::cdb(2)),
    };
    let mut out = ((units.len() * 8) as u32).to_be_bytes().to_vec();
    out.extend_from_slice(&[0; 4]);
    out.extend(units.iter().flat_map(|(lun, _)| lun_field(*lun)));
    out.truncate(be32(cdb, 6) as usize);
    Ok(out)
}

/// A LUN table that cannot be (fault: user, in the array's configuration).
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InventoryError {
    /// Out of range.
    #[error("LUN {0} is out of range: use 0 to {MAX_LUN}")]
    LunRange(u16),
    /// Twice.
    #[error("LUN {0} is given to two volumes")]
    LunTwice(u16),
    /// More units have come and gone than one life of a target bears.
    #[error("this target has had more volumes than it can count; start the array again")]
    TooMany,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lun_fields_round_trip_and_strange_ones_name_nothing() {
        for lun in [0, 1, 255, 256, MAX_LUN] {
            assert_eq!(lun_number(lun_field(lun)), Some(lun));
        }
        assert_eq!(lun_number([0x40, 7, 0, 0, 0, 0, 0, 0]), Some(7), "flat addressing of a small LUN");
        for strange in [[1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0], [0xC1, 1, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(lun_number(strange), None);
        }
    }
}
