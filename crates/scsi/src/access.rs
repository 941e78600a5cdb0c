//! Asymmetric logical unit access (SPC-4 5.15): through which ports a unit can be used, and how well.
//!
//! Each target port group has a state, of its own for every unit. What stops a plain READ or WRITE of a port is folded into
//! the gate of its nexuses (`itl.rs`); here is which other commands a state lets pass.

use crate::{UnitConfig, sense::code};

/// State of a target port group. The discriminants are those of REPORT TARGET PORT GROUPS (SPC-4 table 276).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum AccessState {
    /// The best way to the unit.
    #[default]
    ActiveOptimized = 0x0,
    /// Everything works, but another group would be better.
    ActiveNonOptimized = 0x1,
    /// No access to the medium; the unit answers what concerns itself, and is ready to take over.
    Standby = 0x2,
    /// No access to the medium, and little else.
    Unavailable = 0x3,
    /// On the way from one state to another.
    Transitioning = 0xF,
}

impl AccessState {
    /// The states above, as REPORT TARGET PORT GROUPS lists what may be.
    pub(crate) const SUPPORTED: u8 = 0x80 | 0x08 | 0x04 | 0x02 | 0x01;

    /// The additional sense code of what this state refuses; none if it refuses nothing.
    pub(crate) fn not_ready_code(self) -> Option<u16> {
        match self {
            Self::ActiveOptimized | Self::ActiveNonOptimized => None,
            Self::Standby => Some(code::PORT_IN_STANDBY),
            Self::Unavailable => Some(code::PORT_UNAVAILABLE),
            Self::Transitioning => Some(code::ACCESS_STATE_TRANSITION),
        }
    }

    /// Whether a command passes. In standby that is what SPC-4 5.15.2.4.4 demands and the capacity, which initiators ask
    /// for before they look at the state; else the least that it allows.
    pub(crate) fn allows(self, cdb: &[u8; 16]) -> bool {
        const REPORT_TARGET_PORT_GROUPS: u8 = 0x0A;
        const READ_CAPACITY_16: u8 = 0x10;
        let action = cdb[1] & 0x1F;
        let always = match cdb[0] {
            // REQUEST SENSE, INQUIRY, REPORT LUNS
            0x03 | 0x12 | 0xA0 => true,
            0xA3 => action == REPORT_TARGET_PORT_GROUPS,
            _ => false,
        };
        let in_standby = match cdb[0] {
            // MODE SELECT, MODE SENSE, SEND DIAGNOSTIC, LOG SENSE, PERSISTENT RESERVE IN and OUT, READ CAPACITY (10)
            0x15 | 0x55 | 0x1A | 0x5A | 0x1D | 0x4D | 0x5E | 0x5F | 0x25 => true,
            0x9E => action == READ_CAPACITY_16,
            _ => false,
        };
        match self {
            Self::ActiveOptimized | Self::ActiveNonOptimized => true,
            Self::Standby => always || in_standby,
            Self::Unavailable | Self::Transitioning => always,
        }
    }
}

/// One group of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) tag: u16,
    pub(crate) state: AccessState,
    /// The state is not the first one any more.
    pub(crate) changed: bool,
}

/// The groups of a unit, ascending.
#[derive(Debug)]
pub(crate) struct Groups(Vec<Group>);

impl Groups {
    pub(crate) fn of(config: &UnitConfig) -> Self {
        let mut tags: Vec<u16> = config.ports.iter().map(|port| port.group).collect();
        tags.sort_unstable();
        tags.dedup();
        let group = |tag| Group { tag, state: AccessState::default(), changed: false };
        Self(tags.into_iter().map(group).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Group> {
        self.0.iter()
    }

    pub(crate) fn get_mut(&mut self, tag: u16) -> Option<&mut Group> {
        self.0.iter_mut().find(|group| group.tag == tag)
    }

    /// The state of the group that a port belongs to. A port that nobody knows is as good as any.
    pub(crate) fn of_port(&self, config: &UnitConfig, relative_port: u16) -> AccessState {
        let port = config.ports.iter().find(|port| port.relative_id == relative_port);
        let group = port.and_then(|port| self.0.iter().find(|group| group.tag == port.group));
        group.map_or(AccessState::default(), |group| group.state)
    }
}
