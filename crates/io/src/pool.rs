//! File operations by blocking calls: at once if the page cache permits it, else by a few threads.

use crate::{
    Completion, Handle, Seg, Waker,
    file::{
        self, FileKind,
        commit::{Commit, Commits},
    },
    gather::{PIECES_PER_CALL, Regions, drop_front},
};
use libc::iovec;
use std::{
    collections::VecDeque,
    fs::File,
    io,
    net::TcpStream,
    os::fd::{AsRawFd, BorrowedFd},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

/// Threads that block on files: enough to keep a device queue busy, few enough to leave CPU time to the I/O threads.
const FILE_THREADS: usize = 8;

#[derive(Clone, Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: Arc<File>,
    pub(crate) kind: FileKind,
    pub(crate) direct: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum FileRequest {
    Read {
        offset: u64,
    },
    Write {
        offset: u64,
        commit: Commit,
    },
    Sync,
    /// For the writes that share it.
    Flush,
    Discard {
        offset: u64,
        len: u64,
    },
    Allocate {
        offset: u64,
        len: u64,
    },
}

impl FileRequest {
    /// It has ended: its completion is appended to `ready`, or that of the writes that shared it.
    pub(crate) fn done(
        self,
        file: Handle,
        tag: u64,
        result: io::Result<usize>,
        commits: &mut Commits,
        ready: &mut Vec<Completion<TcpStream>>,
    ) {
        match self {
            Self::Write { commit, .. } => commits.written(file, tag, commit, result, ready),
            Self::Flush => commits.flushed(file, &result, ready),
            Self::Read { .. } | Self::Sync | Self::Discard { .. } | Self::Allocate { .. } => {
                ready.push(Completion::File { file, tag, result });
            }
        }
    }
}

/// One operation for a thread. The file stays open until it is done, even if its handle is closed.
struct Job {
    open: OpenFile,
    handle: Handle,
    tag: u64,
    request: FileRequest,
    pieces: Vec<iovec>,
}

// SAFETY: the pieces are in regions that the driver keeps alive until its file threads have ended.
unsafe impl Send for Job {}

struct FinishedJob {
    handle: Handle,
    tag: u64,
    request: FileRequest,
    result: io::Result<usize>,
    pieces: Vec<iovec>,
}

// SAFETY: the pieces are only kept for the vector's memory and are not dereferenced any more.
unsafe impl Send for FinishedJob {}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    stopping: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    done: Mutex<Vec<FinishedJob>>,
    finished: Waker,
}

/// The threads, and their queues to and from the driver.
pub(crate) struct FilePool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    collected: Vec<FinishedJob>,
    /// Empty vectors, reused so that the pool allocates nothing after the start.
    spare: Vec<Vec<iovec>>,
}

impl FilePool {
    pub(crate) fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            work: Condvar::new(),
            done: Mutex::default(),
            finished: Waker::new()?,
        });
        let mut pool = Self { shared, threads: Vec::new(), collected: Vec::new(), spare: Vec::new() };
        for index in 0..FILE_THREADS {
            let shared = Arc::clone(&pool.shared);
            let builder = thread::Builder::new().name(format!("file-{index}"));
            pool.threads.push(builder.spawn(move || serve(&shared))?);
        }
        Ok(pool)
    }

    /// Becomes readable when operations have finished.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.shared.finished.fd()
    }

    /// Performs the operation at once (the result is returned) or queues it.
    pub(crate) fn submit(
        &mut self,
        open: &OpenFile,
        handle: Handle,
        tag: u64,
        segs: &[Seg],
        request: FileRequest,
        regions: &Regions,
    ) -> Option<io::Result<usize>> {
        let mut pieces = self.spare.pop().unwrap_or_default();
        pieces.clear();
        if let Err(error) = regions.resolve_all(segs, &mut pieces) {
            return Some(Err(error));
        }
        if let Some(result) = at_once(open, request, &pieces) {
            self.spare.push(pieces);
            return Some(result);
        }
        let job = Job { open: open.clone(), handle, tag, request, pieces };
        lock(&self.shared.queue).jobs.push_back(job);
        self.shared.work.notify_one();
        None
    }

    /// Returns the completions of finished operations.
    pub(crate) fn collect(&mut self, ready: &mut Vec<Completion<TcpStream>>, commits: &mut Commits) {
        self.shared.finished.acknowledge();
        std::mem::swap(&mut *lock(&self.shared.done), &mut self.collected);
        for FinishedJob { handle, tag, request, result, pieces } in self.collected.drain(..) {
            self.spare.push(pieces);
            request.done(handle, tag, result, commits, ready);
        }
    }
}

