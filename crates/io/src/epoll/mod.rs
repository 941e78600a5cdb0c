//! The readiness driver: edge-triggered epoll for sockets, a few threads for files. Works on every Linux.
//!
//! One busy connection costs one `epoll_wait`, one `recvmsg` and one `sendmsg` per batch:
//!
//! - A receive that filled less than it could has drained the socket. So the next one waits for an edge without asking
//!   the kernel again (unless the peer has closed its side, because then there is no further edge).
//! - A send is tried at once; the rest waits for the writable edge.
//! - While there are completions, the kernel is not asked for more, but at least every few polls, so that one busy
//!   stream cannot starve the others.

mod stream;

use crate::{
    Buffer, Completion, Driver, FileOptions, Handle, Nanos, Outgoing, Region, RegionId, Seg, SocketOptions,
    TcpInfo, Wait, Waker,
    file::{
        self,
        commit::{Commit, Commits},
    },
    gather::Regions,
    net::socket,
    pool::{FilePool, FileRequest, OpenFile},
    slots::{DriverObject, DriverObjects, Slots, SocketOrFile, stale},
    system,
};
use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd},
    path::Path,
    sync::Arc,
};
use stream::{SendOp, Stream};

/// Readiness events read from the kernel at a time.
const EVENTS_PER_WAIT: usize = 256;
/// Polls that may be answered from existing completions before the kernel is asked again.
const POLLS_WITHOUT_WAIT: u32 = 8;
/// How long a listener pauses after accepting failed for lack of descriptors or memory, in nanoseconds.
const ACCEPT_REST_NS: Nanos = 100_000_000;
/// Connections accepted at a time, so that a flood of them does not delay others for longer.
const ACCEPTS_AT_A_TIME: usize = 32;
/// Token of the waker; handles use a generation in the upper half and cannot reach it.
const WAKER_TOKEN: u64 = u64::MAX;
/// Token of finished file operations.
const FILES_TOKEN: u64 = u64::MAX - 1;

type Ready = Vec<Completion<TcpStream>>;

#[derive(Debug)]
struct Listener {
    socket: TcpListener,
    resting_until: Option<Nanos>,
}

#[derive(Debug)]
enum Object {
    Listener(Listener),
    Stream(Box<Stream>),
    File(OpenFile),
}

impl DriverObject for Object {
    fn socket_or_file(&self) -> Option<SocketOrFile<'_>> {
        Some(match self {
            Self::Listener(listener) => SocketOrFile::Listener(&listener.socket),
            Self::Stream(stream) => SocketOrFile::Stream(&stream.socket),
            Self::File(open) => SocketOrFile::File(open),
        })
    }
}

/// [`Driver`] on epoll. See the module text.
pub struct EpollDriver {
    epoll: OwnedFd,
    waker: Waker,
    objects: Slots<Object>,
    /// Declared before `regions`: its threads must end before their memory is freed.
    files: Option<FilePool>,
    commits: Commits,
    regions: Regions,
    /// Completions for the next poll.
    ready: Ready,
    /// Streams with a receive to try, because their socket may hold bytes.
    readable: Vec<Handle>,
    /// Listeners that pause after an error, or have more to accept.
    resting: Vec<Handle>,
    events: Box<[libc::epoll_event]>,
    pieces: Vec<libc::iovec>,
    polls_without_wait: u32,
}

// SAFETY: the raw pointers in `pieces` are scratch space that is rebuilt before each use.
unsafe impl Send for EpollDriver {}

