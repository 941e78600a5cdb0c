//! READ CAPACITY (10) and (16) parameter data (SBC-3 5.15, 5.16).

use crate::wire::field;

/// Allocation length for all of READ CAPACITY (16).
pub const LEN_16_BYTES: usize = 32;
/// Length of READ CAPACITY (10).
pub const LEN_10_BYTES: usize = 8;

const LBPME: u8 = 0x80;
const LBPRZ: u8 = 0x40;

/// How large a logical unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Number of logical blocks, at least 1.
    pub blocks: u64,
    /// Logical block length in bytes.
    pub block_bytes: u32,
    /// Physical block length in bytes: the logical length times a power of two.
    pub physical_block_bytes: u32,
    /// LBPME: thin provisioned.
    pub thin: bool,
    /// LBPRZ: blocks that were unmapped read as zeros.
    pub unmapped_reads_zeros: bool,
}

impl Capacity {
    /// As READ CAPACITY (10) data: a last LBA of more than 32 bits is `FFFF_FFFFh`.
    pub fn encode_10(&self) -> [u8; LEN_10_BYTES] {
        let last_lba = u32::try_from(self.blocks - 1).unwrap_or(u32::MAX);
        let mut out = [0; LEN_10_BYTES];
        out[..4].copy_from_slice(&last_lba.to_be_bytes());
        out[4..].copy_from_slice(&self.block_bytes.to_be_bytes());
        out
    }

    /// As READ CAPACITY (16) data.
    pub fn encode_16(&self) -> [u8; LEN_16_BYTES] {
        let mut out = [0; LEN_16_BYTES];
        out[..8].copy_from_slice(&(self.blocks - 1).to_be_bytes());
        out[8..12].copy_from_slice(&self.block_bytes.to_be_bytes());
        out[13] = (self.physical_block_bytes / self.block_bytes).trailing_zeros() as u8;
        out[14] = if self.thin { LBPME } else { 0 } | if self.unmapped_reads_zeros { LBPRZ } else { 0 };
        out
    }

    /// Reads READ CAPACITY (10) data.
    pub fn parse_10(reply: &[u8]) -> Option<Self> {
        let block_bytes = u32::from_be_bytes(field(reply, 4)?);
        Some(Self {
            blocks: u64::from(u32::from_be_bytes(field(reply, 0)?)) + 1,
            block_bytes,
            physical_block_bytes: block_bytes,
            thin: false,
            unmapped_reads_zeros: false,
        })
    }

    /// LOWEST ALIGNED LOGICAL BLOCK ADDRESS of READ CAPACITY (16) data: the first logical block that begins a physical
    /// one. None if the data ends before it; then it does not tell of physical blocks either.
    pub fn lowest_aligned_block(reply: &[u8]) -> Option<u16> {
        Some(u16::from_be_bytes(field(reply, 14)?) & 0x3FFF)
    }

    /// Reads READ CAPACITY (16) data; the first 12 bytes are enough.
    pub fn parse_16(reply: &[u8]) -> Option<Self> {
        let block_bytes = u32::from_be_bytes(field(reply, 8)?);
        let exponent = u32::from(reply.get(13).copied().unwrap_or(0) & 0x0F);
        let flags = reply.get(14).copied().unwrap_or(0);
        Some(Self {
            // A capacity of 2^64 blocks does not exist; the sum must not wrap to zero either.
            blocks: u64::from_be_bytes(field(reply, 0)?).saturating_add(1),
            block_bytes,
            physical_block_bytes: block_bytes.saturating_mul(1 << exponent),
            thin: flags & LBPME != 0,
            unmapped_reads_zeros: flags & LBPRZ != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thin_units_and_physical_blocks() {
        let mut reply = [0; LEN_16_BYTES];
        (reply[7], reply[10], reply[13], reply[14]) = (0xFF, 2, 3, 0x80);
        let capacity = Capacity::parse_16(&reply).unwrap();
        assert_eq!((capacity.blocks, capacity.block_bytes, capacity.physical_block_bytes), (256, 512, 4096));
        assert!(capacity.thin && !capacity.unmapped_reads_zeros);
        assert_eq!(Capacity::parse_16(&[0xFF; 12]).unwrap().blocks, u64::MAX);
        assert_eq!(Capacity::parse_16(&[0; 11]), None);
        reply[15] = 7;
        assert_eq!(Capacity::lowest_aligned_block(&reply), Some(7), "the flags beside it are no part of it");
        assert_eq!(Capacity::lowest_aligned_block(&reply[..15]), None);
    }
}
