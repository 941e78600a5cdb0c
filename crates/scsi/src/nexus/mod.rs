//! The `I_T` nexus: one initiator port at one target port, and its access to every logical unit.

mod itl;

pub(crate) use itl::Itl;

use crate::{InitiatorPort, Inventory, LogicalUnit, lun_table::LunTable, port::PortPair};
use linerate_scsi_proto::lun;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

/// One initiator logged in to one target port. Logs out when it is dropped.
#[derive(Debug)]
pub struct Nexus {
    this: Weak<Self>,
    inventory: Arc<Inventory>,
    id: u64,
    port: Arc<PortPair>,
    /// By the index of the unit in the inventory. The first command fills an entry, so that an idle session of a target
    /// with many LUNs stays small. The power-on attention of the first command covers earlier events of the unit.
    itls: LunTable<Arc<Itl>>,
}

impl Inventory {
    /// A new `I_T` nexus. On session reinstatement the old nexus must [`Nexus::logout`] first.
    pub fn login(self: &Arc<Self>, initiator: InitiatorPort, relative_port: u16) -> Arc<Nexus> {
        Nexus::new(self.clone(), initiator, relative_port)
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Nexus {
    fn new(inventory: Arc<Inventory>, initiator: InitiatorPort, relative_port: u16) -> Arc<Self> {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let port = Arc::new(PortPair { initiator, relative_port });
        let itls = LunTable::default();
        Arc::new_cyclic(|this| Self { this: this.clone(), inventory, id, port, itls })
    }

    /// Number of this nexus, unique in the process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The initiator's side.
    pub fn initiator(&self) -> &InitiatorPort {
        &self.port.initiator
    }

    /// The target's side.
    pub fn relative_port(&self) -> u16 {
        self.port.relative_port
    }

    /// The target that this nexus sees.
    pub fn inventory(&self) -> &Arc<Inventory> {
        &self.inventory
    }

    /// How many units it has sent commands to.
    pub fn units_used(&self) -> usize {
        self.itls.iter().filter(|(_, itl)| !itl.unit().is_retired()).count()
    }

    /// The first unit for which `is_it` is true.
    pub(crate) fn find(&self, is_it: impl Fn(&LogicalUnit) -> bool) -> Option<&Arc<Itl>> {
        let units = self.inventory.units();
        let (lun, _) = units.iter().find(|(_, unit)| is_it(unit))?;
        self.itl_at(self.inventory.index(*lun)?)
    }

    pub(crate) fn itl(&self, lun: [u8; 8]) -> Option<&Arc<Itl>> {
        self.itl_at(self.inventory.index(lun::from_field(lun)?)?)
    }

    fn itl_at(&self, place: usize) -> Option<&Arc<Itl>> {
        if let Some(itl) = self.itls.get(place) {
            return Some(itl);
        }
        let (lun, unit) = self.inventory.at(place)?;
        self.itls.get_or_fill(place, || Itl::attached(unit, lun, self, self.this.clone()))
    }

    /// `I_T` nexus loss: the session has ended. Aborts its tasks and releases SCSI-2 reservations; persistent
    /// reservations are kept. May be called again.
    pub fn logout(&self) {
        for (_, itl) in self.itls.iter() {
            itl.unit().detach(self.id);
        }
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        self.logout();
    }
}
