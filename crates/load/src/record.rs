//! Records of a run, and how they leave the hot path.
//!
//! A worker counts into arrays that only it touches ([`tally`]); once per interval it hands them over whole. Turning
//! them into [`Interval`]s (rows, HDR histograms, sums over workers) is done by the caller that asks for the next interval.

pub mod histogram;
pub mod interval;
pub(crate) mod message;
pub(crate) mod tally;

pub use histogram::{HISTOGRAM_MAX_NS, Histogram, HistogramError, HlogWriter};
pub use interval::{
    Generator, HostUse, Interval, Latency, LatencyKind, Op, PathRow, Row, RunEvent, RunOutcome, Summary,
    TcpSums,
};
