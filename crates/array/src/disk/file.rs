//! A disk in a file or on a block device, by way of its thread's [`crate::Host`].

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

/// Longest single transfer; a longer one becomes several that run at once.
const PART_BYTES: usize = 1 << 20;

/// Where a file disk lies and how it is opened; see [`crate::host::Files::open`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileConfig {
    /// Name of the disk.
    pub name: String,
    /// The file or block device.
    pub path: PathBuf,
    /// Creates a file that does not exist, and extends a shorter one, to this size (sparse). None: it exists.
    pub size_bytes: Option<u64>,
    /// 512 or 4096.
    pub block_bytes: u32,
    /// Past the page cache, where file system and device can (`O_DIRECT`).
    pub direct: bool,
}

/// A disk in a file. Direct where it can be; a durable write is one operation (`RWF_DSYNC`), a flush is `fdatasync`.
///
/// A write or flush that fails makes the disk fail for good: what the kernel had accepted before may be lost with it, and
/// trying again would only hide that. A read that fails leaves the disk at work, for a mirror to mend.
#[derive(Debug)]
pub struct FileDisk {
    file: Rc<FileState>,
    queue: Rc<Queue>,
    runtime: Runtime,
    size_bytes: u64,
    block_bytes: u32,
    is_direct: bool,
}

/// What the disk and the operations under way share.
#[derive(Debug)]
pub(crate) struct FileState {
    name: String,
    handle: Handle,
    meter: Meter,
    has_failed: Cell<bool>,
    fault: RefCell<Option<String>>,
}

impl FileState {
    pub(crate) fn new(name: String, handle: Handle) -> Self {
        let (meter, has_failed, fault) = (Meter::default(), Cell::new(false), RefCell::default());
        Self { name, handle, meter, has_failed, fault }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn begin(&self, now: Nanos) {
        self.meter.begin(now);
    }

    /// Counts an operation that is over, and judges the disk by its error.
    pub(crate) fn finish(
        &self,
        kind: OpKind,
        begun: Nanos,
        now: Nanos,
        len_bytes: u64,
        error: Option<&io::Error>,
    ) {
        self.meter.end(begun, now, kind, len_bytes, error.is_none());
        if let Some(error) = error {
            self.fault.replace(Some(error.to_string()));
            if kind != OpKind::Read || !is_bad_sector(error) {
                self.has_failed.set(true);
            }
        }
    }

    fn check(&self) -> Result<(), DiskError> {
        if self.has_failed.get() { Err(DiskError::Failed(self.name.clone())) } else { Ok(()) }
    }
}

/// Whether a read failed for the place and not for the disk.
fn is_bad_sector(error: &io::Error) -> bool {
    // EIO, and what block devices say of a medium or integrity error: ENODATA, EILSEQ (block/blk-core.c).
    const CODES: [i32; 3] = [5, 61, 84];
    error.kind() == io::ErrorKind::UnexpectedEof
        || error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

impl FileDisk {
    pub(crate) fn new(
        file: Rc<FileState>,
        queue: Rc<Queue>,
        runtime: Runtime,
        size_bytes: u64,
        block_bytes: u32,
        is_direct: bool,
    ) -> Self {
        Self { file, queue, runtime, size_bytes, block_bytes, is_direct }
    }

    /// Whether transfers pass the page cache by.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// What the system said when an operation failed last.
    pub fn fault(&self) -> Option<String> {
        self.file.fault.borrow().clone()
    }

    fn submit(&self, offset: u64, work: Work) {
        let begun = self.runtime.now();
        let file = Rc::clone(&self.file);
        self.queue.push(Request::Transfer(Transfer::new(file, offset, begun, work)));
    }

    fn check_range(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.file.check()?;
        check_range(self, offset, len)
    }

    /// The end of operations without data.
    fn all_done(&self, parts: Vec<Receiver<io::Result<()>>>) -> Writing {
        let file = Rc::clone(&self.file);
        Box::pin(async move {
            let mut result = Ok(());
            for part in parts {
                if !matches!(part.await, Ok(Ok(()))) {
                    result = Err(DiskError::Failed(file.name.clone()));
                }
            }
            result
        })
    }
}

impl Disk for FileDisk {
    fn name(&self) -> &str {
        &self.file.name
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn stats(&self) -> DiskStats {
        self.file.meter.stats(self.runtime.now())
    }

    fn read(&self, offset: u64, mut into: BytesMut) -> Reading {
        let len = into.len() as u64;
        if let Err(error) = self.check_range(offset, len) {
            return Box::pin(ready(Err(error)));
        }
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
        if let Err(error) = self.check_range(offset, data.len() as u64) {
            return Box::pin(ready(Err(error)));
        }
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

    fn flush(&self) -> Writing {
        if let Err(error) = self.file.check() {
            return Box::pin(ready(Err(error)));
        }
        let (done, receiver) = oneshot::channel();
        self.submit(0, Work::Sync { done });
        self.all_done(vec![receiver])
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        if let Err(error) = self.check_range(offset, len) {
            return Box::pin(ready(Err(error)));
        }
        if len == 0 {
            return Box::pin(ready(Ok(())));
        }
        let (done, receiver) = oneshot::channel();
        self.submit(offset, Work::Discard { len, done });
        self.all_done(vec![receiver])
    }
}

impl Drop for FileDisk {
    /// What is under way is finished first.
    fn drop(&mut self) {
        self.queue.push(Request::Close(self.file.handle));
    }
}
