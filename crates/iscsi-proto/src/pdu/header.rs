//! The one wire layout that every basic header segment shares (RFC 7143 section 11.2.1).
//!
//! Bytes 0 to 19 are the same for all opcodes. From byte 20 on every field is a big-endian word (or a part of one). So
//! one struct describes all 18 PDUs, without offset arithmetic.

use super::{BHS_BYTES, opcode};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    byteorder::big_endian::{U32, U64},
};

/// A basic header segment as received or to be sent.
pub type Bhs = [u8; BHS_BYTES];

/// Bit of byte 0: immediate delivery.
pub(super) const IMMEDIATE: u8 = 0x40;
/// Bit of byte 1: final PDU of a sequence (also Transit in login PDUs).
pub(super) const FINAL: u8 = 0x80;
/// Bit of byte 1: text continues in the next PDU.
pub(super) const CONTINUE: u8 = 0x40;

/// Bytes as named words. `words[n]` is the big-endian word at byte `20 + 4 n`.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Wire {
    pub(super) opcode: u8,
    pub(super) flags: u8,
    pub(super) byte2: u8,
    pub(super) byte3: u8,
    pub(super) ahs_words: u8,
    pub(super) data_len: [u8; 3],
    pub(super) lun: U64,
    pub(super) itt: U32,
    pub(super) words: [U32; 7],
}

impl Wire {
    pub(super) fn read(bhs: &Bhs) -> Self {
        zerocopy::transmute!(*bhs)
    }

    pub(super) fn write(self, out: &mut Bhs) {
        *out = zerocopy::transmute!(self);
    }

    /// A header with opcode byte, flags, tag and data length set; the rest zero.
    pub(super) fn new(opcode: u8, flags: u8, itt: u32, data_len: u32) -> Self {
        debug_assert!(data_len < 1 << 24, "a data segment length has 24 bits");
        let [_, a, b, c] = data_len.to_be_bytes();
        Wire { opcode, flags, data_len: [a, b, c], itt: U32::new(itt), ..Wire::default() }
    }

    pub(super) fn word(&self, index: usize) -> u32 {
        self.words[index].get()
    }

    pub(super) fn set_word(&mut self, index: usize, value: u32) {
        self.words[index] = U32::new(value);
    }

    pub(super) fn flag(&self, mask: u8) -> bool {
        self.flags & mask != 0
    }

    pub(super) fn immediate(&self) -> bool {
        self.opcode & IMMEDIATE != 0
    }

    pub(super) fn data_len(&self) -> u32 {
        let [a, b, c] = self.data_len;
        u32::from_be_bytes([0, a, b, c])
    }
}

/// `mask` if `on`, else zero, for flag bytes.
pub(super) fn bit(on: bool, mask: u8) -> u8 {
    if on { mask } else { 0 }
}

/// The opcode byte of an initiator PDU.
pub(super) fn request_opcode(code: u8, immediate: bool) -> u8 {
    code | bit(immediate, IMMEDIATE)
}

/// Length in bytes of the data segment that follows this header, without padding (`DataSegmentLength`).
pub fn data_len(bhs: &Bhs) -> u32 {
    u32::from_be_bytes([0, bhs[5], bhs[6], bhs[7]])
}

/// Length in bytes of the additional header segments that follow this header (`TotalAHSLength` is in words).
pub fn total_ahs_len(bhs: &Bhs) -> usize {
    usize::from(bhs[4]) * 4
}

/// The opcode of a header, without the immediate bit.
pub(super) fn code(bhs: &Bhs) -> u8 {
    bhs[0] & 0x3f
}

const _: () = assert!(size_of::<Wire>() == BHS_BYTES);
const _: () = assert!(opcode::REJECT == 0x3f);
