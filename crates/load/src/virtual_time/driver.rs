//! A driver in virtual time, whose files are an array's volumes. It has no sockets.

use super::virtual_array::VirtualVolume;
use bytes::{Bytes, BytesMut};
use linerate_io::{
    Buffer, Completion, Driver, FileOptions, Handle, Nanos, Outgoing, Region, RegionId, Seg, SocketOptions,
    TcpInfo, Wait,
};
use linerate_storage::{Disk, DiskError, Executor};
use std::{
    cell::RefCell,
    io::{self, ErrorKind},
    net::SocketAddr,
    path::Path,
    rc::Rc,
    sync::Arc,
};

/// The driver's name in facts.
pub(super) const NAME: &str = "virtual";
/// The end of a run whose clock stands still: so many I/Os may end at one instant.
const AT_ONCE_MAX: usize = 1 << 20;
/// Read buffers kept for the next read.
const SPARE_MAX: usize = 64;

/// See the module text. `poll` runs the array's tasks; when all of them wait, it jumps to the next timer.
pub(super) struct VirtualTimeDriver {
    executor: Executor,
    volumes: Vec<VirtualVolume>,
    regions: Vec<Arc<Region>>,
    done: Rc<RefCell<FinishedTasks>>,
    /// The instant of the last completion, and how many there were at it.
    at_once: (Nanos, usize),
}

/// Results of tasks.
#[derive(Default)]
struct FinishedTasks {
    completions: Vec<Completion<()>>,
    spare: Vec<BytesMut>,
}

impl VirtualTimeDriver {
    /// Over an executor's clock.
    pub(super) fn new(executor: Executor, volumes: Vec<VirtualVolume>) -> Self {
        Self { executor, volumes, regions: Vec::new(), done: Rc::default(), at_once: (0, 0) }
    }

    fn disk(&self, file: Handle) -> &Rc<dyn Disk> {
        &self.volumes[file.index() as usize].disk
    }

    /// Counts completions. Without this error, a run whose I/Os take no time would never end.
    fn see_that_time_passes(&mut self, completions: usize) -> io::Result<()> {
        let now = self.now();
        let before = if self.at_once.0 == now { self.at_once.1 } else { 0 };
        self.at_once = (now, before + completions);
        if self.at_once.1 <= AT_ONCE_MAX {
            return Ok(());
        }
        // What is in flight may end after this.
        self.at_once.1 = 0;
        Err(io::Error::other(
            "a million I/Os took no time: they read what was never written of a volume of kind \"pool\", and no disk is \
             asked for that; write it in the same workload, limit the rate, or use a volume of kind \"raid\"",
        ))
    }

    /// Runs `operation`; its end is the completion of `tag`.
    fn run(
        &self,
        (file, tag): (Handle, u64),
        operation: impl Future<Output = Result<usize, DiskError>> + 'static,
    ) {
        let done = Rc::clone(&self.done);
        self.executor.runtime().spawn(async move {
            let result = operation.await.map_err(|error| io_error(&error));
            done.borrow_mut().completions.push(Completion::File { file, tag, result });
        });
    }
}

/// Several disk errors map to one system error; the array's own message is lost, as on every path.
fn io_error(error: &DiskError) -> io::Error {
    match error {
        DiskError::OutOfRange { .. } => ErrorKind::InvalidInput.into(),
        DiskError::Full(_) | DiskError::NoSpace(_) => ErrorKind::StorageFull.into(),
        DiskError::Protected(_) => ErrorKind::ReadOnlyFilesystem.into(),
        DiskError::Corrupt { .. } => ErrorKind::InvalidData.into(),
        DiskError::Failed(_) | DiskError::Unreadable { .. } | DiskError::Lost(_) => ErrorKind::Other.into(),
    }
}

fn no_sockets() -> io::Error {
    io::Error::new(ErrorKind::Unsupported, "there is no network in virtual time")
}

impl Driver for VirtualTimeDriver {
    type Socket = ();
    type Waker = ();

