//! New images: header section, log, metadata, BAT, blocks, in this order.

use super::{VhdxImage, WriteState};
use crate::{
    bat::Bat,
    error::VhdxError,
    file::{ImageFile, Medium},
    format::{
        HEADER_SECTION_BYTES, SECTOR_BYTES,
        header::{FileHeader, Headers},
        identifier,
        metadata::Metadata,
        regions::{self, ImageRegion, RegionTable},
    },
    geometry::ImageGeometry,
    guid::GuidSource,
    wire::MIB,
};

const LOG_BYTES: u32 = MIB as u32;
const METADATA_BYTES: u32 = MIB as u32;
/// Physical sectors of new images.
const PHYSICAL_SECTOR_BYTES: u32 = 4096;

/// Which blocks a new image has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preallocation {
    /// None: a dynamic image. A block is allocated at its first write.
    Off,
    /// All: a fixed image. The file gets its full length; zeros are written only where old data may be.
    Length,
    /// All: a fixed image, in which zeros are written from the first block to the last one.
    Full,
}

/// A new image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateOptions {
    /// Size of the virtual disk: whole logical sectors, at most 64 TiB.
    pub size_bytes: u64,
    /// A power of two from 1 to 256 MiB.
    pub block_bytes: u32,
    /// 512 or 4096.
    pub logical_sector_bytes: u32,
    /// Which blocks it has.
    pub preallocation: Preallocation,
}

impl CreateOptions {
    /// A dynamic image with blocks of 32 MiB and sectors of 512 bytes.
    pub fn dynamic(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            block_bytes: 32 << 20,
            logical_sector_bytes: 512,
            preallocation: Preallocation::Off,
        }
    }
}

impl<F: ImageFile> VhdxImage<F> {
    /// Makes an image of zeros. What the file held before is lost. Until the end, the file is no image: a power cut
    /// leaves [`VhdxError::Foreign`] or a complete image.
    pub fn create(file: F, options: &CreateOptions, mut guids: GuidSource) -> Result<Self, VhdxError> {
        let geometry = ImageGeometry::new(
            options.size_bytes,
            options.block_bytes,
            options.logical_sector_bytes,
            PHYSICAL_SECTOR_BYTES,
        )
        .map_err(VhdxError::Options)?;
        let is_fixed = options.preallocation != Preallocation::Off;
        let log_offset = HEADER_SECTION_BYTES;
        let metadata_region =
            ImageRegion { offset: log_offset + u64::from(LOG_BYTES), bytes: METADATA_BYTES };
        let bat_region = ImageRegion {
            offset: metadata_region.offset + u64::from(METADATA_BYTES),
            bytes: geometry.bat_region_bytes() as u32,
        };
        let blocks_at = bat_region.offset + u64::from(bat_region.bytes);
        let blocks_end = blocks_at + geometry.blocks() * u64::from(geometry.block_bytes);
        let end = if is_fixed { blocks_end } else { blocks_at };

        let mut medium = Medium::new(file)?;
        // First of all, an older image ends: parts of both must not be taken for one.
        if medium.length()? >= SECTOR_BYTES {
            medium.write_zeros(0..SECTOR_BYTES)?;
            medium.flush()?;
        }
        medium.empty()?;
        medium.grow(end)?;
        medium.zero(0..blocks_at)?;
        match options.preallocation {
            Preallocation::Off => {}
            Preallocation::Length => medium.zero(blocks_at..end)?,
            Preallocation::Full => medium.write_zeros(blocks_at..end)?,
        }
        let metadata = Metadata { geometry, is_fixed, disk_id: guids.draw() };
        medium.write(metadata_region.offset, &metadata.bytes())?;
        let mut bat = Bat::new(geometry, bat_region);
        if is_fixed {
            for block in 0..geometry.blocks() {
                bat.set_present(block, blocks_at + block * u64::from(geometry.block_bytes));
            }
        }
        for (offset, page) in bat.changes() {
            medium.write(offset, &page)?;
        }
        bat.set_clean();
        let table = RegionTable { bat: bat_region, metadata: metadata_region }.bytes();
        for offset in regions::OFFSETS {
            medium.write(offset, &table)?;
        }
        let first = FileHeader {
            sequence: 1,
            file_write: guids.draw(),
            data_write: guids.draw(),
            log: None,
            log_offset,
            log_bytes: LOG_BYTES,
        };
        let headers = Headers::create(&mut medium, &first)?;
        medium.flush()?;
        medium.write(0, &identifier::new())?;
        medium.flush()?;
        Ok(Self { medium, metadata, headers, bat, end, guids, log: None, state: WriteState::Clean })
    }
}
