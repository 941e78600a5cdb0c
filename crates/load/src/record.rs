//! Records of a run, and their way out of the hot path.
//!
//! A worker counts in arrays that only it uses ([`tally`]); once per interval it sends them as a whole. The caller of
//! the next interval converts them into [`Interval`]s (rows, HDR histograms, sums over workers).

pub(crate) mod cpu_meter;
pub mod histogram;
pub mod interval;
pub(crate) mod message;
pub(crate) mod tally;

pub use histogram::{HISTOGRAM_MAX_NS, Histogram, HistogramError, HlogWriter};
pub use interval::{
    Generator, HostUse, Interval, Latency, LatencyKind, Op, PathRow, Row, RunEvent, RunOutcome, Summary,
    TcpSums,
};
