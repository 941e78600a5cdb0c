//! INQUIRY (SPC-4 6.6).

use super::vpd;
use crate::{UnitConfig, nexus::Itl};
use linerate_scsi_proto::{
    inquiry::{DISK, IMPLICIT_ALUA, StandardInquiry, no_such_lun},
    sense::{Sense, code},
    wire::be16,
};

/// EVPD: the CDB requests a vital product data page.
const EVPD: u8 = 0x01;

pub(crate) fn inquiry(itl: &Itl, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let mut out = match (cdb[1] & EVPD != 0, cdb[2]) {
        (true, page) => vpd::page(itl, page)?,
        (false, 0) => standard(itl.unit().config()).encode(),
        (false, _) => return Err(Sense::cdb(2)),
    };
    out.truncate(usize::from(be16(cdb, 3)));
    Ok(out)
}

fn standard(config: &UnitConfig) -> StandardInquiry {
    StandardInquiry {
        peripheral: DISK,
        tpgs: IMPLICIT_ALUA,
        third_party_copy: true,
        multi_port: config.ports.len() > 1,
        vendor: config.identity.vendor.clone(),
        product: config.identity.product.clone(),
        revision: config.identity.revision.clone(),
    }
}

/// INQUIRY to a LUN that does not exist.
pub(crate) fn missing_lun(cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    if cdb[1] & EVPD != 0 || cdb[2] != 0 {
        return Err(Sense::illegal(code::LUN_NOT_SUPPORTED));
    }
    let mut out = no_such_lun();
    out.truncate(usize::from(be16(cdb, 3)));
    Ok(out)
}
