//! REQUEST SENSE, READ CAPACITY, LOG SENSE and READ DEFECT DATA.

use crate::nexus::Itl;
use linerate_scsi_proto::capacity::Capacity;
use linerate_scsi_proto::sense::{Sense, SenseKey, code};
use linerate_scsi_proto::wire::{be16, be32};

/// REQUEST SENSE: the oldest unit attention, which it clears; otherwise whether the unit is ready (SPC-4 6.39).
pub(crate) fn request_sense(itl: &Itl, cdb: &[u8; 16]) -> Vec<u8> {
    let sense = itl.unit().change(|state| {
        if let Some(attention) = state.take_attention(itl.id()) {
            return Sense::new(SenseKey::UnitAttention, attention);
        }
        let access = state.access.of_port(itl.unit().config(), itl.port().relative_port);
        match access.not_ready_code() {
            Some(code) => Sense::new(SenseKey::NotReady, code),
            None if state.stopped => Sense::new(SenseKey::NotReady, code::START_REQUIRED),
            None => Sense::new(SenseKey::NoSense, code::NONE),
        }
    });
    let mut out = sense.encode(cdb[1] & 1 != 0);
    out.truncate(usize::from(cdb[4]));
    out
}

pub(crate) fn read_capacity_10(itl: &Itl, _: &[u8; 16]) -> Vec<u8> {
    capacity(itl).encode_10().to_vec()
}

pub(crate) fn read_capacity_16(itl: &Itl, cdb: &[u8; 16]) -> Vec<u8> {
    let mut out = capacity(itl).encode_16().to_vec();
    out.truncate(be32(cdb, 10) as usize);
    out
}

fn capacity(itl: &Itl) -> Capacity {
    let config = itl.unit().config();
    Capacity {
        blocks: itl.unit().capacity_blocks(),
        block_bytes: config.block_bytes,
        physical_block_bytes: config.physical_block_bytes,
        thin: config.thin,
        unmapped_reads_zeros: config.thin,
    }
}

/// LOG SENSE: the list of pages, and informational exceptions (there are none).
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

/// READ DEFECT DATA (10): no defects, in the requested format.
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
