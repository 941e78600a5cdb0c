//! Asymmetric logical unit access (ALUA), as a LUN tells it (SPC-6 5.18, 6.37, 7.7.6). Replies are judged by the bytes
//! that came, never by lengths inside them.
use crate::alua::Access;
use crate::facts::DeviceFacts;
use crate::sense::SenseData;

/// Reads the designators of VPD 83: the unit's identifier, and the group of the port that answered.
pub(crate) fn identification(mut page: &[u8], facts: &mut DeviceFacts) {
    /// Association of a designator, in byte 1.
    const OF_UNIT: u8 = 0;
    const OF_PORT: u8 = 1;
    const EUI64: u8 = 2;
    const NAA: u8 = 3;
    const PORT_GROUP: u8 = 5;
    while let [_, kind, _, len, rest @ ..] = page {
        let value = &rest[..usize::from(*len).min(rest.len())];
        match (kind >> 4 & 3, kind & 0x0f) {
            (OF_UNIT, NAA) => facts.unit_id = named("naa", value),
            (OF_UNIT, EUI64) if facts.unit_id.is_empty() => facts.unit_id = named("eui", value),
            (OF_PORT, PORT_GROUP) => {
                facts.port_group = value.get(2..4).map(|tag| u16::from_be_bytes([tag[0], tag[1]]));
            }
            _ => {}
        }
        page = &rest[value.len()..];
    }
}

fn named(authority: &str, value: &[u8]) -> String {
    let digits = value.iter().map(|byte| format!("{byte:02x}"));
    std::iter::once(format!("{authority}.")).chain(digits).collect()
}

/// Reads the groups of REPORT TARGET PORT GROUPS, parameter data of the short form.
pub(crate) fn port_groups(reply: &[u8]) -> Vec<(u16, Access)> {
    const HEADER_BYTES: usize = 8;
    let mut groups = Vec::new();
    let mut rest = reply.get(4..).unwrap_or_default();
    while let Some(header) = rest.first_chunk::<HEADER_BYTES>() {
        let access = match header[0] & 0x0f {
            0x0 => Some(Access::Optimized),
            0x1 => Some(Access::NonOptimized),
            0x2 => Some(Access::Standby),
            0x3 => Some(Access::Unavailable),
            0xf => Some(Access::Transitioning),
            // Logical block dependent and offline are not for whole disks.
            _ => None,
        };
        let tag = u16::from_be_bytes([header[2], header[3]]);
        groups.extend(access.map(|access| (tag, access)));
        rest = rest.get(HEADER_BYTES + 4 * usize::from(header[7])..).unwrap_or_default();
    }
    groups
}

/// The access state that a refusal tells of (NOT READY, 04/0A to 04/0C).
pub(crate) fn refusal(sense: SenseData) -> Option<Access> {
    match (sense.key, sense.asc, sense.ascq) {
        (2, 0x04, 0x0a) => Some(Access::Transitioning),
        (2, 0x04, 0x0b) => Some(Access::Standby),
        (2, 0x04, 0x0c) => Some(Access::Unavailable),
        _ => None,
    }
}

/// UNIT ATTENTION, asymmetric access state changed.
pub(crate) fn is_change(sense: SenseData) -> bool {
    (sense.key, sense.asc, sense.ascq) == (6, 0x2a, 0x06)
}

impl DeviceFacts {
    /// The access state of the port that answered; active/optimized where the LUN has no such states.
    pub(crate) fn access(&self) -> Access {
        let of = |tag: u16| self.groups.iter().find(|(group, _)| *group == tag);
        self.port_group.and_then(of).map_or(Access::Optimized, |(_, access)| *access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifier_and_group_stand_among_other_designators() {
        let mut page = vec![1, 0x03, 0, 8, 0x60, 1, 2, 3, 4, 5, 6, 7];
        page.extend([2, 0x01, 0, 3, b'a', b'b', b'c']);
        page.extend([0x51, 0x94, 0, 4, 0, 0, 0, 9]);
        page.extend([0x51, 0x95, 0, 4, 0, 0, 1, 2]);
        let mut facts = DeviceFacts::default();
        identification(&page, &mut facts);
        assert_eq!((facts.unit_id.as_str(), facts.port_group), ("naa.6001020304050607", Some(0x102)));
        for len in 0..page.len() {
            identification(&page[..len], &mut DeviceFacts::default());
        }
    }

    #[test]
    fn groups_and_their_states() {
        let mut reply = vec![0, 0, 0, 28];
        reply.extend([0x80, 0xff, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
        reply.extend([0x02, 0xff, 0, 7, 0, 0, 0, 1, 0, 0, 0, 3]);
        assert_eq!(port_groups(&reply), [(1, Access::Optimized), (7, Access::Standby)]);
        assert_eq!(port_groups(&reply[..21]), [(1, Access::Optimized)]);
        let facts =
            DeviceFacts { port_group: Some(7), groups: port_groups(&reply), ..DeviceFacts::default() };
        assert_eq!(facts.access(), Access::Standby);
        assert_eq!(DeviceFacts::default().access(), Access::Optimized);
    }
}
