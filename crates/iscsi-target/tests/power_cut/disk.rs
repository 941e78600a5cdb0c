//! A disk that logs: a file system (FUSE) with one file, the image of a disk, whose writes and flushes are logged in order.

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, WriteFlags,
};
use linerate_io::system::now_ns;
use std::{
    ffi::OsStr,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, UNIX_EPOCH},
};

/// The name of the image.
pub(crate) const IMAGE: &str = "image";
const IMAGE_INODE: INodeNo = INodeNo(2);
/// How long a flush takes: about as long as on a flash disk, so that writes meet a flush under way.
const FLUSH_TIME: Duration = Duration::from_millis(1);
const FOREVER: Duration = Duration::from_secs(3600);

/// What was done to the disk.
#[derive(Clone, Debug)]
pub(crate) enum DiskEvent {
    Write { offset: usize, data: Vec<u8> },
    Flush,
}

/// Everything that was done to a disk, in order.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    /// The content before the first event.
    pub(crate) base: Vec<u8>,
    /// Each with the time on the clock of [`now_ns`], taken before the kernel got the answer.
    pub(crate) events: Vec<(u64, DiskEvent)>,
}

impl Log {
    /// Number of flushes.
    pub(crate) fn flushes(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, DiskEvent::Flush)).count()
    }
}

#[derive(Debug)]
struct State {
    content: Vec<u8>,
    log: Log,
}

/// A mounted disk; it is unmounted when it is dropped.
pub(crate) struct LoggedDisk {
    state: Arc<Mutex<State>>,
    _session: BackgroundSession,
}

impl LoggedDisk {
    /// Mounts a folder with the file [`IMAGE`] of this content. One thread serves it, so that events have an order.
    pub(crate) fn mount(content: Vec<u8>, at: &Path) -> io::Result<Self> {
        let log = Log { base: content.clone(), events: Vec::new() };
        let state = Arc::new(Mutex::new(State { content, log }));
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("logged-disk".into())];
        let session = fuser::spawn_mount(ImageFolder(Arc::clone(&state)), at, &config)?;
        Ok(Self { state, _session: session })
    }

    /// What has been done so far.
    pub(crate) fn log(&self) -> Log {
        self.state.lock().unwrap().log.clone()
    }
}

struct ImageFolder(Arc<Mutex<State>>);

impl ImageFolder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_image = inode == IMAGE_INODE;
        let size = if is_image { self.state().content.len() as u64 } else { 0 };
        FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_image { FileType::RegularFile } else { FileType::Directory },
            perm: if is_image { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for ImageFolder {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == IMAGE {
            reply.entry(&FOREVER, &self.attributes(IMAGE_INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(inode));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let state = self.state();
        let from = state.content.len().min(offset as usize);
        let to = state.content.len().min(from + size as usize);
        reply.data(&state.content[from..to]);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let (mut state, offset) = (self.state(), offset as usize);
        let Some(place) = state.content.get_mut(offset..offset + data.len()) else {
            return reply.error(Errno::ENOSPC);
        };
        place.copy_from_slice(data);
        state.log.events.push((now_ns(), DiskEvent::Write { offset, data: data.to_vec() }));
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        std::thread::sleep(FLUSH_TIME);
        self.state().log.events.push((now_ns(), DiskEvent::Flush));
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // It is sent when a descriptor is closed, and says nothing about the disk.
        reply.ok();
    }

    fn fallocate(&self, _: &Request, _: INodeNo, _: FileHandle, _: u64, _: u64, _: i32, reply: ReplyEmpty) {
        // The disk has no discards, as the loop device then tells the file system.
        reply.error(Errno::EOPNOTSUPP);
    }
}
