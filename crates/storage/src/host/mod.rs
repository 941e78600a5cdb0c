//! Connects the tasks of a thread with its driver: file disks, and time.
//!
//! Tasks do not see the driver. A file disk queues its requests. Between two rounds of tasks the [`Host`] gives all of them
//! to the driver, which submits them with one system call. So an operation costs no system call of its own, and disks need
//! no type parameter.

mod files;
mod memory;
mod queue;

pub use files::Files;
pub(crate) use queue::{Queue, Request, Transfer, Work};

use crate::{
    disk::{FileConfig, FileDisk, OpKind},
    runtime::{Executor, Runtime},
};
use linerate_io::{Completion, Driver, FileOptions, Handle, Nanos, Seg, Wait, WaitMode, Waiter};
use memory::{Memory, MemoryPiece};
use queue::Opened;
use std::{cell::RefCell, future::Future, io, path::Path, rc::Rc};

/// How many bytes of zeros are written at a time if the file system has no discard.
const CLEAR_BYTES: u64 = 1 << 20;

/// One thread's driver and executor. Its owner calls [`Host::turn`] in a loop.
pub struct Host<D: Driver> {
    driver: D,
    waiter: Waiter,
    executor: Executor,
    queue: Rc<Queue>,
    flights: Flights,
    memory: Memory,
    segs: Vec<Seg>,
    polled: Vec<Completion<D::Socket>>,
    /// Completions for the owner that arrived while [`Host::block_on`] ran.
    held: Vec<Completion<D::Socket>>,
}

impl<D: Driver> Host<D> {
    /// A host without tasks, which sleeps while it waits.
    pub fn new(driver: D) -> Self {
        Self::waiting(driver, WaitMode::Block)
    }

