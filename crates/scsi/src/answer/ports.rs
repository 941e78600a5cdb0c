//! REPORT TARGET PORT GROUPS: which ports there are, and what the unit does for each group of them (SPC-4 6.37).

use crate::{AccessState, TargetPort, access::Group, itl::Itl, sense::Sense, wire::be32};

/// The target device's name: the port's name without its portal group tag.
pub(crate) fn target_name(port: &TargetPort) -> &str {
    port.name.split_once(",t,").map_or(port.name.as_str(), |(target, _)| target)
}

pub(crate) fn target_port_groups(itl: &Itl, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let mut out = match cdb[1] >> 5 {
        0 => vec![0; 4],
        // Extended header: format 1, no transition ever takes time.
        1 => vec![0, 0, 0, 0, 0x10, 0, 0, 0],
        _ => return Err(Sense::cdb(1)),
    };
    let ports = &itl.unit().config().ports;
    for group in itl.unit().lock().access.iter() {
        let members: Vec<_> = ports.iter().filter(|port| port.group == group.tag).collect();
        push_group(&mut out, *group, &members);
    }
    let len = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&len.to_be_bytes());
    out.truncate(be32(cdb, 6) as usize);
    Ok(out)
}

fn push_group(out: &mut Vec<u8>, group: Group, members: &[&TargetPort]) {
    /// Status code: the unit changed the state by itself.
    const IMPLICIT: u8 = 2;
    let [high, low] = group.tag.to_be_bytes();
    let status = if group.changed { IMPLICIT } else { 0 };
    out.extend_from_slice(&[group.state as u8, AccessState::SUPPORTED, high, low, 0, status, 0]);
    out.push(members.len() as u8);
    for port in members {
        out.extend_from_slice(&u32::from(port.relative_id).to_be_bytes());
    }
}
