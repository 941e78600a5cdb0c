//! The bytes of a log entry (MS-VHDX 2.3.1): sectors with a header and descriptors, then sectors with data.

use super::Sector;
use crate::{
    format::SECTOR_BYTES,
    guid::Guid,
    wire::{MIB, put, seal, u32_at, u64_at},
};

const ENTRY_SIGNATURE: &[u8; 4] = b"loge";
const ZERO_SIGNATURE: &[u8; 4] = b"zero";
const DESCRIPTOR_SIGNATURE: &[u8; 4] = b"desc";
const DATA_SIGNATURE: &[u8; 4] = b"data";
/// Where an entry's checksum is.
pub(super) const CHECKSUM_AT: usize = 4;
const HEADER_BYTES: usize = 64;
const DESCRIPTOR_BYTES: usize = 32;
/// Bytes of data that are in the descriptor instead of the sector.
const LEADING_BYTES: usize = 8;
const TRAILING_AT: usize = 4092;

/// The header of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryHeader {
    /// Sectors of the entry.
    pub(super) sectors: u32,
    /// The first sector of the oldest entry whose changes may be missing.
    pub(super) tail_sector: u32,
    pub(super) sequence: u64,
    pub(super) descriptors: u32,
    /// The file was at least this long, durably, when the entry was written; in bytes.
    pub(super) flushed_file_bytes: u64,
    /// All structures end at or before this byte.
    pub(super) last_file_bytes: u64,
}

/// A change that an entry describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descriptor {
    /// The bytes become zeros.
    Zero { offset: u64, bytes: u64 },
    /// The sector gets the content of the next data sector with these ends.
    Data { offset: u64, leading: [u8; LEADING_BYTES], trailing: [u8; 4] },
}

impl EntryHeader {
    /// Reads the header of an entry with this identifier in a log of `log_sectors`. None: the sector begins no such entry.
    pub(super) fn parse(sector: &Sector, guid: Guid, log_sectors: u32) -> Option<Self> {
        let (bytes, tail) = (u32_at(sector, 8), u32_at(sector, 12));
        let header = Self {
            sectors: bytes / SECTOR_BYTES as u32,
            tail_sector: tail / SECTOR_BYTES as u32,
            sequence: u64_at(sector, 16),
            descriptors: u32_at(sector, 24),
            flushed_file_bytes: u64_at(sector, 48),
            last_file_bytes: u64_at(sector, 56),
        };
        let is_whole = |bytes: u32| u64::from(bytes).is_multiple_of(SECTOR_BYTES);
        let is_valid = sector.starts_with(ENTRY_SIGNATURE)
            && Guid::at(sector, 32) == guid
            && is_whole(bytes)
            && is_whole(tail)
            && header.tail_sector < log_sectors
            && (1..=log_sectors).contains(&header.sectors)
            && header.sequence > 0
            && header.descriptor_sectors() <= u64::from(header.sectors)
            && header.flushed_file_bytes.is_multiple_of(MIB)
            && header.last_file_bytes.is_multiple_of(MIB);
        is_valid.then_some(header)
    }

    /// Sectors with the header and descriptors.
    pub(super) fn descriptor_sectors(&self) -> u64 {
        (HEADER_BYTES as u64 + u64::from(self.descriptors) * DESCRIPTOR_BYTES as u64).div_ceil(SECTOR_BYTES)
    }

    /// The descriptors of the entry's sector with this number, with one that is not valid as None.
    pub(super) fn parse_descriptors<'a>(
        &self,
        sector: &'a Sector,
        number: u64,
    ) -> impl Iterator<Item = Option<Descriptor>> + use<'a> {
        let per_sector = SECTOR_BYTES / DESCRIPTOR_BYTES as u64;
        let in_header = (HEADER_BYTES / DESCRIPTOR_BYTES) as u64;
        let (first, begin) =
            if number == 0 { (0, HEADER_BYTES) } else { (number * per_sector - in_header, 0) };
        let count = u64::from(self.descriptors).saturating_sub(first) as usize;
        let sequence = self.sequence;
        sector[begin..]
            .chunks_exact(DESCRIPTOR_BYTES)
            .take(count)
            .map(move |bytes| Descriptor::parse(bytes, sequence))
    }
}

