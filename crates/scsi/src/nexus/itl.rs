//! The `I_T_L` nexus: one initiator port's view of one logical unit. Its plain commands are in `plain.rs`.

use crate::{
    AccessState, Expected, Extent, LogicalUnit, MAX_TRANSFER_BYTES, Nexus, Reply, fast_path, plan::Refusal,
    port::PortPair, unit::Signals,
};
use linerate_scsi_proto::cdb::FUA;
use linerate_scsi_proto::sense::{Sense, code};
use std::sync::{Arc, Weak};

#[derive(Debug)]
pub(crate) struct Itl {
    unit: Arc<LogicalUnit>,
    lun: u16,
    nexus: Weak<Nexus>,
    signals: Arc<Signals>,
}

impl Itl {
    /// A new nexus, known to its unit from now on.
    pub(super) fn attached(unit: &Arc<LogicalUnit>, lun: u16, nexus: &Nexus, this: Weak<Nexus>) -> Arc<Self> {
        let signals = Arc::new(Signals::new(nexus.id, nexus.port.clone()));
        unit.attach(signals.clone());
        Arc::new(Self { unit: unit.clone(), lun, nexus: this, signals })
    }

    pub(crate) fn unit(&self) -> &Arc<LogicalUnit> {
        &self.unit
    }

    pub(crate) fn lun(&self) -> u16 {
        self.lun
    }

    /// Number of the `I_T` nexus, unique in the process.
    pub(crate) fn id(&self) -> u64 {
        self.signals.nexus_id()
    }

    pub(crate) fn port(&self) -> &PortPair {
        self.signals.port()
    }

    /// The nexus to which this belongs; None after it was dropped.
    pub(crate) fn nexus(&self) -> Option<Arc<Nexus>> {
        self.nexus.upgrade()
    }

    pub(crate) fn block_bytes(&self) -> u32 {
        self.unit.config().block_bytes
    }

    /// The fast-path word: bits of [`crate::fast_path`].
    pub(crate) fn fast_path(&self) -> u32 {
        self.signals.fast_path()
    }

    /// The state of the target port's group.
    pub(crate) fn access(&self) -> AccessState {
        self.unit.lock().access.of_port(self.unit.config(), self.port().relative_port)
    }

    pub(crate) fn abort_epoch(&self) -> u32 {
        self.signals.abort_epoch()
    }

    pub(crate) fn abort_tasks(&self) {
        self.signals.abort_tasks();
    }

    /// Encodes a refusal in the unit's sense format.
    pub(crate) fn refuse(&self, refusal: Refusal) -> Reply {
        let descriptor_format = self.unit.lock().mode.descriptor_sense;
        refusal.into_reply(descriptor_format)
    }

    /// Whether a write with these FUA bits must be durable before GOOD.
    pub(crate) fn must_be_durable(&self, flags: u8) -> bool {
        flags & FUA != 0 || self.fast_path() & fast_path::WRITE_THROUGH != 0
    }

    /// Enters the stripes of a plain write; see `unit/write_exclusion.rs`.
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
            return Err(Sense::illegal(code::INVALID_FIELD_IN_CDB));
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

    /// How much data-out to accept for a command of `asked_bytes`: a transfer that the initiator shortened is done up
    /// to its end if that is a block boundary, and otherwise refused as a whole.
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
