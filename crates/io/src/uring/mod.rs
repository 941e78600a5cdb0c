//! The completion driver: every operation uses one `io_uring`. Needs Linux 5.11; best from 6.1.
//!
//! - An operation's memory is in `op.rs` until its completion. Closing a handle cancels its socket operations, and the
//!   descriptor stays open until the last of them has completed. Dropping the driver waits for all of them.
//! - At most one `io_uring_enter` per poll submits the queue and waits. Separate calls send short lists (`send.rs`) and
//!   receive arrived bytes (`receive.rs`).
//! - Short sends, reads and writes resume by themselves. A thread discards on block devices, because the ring has no
//!   operation that guarantees zeros.

mod op;
mod receive;
mod ring;
mod send;

use crate::{
    Buffer, Completion, Driver, FileOptions, Handle, Nanos, Outgoing, Region, RegionId, Seg, SocketOptions,
    TcpInfo, Wait, Waker,
    file::{
        self, FileKind,
        commit::{Commit, Commits},
    },
    gather::{PIECES_PER_CALL, Regions, drop_front},
    net::socket,
    pool::{FilePool, FileRequest, OpenFile},
    slots::{DriverObject, DriverObjects, Slots, SocketOrFile, stale},
    system,
};
use io_uring::{opcode, squeue, types};
use op::{OpKind, Ops};
use receive::RECEIVES_PER_POLL;
use ring::Ring;
use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd, FromRawFd},
    path::Path,
    sync::Arc,
};

/// Polls that may be answered from existing completions before the kernel is asked again.
const POLLS_WITHOUT_ENTER: u32 = 8;
/// How long a listener pauses after accepting failed for lack of descriptors or memory, in nanoseconds.
const ACCEPT_REST_NS: Nanos = 100_000_000;
/// `user_data` of the waker, of finished blocking file operations, and of cancellations.
const WAKER: u64 = u64::MAX;
const FILES: u64 = u64::MAX - 1;
const CANCEL: u64 = u64::MAX - 2;

/// The most that one call moves; the rest of a longer piece follows by itself.
fn length_u32(piece: &libc::iovec) -> u32 {
    u32::try_from(piece.iov_len).unwrap_or(u32::MAX)
}

type Ready = Vec<Completion<TcpStream>>;

enum Body {
    Listener(TcpListener),
    /// A stream, and whether its last receive has drained the socket.
    Stream {
        socket: TcpStream,
        drained: bool,
    },
    File(OpenFile),
}

/// An object, and how many operations in flight use its descriptor.
struct Object {
    body: Body,
    in_flight: u32,
    closing: bool,
}

impl DriverObject for Object {
    fn socket_or_file(&self) -> Option<SocketOrFile<'_>> {
        let found = match &self.body {
            Body::Listener(socket) => SocketOrFile::Listener(socket),
            Body::Stream { socket, .. } => SocketOrFile::Stream(socket),
            Body::File(open) => SocketOrFile::File(open),
        };
        (!self.closing).then_some(found)
    }
}

/// [`Driver`] on `io_uring`. Belongs to the thread that opened it. See the module text.
pub struct UringDriver {
    ring: Ring,
    waker: Waker,
    objects: Slots<Object>,
    ops: Ops,
    /// Declared before `regions`: its threads must end before their memory is freed.
    files: Option<FilePool>,
    commits: Commits,
    regions: Regions,
    ready: Ready,
    idle: receive::Idle,
    /// Receives done since the last poll.
    received: u32,
    /// Listeners that pause after an error, and until when.
    resting: Vec<(Handle, Nanos)>,
    polls_without_enter: u32,
    /// A send or a flush waits to be submitted; the next poll must submit it.
    must_submit: bool,
    /// Pieces of the list that is being sent.
    pieces: Vec<libc::iovec>,
}

impl UringDriver {
    /// Opens a ring for the calling thread. Errors: the kernel has no `io_uring`, is too old, or forbids it here.
    pub fn new() -> io::Result<Self> {
        let mut driver = Self {
            ring: Ring::open()?,
            waker: Waker::new()?,
            objects: Slots::new(),
            ops: Ops::default(),
            files: None,
            commits: Commits::default(),
            regions: Regions::default(),
            ready: Vec::new(),
            idle: receive::Idle::default(),
            received: 0,
            resting: Vec::new(),
            polls_without_enter: 0,
            must_submit: false,
            pieces: Vec::new(),
        };
        driver.ring.watch(driver.waker.fd(), WAKER)?;
        Ok(driver)
    }

