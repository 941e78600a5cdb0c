//! Mode parameter lists and mode pages (SPC-4 6.9 to 6.12, 7.5; SBC-3 6.4).
//!
//! Each page exists once, as bytes built from [`ModeValues`]: MODE SENSE returns it, MODE SELECT compares with it, and
//! [`ModeValues::read_page`] parses it.

use crate::{
    sense::{Sense, code},
    wire::{be16, be32, be64},
};

/// Form of MODE SENSE and MODE SELECT: which header the list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeForm {
    /// The 6-byte CDB: a header of 4 bytes.
    Six,
    /// The 10-byte CDB: a header of 8 bytes.
    Ten,
}

impl ModeForm {
    /// Length of the header in bytes.
    pub const fn header_bytes(self) -> usize {
        match self {
            Self::Six => 4,
            Self::Ten => 8,
        }
    }
}

/// DPOFUA in the device-specific parameter: DPO and FUA are supported (SBC-3 6.4.1).
pub const DPOFUA: u8 = 0x10;
/// WP in the device-specific parameter: the medium is write protected.
pub const WP: u8 = 0x80;

/// The block descriptor of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockDescriptor {
    /// Left out.
    None,
    /// 8 bytes. `FFFF_FFFFh` blocks: as many as fit, or more than the field can hold.
    Short {
        /// NUMBER OF LOGICAL BLOCKS.
        blocks: u32,
        /// LOGICAL BLOCK LENGTH in bytes, 24 bits.
        block_bytes: u32,
    },
    /// 16 bytes (LONGLBA), in the 10-byte form only.
    Long {
        /// NUMBER OF LOGICAL BLOCKS.
        blocks: u64,
        /// LOGICAL BLOCK LENGTH in bytes.
        block_bytes: u32,
    },
}

impl BlockDescriptor {
    /// The short descriptor of a capacity; a larger one is `FFFF_FFFFh`.
    pub fn short(blocks: u64, block_bytes: u32) -> Self {
        Self::Short { blocks: u32::try_from(blocks).unwrap_or(u32::MAX), block_bytes }
    }

    fn encode(self) -> Vec<u8> {
        match self {
            Self::None => Vec::new(),
            Self::Short { blocks, block_bytes } => [blocks.to_be_bytes(), block_bytes.to_be_bytes()].concat(),
            Self::Long { blocks, block_bytes } => {
                let mut out = blocks.to_be_bytes().to_vec();
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(&block_bytes.to_be_bytes());
                out
            }
        }
    }
}

/// A mode parameter list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeList<'a> {
    /// DEVICE-SPECIFIC PARAMETER: [`DPOFUA`], [`WP`].
    pub device_specific: u8,
    /// The block descriptor.
    pub descriptor: BlockDescriptor,
    /// The pages, one after the other.
    pub pages: &'a [u8],
}

const LENGTH_ERROR: Sense = Sense::illegal(code::PARAMETER_LIST_LENGTH);
const LONGLBA: u8 = 0x01;

impl<'a> ModeList<'a> {
    /// As a MODE SENSE reply. In the 6-byte form the descriptor must not be long.
    pub fn encode(&self, form: ModeForm) -> Vec<u8> {
        let descriptor = self.descriptor.encode();
        let len = form.header_bytes() + descriptor.len() + self.pages.len();
        let descriptor_len = descriptor.len() as u8;
        let mut out = match form {
            ModeForm::Six => {
                debug_assert!(
                    !matches!(self.descriptor, BlockDescriptor::Long { .. }),
                    "LONGLBA needs 10 bytes"
                );
                vec![(len - 1) as u8, 0, self.device_specific, descriptor_len]
            }
            ModeForm::Ten => {
                let [high, low] = ((len - 2) as u16).to_be_bytes();
                let long = if matches!(self.descriptor, BlockDescriptor::Long { .. }) { LONGLBA } else { 0 };
                vec![high, low, 0, self.device_specific, long, 0, 0, descriptor_len]
            }
        };
        out.extend_from_slice(&descriptor);
        out.extend_from_slice(self.pages);
        out
    }

    /// Reads a list: of MODE SELECT, or a MODE SENSE reply that was not cut.
    ///
    /// # Errors
    ///
    /// The sense with which a device server refuses it: PARAMETER LIST LENGTH ERROR if it is incomplete, INVALID FIELD
    /// at the descriptor length if that is neither 0 nor the length of a descriptor.
    pub fn parse(list: &'a [u8], form: ModeForm) -> Result<Self, Sense> {
        let header = list.get(..form.header_bytes()).ok_or(LENGTH_ERROR)?;
        let (device_specific, long, len) = match form {
            ModeForm::Six => (header[2], false, usize::from(header[3])),
            ModeForm::Ten => (header[3], header[4] & LONGLBA != 0, usize::from(be16(header, 6))),
        };
        let rest = &list[header.len()..];
        let bytes = rest.get(..len).ok_or(LENGTH_ERROR)?;
        let descriptor = match (len, long) {
            (0, _) => BlockDescriptor::None,
            (8, false) => {
                BlockDescriptor::Short { blocks: be32(bytes, 0), block_bytes: be32(bytes, 4) & 0x00FF_FFFF }
            }
            (16, true) => BlockDescriptor::Long { blocks: be64(bytes, 0), block_bytes: be32(bytes, 12) },
            _ => return Err(Sense::parameter(header.len() as u16 - 1)),
        };
        Ok(Self { device_specific, descriptor, pages: &rest[len..] })
    }
}

