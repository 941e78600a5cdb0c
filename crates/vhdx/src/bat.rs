//! The block allocation table (MS-VHDX 2.5): where each block of the virtual disk is in the file.

use crate::{
    error::{Structure, VhdxError},
    extents::Extents,
    file::{ImageFile, Medium},
    format::{SECTOR_BYTES, regions::ImageRegion},
    geometry::ImageGeometry,
    wire::{MIB, u64_at},
};
use std::collections::BTreeSet;

const PAGE_ENTRIES: usize = (SECTOR_BYTES / 8) as usize;
/// Fields of an entry.
const STATE_MASK: u64 = 0x7;
const RESERVED_MASK: u64 = 0xf_fff8;
/// States (MS-VHDX 2.5.1.1).
const NOT_PRESENT: u64 = 0;
const UNDEFINED: u64 = 1;
const ZERO: u64 = 2;
const UNMAPPED: u64 = 3;
const FULLY_PRESENT: u64 = 6;
const PARTIALLY_PRESENT: u64 = 7;

type Page = [u64; PAGE_ENTRIES];

/// What an entry says about its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockPlace {
    /// The block reads as zeros and has no space.
    Absent,
    /// The block reads as zeros, and this is its space in the file.
    Kept(u64),
    /// The block is at this offset of the file.
    Present(u64),
}

/// The table in memory. Pages of zeros take none, so a sparse file of a large disk does not either.
#[derive(Debug)]
pub(crate) struct Bat {
    geometry: ImageGeometry,
    offset: u64,
    pages: Vec<Option<Box<Page>>>,
    /// Pages that differ from the file.
    dirty: BTreeSet<usize>,
    present: u64,
}

impl Bat {
    /// The table of a new image: no block is allocated.
    pub(crate) fn new(geometry: ImageGeometry, region: ImageRegion) -> Self {
        let pages = (geometry.bat_bytes() / SECTOR_BYTES) as usize;
        Self { geometry, offset: region.offset, pages: vec![None; pages], dirty: BTreeSet::new(), present: 0 }
    }

    /// Reads and checks all entries. The space of their blocks is taken in `extents`.
    pub(crate) fn read<F: ImageFile>(
        medium: &mut Medium<F>,
        geometry: ImageGeometry,
        region: ImageRegion,
        extents: &mut Extents,
    ) -> Result<Self, VhdxError> {
        if geometry.bat_bytes() > u64::from(region.bytes) {
            let reason = format!(
                "its region has {} bytes; {} entries are needed",
                region.bytes,
                geometry.bat_entries()
            );
            return Err(VhdxError::damaged(Structure::Bat, region.offset, reason));
        }
        let mut bat = Self::new(geometry, region);
        let mut done = 0;
        while done < geometry.bat_bytes() {
            let piece = medium.read_vec(region.offset + done, (geometry.bat_bytes() - done).min(MIB))?;
            for (at, bytes) in piece.chunks_exact(SECTOR_BYTES as usize).enumerate() {
                bat.read_page((done / SECTOR_BYTES) as usize + at, bytes, extents)?;
            }
            done += piece.len() as u64;
        }
        Ok(bat)
    }

    fn read_page(&mut self, page: usize, bytes: &[u8], extents: &mut Extents) -> Result<(), VhdxError> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let mut entries = Box::new([0; PAGE_ENTRIES]);
        for (at, entry) in entries.iter_mut().enumerate() {
            *entry = u64_at(bytes, at * 8);
            let index = (page * PAGE_ENTRIES + at) as u64;
            if index < self.geometry.bat_entries() {
                self.check(index, *entry, extents)?;
            }
        }
        self.pages[page] = Some(entries);
        Ok(())
    }

    fn check(&mut self, index: u64, entry: u64, extents: &mut Extents) -> Result<(), VhdxError> {
        let place = self.offset + index * 8;
        let damaged = |reason: String| Err(VhdxError::damaged(Structure::Bat, place, reason));
        if entry & RESERVED_MASK != 0 {
            return damaged(format!("reserved bits of the entry are set: {entry:#x}"));
        }
        let state = entry & STATE_MASK;
        if self.geometry.is_bitmap_entry(index) {
            if state != NOT_PRESENT {
                return damaged(format!(
                    "state {state} of a sector bitmap block in an image without a parent"
                ));
            }
            return Ok(());
        }
        match state {
            NOT_PRESENT | UNDEFINED | ZERO | UNMAPPED | FULLY_PRESENT => {}
            PARTIALLY_PRESENT => {
                return damaged("a partially present block in an image without a parent".to_owned());
            }
            _ => return damaged(format!("state {state} is not defined")),
        }
        let block_bytes = u64::from(self.geometry.block_bytes);
        match place_of(entry) {
            BlockPlace::Absent => Ok(()),
            BlockPlace::Kept(offset) => extents.claim(offset, block_bytes, Structure::Bat, place),
            BlockPlace::Present(offset) => {
                self.present += 1;
                extents.claim(offset, block_bytes, Structure::Bat, place)
            }
        }
    }

    /// Where a block is.
    pub(crate) fn place(&self, block: u64) -> BlockPlace {
        let (page, at) = self.position(block);
        self.pages[page].as_ref().map_or(BlockPlace::Absent, |entries| place_of(entries[at]))
    }

    /// The block is at this offset of the file, a whole number of MiB, from now on.
    pub(crate) fn set_present(&mut self, block: u64, offset: u64) {
        debug_assert!(offset.is_multiple_of(MIB) && !matches!(self.place(block), BlockPlace::Present(_)));
        let (page, at) = self.position(block);
        self.pages[page].get_or_insert_with(|| Box::new([0; PAGE_ENTRIES]))[at] = offset | FULLY_PRESENT;
        self.dirty.insert(page);
        self.present += 1;
    }

    fn position(&self, block: u64) -> (usize, usize) {
        let index = self.geometry.bat_index(block) as usize;
        (index / PAGE_ENTRIES, index % PAGE_ENTRIES)
    }

    /// Number of blocks that are in the file.
    pub(crate) fn present(&self) -> u64 {
        self.present
    }

    /// Number of pages that differ from the file.
    pub(crate) fn dirty_pages(&self) -> usize {
        self.dirty.len()
    }

    /// The pages that differ from the file: their offsets in it, and their bytes.
    pub(crate) fn changes(&self) -> Vec<(u64, Vec<u8>)> {
        let bytes = |page: usize| match &self.pages[page] {
            Some(entries) => entries.iter().flat_map(|entry| entry.to_le_bytes()).collect(),
            None => vec![0; SECTOR_BYTES as usize],
        };
        self.dirty.iter().map(|&page| (self.offset + page as u64 * SECTOR_BYTES, bytes(page))).collect()
    }

    /// The file has the changes.
    pub(crate) fn set_clean(&mut self) {
        self.dirty.clear();
    }
}

/// An entry's low 20 bits are its state and zeros; the others are its offset in MiB.
fn place_of(entry: u64) -> BlockPlace {
    let offset = entry & !(MIB - 1);
    match entry & STATE_MASK {
        FULLY_PRESENT => BlockPlace::Present(offset),
        UNDEFINED | UNMAPPED if offset != 0 => BlockPlace::Kept(offset),
        // The offset of the other states is reserved.
        _ => BlockPlace::Absent,
    }
}
