//! One SCSI target device: its LUNs, and answers for LUNs that do not exist.

use crate::{InitiatorPort, LogicalUnit, Nexus};
use std::sync::Arc;
use thiserror::Error;

/// Largest LUN (flat space addressing, SAM-5 4.7.7.3).
pub const MAX_LUN: u16 = 16_383;

/// The logical units of one target.
#[derive(Debug)]
pub struct Inventory {
    units: Vec<(u16, Arc<LogicalUnit>)>,
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
        Ok(Arc::new(Self { units }))
    }

    /// LUN numbers and units, ascending.
    pub fn units(&self) -> &[(u16, Arc<LogicalUnit>)] {
        &self.units
    }

    /// A new I_T nexus. A session that is reinstated must [`Nexus::logout`] its predecessor first.
    pub fn login(self: &Arc<Self>, initiator: InitiatorPort, relative_port: u16) -> Arc<Nexus> {
        Arc::new(Nexus::new(self.clone(), initiator, relative_port))
    }
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