    fn name(&self) -> &'static str {
        NAME
    }

    fn now(&self) -> Nanos {
        self.executor.runtime().now()
    }

    // It never waits, so there is nothing to wake: it checks for the end once per turn.
    fn waker(&self) -> Self::Waker {}

    fn wake((): &Self::Waker) {}

    fn attach(&mut self, region: Arc<Region>) -> RegionId {
        self.regions.push(region);
        RegionId::new(self.regions.len() as u32 - 1)
    }

    fn listen(&mut self, _: SocketAddr, _: &SocketOptions) -> io::Result<Handle> {
        Err(no_sockets())
    }

    fn local_addr(&self, _: Handle) -> io::Result<SocketAddr> {
        Err(no_sockets())
    }

    fn connect(&mut self, _: SocketAddr, _: &SocketOptions) -> io::Result<Handle> {
        Err(no_sockets())
    }

    fn add_stream(&mut self, (): (), _: &SocketOptions) -> io::Result<Handle> {
        Err(no_sockets())
    }

    fn tcp_info(&self, _: Handle) -> io::Result<TcpInfo> {
        Err(no_sockets())
    }

    fn recv(&mut self, stream: Handle, _: &[Seg], buffer: Buffer) {
        let failed = Completion::Received { stream, result: Err(no_sockets()), buffer };
        self.done.borrow_mut().completions.push(failed);
    }

    fn retract(&mut self, _: Handle) -> bool {
        false
    }

    fn send(&mut self, stream: Handle, outgoing: Box<Outgoing>) {
        let failed = Completion::Sent { stream, result: Err(no_sockets()), outgoing };
        self.done.borrow_mut().completions.push(failed);
    }

    /// `path` is the name of a volume.
    fn open(&mut self, path: &Path, _: &FileOptions) -> io::Result<Handle> {
        let nth = self.volumes.iter().position(|volume| Path::new(&volume.name) == path);
        nth.map(|nth| Handle::new(nth as u32, 0)).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn file_size(&self, file: Handle) -> io::Result<u64> {
        Ok(self.disk(file).size_bytes())
    }

    fn read_at(&mut self, file: Handle, tag: u64, segs: &[Seg], offset: u64) {
        let len = segs.iter().map(|seg| seg.len as usize).sum();
        let mut into = self.done.borrow_mut().spare.pop().unwrap_or_default();
        into.resize(len, 0);
        let reading = self.disk(file).read(offset, into);
        let places: Vec<_> =
            segs.iter().map(|seg| (Arc::clone(&self.regions[seg.region.index() as usize]), *seg)).collect();
        let done = Rc::clone(&self.done);
        self.run((file, tag), async move {
            let bytes = reading.await?;
            let mut at = 0;
            for (region, seg) in places {
                region.write(seg.offset, &bytes[at..at + seg.len as usize]);
                at += seg.len as usize;
            }
            let spare = &mut done.borrow_mut().spare;
            if spare.len() < SPARE_MAX {
                spare.push(bytes);
            }
            Ok(at)
        });
    }

    fn write_at(&mut self, file: Handle, tag: u64, segs: &[Seg], offset: u64, durable: bool) {
        let len: usize = segs.iter().map(|seg| seg.len as usize).sum();
        let mut bytes = BytesMut::zeroed(len);
        let mut at = 0;
        for seg in segs {
            let to = at + seg.len as usize;
            self.regions[seg.region.index() as usize].read(seg.offset, &mut bytes[at..to]);
            at = to;
        }
        let writing = self.disk(file).write(offset, Bytes::from(bytes), durable);
        self.run((file, tag), async move { writing.await.map(|()| len) });
    }

    fn sync(&mut self, file: Handle, tag: u64) {
        let flush = self.disk(file).flush();
        self.run((file, tag), async move { flush.await.map(|()| 0) });
    }

    fn discard(&mut self, file: Handle, tag: u64, offset: u64, len: u64) {
        let discard = self.disk(file).discard(offset, len);
        self.run((file, tag), async move { discard.await.map(|()| 0) });
    }

    fn allocate(&mut self, file: Handle, tag: u64, offset: u64, len: u64) {
        let reserve = self.disk(file).reserve(offset, len);
        self.run((file, tag), async move { reserve.await.map(|()| 0) });
    }

    fn close(&mut self, _: Handle) {}

    fn poll(&mut self, wait: Wait, out: &mut Vec<Completion<()>>) -> io::Result<()> {
        let now = self.now();
        self.executor.run(now);
        while self.done.borrow().completions.is_empty() {
            let until = match wait {
                Wait::Never => break,
                Wait::Until(at) => Some(at),
                Wait::Forever => None,
            };
            let Some(next) = self.executor.next_timer().into_iter().chain(until).min() else {
                return Err(io::Error::new(
                    ErrorKind::TimedOut,
                    "in virtual time, everything waits for nothing",
                ));
            };
            self.executor.run(next);
            if until.is_some_and(|until| next >= until) {
                break;
            }
        }
        let first = out.len();
        out.append(&mut self.done.borrow_mut().completions);
        self.see_that_time_passes(out.len() - first)
    }
}
