//! MODE SENSE (6) and (10) (SPC-4 6.11, 6.12).

use super::{ALL_PAGES, ALL_SUBPAGES, ModeValues, PAGES, PageControl, changeable, page};
use crate::{
    sense::{Sense, code},
    wire::be16,
};

/// DPOFUA in the device-specific parameter: DPO and FUA are supported (SBC-3 6.4.1).
const DPOFUA: u8 = 0x10;
const WP: u8 = 0x80;

/// What MODE SENSE tells about the unit besides its pages.
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
    let ten = cdb[0] == 0x5A;
    let descriptor = if cdb[1] & 0x08 != 0 {
        Vec::new()
    } else if ten && cdb[1] & 0x10 != 0 {
        long_descriptor(medium)
    } else {
        short_descriptor(medium)
    };
    let pages = selected_pages(cdb, current, default)?;
    let device_specific = DPOFUA | if medium.write_protected { WP } else { 0 };
    let mut out = if ten {
        let long_lba = u8::from(descriptor.len() == 16);
        let len = (6 + descriptor.len() + pages.len()) as u16;
        let [high, low] = len.to_be_bytes();
        vec![high, low, 0, device_specific, long_lba, 0, 0, descriptor.len() as u8]
    } else {
        let len = 3 + descriptor.len() + pages.len();
        vec![len as u8, 0, device_specific, descriptor.len() as u8]
    };
    out.extend_from_slice(&descriptor);
    out.extend_from_slice(&pages);
    out.truncate(usize::from(if ten { be16(cdb, 7) } else { u16::from(cdb[4]) }));
    Ok(out)
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
                PageControl::Current => page(code, sub, current),
                PageControl::Changeable => changeable(code, sub),
                PageControl::Default => page(code, sub, default),
            });
        }
    }
    if out.is_empty() { Err(Sense::cdb(2)) } else { Ok(out) }
}

fn short_descriptor(medium: &Medium) -> Vec<u8> {
    let blocks = u32::try_from(medium.capacity_blocks).unwrap_or(u32::MAX);
    let mut out = blocks.to_be_bytes().to_vec();
    out.extend_from_slice(&medium.block_bytes.to_be_bytes());
    out
}

fn long_descriptor(medium: &Medium) -> Vec<u8> {
    let mut out = medium.capacity_blocks.to_be_bytes().to_vec();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&medium.block_bytes.to_be_bytes());
    out
}
