//! UNMAP parameter lists (SBC-3 5.28.2).

use crate::wire::{be16, be32, be64};

/// Bytes before the first block descriptor.
pub const HEADER_BYTES: usize = 8;
/// Bytes of one block descriptor.
pub const DESCRIPTOR_BYTES: usize = 16;
/// Bytes of a list with one descriptor.
pub const ONE_RANGE_BYTES: usize = HEADER_BYTES + DESCRIPTOR_BYTES;

/// A range of blocks to deallocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First block.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u32,
}

/// The list of one range.
pub fn one_range(range: Range) -> [u8; ONE_RANGE_BYTES] {
    let mut list = [0; ONE_RANGE_BYTES];
    list[1] = (ONE_RANGE_BYTES - 2) as u8;
    list[3] = DESCRIPTOR_BYTES as u8;
    list[8..16].copy_from_slice(&range.lba.to_be_bytes());
    list[16..20].copy_from_slice(&range.blocks.to_be_bytes());
    list
}

/// The ranges of a list; None if its header is incomplete. If a descriptor list is longer than the received bytes, the
/// complete descriptors are used.
pub fn ranges(list: &[u8]) -> Option<impl ExactSizeIterator<Item = Range>> {
    if list.len() < HEADER_BYTES {
        return None;
    }
    let end = list.len().min(HEADER_BYTES + usize::from(be16(list, 2)));
    let range = |descriptor: &[u8]| Range { lba: be64(descriptor, 0), blocks: be32(descriptor, 8) };
    Some(list[HEADER_BYTES..end].chunks_exact(DESCRIPTOR_BYTES).map(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_24_bytes() {
        let list = one_range(Range { lba: 7, blocks: 9 });
        assert_eq!(list, [0, 22, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0]);
        assert_eq!(ranges(&list).unwrap().collect::<Vec<_>>(), [Range { lba: 7, blocks: 9 }]);
        assert_eq!(ranges(&list[..23]).unwrap().len(), 0);
        assert!(ranges(&list[..7]).is_none());
    }
}
