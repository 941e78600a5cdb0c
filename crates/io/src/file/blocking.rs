//! Files and folders by blocking calls of the calling thread: for loads whose threads wait for each operation.

use rustix::fs::{Access, AtFlags, CWD, Timespec, Timestamps, accessat, utimensat};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

/// How a file is opened. It is always readable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockingMode {
    /// Open for writing too.
    pub write: bool,
    /// With `write`: make the file if it does not exist.
    pub create: bool,
    /// `O_DIRECT`: offsets, lengths and memory must be aligned.
    pub direct: bool,
    /// `O_DSYNC`: a write is on stable storage when it returns.
    pub durable: bool,
}

/// What a name in a folder is. Symbolic links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file of so many bytes.
    File(u64),
    /// A folder.
    Folder,
    /// A link, a device, a socket.
    Other,
}

/// An open file. Drop closes it.
#[derive(Debug)]
pub struct BlockingFile(File);

impl BlockingFile {
    /// Opens a regular file; a symbolic link is refused.
    pub fn open(path: &Path, mode: BlockingMode) -> io::Result<Self> {
        let mut flags = libc::O_NOFOLLOW;
        flags |= if mode.direct { libc::O_DIRECT } else { 0 };
        flags |= if mode.durable { libc::O_DSYNC } else { 0 };
        let mut open = OpenOptions::new();
        open.read(true).write(mode.write).create(mode.write && mode.create).custom_flags(flags);
        open.open(path).map(Self)
    }

    /// Fills the buffer from `offset`. Returns the number of bytes before the end of the file.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.0.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Writes all of the buffer at `offset`.
    pub fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(buffer, offset)
    }
}

/// Makes one folder; its parent exists.
pub fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Removes an empty folder.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}

/// Removes a file.
pub fn remove_file(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

/// Makes a folder and its parents, as far as they are missing.
pub fn make_folders(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// What a path is; None: nothing is there. A link is not followed.
pub fn entry(path: &Path) -> io::Result<Option<EntryKind>> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(Some(EntryKind::File(found.size()))),
        Ok(found) if found.is_dir() => Ok(Some(EntryKind::Folder)),
        Ok(_) => Ok(Some(EntryKind::Other)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether this process may read the file (`access(2)`).
pub fn may_read(path: &Path) -> io::Result<()> {
    Ok(accessat(CWD, path, Access::READ_OK, AtFlags::empty())?)
}

/// Sets the time of the last change, in seconds since 1970.
pub fn set_modified(path: &Path, unix_s: i64) -> io::Result<()> {
    let at = Timespec { tv_sec: unix_s, tv_nsec: 0 };
    let times = Timestamps { last_access: at, last_modification: at };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The names in a folder, each with what it is. Names that are not UTF-8 are shown with replacements.
pub fn names(folder: &Path) -> io::Result<Vec<(String, EntryKind)>> {
    let mut found = Vec::new();
    for one in fs::read_dir(folder)? {
        let one = one?;
        let kind = entry(&one.path())?.unwrap_or(EntryKind::Other);
        found.push((one.file_name().to_string_lossy().into_owned(), kind));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_what_was_written_and_a_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("f"), dir.path().join("l"));
        let mode = BlockingMode { write: true, create: true, ..BlockingMode::default() };
        let file = BlockingFile::open(&path, mode).unwrap();
        file.write_at(&[7; 1000], 24).unwrap();
        let mut back = [0; 2000];
        assert_eq!(file.read_at(&mut back, 0).unwrap(), 1024);
        assert_eq!((back[23], back[24], back[1023]), (0, 7, 7));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        BlockingFile::open(&link, mode).unwrap_err();
        assert_eq!(entry(&link).unwrap(), Some(EntryKind::Other));
        set_modified(&path, 1_000_000).unwrap();
        may_read(&path).unwrap();
        let mut found = names(dir.path()).unwrap();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(found, [("f".to_owned(), EntryKind::File(1024)), ("l".to_owned(), EntryKind::Other)]);
    }
}
