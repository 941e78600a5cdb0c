//! Makes I/O and times it.

pub mod facts;
pub mod record;
pub mod run;
pub mod spec;
mod stream;

pub use facts::{Facts, VolumeFacts};
pub use record::{
    Blame, Event, Generator, Histogram, HistogramError, HlogWriter, HostUse, Interval, Kind, Latency, Op,
    Outcome, Row, Summary, TcpSums,
};
pub use run::{Run, RunError};
pub use spec::{RunSpec, SpecError};
