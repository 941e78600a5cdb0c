//! Files and block devices: opened, measured, and worked on by blocking calls (which drivers keep off their thread).

use crate::FileOptions;
use rustix::fs::FlockOperation;
use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
    path::Path,
};

/// `_IO(0x12, 127)` and `_IOR(0x12, 114, size_t)` of include/uapi/linux/fs.h.
const BLKZEROOUT: libc::c_ulong = 0x127F;
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;

/// What kind of object a path opened as: deallocation differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Regular,
    Block,
}

/// Opens `path` and extends it where the options ask for that.
pub(crate) fn open(path: &Path, options: &FileOptions) -> io::Result<(File, FileKind)> {
    let mut open = OpenOptions::new();
    open.read(options.read).write(options.write);
    if options.create {
        open.create(!options.exclusive).create_new(options.exclusive);
    }
    open.custom_flags(if options.direct { libc::O_DIRECT } else { 0 });
    let file = open.open(path)?;
    if options.lock {
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    }
    let kind = file.metadata()?.file_type();
    if kind.is_block_device() {
        return Ok((file, FileKind::Block));
    }
    if !kind.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file or block device"));
    }
    if let Some(size_bytes) = options.size_bytes.filter(|_| options.write)
        && file.metadata()?.len() < size_bytes
    {
        file.set_len(size_bytes)?;
        // A disk that is used from now on must be found again after a power cut: the name is the folder's content.
        file.sync_all()?;
        sync_folder_of(path)?;
    }
    Ok((file, FileKind::Regular))
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder)?.sync_all() {
        // Some network file systems keep folders in order by themselves and know no such call.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        result => result,
    }
}

/// Size in bytes.
pub(crate) fn size_bytes(file: &File, kind: FileKind) -> io::Result<u64> {
    if kind == FileKind::Regular {
        return Ok(file.metadata()?.len());
    }
    let mut size: u64 = 0;
    // SAFETY: BLKGETSIZE64 writes one u64.
    check(unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &raw mut size) })?;
    Ok(size)
}

/// Deallocates a range so that it reads as zeros; where the device cannot, it is overwritten with zeros.
pub(crate) fn discard(file: &File, kind: FileKind, offset: u64, len: u64) -> io::Result<()> {
    match kind {
        FileKind::Regular => {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: no memory is passed.
            check(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, len as i64) })
        }
        FileKind::Block => {
            let range = [offset, len];
            // SAFETY: BLKZEROOUT reads two u64. (BLKDISCARD would not promise zeros; this deallocates where the
            // device yields zeros for it, and writes zeros elsewhere.)
            check(unsafe { libc::ioctl(file.as_raw_fd(), BLKZEROOUT, range.as_ptr()) })
        }
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