    fn insert(&mut self, body: Body) -> Handle {
        self.objects.insert(Object { body, in_flight: 0, closing: false })
    }

    fn body(&self, handle: Handle) -> Option<&Body> {
        self.objects.get(handle).filter(|object| !object.closing).map(|object| &object.body)
    }

    fn stream(&self, handle: Handle) -> Option<(&TcpStream, bool)> {
        match self.body(handle) {
            Some(Body::Stream { socket, drained }) => Some((socket, *drained)),
            _ => None,
        }
    }

    /// Starts the operation in slot `index`; its memory is ready.
    fn start(&mut self, index: u32, kind: OpKind, entry: squeue::Entry) {
        let op = self.ops.get(index);
        op.kind = Some(kind);
        let handle = op.handle;
        if let Some(object) = self.objects.get_mut(handle) {
            object.in_flight += 1;
        }
        if let Err(error) = self.ring.push(&entry.user_data(u64::from(index))) {
            self.finish(index, -error.raw_os_error().unwrap_or(libc::EIO));
        }
    }

    fn start_accept(&mut self, listener: Handle) {
        // Closed in the meantime: it accepts no more.
        let Some(Body::Listener(socket)) = self.body(listener) else { return };
        let fd = types::Fd(socket.as_raw_fd());
        let accept = opcode::Accept::new(fd, std::ptr::null_mut(), std::ptr::null_mut());
        let entry = accept.flags(libc::SOCK_CLOEXEC).build();
        let index = self.ops.take(listener);
        self.start(index, OpKind::Accept, entry);
    }

    /// Queues a read or write of the remaining pieces of the operation.
    fn start_transfer(&mut self, index: u32, kind: OpKind) {
        let op = self.ops.get(index);
        let handle = op.handle;
        let (pieces, count) = (op.pieces.as_ptr(), op.pieces.len().min(PIECES_PER_CALL) as u32);
        // A file that is being closed finishes its transfers, so a closing object is found too.
        let Some(Object { body: Body::File(open), .. }) = self.objects.get(handle) else {
            unreachable!("a file is kept until its last transfer has ended")
        };
        let fd = types::Fd(open.file.as_raw_fd());
        let entry = match kind {
            OpKind::Write { offset, moved, commit, .. } => {
                let flags = if commit == Commit::Through { libc::RWF_DSYNC } else { 0 };
                opcode::Writev::new(fd, pieces, count).offset(offset + moved as u64).rw_flags(flags).build()
            }
            OpKind::Read { offset, moved, .. } => {
                opcode::Readv::new(fd, pieces, count).offset(offset + moved as u64).build()
            }
            _ => unreachable!("only reads and writes are transfers"),
        };
        self.start(index, kind, entry);
    }

    fn transfer(&mut self, file: Handle, tag: u64, segs: &[Seg], kind: OpKind) {
        if !matches!(self.body(file), Some(Body::File(_))) {
            return self.ready.push(Completion::File { file, tag, result: Err(stale()) });
        }
        let index = self.ops.take(file);
        if let Err(error) = self.regions.resolve_all(segs, &mut self.ops.get(index).pieces) {
            self.ops.release(index);
            return self.commits.written(file, tag, kind.commit(), Err(error), &mut self.ready);
        }
        self.start_transfer(index, kind);
    }

    fn fallocate(&mut self, file: Handle, tag: u64, offset: u64, len: u64, mode: libc::c_int) {
        let Some(Body::File(open)) = self.body(file) else {
            return self.ready.push(Completion::File { file, tag, result: Err(stale()) });
        };
        let fallocate = opcode::Fallocate::new(types::Fd(open.file.as_raw_fd()), len);
        let entry = fallocate.offset(offset).mode(mode).build();
        let index = self.ops.take(file);
        self.start(index, OpKind::Fallocate { tag }, entry);
    }

    /// For block devices, the ring has no operation that guarantees zeros.
    fn discard_by_thread(&mut self, file: Handle, tag: u64, open: &OpenFile, request: FileRequest) {
        let pool = match self.files.take() {
            Some(pool) => Ok(pool),
            None => FilePool::start().and_then(|pool| self.ring.watch(pool.fd(), FILES).map(|()| pool)),
        };
        let result = match pool {
            Ok(mut pool) => {
                let result = pool.submit(open, file, tag, &[], request, &self.regions);
                self.files = Some(pool);
                result
            }
            Err(error) => Some(Err(error)),
        };
        if let Some(result) = result {
            self.ready.push(Completion::File { file, tag, result });
        }
    }