/// The settings in mode pages that initiators can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeValues {
    /// WCE: a write is GOOD before it is on stable storage.
    pub write_cache: bool,
    /// `D_SENSE`: descriptor format sense data.
    pub descriptor_sense: bool,
    /// SWP: refuse writes.
    pub write_protect: bool,
}

/// Page and subpage codes in the order of "all pages": read-write error recovery, caching, control, control extension,
/// informational exceptions control.
pub const PAGES: [(u8, u8); 5] = [(0x01, 0), CACHING, CONTROL, (0x0A, 1), (0x1C, 0)];
/// Page code: all pages.
pub const ALL_PAGES: u8 = 0x3F;
/// Subpage code: all subpages.
pub const ALL_SUBPAGES: u8 = 0xFF;

/// Page code of the caching page.
pub const CACHING_PAGE: u8 = 0x08;

const CACHING: (u8, u8) = (CACHING_PAGE, 0);
const CONTROL: (u8, u8) = (0x0A, 0);
const SPF: u8 = 0x40;
const WCE: u8 = 0x04;
const D_SENSE: u8 = 0x04;
const SWP: u8 = 0x08;

fn flag(on: bool, bit: u8) -> u8 {
    if on { bit } else { 0 }
}

/// The codes of the page that starts with these bytes; None if the bytes end before the subpage code.
pub fn page_codes(page: &[u8]) -> Option<(u8, u8)> {
    let first = *page.first()?;
    let subpage = if first & SPF != 0 { *page.get(1)? } else { 0 };
    Some((first & 0x3F, subpage))
}

impl ModeValues {
    /// One page of [`PAGES`] with its header.
    pub fn page(self, codes: (u8, u8)) -> Vec<u8> {
        match codes {
            // AWRE, ARRE.
            (0x01, 0) => vec![0x01, 10, 0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            CACHING => {
                let mut page = vec![0x08, 18];
                page.resize(20, 0);
                page[2] = flag(self.write_cache, WCE);
                page
            }
            // GLTSD, unrestricted reordering, busy timeout unlimited.
            CONTROL => {
                let flags = 0x02 | flag(self.descriptor_sense, D_SENSE);
                vec![0x0A, 10, flags, 0x10, flag(self.write_protect, SWP), 0, 0, 0, 0xFF, 0xFF, 0, 0]
            }
            // Maximum sense data length 252.
            (0x0A, _) => {
                let mut page = vec![0x0A | SPF, 0x01, 0, 28];
                page.resize(32, 0);
                page[6] = 252;
                page
            }
            // DEXCPT: the unit reports no exceptions by itself.
            _ => vec![0x1C, 10, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        }
    }

    /// Reads the values of a whole page of these codes.
    pub fn read_page(&mut self, codes: (u8, u8), page: &[u8]) {
        let has = |at: usize, bit: u8| page.get(at).is_some_and(|byte| byte & bit != 0);
        match codes {
            CACHING => self.write_cache = has(2, WCE),
            CONTROL => (self.descriptor_sense, self.write_protect) = (has(2, D_SENSE), has(4, SWP)),
            _ => {}
        }
    }
}

/// WCE of the caching page in a MODE SENSE (6) reply; None if the reply does not have it.
pub fn write_cache(reply: &[u8]) -> Option<bool> {
    let mut rest = ModeList::parse(reply, ModeForm::Six).ok()?.pages;
    loop {
        let codes = page_codes(rest)?;
        if codes == CACHING {
            return rest.get(2).map(|flags| flags & WCE != 0);
        }
        let len = match *rest {
            [first, _, high, low, ..] if first & SPF != 0 => 4 + usize::from(u16::from_be_bytes([high, low])),
            [first, len, ..] if first & SPF == 0 => 2 + usize::from(len),
            _ => return None,
        };
        rest = rest.get(len..)?;
    }
}

/// The page of [`PAGES`] with ones for bits that an initiator may change.
pub fn changeable(codes: (u8, u8)) -> Vec<u8> {
    let off = ModeValues { write_cache: false, descriptor_sense: false, write_protect: false };
    let mut mask = off.page(codes);
    let header = if codes.1 == 0 { 2 } else { 4 };
    mask[header..].fill(0);
    match codes {
        CACHING => mask[2] = WCE,
        CONTROL => (mask[2], mask[4]) = (D_SENSE, SWP),
        _ => {}
    }
    mask
}
