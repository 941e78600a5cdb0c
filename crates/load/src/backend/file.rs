//! Files and block devices, through the driver's own file operations (`O_DIRECT` unless the volume says otherwise).

use super::{Backend, Failure, FinishedIo, Io, OpenError, OpenedVolume, Reports, VolumeToOpen};
use crate::{record::Op, spec::VolumeSpec};
use linerate_blame::Blame;
use linerate_io::{Completion, Driver, FileOptions, Handle, Nanos};
use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

/// The scheme of an array's volumes, in virtual time.
pub(crate) const ARRAY: &str = "array";

const DEV: &str = "/dev";
/// As many symbolic links as the kernel follows.
const LINKS_MAX: usize = 40;
/// Errors of Linux that [`io::ErrorKind`] does not name.
const ELOOP: i32 = 40;
const ENAMETOOLONG: i32 = 36;

/// The open files of a worker.
#[derive(Debug, Default)]
pub(crate) struct Files {
    handles: Vec<Handle>,
    /// Their paths; for a volume of an array, its name.
    paths: Vec<PathBuf>,
    /// How they are opened again.
    options: Vec<FileOptions>,
    /// Length of the I/O in flight, by slot: a transfer that moves less has failed.
    lens: Vec<u32>,
}

impl Files {
    /// An I/O of so many bytes starts.
    #[inline]
    fn expect(&mut self, slot: u32, len: u32) {
        if self.lens.len() <= slot as usize {
            self.lens.resize(slot as usize + 1, 0);
        }
        self.lens[slot as usize] = len;
    }

    /// Opens a file or block device; for writing only if some stream writes it.
    fn open_path<D: Driver>(
        &mut self,
        driver: &mut D,
        path: &Path,
        spec: &VolumeSpec,
        writes: bool,
    ) -> Result<OpenedVolume, OpenError> {
        let wanted = spec.size_bytes.map(|size| spec.first_byte + size);
        let options = FileOptions {
            allocate: false,
            read: true,
            write: writes || spec.create,
            direct: spec.direct,
            create: spec.create,
            exclusive: false,
            lock: false,
            size_bytes: wanted.filter(|_| spec.create),
        };
        refuse_other_than_files(path)?;
        refuse_plain_file_in_dev(path, spec.create)?;
        let handle = driver.open(path, &options).map_err(|error| explain(path, &error, spec))?;
        let capacity_bytes = driver.file_size(handle).map_err(|error| explain(path, &error, spec))?;
        let metadata = fs::metadata(path).map_err(|error| explain(path, &error, spec))?;
        let is_block = metadata.file_type().is_block_device();
        self.handles.push(handle);
        self.paths.push(path.to_owned());
        self.options.push(FileOptions { create: false, size_bytes: None, ..options });
        Ok(OpenedVolume {
            unit: self.handles.len() as u32 - 1,
            kind: if is_block { "block" } else { "file" },
            capacity_bytes,
            block_bytes: if is_block { logical_block_bytes(metadata.rdev()).unwrap_or(512) } else { 512 },
            max_transfer_bytes: 0,
            has_checksums: false,
            session: serde_json::Value::Null,
        })
    }

    /// Opens a volume of an array in virtual time: its driver has the volume as a file.
    fn open_array<D: Driver>(
        &mut self,
        driver: &mut D,
        name: &str,
        block_bytes: u32,
    ) -> Result<OpenedVolume, OpenError> {
        let opened = driver.open(Path::new(name), &FileOptions::default());
        let sized = opened.and_then(|handle| Ok((handle, driver.file_size(handle)?)));
        let (handle, capacity_bytes) =
            sized.map_err(|error| OpenError::new(Blame::Us, format!("cannot open {name}: {error}")))?;
        self.handles.push(handle);
        self.paths.push(name.into());
        self.options.push(FileOptions::default());
        Ok(OpenedVolume {
            unit: self.handles.len() as u32 - 1,
            kind: "array",
            capacity_bytes,
            block_bytes,
            max_transfer_bytes: 0,
            has_checksums: false,
            session: serde_json::Value::Null,
        })
    }
}

impl<D: Driver> Backend<D> for Files {
    fn open(&mut self, driver: &mut D, opening: &VolumeToOpen<'_>) -> Result<OpenedVolume, OpenError> {
        let VolumeToOpen { spec, writes, array_blocks, .. } = *opening;
        let user = |problem: &str| OpenError::new(Blame::User, format!("{}: {problem}", spec.url));
        match spec.url.split_once(':') {
            Some((ARRAY, name)) => {
                let blocks = array_blocks.ok_or_else(|| user("such volumes exist in virtual time only"))?;
                let block_bytes = blocks.get(name).ok_or_else(|| {
                    let known: Vec<_> = blocks.keys().map(String::as_str).collect();
                    user(&format!("the array has no such volume; it has: {}", known.join(", ")))
                })?;
                self.open_array(driver, name, *block_bytes)
            }
            Some((_, path)) => self.open_path(driver, Path::new(path), spec, writes),
            None => unreachable!("a URL without a scheme has no backend"),
        }
    }

    fn submit(&mut self, driver: &mut D, io: &Io, _: &mut Reports) {
        let file = self.handles[io.unit as usize];
        self.expect(io.slot, io.data.len);
        match io.op {
            Op::Read => driver.read_at(file, io.slot.into(), &[io.data], io.offset),
            Op::Write => {
                driver.write_at(file, io.slot.into(), &[io.data], io.offset, io.durable);
            }
        }
    }

    fn sync(&mut self, driver: &mut D, slot: u32, unit: u32, _: &mut Reports) {
        self.expect(slot, 0);
        driver.sync(self.handles[unit as usize], slot.into());
    }

