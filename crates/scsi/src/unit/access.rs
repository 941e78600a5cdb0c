//! The access states of a unit's target port groups (SPC-4 5.15): which ports can be used, and how well.
//!
//! Each target port group has a state for every unit. A state that stops a plain READ or WRITE is one bit of the
//! fast-path word of the port's nexuses (`fast_path.rs`). This module has the other commands that each state permits.

use crate::UnitConfig;
use linerate_scsi_proto::alua::AccessState;
use linerate_scsi_proto::opcode::{self, service_action};

/// Whether a state permits a command. Standby permits the commands that SPC-4 5.15.2.4.4 requires, and READ CAPACITY,
/// which initiators send before they read the state. The other states permit only the minimum of SPC-4.
pub(crate) fn allows(state: AccessState, cdb: &[u8; 16]) -> bool {
    let always = match cdb[0] {
        opcode::REQUEST_SENSE | opcode::INQUIRY | opcode::REPORT_LUNS => true,
        opcode::MAINTENANCE_IN => service_action(cdb) == opcode::REPORT_TARGET_PORT_GROUPS,
        _ => false,
    };
    let in_standby = match cdb[0] {
        opcode::MODE_SELECT_6
        | opcode::MODE_SELECT_10
        | opcode::MODE_SENSE_6
        | opcode::MODE_SENSE_10
        | opcode::SEND_DIAGNOSTIC
        | opcode::LOG_SENSE
        | opcode::PERSISTENT_RESERVE_IN
        | opcode::PERSISTENT_RESERVE_OUT
        | opcode::READ_CAPACITY_10 => true,
        opcode::SERVICE_ACTION_IN_16 => service_action(cdb) == opcode::READ_CAPACITY_16,
        _ => false,
    };
    match state {
        AccessState::ActiveOptimized | AccessState::ActiveNonOptimized => true,
        AccessState::Standby => always || in_standby,
        AccessState::Unavailable | AccessState::Transitioning => always,
    }
}

/// One group of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortGroupAccess {
    pub(crate) tag: u16,
    pub(crate) state: AccessState,
    /// The state changed since the unit was made.
    pub(crate) changed: bool,
}

/// The groups of a unit, ascending.
#[derive(Debug)]
pub(crate) struct PortGroups(Vec<PortGroupAccess>);

impl PortGroups {
    pub(crate) fn of(config: &UnitConfig) -> Self {
        let mut tags: Vec<u16> = config.ports.iter().map(|port| port.group).collect();
        tags.sort_unstable();
        tags.dedup();
        let group = |tag| PortGroupAccess { tag, state: AccessState::default(), changed: false };
        Self(tags.into_iter().map(group).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PortGroupAccess> {
        self.0.iter()
    }

    pub(crate) fn get_mut(&mut self, tag: u16) -> Option<&mut PortGroupAccess> {
        self.0.iter_mut().find(|group| group.tag == tag)
    }

    /// The state of a port's group; active/optimized for a port that the unit does not list.
    pub(crate) fn of_port(&self, config: &UnitConfig, relative_port: u16) -> AccessState {
        let port = config.ports.iter().find(|port| port.relative_id == relative_port);
        let group = port.and_then(|port| self.0.iter().find(|group| group.tag == port.group));
        group.map_or(AccessState::default(), |group| group.state)
    }
}
