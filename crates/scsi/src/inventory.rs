//! One SCSI target device: its LUNs, and answers for LUNs that do not exist.

use crate::{InitiatorPort, LogicalUnit, Nexus, sense::Sense, wire::be32};
use std::sync::Arc;
use thiserror::Error;

/// Largest LUN (flat space addressing, SAM-5 4.7.7.3).
pub const MAX_LUN: u16 = 16_383;

/// The logical units of one target.
#[derive(Debug)]
pub struct Inventory {
    units: Vec<(u16, Arc<LogicalUnit>)>,
    /// Place in `units` of each LUN up to the highest.
    places: Box<[Option<u16>]>,
}

impl Inventory {
    /// A target with these LUNs.
    pub fn new(mut units: Vec<(u16, Arc<LogicalUnit>)>) -> Result<Arc<Self>, InventoryError> {
        units.sort_by_key(|(lun, _)| *lun);
        if let Some((lun, _)) = units.last().filter(|(lun, _)| *lun > MAX_LUN) {
            return Err(InventoryError::LunRange(*lun));
        }
        if let Some(pair) = units.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(InventoryError::LunTwice(pair[0].0));
        }
        let mut places = vec![None; units.last().map_or(0, |(lun, _)| usize::from(*lun) + 1)];
        for (place, (lun, _)) in (0..).zip(&units) {
            places[usize::from(*lun)] = Some(place);
        }
        Ok(Arc::new(Self { units, places: places.into() }))
    }

    /// LUN numbers and units, ascending.
    pub fn units(&self) -> &[(u16, Arc<LogicalUnit>)] {
        &self.units
    }

    /// Place of a LUN in [`Inventory::units`].
    pub(crate) fn place(&self, lun: u16) -> Option<usize> {
        self.places.get(usize::from(lun)).copied().flatten().map(usize::from)
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
        1 => &[],
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
