//! A disk in a file or on a block device. Its I/O goes through the [`crate::Host`] of its thread.
//!
//! Space is allocated as a whole when the disk is made, or when it is written (thin). A thin disk can run out of space.
//! Then the write is refused, and nothing else happens.

use super::{Disk, DiskError, DiskStats, Meter, OpKind, Reading, Writing, check_range};
use crate::{
    host::{Queue, Request, Transfer, Work},
    runtime::Runtime,
};
use bytes::{Bytes, BytesMut};
use futures::channel::oneshot::{self, Receiver};
use linerate_io::{Handle, Nanos};
use std::{
    cell::{Cell, RefCell},
    future::ready,
    io,
    path::PathBuf,
    rc::Rc,
};

/// Longest single transfer; a longer one is split into several that run at the same time.
const PART_BYTES: usize = 1 << 20;

/// How often a disk without space is reported.
const TELL_EVERY_NS: Nanos = 60_000_000_000;

/// The path of a file disk and how it is opened; see [`crate::host::Files::open`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileConfig {
    /// Name of the disk.
    pub name: String,
    /// The file or block device.
    pub path: PathBuf,
    /// Makes a file of this size if it is missing or has length zero. None: it exists.
    pub size_bytes: Option<u64>,
    /// 512 or 4096.
    pub block_bytes: u32,
    /// Bypass the page cache, if file system and device can (`O_DIRECT`).
    pub direct: bool,
    /// Space is taken at each write, and may run out. Otherwise a file is allocated as a whole.
    pub thin: bool,
    /// For inspection: writes fail, and the lock is shared.
    pub read_only: bool,
}

/// A disk in a file. It uses direct I/O if possible. With direct I/O a durable write is one operation (`RWF_DSYNC`).
/// A flush is `fdatasync`.
///
/// After a failed write or flush the disk has failed for good: data that the kernel accepted before may be lost with
/// it, and a retry would only hide that. After a failed read the disk continues, so that a mirror can repair it. It
/// also continues after a write without space, because no other data is lost.
#[derive(Clone, Debug)]
pub struct FileDisk(Rc<Opened>);

/// The disk as its operations use it: the file is closed when the last of them has ended.
#[derive(Debug)]
struct Opened {
    file: Rc<FileState>,
    queue: Rc<Queue>,
    runtime: Runtime,
    facts: FileFacts,
}

/// Facts about an open file disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileFacts {
    pub(crate) size_bytes: u64,
    pub(crate) block_bytes: u32,
    pub(crate) is_direct: bool,
    pub(crate) is_thin: bool,
    /// The file did not exist before.
    pub(crate) is_new: bool,
}

/// State that the disk shares with its operations in progress.
#[derive(Debug)]
pub(crate) struct FileState {
    name: String,
    handle: Handle,
    meter: Meter,
    has_failed: Cell<bool>,
    fault: RefCell<Option<String>>,
    /// The last attempt to get space failed.
    lacks_space: Cell<bool>,
    told: Cell<Option<Nanos>>,
    /// The file system cannot allocate.
    cannot_allocate: Cell<bool>,
}

