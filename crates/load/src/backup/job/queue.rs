//! The I/Os of a job in flight: one thread's driver, its volumes, and buffers of one length.
//!
//! A buffer is *held* by the caller from [`IoQueue::acquire`] to [`IoQueue::release`], and in use as long as I/Os on it are
//! in flight. I/Os on one volume that overlap, one of them a write, are done one after the other.

use super::{
    control::JobControl,
    parts::{JobPart, Role, VOLUMES},
    record::JobRecorder,
};
use crate::{
    backend::{BackendKind, Backends, Failure, FinishedIo, Io, Notice, OpenedVolume, Reports},
    error::RunError,
    record::{Interval, Op, RunEvent},
};
use linerate_blame::Blame;
use linerate_io::{Completion, Driver, Nanos, Region, RegionId, Seg, Wait};
use std::{io, sync::Arc};

/// The longest wait for a completion before the stop request is looked at.
const TURN_NS: Nanos = 50_000_000;
/// How long a stopped job waits for I/Os in flight; the driver keeps their memory.
const STOP_NS: Nanos = 100_000_000;
const EVENTS_MAX: usize = 1000;

/// The job cannot go on: it was stopped, or [`IoQueue::fail`] was called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended;

/// What an I/O does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IoWork {
    Move(Op, JobPart),
    Sync,
    SetLength,
}

/// An I/O in flight.
#[derive(Clone, Copy, Debug)]
struct FlyingIo {
    kind: IoWork,
    volume: Role,
    offset: u64,
    len: u32,
    buffer: Option<u32>,
    submitted: Nanos,
}

/// A buffer is free if it is not held and no I/O on it is in flight.
#[derive(Clone, Copy, Debug, Default)]
struct JobBuffer {
    is_held: bool,
    in_flight: u32,
}

/// An open volume.
#[derive(Clone, Debug)]
pub(super) struct JobVolume {
    pub(super) role: Role,
    pub(super) kind: BackendKind,
    pub(super) opened: OpenedVolume,
    /// I/Os that may be in flight.
    pub(super) depth: u32,
    /// Its writes are durable when they are done.
    pub(super) is_durable: bool,
    pub(super) in_flight: u32,
}

/// A part of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferPiece {
    pub(super) buffer: u32,
    /// First byte in the buffer.
    pub(super) from: u32,
    pub(super) len: u32,
}

/// See the module text.
pub(super) struct IoQueue<D: Driver> {
    driver: D,
    backends: Backends,
    reports: Reports,
    completions: Vec<Completion<D::Socket>>,
    region: Arc<Region>,
    region_id: RegionId,
    buffer_bytes: u32,
    buffers: Vec<JobBuffer>,
    ios: Vec<Option<FlyingIo>>,
    volumes: Vec<JobVolume>,
    control: Arc<JobControl>,
    phase: &'static str,
    failure: Option<RunError>,
    pub(super) recorder: JobRecorder,
}

