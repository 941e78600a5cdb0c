//! Files and block devices: opened, measured, and accessed by blocking calls (drivers run these on other threads).

pub mod blocking;
pub(crate) mod commit;
pub mod space;

use crate::FileOptions;
use rustix::fs::FlockOperation;
use std::{
    fs::{self, File, OpenOptions},
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

/// The kind of an opened object: deallocation differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Space is taken at writes, and returned by discards.
    Regular,
    /// All of its space is allocated, and stays allocated.
    Allocated,
    Block,
}

/// Opens `path`, extends it and allocates its space if the options require it. If a new file cannot be made as
/// required, it is removed.
pub(crate) fn open(path: &Path, options: &FileOptions) -> io::Result<(File, FileKind)> {
    let opened = open_there(path, options)?;
    match prepare(&opened, path, options) {
        Ok(kind) => Ok((opened, kind)),
        Err(error) => {
            if options.create && options.exclusive {
                // The file is useless; the first error says more than a failure to remove it.
                let _ = fs::remove_file(path);
            }
            Err(error)
        }
    }
}

fn open_there(path: &Path, options: &FileOptions) -> io::Result<File> {
    let mut open = OpenOptions::new();
    open.read(options.read).write(options.write);
    if options.create {
        open.create(!options.exclusive).create_new(options.exclusive);
    }
    open.custom_flags(if options.direct { libc::O_DIRECT } else { 0 });
    open.open(path)
}

fn prepare(file: &File, path: &Path, options: &FileOptions) -> io::Result<FileKind> {
    if options.lock {
        let lock = if options.write {
            FlockOperation::NonBlockingLockExclusive
        } else {
            FlockOperation::NonBlockingLockShared
        };
        rustix::fs::flock(file, lock)?;
    }
    let kind = file.metadata()?.file_type();
    if kind.is_block_device() {
        return Ok(FileKind::Block);
    }
    if !kind.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file or block device"));
    }
    if let Some(size_bytes) = options.size_bytes.filter(|_| options.write)
        && file.metadata()?.len() < size_bytes
    {
        file.set_len(size_bytes)?;
        // After a power cut the new disk must be found: its name is in the folder's content.
        file.sync_all()?;
        sync_folder_of(path)?;
    }
    if !options.allocate {
        return Ok(FileKind::Regular);
    }
    let metadata = file.metadata()?;
    let lacks_bytes = metadata.len().saturating_sub(space::allocated_bytes(&metadata));
    if lacks_bytes > 0 {
        // Some file systems would allocate all of their space, and leave none for others, before they report that it is
        // not enough.
        if lacks_bytes > space::free_bytes(file)? {
            return Err(io::ErrorKind::StorageFull.into());
        }
        allocate(file, 0, metadata.len())?;
        file.sync_all()?;
    }
    Ok(FileKind::Allocated)
}

/// Reserves space for writes to a range, without changing its contents. `Unsupported`: the file system cannot.
pub(crate) fn allocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as i64, len as i64) })
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder)?.sync_all() {
        // Some network file systems keep folders durable themselves and have no such call.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        result => result,
    }
}

/// Size in bytes.
pub(crate) fn size_bytes(file: &File, kind: FileKind) -> io::Result<u64> {
    if kind != FileKind::Block {
        return Ok(file.metadata()?.len());
    }
    let mut size: u64 = 0;
    // SAFETY: BLKGETSIZE64 writes one u64.
    check(unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &raw mut size) })?;
    Ok(size)
}

/// How `fallocate` makes a range of a regular file read as zeros.
pub(crate) fn discard_mode(kind: FileKind) -> libc::c_int {
    let zeros =
        if kind == FileKind::Allocated { libc::FALLOC_FL_ZERO_RANGE } else { libc::FALLOC_FL_PUNCH_HOLE };
    zeros | libc::FALLOC_FL_KEEP_SIZE
}

/// Makes a range read as zeros. Its space is returned, unless the whole file must stay allocated; if a device cannot do
/// that, it is overwritten with zeros.
pub(crate) fn discard(file: &File, kind: FileKind, offset: u64, len: u64) -> io::Result<()> {
    match kind {
        FileKind::Regular | FileKind::Allocated => {
            let mode = discard_mode(kind);
            // SAFETY: no memory is passed.
            check(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, len as i64) })
        }
        FileKind::Block => {
            let range = [offset, len];
            // SAFETY: BLKZEROOUT reads two u64. (BLKDISCARD does not guarantee zeros; this call deallocates if the
            // device then returns zeros, and writes zeros otherwise.)
            check(unsafe { libc::ioctl(file.as_raw_fd(), BLKZEROOUT, range.as_ptr()) })
        }
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
