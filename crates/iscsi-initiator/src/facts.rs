//! Identifiers of sessions and devices, and their facts.

use crate::event::Failure;
use linerate_iscsi_proto::params::SessionParams;
use linerate_scsi_proto::alua::AccessState;
use std::net::SocketAddr;

/// Names a session of one [`Initiator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(pub(crate) u32);

impl SessionId {
    /// Sessions are numbered from 0 in the order they were made.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a session negotiated, as read back.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFacts {
    /// The target's name.
    pub target: String,
    /// The requested portal.
    pub portal: String,
    /// The address of the connection (redirection may have changed it).
    pub peer_addr: SocketAddr,
    /// Our end.
    pub local_addr: SocketAddr,
    /// The negotiated parameters.
    pub params: SessionParams,
    /// `TargetPortalGroupTag` of the portal, if the target sent one.
    pub portal_group: Option<u16>,
    /// Logins so far; above 1 the session was restored.
    pub logins: u32,
    /// Its connections, the leading one first.
    pub connections: Vec<ConnectionFacts>,
}

/// One connection of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// Connection ID.
    pub cid: u16,
    /// Its address.
    pub peer_addr: SocketAddr,
    /// Our end.
    pub local_addr: SocketAddr,
}

/// Names a device of one [`crate::Initiator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Its session logs in, or its LUN is being probed.
    Opening,
    /// It takes I/O.
    Ready,
    /// It could not be opened, or was given up.
    Failed(Failure),
}

/// What a LUN reports about itself.
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
    /// INQUIRY, byte 0: peripheral qualifier and device type (0 = a connected disk).
    pub peripheral: u8,
    /// INQUIRY: vendor.
    pub vendor: String,
    /// INQUIRY: product.
    pub product: String,
    /// INQUIRY: revision.
    pub revision: String,
    /// VPD 80: unit serial number; empty if the target has no such page.
    pub serial: String,
    /// VPD 83: the unit's own identifier, such as "naa.60014051..."; empty if there is none or it was not requested.
    pub unit_id: String,
    /// VPD 83: the target port group of this path's port.
    pub port_group: Option<u16>,
    /// INQUIRY: TPGS; not 0 if the LUN has asymmetric access (ALUA).
    pub tpgs: u8,
    /// REPORT TARGET PORT GROUPS: the groups and their access states.
    pub(crate) groups: Vec<(u16, AccessState)>,
    /// VPD B0: MAXIMUM TRANSFER LENGTH in blocks; 0 = not limited.
    pub max_transfer_blocks: u32,
    /// VPD B0: OPTIMAL TRANSFER LENGTH in blocks; 0 = not told.
    pub optimal_transfer_blocks: u32,
    /// READ CAPACITY (16): the first logical block that begins a physical one; None if the target does not tell.
    pub lowest_aligned_block: Option<u16>,
    /// Caching mode page: the write cache is on. None if the target does not tell, or was not asked.
    pub write_cache: Option<bool>,
    /// Logical block provisioning log page: the used share of the space behind a thin unit. None as above.
    pub used_percent: Option<u8>,
    /// READ CAPACITY (16): thin provisioned (LBPME).
    pub thin: bool,
    /// VPD B2: UNMAP is supported (LBPU), so discard works.
    pub unmap: bool,
    /// It supports READ CAPACITY (16), so it gets 16-byte CDBs.
    pub long_commands: bool,
    /// REPORT LUNS; only read when a target is asked for its LUNs.
    pub luns: Vec<u16>,
}

impl DeviceFacts {
    /// The access state of the port that answered; active/optimized if the LUN has no access states.
    pub(crate) fn access(&self) -> AccessState {
        let of = |tag: u16| self.groups.iter().find(|(group, _)| *group == tag);
        self.port_group.and_then(of).map_or(AccessState::ActiveOptimized, |(_, access)| *access)
    }

    /// Capacity in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_blocks.saturating_mul(u64::from(self.block_bytes))
    }
}

/// The state of a path. The five states in the middle are the array's asymmetric access states (SPC-6 5.18.2); without
/// ALUA every path that has passed its check is active/optimized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathState {
    /// Its first login is in progress.
    Connecting,
    /// Logged in; the LUN behind it is being probed.
    Checking,
    /// It carries I/O at full speed.
    ActiveOptimized,
    /// It carries I/O, but the array prefers others.
    ActiveNonOptimized,
    /// The array takes no I/O here until it changes the state.
    Standby,
    /// The array takes only a few commands here, and no I/O.
    Unavailable,
    /// The array is changing the state.
    Transitioning,
    /// Lost; the session tries to log in again.
    Failed,
    /// Given up: another disk answered, or the login cannot succeed.
    Refused,
}
