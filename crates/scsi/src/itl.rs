//! The `I_T_L` nexus: one initiator port's view of one logical unit, and the hot path.
//!
//! Everything that could stop a plain READ or WRITE (another nexus's reservation, a pending unit attention, a
//! stopped or protected unit, a port in standby) is folded into one atomic word per `I_T_L` nexus, the *gate*. A
//! read costs one load of it; a write adds one atomic add on its stripe's counter. When anything is unusual the command
//! takes the full path through the command table, which finds out what it is.

use crate::{
    AccessState, Expected, Extent, MAX_TRANSFER_BYTES, Nexus, Plan,
    nexus::PortPair,
    sense::{Refusal, Sense},
    task::lba_and_blocks,
    unit::LogicalUnit,
};
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU32, Ordering},
};

/// Bits of the gate word.
pub(crate) mod gate {
    /// A unit attention is pending.
    pub(crate) const ATTENTION: u32 = 1;
    /// A reservation of another nexus forbids reading.
    pub(crate) const NO_READ: u32 = 1 << 1;
    /// A reservation of another nexus forbids writing.
    pub(crate) const NO_WRITE: u32 = 1 << 2;
    /// The unit is stopped.
    pub(crate) const STOPPED: u32 = 1 << 3;
    /// The medium is write protected.
    pub(crate) const PROTECTED: u32 = 1 << 4;
    /// The write cache is off: every write is durable. Not an obstacle.
    pub(crate) const WRITE_THROUGH: u32 = 1 << 5;

    /// The target port's group is in standby, unavailable or in transition.
    pub(crate) const NO_ACCESS: u32 = 1 << 6;
    /// The unit has been taken out of its target.
    pub(crate) const RETIRED: u32 = 1 << 7;

    pub(crate) const STOPS_READ: u32 = ATTENTION | NO_READ | STOPPED | NO_ACCESS | RETIRED;
    pub(crate) const STOPS_WRITE: u32 = ATTENTION | NO_WRITE | STOPPED | PROTECTED | NO_ACCESS | RETIRED;
}

/// Bits of byte 1 of READ and WRITE (10, 12, 16).
pub(crate) const DPO: u8 = 0x10;
pub(crate) const FUA: u8 = 0x08;

#[derive(Debug)]
pub(crate) struct Itl {
    unit: Arc<LogicalUnit>,
    lun: u16,
    id: u64,
    port: Arc<PortPair>,
    nexus: Weak<Nexus>,
    gate: AtomicU32,
    abort_epoch: AtomicU32,
}

impl Itl {
    pub(crate) fn new(
        unit: Arc<LogicalUnit>,
        lun: u16,
        id: u64,
        port: Arc<PortPair>,
        nexus: Weak<Nexus>,
    ) -> Self {
        let (gate, abort_epoch) = (AtomicU32::new(gate::ATTENTION), AtomicU32::new(0));
        Self { unit, lun, id, port, nexus, gate, abort_epoch }
    }

    pub(crate) fn unit(&self) -> &Arc<LogicalUnit> {
        &self.unit
    }

    pub(crate) fn lun(&self) -> u16 {
        self.lun
    }