impl FileState {
    pub(crate) fn new(name: String, handle: Handle) -> Self {
        Self {
            name,
            handle,
            meter: Meter::default(),
            has_failed: Cell::new(false),
            fault: RefCell::default(),
            lacks_space: Cell::new(false),
            told: Cell::new(None),
            cannot_allocate: Cell::new(false),
        }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn begin(&self, now: Nanos) {
        self.meter.begin(now);
    }

    /// Counts a completed operation, and sets the state of the disk by its error.
    pub(crate) fn finish(
        &self,
        kind: OpKind,
        begun: Nanos,
        now: Nanos,
        len_bytes: u64,
        error: Option<&io::Error>,
    ) {
        self.meter.end(begun, now, kind, len_bytes, error.is_none());
        // Only failures change the state.
        let Some(error) = error else { return };
        self.fault.replace(Some(error.to_string()));
        match kind {
            OpKind::Read if is_bad_sector(error) => {}
            OpKind::Write | OpKind::Discard if is_no_space(error) => self.tell_no_space(now),
            _ => self.has_failed.set(true),
        }
    }

    /// An attempt to reserve space has ended. It is not counted as an operation on the disk's bytes.
    pub(crate) fn reserved(&self, now: Nanos, error: Option<&io::Error>) {
        self.meter.rest(now);
        match error {
            None => self.lacks_space.set(false),
            Some(error) if is_no_space(error) => {}
            Some(error) if error.kind() == io::ErrorKind::Unsupported => self.cannot_allocate.set(true),
            Some(_) => self.has_failed.set(true),
        }
    }

    fn tell_no_space(&self, now: Nanos) {
        self.lacks_space.set(true);
        if self.told.get().is_none_or(|told| now >= told + TELL_EVERY_NS) {
            self.told.set(Some(now));
            tracing::warn!(
                event = "disk_no_space",
                disk = self.name,
                "the file system of a sparse disk is full: writes that need space are refused"
            );
        }
    }

    fn check(&self) -> Result<(), DiskError> {
        if self.has_failed.get() { Err(DiskError::Failed(self.name.clone())) } else { Ok(()) }
    }
}

/// Whether a read failed because of the sector and not because of the disk.
fn is_bad_sector(error: &io::Error) -> bool {
    // EIO, and the medium and integrity errors of block devices: ENODATA, EILSEQ (block/blk-core.c).
    const CODES: [i32; 3] = [5, 61, 84];
    error.kind() == io::ErrorKind::UnexpectedEof
        || error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

/// Whether a write found no space, or exceeded a quota.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl FileDisk {
    pub(crate) fn new(file: Rc<FileState>, queue: Rc<Queue>, runtime: Runtime, facts: FileFacts) -> Self {
        Self(Rc::new(Opened { file, queue, runtime, facts }))
    }

    /// Whether transfers bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.0.facts.is_direct
    }

    /// Whether the file did not exist before.
    pub fn is_new(&self) -> bool {
        self.0.facts.is_new
    }

    /// Whether the last attempt to get space failed.
    pub fn lacks_space(&self) -> bool {
        self.0.file.lacks_space.get()
    }

    /// The system's message for the last failed operation.
    pub fn fault(&self) -> Option<String> {
        self.0.file.fault.borrow().clone()
    }

    fn check_range(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.0.file.check()?;
        check_range(self, offset, len)
    }
}

impl Opened {
    fn submit(&self, offset: u64, work: Work) {
        let begun = self.runtime.now();
        let file = Rc::clone(&self.file);
        self.queue.push(Request::Transfer(Transfer::new(file, offset, begun, work)));
    }

    fn read(&self, offset: u64, mut into: BytesMut) -> Reading {
        let len = into.len() as u64;
        let mut parts = Vec::with_capacity(into.len().div_ceil(PART_BYTES));
        let mut at = offset;
        while !into.is_empty() {
            let into = into.split_to(into.len().min(PART_BYTES));
            let (done, receiver) = oneshot::channel();
            let part_len = into.len() as u64;
            self.submit(at, Work::Read { into, done });
            parts.push(receiver);
            at += part_len;
        }
        let file = Rc::clone(&self.file);
        Box::pin(async move {
            let mut whole = into;
            let mut result = Ok(());
            for part in parts {
                match part.await {
                    Ok(Ok(bytes)) => whole.unsplit(bytes),
                    Ok(Err(error)) if is_bad_sector(&error) => {
                        result =
                            result.and(Err(DiskError::Unreadable { offset_bytes: offset, len_bytes: len }));
                    }
                    _ => result = Err(DiskError::Failed(file.name.clone())),
                }
            }
            result.map(|()| whole)
        })
    }

    fn write(&self, offset: u64, mut data: Bytes, durable: bool) -> Writing {
        let mut parts = Vec::with_capacity(data.len().div_ceil(PART_BYTES));
        let mut at = offset;
        while !data.is_empty() {
            let data = data.split_to(data.len().min(PART_BYTES));
            let (done, receiver) = oneshot::channel();
            let part_len = data.len() as u64;
            self.submit(at, Work::Write { data, durable, done });
            parts.push(receiver);
            at += part_len;
        }
        self.all_done(parts)
    }

