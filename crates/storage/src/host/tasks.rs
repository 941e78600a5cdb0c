//! Tasks, and what they ask of a driver, without the driver.

use super::{
    Files,
    memory::{Memory, MemoryPiece},
    queue::{Opened, Queue, Request, Transfer, Work},
};
use crate::{
    disk::OpKind,
    runtime::{Executor, Runtime},
};
use linerate_io::{Completion, Driver, FileOptions, Handle, Nanos, Seg, Wait, Waiter};
use std::{cell::RefCell, io, path::Path, rc::Rc};

/// How many bytes of zeros are written at a time if the file system has no discard.
const CLEAR_BYTES: u64 = 1 << 20;

/// The tasks of one thread. Their driver is an argument: always the same one.
#[derive(Debug, Default)]
pub struct Tasks {
    executor: Executor,
    queue: Rc<Queue>,
    flights: Flights,
    memory: Memory,
    segs: Vec<Seg>,
}

impl Tasks {
    /// None yet, on a clock that says `now`.
    pub fn new(now: Nanos) -> Self {
        let mut tasks = Self::default();
        tasks.executor.run(now);
        tasks
    }

    /// Runtime for tasks.
    pub fn runtime(&self) -> Runtime {
        self.executor.runtime()
    }

    /// Opens file disks; tasks can use it too.
    pub fn files(&self) -> Files {
        Files::new(Rc::clone(&self.queue), self.runtime())
    }

    /// The executor's clock moves to `now`. For work that another thread does between two runs.
    pub fn advance(&self, now: Nanos) {
        self.executor.advance(now);
    }

    /// Whether there is more to run, or earlier, than there was at the end of the last run.
    pub fn has_news(&self) -> bool {
        self.executor.has_news()
    }

    /// How long the driver may wait: no longer than until the next sleeping task must wake.
    pub fn until(&self, wait: Wait) -> Wait {
        match (wait, self.executor.next_timer()) {
            (Wait::Forever, Some(at)) => Wait::Until(at),
            (Wait::Until(until), Some(at)) => Wait::Until(until.min(at)),
            (wait, _) => wait,
        }
    }

    /// Runs `future` to its end. Completions that do not belong to a file disk are appended to `out`.
    pub fn block_on<D: Driver, T: 'static>(
        &mut self,
        driver: &mut D,
        waiter: &mut Waiter,
        out: &mut Vec<Completion<D::Socket>>,
        future: impl Future<Output = T> + 'static,
    ) -> io::Result<T> {
        let result = Rc::new(RefCell::new(None));
        let into = Rc::clone(&result);
        self.runtime().spawn(async move {
            let value = future.await;
            into.replace(Some(value));
        });
        loop {
            self.run(driver)?;
            if let Some(value) = result.take() {
                return Ok(value);
            }
            self.wait(driver, waiter, Wait::Forever, out)?;
        }
    }

    /// Waits for completions, no longer than until a task must wake. Those that do not belong to a file disk are appended
    /// to `out`.
    pub(super) fn wait<D: Driver>(
        &mut self,
        driver: &mut D,
        waiter: &mut Waiter,
        wait: Wait,
        out: &mut Vec<Completion<D::Socket>>,
    ) -> io::Result<()> {
        let first = out.len();
        waiter.poll(driver, self.until(wait), out)?;
        let (polled, now) = (out.split_off(first), driver.now());
        out.extend(polled.into_iter().filter_map(|completion| self.complete(completion, now)));
        Ok(())
    }

    /// Runs tasks until all of them wait, and submits their file requests.
    pub fn run<D: Driver>(&mut self, driver: &mut D) -> io::Result<()> {
        loop {
            self.executor.run(driver.now());
            if !self.submit(driver)? {
                return Ok(());
            }
        }
    }

    /// Submits the queued requests. Returns whether a task has an answer already.
    fn submit<D: Driver>(&mut self, driver: &mut D) -> io::Result<bool> {
        let mut has_answered = false;
        while let Some(request) = self.queue.pop() {
            match request {
                Request::Open { path, options, done } => {
                    // The caller has stopped waiting and would not close it.
                    if !done.is_canceled() {
                        let _ = done.send(open(driver, &path, &options));
                        has_answered = true;
                    }
                }
                Request::Close(file) => driver.close(file),
                Request::Transfer(transfer) => {
                    let mut pieces = self.flights.pieces();
                    if !self.memory.take(transfer.buffer_len(), driver, &mut pieces)? {
                        self.flights.keep(pieces);
                        self.queue.put_back(Request::Transfer(transfer));
                        break;
                    }
                    let index = self.flights.insert(Flight { transfer, pieces });
                    self.start(index, driver);
                }
            }
        }
        Ok(has_answered)
    }

    /// Hands an operation to the driver.
    fn start<D: Driver>(&mut self, index: usize, driver: &mut D) {
        let Self { memory, segs, flights, .. } = self;
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

    /// Passes the result of an operation of a file disk on; gives other completions back.
    pub fn complete<S>(&mut self, completion: Completion<S>, now: Nanos) -> Option<Completion<S>> {
        match completion {
            Completion::File { file, tag, result } if self.flights.is_ours(file, tag) => {
                self.end(tag as usize, result, now);
                None
            }
            other => Some(other),
        }
    }

    /// Passes on the result of an operation.
    fn end(&mut self, index: usize, result: io::Result<usize>, now: Nanos) {
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
        if let Some(rest) = transfer.finish(now, error) {
            self.queue.put_back(Request::Transfer(rest));
        }
    }
}

fn open<D: Driver>(driver: &mut D, path: &Path, options: &FileOptions) -> io::Result<Opened> {
    let handle = driver.open(path, options)?;
    match driver.file_size(handle) {
        Ok(size_bytes) => Ok(Opened { handle, size_bytes }),
        Err(error) => {
            driver.close(handle);
            Err(error)
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
#[derive(Debug)]
struct Flight {
    transfer: Transfer,
    pieces: Vec<MemoryPiece>,
}

/// The operations in flight, each at the index that is its tag.
#[derive(Debug, Default)]
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
