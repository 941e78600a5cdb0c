//! PERSISTENT RESERVE IN data (SPC-4 6.16).

use super::{Persistent, TransportId};

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

/// REPORT CAPABILITIES: `ALL_TG_PT` yes; `SPEC_I_PT`, APTPL and compatible reservation handling no; all six
/// types.
pub(crate) fn report_capabilities() -> Vec<u8> {
    const ATP_C: u8 = 0x04;
    const TMV: u8 = 0x80;
    vec![0, 8, ATP_C, TMV, 0xEA, 0x01, 0, 0]
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