    /// A host without tasks that waits in this way.
    pub fn waiting(driver: D, mode: WaitMode) -> Self {
        let mut executor = Executor::new();
        executor.run(driver.now());
        Self {
            driver,
            waiter: Waiter::new(mode),
            executor,
            queue: Rc::default(),
            flights: Flights::default(),
            memory: Memory::default(),
            segs: Vec::new(),
            polled: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Runtime for tasks.
    pub fn runtime(&self) -> Runtime {
        self.executor.runtime()
    }

    /// Opens file disks; tasks can use it too.
    pub fn files(&self) -> Files {
        Files::new(Rc::clone(&self.queue), self.runtime())
    }

    /// The driver, for everything that is not a disk. Completions of the owner's file operations are returned by
    /// [`Host::turn`], like all others.
    pub fn driver(&mut self) -> &mut D {
        &mut self.driver
    }

    /// Opens a file disk; see [`Files::open`].
    pub fn open_file(&mut self, config: &FileConfig) -> io::Result<FileDisk> {
        let (files, config) = (self.files(), config.clone());
        self.block_on(async move { files.open(&config).await })?
    }

    /// Runs tasks and submits their file requests. Then waits for a completion as `wait` says (a sleeping task may end
    /// the wait), and runs the tasks that waited for it. Completions that do not belong to a file disk are appended to
    /// `out`.
    ///
    /// Only the driver's waker ends a wait from another thread; a task's waker does not.
    pub fn turn(&mut self, wait: Wait, out: &mut Vec<Completion<D::Socket>>) -> io::Result<()> {
        self.run_tasks()?;
        out.append(&mut self.held);
        let wait = match (wait, self.executor.next_timer()) {
            _ if !out.is_empty() => Wait::Never,
            (Wait::Forever, Some(at)) => Wait::Until(at),
            (Wait::Until(until), Some(at)) => Wait::Until(until.min(at)),
            (wait, _) => wait,
        };
        let mut polled = std::mem::take(&mut self.polled);
        self.waiter.poll(&mut self.driver, wait, &mut polled)?;
        for completion in polled.drain(..) {
            match completion {
                Completion::File { file, tag, result } if self.flights.is_ours(file, tag) => {
                    self.complete(tag as usize, result);
                }
                other => out.push(other),
            }
        }
        self.polled = polled;
        self.run_tasks()
    }

    /// Runs `future` to its end. It must not depend on what the owner does between turns.
    pub fn block_on<T: 'static>(&mut self, future: impl Future<Output = T> + 'static) -> io::Result<T> {
        let result = Rc::new(RefCell::new(None));
        let into = Rc::clone(&result);
        self.runtime().spawn(async move {
            let value = future.await;
            into.replace(Some(value));
        });
        let mut held = Vec::new();
        let value = loop {
            self.turn(Wait::Never, &mut held)?;
            if let Some(value) = result.take() {
                break value;
            }
            let mut late = Vec::new();
            self.turn(Wait::Forever, &mut late)?;
            held.append(&mut late);
            if let Some(value) = result.take() {
                break value;
            }
        };
        self.held = held;
        Ok(value)
    }

    fn run_tasks(&mut self) -> io::Result<()> {
        loop {
            self.executor.run(self.driver.now());
            if !self.submit()? {
                return Ok(());
            }
        }
    }

    /// Submits the queued requests. Returns whether a task has an answer already.
    fn submit(&mut self) -> io::Result<bool> {
        let mut has_answered = false;
        while let Some(request) = self.queue.pop() {
            match request {
                Request::Open { path, options, done } => {
                    // The caller has stopped waiting and would not close it.
                    if !done.is_canceled() {
                        let _ = done.send(self.open(&path, &options));
                        has_answered = true;
                    }
                }
                Request::Close(file) => self.driver.close(file),
                Request::Transfer(transfer) => {
                    let mut pieces = self.flights.pieces();
                    if !self.memory.take(transfer.buffer_len(), &mut self.driver, &mut pieces)? {
                        self.flights.keep(pieces);
                        self.queue.put_back(Request::Transfer(transfer));
                        break;
                    }
                    let index = self.flights.insert(Flight { transfer, pieces });
                    self.start(index);
                }
            }
        }
        Ok(has_answered)
    }

    fn open(&mut self, path: &Path, options: &FileOptions) -> io::Result<Opened> {
        let handle = self.driver.open(path, options)?;
        match self.driver.file_size(handle) {
            Ok(size_bytes) => Ok(Opened { handle, size_bytes }),
            Err(error) => {
                self.driver.close(handle);
                Err(error)
            }
        }
    }

    /// Hands an operation to the driver.
    fn start(&mut self, index: usize) {
        let Self { driver, memory, segs, flights, .. } = self;
        let Some(Flight { transfer, pieces }) = flights.get(index) else {
            unreachable!("an operation keeps its slot until it is complete");
        };
        let (file, tag, offset) = (transfer.file.handle(), index as u64, transfer.offset);
        memory.segments(pieces, transfer.buffer_len(), segs);
        match &transfer.work {
            Work::Read { .. } => driver.read_at(file, tag, segs, offset),
            Work::Write { data, durable, .. } => {
                memory.write(pieces, data);
                driver.write_at(file, tag, segs, offset, *durable);
            }
            Work::Sync { .. } => driver.sync(file, tag),
            Work::Discard { len, .. } => driver.discard(file, tag, offset, *len),
            Work::Reserve { len, .. } => driver.allocate(file, tag, offset, *len),
            Work::Clear { .. } => {
                memory.clear(pieces, transfer.buffer_len());
                driver.write_at(file, tag, segs, offset, false);
            }
        }
    }

    /// Passes on the result of an operation.
    fn complete(&mut self, index: usize, result: io::Result<usize>) {
        let Some(Flight { mut transfer, mut pieces }) = self.flights.take(index) else {
            unreachable!("an operation completes once");
        };
        let len = transfer.buffer_len();
        let error = match result {
            Ok(moved) if moved == len => None,
            Ok(_) if matches!(transfer.work, Work::Read { .. }) => Some(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Some(io::ErrorKind::WriteZero.into()),
            Err(error) => Some(error),
        };
        if error.is_none()
            && let Work::Read { into, .. } = &mut transfer.work
        {
            self.memory.read(&pieces, into);
        }
        self.memory.give_back(&mut pieces);
        self.flights.keep(pieces);
        if let Some(rest) = transfer.finish(self.driver.now(), error) {
            self.queue.put_back(Request::Transfer(rest));
        }
    }
}

impl Transfer {
    /// Memory between task and kernel.
    fn buffer_len(&self) -> usize {
        match &self.work {
            Work::Read { into, .. } => into.len(),
            Work::Write { data, .. } => data.len(),
            Work::Clear { left, .. } => (*left).min(CLEAR_BYTES) as usize,
            Work::Sync { .. } | Work::Discard { .. } | Work::Reserve { .. } => 0,
        }
    }

    /// Completes the request, unless work is left.
    fn finish(mut self, now: Nanos, error: Option<io::Error>) -> Option<Self> {
        let moved = self.buffer_len() as u64;
        if let Some(error) = &error
            && error.kind() == io::ErrorKind::Unsupported
            && let Work::Discard { len, done } = self.work
        {
            return Some(Self { work: Work::Clear { left: len, len, done }, ..self });
        }
        if let Work::Clear { left, .. } = &mut self.work
            && error.is_none()
            && *left > moved
        {
            *left -= moved;
            self.offset += moved;
            return Some(self);
        }
        let counted = match &self.work {
            Work::Read { .. } => Some((OpKind::Read, moved)),
            Work::Write { .. } => Some((OpKind::Write, moved)),
            Work::Sync { .. } => Some((OpKind::Flush, 0)),
            Work::Discard { len, .. } | Work::Clear { len, .. } => Some((OpKind::Discard, *len)),
            Work::Reserve { .. } => None,
        };
        match counted {
            Some((kind, len)) => self.file.finish(kind, self.begun, now, len, error.as_ref()),
            None => self.file.reserved(now, error.as_ref()),
        }
        let result = error.map_or(Ok(()), Err);
        // If the receiver is gone, the caller has stopped waiting; the operation was done nevertheless.
        match self.work {
            Work::Read { into, done } => _ = done.send(result.map(|()| into)),
            Work::Write { done, .. }
            | Work::Sync { done }
            | Work::Discard { done, .. }
            | Work::Reserve { done, .. }
            | Work::Clear { done, .. } => _ = done.send(result),
        }
        None
    }
}

/// One operation that the driver works on.
struct Flight {
    transfer: Transfer,
    pieces: Vec<MemoryPiece>,
}

/// The operations in flight, each at the index that is its tag.
#[derive(Default)]
struct Flights {
    entries: Vec<Option<Flight>>,
    free: Vec<usize>,
    /// Spent vectors, used again.
    spare: Vec<Vec<MemoryPiece>>,
}

impl Flights {
    fn insert(&mut self, flight: Flight) -> usize {
        let index = self.free.pop().unwrap_or(self.entries.len());
        if index == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[index] = Some(flight);
        index
    }

    fn get(&self, index: usize) -> Option<&Flight> {
        self.entries.get(index)?.as_ref()
    }

    fn take(&mut self, index: usize) -> Option<Flight> {
        let flight = self.entries.get_mut(index)?.take()?;
        self.free.push(index);
        Some(flight)
    }

    /// The owner may use files of its own, with any tags.
    fn is_ours(&self, file: Handle, tag: u64) -> bool {
        let flight = usize::try_from(tag).ok().and_then(|index| self.get(index));
        flight.is_some_and(|flight| flight.transfer.file.handle() == file)
    }

    fn pieces(&mut self) -> Vec<MemoryPiece> {
        self.spare.pop().unwrap_or_default()
    }

    fn keep(&mut self, pieces: Vec<MemoryPiece>) {
        self.spare.push(pieces);
    }
}