impl<D: Driver> IoQueue<D> {
    /// For open volumes. Errors: not enough memory for the buffers.
    pub(super) fn new(
        mut driver: D,
        mut backends: Backends,
        volumes: Vec<JobVolume>,
        buffer_bytes: u32,
        (control, phase): (Arc<JobControl>, &'static str),
        recorder: JobRecorder,
    ) -> io::Result<Self> {
        // One more that is being filled, and one with zeros.
        let count = volumes.iter().map(|volume| volume.depth).sum::<u32>() + 2;
        let region = Region::anonymous(u64::from(count) * u64::from(buffer_bytes))?;
        let region_id = backends.attach(&mut driver, &region);
        Ok(Self {
            driver,
            backends,
            reports: Reports::default(),
            completions: Vec::new(),
            region,
            region_id,
            buffer_bytes,
            buffers: vec![JobBuffer::default(); count as usize],
            ios: Vec::new(),
            volumes,
            control,
            phase,
            failure: None,
            recorder,
        })
    }

    /// The volume of a role, if the job has it.
    pub(super) fn volume(&self, role: Role) -> Option<&JobVolume> {
        self.volumes.iter().find(|volume| volume.role == role)
    }

    /// Length of a buffer: the longest I/O.
    pub(super) fn buffer_bytes(&self) -> u32 {
        self.buffer_bytes
    }

    /// The memory of the buffers, and where a buffer begins in it.
    pub(super) fn memory(&self, buffer: u32) -> (&Region, u64) {
        (&self.region, u64::from(buffer) * u64::from(self.buffer_bytes))
    }

    /// A buffer for the caller. Waits for one.
    pub(super) fn acquire(&mut self) -> Result<u32, Ended> {
        loop {
            self.check()?;
            let is_free = |buffer: &JobBuffer| !buffer.is_held && buffer.in_flight == 0;
            if let Some(buffer) = self.buffers.iter().position(is_free) {
                self.buffers[buffer].is_held = true;
                return Ok(buffer as u32);
            }
            self.turn();
        }
    }

    /// The caller needs the buffer no more; I/Os on it may be in flight.
    pub(super) fn release(&mut self, buffer: u32) {
        self.buffers[buffer as usize].is_held = false;
    }

    /// Waits until no I/O on the buffer is in flight.
    pub(super) fn wait_buffer(&mut self, buffer: u32) -> Result<(), Ended> {
        self.wait_while(|queue| queue.buffers[buffer as usize].in_flight > 0)
    }

    /// Waits until no I/O on the volume is in flight.
    pub(super) fn wait_volume(&mut self, role: Role) -> Result<(), Ended> {
        self.wait_while(|queue| queue.volume(role).is_some_and(|volume| volume.in_flight > 0))
    }

    /// Starts a read into a piece of a buffer, or a write of it. Waits for its turn.
    pub(super) fn start(
        &mut self,
        role: Role,
        (op, part): (Op, JobPart),
        offset: u64,
        piece: BufferPiece,
    ) -> Result<(), Ended> {
        self.check()?;
        self.wait_while(|queue| queue.must_wait(role, op, offset, piece.len))?;
        let flying = FlyingIo {
            kind: IoWork::Move(op, part),
            volume: role,
            offset,
            len: piece.len,
            buffer: Some(piece.buffer),
            submitted: self.driver.now(),
        };
        let slot = self.slot_for(flying);
        let at = u64::from(piece.buffer) * u64::from(self.buffer_bytes) + u64::from(piece.from);
        let Some(volume) = self.volumes.iter().find(|volume| volume.role == role) else { return Err(Ended) };
        let io = Io {
            slot,
            unit: volume.opened.unit,
            op,
            offset,
            data: Seg { region: self.region_id, offset: at, len: piece.len },
            keep: true,
            durable: op == Op::Write && volume.is_durable,
        };
        self.backends.submit(volume.kind, &mut self.driver, &io, &mut self.reports);
        Ok(())
    }

    /// Makes the volume's earlier writes durable, and waits for that.
    pub(super) fn sync(&mut self, role: Role) -> Result<(), Ended> {
        self.wait_volume(role)?;
        let slot = self.slot_for(self.whole(IoWork::Sync, role, 0));
        let Some(volume) = self.volumes.iter().find(|volume| volume.role == role) else { return Err(Ended) };
        let (kind, unit) = (volume.kind, volume.opened.unit);
        self.backends.sync(kind, &mut self.driver, (slot, unit), &mut self.reports);
        self.wait_volume(role)
    }

    /// Changes the length of a file, and waits for that.
    pub(super) fn set_length(&mut self, role: Role, length_bytes: u64) -> Result<(), Ended> {
        self.wait_volume(role)?;
        let slot = self.slot_for(self.whole(IoWork::SetLength, role, length_bytes));
        let Some(volume) = self.volumes.iter().find(|volume| volume.role == role) else { return Err(Ended) };
        let (kind, unit) = (volume.kind, volume.opened.unit);
        self.backends.set_length(kind, &mut self.driver, (slot, unit), length_bytes, &mut self.reports);
        self.wait_volume(role)
    }

    /// The job fails; the first failure is kept.
    pub(super) fn fail(&mut self, role: Role, blame: Blame, message: &str) {
        self.fail_with(role, message, |volume, message| RunError::of_volume(volume, message, blame, None));
    }

    /// `error` gets the name of the volume, and the message with the phase.
    fn fail_with(&mut self, role: Role, message: &str, error: impl FnOnce(String, String) -> RunError) {
        let (volume, phase) = (VOLUMES[role as usize].to_owned(), &self.phase);
        self.failure.get_or_insert_with(|| error(volume, format!("{phase}: {message}")));
    }

    /// Why the job failed, if it did.
    pub(super) fn failure(&self) -> Option<&RunError> {
        self.failure.as_ref()
    }

    /// Waits for all I/Os in flight, but not long once the job was stopped.
    pub(super) fn drain(&mut self) {
        let mut until = None;
        while self.ios.iter().any(Option::is_some) {
            if self.control.is_stopped() {
                let now = self.driver.now();
                if now >= *until.get_or_insert(now + STOP_NS) {
                    return;
                }
            }
            self.turn();
        }
    }

    /// Ends the interval.
    pub(super) fn cut(&mut self) -> Interval {
        let network = self.backends.network_since_last(&self.driver);
        self.recorder.cut(self.driver.now(), &network.tcp)
    }

    /// Closes the volumes.
    pub(super) fn close(&mut self, timeout_ns: Nanos) {
        self.backends.close(&mut self.driver, timeout_ns);
    }

    fn check(&self) -> Result<(), Ended> {
        if self.failure.is_some() || self.control.is_stopped() { Err(Ended) } else { Ok(()) }
    }

    fn wait_while(&mut self, waits: impl Fn(&Self) -> bool) -> Result<(), Ended> {
        while waits(self) {
            self.check()?;
            self.turn();
        }
        self.check()
    }

    fn must_wait(&self, role: Role, op: Op, offset: u64, len: u32) -> bool {
        let is_full = self.volume(role).is_some_and(|volume| volume.in_flight >= volume.depth);
        let overlaps = |io: &FlyingIo| {
            let reads = matches!(io.kind, IoWork::Move(Op::Read, _)) && op == Op::Read;
            let apart = io.offset + u64::from(io.len) <= offset || offset + u64::from(len) <= io.offset;
            io.volume == role && !reads && !apart
        };
        is_full || self.ios.iter().flatten().any(overlaps)
    }

    fn whole(&self, kind: IoWork, volume: Role, offset: u64) -> FlyingIo {
        FlyingIo { kind, volume, offset, len: 0, buffer: None, submitted: self.driver.now() }
    }

    fn slot_for(&mut self, io: FlyingIo) -> u32 {
        if let Some(buffer) = io.buffer {
            self.buffers[buffer as usize].in_flight += 1;
        }
        if let Some(volume) = self.volumes.iter_mut().find(|volume| volume.role == io.volume) {
            volume.in_flight += 1;
        }
        let slot = self.ios.iter().position(Option::is_none).unwrap_or_else(|| {
            self.ios.push(None);
            self.ios.len() - 1
        });
        self.ios[slot] = Some(io);
        slot as u32
    }

    /// Sends what is queued, waits for a completion, and handles what has ended.
    fn turn(&mut self) {
        self.backends.flush(&mut self.driver);
        let now = self.driver.now();
        if self.reports.done.is_empty() {
            let due = self.backends.next_deadline::<D>().unwrap_or(Nanos::MAX);
            let until = due.min(now + TURN_NS).min(self.recorder.next_cut().max(now));
            if let Err(error) = self.driver.poll(Wait::Until(until), &mut self.completions) {
                self.failure.get_or_insert(RunError::Host(format!("waiting for I/O failed: {error}")));
                // Nothing ends any more.
                self.ios.clear();
                return;
            }
            for completion in self.completions.drain(..) {
                self.backends.complete(&mut self.driver, completion, &mut self.reports);
            }
        }
        let now = self.driver.now();
        self.backends.on_time(&mut self.driver, now, &mut self.reports);
        let mut reports = std::mem::take(&mut self.reports);
        // A lost volume says more than the I/Os that it made fail.
        for notice in reports.notices.drain(..) {
            self.report(&notice);
        }
        for finished in reports.done.drain(..) {
            self.finish(finished, now);
        }
        self.reports = reports;
        if now >= self.recorder.next_cut() {
            let interval = self.cut();
            self.control.send(interval);
        }
    }

    fn finish(&mut self, finished: FinishedIo, now: Nanos) {
        let Some(io) = self.ios.get_mut(finished.slot as usize).and_then(Option::take) else { return };
        if let Some(buffer) = io.buffer {
            self.buffers[buffer as usize].in_flight -= 1;
        }
        if let Some(volume) = self.volumes.iter_mut().find(|volume| volume.role == io.volume) {
            volume.in_flight -= 1;
        }
        let service_ns = now.saturating_sub(io.submitted);
        let succeeded = finished.result.is_ok();
        let (totals, seconds) = (&mut self.recorder.totals, service_ns as f64 / 1e9);
        match io.kind {
            IoWork::Move(op, part) => {
                let service_ns = succeeded.then_some(service_ns);
                self.recorder.done(part, io.volume, op, io.len, service_ns);
            }
            IoWork::Sync => (totals.flushes, totals.flush_s) = (totals.flushes + 1, totals.flush_s + seconds),
            IoWork::SetLength => {
                totals.length_changes += 1;
                totals.length_change_s += seconds;
            }
        }
        if let Err(failure) = finished.result {
            self.fail_with(io.volume, &io.failed(failure), |volume, message| {
                failure.ends_run(volume, message)
            });
        }
    }

    fn report(&mut self, notice: &Notice) {
        let of_notice =
            |volume: &&JobVolume| (volume.kind, Some(volume.opened.unit)) == (notice.backend, notice.unit);
        let role = self.volumes.iter().find(of_notice).map(|volume| volume.role);
        if self.recorder.events.len() < EVENTS_MAX {
            let event = RunEvent {
                at_s: self.recorder.seconds(notice.at),
                kind: notice.kind.into(),
                volume: role.map_or("", |role| VOLUMES[role as usize]).into(),
                path: String::new(),
                message: notice.message.clone(),
                blame: notice.blame,
            };
            self.recorder.events.push(event);
        }
        if notice.fatal {
            self.fail_with(role.unwrap_or(Role::Image), &notice.message, |volume, message| {
                RunError::of_volume(volume, message, notice.blame, notice.refusal)
            });
        }
    }
}

impl FlyingIo {
    fn failed(&self, failure: Failure) -> String {
        let (offset, len) = (self.offset, self.len);
        match self.kind {
            IoWork::Move(Op::Read, _) => {
                format!("the read of {len} bytes at byte {offset} failed: {failure}")
            }
            IoWork::Move(Op::Write, _) => {
                format!("the write of {len} bytes at byte {offset} failed: {failure}")
            }
            IoWork::Sync => format!("the flush failed: {failure}"),
            IoWork::SetLength => format!("the change of the length to {offset} bytes failed: {failure}"),
        }
    }
}
