//! Asymmetric logical unit access (ALUA): target port groups and their states (SPC-4 5.15, 6.37).

use crate::{
    sense::{SenseCode, SenseKey, code},
    wire::field,
};

/// State of a target port group. The discriminants are those of REPORT TARGET PORT GROUPS (SPC-4 table 276).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum AccessState {
    /// The best path to the unit.
    #[default]
    ActiveOptimized = 0x0,
    /// Everything works, but another group is better.
    ActiveNonOptimized = 0x1,
    /// No access to the medium. The unit answers inquiries and is ready for a failover.
    Standby = 0x2,
    /// No access to the medium, and only a few commands.
    Unavailable = 0x3,
    /// Between two states.
    Transitioning = 0xF,
}

impl AccessState {
    /// Every state. Logical block dependent and offline do not apply to whole disks.
    pub const ALL: [Self; 5] = [
        Self::ActiveOptimized,
        Self::ActiveNonOptimized,
        Self::Standby,
        Self::Unavailable,
        Self::Transitioning,
    ];

    /// The support bits of all states above: T, U, S, AN and AO.
    pub const SUPPORTED: u8 = 0x80 | 0x08 | 0x04 | 0x02 | 0x01;

    /// The state in the low four bits of a byte; None for states that do not apply to whole disks.
    pub fn from_nibble(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == byte & 0x0F)
    }

    /// The group accepts reads and writes.
    pub fn is_active(self) -> bool {
        self.not_ready_code().is_none()
    }

    /// The additional sense code with which this state refuses commands; None if it refuses no command.
    pub fn not_ready_code(self) -> Option<u16> {
        match self {
            Self::ActiveOptimized | Self::ActiveNonOptimized => None,
            Self::Standby => Some(code::PORT_IN_STANDBY),
            Self::Unavailable => Some(code::PORT_UNAVAILABLE),
            Self::Transitioning => Some(code::ACCESS_STATE_TRANSITION),
        }
    }

    /// The state that a refusal reports: NOT READY with the code of a state. None for every other sense.
    pub fn from_refusal(sense: SenseCode) -> Option<Self> {
        let refuses = |state: &Self| state.not_ready_code() == Some(sense.code);
        Self::ALL.into_iter().find(|state| sense.key == SenseKey::NotReady && refuses(state))
    }
}

/// Unit attention: the state of a target port group changed.
pub const STATE_CHANGED: SenseCode = SenseCode::new(SenseKey::UnitAttention, code::ACCESS_STATE_CHANGED);

/// How a group got its state (SPC-4 table 278).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ChangeStatus {
    /// No status, or one that SPC-4 does not define.
    #[default]
    None = 0,
    /// Changed by SET TARGET PORT GROUPS.
    Explicit = 1,
    /// Changed by the unit itself.
    Implicit = 2,
}

/// One target port group descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortGroup {
    /// TARGET PORT GROUP.
    pub tag: u16,
    /// Its state.
    pub state: AccessState,
    /// How it got this state.
    pub status: ChangeStatus,
    /// Relative port identifiers of its ports, at most 255.
    pub ports: Vec<u16>,
}

/// Form of the parameter data (PARAMETER DATA FORMAT of the CDB).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupsFormat {
    /// Length, then descriptors.
    Short,
    /// With a header that has an implicit transition time, here 0.
    Extended,
}

const DESCRIPTOR_BYTES: usize = 8;
const PORT_BYTES: usize = 4;
/// RETURN DATA FORMAT of the extended header.
const EXTENDED: u8 = 0x10;

/// REPORT TARGET PORT GROUPS parameter data.
pub fn encode_groups(format: GroupsFormat, groups: impl Iterator<Item = PortGroup>) -> Vec<u8> {
    let mut out = match format {
        GroupsFormat::Short => vec![0; 4],
        GroupsFormat::Extended => vec![0, 0, 0, 0, EXTENDED, 0, 0, 0],
    };
    for group in groups {
        let [high, low] = group.tag.to_be_bytes();
        out.extend_from_slice(&[
            group.state as u8,
            AccessState::SUPPORTED,
            high,
            low,
            0,
            group.status as u8,
            0,
        ]);
        out.push(group.ports.len() as u8);
        out.extend(group.ports.iter().flat_map(|port| u32::from(*port).to_be_bytes()));
    }
    let len = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&len.to_be_bytes());
    out
}

/// The groups in REPORT TARGET PORT GROUPS parameter data of the short form. Groups in a state that does not apply to
/// whole disks are ignored, and so is an incomplete last descriptor. Ports beyond the received bytes are not in their
/// group.
pub fn parse_groups(reply: &[u8]) -> Vec<PortGroup> {
    let mut groups = Vec::new();
    let mut rest = reply.get(4..).unwrap_or_default();
    while let Some(header) = field::<DESCRIPTOR_BYTES>(rest, 0) {
        let ports_end = rest.len().min(DESCRIPTOR_BYTES + PORT_BYTES * usize::from(header[7]));
        let ports = rest[DESCRIPTOR_BYTES..ports_end].chunks_exact(PORT_BYTES);
        if let Some(state) = AccessState::from_nibble(header[0]) {
            groups.push(PortGroup {
                tag: u16::from_be_bytes([header[2], header[3]]),
                state,
                status: match header[5] {
                    1 => ChangeStatus::Explicit,
                    2 => ChangeStatus::Implicit,
                    _ => ChangeStatus::None,
                },
                ports: ports.map(|port| u16::from_be_bytes([port[2], port[3]])).collect(),
            });
        }
        rest = &rest[ports_end..];
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_their_states() {
        let mut reply = vec![0, 0, 0, 28];
        reply.extend([0x80, 0xFF, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
        reply.extend([0x02, 0xFF, 0, 7, 0, 2, 0, 1, 0, 0, 0, 3]);
        let groups = parse_groups(&reply);
        assert_eq!(groups[0].ports, [1, 2]);
        assert_eq!((groups[1].tag, groups[1].state), (7, AccessState::Standby));
        assert_eq!(groups[1].status, ChangeStatus::Implicit);
        assert_eq!(parse_groups(&reply[..21]).len(), 1);
    }

    #[test]
    fn a_refusal_names_the_state_and_only_not_ready_is_one() {
        for state in AccessState::ALL {
            let refused = state.not_ready_code().map(|code| SenseCode::new(SenseKey::NotReady, code));
            assert_eq!(refused.and_then(AccessState::from_refusal), (!state.is_active()).then_some(state));
        }
        let other = SenseCode::new(SenseKey::UnitAttention, code::PORT_IN_STANDBY);
        assert_eq!(AccessState::from_refusal(other), None);
        let attention = SenseCode::new(SenseKey::UnitAttention, code::NONE);
        assert_eq!(AccessState::from_refusal(attention), None);
    }
}
