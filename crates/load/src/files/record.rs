//! The measurements of a run, in the form of a block run's intervals: each operation of each workload is a stream.

use super::spec::{FileOp, FilesRunSpec, OPS};
use crate::record::{
    Histogram, HostUse, Interval, Latency, LatencyKind, Op, RunEvent,
    cpu_meter::CpuMeter,
    tally::{Cell, Counts},
};
use linerate_blame::Blame;
use linerate_io::system;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Threads share so many sets of counters at most.
const SHARDS_MAX: usize = 16;
/// Most events of failed operations per set of counters and interval; the others are only counted.
const EVENTS_MAX: usize = 10;
const NO_STREAM: u32 = u32::MAX;
/// Later than this after the intended start is late.
const LATE_NS: u64 = 100_000;

impl FileOp {
    /// Whether it changes nothing.
    pub(super) fn direction(self) -> Op {
        match self {
            Self::Read | Self::Getattr | Self::Access | Self::Open | Self::Close => Op::Read,
            Self::Write
            | Self::Mkdir
            | Self::Rmdir
            | Self::Create
            | Self::Delete
            | Self::Setattr
            | Self::Copy
            | Self::Move => Op::Write,
        }
    }
}

/// Counters of some threads.
#[derive(Debug, Default)]
struct Shard {
    cells: Vec<Cell>,
    service: Vec<Counts>,
    response: Vec<Counts>,
    late: u64,
    events: Vec<RunEvent>,
}

/// One operation that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) work: usize,
    pub(super) op: FileOp,
    pub(super) bytes: u64,
    /// When it began and ended.
    pub(super) span: (u64, u64),
    /// When it was due; None: it was not asked for, or there is no rate.
    pub(super) intended: Option<u64>,
}

/// The counters of all threads.
#[derive(Debug)]
pub(super) struct Recorder {
    /// By workload and operation.
    stream_of: Vec<[u32; OPS]>,
    shards: Vec<Mutex<Shard>>,
}

impl Recorder {
    pub(super) fn new(spec: &FilesRunSpec) -> Self {
        let mut stream_of = vec![[NO_STREAM; OPS]; spec.workloads.len()];
        for (index, stream) in spec.streams.iter().enumerate() {
            stream_of[stream.workload][stream.operation as usize] = index as u32;
        }
        let threads: u32 = spec.workloads.iter().map(|work| work.threads).sum();
        let counts = |wanted: bool| if wanted { Counts::new() } else { Counts::default() };
        let shard = || Shard {
            cells: vec![Cell::default(); spec.streams.len()],
            service: spec.streams.iter().map(|_| counts(true)).collect(),
            response: spec.streams.iter().map(|_| counts(spec.rate.is_some())).collect(),
            ..Shard::default()
        };
        let shards = (0..SHARDS_MAX.min(threads as usize)).map(|_| Mutex::new(shard())).collect();
        Self { stream_of, shards }
    }

    fn shard(&self, thread: usize) -> MutexGuard<'_, Shard> {
        self.shards[thread % self.shards.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation that succeeded.
    pub(super) fn done(&self, thread: usize, entry: Entry) {
        let stream = self.stream_of[entry.work][entry.op as usize];
        if stream == NO_STREAM {
            return;
        }
        let stream = stream as usize;
        let service_ns = entry.span.1.saturating_sub(entry.span.0);
        let response_ns = entry.intended.map_or(service_ns, |due| entry.span.1.saturating_sub(due));
        let mut shard = self.shard(thread);
        let cell = &mut shard.cells[stream];
        cell.ios += 1;
        cell.bytes += entry.bytes;
        cell.service_sum_ns += service_ns;
        cell.service_sumsq_ns2 += (service_ns as f64).powi(2);
        cell.service_max_ns = cell.service_max_ns.max(service_ns);
        cell.response_sum_ns += response_ns;
        cell.response_max_ns = cell.response_max_ns.max(response_ns);
        shard.service[stream].record(service_ns);
        if let Some(due) = entry.intended {
            shard.response[stream].record(response_ns);
            shard.late += u64::from(entry.span.0.saturating_sub(due) > LATE_NS);
        }
    }

    /// Counts an operation that failed.
    pub(super) fn failed(
        &self,
        thread: usize,
        (work, op): (usize, FileOp),
        event: impl FnOnce() -> RunEvent,
    ) {
        let mut shard = self.shard(thread);
        if let Some(cell) = shard.cells.get_mut(self.stream_of[work][op as usize] as usize) {
            cell.errors += 1;
        }
        if shard.events.len() < EVENTS_MAX {
            shard.events.push(event());
        }
    }

    /// Adds an event.
    pub(super) fn note(&self, thread: usize, event: RunEvent) {
        self.shard(thread).events.push(event);
    }
}

/// An event of a structure.
pub(super) fn event(kind: &str, at_s: f64, volume: &str, message: String, blame: Blame) -> RunEvent {
    let (kind, volume) = (kind.into(), volume.into());
    RunEvent { at_s, kind, volume, path: String::new(), message, blame }
}

/// Sums of an interval, or of the measured time.
#[derive(Debug, Default)]
struct Sums {
    cells: Vec<Cell>,
    service: Vec<Histogram>,
    response: Vec<Histogram>,
    late: u64,
    host: HostUse,
}

/// Makes intervals of the counters.
#[derive(Debug)]
pub(super) struct Collector {
    /// By stream: its structure and operation.
    streams: Vec<(u32, Op)>,
    is_open_loop: bool,
    cpu: CpuMeter,
    total: Sums,
    measured: Option<(f64, f64)>,
    next: u32,
}

impl Collector {
    pub(super) fn new(spec: &FilesRunSpec) -> Self {
        Self {
            streams: spec
                .streams
                .iter()
                .map(|stream| {
                    let of = spec.workloads[stream.workload].structure_of(stream.operation);
                    (of as u32, stream.operation.direction())
                })
                .collect(),
            is_open_loop: spec.rate.is_some(),
            // That of the load is that of this process.
            cpu: CpuMeter::new(system::process_cpu, system::tsc_hz().map_or(0.0, |hz| hz as f64)),
            total: Sums::of(spec.streams.len()),
            measured: None,
            next: 0,
        }
    }