impl EpollDriver {
    /// Opens the driver. Errors: out of file descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed; the descriptor is owned from here on.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let driver = Self {
            epoll,
            waker: Waker::new()?,
            objects: Slots::new(),
            regions: Regions::default(),
            ready: Vec::new(),
            readable: Vec::new(),
            resting: Vec::new(),
            files: None,
            commits: Commits::default(),
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_PER_WAIT].into_boxed_slice(),
            pieces: Vec::new(),
            polls_without_wait: 0,
        };
        driver.watch(driver.waker.fd().as_raw_fd(), WAKER_TOKEN, libc::EPOLLIN)?;
        Ok(driver)
    }

    fn watch(&self, fd: RawFd, token: u64, events: libc::c_int) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32 | libc::EPOLLET as u32, u64: token };
        // SAFETY: the kernel reads one event.
        let result =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn unwatch(&self, fd: RawFd) -> io::Result<()> {
        let event: *mut libc::epoll_event = std::ptr::null_mut();
        // SAFETY: the kernel reads no event when it removes one.
        let result = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn watch_stream(&mut self, stream: Stream) -> io::Result<Handle> {
        let fd = stream.socket.as_raw_fd();
        let handle = self.objects.insert(Object::Stream(Box::new(stream)));
        let events = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP;
        if let Err(error) = self.watch(fd, token_of(handle), events) {
            self.objects.remove(handle);
            return Err(error);
        }
        Ok(handle)
    }

    fn stream_mut(&mut self, handle: Handle) -> Option<&mut Stream> {
        match self.objects.get_mut(handle) {
            Some(Object::Stream(stream)) => Some(stream),
            _ => None,
        }
    }

    fn file_request(&mut self, file: Handle, tag: u64, segs: &[Seg], request: FileRequest) {
        let Some(Object::File(open)) = self.objects.get(file) else {
            return self.ready.push(Completion::File { file, tag, result: Err(stale()) });
        };
        let open = open.clone();
        self.submit(&open, file, tag, segs, request);
    }

    fn submit(&mut self, open: &OpenFile, file: Handle, tag: u64, segs: &[Seg], request: FileRequest) {
        let result = match self.files.take().map_or_else(|| self.start_files(), Ok) {
            Ok(mut files) => {
                let result = files.submit(open, file, tag, segs, request, &self.regions);
                self.files = Some(files);
                result
            }
            Err(error) => Some(Err(error)),
        };
        if let Some(result) = result {
            request.done(file, tag, result, &mut self.commits, &mut self.ready);
        }
    }

    /// Starts the flushes that written bytes wait for.
    fn start_flushes(&mut self) {
        while let Some((file, open)) = self.commits.next_flush() {
            self.submit(&open, file, 0, &[], FileRequest::Flush);
        }
    }

    fn start_files(&self) -> io::Result<FilePool> {
        let pool = FilePool::start()?;
        self.watch(pool.fd().as_raw_fd(), FILES_TOKEN, libc::EPOLLIN)?;
        Ok(pool)
    }

    /// Asks the kernel for readiness and handles it.
    fn wait(&mut self, wait: Wait) -> io::Result<()> {
        self.polls_without_wait = 0;
        let wait = match (wait, self.rest_ends()) {
            (Wait::Forever, Some(end)) => Wait::Until(end),
            (Wait::Until(until), Some(end)) => Wait::Until(until.min(end)),
            (wait, _) => wait,
        };
        let count = self.epoll_wait(wait)?;
        for at in 0..count {
            let libc::epoll_event { events, u64: token } = self.events[at];
            match token {
                WAKER_TOKEN => {
                    if self.waker.acknowledge() {
                        self.ready.push(Completion::Woken);
                    }
                }
                FILES_TOKEN => {
                    if let Some(files) = &mut self.files {
                        files.collect(&mut self.ready, &mut self.commits);
                    }
                }
                token => self.note_ready(handle_of(token), events),
            }
        }
        self.end_rests();
        Ok(())
    }

    fn epoll_wait(&mut self, wait: Wait) -> io::Result<usize> {
        let timeout = match wait {
            Wait::Never => Some(0),
            Wait::Until(until) => Some(until.saturating_sub(system::now_ns())),
            Wait::Forever => None,
        };
        let timeout = timeout.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        // SAFETY: `events` has room for the length passed; the time lives across the call; no signal mask.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_PER_WAIT,
                timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        if count >= 0 {
            return Ok(count as usize);
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error if error.raw_os_error() == Some(libc::ENOSYS) => self.epoll_wait_ms(timeout),
            error => Err(error),
        }
    }

    /// Before Linux 5.11: whole milliseconds, rounded up so that a poll never returns early in a tight loop.
    fn epoll_wait_ms(&mut self, timeout: Option<libc::timespec>) -> io::Result<usize> {
        let timeout_ms = timeout.map_or(-1, |time| {
            let ms = time.tv_sec.saturating_mul(1000).saturating_add((time.tv_nsec + 999_999) / 1_000_000);
            libc::c_int::try_from(ms).unwrap_or(libc::c_int::MAX)
        });
        let room = EVENTS_PER_WAIT as libc::c_int;
        // SAFETY: `events` has room for the length passed.
        let count =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), room, timeout_ms) };
        if count >= 0 {
            return Ok(count as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) }
    }

    fn note_ready(&mut self, handle: Handle, events: u32) {
        match self.objects.get_mut(handle) {
            Some(Object::Stream(stream)) => {
                stream.note_ready(handle, events, &mut self.ready);
                if stream.wants_recv() {
                    self.readable.push(handle);
                }
                stream.try_send(handle, &self.regions, &mut self.pieces, &mut self.ready);
            }
            Some(Object::Listener(_)) if !self.resting.contains(&handle) => self.accept_some(handle),
            _ => {}
        }
    }

    fn accept_some(&mut self, handle: Handle) {
        // Closed while it rested.
        let Some(Object::Listener(listener)) = self.objects.get_mut(handle) else { return };
        for _ in 0..ACCEPTS_AT_A_TIME {
            match listener.socket.accept() {
                Ok(accepted) => {
                    self.ready.push(Completion::Accepted { listener: handle, result: Ok(accepted) });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The connection was closed already or its path reported an error; the next one may work.
                Err(error) if !socket::is_shortage(&error) => {}
                Err(error) => {
                    listener.resting_until = Some(system::now_ns() + ACCEPT_REST_NS);
                    self.resting.push(handle);
                    return self.ready.push(Completion::Accepted { listener: handle, result: Err(error) });
                }
            }
        }
        // The remaining connections cause no further edge: the next wait continues with them.
        listener.resting_until = None;
        self.resting.push(handle);
    }

    fn rest_ends(&self) -> Option<Nanos> {
        let ends = self.resting.iter().map(|&handle| match self.objects.get(handle) {
            Some(Object::Listener(listener)) => listener.resting_until.unwrap_or(0),
            _ => 0,
        });
        ends.min()
    }

    fn end_rests(&mut self) {
        if self.resting.is_empty() || self.rest_ends() > Some(system::now_ns()) {
            return;
        }
        for handle in std::mem::take(&mut self.resting) {
            self.accept_some(handle);
        }
    }
}

