//! Where the files and folders of a structure are: the calls that a thread makes, and waits for. Open this file first.
//!
//! `host.rs`: the operating system of this host.

mod host;

pub(super) use host::HostFiles;

use linerate_io::blocking::{BlockingMode, EntryKind};
use std::{fmt, io, path::Path};

/// The calls of one thread. Each returns when it is done.
pub(super) trait FileSystem: fmt::Debug + Send {
    /// Opens a file; a symbolic link is refused.
    fn open(&self, path: &Path, mode: BlockingMode) -> io::Result<Box<dyn OpenedFile>>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Makes one folder; its parent exists.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Makes a folder and its parents, as far as they are missing.
    fn make_folders(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// What a path is; None: nothing is there. A link is not followed.
    fn entry(&self, path: &Path) -> io::Result<Option<EntryKind>>;

    /// The names in a folder, each with what it is.
    fn names(&self, folder: &Path) -> io::Result<Vec<(String, EntryKind)>>;

    /// Whether the file may be read.
    fn may_read(&self, path: &Path) -> io::Result<()>;

    /// Sets the time of the last change, in seconds since 1970.
    fn set_modified(&self, path: &Path, unix_s: i64) -> io::Result<()>;
}

/// An open file.
pub(super) trait OpenedFile: fmt::Debug {
    /// Fills the buffer from `offset`. Returns the number of bytes before the end of the file.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of the buffer at `offset`.
    fn write_at(&mut self, buffer: &[u8], offset: u64) -> io::Result<()>;

    /// Closes it.
    fn close(self: Box<Self>) -> io::Result<()>;
}
