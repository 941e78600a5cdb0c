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
use std::ops::Range;

const LOG_OFFSET: u64 = HEADER_SECTION_BYTES;
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

/// An image that is being made. Until [`NewImage::finish`] returns, the file is no image: a power cut leaves
/// [`VhdxError::Foreign`] or a complete image.
#[derive(Debug)]
pub struct NewImage<F> {
    medium: Medium<F>,
    metadata: Metadata,
    metadata_region: ImageRegion,
    bat_region: ImageRegion,
    blocks: Range<u64>,
    guids: GuidSource,
}

impl<F: ImageFile> NewImage<F> {
    /// Removes what the file held before, gives it its length, and makes zeros of everything before the blocks.
    pub fn begin(file: F, options: &CreateOptions, mut guids: GuidSource) -> Result<Self, VhdxError> {
        let geometry = ImageGeometry::new(
            options.size_bytes,
            options.block_bytes,
            options.logical_sector_bytes,
            PHYSICAL_SECTOR_BYTES,
        )
        .map_err(VhdxError::Options)?;
        let is_fixed = options.preallocation != Preallocation::Off;
        let metadata_region =
            ImageRegion { offset: LOG_OFFSET + u64::from(LOG_BYTES), bytes: METADATA_BYTES };
        let bat_region = ImageRegion {
            offset: metadata_region.offset + u64::from(METADATA_BYTES),
            bytes: geometry.bat_region_bytes() as u32,
        };
        let blocks_at = bat_region.offset + u64::from(bat_region.bytes);
        let blocks_bytes = if is_fixed { geometry.blocks() * u64::from(geometry.block_bytes) } else { 0 };
        let blocks = blocks_at..blocks_at + blocks_bytes;

        let mut medium = Medium::new(file)?;
        // First of all, an older image ends: parts of both must not be taken for one.
        if medium.length()? >= SECTOR_BYTES {
            medium.write_zeros(0..SECTOR_BYTES)?;
            medium.flush()?;
        }
        medium.empty()?;
        medium.grow(blocks.end)?;
        medium.zero(0..blocks.start)?;
        let metadata = Metadata { geometry, is_fixed, disk_id: guids.draw() };
        Ok(Self { medium, metadata, metadata_region, bat_region, blocks, guids })
    }

    /// Where the blocks of a fixed image are in the file, in ascending order; empty for a dynamic one. Bytes that the file
    /// held before may still be there: the caller makes them zeros before [`NewImage::finish`].
    pub fn blocks(&self) -> Range<u64> {
        self.blocks.clone()
    }

    /// Writes the structures of the image, its identifier last.
    pub fn finish(self) -> Result<VhdxImage<F>, VhdxError> {
        let Self { mut medium, metadata, metadata_region, bat_region, blocks, mut guids } = self;
        let geometry = metadata.geometry;
        medium.write(metadata_region.offset, &metadata.bytes())?;
        let mut bat = Bat::new(geometry, bat_region);
        if metadata.is_fixed {
            for block in 0..geometry.blocks() {
                bat.set_present(block, blocks.start + block * u64::from(geometry.block_bytes));
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
            log_offset: LOG_OFFSET,
            log_bytes: LOG_BYTES,
        };
        let headers = Headers::create(&mut medium, &first)?;
        medium.flush()?;
        medium.write(0, &identifier::new())?;
        medium.flush()?;
        let (end, state) = (blocks.end, WriteState::Clean);
        Ok(VhdxImage { medium, metadata, headers, bat, end, guids, log: None, state })
    }
}

impl<F: ImageFile> VhdxImage<F> {
    /// Makes an image of zeros. What the file held before is lost. Until the end, the file is no image: a power cut
    /// leaves [`VhdxError::Foreign`] or a complete image.
    pub fn create(file: F, options: &CreateOptions, guids: GuidSource) -> Result<Self, VhdxError> {
        let mut new = NewImage::begin(file, options, guids)?;
        let blocks = new.blocks();
        match options.preallocation {
            Preallocation::Off => {}
            Preallocation::Length => new.medium.zero(blocks)?,
            Preallocation::Full => new.medium.write_zeros(blocks)?,
        }
        new.finish()
    }
}
