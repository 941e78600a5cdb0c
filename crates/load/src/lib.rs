//! Makes I/O and times it.
//!
//! A [`RunSpec`] is the input: volumes, streams of I/O over them, shares or rates, and the duration. [`Run::start`]
//! opens the volumes and starts worker threads; [`Run::next_interval`] returns the measurements of each interval,
//! [`Run::finish`] those of the whole run. This crate does not decide what to test: plans, loops and verdicts belong to
//! the lab plane.
//!
//! # The path of one I/O
//!
//! A worker (`worker`) owns its volumes with all their slots, a driver, and its recorder; it shares only a few relaxed
//! counters with other workers. A free slot asks for the next I/O: its stream (`stream::share`), size, direction and
//! place (`stream`), and in an open loop its intended start (`stream::arrival`). The slot submits it to a backend
//! (`backend`: null, file, iSCSI). One flush and one wait per turn of the worker serve all I/Os. A completion is
//! counted (`worker::recorder`) in arrays of its worker, and the slot is free again. There is no lock, no allocation,
//! no system call per I/O: the null backend shows the remaining cost, about a tenth of a microsecond.
//!
//! # The meaning of the times
//!
//! *Service time* is submit to complete. *Response time* is intended start to complete; in a closed loop they are the same.
//! In an open loop the seed fixes the intended starts before the run. So a device that hangs for a while is visible in
//! the response times of everything that was due meanwhile (no coordinated omission). Both are kept as HDR histograms
//! of three digits per stream and operation and interval; they are merged, never averaged.
//!
//! # How shares are kept
//!
//! There are vdbench's two ways and one more; see [`spec::ShareMode`]. *Uncontrolled*: the streams of a volume take
//! turns, and volumes run at their own speed. *Controlled*: proportions are kept per stream and volume, so the slowest
//! volume limits the run. *Total*: streams keep their proportions over all volumes together, and a slow volume slows
//! only itself.
//!
//! # Files
//!
//! `spec` (the input), `run` (threads, start and end), `worker` (the loop), `stream` (the sequence of I/Os), `record`
//! (measurements), `verify` (checked data), `facts` (the actual settings). `bulk` is separate: TCP streams that share
//! the network with storage. `backup` is an image backup. `files` are file system workloads. `ends` reads the ends of
//! network volumes before a run writes.
//! `virtual_time` runs the same streams in virtual time, directly on an array's volumes.

mod backend;
pub mod backup;
pub mod bulk;
pub mod ends;
mod error;
pub mod facts;
pub mod files;
mod payload;
mod plan;
pub mod record;
pub mod run;
mod schedule;
pub mod spec;
mod stream;
mod verify;
mod virtual_time;
mod worker;

pub use bulk::{BulkError, BulkSink, BulkSinkSpec, BulkSource, BulkSourceSpec};
pub use ends::{END_BYTES, VolumeEnds, read_ends};
pub use error::{RunError, WriteRefusal};
pub use facts::{Facts, ThreadFacts, VolumeFacts};
pub use linerate_blame::Blame;
pub use record::{
    Generator, Histogram, HistogramError, HlogWriter, HostUse, Interval, Latency, LatencyKind, Op, PathRow,
    Row, RunEvent, RunOutcome, Summary, TcpSums,
};
pub use run::{PreparedRun, Run};
pub use spec::{RunSpec, SpecError};
pub use virtual_time::{MakeVirtualArray, VirtualArray, VirtualVolume};
