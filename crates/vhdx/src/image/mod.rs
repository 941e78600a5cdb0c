//! A virtual disk in an image. Open this file first.
//!
//! - `create.rs`: new images.
//! - `open.rs`: existing ones, with their checks and the replay of the log.
//! - `blocks.rs`: reads, writes, and the allocation of blocks.
//! - `commit.rs`: how changes become durable.

mod blocks;
mod commit;
mod create;
mod open;

pub use blocks::FileExtent;
pub use create::{CreateOptions, NewImage, Preallocation};
pub use open::OpenMode;

use crate::{
    bat::Bat,
    file::{ImageFile, Medium},
    format::{header::Headers, metadata::Metadata},
    guid::{Guid, GuidSource},
    log::LogWriter,
};

/// An open image.
///
/// Writes are durable after [`VhdxImage::flush`], or after [`VhdxImage::close`]. A power cut before may lose them, as
/// it may with a disk that has a write cache. An image that is dropped without [`VhdxImage::close`] is like one after a
/// power cut: the next open replays its log.
#[derive(Debug)]
pub struct VhdxImage<F> {
    medium: Medium<F>,
    metadata: Metadata,
    headers: Headers,
    bat: Bat,
    /// The end of the last structure: new blocks are put here.
    end: u64,
    guids: GuidSource,
    log: Option<LogWriter>,
    state: WriteState,
}

/// What the image may do, and what this session has told its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteState {
    /// Only reads.
    ReadOnly,
    /// Nothing of the virtual disk was written.
    Clean,
    /// The headers say that the disk is being written.
    Written,
    /// A flush or a change of the structures failed: what is durable is not known.
    Failed,
}

impl<F: ImageFile> VhdxImage<F> {
    /// Size of the virtual disk in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.metadata.geometry.size_bytes
    }

    /// Size of a block in bytes.
    pub fn block_bytes(&self) -> u32 {
        self.metadata.geometry.block_bytes
    }

    /// Smallest unit of reads and writes in bytes: 512 or 4096.
    pub fn logical_sector_bytes(&self) -> u32 {
        self.metadata.geometry.logical_sector_bytes
    }

    /// Size of the disk's physical sectors in bytes: 512 or 4096.
    pub fn physical_sector_bytes(&self) -> u32 {
        self.metadata.geometry.physical_sector_bytes
    }

    /// Whether all blocks stay allocated.
    pub fn is_fixed(&self) -> bool {
        self.metadata.is_fixed
    }

    /// The identifier of the virtual disk (SCSI VPD page 83h).
    pub fn disk_id(&self) -> Guid {
        self.metadata.disk_id
    }

    /// Number of blocks that are in the file.
    pub fn allocated_blocks(&self) -> u64 {
        self.bat.present()
    }
}
