//! Mode pages: the settings of a unit that initiators may see, and the three that they may change.
//!
//! Changeable: WCE (caching page), `D_SENSE` and SWP (control page). Pages are shared by all initiators and
//! not saved. A page exists once, as bytes built from [`ModeValues`]; MODE SENSE shows it, MODE SELECT
//! compares against it.

mod select;
mod sense;

pub(crate) use select::{SelectLayout, parse};
pub(crate) use sense::{Medium, mode_sense};

/// What initiators can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModeValues {
    /// WCE: a write is GOOD before it is on stable storage.
    pub(crate) write_cache: bool,
    /// `D_SENSE`: descriptor format sense data.
    pub(crate) descriptor_sense: bool,
    /// SWP: refuse writes.
    pub(crate) write_protect: bool,
}

/// PC field: which values a MODE SENSE shows (SPC-4 table 172).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageControl {
    Current,
    Changeable,
    Default,
}

/// Page and subpage codes in the order in which "all pages" shows them.
const PAGES: [(u8, u8); 5] = [(0x01, 0), (0x08, 0), (0x0A, 0), (0x0A, 1), (0x1C, 0)];
pub(crate) const ALL_PAGES: u8 = 0x3F;
pub(crate) const ALL_SUBPAGES: u8 = 0xFF;

const WCE: u8 = 0x04;
const D_SENSE: u8 = 0x04;
const SWP: u8 = 0x08;

fn flag(on: bool, bit: u8) -> u8 {
    if on { bit } else { 0 }
}

/// One page with its header.
fn page(code: u8, subpage: u8, values: ModeValues) -> Vec<u8> {
    match (code, subpage) {
        // Read-write error recovery: AWRE, ARRE.
        (0x01, 0) => vec![0x01, 10, 0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        (0x08, 0) => {
            let mut page = vec![0x08, 18];
            page.resize(20, 0);
            page[2] = flag(values.write_cache, WCE);
            page
        }
        // Control: GLTSD, unrestricted reordering, busy timeout unlimited.
        (0x0A, 0) => {
            let flags = 0x02 | flag(values.descriptor_sense, D_SENSE);
            vec![0x0A, 10, flags, 0x10, flag(values.write_protect, SWP), 0, 0, 0, 0xFF, 0xFF, 0, 0]
        }
        // Control extension: maximum sense data length 252.
        (0x0A, _) => {
            let mut page = vec![0x4A, 0x01, 0, 28];
            page.resize(32, 0);
            page[6] = 252;
            page
        }
        // Informational exceptions control: DEXCPT, nothing is reported by itself.
        _ => vec![0x1C, 10, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    }
}

/// The same page with ones where a bit may be changed.
fn changeable(code: u8, subpage: u8) -> Vec<u8> {
    let none = ModeValues { write_cache: false, descriptor_sense: false, write_protect: false };
    let mut mask = page(code, subpage, none);
    let header = if subpage == 0 { 2 } else { 4 };
    mask[header..].fill(0);
    match (code, subpage) {
        (0x08, 0) => mask[2] = WCE,
        (0x0A, 0) => (mask[2], mask[4]) = (D_SENSE, SWP),
        _ => {}
    }
    mask
}
