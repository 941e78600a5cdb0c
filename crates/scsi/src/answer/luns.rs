//! REPORT LUNS.

use crate::Inventory;
use linerate_scsi_proto::lun;
use linerate_scsi_proto::sense::Sense;
use linerate_scsi_proto::wire::be32;

/// REPORT LUNS (SPC-4 6.33). There are no well known logical units.
pub(crate) fn report_luns(inventory: &Inventory, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let units = match cdb[2] {
        0 | 2 => inventory.units(),
        1 => Vec::new(),
        _ => return Err(Sense::cdb(2)),
    };
    let mut out = lun::encode_list(units.iter().map(|(number, _)| *number));
    out.truncate(be32(cdb, 6) as usize);
    Ok(out)
}
