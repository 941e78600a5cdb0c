//! Merges the tallies of the workers into intervals and the summary. Runs in the thread that fetches intervals.

use crate::{
    plan::RunPlan,
    record::{
        Histogram, HostUse, Interval, Latency, LatencyKind, Op, Row, RunEvent, TcpSums,
        message::{Batch, WorkerMessage},
        tally::{Cell, Counts, NetworkTally, Tally, TcpTally},
    },
    schedule::RunSchedule,
};
use linerate_io::system::HostCpu;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::mpsc::Sender,
};

/// Events that the summary keeps; every interval has its own. A faulty target must not fill the memory over days.
const TOTAL_EVENTS_MAX: usize = 10_000;
const OPS: [Op; 2] = [Op::Read, Op::Write];

/// The sums of an interval over all workers.
#[derive(Debug, Default)]
struct Sum {
    end: u64,
    cells: BTreeMap<(u32, u32, Op), Cell>,
    latencies: BTreeMap<(u32, Op, bool), Histogram>,
    network: NetworkTally,
    interval: Interval,
}

/// The merger of a run.
#[derive(Debug)]
pub(crate) struct Merger {
    schedule: RunSchedule,
    /// (stream, volume) of every flow, by worker.
    flows: Vec<Vec<(u32, u32)>>,
    /// Volumes by worker.
    volumes: Vec<Vec<u32>>,
    recycle: Vec<Sender<Box<Tally>>>,
    tsc_hz: f64,
    host: HostCpu,
    open: BTreeMap<u32, Sum>,
    /// Next interval that each worker, and last the host's sampler, will report; `u32::MAX` = ended.
    progress: Vec<u32>,
    ready: VecDeque<Interval>,
    total: Sum,
    coarse: BTreeMap<(u32, Op), Histogram>,
    measured_from: Option<f64>,
}

impl Merger {
    /// For a planned run that starts now.
    pub(crate) fn new(
        plan: &RunPlan,
        schedule: RunSchedule,
        recycle: Vec<Sender<Box<Tally>>>,
        tsc_hz: f64,
        host: HostCpu,
    ) -> Self {
        let of = |worker| plan.flows_of(worker).iter().map(|flow| (flow.stream, flow.volume)).collect();
        Self {
            schedule,
            flows: (0..plan.workers).map(of).collect(),
            volumes: (0..plan.workers).map(|worker| plan.volumes_of(worker).collect()).collect(),
            recycle,
            tsc_hz,
            host,
            open: BTreeMap::new(),
            progress: vec![0; plan.workers + 1],
            ready: VecDeque::new(),
            total: Sum::default(),
            coarse: BTreeMap::new(),
            measured_from: None,
        }
    }

    /// The next finished interval.
    pub(crate) fn pop(&mut self) -> Option<Interval> {
        self.ready.pop_front()
    }

    /// Whether all intervals have been reported and fetched.
    pub(crate) fn is_finished(&self) -> bool {
        self.ready.is_empty() && self.progress.iter().all(|next| *next == u32::MAX)
    }

    /// Every worker has ended: there will be no more reports.
    pub(crate) fn abandon(&mut self) {
        self.progress.fill(u32::MAX);
        self.finish_complete();
    }

    /// Handles a message.
    pub(crate) fn take(&mut self, message: WorkerMessage) {
        match message {
            WorkerMessage::Interval { worker, batch } => {
                self.progress[worker] = batch.index + 1;
                self.add(worker, batch);
            }
            WorkerMessage::Last { worker, batch, coarse } => {
                self.progress[worker] = u32::MAX;
                self.add(worker, batch);
                for (&volume, pair) in self.volumes[worker].iter().zip(&coarse) {
                    for (op, coarse) in OPS.into_iter().zip(pair) {
                        coarse.add_to(self.coarse.entry((volume, op)).or_default());
                    }
                }
            }
            WorkerMessage::Host { index, cpu, last } => {
                self.progress[self.flows.len()] = if last { u32::MAX } else { index + 1 };
                let host = &mut self.open.entry(index).or_default().interval.host;
                host.host_cpu_user_s += cpu.user_s - self.host.user_s;
                host.host_cpu_system_s += cpu.system_s - self.host.system_s;
                host.host_cpu_idle_s += cpu.idle_s - self.host.idle_s;
                host.host_cpu_wait_s += cpu.wait_s - self.host.wait_s;
                self.host = cpu;
            }
        }
        self.finish_complete();
    }