    /// Handles everything that the kernel has completed.
    fn reap(&mut self) -> io::Result<()> {
        while self.received < RECEIVES_PER_POLL
            && let Some((number, result)) = self.ring.completion()
        {
            match number {
                WAKER => {
                    if self.waker.acknowledge() {
                        self.ready.push(Completion::Woken);
                    }
                    self.ring.watch(self.waker.fd(), WAKER)?;
                }
                FILES => {
                    if let Some(files) = &mut self.files {
                        files.collect(&mut self.ready, &mut self.commits);
                        self.ring.watch(files.fd(), FILES)?;
                    }
                }
                CANCEL => {}
                number => self.finish(number as u32, result),
            }
        }
        self.start_flushes();
        Ok(())
    }

    /// Starts the flushes that written bytes wait for.
    fn start_flushes(&mut self) {
        while let Some((file, open)) = self.commits.next_flush() {
            self.start_sync(file, types::Fd(open.file.as_raw_fd()), OpKind::Flush);
            self.must_submit = true;
        }
    }

    fn start_sync(&mut self, handle: Handle, fd: types::Fd, kind: OpKind) {
        let fsync = opcode::Fsync::new(fd);
        let index = self.ops.take(handle);
        self.start(index, kind, fsync.flags(types::FsyncFlags::DATASYNC).build());
    }

    /// An operation has completed: resume it, or report it and free its slot.
    fn finish(&mut self, index: u32, result: i32) {
        let op = self.ops.get(index);
        let (handle, kind) = (op.handle, op.kind.take());
        let Some(kind) = kind else { unreachable!("each operation is completed once") };
        let closing = self.release_object(handle);
        let socket_op =
            matches!(kind, OpKind::Accept | OpKind::Connect | OpKind::Recv { .. } | OpKind::Send { .. });
        let result = match usize::try_from(result) {
            _ if closing && socket_op => Err(io::ErrorKind::ConnectionAborted.into()),
            Ok(count) => Ok(count),
            Err(_) => Err(io::Error::from_raw_os_error(-result)),
        };
        match kind {
            OpKind::Read { .. } | OpKind::Write { .. } => return self.finish_transfer(index, kind, result),
            OpKind::Recv { buffer_bytes } => return self.finish_await(index, handle, buffer_bytes, result),
            _ => self.ops.release(index),
        }
        match kind {
            OpKind::Accept => self.finish_accept(handle, result, closing),
            OpKind::Connect => self.finish_connect(handle, result),
            OpKind::Send { outgoing, mut progress } => match result {
                Ok(sent) if !progress.advance(&outgoing, sent) => self.start_send(handle, outgoing, progress),
                result => {
                    let result = result.map(|_| ());
                    self.ready.push(Completion::Sent { stream: handle, result, outgoing });
                }
            },
            OpKind::Sync { tag } | OpKind::Fallocate { tag } => {
                self.close_idle_file(handle);
                self.ready.push(Completion::File { file: handle, tag, result: result.map(|_| 0) });
            }
            OpKind::Flush => {
                self.commits.flushed(handle, &result, &mut self.ready);
                self.close_idle_file(handle);
            }
            OpKind::Recv { .. } | OpKind::Read { .. } | OpKind::Write { .. } => {}
        }
    }

    /// One operation less uses the object. Returns whether it is being closed; the last operation closes it.
    fn release_object(&mut self, handle: Handle) -> bool {
        let Some(object) = self.objects.get_mut(handle) else {
            unreachable!("an object is kept until its last operation has ended")
        };
        object.in_flight -= 1;
        let closing = object.closing;
        if closing && object.in_flight == 0 && !matches!(object.body, Body::File(_)) {
            self.objects.remove(handle);
        }
        closing
    }

    fn finish_transfer(&mut self, index: u32, mut kind: OpKind, result: io::Result<usize>) {
        let op = self.ops.get(index);
        let file = op.handle;
        let (OpKind::Read { tag, ref mut moved, .. } | OpKind::Write { tag, ref mut moved, .. }) = kind
        else {
            unreachable!("only reads and writes are transfers")
        };
        let result = match result {
            Ok(0) => Ok(*moved),
            Ok(count) => {
                *moved += count;
                if drop_front(&mut op.pieces, count) {
                    return self.start_transfer(index, kind);
                }
                Ok(*moved)
            }
            Err(error) => Err(error),
        };
        self.ops.release(index);
        self.commits.written(file, tag, kind.commit(), result, &mut self.ready);
        self.close_idle_file(file);
    }

