//! Reads and writes, block by block, and the allocation of blocks.

use super::{VhdxImage, WriteState};
use crate::{bat::BlockPlace, error::VhdxError, file::ImageFile, log::ENTRY_PAGES_MAX};

impl<F: ImageFile> VhdxImage<F> {
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
                BlockPlace::Kept(place) => self.allocate(block, place, within, now)?,
                BlockPlace::Absent => self.allocate(block, self.end, within, now)?,
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

    /// Gives a block the space at `place`, with `data` at `within` and zeros elsewhere.
    fn allocate(&mut self, block: u64, place: u64, within: u64, data: &[u8]) -> Result<(), VhdxError> {
        if self.bat.dirty_pages() == ENTRY_PAGES_MAX {
            self.flush()?;
        }
        let end = place + u64::from(self.block_bytes());
        let (from, to) = (place + within, place + within + data.len() as u64);
        self.medium.grow(end)?;
        self.medium.zero(place..from)?;
        self.medium.zero(to..end)?;
        self.medium.write(from, data)?;
        self.bat.set_present(block, place);
        self.end = self.end.max(end);
        Ok(())
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