    /// Finishes the intervals that all workers and the sampler have reported.
    fn finish_complete(&mut self) {
        let done = self.progress.iter().copied().min().unwrap_or(u32::MAX);
        while let Some(entry) = self.open.first_entry() {
            if *entry.key() >= done {
                break;
            }
            let (index, sum) = entry.remove_entry();
            self.finish(index, sum);
        }
    }

    /// Adds a worker's interval and returns the emptied tally.
    fn add(&mut self, worker: usize, mut batch: Batch) {
        let sum = self.open.entry(batch.index).or_default();
        sum.end = sum.end.max(batch.end);
        let tally = &mut batch.tally;
        for (&(stream, volume), pair) in self.flows[worker].iter().zip(&tally.cells) {
            for (op, cell) in
                OPS.into_iter().zip(pair).filter(|(_, cell)| cell.ios + cell.errors + cell.flushes > 0)
            {
                sum.cells.entry((stream, volume, op)).or_default().add(cell);
            }
        }
        for (is_response, streams) in [(false, &mut tally.service), (true, &mut tally.response)] {
            for (stream, pair) in streams.iter_mut().enumerate() {
                for (op, counts) in OPS.into_iter().zip(pair) {
                    sum.drain(stream as u32, op, is_response, counts);
                }
            }
        }
        let interval = &mut sum.interval;
        interval.host.load_cpu_user_s += tally.cpu_user_us as f64 / 1e6;
        interval.host.load_cpu_system_s += tally.cpu_system_us as f64 / 1e6;
        interval.host.load_cpu_polled_s += tally.polled_ns as f64 / 1e9;
        interval.generator.late_arrivals += tally.generator.late_arrivals;
        interval.generator.backlog_max += tally.generator.backlog_max;
        interval.events.append(&mut tally.events);
        sum.network.add(&tally.network);
        tally.reset();
        // A worker that has ended needs no tally.
        let _ = self.recycle[worker].send(batch.tally);
    }

    /// All workers have reported an interval.
    fn finish(&mut self, index: u32, mut sum: Sum) {
        let (start, warmup) = (self.schedule.start(index), self.schedule.is_warmup(index));
        // Only the host's sampler has this interval: the run ended at its first instant.
        if sum.end <= start && sum.interval.events.is_empty() {
            return;
        }
        sum.interval.index = index;
        sum.interval.start_s = start as f64 / 1e9;
        sum.interval.end_s = sum.end.max(start) as f64 / 1e9;
        sum.interval.warmup = warmup;
        sum.interval.host.tsc_hz = self.tsc_hz;
        if !warmup {
            self.measured_from.get_or_insert(sum.interval.start_s);
            self.total.add(&sum);
        }
        self.ready.push_back(sum.into_interval());
    }

    /// The sum of all measurements so far: complete once [`Self::is_finished`].
    pub(crate) fn summary(&mut self) -> Interval {
        let mut total = std::mem::take(&mut self.total);
        total.interval.start_s = self.measured_from.unwrap_or(0.0);
        total.interval.host.tsc_hz = self.tsc_hz;
        let mut interval = total.into_interval();
        let of_volume = |((volume, op), histogram)| Latency {
            stream: None,
            volume: Some(volume),
            op,
            kind: LatencyKind::Service,
            histogram,
        };
        let coarse = std::mem::take(&mut self.coarse).into_iter().filter(|(_, h)| h.count() > 0);
        interval.latencies.extend(coarse.map(of_volume));
        interval
    }
}

impl Sum {
    fn drain(&mut self, stream: u32, op: Op, is_response: bool, counts: &mut Counts) {
        if self.cells.keys().any(|key| key.0 == stream && key.2 == op) {
            counts.drain_into(self.latencies.entry((stream, op, is_response)).or_default());
        }
    }

    fn add(&mut self, other: &Self) {
        for (key, cell) in &other.cells {
            self.cells.entry(*key).or_default().add(cell);
        }
        for (key, histogram) in &other.latencies {
            self.latencies.entry(*key).or_default().merge(histogram);
        }
        self.network.add(&other.network);
        let (total, one) = (&mut self.interval, &other.interval);
        total.end_s = total.end_s.max(one.end_s);
        total.host.add(&one.host);
        total.generator.late_arrivals += one.generator.late_arrivals;
        total.generator.backlog_max = total.generator.backlog_max.max(one.generator.backlog_max);
        let room = TOTAL_EVENTS_MAX.saturating_sub(total.events.len());
        total.events.extend(one.events.iter().take(room).cloned());
    }

