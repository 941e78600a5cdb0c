//! The region table (MS-VHDX 2.2.3) in two copies: where the BAT and the metadata are.

use super::HEADER_SECTION_BYTES;
use crate::{
    error::{Structure, VhdxError},
    extents::Extents,
    file::{ImageFile, Medium},
    guid::Guid,
    wire::{KIB, MIB, checksum, put, seal, u32_at, u64_at},
};
use std::collections::HashSet;

/// Where the copies are.
pub(crate) const OFFSETS: [u64; 2] = [192 * KIB, 256 * KIB];
/// Bytes of a copy.
pub(crate) const TABLE_BYTES: u64 = 64 * KIB;
const SIGNATURE: &[u8; 4] = b"regi";
const CHECKSUM_AT: usize = 4;
const ENTRIES_AT: usize = 16;
const ENTRY_BYTES: usize = 32;
const ENTRIES_MAX: u32 = 2047;

const BAT: Guid = Guid::new(0x2DC2_7766, 0xF623, 0x4200, 0x9D64_115E_9BFD_4A08);
const METADATA: Guid = Guid::new(0x8B7C_A206, 0x4790, 0x4B9A, 0xB8FE_575F_050F_886E);

/// A region: whole MiB after the header section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageRegion {
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
}

/// The regions that this program knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionTable {
    pub(crate) bat: ImageRegion,
    pub(crate) metadata: ImageRegion,
}

impl RegionTable {
    /// The bytes of a copy.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; TABLE_BYTES as usize];
        put(&mut bytes, 0, SIGNATURE);
        put(&mut bytes, 8, &2_u32.to_le_bytes());
        for (at, (guid, region)) in [(BAT, self.bat), (METADATA, self.metadata)].into_iter().enumerate() {
            let at = ENTRIES_AT + at * ENTRY_BYTES;
            put(&mut bytes, at, guid.bytes());
            put(&mut bytes, at + 16, &region.offset.to_le_bytes());
            put(&mut bytes, at + 24, &region.bytes.to_le_bytes());
            put(&mut bytes, at + 28, &1_u32.to_le_bytes());
        }
        seal(&mut bytes, CHECKSUM_AT);
        bytes
    }

    /// Reads the first copy that has its checksum. The space of all its regions is taken in `extents`.
    pub(crate) fn read<F: ImageFile>(
        medium: &mut Medium<F>,
        extents: &mut Extents,
    ) -> Result<Self, VhdxError> {
        for offset in OFFSETS {
            let bytes = medium.read_vec(offset, TABLE_BYTES)?;
            if bytes.starts_with(SIGNATURE) && u32_at(&bytes, CHECKSUM_AT) == checksum(&bytes, CHECKSUM_AT) {
                return Self::parse(&bytes, offset, extents);
            }
        }
        let reason = format!("neither this table nor its copy at byte {} has its checksum", OFFSETS[1]);
        Err(VhdxError::damaged(Structure::RegionTable, OFFSETS[0], reason))
    }

    fn parse(bytes: &[u8], offset: u64, extents: &mut Extents) -> Result<Self, VhdxError> {
        let count = u32_at(bytes, 8);
        if count > ENTRIES_MAX {
            let reason = format!("{count} entries; {ENTRIES_MAX} are possible");
            return Err(VhdxError::damaged(Structure::RegionTable, offset + 8, reason));
        }
        let (mut seen, mut bat, mut metadata) = (HashSet::new(), None, None);
        for entry in 0..count as usize {
            let at = ENTRIES_AT + entry * ENTRY_BYTES;
            let place = offset + at as u64;
            let (guid, is_required) = (Guid::at(bytes, at), u32_at(bytes, at + 28) & 1 == 1);
            if !seen.insert(guid) {
                let reason = format!("region {guid} is there twice");
                return Err(VhdxError::damaged(Structure::RegionTable, place, reason));
            }
            let region = ImageRegion { offset: u64_at(bytes, at + 16), bytes: u32_at(bytes, at + 24) };
            region.check(place)?;
            extents.claim(region.offset, u64::from(region.bytes), Structure::RegionTable, place)?;
            match guid {
                BAT => bat = Some(region),
                METADATA => metadata = Some(region),
                _ if is_required => {
                    let feature = format!("it requires region {guid}, which is not known here");
                    return Err(VhdxError::unsupported(Structure::RegionTable, place, feature));
                }
                _ => {}
            }
        }
        let named = |region: Option<ImageRegion>, name: &str| {
            let reason = format!("no entry for the {name} region");
            region.ok_or_else(|| VhdxError::damaged(Structure::RegionTable, offset, reason))
        };
        Ok(Self { bat: named(bat, "BAT")?, metadata: named(metadata, "metadata")? })
    }
}

impl ImageRegion {
    fn check(self, place: u64) -> Result<(), VhdxError> {
        let is_aligned = self.offset.is_multiple_of(MIB) && u64::from(self.bytes).is_multiple_of(MIB);
        if is_aligned && self.offset >= HEADER_SECTION_BYTES && self.bytes > 0 {
            return Ok(());
        }
        let reason = format!(
            "a region of {} bytes at {} is not whole MiB after the first one",
            self.bytes, self.offset
        );
        Err(VhdxError::damaged(Structure::RegionTable, place + 16, reason))
    }
}
