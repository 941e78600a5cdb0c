//! PERSISTENT RESERVE IN data (SPC-4 6.16).

use super::{
    Kind, Persistent, TransportId,
    persistent::{Registrant, Reservation},
};
use crate::{InitiatorPort, port::PortPair};
use linerate_scsi_proto::wire::{be16, be32, be64};

/// READ KEYS.
pub(crate) fn read_keys(state: &Persistent) -> Vec<u8> {
    let keys: Vec<u8> =
        state.registrants.iter().flat_map(|registrant| registrant.key.to_be_bytes()).collect();
    with_header(state, &keys)
}

/// READ RESERVATION. All-registrants reservations show key 0.
pub(crate) fn read_reservation(state: &Persistent) -> Vec<u8> {
    let mut body = Vec::new();
    if let Some(held) = &state.reservation {
        let key = if held.kind.is_all_registrants() { 0 } else { state.key_of(&held.holder).unwrap_or(0) };
        body.extend_from_slice(&key.to_be_bytes());
        body.extend_from_slice(&[0, 0, 0, 0, 0, held.kind as u8, 0, 0]);
    }
    with_header(state, &body)
}

/// REPORT CAPABILITIES: `ALL_TG_PT` yes, APTPL if they can be kept; `SPEC_I_PT` and compatible reservation handling no;
/// all six types.
pub(crate) fn report_capabilities(state: &Persistent, can_keep: bool) -> Vec<u8> {
    const ATP_C: u8 = 0x04;
    const PTPL_C: u8 = 0x01;
    const TMV: u8 = 0x80;
    const PTPL_A: u8 = 0x01;
    let on = |condition, bit| if condition { bit } else { 0 };
    vec![0, 8, ATP_C | on(can_keep, PTPL_C), TMV | on(state.kept, PTPL_A), 0xEA, 0x01, 0, 0]
}

/// The state from a saved [`full_status`], as initiators find it after a power loss: its generation begins at 0 again.
/// None: it is damaged.
pub(crate) fn restored(bytes: &[u8]) -> Option<Persistent> {
    const DESCRIPTOR: usize = 24;
    let mut state = Persistent { kept: true, ..Persistent::default() };
    let mut rest = bytes.get(8..)?;
    if rest.len() != be32(bytes, 4) as usize {
        return None;
    }
    while !rest.is_empty() {
        let (fixed, more) = rest.split_at_checked(DESCRIPTOR)?;
        let (id, after) = more.split_at_checked(be32(fixed, 20) as usize)?;
        let id = TransportId::parse(id)?;
        let initiator = InitiatorPort { name: id.name, isid: id.isid? };
        let port = PortPair { initiator, relative_port: be16(fixed, 18) };
        if fixed[12] & 1 != 0 && state.reservation.is_none() {
            state.reservation = Some(Reservation { kind: Kind::from_code(fixed[13])?, holder: port.clone() });
        }
        state.registrants.push(Registrant { port, key: be64(fixed, 0) });
        rest = after;
    }
    Some(state)
}

/// READ FULL STATUS: one descriptor per registration.
pub(crate) fn full_status(state: &Persistent) -> Vec<u8> {
    let mut body = Vec::new();
    for registrant in &state.registrants {
        let held = state.reservation.as_ref().filter(|held| state.holds(held, &registrant.port));
        let mut id = Vec::new();
        TransportId::of(&registrant.port.initiator).emit(&mut id);
        body.extend_from_slice(&registrant.key.to_be_bytes());
        body.extend_from_slice(&[
            0,
            0,
            0,
            0,
            u8::from(held.is_some()),
            held.map_or(0, |held| held.kind as u8),
        ]);
        body.extend_from_slice(&[0, 0, 0, 0]);
        body.extend_from_slice(&registrant.port.relative_port.to_be_bytes());
        body.extend_from_slice(&(id.len() as u32).to_be_bytes());
        body.extend_from_slice(&id);
    }
    with_header(state, &body)
}

fn with_header(state: &Persistent, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + body.len());
    out.extend_from_slice(&state.generation.to_be_bytes());
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
    out
}