    fn close_idle_file(&mut self, file: Handle) {
        // The next poll starts a flush that is due.
        let is_idle = |object: &Object| object.closing && object.in_flight == 0;
        if self.objects.get(file).is_some_and(is_idle) && !self.commits.is_flush_due(file) {
            self.objects.remove(file);
        }
    }

    fn finish_accept(&mut self, listener: Handle, result: io::Result<usize>, closing: bool) {
        match result {
            Ok(fd) => {
                // SAFETY: the kernel just opened this descriptor for us; it has no other owner.
                let socket = unsafe { TcpStream::from_raw_fd(fd as i32) };
                // A peer that has closed already has no address: drop it.
                if let Ok(peer) = socket.peer_addr() {
                    self.ready.push(Completion::Accepted { listener, result: Ok((socket, peer)) });
                }
                self.start_accept(listener);
            }
            Err(_) if closing => {}
            Err(error) if socket::is_shortage(&error) => {
                self.resting.push((listener, system::now_ns() + ACCEPT_REST_NS));
                self.ready.push(Completion::Accepted { listener, result: Err(error) });
            }
            Err(_) => self.start_accept(listener),
        }
    }

    fn finish_connect(&mut self, stream: Handle, result: io::Result<usize>) {
        let result = result.and_then(|_| {
            let (socket, _) = self.stream(stream).ok_or_else(stale)?;
            socket::take_error(socket)?;
            // The ring waits; on a non-blocking socket it would return an error instead.
            socket.set_nonblocking(false)
        });
        self.ready.push(Completion::Connected { stream, result });
    }

    fn end_rests(&mut self) {
        let now = system::now_ns();
        while let Some(at) = self.resting.iter().position(|&(_, until)| until <= now) {
            let (listener, _) = self.resting.swap_remove(at);
            self.start_accept(listener);
        }
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        self.polls_without_enter = 0;
        self.must_submit = false;
        let rest_ends = self.resting.iter().map(|&(_, until)| until).min();
        let wait = match (wait, rest_ends) {
            (Wait::Forever, Some(end)) => Wait::Until(end),
            (Wait::Until(until), Some(end)) => Wait::Until(until.min(end)),
            (wait, _) => wait,
        };
        self.ring.enter(wait)?;
        if rest_ends.is_some() {
            self.end_rests();
        }
        self.reap()
    }
}

