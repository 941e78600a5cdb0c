//! A worker: one thread, one driver, its part of the volumes, and the loop that makes every I/O of the run.
//!
//! A volume belongs to one worker with all its slots, so threads share nothing on the path of an I/O. One turn of the
//! loop: read the clock, count completions, start the next I/O of every free slot, submit all of them at once, wait.
//! The wait ends at the end of an interval, at the end of the run, at due arrivals, and when a slot has paused.
//!
//! Service time: from submission to the backend (one reading of the clock per I/O) to the turn that sees the completion
//! (one reading per turn, right after the wait). Response time starts at the intended start instead.

pub(crate) mod control;
mod errands;
mod event_limit;
mod events;
mod open;
mod pause;
mod queue;
pub(crate) mod recorder;
mod slot;
mod upkeep;
mod volume;

use crate::{
    backend::{BackendKind, Backends, FinishedIo, Io, Reports},
    error::RunError,
    payload::Buffers,
    plan::RunPlan,
    record::Op,
    spec::RunSpec,
    verify::{Expected, NoMemory},
};
use control::Control;
use linerate_io::{Completion, Driver, Nanos, Wait, Waiter};
use pause::Pauses;
use queue::SharedQueues;
use recorder::{IoEntry, Recorder};
use slot::IoSlot;
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, TryRecvError},
    },
};
use upkeep::Errand;
use volume::{Flow, Pick, Picking, Start, Volume};

pub(crate) use open::{Hooks, ReadyWorker, WorkerSetup, failed, open};

/// How long a worker waits for the I/Os in flight when the run is over. Without it the targets would retransmit them.
const DRAIN_NS: u64 = 1_000_000_000;
/// The same after a stop by the caller, and the time between two checks for a stop.
const DRAIN_STOPPED_NS: u64 = 100_000_000;
/// How long closing sessions may take after that.
const CLOSE_NS: u64 = 50_000_000;
/// Time between two attempts of a volume that the shares hold back.
const GATED_NS: u64 = 200_000;
/// Most turns without a poll of the driver, when I/Os complete without it.
const TURNS_UNPOLLED_MAX: u32 = 64;

/// See the module text.
#[derive(Debug)]
pub(crate) struct Worker<D: Driver> {
    driver: D,
    spec: Arc<RunSpec>,
    plan: Arc<RunPlan>,
    control: Arc<Control>,
    index: usize,
    hooks: Hooks,
    /// Some flows stop at their end.
    has_ends: bool,
    backends: Backends,
    /// The backend of each volume.
    kinds: Vec<BackendKind>,
    volumes: Vec<Volume>,
    queues: SharedQueues,
    flows: Vec<Flow>,
    slots: Vec<IoSlot>,
    buffers: Buffers,
    recorder: Recorder,
    /// Volumes that may have something to start.
    ready: Vec<u32>,
    /// Next arrivals of open-loop flows that are not due.
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    pauses: Pauses,
    stream_started: Vec<u64>,
    limit: f64,
    in_flight: u32,
    backlog: u64,
    end: Nanos,
    reports: Reports,
    waiter: Waiter,
    completions: Vec<Completion<D::Socket>>,
    unpolled: u32,
    /// Bytes read and written that the limits do not count yet.
    unreported: [u64; 2],
}

impl<D: Driver> Worker<D> {
    /// Runs from `start` until the run is over. `alive` is dropped when the last count has been sent: closing may take
    /// longer if a device hangs.
    pub(crate) fn run(mut self, start: Nanos, alive: Sender<()>) {
        self.begin(start);
        let mut now = self.driver.now();
        while !self.control.is_over() && now < self.end {
            let gated = self.start_ios(now);
            self.flush();
            self.wait(gated);
            now = self.driver.now();
            self.on_time(now);
            if now < self.end {
                self.cut_if_due(now);
                self.settle(now);
            }
        }
        let end = self.driver.now().min(self.end);
        // A worker that woke late must end the intervals before the last one.
        self.cut_if_due(end);
        // I/Os that end from here on do not count, neither in the totals nor on the paths.
        let network = self.backends.network_since_last(&self.driver);
        self.recorder.close(end, self.waiter.polled_ns(), &network);
        self.drain();
        self.recorder.end(end);
        drop(alive);
        self.backends.close(&mut self.driver, CLOSE_NS);
    }

