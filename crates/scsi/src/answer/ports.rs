//! REPORT TARGET PORT GROUPS: the ports, and the unit's access state in each port group (SPC-4 6.37).

use crate::{TargetPort, nexus::Itl, unit::access::PortGroupAccess};
use linerate_scsi_proto::{
    alua::{ChangeStatus, GroupsFormat, PortGroup, encode_groups},
    sense::Sense,
    wire::be32,
};

/// The target device's name: the port's name without its portal group tag.
pub(crate) fn target_name(port: &TargetPort) -> &str {
    port.name.split_once(",t,").map_or(port.name.as_str(), |(target, _)| target)
}

pub(crate) fn target_port_groups(itl: &Itl, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let format = match cdb[1] >> 5 {
        0 => GroupsFormat::Short,
        1 => GroupsFormat::Extended,
        _ => return Err(Sense::cdb(1)),
    };
    let ports = &itl.unit().config().ports;
    let state = itl.unit().lock();
    let mut out = encode_groups(format, state.access.iter().map(|group| port_group(*group, ports)));
    out.truncate(be32(cdb, 6) as usize);
    Ok(out)
}

fn port_group(group: PortGroupAccess, ports: &[TargetPort]) -> PortGroup {
    let members = ports.iter().filter(|port| port.group == group.tag);
    PortGroup {
        tag: group.tag,
        state: group.state,
        status: if group.changed { ChangeStatus::Implicit } else { ChangeStatus::None },
        ports: members.map(|port| port.relative_id).collect(),
    }
}