    fn into_interval(self) -> Interval {
        let mut interval = self.interval;
        let row = |((stream, volume, op), cell): ((u32, u32, Op), Cell)| cell.row(stream, volume, op);
        interval.rows = self.cells.into_iter().map(row).collect();
        interval.latencies = self
            .latencies
            .into_iter()
            .filter(|(_, histogram)| histogram.count() > 0)
            .map(|((stream, op, is_response), histogram)| Latency {
                stream: Some(stream),
                volume: None,
                op,
                kind: if is_response { LatencyKind::Response } else { LatencyKind::Service },
                histogram,
            })
            .collect();
        let wall_ns = (interval.end_s - interval.start_s) * 1e9;
        let busy_ns: u64 = interval.rows.iter().map(|row| row.service_sum_ns).sum();
        interval.outstanding_mean = if wall_ns > 0.0 { busy_ns as f64 / wall_ns } else { 0.0 };
        interval.host.set_polling_apart();
        interval.tcp = self.network.tcp.sums();
        interval.paths = self.network.paths;
        // Stable: the paths of a volume stay in the order of its list.
        interval.paths.sort_by_key(|row| row.volume);
        interval.events.sort_by(|a: &RunEvent, b| a.at_s.total_cmp(&b.at_s));
        interval
    }
}

impl Cell {
    /// As a row of an interval.
    pub(crate) fn row(self, stream: u32, volume: u32, op: Op) -> Row {
        Row {
            stream,
            volume,
            op,
            ios: self.ios,
            bytes: self.bytes,
            errors: self.errors,
            service_sum_ns: self.service_sum_ns,
            service_sumsq_ns2: self.service_sumsq_ns2,
            service_max_ns: self.service_max_ns,
            response_sum_ns: self.response_sum_ns,
            response_max_ns: self.response_max_ns,
            flushes: self.flushes,
            flush_sum_ns: self.flush_sum_ns,
            flush_max_ns: self.flush_max_ns,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.service_sum_ns += other.service_sum_ns;
        self.service_sumsq_ns2 += other.service_sumsq_ns2;
        self.service_max_ns = self.service_max_ns.max(other.service_max_ns);
        self.response_sum_ns += other.response_sum_ns;
        self.response_max_ns = self.response_max_ns.max(other.response_max_ns);
        self.flushes += other.flushes;
        self.flush_sum_ns += other.flush_sum_ns;
        self.flush_max_ns = self.flush_max_ns.max(other.flush_max_ns);
    }
}

impl TcpTally {
    /// Adds another worker's or interval's counters.
    pub(crate) fn add(&mut self, other: &Self) {
        self.retransmits += other.retransmits;
        self.data_segments_sent += other.data_segments_sent;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.busy_us += other.busy_us;
        self.rwnd_limited_us += other.rwnd_limited_us;
        self.sndbuf_limited_us += other.sndbuf_limited_us;
        self.rtt_sum_us += other.rtt_sum_us;
        self.connections += other.connections;
    }

    /// As an interval shows them.
    pub(crate) fn sums(&self) -> TcpSums {
        TcpSums {
            retransmits: self.retransmits,
            data_segments_sent: self.data_segments_sent,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            busy_us: self.busy_us,
            rwnd_limited_us: self.rwnd_limited_us,
            sndbuf_limited_us: self.sndbuf_limited_us,
            rtt_us_mean: self.rtt_sum_us as f64 / self.connections.max(1) as f64,
        }
    }
}

/// Takes seconds from the first, the rest from the second. Returns how many there were.
fn take_s(wanted: f64, from: [&mut f64; 2]) -> f64 {
    let mut taken = 0.0;
    for part in from {
        let piece = part.min(wanted - taken).max(0.0);
        *part -= piece;
        taken += piece;
    }
    taken
}

impl HostUse {
    /// Takes the time of polls that found nothing out of the CPU time, where `load_cpu_polled_s` is still part of it. A
    /// thread that does not poll sleeps in that time, so the host counts as idle. Most polls are user time.
    fn set_polling_apart(&mut self) {
        let polled = self.load_cpu_polled_s;
        let load = take_s(polled, [&mut self.load_cpu_user_s, &mut self.load_cpu_system_s]);
        let host = take_s(load, [&mut self.host_cpu_user_s, &mut self.host_cpu_system_s]);
        (self.load_cpu_polled_s, self.host_cpu_idle_s) = (load, self.host_cpu_idle_s + host);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.load_cpu_user_s += other.load_cpu_user_s;
        self.load_cpu_system_s += other.load_cpu_system_s;
        self.load_cpu_polled_s += other.load_cpu_polled_s;
        self.host_cpu_user_s += other.host_cpu_user_s;
        self.host_cpu_system_s += other.host_cpu_system_s;
        self.host_cpu_idle_s += other.host_cpu_idle_s;
        self.host_cpu_wait_s += other.host_cpu_wait_s;
    }
}
