//! A device: one LUN, reached over paths.

use crate::address::LunAddress;

/// Names a device of one [`crate::Initiator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceId(pub(crate) u32);

impl DeviceId {
    /// Devices are numbered from 0 in the order they were opened.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether a device takes I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// Its session logs in or its facts are being read.
    Opening,
    /// It takes I/O.
    Ready,
    /// It could not be opened or was given up; the text says why.
    Failed(String),
}

/// What a LUN says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The LUN.
    pub lun: u16,
    /// READ CAPACITY: number of logical blocks.
    pub capacity_blocks: u64,
    /// READ CAPACITY: logical block length in bytes.
    pub block_bytes: u32,
    /// READ CAPACITY (16): physical block length in bytes.
    pub physical_block_bytes: u32,
    /// INQUIRY: peripheral device type (0 = disk).
    pub device_type: u8,
    /// INQUIRY: vendor.
    pub vendor: String,
    /// INQUIRY: product.
    pub product: String,
    /// INQUIRY: revision.
    pub revision: String,
    /// VPD 80: unit serial number; empty when the target has no such page.
    pub serial: String,
    /// VPD B0: MAXIMUM TRANSFER LENGTH in bytes; 0 = not limited.
    pub max_transfer_bytes: u64,
    /// READ CAPACITY (16): thin provisioned (LBPME), so discard works.
    pub thin: bool,
}

impl DeviceFacts {
    /// Capacity in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_blocks * u64::from(self.block_bytes)
    }
}

/// A device's address and state, as the arena keeps them.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) address: LunAddress,
    pub(crate) state: DeviceState,
    pub(crate) facts: DeviceFacts,
}
