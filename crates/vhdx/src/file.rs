//! What an image is stored on: a file, a share, or a LUN.

use crate::{error::VhdxError, wire::MIB};
use std::{fs, io, ops::Range, os::unix::fs::FileExt};

/// Bytes that are read, written, and made durable at an offset.
///
/// A power cut may lose or tear, sector by sector, everything since the last [`ImageFile::flush`].
pub trait ImageFile {
    /// Length in bytes. For a LUN: its capacity.
    fn length(&mut self) -> io::Result<u64>;
    /// Fills all of `into` from `offset`.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// Writes all of `data` at `offset`, below the length.
    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Makes everything durable that was written before, and the length.
    fn flush(&mut self) -> io::Result<()>;
    /// Changes the length. A LUN keeps its capacity, and refuses a length above it
    /// ([`io::ErrorKind::StorageFull`]).
    fn set_length(&mut self, length_bytes: u64) -> io::Result<()>;
    /// Whether bytes that [`ImageFile::set_length`] adds are zeros. A LUN holds old data there.
    fn grows_with_zeros(&self) -> bool {
        true
    }
}

impl<F: ImageFile + ?Sized> ImageFile for &mut F {
    fn length(&mut self) -> io::Result<u64> {
        (**self).length()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        (**self).write_at(offset, data)
    }

    fn flush(&mut self) -> io::Result<()> {
        (**self).flush()
    }

    fn set_length(&mut self, length_bytes: u64) -> io::Result<()> {
        (**self).set_length(length_bytes)
    }

    fn grows_with_zeros(&self) -> bool {
        (**self).grows_with_zeros()
    }
}

impl ImageFile for fs::File {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_length(&mut self, length_bytes: u64) -> io::Result<()> {
        self.set_len(length_bytes)
    }
}

/// The file of an image, with the errors of an image.
#[derive(Debug)]
pub(crate) struct Medium<F> {
    file: F,
    /// Bytes from here on are zeros: they were added by this program, and not written since.
    untouched_from: u64,
}

impl<F: ImageFile> Medium<F> {
    pub(crate) fn new(mut file: F) -> Result<Self, VhdxError> {
        let length = file.length().map_err(failed("read", 0))?;
        let untouched_from = if file.grows_with_zeros() { length } else { u64::MAX };
        Ok(Self { file, untouched_from })
    }

    pub(crate) fn into_inner(self) -> F {
        self.file
    }

    pub(crate) fn length(&mut self) -> Result<u64, VhdxError> {
        self.file.length().map_err(failed("read", 0))
    }

    pub(crate) fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), VhdxError> {
        self.file.read_at(offset, into).map_err(failed("read", offset))
    }

    /// Reads `len` bytes.
    pub(crate) fn read_vec(&mut self, offset: u64, len: u64) -> Result<Vec<u8>, VhdxError> {
        let mut bytes = vec![0; len as usize];
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), VhdxError> {
        // Also if it fails: some of it may have been written.
        self.touch(offset + data.len() as u64);
        self.file.write_at(offset, data).map_err(failed("write", offset))
    }

    /// Bytes before `end` are no longer known to be zeros.
    pub(crate) fn touch(&mut self, end: u64) {
        if self.untouched_from != u64::MAX {
            self.untouched_from = self.untouched_from.max(end);
        }
    }

    pub(crate) fn flush(&mut self) -> Result<(), VhdxError> {
        let length = self.length()?;
        self.file.flush().map_err(failed("flush", length))
    }

    /// Grows to at least `length` bytes.
    pub(crate) fn grow(&mut self, length: u64) -> Result<(), VhdxError> {
        let now = self.length()?;
        if now < length {
            self.file.set_length(length).map_err(failed("grow", now))?;
        }
        Ok(())
    }

    /// Removes what the file holds; a LUN keeps it.
    pub(crate) fn empty(&mut self) -> Result<(), VhdxError> {
        self.file.set_length(0).map_err(failed("grow", 0))?;
        if self.file.grows_with_zeros() {
            self.untouched_from = self.length()?;
        }
        Ok(())
    }

    /// Makes the range zeros. Bytes that are known to be zeros are not written.
    pub(crate) fn zero(&mut self, range: Range<u64>) -> Result<(), VhdxError> {
        let end = range.end.min(self.untouched_from);
        self.write_zeros(range.start..end.max(range.start))
    }

    /// Writes zeros to all of the range, in pieces of a MiB.
    pub(crate) fn write_zeros(&mut self, range: Range<u64>) -> Result<(), VhdxError> {
        let zeros = vec![0; (range.end - range.start).min(MIB) as usize];
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(MIB);
            self.write(at, &zeros[..len as usize])?;
            at += len;
        }
        Ok(())
    }
}

fn failed(action: &'static str, offset_bytes: u64) -> impl FnOnce(io::Error) -> VhdxError {
    move |source| VhdxError::File { action, offset_bytes, source }
}