    fn reopen(&mut self, driver: &mut D, unit: u32) -> Result<(), OpenError> {
        let at = unit as usize;
        driver.close(self.handles[at]);
        let opened = driver.open(&self.paths[at], &self.options[at]);
        self.handles[at] = opened
            .map_err(|error| OpenError::new(Blame::Host, format!("{}: {error}", self.paths[at].display())))?;
        Ok(())
    }

    fn set_length(&mut self, _: &mut D, slot: u32, unit: u32, length_bytes: u64, reports: &mut Reports) {
        let file = fs::File::options().write(true).open(&self.paths[unit as usize]);
        let result = file
            .and_then(|file| file.set_len(length_bytes))
            .map_err(|error| Failure::System(error.kind(), error.raw_os_error()));
        reports.done.push(FinishedIo { slot, result });
    }

    fn complete(
        &mut self,
        _: &mut D,
        completion: Completion<D::Socket>,
        reports: &mut Reports,
    ) -> Option<Completion<D::Socket>> {
        let Completion::File { tag, result, .. } = completion else { return Some(completion) };
        let result = match result {
            Ok(moved) if moved as u32 == self.lens[tag as usize] => Ok(()),
            Ok(moved) => Err(Failure::Short { moved: moved as u32 }),
            Err(error) => Err(Failure::System(error.kind(), error.raw_os_error())),
        };
        reports.done.push(FinishedIo { slot: tag as u32, result });
        None
    }

    fn close(&mut self, driver: &mut D, _: Nanos) {
        for file in self.handles.drain(..) {
            driver.close(file);
        }
    }
}

/// A file in /dev would be memory of this host and not the missing device: none is made, and none is used. Files on a
/// file system below it, such as /dev/shm, are permitted.
fn refuse_plain_file_in_dev(path: &Path, create: bool) -> Result<(), OpenError> {
    let place = behind_links(path);
    let device_of = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    let folder = place.parent().unwrap_or(Path::new("/"));
    let is_devices = device_of(folder).is_some_and(|device| device_of(Path::new(DEV)) == Some(device));
    let (name, shown) = (path.display(), place.display());
    match fs::metadata(&place) {
        Ok(found) if !found.is_file() => Ok(()),
        Ok(_) if is_devices => {
            let message =
                format!("{name} is a plain file in {DEV} and no device; remove it, then name a device");
            Err(OpenError::new(Blame::User, message))
        }
        _ if create && (is_devices || place.starts_with(DEV)) => {
            let message = format!("{name}: no file is made in {DEV} ({shown}); name a device that exists");
            Err(OpenError::new(Blame::User, message))
        }
        _ => Ok(()),
    }
}

/// The target of a path, also if its last part does not exist.
fn behind_links(path: &Path) -> PathBuf {
    let mut place = path.to_owned();
    for _ in 0..LINKS_MAX {
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if let (Ok(folder), Some(name)) = (fs::canonicalize(folder), place.file_name()) {
            place = folder.join(name);
        }
        match fs::read_link(&place) {
            Ok(target) => place = place.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => break,
        }
    }
    place
}

/// Sector size of a block device, from sysfs; a partition has that of its disk.
fn logical_block_bytes(device: u64) -> Option<u32> {
    let (major, minor) = ((device >> 8) & 0xFFF, (device & 0xFF) | ((device >> 12) & 0xFFF00));
    let base = format!("/sys/dev/block/{major}:{minor}");
    ["queue", "../queue"]
        .iter()
        .find_map(|queue| fs::read_to_string(format!("{base}/{queue}/logical_block_size")).ok())
        .and_then(|text| text.trim().parse().ok())
}

/// To open a pipe waits for its other end, and a terminal has no blocks.
fn refuse_other_than_files(path: &Path) -> Result<(), OpenError> {
    let Ok(found) = fs::metadata(path).map(|metadata| metadata.file_type()) else { return Ok(()) };
    let what = match found {
        _ if found.is_file() || found.is_block_device() => return Ok(()),
        _ if found.is_dir() => "is a directory",
        _ => "is neither a file nor a block device",
    };
    Err(OpenError::new(Blame::User, format!("{} {what}", path.display())))
}

/// What to do about a file that cannot be opened.
fn explain(path: &Path, error: &io::Error, spec: &VolumeSpec) -> OpenError {
    let path = path.display();
    let (blame, advice) = match error.kind() {
        io::ErrorKind::NotFound if spec.create => (Blame::User, "; its folder is not there: make it first"),
        io::ErrorKind::NotFound => (Blame::User, "; check the path; --create with a size makes a file"),
        io::ErrorKind::PermissionDenied => (Blame::User, "; run as a user who may open it"),
        io::ErrorKind::InvalidInput if spec.direct => {
            (Blame::User, "; this file system has no direct I/O: set direct to false")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            (Blame::User, "; give a file on another file system, or only read")
        }
        io::ErrorKind::NotADirectory => (Blame::User, "; a part of this path is a file"),
        io::ErrorKind::ExecutableFileBusy => (Blame::User, "; it is a program that runs: give another file"),
        io::ErrorKind::ResourceBusy => (Blame::User, "; unmount it or stop what uses it, or give another"),
        io::ErrorKind::StorageFull => (Blame::Host, "; make room for it"),
        _ if matches!(error.raw_os_error(), Some(ELOOP | ENAMETOOLONG)) => {
            (Blame::User, "; correct the path")
        }
        _ => (Blame::Host, ""),
    };
    OpenError::new(blame, format!("cannot open {path}: {error}{advice}"))
}