impl Descriptor {
    fn parse(bytes: &[u8], sequence: u64) -> Option<Self> {
        let offset = u64_at(bytes, 16);
        if u64_at(bytes, 24) != sequence || !offset.is_multiple_of(SECTOR_BYTES) {
            return None;
        }
        if bytes.starts_with(ZERO_SIGNATURE) {
            let bytes = u64_at(bytes, 8);
            return bytes.is_multiple_of(SECTOR_BYTES).then_some(Self::Zero { offset, bytes });
        }
        let (leading, trailing) = (u64_at(bytes, 8).to_le_bytes(), u32_at(bytes, 4).to_le_bytes());
        bytes.starts_with(DESCRIPTOR_SIGNATURE).then_some(Self::Data { offset, leading, trailing })
    }
}

/// Whether a sector is a data sector of the entry with this sequence number.
pub(super) fn is_data_of(sector: &Sector, sequence: u64) -> bool {
    let (high, low) = (u32_at(sector, 4), u32_at(sector, TRAILING_AT));
    sector.starts_with(DATA_SIGNATURE) && (u64::from(high) << 32 | u64::from(low)) == sequence
}

/// Puts the ends that the descriptor holds into a data sector.
pub(super) fn restore(sector: &mut Sector, leading: [u8; LEADING_BYTES], trailing: [u8; 4]) {
    put(sector, 0, &leading);
    put(sector, TRAILING_AT, &trailing);
}

/// What a new entry says besides its pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryFacts {
    pub(super) guid: Guid,
    pub(super) sequence: u64,
    pub(super) tail_sector: u32,
    pub(super) flushed_file_bytes: u64,
    pub(super) last_file_bytes: u64,
}

/// The bytes of an entry that writes these sectors of the file: their offsets, and their contents.
pub(super) fn encode(facts: &EntryFacts, changes: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let described = (HEADER_BYTES + changes.len() * DESCRIPTOR_BYTES).next_multiple_of(SECTOR_BYTES as usize);
    let mut bytes = vec![0; described + changes.len() * SECTOR_BYTES as usize];
    let len = bytes.len() as u32;
    put(&mut bytes, 0, ENTRY_SIGNATURE);
    put(&mut bytes, 8, &len.to_le_bytes());
    put(&mut bytes, 12, &(facts.tail_sector * SECTOR_BYTES as u32).to_le_bytes());
    put(&mut bytes, 16, &facts.sequence.to_le_bytes());
    put(&mut bytes, 24, &(changes.len() as u32).to_le_bytes());
    put(&mut bytes, 32, facts.guid.bytes());
    put(&mut bytes, 48, &facts.flushed_file_bytes.to_le_bytes());
    put(&mut bytes, 56, &facts.last_file_bytes.to_le_bytes());
    for (number, (offset, content)) in changes.iter().enumerate() {
        debug_assert_eq!(content.len(), SECTOR_BYTES as usize);
        let at = HEADER_BYTES + number * DESCRIPTOR_BYTES;
        put(&mut bytes, at, DESCRIPTOR_SIGNATURE);
        put(&mut bytes, at + 4, &content[TRAILING_AT..]);
        put(&mut bytes, at + 8, &content[..LEADING_BYTES]);
        put(&mut bytes, at + 16, &offset.to_le_bytes());
        put(&mut bytes, at + 24, &facts.sequence.to_le_bytes());
        let sector = &mut bytes[described + number * SECTOR_BYTES as usize..][..SECTOR_BYTES as usize];
        sector.copy_from_slice(content);
        put(sector, 0, DATA_SIGNATURE);
        put(sector, 4, &((facts.sequence >> 32) as u32).to_le_bytes());
        put(sector, TRAILING_AT, &(facts.sequence as u32).to_le_bytes());
    }
    seal(&mut bytes, CHECKSUM_AT);
    bytes
}
