//! The calls that an image makes to its file: what a virtual disk in an image costs the file below it.

use crate::file::ImageFile;
use std::io;

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileCall {
    /// A read of so many bytes.
    Read {
        /// First byte.
        offset: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// A write of so many bytes.
    Write {
        /// First byte.
        offset: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// A flush.
    Flush,
    /// A change of the length.
    SetLength {
        /// The new length in bytes.
        bytes: u64,
    },
}

/// A file that passes each call to `each` before it is made.
#[derive(Debug)]
pub struct TracedFile<F, C> {
    file: F,
    each: C,
}

impl<F: ImageFile, C: FnMut(FileCall)> TracedFile<F, C> {
    /// Around a file.
    pub fn new(file: F, each: C) -> Self {
        Self { file, each }
    }
}

impl<F: ImageFile, C: FnMut(FileCall)> ImageFile for TracedFile<F, C> {
    fn length(&mut self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        (self.each)(FileCall::Read { offset, bytes: into.len() as u64 });
        self.file.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        (self.each)(FileCall::Write { offset, bytes: data.len() as u64 });
        self.file.write_at(offset, data)
    }

    fn flush(&mut self) -> io::Result<()> {
        (self.each)(FileCall::Flush);
        self.file.flush()
    }

    fn set_length(&mut self, length_bytes: u64) -> io::Result<()> {
        (self.each)(FileCall::SetLength { bytes: length_bytes });
        self.file.set_length(length_bytes)
    }

    fn grows_with_zeros(&self) -> bool {
        self.file.grows_with_zeros()
    }
}
