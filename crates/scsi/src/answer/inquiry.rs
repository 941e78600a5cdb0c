//! INQUIRY (SPC-4 6.6).

use super::vpd;
use crate::{UnitConfig, itl::Itl, sense::Sense, wire::be16};

const STANDARD_LEN: usize = 96;
/// SAM-5, SPC-4, SBC-3, iSCSI; no version claimed of each (SPC-4 table 143).
const VERSION_DESCRIPTORS: [u16; 4] = [0x00A0, 0x0460, 0x04C0, 0x0960];

pub(crate) fn inquiry(itl: &Itl, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let mut out = match (cdb[1] & 1 != 0, cdb[2]) {
        (true, page) => vpd::page(itl, page)?,
        (false, 0) => standard(itl.unit().config()),
        (false, _) => return Err(Sense::cdb(2)),
    };
    out.truncate(usize::from(be16(cdb, 3)));
    Ok(out)
}

fn standard(config: &UnitConfig) -> Vec<u8> {
    const SPC_4: u8 = 0x06;
    const HISUP: u8 = 0x10;
    const RESPONSE_DATA_FORMAT: u8 = 0x02;
    const IMPLICIT_ALUA: u8 = 0x10;
    const THIRD_PARTY_COPY: u8 = 0x08;
    const MULTIP: u8 = 0x10;
    const CMDQUE: u8 = 0x02;
    let mut out = vec![0, 0, SPC_4, HISUP | RESPONSE_DATA_FORMAT, (STANDARD_LEN - 5) as u8];
    let multiport = if config.ports.len() > 1 { MULTIP } else { 0 };
    out.extend_from_slice(&[IMPLICIT_ALUA | THIRD_PARTY_COPY, multiport, CMDQUE]);
    out.extend_from_slice(&vpd::padded(&config.identity.vendor, 8));
    out.extend_from_slice(&vpd::padded(&config.identity.product, 16));
    out.extend_from_slice(&vpd::padded(&config.identity.revision, 4));
    out.resize(58, 0);
    out.extend(VERSION_DESCRIPTORS.iter().flat_map(|version| version.to_be_bytes()));
    out.resize(STANDARD_LEN, 0);
    out
}

/// INQUIRY to a LUN that does not exist: peripheral qualifier 3, device type 1Fh.
pub(crate) fn no_such_lun(cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    if cdb[1] & 1 != 0 || cdb[2] != 0 {
        return Err(Sense::illegal(crate::sense::code::LUN_NOT_SUPPORTED));
    }
    let mut out = vec![0x7F, 0, 0x06, 0x02, 31];
    out.resize(8, 0);
    out.resize(36, b' ');
    out.truncate(usize::from(be16(cdb, 3)));
    Ok(out)
}