    /// Serves its sessions until the start is sent; None if the sender was dropped or the run is over. The sender wakes
    /// the driver.
    pub(crate) fn await_start<T>(&mut self, starts: &Receiver<T>) -> Option<T> {
        while !self.control.is_over() {
            match starts.try_recv() {
                Ok(start) => return Some(start),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => self.serve(Nanos::MAX),
            }
        }
        None
    }

    /// Closes everything that it opened.
    pub(crate) fn close(mut self) {
        self.backends.close(&mut self.driver, CLOSE_NS);
    }

    /// One turn without load, at most until a time: pings of the target are answered, lost sessions log in again.
    fn serve(&mut self, until: Nanos) {
        self.flush();
        let due = self.backends.next_deadline::<D>().unwrap_or(Nanos::MAX);
        self.poll(match due.min(until) {
            Nanos::MAX => Wait::Forever,
            until => Wait::Until(until),
        });
        self.on_time(self.driver.now());
    }

    /// Waits for the start; then every volume has work.
    fn begin(&mut self, start: Nanos) {
        while self.driver.now() < start && !self.control.is_over() {
            self.serve(start);
        }
        self.end = start + self.control.schedule.end();
        self.fix_arrivals(start);
        self.recorder.begin(start, self.waiter.polled_ns());
        // Sets the counters' base: logins are not part of the load.
        self.backends.network_since_last(&self.driver);
        for index in 0..self.flows.len() as u32 {
            self.set_times(index, start);
            self.arm_timer(index, start);
        }
        for volume in 0..self.volumes.len() as u32 {
            self.list(volume);
        }
    }

    /// Starts I/Os in every free slot. Returns whether shares prevented some.
    fn start_ios(&mut self, now: Nanos) -> bool {
        while let Some(&Reverse((due, index))) = self.timers.peek()
            && due <= now
        {
            self.timers.pop();
            let flow = &mut self.flows[index as usize];
            flow.timed = false;
            let volume = flow.volume;
            if std::mem::take(&mut flow.is_waiting) {
                self.volumes[volume as usize].begin_flow(index);
            }
            self.list(volume);
        }
        while let Some(slot) = self.pauses.ended(now) {
            let volume = self.slots[slot as usize].volume;
            self.volumes[volume as usize].free.push(slot);
            self.list(volume);
        }
        let mut gated = false;
        let mut at = 0;
        while at < self.ready.len() {
            let volume = self.ready[at];
            if self.start_volume(volume, now) {
                gated = true;
                at += 1;
            } else {
                self.ready.swap_remove(at);
                self.volumes[volume as usize].listed = false;
            }
        }
        gated
    }

    /// Starts the I/Os of one volume. Returns whether shares prevent some.
    fn start_volume(&mut self, index: u32, now: Nanos) -> bool {
        let mut gated = false;
        while !self.volumes[index as usize].free.is_empty() {
            if self.volumes[index as usize].upkeep.is_some() && !self.keep_up(index, now) {
                break;
            }
            let mut picking = Picking {
                mode: self.spec.shares,
                control: &self.control,
                worker: self.index,
                stream_started: &mut self.stream_started,
                limit: &mut self.limit,
            };
            match self.volumes[index as usize].pick(&mut self.flows, now, &mut picking) {
                Pick::Start(start) if self.conflicts(index, &start) => {
                    self.volumes[index as usize].parked = Some(start);
                    break;
                }
                Pick::Start(start) if self.errand(index) == Errand::Flush => {
                    self.volumes[index as usize].parked = Some(start);
                    self.start_flush(index, start.flow);
                }
                Pick::Start(start) => {
                    let Some(slot) = self.volumes[index as usize].free.pop() else { break };
                    self.start(index, slot, &start);
                }
                Pick::Gated => {
                    gated = true;
                    break;
                }
                Pick::Nothing => break,
            }
        }
        self.after_starts(index, now);
        gated
    }

