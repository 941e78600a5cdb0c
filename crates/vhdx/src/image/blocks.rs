//! Reads and writes, block by block, and the allocation of blocks.

use super::{VhdxImage, WriteState};
use crate::{
    bat::BlockPlace,
    error::VhdxError,
    file::{ImageFile, Medium},
    log::ENTRY_PAGES_MAX,
};

/// Where the first bytes of a range of the virtual disk are in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// First byte in the file; None: these bytes are zeros and not in the file.
    pub offset: Option<u64>,
    /// How many bytes are there in a row: at least one, at most the range.
    pub bytes: u64,
}

impl<F: ImageFile> VhdxImage<F> {
    /// Where bytes of the virtual disk are, for a caller that reads the file itself. The range is whole logical sectors
    /// and not empty; the extent ends with it, or with its first block.
    pub fn extent(&self, offset: u64, bytes: u64) -> Result<FileExtent, VhdxError> {
        self.check_range(offset, bytes)?;
        let (block, within, len) = self.piece(offset, bytes as usize);
        let offset = match self.bat.place(block) {
            BlockPlace::Present(place) => Some(place + within),
            BlockPlace::Absent | BlockPlace::Kept(_) => None,
        };
        Ok(FileExtent { offset, bytes: len as u64 })
    }

    /// The same for a caller that writes the file itself; the block is allocated if it is not in the file. The caller must
    /// write all bytes of the extent before the next flush: what they are until then is not known. If it cannot, the image
    /// must not be flushed or closed.
    pub fn allocate_extent(&mut self, offset: u64, bytes: u64) -> Result<FileExtent, VhdxError> {
        self.check_range(offset, bytes)?;
        self.begin_writing()?;
        let (block, within, len) = self.piece(offset, bytes as usize);
        let place = match self.bat.place(block) {
            BlockPlace::Present(place) => place,
            kept => {
                let place = if let BlockPlace::Kept(place) = kept { place } else { self.end };
                self.allocate(block, place, within, len as u64, |_, _| Ok(()))?
            }
        };
        self.medium.touch(place + within + len as u64);
        Ok(FileExtent { offset: Some(place + within), bytes: len as u64 })
    }

    /// Fills `into` from `offset` of the virtual disk: whole logical sectors. Blocks that are not in the file are zeros.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), VhdxError> {
        self.check_range(offset, into.len() as u64)?;
        let (mut at, mut left) = (offset, into);
        while !left.is_empty() {
            let (block, within, len) = self.piece(at, left.len());
            let (now, later) = left.split_at_mut(len);
            match self.bat.place(block) {
                BlockPlace::Present(place) => self.medium.read(place + within, now)?,
                BlockPlace::Absent | BlockPlace::Kept(_) => now.fill(0),
            }
            (at, left) = (at + len as u64, later);
        }
        Ok(())
    }

    /// Writes `data` at `offset` of the virtual disk: whole logical sectors. If it fails, any part may be written.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), VhdxError> {
        self.check_range(offset, data.len() as u64)?;
        if data.is_empty() {
            return Ok(());
        }
        self.begin_writing()?;
        let (mut at, mut left) = (offset, data);
        while !left.is_empty() {
            let (block, within, len) = self.piece(at, left.len());
            let (now, later) = left.split_at(len);
            match self.bat.place(block) {
                BlockPlace::Present(place) => self.medium.write(place + within, now)?,
                kept => {
                    let place = if let BlockPlace::Kept(place) = kept { place } else { self.end };
                    self.allocate(block, place, within, len as u64, |medium, at| medium.write(at, now))?;
                }
            }
            (at, left) = (at + len as u64, later);
        }
        Ok(())
    }

    /// Errors: [`VhdxError::OutOfRange`].
    fn check_range(&self, offset: u64, len: u64) -> Result<(), VhdxError> {
        let (size, sector) = (self.size_bytes(), u64::from(self.logical_sector_bytes()));
        let fits = offset.checked_add(len).is_some_and(|end| end <= size);
        if fits && offset.is_multiple_of(sector) && len.is_multiple_of(sector) {
            return Ok(());
        }
        Err(VhdxError::OutOfRange { offset_bytes: offset, len_bytes: len, size_bytes: size })
    }

    /// The part of a range that is in its first block: the block, the offset in it, and the length.
    fn piece(&self, offset: u64, len: usize) -> (u64, u64, usize) {
        let block_bytes = u64::from(self.block_bytes());
        let within = offset % block_bytes;
        (offset / block_bytes, within, len.min((block_bytes - within) as usize))
    }

    /// Gives a block the space at `place`, with zeros outside the `len` bytes at `within`; `fill` writes those. Returns the
    /// place.
    fn allocate(
        &mut self,
        block: u64,
        place: u64,
        within: u64,
        len: u64,
        fill: impl FnOnce(&mut Medium<F>, u64) -> Result<(), VhdxError>,
    ) -> Result<u64, VhdxError> {
        if self.bat.dirty_pages() == ENTRY_PAGES_MAX {
            self.flush()?;
        }
        let end = place + u64::from(self.block_bytes());
        let (from, to) = (place + within, place + within + len);
        self.medium.grow(end)?;
        self.medium.zero(place..from)?;
        self.medium.zero(to..end)?;
        fill(&mut self.medium, from)?;
        self.bat.set_present(block, place);
        self.end = self.end.max(end);
        Ok(place)
    }

    /// Before the first write of a session the headers say that file and disk change (MS-VHDX 2.2.2).
    fn begin_writing(&mut self) -> Result<(), VhdxError> {
        match self.state {
            WriteState::ReadOnly => Err(VhdxError::ReadOnly),
            WriteState::Failed => Err(VhdxError::Failed),
            WriteState::Written => Ok(()),
            WriteState::Clean => {
                let (file_write, data_write) = (self.guids.draw(), self.guids.draw());
                let updated = self.headers.update(&mut self.medium, |next| {
                    next.file_write = file_write;
                    next.data_write = data_write;
                });
                self.settle(updated)?;
                self.state = WriteState::Written;
                Ok(())
            }
        }
    }
}