impl Driver for EpollDriver {
    type Socket = TcpStream;
    type Waker = Waker;

    fn name(&self) -> &'static str {
        "epoll"
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
        let fd = socket.as_raw_fd();
        let handle = self.objects.insert(Object::Listener(Listener { socket, resting_until: None }));
        self.watch(fd, token_of(handle), libc::EPOLLIN).inspect_err(|_| {
            self.objects.remove(handle);
        })?;
        Ok(handle)
    }

    fn local_addr(&self, handle: Handle) -> io::Result<SocketAddr> {
        self.objects.local_addr(handle)
    }

    fn connect(&mut self, addr: SocketAddr, options: &SocketOptions) -> io::Result<Handle> {
        let socket = socket::open_for(addr, options)?;
        let connected = socket::start_connect(&socket, addr)?;
        let handle = self.watch_stream(Stream::new(socket, !connected))?;
        if connected {
            self.ready.push(Completion::Connected { stream: handle, result: Ok(()) });
        }
        Ok(handle)
    }

    fn add_stream(&mut self, socket: TcpStream, options: &SocketOptions) -> io::Result<Handle> {
        socket.set_nonblocking(true)?;
        socket::set_before_connect(socket.as_fd(), options)?;
        socket::set_stream(socket.as_fd(), options)?;
        self.watch_stream(Stream::new(socket, false))
    }

    fn release(&mut self, stream: Handle) -> io::Result<TcpStream> {
        let fd = match self.objects.get(stream) {
            Some(Object::Stream(stream)) if stream.is_idle() => stream.socket.as_raw_fd(),
            Some(_) => return Err(io::ErrorKind::ResourceBusy.into()),
            None => return Err(stale()),
        };
        self.unwatch(fd)?;
        match self.objects.remove(stream) {
            Some(Object::Stream(stream)) => Ok(stream.socket),
            _ => Err(stale()),
        }
    }

    fn tcp_info(&self, stream: Handle) -> io::Result<TcpInfo> {
        self.objects.tcp_info(stream)
    }

    fn recv(&mut self, stream: Handle, direct: &[Seg], buffer: Buffer) {
        let Some(Object::Stream(object)) = self.objects.get_mut(stream) else {
            return self.ready.push(Completion::Received { stream, result: Err(stale()), buffer });
        };
        if let Err((error, buffer)) = object.start_recv(buffer, direct, &self.regions) {
            return self.ready.push(Completion::Received { stream, result: Err(error), buffer });
        }
        if object.wants_recv() {
            self.readable.push(stream);
        }
    }

    fn retract(&mut self, stream: Handle) -> bool {
        self.stream_mut(stream).is_some_and(Stream::retract)
    }

    fn send(&mut self, stream: Handle, outgoing: Box<Outgoing>) {
        let Some(Object::Stream(object)) = self.objects.get_mut(stream) else {
            return self.ready.push(Completion::Sent { stream, result: Err(stale()), outgoing });
        };
        object.start_send(SendOp::new(outgoing));
        object.try_send(stream, &self.regions, &mut self.pieces, &mut self.ready);
    }

    fn open(&mut self, path: &Path, options: &FileOptions) -> io::Result<Handle> {
        let (file, kind) = file::open(path, options)?;
        let open = OpenFile { file: Arc::new(file), kind, direct: options.direct };
        Ok(self.objects.insert(Object::File(open)))
    }

    fn file_size(&self, file: Handle) -> io::Result<u64> {
        self.objects.file_size(file)
    }

    fn read_at(&mut self, file: Handle, tag: u64, segs: &[Seg], offset: u64) {
        self.file_request(file, tag, segs, FileRequest::Read { offset });
    }

    fn write_at(&mut self, file: Handle, tag: u64, segs: &[Seg], offset: u64, durable: bool) {
        let commit = match self.objects.get(file) {
            Some(Object::File(open)) if durable => self.commits.begin(file, open),
            _ => Commit::None,
        };
        self.file_request(file, tag, segs, FileRequest::Write { offset, commit });
    }

    fn sync(&mut self, file: Handle, tag: u64) {
        self.file_request(file, tag, &[], FileRequest::Sync);
    }

    fn discard(&mut self, file: Handle, tag: u64, offset: u64, len: u64) {
        self.file_request(file, tag, &[], FileRequest::Discard { offset, len });
    }

    fn allocate(&mut self, file: Handle, tag: u64, offset: u64, len: u64) {
        self.file_request(file, tag, &[], FileRequest::Allocate { offset, len });
    }

    fn close(&mut self, handle: Handle) {
        if let Some(Object::Stream(stream)) = self.objects.remove(handle) {
            stream.abort(handle, &mut self.ready);
        }
    }

    fn poll(&mut self, wait: Wait, out: &mut Ready) -> io::Result<()> {
        self.polls_without_wait += 1;
        self.start_flushes();
        if self.ready.is_empty() && self.readable.is_empty() {
            self.wait(wait)?;
        } else if self.polls_without_wait >= POLLS_WITHOUT_WAIT {
            self.wait(Wait::Never)?;
        }
        while let Some(handle) = self.readable.pop() {
            let mut ready = std::mem::take(&mut self.ready);
            if let Some(stream) = self.stream_mut(handle) {
                stream.try_recv(handle, &mut ready);
            }
            self.ready = ready;
        }
        self.start_flushes();
        out.append(&mut self.ready);
        Ok(())
    }
}

fn token_of(handle: Handle) -> u64 {
    u64::from(handle.generation()) << 32 | u64::from(handle.index())
}

fn handle_of(token: u64) -> Handle {
    Handle::new(token as u32, (token >> 32) as u32)
}
