//! Makes I/O and times it.

mod backend;
pub mod facts;
mod payload;
pub mod record;
pub mod run;
pub mod spec;
mod stream;
mod verify;
mod worker;

pub use facts::{Facts, VolumeFacts};
pub use record::{
    Blame, Event, Generator, Histogram, HistogramError, HlogWriter, HostUse, Interval, Kind, Latency, Op,
    Outcome, Row, Summary, TcpSums,
};
pub use run::{Run, RunError};
pub use spec::{RunSpec, SpecError};