impl Drop for FilePool {
    /// Waits for the operations in flight: their memory may be freed afterwards.
    fn drop(&mut self) {
        lock(&self.shared.queue).stopping = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// No code between lock and unlock can panic, so a poisoned lock still guards valid data.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The main function of a file thread.
fn serve(shared: &Shared) {
    loop {
        let mut queue = lock(&shared.queue);
        let mut job = loop {
            match queue.jobs.pop_front() {
                Some(job) => break job,
                None if queue.stopping => return,
                None => queue = shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(queue);
        let result = perform(&mut job);
        let Job { handle, tag, request, pieces, .. } = job;
        lock(&shared.done).push(FinishedJob { handle, tag, request, result, pieces });
        shared.finished.wake();
    }
}

/// A cached read or a buffered write that does not block is cheaper than a hand-over. `None`: it needs a thread.
fn at_once(open: &OpenFile, request: FileRequest, pieces: &[iovec]) -> Option<io::Result<usize>> {
    let wanted: usize = pieces.iter().map(|piece| piece.iov_len).sum();
    if open.direct || pieces.len() > PIECES_PER_CALL {
        return None;
    }
    let moved = match request {
        FileRequest::Read { offset } => move_bytes(&open.file, pieces, offset, Move::Read, libc::RWF_NOWAIT),
        FileRequest::Write { offset, commit: Commit::None | Commit::Shared } => {
            move_bytes(&open.file, pieces, offset, Move::Write, libc::RWF_NOWAIT)
        }
        _ => return None,
    };
    moved.ok().filter(|&moved| moved == wanted).map(Ok)
}

fn perform(job: &mut Job) -> io::Result<usize> {
    let file = &*job.open.file;
    match job.request {
        FileRequest::Read { offset } => move_all(file, &mut job.pieces, offset, Move::Read, 0),
        FileRequest::Write { offset, commit } => {
            let flags = if commit == Commit::Through { libc::RWF_DSYNC } else { 0 };
            move_all(file, &mut job.pieces, offset, Move::Write, flags)
        }
        FileRequest::Sync | FileRequest::Flush => file.sync_data().map(|()| 0),
        FileRequest::Discard { offset, len } => file::discard(file, job.open.kind, offset, len).map(|()| 0),
        FileRequest::Allocate { offset, len } => file::allocate(file, offset, len).map(|()| 0),
    }
}

#[derive(Clone, Copy)]
enum Move {
    Read,
    Write,
}

/// Moves all bytes; a read ends early at the end of the file.
fn move_all(
    file: &File,
    pieces: &mut Vec<iovec>,
    offset: u64,
    direction: Move,
    flags: libc::c_int,
) -> io::Result<usize> {
    let mut total = 0;
    while !pieces.is_empty() {
        match move_bytes(file, pieces, offset + total as u64, direction, flags) {
            Ok(0) if matches!(direction, Move::Read) => break,
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(moved) => {
                total += moved;
                drop_front(pieces, moved);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

fn move_bytes(
    file: &File,
    pieces: &[iovec],
    offset: u64,
    direction: Move,
    flags: libc::c_int,
) -> io::Result<usize> {
    let (fd, count) = (file.as_raw_fd(), pieces.len().min(PIECES_PER_CALL) as libc::c_int);
    let offset = offset as libc::off_t;
    // SAFETY: the pieces are in attached regions, which the driver keeps alive until its file threads have ended.
    let moved = unsafe {
        match direction {
            Move::Read => libc::preadv2(fd, pieces.as_ptr(), count, offset, flags),
            Move::Write => libc::pwritev2(fd, pieces.as_ptr(), count, offset, flags),
        }
    };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}