impl Driver for UringDriver {
    type Socket = TcpStream;
    type Waker = Waker;

    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn now(&self) -> Nanos {
        system::now_ns()
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn wake(waker: &Waker) {
        waker.wake();
    }

    fn attach(&mut self, region: Arc<Region>) -> RegionId {
        self.regions.attach(region)
    }

    fn detach(&mut self, region: RegionId) {
        self.regions.detach(region);
    }

    fn listen(&mut self, addr: SocketAddr, options: &SocketOptions) -> io::Result<Handle> {
        let socket = socket::listen(addr, options)?;
        socket.set_nonblocking(false)?;
        let listener = self.insert(Body::Listener(socket));
        self.start_accept(listener);
        Ok(listener)
    }

    fn local_addr(&self, handle: Handle) -> io::Result<SocketAddr> {
        self.objects.local_addr(handle)
    }

    fn connect(&mut self, addr: SocketAddr, options: &SocketOptions) -> io::Result<Handle> {
        let socket = socket::open_for(addr, options)?;
        socket::start_connect(&socket, addr)?;
        let fd = types::Fd(socket.as_raw_fd());
        let stream = self.insert(Body::Stream { socket, drained: true });
        let index = self.ops.take(stream);
        self.start(index, OpKind::Connect, opcode::PollAdd::new(fd, libc::POLLOUT as u32).build());
        Ok(stream)
    }

    fn add_stream(&mut self, socket: TcpStream, options: &SocketOptions) -> io::Result<Handle> {
        socket.set_nonblocking(false)?;
        socket::set_before_connect(socket.as_fd(), options)?;
        socket::set_stream(socket.as_fd(), options)?;
        Ok(self.insert(Body::Stream { socket, drained: false }))
    }

    fn release(&mut self, stream: Handle) -> io::Result<TcpStream> {
        match self.objects.get(stream) {
            Some(Object { body: Body::Stream { .. }, in_flight: 0, closing: false }) => {}
            Some(_) => return Err(io::ErrorKind::ResourceBusy.into()),
            None => return Err(stale()),
        }
        match self.objects.remove(stream) {
            Some(Object { body: Body::Stream { socket, .. }, .. }) => Ok(socket),
            _ => Err(stale()),
        }
    }

    fn tcp_info(&self, stream: Handle) -> io::Result<TcpInfo> {
        self.objects.tcp_info(stream)
    }

    fn recv(&mut self, stream: Handle, direct: &[Seg], buffer: Buffer) {
        self.begin_recv(stream, direct, buffer);
    }

    fn retract(&mut self, stream: Handle) -> bool {
        self.retract_recv(stream)
    }

    fn send(&mut self, stream: Handle, outgoing: Box<Outgoing>) {
        self.begin_send(stream, outgoing);
    }

    fn open(&mut self, path: &Path, options: &FileOptions) -> io::Result<Handle> {
        let (file, kind) = file::open(path, options)?;
        Ok(self.insert(Body::File(OpenFile { file: Arc::new(file), kind, direct: options.direct })))
    }

    fn file_size(&self, file: Handle) -> io::Result<u64> {
        self.objects.file_size(file)
    }

    fn read_at(&mut self, file: Handle, tag: u64, segs: &[Seg], offset: u64) {
        self.transfer(file, tag, segs, OpKind::Read { tag, offset, moved: 0 });
    }

    fn write_at(&mut self, file: Handle, tag: u64, segs: &[Seg], offset: u64, durable: bool) {
        let commit = match self.objects.get(file) {
            Some(Object { body: Body::File(open), closing: false, .. }) if durable => {
                self.commits.begin(file, open)
            }
            _ => Commit::None,
        };
        self.transfer(file, tag, segs, OpKind::Write { tag, offset, moved: 0, commit });
    }

    fn sync(&mut self, file: Handle, tag: u64) {
        let Some(Body::File(open)) = self.body(file) else {
            return self.ready.push(Completion::File { file, tag, result: Err(stale()) });
        };
        let fd = types::Fd(open.file.as_raw_fd());
        self.start_sync(file, fd, OpKind::Sync { tag });
    }

    fn discard(&mut self, file: Handle, tag: u64, offset: u64, len: u64) {
        let Some(Body::File(open)) = self.body(file) else {
            return self.ready.push(Completion::File { file, tag, result: Err(stale()) });
        };
        if open.kind == FileKind::Block {
            let open = open.clone();
            return self.discard_by_thread(file, tag, &open, FileRequest::Discard { offset, len });
        }
        let mode = file::discard_mode(open.kind);
        self.fallocate(file, tag, offset, len, mode);
    }

    fn allocate(&mut self, file: Handle, tag: u64, offset: u64, len: u64) {
        self.fallocate(file, tag, offset, len, 0);
    }

    fn close(&mut self, handle: Handle) {
        // A handle may be closed twice.
        let Some(object) = self.objects.get_mut(handle).filter(|object| !object.closing) else { return };
        object.closing = true;
        if object.in_flight == 0 {
            self.objects.remove(handle);
            return;
        }
        for index in self.ops.cancellable(handle) {
            let entry = opcode::AsyncCancel::new(u64::from(index)).build().user_data(CANCEL);
            // The queue can refuse only if the ring is broken, which the next poll reports.
            let _ = self.ring.push(&entry);
        }
    }

    fn poll(&mut self, wait: Wait, out: &mut Ready) -> io::Result<()> {
        self.polls_without_enter += 1;
        self.received = 0;
        self.reap()?;
        if self.ready.is_empty() {
            self.enter(wait)?;
        } else if self.must_submit || self.polls_without_enter >= POLLS_WITHOUT_ENTER {
            self.enter(Wait::Never)?;
        }
        out.append(&mut self.ready);
        Ok(())
    }
}

impl Drop for UringDriver {
    /// Waits for every operation before their memory is freed.
    fn drop(&mut self) {
        let everything: Vec<Handle> = self.objects.handles().collect();
        for handle in everything {
            self.close(handle);
        }
        while self.ops.in_flight() > 0 {
            self.ready.clear();
            if self.enter(Wait::Forever).is_err() {
                // If the ring cannot report its operations any more, a leak is the only safe choice.
                std::mem::forget(std::mem::take(&mut self.ops));
                std::mem::forget(std::mem::take(&mut self.regions));
                return;
            }
        }
    }
}