    /// Number of the `I_T` nexus, unique in the process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn port(&self) -> &PortPair {
        &self.port
    }

    /// The nexus this belongs to, unless it is going away.
    pub(crate) fn nexus(&self) -> Option<Arc<Nexus>> {
        self.nexus.upgrade()
    }

    pub(crate) fn block_bytes(&self) -> u32 {
        self.unit.config().block_bytes
    }

    pub(crate) fn gate(&self) -> u32 {
        self.gate.load(Ordering::Acquire)
    }

    pub(crate) fn set_gate(&self, bits: u32) {
        self.gate.store(bits, Ordering::Release);
    }

    /// The state of the target port's group.
    pub(crate) fn access(&self) -> AccessState {
        self.unit.lock().access.of_port(self.unit.config(), self.port.relative_port)
    }

    pub(crate) fn abort_epoch(&self) -> u32 {
        self.abort_epoch.load(Ordering::Acquire)
    }

    pub(crate) fn abort_tasks(&self) {
        self.abort_epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether a write with these FUA bits must be durable before GOOD.
    pub(crate) fn must_be_durable(&self, flags: u8) -> bool {
        flags & FUA != 0 || self.gate() & gate::WRITE_THROUGH != 0
    }

    /// The hot path: a plain READ or WRITE that nothing stands in the way of, or `None`.
    pub(crate) fn begin_plain(&self, cdb: &[u8; 16], expected: Expected) -> Option<Plan> {
        // Byte 1 of a six-byte CDB holds LBA bits, not flags.
        let (flags, control) = match cdb[0] {
            0x08 | 0x0A => (0, cdb[5]),
            0x28 | 0x2A => (cdb[1], cdb[9]),
            0xA8 | 0xAA => (cdb[1], cdb[11]),
            0x88 | 0x8A => (cdb[1], cdb[15]),
            _ => return None,
        };
        if flags & !(DPO | FUA) != 0 || control != 0 {
            return None;
        }
        let (lba, blocks) = lba_and_blocks(cdb);
        let extent = self.extent(lba, blocks).ok()?;
        let gate = self.gate();
        if cdb[0] & 0x0F == 0x08 {
            let len_bytes = extent.asked_bytes.min(expected.in_bytes);
            return (gate & gate::STOPS_READ == 0).then_some(Plan::Read(Extent { len_bytes, ..extent }));
        }
        let len_bytes = extent.asked_bytes.min(expected.out_bytes);
        let partial_block = !len_bytes.is_multiple_of(self.block_bytes());
        let durable = flags & FUA != 0 || gate & gate::WRITE_THROUGH != 0;
        let extent = Extent { len_bytes, durable, ..extent };
        (gate & gate::STOPS_WRITE == 0 && !partial_block && self.enter(&extent))
            .then_some(Plan::Write(extent))
    }

    /// Enters the stripes of a plain write; see [`crate::stripes`].
    pub(crate) fn enter(&self, extent: &Extent) -> bool {
        self.unit.stripes().enter_range(extent.offset_bytes, extent.len_bytes)
    }

    pub(crate) fn leave(&self, extent: &Extent) {
        self.unit.stripes().leave_range(extent.offset_bytes, extent.len_bytes);
    }

    /// The bytes of `blocks` blocks at `lba`, checked against capacity and transfer limit.
    pub(crate) fn extent(&self, lba: u64, blocks: u32) -> Result<Extent, Sense> {
        let offset_bytes = self.offset(lba, u64::from(blocks))?;
        let asked = u64::from(blocks) * u64::from(self.block_bytes());
        if asked > u64::from(MAX_TRANSFER_BYTES) {
            return Err(Sense::illegal(crate::sense::code::INVALID_FIELD_IN_CDB));
        }
        let asked = asked as u32;
        Ok(Extent { offset_bytes, len_bytes: asked, asked_bytes: asked, durable: false })
    }

    /// Byte offset of `lba`, if `blocks` blocks from there on exist. Zero blocks may start at the very end.
    pub(crate) fn offset(&self, lba: u64, blocks: u64) -> Result<u64, Sense> {
        let capacity = self.unit.capacity_blocks();
        match lba.checked_add(blocks) {
            Some(end) if end <= capacity => Ok(lba * u64::from(self.block_bytes())),
            _ => Err(Sense::lba(lba.max(capacity.min(lba.saturating_add(blocks))))),
        }
    }

    /// How much data-out to take for a command that asks for `asked_bytes`: a transfer that the initiator cut
    /// short is done as far as it goes if it ends on a block boundary, and refused as a whole if not.
    pub(crate) fn data_out_len(&self, asked_bytes: u32, expected: Expected) -> Result<u32, Refusal> {
        if expected.out_bytes >= asked_bytes {
            Ok(asked_bytes)
        } else if expected.out_bytes.is_multiple_of(self.block_bytes()) {
            Ok(expected.out_bytes)
        } else {
            Err(Refusal::DataOutLength { asked_bytes })
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Expected, Identity, InitiatorPort, Inventory, LogicalUnit, Plan, UnitConfig};

    /// Whoever holds the unit's lock would wait for itself if a plain command wanted it.
    #[test]
    fn a_plain_read_or_write_of_any_size_takes_no_lock() {
        let unit = LogicalUnit::new(UnitConfig {
            identity: Identity {
                vendor: String::new(),
                product: String::new(),
                revision: String::new(),
                serial: String::new(),
                naa: [0x60; 16],
            },
            capacity_blocks: 1024,
            block_bytes: 512,
            physical_block_bytes: 512,
            write_cache: true,
            read_only: false,
            thin: false,
            unmap_bytes: 0,
            keeps_reservations: false,
            tag: 0,
            ports: Vec::new(),
        });
        let inventory = Inventory::new(vec![(0, unit.unwrap())]).unwrap();
        let initiator = InitiatorPort { name: "iqn.2026-11.lab.linerate:a".into(), isid: [0; 6] };
        let nexus = inventory.login(initiator, 1);
        let expected = Expected { in_bytes: 1024, out_bytes: 1024 };
        let cdb = |opcode: u8, at: usize| {
            let mut cdb = [0; 16];
            (cdb[0], cdb[at]) = (opcode, 2);
            cdb
        };
        let attention = nexus.begin([0; 8], &cdb(0x28, 8), expected);
        assert!(matches!(attention, Plan::Reply(_)), "power on");
        let unit = inventory.unit(0).unwrap();
        let held = unit.lock();
        for (opcode, at) in [(0x08, 4), (0x28, 8), (0xA8, 9), (0x88, 13)] {
            let read = nexus.begin([0; 8], &cdb(opcode, at), expected);
            assert!(matches!(read, Plan::Read(extent) if extent.len_bytes == 1024), "{opcode:#x}: {read:?}");
            let write = nexus.begin([0; 8], &cdb(opcode | 2, at), expected);
            let Plan::Write(extent) = write else { panic!("{opcode:#x}: {write:?}") };
            assert_eq!(extent.len_bytes, 1024);
            nexus.end_write([0; 8], &extent);
        }
        drop(held);
    }
}
