//! The measurements of a job, in the form of a run's intervals: its streams are the parts of the job.

use super::parts::{JobPart, Role};
use crate::{
    error::RunError,
    record::{
        Histogram, HostUse, Interval, Latency, LatencyKind, Op, Row, RunEvent, RunOutcome, Summary,
        cpu_meter::CpuMeter,
        tally::{Cell, TcpTally},
    },
};
use linerate_io::{Nanos, system};
use serde::Serialize;
use std::collections::BTreeMap;

/// What is not an I/O of data, over the whole job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct JobTotals {
    /// Flushes of image and target.
    pub flushes: u64,
    /// Time in flushes.
    pub flush_s: f64,
    /// Changes of the length of the image's file.
    pub length_changes: u64,
    /// Time in changes of the length.
    pub length_change_s: f64,
    /// Blocks of the image that are in the file at the end.
    pub allocated_blocks: u64,
    /// Bytes that were compared with what backups wrote.
    pub verified_bytes: u64,
}

/// The end of a job.
#[derive(Clone, Debug)]
pub(super) struct JobEnd {
    pub(super) summary: Summary,
    pub(super) totals: JobTotals,
}

impl JobEnd {
    pub(super) fn of_a_defect() -> Self {
        let outcome = RunOutcome::Failed(RunError::Internal("the thread of a backup died".into()));
        Self { summary: Summary { total: Interval::default(), outcome }, totals: JobTotals::default() }
    }
}

/// Sums of an interval, or of the whole job.
#[derive(Debug, Default)]
struct Sums {
    cells: BTreeMap<(u32, u32, Op), Cell>,
    latencies: BTreeMap<(u32, Op), Histogram>,
    tcp: TcpTally,
    host: HostUse,
}

/// See the module text.
#[derive(Debug)]
pub(super) struct JobRecorder {
    start: Nanos,
    interval_ns: Nanos,
    index: u32,
    cut: Nanos,
    now: Sums,
    total: Sums,
    /// By volume, over the whole job.
    of_volumes: BTreeMap<(u32, Op), Histogram>,
    cpu: CpuMeter,
    pub(super) events: Vec<RunEvent>,
    pub(super) totals: JobTotals,
}

impl JobRecorder {
    /// A job that starts now.
    pub(super) fn new(start: Nanos, interval_s: f64, tsc_hz: f64) -> Self {
        Self {
            start,
            interval_ns: (interval_s * 1e9) as Nanos,
            index: 0,
            cut: start,
            now: Sums::default(),
            total: Sums::default(),
            of_volumes: BTreeMap::new(),
            cpu: CpuMeter::new(system::thread_cpu, tsc_hz),
            events: Vec::new(),
            totals: JobTotals::default(),
        }
    }

    /// When the interval ends.
    pub(super) fn next_cut(&self) -> Nanos {
        self.cut + self.interval_ns
    }

    /// Seconds since the start.
    pub(super) fn seconds(&self, at: Nanos) -> f64 {
        at.saturating_sub(self.start) as f64 / 1e9
    }

    /// A read or write has ended.
    pub(super) fn done(&mut self, part: JobPart, volume: Role, op: Op, bytes: u32, service_ns: Option<u64>) {
        let (part, volume) = (part as u32, volume as u32);
        let cell = self.now.cells.entry((part, volume, op)).or_default();
        let Some(service_ns) = service_ns else {
            cell.errors += 1;
            return;
        };
        cell.ios += 1;
        cell.bytes += u64::from(bytes);
        cell.service_sum_ns += service_ns;
        cell.service_sumsq_ns2 += (service_ns as f64).powi(2);
        cell.service_max_ns = cell.service_max_ns.max(service_ns);
        cell.response_sum_ns += service_ns;
        cell.response_max_ns = cell.response_max_ns.max(service_ns);
        self.now.latencies.entry((part, op)).or_default().record(service_ns, 1);
        self.of_volumes.entry((volume, op)).or_default().record(service_ns, 1);
    }

    /// Ends the interval.
    pub(super) fn cut(&mut self, now: Nanos, tcp: &TcpTally) -> Interval {
        self.now.host = self.cpu.cut();
        self.now.tcp.add(tcp);
        let sums = std::mem::take(&mut self.now);
        self.total.add(&sums);
        let events = std::mem::take(&mut self.events);
        let span = (self.seconds(self.cut), self.seconds(now));
        let interval = sums.into_interval(self.index, span, events);
        self.index += 1;
        self.cut = now;
        interval
    }

    /// The whole job as one interval, after the last cut.
    pub(super) fn total(&mut self) -> Interval {
        let end_s = self.seconds(self.cut);
        let mut total = std::mem::take(&mut self.total).into_interval(0, (0.0, end_s), Vec::new());
        let of_volume = |((volume, op), histogram)| Latency {
            stream: None,
            volume: Some(volume),
            op,
            kind: LatencyKind::Service,
            histogram,
        };
        total.latencies.extend(std::mem::take(&mut self.of_volumes).into_iter().map(of_volume));
        total
    }
}

impl Sums {
    fn add(&mut self, other: &Self) {
        for (key, cell) in &other.cells {
            self.cells.entry(*key).or_default().add(cell);
        }
        for (key, histogram) in &other.latencies {
            self.latencies.entry(*key).or_default().merge(histogram);
        }
        self.tcp.add(&other.tcp);
        self.host.add(&other.host);
        self.host.tsc_hz = other.host.tsc_hz;
    }

    fn into_interval(self, index: u32, (start_s, end_s): (f64, f64), events: Vec<RunEvent>) -> Interval {
        let row = |((stream, volume, op), cell): ((u32, u32, Op), Cell)| cell.row(stream, volume, op);
        let rows: Vec<Row> = self.cells.into_iter().map(row).collect();
        let latency = |((stream, op), histogram)| Latency {
            stream: Some(stream),
            volume: None,
            op,
            kind: LatencyKind::Service,
            histogram,
        };
        let busy_ns: u64 = rows.iter().map(|row| row.service_sum_ns).sum();
        let wall_ns = (end_s - start_s) * 1e9;
        Interval {
            index,
            start_s,
            end_s,
            outstanding_mean: if wall_ns > 0.0 { busy_ns as f64 / wall_ns } else { 0.0 },
            latencies: self.latencies.into_iter().map(latency).collect(),
            rows,
            host: self.host,
            tcp: self.tcp.sums(),
            events,
            ..Interval::default()
        }
    }
}
