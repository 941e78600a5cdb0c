//! Opens file disks: makes missing files, allocates their space, takes their locks.

use super::{Queue, Request, Transfer, Work, queue::Opened};
use crate::{
    disk::{FileConfig, FileDisk, FileFacts, FileState, is_no_space},
    runtime::Runtime,
};
use bytes::BytesMut;
use futures::channel::oneshot;
use linerate_io::{FileOptions, Nanos};
use std::{io, rc::Rc};

/// How long opening waits for the end of a process that has the file open: a killed process ends with its last I/O.
const LOCK_WAIT_NS: Nanos = 5_000_000_000;
/// The same for a file that is only read: its array may have closed it just before.
const LOOK_WAIT_NS: Nanos = 50_000_000;
/// Interval between two attempts.
const LOCK_RETRY_NS: Nanos = 20_000_000;

/// Opens file disks on the host of its thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Files {
    queue: Rc<Queue>,
    runtime: Runtime,
}

impl Files {
    pub(super) fn new(queue: Rc<Queue>, runtime: Runtime) -> Self {
        Self { queue, runtime }
    }

    /// Opens a file disk. It is made first if it does not exist and a size is given.
    ///
    /// Takes the file's lock, so that no two arrays write to one disk. Waits a few seconds for a process that is
    /// ending, because its last writes would arrive after recovery. An existing file keeps its length. If the file
    /// system cannot allocate, or has too little space for the rest of an existing file, the disk is thin. Errors:
    /// those of the system; `StorageFull` if there is too little space for a new file, which is then not made;
    /// `InvalidInput` if the size is not a whole number of blocks; `WouldBlock` if the file stays in use.
    pub async fn open(&self, config: &FileConfig) -> io::Result<FileDisk> {
        let is_new = self.make(config).await?;
        let mut config = config.clone();
        let opened = match self.open_way(&config).await {
            Err(error) if !config.thin && (is_no_space(&error) || is_unsupported(&error)) => {
                tracing::warn!(
                    event = "disk_not_allocated",
                    disk = config.name,
                    path = %config.path.display(),
                    %error,
                    "the space of a disk cannot be allocated: the disk is served as a sparse one"
                );
                config.thin = true;
                self.open_way(&config).await?
            }
            opened => opened?,
        };
        let (opened, is_direct) = opened;
        let file = Rc::new(FileState::new(config.name.clone(), opened.handle));
        let (block_bytes, is_thin) = (config.block_bytes, config.thin);
        let size_bytes = opened.size_bytes / u64::from(block_bytes) * u64::from(block_bytes);
        let facts = FileFacts { size_bytes, block_bytes, is_direct, is_thin, is_new };
        let disk = FileDisk::new(file, Rc::clone(&self.queue), self.runtime.clone(), facts);
        if size_bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "smaller than one block"));
        }
        Ok(disk)
    }

    /// Makes the file if it is missing, or sets the length of an empty file. Returns whether it was missing.
    async fn make(&self, config: &FileConfig) -> io::Result<bool> {
        if config.size_bytes.is_none() || config.read_only {
            return Ok(false);
        }
        let made = FileOptions {
            write: true,
            create: true,
            exclusive: true,
            size_bytes: config.size_bytes,
            allocate: !config.thin,
            ..FileOptions::default()
        };
        let made = match self.ask(config, &made).await {
            Err(error) if is_unsupported(&error) => {
                self.ask(config, &FileOptions { allocate: false, ..made }).await
            }
            made => made,
        };
        match made {
            Ok(opened) => {
                self.queue.push(Request::Close(opened.handle));
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.lengthen_empty(config).await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// An empty file was made by hand, or its creation was interrupted.
    async fn lengthen_empty(&self, config: &FileConfig) -> io::Result<()> {
        let found = self.open_locked(config, false, true).await?;
        self.queue.push(Request::Close(found.handle));
        if found.size_bytes == 0 {
            let size_bytes = config.size_bytes;
            let longer = FileOptions { write: true, lock: true, size_bytes, ..FileOptions::default() };
            let longer = self.ask(config, &longer).await?;
            self.queue.push(Request::Close(longer.handle));
        }
        Ok(())
    }

    /// Opens an existing file, with direct I/O if possible.
    async fn open_way(&self, config: &FileConfig) -> io::Result<(Opened, bool)> {
        let thin = config.thin || config.read_only;
        if config.direct
            && let Some(opened) = self.open_direct(config, thin).await?
        {
            return Ok((opened, true));
        }
        Ok((self.open_locked(config, false, thin).await?, false))
    }

    /// Opens with direct I/O if one block can be read that way. File systems refuse when the file is opened; devices
    /// with larger sectors refuse the first transfer.
    async fn open_direct(&self, config: &FileConfig, thin: bool) -> io::Result<Option<Opened>> {
        let opened = match self.open_locked(config, true, thin).await {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
            opened => opened?,
        };
        let (done, receiver) = oneshot::channel();
        let work = Work::Read { into: BytesMut::zeroed(config.block_bytes as usize), done };
        let file = Rc::new(FileState::new(config.name.clone(), opened.handle));
        self.queue.push(Request::Transfer(Transfer::new(file, 0, self.runtime.now(), work)));
        match receiver.await {
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidInput => {
                self.queue.push(Request::Close(opened.handle));
                Ok(None)
            }
            _ => Ok(Some(opened)),
        }
    }

    async fn open_locked(&self, config: &FileConfig, direct: bool, thin: bool) -> io::Result<Opened> {
        let write = !config.read_only;
        let options = FileOptions { write, direct, lock: true, allocate: !thin, ..FileOptions::default() };
        let wait_ns = if config.read_only { LOOK_WAIT_NS } else { LOCK_WAIT_NS };
        let deadline = self.runtime.now().saturating_add(wait_ns);
        loop {
            match self.ask(config, &options).await {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.runtime.now() < deadline => {
                    self.runtime.sleep(LOCK_RETRY_NS).await;
                }
                result => return result,
            }
        }
    }

    async fn ask(&self, config: &FileConfig, options: &FileOptions) -> io::Result<Opened> {
        let (done, receiver) = oneshot::channel();
        let (path, options) = (config.path.clone(), options.clone());
        self.queue.push(Request::Open { path, options, done });
        receiver.await.unwrap_or_else(|oneshot::Canceled| Err(io::ErrorKind::BrokenPipe.into()))
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}