    /// The interval that ends now.
    pub(super) fn cut(
        &mut self,
        recorder: &Recorder,
        (start_s, end_s): (f64, f64),
        warmup: bool,
    ) -> Interval {
        let mut sums = Sums::of(self.streams.len());
        let mut events = Vec::new();
        for shard in &recorder.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let shard = &mut *shard;
            for (sum, cell) in sums.cells.iter_mut().zip(&mut shard.cells) {
                sum.add(&std::mem::take(cell));
            }
            for (sum, counts) in sums.service.iter_mut().zip(&mut shard.service) {
                counts.drain_into(sum);
            }
            for (sum, counts) in sums.response.iter_mut().zip(&mut shard.response) {
                counts.drain_into(sum);
            }
            sums.late += std::mem::take(&mut shard.late);
            events.append(&mut shard.events);
        }
        events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        sums.host = self.cpu.cut();
        if !warmup {
            self.total.add(&sums);
            self.measured = Some((self.measured.map_or(start_s, |(start, _)| start), end_s));
        }
        let mut interval = self.interval(&sums, (start_s, end_s));
        (interval.index, interval.warmup, interval.events) = (self.next, warmup, events);
        self.next += 1;
        interval
    }

    /// The measured time as one interval.
    pub(super) fn total(&self) -> Interval {
        let mut total = self.interval(&self.total, self.measured.unwrap_or_default());
        let mut of_volumes: Vec<Latency> = Vec::new();
        for (&(volume, op), histogram) in self.streams.iter().zip(&self.total.service) {
            let known = of_volumes.iter_mut().find(|one| (one.volume, one.op) == (Some(volume), op));
            match known {
                _ if histogram.count() == 0 => {}
                Some(one) => one.histogram.merge(histogram),
                None => of_volumes.push(Latency {
                    stream: None,
                    volume: Some(volume),
                    op,
                    kind: LatencyKind::Service,
                    histogram: histogram.clone(),
                }),
            }
        }
        total.latencies.append(&mut of_volumes);
        total
    }

    fn interval(&self, sums: &Sums, (start_s, end_s): (f64, f64)) -> Interval {
        let streams = self.streams.iter().enumerate();
        let rows = streams.clone().zip(&sums.cells).filter(|(_, cell)| cell.ios + cell.errors > 0);
        let kinds = [(LatencyKind::Service, &sums.service), (LatencyKind::Response, &sums.response)];
        let latencies =
            kinds.into_iter().take(1 + usize::from(self.is_open_loop)).flat_map(|(kind, histograms)| {
                streams.clone().zip(histograms).filter(|(_, histogram)| histogram.count() > 0).map(
                    move |((stream, &(_, op)), histogram)| Latency {
                        stream: Some(stream as u32),
                        volume: None,
                        op,
                        kind,
                        histogram: histogram.clone(),
                    },
                )
            });
        let busy_ns: u64 = sums.cells.iter().map(|cell| cell.service_sum_ns).sum();
        let wall_ns = (end_s - start_s) * 1e9;
        let mut interval = Interval {
            start_s,
            end_s,
            latencies: latencies.collect(),
            rows: rows.map(|((stream, &(volume, op)), cell)| cell.row(stream as u32, volume, op)).collect(),
            outstanding_mean: if wall_ns > 0.0 { busy_ns as f64 / wall_ns } else { 0.0 },
            host: sums.host,
            ..Interval::default()
        };
        interval.generator.late_arrivals = sums.late;
        interval
    }
}

impl Sums {
    fn of(streams: usize) -> Self {
        let histograms = || vec![Histogram::new(); streams];
        let cells = vec![Cell::default(); streams];
        Self { cells, service: histograms(), response: histograms(), ..Self::default() }
    }

    fn add(&mut self, other: &Self) {
        for (sum, cell) in self.cells.iter_mut().zip(&other.cells) {
            sum.add(cell);
        }
        for (sum, histogram) in self.service.iter_mut().zip(&other.service) {
            sum.merge(histogram);
        }
        for (sum, histogram) in self.response.iter_mut().zip(&other.response) {
            sum.merge(histogram);
        }
        self.late += other.late;
        self.host.add(&other.host);
        self.host.tsc_hz = other.host.tsc_hz;
    }
}
