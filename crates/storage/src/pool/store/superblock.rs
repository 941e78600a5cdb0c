//! The layout of a pool's disk: superblock and metadata at both ends, pages in between.

use super::{BLOCK_BYTES, seal, unseal};
use crate::{
    disk::{Disk, DiskError},
    pool::PoolError,
};
use bytes::BytesMut;

const MAGIC: [u8; 8] = *b"LNRTPOOL";
const VERSION: u64 = 1;
/// Space for one page in the database: at most 80 bytes in a half-full tree, twice for copy on write, twice for growth.
const METADATA_BYTES_PER_PAGE: u64 = 320;
const MIN_METADATA_BYTES: u64 = 4 << 20;

/// The division of a pool's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "units end a name")]
pub(crate) struct Layout {
    pub(crate) disk_bytes: u64,
    pub(crate) page_bytes: u64,
    /// Size of each of the two copies, with its head.
    pub(crate) metadata_bytes: u64,
}

/// The contents of the two places for superblocks.
pub(crate) enum Superblocks {
    /// No part of a pool.
    None,
    /// At least one is valid.
    Found { layout: Layout, both: bool },
}

impl Layout {
    /// Divides a disk. Error: too small for a pool of at least one page.
    pub(crate) fn new(disk_bytes: u64, page_bytes: u64) -> Result<Self, PoolError> {
        let disk_bytes = disk_bytes / BLOCK_BYTES * BLOCK_BYTES;
        let wanted =
            (disk_bytes / page_bytes).saturating_mul(METADATA_BYTES_PER_PAGE).next_multiple_of(BLOCK_BYTES);
        let metadata_bytes = wanted.max(MIN_METADATA_BYTES) + BLOCK_BYTES;
        let layout = Self { disk_bytes, page_bytes, metadata_bytes };
        if layout.pages() == 0 {
            let needed_bytes = 2 * (BLOCK_BYTES + metadata_bytes) + 2 * page_bytes;
            return Err(PoolError::TooSmall { disk_bytes, needed_bytes });
        }
        Ok(layout)
    }

    pub(crate) fn superblocks(&self) -> [u64; 2] {
        [0, self.disk_bytes - BLOCK_BYTES]
    }

    pub(crate) fn metadata(&self) -> [u64; 2] {
        [BLOCK_BYTES, self.disk_bytes.saturating_sub(BLOCK_BYTES + self.metadata_bytes)]
    }

    /// Largest size of the database's file.
    pub(crate) fn max_file_bytes(&self) -> u64 {
        self.metadata_bytes - BLOCK_BYTES
    }

    /// Pages begin at multiples of their size, so that they fit the stripes below.
    pub(crate) fn first_page(&self) -> u64 {
        (BLOCK_BYTES + self.metadata_bytes).next_multiple_of(self.page_bytes)
    }

    pub(crate) fn pages(&self) -> u32 {
        let room = self.metadata()[1].saturating_sub(self.first_page());
        // The highest numbers have other meanings in a leaf.
        u32::try_from(room / self.page_bytes).unwrap_or(u32::MAX).min(u32::MAX - 2)
    }

    pub(crate) fn page_offset(&self, page: u32) -> u64 {
        self.first_page() + u64::from(page) * self.page_bytes
    }

    /// Writes both superblocks, the one at the end first: the pool exists as soon as the one at the beginning is
    /// written.
    pub(crate) async fn store(&self, disk: &dyn Disk) -> Result<(), DiskError> {
        let words = [VERSION, self.disk_bytes, self.page_bytes, self.metadata_bytes];
        let block = seal(MAGIC, words.map(u64::to_le_bytes).as_flattened());
        let [near, far] = self.superblocks();
        disk.write(far, block.clone(), true).await?;
        disk.write(near, block, true).await
    }

    /// Reserves the space of everything except pages.
    pub(crate) async fn reserve(&self, disk: &dyn Disk) -> Result<(), DiskError> {
        if !disk.is_thin() {
            return Ok(());
        }
        let len = BLOCK_BYTES + self.metadata_bytes;
        disk.reserve(0, len).await?;
        disk.reserve(self.metadata()[1], len).await
    }

    /// Removes a former pool.
    pub(crate) async fn wipe(&self, disk: &dyn Disk) -> Result<(), DiskError> {
        for offset in self.superblocks() {
            disk.write(offset, BytesMut::zeroed(BLOCK_BYTES as usize).freeze(), true).await?;
        }
        Ok(())
    }

    /// Reads the superblocks. Errors: none is valid, but parts of a pool were found; or they do not fit the disk.
    pub(crate) async fn find(disk: &dyn Disk) -> Result<Superblocks, PoolError> {
        let corrupt = |reason: &str| {
            PoolError::Disk(DiskError::Corrupt { name: disk.name().to_owned(), reason: reason.to_owned() })
        };
        let disk_bytes = disk.size_bytes() / BLOCK_BYTES * BLOCK_BYTES;
        if disk_bytes < 2 * BLOCK_BYTES {
            return Ok(Superblocks::None);
        }
        let (mut found, mut is_damaged) = (Vec::new(), false);
        for offset in [0, disk_bytes - BLOCK_BYTES] {
            match disk.read(offset, BytesMut::zeroed(BLOCK_BYTES as usize)).await {
                Ok(block) => match unseal(MAGIC, &block).and_then(Self::parse) {
                    Some(layout) => found.push(layout),
                    None => is_damaged |= block.starts_with(&MAGIC),
                },
                Err(DiskError::Unreadable { .. }) => is_damaged = true,
                Err(error) => return Err(error.into()),
            }
        }
        let Some(layout) = found.first().copied() else {
            if is_damaged {
                return Err(corrupt("both superblocks of the pool are damaged"));
            }
            return Ok(Superblocks::None);
        };
        if layout.disk_bytes != disk_bytes {
            return Err(corrupt("the pool was made on a disk of another size"));
        }
        Ok(Superblocks::Found { layout, both: found.len() == 2 })
    }

    fn parse(body: &[u8]) -> Option<Self> {
        let mut words =
            body.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        let (version, disk_bytes) = (words.next()?, words.next()?);
        let layout = Self { disk_bytes, page_bytes: words.next()?, metadata_bytes: words.next()? };
        let is_sound =
            version == VERSION && Self::new(disk_bytes, layout.page_bytes.max(1)).ok() == Some(layout);
        is_sound.then_some(layout)
    }
}
