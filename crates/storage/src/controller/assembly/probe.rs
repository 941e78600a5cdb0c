//! What a disk holds before it is used: nothing, a member of a RAID set, or something that must not be overwritten.

use crate::{
    disk::{Disk, DiskError},
    raid::{Label, MemberLabel, label},
};
use bytes::BytesMut;

const KIB: u64 = 1 << 10;
/// Size of the parts at the beginning and at the end that are read completely.
const HEAD_BYTES: u64 = 1 << 20;
const TAIL_BYTES: u64 = 64 * KIB;
/// Size and number of the samples in between.
const SAMPLE_BYTES: u64 = 4 * KIB;
const SAMPLES: u64 = 256;

/// What a disk holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Content {
    /// Zeros in all places that were read.
    Nothing,
    /// A member or a spare of a RAID set.
    Member(MemberLabel),
    /// Superblocks of a RAID set that are damaged.
    Damaged,
    /// Superblocks of a later program.
    Version(u32),
    /// Something else, in words.
    Other(&'static str),
}

/// Offset, bytes there, and what they mean; the same as in wipefs(8) and blkid(8).
const SIGNATURES: &[(u64, &[u8], &str)] = &[
    (0, b"XFSB", "an XFS file system"),
    (0x438, &[0x53, 0xEF], "an ext2, ext3 or ext4 file system"),
    (64 * KIB + 0x40, b"_BHRfS_M", "a btrfs file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (54, b"FAT1", "a FAT file system"),
    (82, b"FAT32   ", "a FAT file system"),
    (0x8001, b"CD001", "an ISO 9660 file system"),
    (1 << 20, &[0x0D, 0xD0, 0x01, 0xC0], "a VMFS volume"),
    (0, b"LUKS\xBA\xBE", "an encrypted volume (LUKS)"),
    (0, b"LABELONE", "an LVM physical volume"),
    (512, b"LABELONE", "an LVM physical volume"),
    (1024, b"LABELONE", "an LVM physical volume"),
    (1536, b"LABELONE", "an LVM physical volume"),
    (0, &[0xFC, 0x4E, 0x2B, 0xA9], "a member of a Linux software RAID"),
    (4 * KIB, &[0xFC, 0x4E, 0x2B, 0xA9], "a member of a Linux software RAID"),
    (4086, b"SWAPSPACE2", "swap space"),
    (0, b"QFI\xFB", "a disk image (qcow2)"),
    (0, b"KDMV", "a disk image (VMDK)"),
    (512, b"EFI PART", "a partition table"),
    (4 * KIB, b"EFI PART", "a partition table"),
    (510, &[0x55, 0xAA], "a partition table or a boot sector"),
];

/// Looks at a disk. Errors: it has failed.
pub(in super::super) async fn probe(disk: &dyn Disk) -> Result<Content, DiskError> {
    match label(disk).await {
        Label::Member(member) => return Ok(Content::Member(member)),
        Label::Damaged => return Ok(Content::Damaged),
        Label::Version(version) => return Ok(Content::Version(version)),
        Label::None => {}
    }
    let size = disk.size_bytes();
    // The head includes a signature that starts at its end.
    let Some(head) = read(disk, 0, (HEAD_BYTES + SAMPLE_BYTES).min(size)).await? else {
        return Ok(Content::Other("blocks that cannot be read"));
    };
    if let Some(found) = signature(&head) {
        return Ok(Content::Other(found));
    }
    if !is_zero(&head) {
        return Ok(Content::Other("unknown data"));
    }
    let block = SAMPLE_BYTES;
    let step = (size / SAMPLES / block * block).max(block);
    let samples = (0..SAMPLES).map(|number| (number * step, SAMPLE_BYTES));
    let tail = (size.saturating_sub(TAIL_BYTES).next_multiple_of(block), TAIL_BYTES);
    for (offset, len) in samples.chain([tail]) {
        let len = len.min(size.saturating_sub(offset)) / block * block;
        match read(disk, offset, len).await? {
            Some(bytes) if is_zero(&bytes) => {}
            Some(_) => return Ok(Content::Other("unknown data")),
            None => return Ok(Content::Other("blocks that cannot be read")),
        }
    }
    Ok(Content::Nothing)
}

/// Whether the beginning of a disk or a RAID set holds only zeros.
pub(in super::super) async fn begins_with_zeros(disk: &dyn Disk) -> Result<bool, DiskError> {
    let len = HEAD_BYTES.min(disk.size_bytes()) / SAMPLE_BYTES * SAMPLE_BYTES;
    Ok(read(disk, 0, len).await?.is_some_and(|bytes| is_zero(&bytes)))
}

/// None: the read failed.
async fn read(disk: &dyn Disk, offset: u64, len: u64) -> Result<Option<BytesMut>, DiskError> {
    let len = len / u64::from(disk.block_bytes()) * u64::from(disk.block_bytes());
    match disk.read(offset, BytesMut::zeroed(len as usize)).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(DiskError::Unreadable { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn signature(head: &[u8]) -> Option<&'static str> {
    let is_there = |(offset, magic, _): &&(u64, &[u8], &str)| {
        head.get(*offset as usize..).is_some_and(|rest| rest.starts_with(magic))
    };
    SIGNATURES.iter().find(is_there).map(|(_, _, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SparseDisk;
    use bytes::Bytes;
    use futures::executor::block_on;

    fn with(offset: u64, bytes: &[u8]) -> Content {
        let disk = SparseDisk::new("d0", 64 << 20, 512);
        let mut block = vec![0; 1024];
        let within = (offset % 512) as usize;
        block[within..within + bytes.len()].copy_from_slice(bytes);
        block_on(disk.write(offset / 512 * 512, Bytes::from(block), true)).unwrap();
        block_on(probe(&disk)).unwrap()
    }

    #[test]
    fn every_signature_is_found_where_it_stands() {
        assert_eq!(block_on(probe(&SparseDisk::new("d0", 64 << 20, 4096))).unwrap(), Content::Nothing);
        for (offset, magic, meaning) in SIGNATURES {
            assert_eq!(with(*offset, magic), Content::Other(meaning), "at {offset}");
        }
    }

    #[test]
    fn data_without_a_signature_is_no_empty_disk() {
        for offset in [0, 1000 * KIB, 32 << 20, (64 << 20) - 1024] {
            assert_eq!(with(offset, b"x"), Content::Other("unknown data"), "at {offset}");
        }
    }
}