    /// Timers, backlog and ends of a volume's flows, after its I/Os were started.
    fn after_starts(&mut self, index: u32, now: Nanos) {
        let volume = &self.volumes[index as usize];
        let (flows, open) = (volume.flows.clone(), volume.flows.start + volume.closed);
        for flow in open..flows.end {
            self.arm_timer(flow, now);
            self.count_backlog(flow, now);
        }
        if self.has_ends {
            let has_ended = self.volumes[index as usize].live == 0
                && !flows.clone().any(|flow| self.flows[flow as usize].is_waiting);
            if has_ended && self.queues.retire(index) {
                while let Some(slot) = self.volumes[index as usize].free.pop() {
                    let next = self.queues.next(index);
                    self.volumes[next as usize].free.push(slot);
                    self.list(next);
                    if next == index {
                        break;
                    }
                }
            }
            flows.for_each(|flow| self.end_flow_if_done(flow, now));
        }
    }

    /// Starts one I/O in a free slot.
    fn start(&mut self, index: u32, slot: u32, start: &Start) {
        let volume = &mut self.volumes[index as usize];
        let flow = &mut self.flows[start.flow as usize];
        let this = &mut self.slots[slot as usize];
        let shot = start.shot;
        flow.in_flight += 1;
        self.in_flight += 1;
        if let Some(upkeep) = &mut volume.upkeep {
            upkeep.started(shot.op);
        }
        let data = match shot.op {
            Op::Read => self.buffers.read(this.place, shot.len),
            Op::Write => {
                let data = self.buffers.write(this.place, flow.ratio, shot.len);
                match &mut volume.expected {
                    Some(expected) => {
                        expected.stamp(self.buffers.region(), data.offset, shot.offset, shot.len);
                    }
                    None => match &flow.duplicates {
                        Some(made) => {
                            self.buffers.make_duplicates(data, volume.first_byte + shot.offset, made);
                        }
                        None => self.buffers.make_unique(data),
                    },
                }
                data
            }
        };
        let submitted = self.driver.now();
        if let Some(intended) = start.intended {
            self.recorder.started(submitted.saturating_sub(intended));
        }
        *this = IoSlot {
            volume: index,
            place: this.place,
            busy: true,
            is_flush: false,
            flow: start.flow,
            op: shot.op,
            offset: shot.offset,
            len: shot.len,
            submitted,
            intended: start.intended,
        };
        let offset = volume.first_byte + shot.offset;
        let io = Io {
            slot,
            unit: volume.unit,
            op: shot.op,
            offset,
            data,
            keep: volume.expected.is_some(),
            durable: volume.durable_writes,
        };
        self.backends.submit(self.kinds[index as usize], &mut self.driver, &io, &mut self.reports);
    }

    /// Verify mode: whether an I/O touches bytes that a write in flight touches, or writes what is being read.
    fn conflicts(&self, index: u32, start: &Start) -> bool {
        let volume = &self.volumes[index as usize];
        if volume.expected.is_none() {
            return false;
        }
        let (from, to) = (start.shot.offset, start.shot.offset + u64::from(start.shot.len));
        volume.slots.clone().any(|slot| {
            let other = &self.slots[slot as usize];
            other.busy
                && (other.op == Op::Write || start.shot.op == Op::Write)
                && other.offset < to
                && from < other.offset + u64::from(other.len)
        })
    }

    fn flush(&mut self) {
        self.backends.flush(&mut self.driver);
    }

