//! REQUEST SENSE, READ CAPACITY, LOG SENSE and READ DEFECT DATA.

use crate::{
    itl::Itl,
    sense::{Key, Sense, code},
    wire::{be16, be32},
};

/// REQUEST SENSE: the oldest unit attention, which is then gone; else whether the unit is ready (SPC-4 6.39).
pub(crate) fn request_sense(itl: &Itl, cdb: &[u8; 16]) -> Vec<u8> {
    let sense = itl.unit().change(|state| {
        if let Some(attention) = state.take_attention(itl.id()) {
            return Sense::new(Key::UnitAttention, attention);
        }
        let access = state.access.of_port(itl.unit().config(), itl.port().relative_port);
        match access.not_ready_code() {
            Some(code) => Sense::new(Key::NotReady, code),
            None if state.stopped => Sense::new(Key::NotReady, code::START_REQUIRED),
            None => Sense::new(Key::NoSense, code::NONE),
        }
    });
    let mut out = sense.encode(cdb[1] & 1 != 0);
    out.truncate(usize::from(cdb[4]));
    out
}

pub(crate) fn read_capacity_10(itl: &Itl, _: &[u8; 16]) -> Vec<u8> {
    let last_lba = itl.unit().capacity_blocks() - 1;
    let mut out = u32::try_from(last_lba).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    out.extend_from_slice(&itl.block_bytes().to_be_bytes());
    out
}

pub(crate) fn read_capacity_16(itl: &Itl, cdb: &[u8; 16]) -> Vec<u8> {
    const LBPME_LBPRZ: u8 = 0xC0;
    let config = itl.unit().config();
    let mut out = (itl.unit().capacity_blocks() - 1).to_be_bytes().to_vec();
    out.extend_from_slice(&config.block_bytes.to_be_bytes());
    let blocks_per_physical = config.physical_block_bytes / config.block_bytes;
    out.extend_from_slice(&[0, blocks_per_physical.trailing_zeros() as u8]);
    out.push(if config.thin { LBPME_LBPRZ } else { 0 });
    out.resize(32, 0);
    out.truncate(be32(cdb, 10) as usize);
    out
}

/// LOG SENSE: the list of pages, and informational exceptions with nothing to tell.
pub(crate) fn log_sense(_: &Itl, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let mut out = match (cdb[2] & 0x3F, cdb[3]) {
        (0x00, 0) => vec![0x00, 0, 0, 2, 0x00, 0x2F],
        (0x2F, 0) => vec![0x2F, 0, 0, 8, 0, 0, 0x03, 4, 0, 0, 0, 0],
        (0x00 | 0x2F, _) => return Err(Sense::cdb(3)),
        _ => return Err(Sense::cdb(2)),
    };
    out.truncate(usize::from(be16(cdb, 7)));
    Ok(out)
}

/// READ DEFECT DATA (10): no defects, in whichever format was asked for.
pub(crate) fn defect_data_10(_: &Itl, cdb: &[u8; 16]) -> Vec<u8> {
    let mut out = vec![0, cdb[2] & 0x1F, 0, 0];
    out.truncate(usize::from(be16(cdb, 7)));
    out
}

/// READ DEFECT DATA (12).
pub(crate) fn defect_data_12(_: &Itl, cdb: &[u8; 16]) -> Vec<u8> {
    let mut out = vec![0, cdb[1] & 0x1F, 0, 0, 0, 0, 0, 0];
    out.truncate(be32(cdb, 6) as usize);
    out
}
