//! The configuration of a unit: its names, sizes and ports, and its checks.

use linerate_scsi_proto::mode::ModeValues;
use thiserror::Error;

/// The identity of a unit (INQUIRY, VPD 80 and 83). Text is ASCII and cut or padded to its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// T10 vendor identification, at most 8 characters.
    pub vendor: String,
    /// Product identification, at most 16 characters.
    pub product: String,
    /// Product revision level, at most 4 characters.
    pub revision: String,
    /// Unit serial number.
    pub serial: String,
    /// NAA designator: 16 bytes, the first nibble is 6 (IEEE Registered Extended, all 16 bytes are shown) or
    /// 2, 3 or 5 (the first 8 bytes are shown).
    pub naa: [u8; 16],
}

/// One target port, for VPD 83, VPD 88 and REPORT TARGET PORT GROUPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPort {
    /// Relative target port identifier, 1..=65535, unique in the target.
    pub relative_id: u16,
    /// Target port group.
    pub group: u16,
    /// SCSI name string, e.g. `iqn.2026-11.lab.linerate:demo,t,0x0001`.
    pub name: String,
}

/// The configuration of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitConfig {
    /// Names.
    pub identity: Identity,
    /// Capacity in logical blocks, at least 1.
    pub capacity_blocks: u64,
    /// Logical block size: 512 or 4096.
    pub block_bytes: u32,
    /// Physical block size: a power of two, at least the logical block size.
    pub physical_block_bytes: u32,
    /// Initial value of WCE. If it is off, every write is durable before GOOD.
    pub write_cache: bool,
    /// Refuse writes with DATA PROTECT.
    pub read_only: bool,
    /// Deallocation is supported (LBPME, UNMAP, WRITE SAME with UNMAP).
    pub thin: bool,
    /// Bytes that are deallocated together, a multiple of the physical block: a smaller range is only set to zero. 0: a
    /// physical block.
    pub unmap_bytes: u32,
    /// The caller keeps persistent reservations over a power loss ([`MediumOp::Keep`](crate::MediumOp::Keep)).
    pub keeps_reservations: bool,
    /// For the caller: identifies the volume.
    pub tag: u64,
    /// The target's ports.
    pub ports: Vec<TargetPort>,
}

impl UnitConfig {
    /// Refuses sizes that a disk cannot have.
    pub(super) fn check(&self) -> Result<(), UnitError> {
        self.check_capacity(self.capacity_blocks)?;
        if !matches!(self.block_bytes, 512 | 4096) {
            return Err(UnitError::BlockSize(self.block_bytes));
        }
        let physical = self.physical_block_bytes;
        if !physical.is_power_of_two() || physical < self.block_bytes || physical > 1 << 20 {
            return Err(UnitError::PhysicalBlockSize(physical));
        }
        Ok(())
    }

    /// Byte offsets must fit 63 bits, so that offset arithmetic cannot overflow.
    pub(super) fn check_capacity(&self, blocks: u64) -> Result<(), UnitError> {
        match blocks.checked_mul(u64::from(self.block_bytes)) {
            Some(1..=0x7FFF_FFFF_FFFF_FFFF) => Ok(()),
            _ => Err(UnitError::Capacity(blocks)),
        }
    }

    /// The mode pages after a reset.
    pub(crate) fn default_mode(&self) -> ModeValues {
        ModeValues { write_cache: self.write_cache, descriptor_sense: false, write_protect: false }
    }
}

/// An invalid unit (fault: user, in the array's configuration).
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UnitError {
    /// Zero blocks, or more bytes than 63 bits can count.
    #[error("a volume cannot have {0} blocks")]
    Capacity(u64),
    /// Logical block size.
    #[error("logical block size {0} is not supported: use 512 or 4096")]
    BlockSize(u32),
    /// Physical block size.
    #[error(
        "physical block size {0} must be a power of two and at least the logical block size, at most 1 MiB"
    )]
    PhysicalBlockSize(u32),
}
