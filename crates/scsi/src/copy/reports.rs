//! The reports of a copy manager about itself and about finished copies.

use super::{
    limits::{MAX_DESCRIPTOR_BYTES, MAX_SEGMENT_BYTES, MAX_SEGMENTS, MAX_TARGETS},
    list::{BLOCK_TO_BLOCK, BLOCK_TO_BLOCK_OFFSET, IDENTIFICATION_TARGET},
};
use crate::nexus::Itl;
use linerate_scsi_proto::sense::Sense;
use linerate_scsi_proto::wire::be32;

/// RECEIVE COPY RESULTS, copy status.
pub(crate) fn copy_status(itl: &Itl, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    const DONE: u8 = 0x01;
    const FAILED: u8 = 0x02;
    const COUNT_IN_BYTES: u8 = 0x00;
    const COUNT_IN_KIB: u8 = 0x01;
    let state = itl.unit().lock();
    let result = state.copies.find(itl.id(), cdb[2]).ok_or(Sense::cdb(2))?;
    let mut out = vec![0, 0, 0, 8, if result.succeeded { DONE } else { FAILED }];
    out.extend_from_slice(&result.segments_done.to_be_bytes());
    let (units, count) = match u32::try_from(result.copied_bytes) {
        Ok(bytes) => (COUNT_IN_BYTES, bytes),
        Err(_) => (COUNT_IN_KIB, u32::try_from(result.copied_bytes >> 10).unwrap_or(u32::MAX)),
    };
    out.push(units);
    out.extend_from_slice(&count.to_be_bytes());
    out.truncate(be32(cdb, 10) as usize);
    Ok(out)
}

/// RECEIVE COPY RESULTS, operating parameters (SPC-4 6.18.4).
pub(crate) fn operating_parameters(_: &Itl, cdb: &[u8; 16]) -> Vec<u8> {
    const SNLID: u8 = 0x01;
    let mut out = vec![0; 44];
    out[4] = SNLID;
    out[8..10].copy_from_slice(&(MAX_TARGETS as u16).to_be_bytes());
    out[10..12].copy_from_slice(&(MAX_SEGMENTS as u16).to_be_bytes());
    out[12..16].copy_from_slice(&(MAX_DESCRIPTOR_BYTES as u32).to_be_bytes());
    out[16..20].copy_from_slice(&MAX_SEGMENT_BYTES.to_be_bytes());
    // The number of concurrent copies is not limited separately; granularity is 2^9 bytes.
    out[36] = 255;
    out[37] = 9;
    let types = [BLOCK_TO_BLOCK, BLOCK_TO_BLOCK_OFFSET, IDENTIFICATION_TARGET];
    out[43] = types.len() as u8;
    out.extend_from_slice(&types);
    let len = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&len.to_be_bytes());
    out.truncate(be32(cdb, 10) as usize);
    out
}

/// Body of the third-party copy VPD page (SPC-4 7.8.17).
pub(crate) fn third_party_copy_page() -> Vec<u8> {
    let mut out = Vec::new();
    // Supported commands: EXTENDED COPY (LID1); RECEIVE COPY STATUS (LID1), RECEIVE COPY OPERATING
    // PARAMETERS.
    push(&mut out, 0x0001, &[7, 0x83, 1, 0x00, 0x84, 2, 0x00, 0x03]);
    let mut parameters = vec![0; 28];
    parameters[4..6].copy_from_slice(&(MAX_TARGETS as u16).to_be_bytes());
    parameters[6..8].copy_from_slice(&(MAX_SEGMENTS as u16).to_be_bytes());
    parameters[8..12].copy_from_slice(&(MAX_DESCRIPTOR_BYTES as u32).to_be_bytes());
    push(&mut out, 0x0004, &parameters);
    push(&mut out, 0x0008, &[3, BLOCK_TO_BLOCK, BLOCK_TO_BLOCK_OFFSET, IDENTIFICATION_TARGET]);
    let mut general = vec![0; 32];
    general[0..4].copy_from_slice(&255_u32.to_be_bytes());
    general[4..8].copy_from_slice(&255_u32.to_be_bytes());
    general[8..12].copy_from_slice(&MAX_SEGMENT_BYTES.to_be_bytes());
    (general[12], general[13]) = (9, 9);
    push(&mut out, 0x8001, &general);
    out
}

/// One third-party copy descriptor, padded to a multiple of four.
fn push(out: &mut Vec<u8>, kind: u16, body: &[u8]) {
    let padded = (body.len()).next_multiple_of(4);
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(padded as u16).to_be_bytes());
    out.extend_from_slice(body);
    out.resize(out.len() + padded - body.len(), 0);
}