    fn sync(&self) -> Writing {
        let (done, receiver) = oneshot::channel();
        self.submit(0, Work::Sync { done });
        self.all_done(vec![receiver])
    }

    /// The result of several operations without data: the worst of their results.
    fn all_done(&self, parts: Vec<Receiver<io::Result<()>>>) -> Writing {
        let file = Rc::clone(&self.file);
        Box::pin(async move {
            let mut result = Ok(());
            for part in parts {
                match part.await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) if is_no_space(&error) => {
                        result = result.and(Err(DiskError::NoSpace(file.name.clone())));
                    }
                    _ => result = Err(DiskError::Failed(file.name.clone())),
                }
            }
            result
        })
    }

    /// Reserves space by a request to the file system, or by writing the old contents back.
    async fn reserve(self: Rc<Self>, offset: u64, len: u64) -> Result<(), DiskError> {
        if !self.file.cannot_allocate.get() {
            let (done, receiver) = oneshot::channel();
            self.submit(offset, Work::Reserve { len, done });
            match receiver.await {
                Ok(Ok(())) => return Ok(()),
                // A full file system may report this for allocated space, too.
                Ok(Err(error)) if error.kind() == io::ErrorKind::Unsupported || is_no_space(&error) => {}
                _ => return Err(DiskError::Failed(self.file.name.clone())),
            }
        }
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let part = (end - at).min(PART_BYTES as u64);
            // A range that cannot be read has its space.
            if let Ok(bytes) = self.read(at, BytesMut::zeroed(part as usize)).await {
                self.write(at, bytes.freeze(), false).await?;
            }
            at += part;
        }
        Ok(())
    }
}

impl Disk for FileDisk {
    fn name(&self) -> &str {
        &self.0.file.name
    }

    fn size_bytes(&self) -> u64 {
        self.0.facts.size_bytes
    }

    fn block_bytes(&self) -> u32 {
        self.0.facts.block_bytes
    }

    fn stats(&self) -> DiskStats {
        self.0.file.meter.stats(self.0.runtime.now())
    }

    fn is_thin(&self) -> bool {
        self.0.facts.is_thin
    }

    fn read(&self, offset: u64, into: BytesMut) -> Reading {
        match self.check_range(offset, into.len() as u64) {
            Ok(()) => self.0.read(offset, into),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn write(&self, offset: u64, data: Bytes, durable: bool) -> Writing {
        if let Err(error) = self.check_range(offset, data.len() as u64) {
            return Box::pin(ready(Err(error)));
        }
        if !durable || self.0.facts.is_direct {
            return self.0.write(offset, data, durable);
        }
        // Through the page cache, a durable write that finds no space would not say whether this write failed, or
        // an earlier one that was reported as done.
        let (opened, writing) = (Rc::clone(&self.0), self.0.write(offset, data, false));
        self.0.runtime.start(async move {
            writing.await?;
            opened.sync().await
        })
    }

    fn flush(&self) -> Writing {
        match self.0.file.check() {
            Ok(()) => self.0.sync(),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        if let Err(error) = self.check_range(offset, len) {
            return Box::pin(ready(Err(error)));
        }
        if len == 0 {
            return Box::pin(ready(Ok(())));
        }
        let (done, receiver) = oneshot::channel();
        self.0.submit(offset, Work::Discard { len, done });
        self.0.all_done(vec![receiver])
    }

    fn reserve(&self, offset: u64, len: u64) -> Writing {
        if let Err(error) = self.check_range(offset, len) {
            return Box::pin(ready(Err(error)));
        }
        if len == 0 || !self.is_thin() {
            return Box::pin(ready(Ok(())));
        }
        self.0.runtime.start(Rc::clone(&self.0).reserve(offset, len))
    }
}

impl Drop for Opened {
    /// Operations in progress are completed first.
    fn drop(&mut self) {
        self.queue.push(Request::Close(self.file.handle));
    }
}
