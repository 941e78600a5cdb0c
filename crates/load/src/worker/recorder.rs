//! A worker's recorder: it counts every completed I/O, and sends an interval's counts to the merger when it ends.

use super::event_limit::{EventLimit, Topic};
use crate::{
    backend::Failure,
    record::{
        Op, RunEvent,
        message::{Batch, WorkerMessage},
        tally::{Coarse, Needs, NetworkTally, Tally, side},
    },
    schedule::RunSchedule,
};
use linerate_blame::Blame;
use linerate_io::{Nanos, system};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

/// An arrival that starts later than this after its intended time counts as late.
const LATE_NS: u64 = 100_000;
/// Most events of failed I/Os that one worker reports per interval; the others are only counted.
const ERROR_EVENTS_MAX: u32 = 10;

/// See the module text.
#[derive(Debug)]
pub(crate) struct Recorder {
    worker: usize,
    start: Nanos,
    schedule: RunSchedule,
    index: u32,
    next_cut: Nanos,
    /// After the warm-up.
    measured: bool,
    tally: Box<Tally>,
    #[expect(clippy::vec_box, reason = "the boxes themselves travel through channels")]
    spare: Vec<Box<Tally>>,
    needs: Box<[Needs]>,
    /// By the worker's volumes and operation, over the measured time.
    coarse: Vec<[Coarse; 2]>,
    error_events: u32,
    event_limit: EventLimit,
    cpu: system::ProcessCpu,
    /// Of the worker's waiter, when the last interval ended.
    polled_ns: u64,
    /// Waits for a slow reader. For virtual time, because a wait takes no time of the run.
    is_patient: bool,
    sender: SyncSender<WorkerMessage>,
    returned: Receiver<Box<Tally>>,
}

/// One completed I/O.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoEntry {
    pub(crate) flow: u32,
    pub(crate) stream: u32,
    /// Index among the worker's volumes.
    pub(crate) volume: u32,
    pub(crate) op: Op,
    pub(crate) bytes: u32,
    pub(crate) service_ns: u64,
    /// Open loop only.
    pub(crate) response_ns: Option<u64>,
}

impl Recorder {
    /// For the given numbers of flows and volumes. `is_patient`: waits for a reader that is behind.
    pub(crate) fn new(
        (worker, flows, volumes): (usize, usize, usize),
        needs: Vec<Needs>,
        schedule: RunSchedule,
        is_patient: bool,
        (sender, returned): (SyncSender<WorkerMessage>, Receiver<Box<Tally>>),
    ) -> Self {
        let spare = (0..2).map(|_| Box::new(Tally::new(flows, &needs))).collect();
        Self {
            worker,
            start: 0,
            schedule,
            index: 0,
            next_cut: 0,
            measured: schedule.measured_from() == 0,
            tally: Box::new(Tally::new(flows, &needs)),
            spare,
            needs: needs.into(),
            coarse: (0..volumes).map(|_| [Coarse::new(), Coarse::new()]).collect(),
            error_events: 0,
            event_limit: EventLimit::default(),
            cpu: system::ProcessCpu::default(),
            polled_ns: 0,
            is_patient,
            sender,
            returned,
        }
    }

    /// The run starts. `polled_ns`: see [`linerate_io::Waiter::polled_ns`].
    pub(crate) fn begin(&mut self, start: Nanos, polled_ns: u64) {
        self.start = start;
        self.polled_ns = polled_ns;
        self.next_cut = start + self.schedule.cut(0);
        self.cpu = system::thread_cpu().unwrap_or_default();
    }

    /// When the current interval ends.
    pub(crate) fn next_cut(&self) -> Nanos {
        self.next_cut
    }

    /// Whether the warm-up is over.
    pub(crate) fn is_measured(&self) -> bool {
        self.measured
    }

    /// Counts an I/O that succeeded.
    pub(crate) fn record(&mut self, entry: &IoEntry) {
        let side = side(entry.op);
        let cell = &mut self.tally.cells[entry.flow as usize][side];
        cell.ios += 1;
        cell.bytes += u64::from(entry.bytes);
        cell.service_sum_ns += entry.service_ns;
        cell.service_sumsq_ns2 += (entry.service_ns as f64) * (entry.service_ns as f64);
        cell.service_max_ns = cell.service_max_ns.max(entry.service_ns);
        let response_ns = entry.response_ns.unwrap_or(entry.service_ns);
        cell.response_sum_ns += response_ns;
        cell.response_max_ns = cell.response_max_ns.max(response_ns);
        self.tally.service[entry.stream as usize][side].record(entry.service_ns);
        if entry.response_ns.is_some() {
            self.tally.response[entry.stream as usize][side].record(response_ns);
        }
        if self.measured {
            self.coarse[entry.volume as usize][side].record(entry.service_ns);
        }
    }

