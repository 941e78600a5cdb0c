//! REPORT TARGET PORT GROUPS: asymmetric access, of which every port is active/optimized (SPC-4 6.37).

use crate::{TargetPort, itl::Itl, sense::Sense, wire::be32};

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
    let mut groups: Vec<u16> = ports.iter().map(|port| port.group).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        let members: Vec<_> = ports.iter().filter(|port| port.group == group).collect();
        push_group(&mut out, group, &members);
    }
    let len = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&len.to_be_bytes());
    out.truncate(be32(cdb, 6) as usize);
    Ok(out)
}

fn push_group(out: &mut Vec<u8>, group: u16, members: &[&TargetPort]) {
    const ACTIVE_OPTIMIZED: u8 = 0x00;
    const ACTIVE_OPTIMIZED_SUPPORTED: u8 = 0x01;
    let [high, low] = group.to_be_bytes();
    out.extend_from_slice(&[ACTIVE_OPTIMIZED, ACTIVE_OPTIMIZED_SUPPORTED, high, low, 0, 0, 0]);
    out.push(members.len() as u8);
    for port in members {
        out.extend_from_slice(&u32::from(port.relative_id).to_be_bytes());
    }
}
