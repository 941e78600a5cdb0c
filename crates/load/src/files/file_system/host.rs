//! Files of this host, by calls of its operating system.

use super::{FileSystem, OpenedFile};
use linerate_io::blocking::{self, BlockingFile, BlockingMode, EntryKind};
use std::{io, path::Path};

/// See the module text.
#[derive(Debug)]
pub(super) struct HostFiles;

impl FileSystem for HostFiles {
    fn open(&self, path: &Path, mode: BlockingMode) -> io::Result<Box<dyn OpenedFile>> {
        Ok(Box::new(BlockingFile::open(path, mode)?))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        blocking::remove_file(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        blocking::make_folder(path)
    }

    fn make_folders(&self, path: &Path) -> io::Result<()> {
        blocking::make_folders(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        blocking::remove_folder(path)
    }

    fn entry(&self, path: &Path) -> io::Result<Option<EntryKind>> {
        blocking::entry(path)
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<(String, EntryKind)>> {
        blocking::names(folder)
    }

    fn may_read(&self, path: &Path) -> io::Result<()> {
        blocking::may_read(path)
    }

    fn set_modified(&self, path: &Path, unix_s: i64) -> io::Result<()> {
        blocking::set_modified(path, unix_s)
    }
}

impl OpenedFile for BlockingFile {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        BlockingFile::read_at(self, buffer, offset)
    }

    fn write_at(&mut self, buffer: &[u8], offset: u64) -> io::Result<()> {
        BlockingFile::write_at(self, buffer, offset)
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        drop(self);
        Ok(())
    }
}