    /// Counts a flush that succeeded.
    pub(crate) fn flushed(&mut self, flow: u32, took_ns: u64) {
        let cell = &mut self.tally.cells[flow as usize][side(Op::Write)];
        cell.flushes += 1;
        cell.flush_sum_ns += took_ns;
        cell.flush_max_ns = cell.flush_max_ns.max(took_ns);
    }

    /// Counts an I/O that failed. Returns whether it should be reported.
    pub(crate) fn record_error(&mut self, flow: u32, op: Op) -> bool {
        self.tally.cells[flow as usize][side(op)].errors += 1;
        self.error_events += 1;
        self.error_events <= ERROR_EVENTS_MAX
    }

    /// Counts the start of an I/O of an open loop.
    pub(crate) fn started(&mut self, late_ns: u64) {
        if late_ns > LATE_NS {
            self.tally.generator.late_arrivals += 1;
        }
    }

    /// Notes how many arrivals wait.
    pub(crate) fn backlog(&mut self, waiting: u64) {
        let most = &mut self.tally.generator.backlog_max;
        *most = (*most).max(waiting);
    }

    /// Adds an event, unless the interval has enough of its topic.
    pub(crate) fn event(&mut self, topic: Topic, event: impl FnOnce() -> RunEvent) {
        self.tally.events.extend(self.event_limit.admit(topic, event));
    }

    /// Seconds since the start of the run.
    pub(crate) fn seconds(&self, now: Nanos) -> f64 {
        now.saturating_sub(self.start) as f64 / 1e9
    }

    /// Ends the intervals that are over at `now`. With a slow reader no count is lost: the interval continues, and its
    /// counts are sent with a later one.
    pub(crate) fn cut(&mut self, now: Nanos, polled_ns: u64, network: impl FnOnce() -> NetworkTally) {
        self.close(now, polled_ns, &network());
        while self.next_cut <= now && self.next_cut < self.start + self.schedule.end() {
            self.hand_over(self.schedule.cut(self.index));
            self.index += 1;
            self.next_cut = self.start + self.schedule.cut(self.index);
            self.measured = !self.schedule.is_warmup(self.index);
            self.error_events = 0;
        }
    }

    /// Sends the last interval, complete or not, which was closed, and the counts of the whole run.
    pub(crate) fn end(mut self, now: Nanos) {
        let end = now.saturating_sub(self.start).min(self.schedule.cut(self.index));
        let batch = self.batch(end);
        let last =
            WorkerMessage::Last { worker: self.worker, batch, coarse: std::mem::take(&mut self.coarse) };
        // The run was dropped, and its reader too.
        let _ = self.sender.send(last);
    }

    /// Adds what is counted elsewhere to the current interval: events that were left out, CPU time, network traffic.
    pub(crate) fn close(&mut self, now: Nanos, polled_ns: u64, network: &NetworkTally) {
        let at_s = self.seconds(now);
        self.tally.events.extend(self.event_limit.left_out(at_s));
        // In virtual time the CPU time is not part of the load.
        let cpu = if self.is_patient { self.cpu } else { system::thread_cpu().unwrap_or(self.cpu) };
        self.tally.cpu_user_us += cpu.user_us - self.cpu.user_us;
        self.tally.cpu_system_us += cpu.system_us - self.cpu.system_us;
        self.cpu = cpu;
        self.tally.polled_ns += polled_ns - self.polled_ns;
        self.polled_ns = polled_ns;
        self.tally.network.add(network);
    }

    fn hand_over(&mut self, end: u64) {
        let batch = self.batch(end);
        let message = WorkerMessage::Interval { worker: self.worker, batch };
        if self.is_patient {
            // The run was dropped, and its reader too.
            let _ = self.sender.send(message);
            return;
        }
        let sent = self.sender.try_send(message);
        // Otherwise the merger has it.
        let Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) = sent else { return };
        if let WorkerMessage::Interval { batch, .. } = back {
            self.spare.push(std::mem::replace(&mut self.tally, batch.tally));
            self.tally.events.push(RunEvent {
                at_s: end as f64 / 1e9,
                kind: "reader_slow".into(),
                volume: String::new(),
                path: String::new(),
                message: "intervals are not fetched as fast as they end; some are merged into one".into(),
                blame: Blame::Us,
            });
        }
    }

    /// The current interval's counts, replaced by empty ones.
    fn batch(&mut self, end: u64) -> Batch {
        self.spare.extend(self.returned.try_iter());
        let empty = self.spare.pop().unwrap_or_else(|| {
            // The reader is behind: memory instead of loss.
            Box::new(Tally::new(self.tally.cells.len(), &self.needs))
        });
        Batch { index: self.index, end, tally: std::mem::replace(&mut self.tally, empty) }
    }
}

/// The event of a failed I/O.
pub(crate) fn error_message(op: Op, offset: u64, bytes: u32, failure: Failure) -> String {
    let verb = match op {
        Op::Read => "read",
        Op::Write => "write",
    };
    format!("{verb} of {bytes} bytes at offset {offset} failed: {failure}")
}
