//! MODE SENSE (6) and (10) (SPC-4 6.11, 6.12).

use linerate_scsi_proto::{
    mode::{
        ALL_PAGES, ALL_SUBPAGES, BlockDescriptor, DPOFUA, ModeForm, ModeList, ModeValues, PAGES, WP,
        changeable,
    },
    opcode::MODE_SENSE_10,
    sense::{Sense, code},
    wire::be16,
};

/// DBD: leave out the block descriptor.
const DBD: u8 = 0x08;
/// LLBAA: the initiator accepts a long block descriptor.
const LLBAA: u8 = 0x10;

/// The medium, for headers and block descriptors.
pub(crate) struct Medium {
    pub(crate) capacity_blocks: u64,
    pub(crate) block_bytes: u32,
    pub(crate) write_protected: bool,
}

/// The mode parameter list for a MODE SENSE CDB, cut to its allocation length.
pub(crate) fn mode_sense(
    cdb: &[u8; 16],
    current: ModeValues,
    default: ModeValues,
    medium: &Medium,
) -> Result<Vec<u8>, Sense> {
    let form = if cdb[0] == MODE_SENSE_10 { ModeForm::Ten } else { ModeForm::Six };
    let Medium { capacity_blocks, block_bytes, write_protected } = *medium;
    let descriptor = if cdb[1] & DBD != 0 {
        BlockDescriptor::None
    } else if form == ModeForm::Ten && cdb[1] & LLBAA != 0 {
        BlockDescriptor::Long { blocks: capacity_blocks, block_bytes }
    } else {
        BlockDescriptor::short(capacity_blocks, block_bytes)
    };
    let pages = selected_pages(cdb, current, default)?;
    let device_specific = DPOFUA | if write_protected { WP } else { 0 };
    let mut out = ModeList { device_specific, descriptor, pages: &pages }.encode(form);
    out.truncate(match form {
        ModeForm::Six => usize::from(cdb[4]),
        ModeForm::Ten => usize::from(be16(cdb, 7)),
    });
    Ok(out)
}

/// PC: the values that a MODE SENSE returns (SPC-4 table 172).
#[derive(Clone, Copy)]
enum PageControl {
    Current,
    Changeable,
    Default,
}

fn selected_pages(cdb: &[u8; 16], current: ModeValues, default: ModeValues) -> Result<Vec<u8>, Sense> {
    let control = match cdb[2] >> 6 {
        0 => PageControl::Current,
        1 => PageControl::Changeable,
        2 => PageControl::Default,
        _ => return Err(Sense::illegal(code::SAVING_NOT_SUPPORTED)),
    };
    let (wanted, subpage) = (cdb[2] & 0x3F, cdb[3]);
    if wanted == ALL_PAGES && subpage != 0 && subpage != ALL_SUBPAGES {
        return Err(Sense::cdb(3));
    }
    let mut out = Vec::new();
    for (code, sub) in PAGES {
        let page_matches = wanted == ALL_PAGES || wanted == code;
        let sub_matches = subpage == sub || subpage == ALL_SUBPAGES;
        if page_matches && sub_matches {
            out.extend(match control {
                PageControl::Current => current.page((code, sub)),
                PageControl::Changeable => changeable((code, sub)),
                PageControl::Default => default.page((code, sub)),
            });
        }
    }
    if out.is_empty() { Err(Sense::cdb(2)) } else { Ok(out) }
}
