//! The metadata of a pool on its disk: a superblock, and a database in two copies. Open this file first.
//!
//! The database is redb. It works on an [`Image`] of its file in memory. Its writes go to both copies on the disk, in their
//! order, with a flush at each sync. Only then does a transaction count.

mod database;
mod image;
mod region;
mod superblock;

pub(crate) use database::{Store, StoreError};
pub(crate) use superblock::{Layout, Superblocks};

use bytes::{Bytes, BytesMut};

/// Unit in which metadata is written.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// A block that names its kind and can be checked: magic, length, body, CRC32C, zeros.
fn seal(magic: [u8; 8], body: &[u8]) -> Bytes {
    let mut block = BytesMut::with_capacity(BLOCK_BYTES as usize);
    block.extend_from_slice(&magic);
    block.extend_from_slice(&(body.len() as u32).to_le_bytes());
    block.extend_from_slice(body);
    let sum = linerate_crc32c::crc32c(&block);
    block.extend_from_slice(&sum.to_le_bytes());
    block.resize(BLOCK_BYTES as usize, 0);
    block.freeze()
}

/// The body of a block that [`seal`] made; None for any other block.
fn unseal(magic: [u8; 8], block: &[u8]) -> Option<&[u8]> {
    let len = u32::from_le_bytes(block.strip_prefix(magic.as_slice())?.first_chunk().copied()?) as usize;
    let (sealed, rest) = block.split_at_checked(len.checked_add(12)?)?;
    let sum = u32::from_le_bytes(*rest.first_chunk()?);
    (linerate_crc32c::crc32c(sealed) == sum).then_some(&sealed[12..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_block_opens_unless_any_bit_of_it_changed() {
        let block = seal(*b"LNRTTEST", b"body");
        assert_eq!(unseal(*b"LNRTTEST", &block), Some(b"body".as_slice()));
        assert_eq!(unseal(*b"LNRTELSE", &block), None);
        for bit in 0..20 * 8 {
            let mut damaged = block.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal(*b"LNRTTEST", &damaged), None, "bit {bit}");
        }
    }
}