    /// Waits for a completion or the next deadline.
    fn wait(&mut self, gated: bool) {
        if !self.reports.done.is_empty() {
            self.unpolled += 1;
            if self.unpolled > TURNS_UNPOLLED_MAX {
                self.poll(Wait::Never);
            }
            return;
        }
        let mut until = self.end.min(self.recorder.next_cut());
        if let Some(Reverse((due, _))) = self.timers.peek() {
            until = until.min(*due);
        }
        until = self.pauses.next_end().map_or(until, |end| until.min(end));
        until = self.backends.next_deadline::<D>().map_or(until, |due| until.min(due));
        if gated {
            until = until.min(self.driver.now() + GATED_NS);
        }
        self.poll(Wait::Until(until));
    }

    /// Polls the driver once and passes every completion to its backend.
    fn poll(&mut self, wait: Wait) {
        self.unpolled = 0;
        if let Err(error) = self.waiter.poll(&mut self.driver, wait, &mut self.completions) {
            self.control.fail(RunError::Host(format!("waiting for I/O failed: {error}")));
            return;
        }
        for completion in self.completions.drain(..) {
            self.backends.complete(&mut self.driver, completion, &mut self.reports);
        }
    }

    fn on_time(&mut self, now: Nanos) {
        self.backends.on_time(&mut self.driver, now, &mut self.reports);
    }

    fn cut_if_due(&mut self, now: Nanos) {
        if now >= self.recorder.next_cut() {
            let (backends, driver) = (&mut self.backends, &self.driver);
            self.recorder.cut(now, self.waiter.polled_ns(), || backends.network_since_last(driver));
        }
    }

    /// Counts completed I/Os and reports notices.
    fn settle(&mut self, now: Nanos) {
        // A notice about a session or volume explains the I/Os that failed with it, so notices are reported first.
        for nth in 0..self.reports.notices.len() {
            let notice = self.reports.notices[nth].clone();
            self.report(&notice);
        }
        self.reports.notices.clear();
        for nth in 0..self.reports.done.len() {
            self.settle_one(self.reports.done[nth], now);
        }
        self.reports.done.clear();
        if self.unreported != [0; 2] {
            let [read, written] = std::mem::take(&mut self.unreported);
            self.control.moved(read, written);
        }
    }

    fn settle_one(&mut self, done: FinishedIo, now: Nanos) {
        let slot = self.slots[done.slot as usize];
        self.slots[done.slot as usize].busy = false;
        self.in_flight -= 1;
        let flow = &mut self.flows[slot.flow as usize];
        flow.in_flight -= 1;
        if slot.is_flush {
            self.settle_flush(done, &slot, now);
            return;
        }
        let stream = flow.stream;
        let pauses = flow.think.is_some_and(|think| self.pauses.begins(done.slot, think, now));
        let next = self.queues.next(slot.volume);
        if !pauses {
            self.volumes[next as usize].free.push(done.slot);
        }
        let volume = &mut self.volumes[slot.volume as usize];
        if let Some(expected) = &mut volume.expected {
            let place = self.buffers.read(slot.place, slot.len).offset;
            let wrong = match slot.op {
                Op::Write => {
                    expected.written(slot.offset, slot.len, done.result.is_ok());
                    None
                }
                Op::Read if done.result.is_ok() => {
                    expected.check(self.buffers.region(), place, slot.offset, slot.len)
                }
                Op::Read => None,
            };
            if let Some(wrong) = wrong {
                self.miscompare(slot.volume, wrong.to_string(), now);
            }
        }
        match done.result {
            Ok(()) => {
                self.volumes[slot.volume as usize].errors_in_a_row = 0;
                self.recorder.record(&IoEntry {
                    flow: slot.flow,
                    stream,
                    volume: slot.volume,
                    op: slot.op,
                    bytes: slot.len,
                    service_ns: now - slot.submitted,
                    response_ns: slot.intended.map(|intended| now - intended),
                });
                if self.control.has_limits() && self.recorder.is_measured() {
                    self.unreported[slot.op as usize] += u64::from(slot.len);
                }
            }
            Err(failure) => self.io_failed(&slot, failure, now),
        }
        if self.has_ends && next != slot.volume {
            self.volumes[slot.volume as usize]
                .flows
                .clone()
                .for_each(|flow| self.end_flow_if_done(flow, now));
        }
        self.list(next);
    }

