//! The results of a run: the measurements of one interval, or of the whole measured time.

use super::Histogram;
use crate::error::RunError;
use linerate_blame::Blame;
use serde::Serialize;

/// Direction of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// From the volume.
    Read,
    /// To the volume.
    Write,
}

/// The time that a distribution is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    /// Submit to complete.
    Service,
    /// Intended start to complete; in a closed loop the same as service.
    Response,
}

/// Counters of one (stream, volume, op).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Index into the specification's streams.
    pub stream: u32,
    /// Index into the specification's volumes.
    pub volume: u32,
    /// Direction.
    pub op: Op,
    /// I/Os completed without error.
    pub ios: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// I/Os that failed; they are not part of the other counters.
    pub errors: u64,
    /// Sum of service times.
    pub service_sum_ns: u64,
    /// Sum of squared service times.
    pub service_sumsq_ns2: f64,
    /// Longest service time, exact.
    pub service_max_ns: u64,
    /// Sum of response times.
    pub response_sum_ns: u64,
    /// Longest response time, exact.
    pub response_max_ns: u64,
    /// Flushes after writes; they are not I/Os.
    pub flushes: u64,
    /// Sum of their times, from submit to complete.
    pub flush_sum_ns: u64,
    /// Longest of them.
    pub flush_max_ns: u64,
}

/// The traffic of one path of a volume. Times are those of the path: an I/O that was sent again on another path counts
/// there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathRow {
    /// Index into the specification's volumes.
    pub volume: u32,
    /// Its name; sessions of one path have the suffixes `#1`, `#2`.
    pub path: String,
    /// Its state at the end, such as `active_optimized` or `failed`.
    pub state: &'static str,
    /// Reads completed without error.
    pub read_ios: u64,
    /// Writes completed without error.
    pub write_ios: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes.
    pub write_bytes: u64,
    /// Sum of service times. Over the wall time, this is the mean number in flight.
    pub service_sum_ns: u64,
    /// Longest service time.
    pub service_max_ns: u64,
    /// I/Os that were in flight when it failed and were sent again on other paths.
    pub requeued: u64,
    /// Segments of its session that were sent again.
    pub retransmits: u64,
    /// Payload bytes of its session that the peer acknowledged.
    pub bytes_sent: u64,
    /// Payload bytes that its session received.
    pub bytes_received: u64,
}

/// A distribution of a stream over all its volumes, or (in the summary) of a volume over all streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// Index of the stream; None: all of the volume's.
    pub stream: Option<u32>,
    /// Index of the volume; None: all of the stream's.
    pub volume: Option<u32>,
    /// Direction.
    pub op: Op,
    /// Service or response time.
    pub kind: LatencyKind,
    /// The counts. Those of a volume are in coarse buckets (6 % wide).
    pub histogram: Histogram,
}

/// Processor time. Host figures cover all processors of the machine. Polls that found nothing are apart: the load does not
/// count them, and to the host they are idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostUse {
    /// Worker threads, user.
    pub load_cpu_user_s: f64,
    /// Worker threads, kernel.
    pub load_cpu_system_s: f64,
    /// Worker threads, polls that found nothing.
    pub load_cpu_polled_s: f64,
    /// Whole host, user and nice.
    pub host_cpu_user_s: f64,
    /// Whole host, kernel and interrupts.
    pub host_cpu_system_s: f64,
    /// Whole host, idle.
    pub host_cpu_idle_s: f64,
    /// Whole host, waiting for block I/O.
    pub host_cpu_wait_s: f64,
    /// Cycles per second of the time stamp counter; 0 = unknown. Cycles per byte = CPU seconds x this / bytes.
    pub tsc_hz: f64,
}

/// Sums over all TCP connections of the run (`TCP_INFO` differences).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TcpSums {
    /// Segments sent again.
    pub retransmits: u64,
    /// Segments with payload sent, including retransmits: `retransmits` is a share of them.
    pub data_segments_sent: u64,
    /// Payload bytes acknowledged by the peer.
    pub bytes_sent: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Time with data to send.
    pub busy_us: u64,
    /// Of which limited by the peer's receive window.
    pub rwnd_limited_us: u64,
    /// Of which limited by our send buffer.
    pub sndbuf_limited_us: u64,
    /// Smoothed round-trip time, mean over connections at the end of the interval.
    pub rtt_us_mean: f64,
}

/// Delays of the generator itself (open loop).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Generator {
    /// I/Os that started more than 100 us after their intended time.
    pub late_arrivals: u64,
    /// Largest number of arrivals that were due and not started at any moment.
    pub backlog_max: u64,
}

/// An event of a run that is reported to the user.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunEvent {
    /// Seconds since the start of the run.
    pub at_s: f64,
    /// Machine-readable: `io_error`, `session_lost`, `session_back`, `volume_failed`, `miscompare`, `reader_slow`, ...
    pub kind: String,
    /// Name of the volume; empty if the event concerns the whole run.
    pub volume: String,
    /// Name of the volume's path; empty if the event concerns none or all of them.
    pub path: String,
    /// Text for the user.
    pub message: String,
    /// Whose fault.
    pub blame: Blame,
}

/// The measurements of one interval. The summary has the same shape over the measured time; it is merged, never averaged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Counts from 0, warm-up included.
    pub index: u32,
    /// Start in seconds since the start of the run.
    pub start_s: f64,
    /// End in seconds since the start of the run.
    pub end_s: f64,
    /// Belongs to the warm-up.
    pub warmup: bool,
    /// Counters by (stream, volume, op), in that order; rows without I/Os and errors are left out.
    pub rows: Vec<Row>,
    /// Distributions by (stream, op, kind), and in the summary also by (volume, op). In a closed loop response times
    /// are the service times and are not listed again.
    pub latencies: Vec<Latency>,
    /// Mean number of I/Os in flight: sum of service times over wall time.
    pub outstanding_mean: f64,
    /// Processor time.
    pub host: HostUse,
    /// TCP.
    pub tcp: TcpSums,
    /// The traffic of each path, for volumes whose specification lists paths; by volume, in the order of its paths.
    pub paths: Vec<PathRow>,
    /// The generator.
    pub generator: Generator,
    /// Events, in order.
    pub events: Vec<RunEvent>,
}

impl Interval {
    /// I/Os of all rows.
    pub fn ios(&self) -> u64 {
        self.rows.iter().map(|row| row.ios).sum()
    }

    /// Bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.rows.iter().map(|row| row.bytes).sum()
    }

    /// Failed I/Os of all rows.
    pub fn errors(&self) -> u64 {
        self.rows.iter().map(|row| row.errors).sum()
    }
}

/// Why a run ended.
#[derive(Clone, Debug)]
pub enum RunOutcome {
    /// Its time was over, all `stop_at_end` streams reached the end, or a limit was reached.
    Completed,
    /// [`crate::Run::stop`] was called.
    Stopped,
    /// It failed. The summary has the measurements until then.
    Failed(RunError),
}

/// The whole measured time.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The measurement, without warm-up.
    pub total: Interval,
    /// How the run ended.
    pub outcome: RunOutcome,
}