    /// Waits a short time for the I/Os in flight. They are not counted any more.
    fn drain(&mut self) {
        let began = self.driver.now();
        let mut now = began;
        loop {
            self.in_flight -= self.reports.done.drain(..).len() as u32;
            let until = began + if self.control.is_over() { DRAIN_STOPPED_NS } else { DRAIN_NS };
            if self.in_flight == 0 || now >= until {
                return;
            }
            self.flush();
            let look = until.min(now + DRAIN_STOPPED_NS);
            self.poll(Wait::Until(self.backends.next_deadline::<D>().map_or(look, |due| look.min(due))));
            now = self.driver.now();
            self.on_time(now);
        }
    }

    /// Adds a volume to the list of those that may start I/Os.
    fn list(&mut self, volume: u32) {
        let this = &mut self.volumes[volume as usize];
        if !this.listed && !this.free.is_empty() {
            this.listed = true;
            self.ready.push(volume);
        }
    }
}

/// Timers and ends, which are not on the path of each I/O.
impl<D: Driver> Worker<D> {
    /// Sets when a flow begins and ends, in a run that starts now.
    fn set_times(&mut self, index: u32, start: Nanos) {
        let flow = &mut self.flows[index as usize];
        let stream = &self.spec.streams[flow.stream as usize];
        if let Some(after_s) = stream.stop_after_s {
            flow.ends = start + (after_s * 1e9) as Nanos;
            self.timers.push(Reverse((flow.ends, index)));
        }
        if stream.start_after_s > 0.0 && flow.arrivals.is_none() {
            flow.is_waiting = true;
            self.timers.push(Reverse((start + stream.start_ns(), index)));
            self.volumes[flow.volume as usize].hold_flow(index);
        }
    }

    /// Sets the timer of an open-loop flow whose next arrival is not due yet.
    fn arm_timer(&mut self, index: u32, now: Nanos) {
        let flow = &mut self.flows[index as usize];
        if let Some(arrivals) = &flow.arrivals
            && !flow.timed
            && !flow.at_end
            && arrivals.next() > now
        {
            flow.timed = true;
            self.timers.push(Reverse((arrivals.next(), index)));
        }
    }

    /// Updates the number of arrivals that are due and not started.
    fn count_backlog(&mut self, index: u32, now: Nanos) {
        let flow = &mut self.flows[index as usize];
        // A closed-loop flow has no arrivals.
        let Some(arrivals) = &mut flow.arrivals else { return };
        let waiting = if flow.at_end || arrivals.next() > now { 0 } else { arrivals.backlog(now) };
        self.backlog = self.backlog - flow.backlog + waiting;
        flow.backlog = waiting;
        self.recorder.backlog(self.backlog);
    }

    /// A flow that stops at its end has ended when its last I/O has.
    fn end_flow_if_done(&mut self, index: u32, now: Nanos) {
        let flow = &mut self.flows[index as usize];
        // Of an open loop, whose next arrival may be far off.
        flow.at_end |= flow.arrivals.is_some() && now >= flow.ends;
        if flow.stops_at_end && flow.at_end && flow.in_flight == 0 {
            flow.stops_at_end = false;
            self.control.reached_end();
        }
    }
}

/// The expected contents of a volume in verify mode.
fn expected(volume_bytes: u64, block_bytes: u32, seed: u64) -> Result<Expected, NoMemory> {
    Expected::new(volume_bytes, block_bytes.min(crate::verify::UNIT_BYTES_MAX), seed)
}
