//! Makes I/O and times it.
//!
//! A [`RunSpec`] says what to do: volumes, streams of I/O over them, shares or rates, for how long. [`Run::start`] opens
//! the volumes and starts worker threads; [`Run::next_interval`] gives what each interval measured, [`Run::finish`] the
//! whole. Nothing here decides what to test: plans, loops and verdicts belong to the lab plane.
//!
//! # How one I/O travels
//!
//! A worker (`worker`) owns its volumes with all their slots, a driver, and its books; it shares nothing with other workers
//! but a few relaxed counters. A free slot asks for the next I/O: which stream (`stream::share`), how large, read or write,
//! where (`stream`), and in an open loop when it was meant to start (`stream::arrival`). The slot hands it to a backend
//! (`backend`: null, file, iSCSI). One flush and one wait per turn of the worker carry everything. A completion is
//! counted (`worker::recorder`) into arrays of its worker, and the slot is free again. No lock, no allocation, no
//! system call of its own: the null backend shows what is left, about a tenth of a microsecond.
//!
//! # What the times mean
//!
//! *Service time* is submit to complete. *Response time* is intended start to complete; in a closed loop they are the same.
//! In an open loop the intended starts are fixed by the seed before the run, so a device that hangs for a while
//! shows in the response times of everything that was due meanwhile (no coordinated omission). Both are kept as HDR
//! histograms of three digits per stream and operation and interval; they are merged, never averaged.
//!
//! # How shares are kept
//!
//! vdbench's two ways and one more; see [`spec::ShareMode`]. *Uncontrolled*: the streams of a volume take turns, volumes
//! run freely. *Controlled*: proportions hold per stream and volume, so the slowest volume gates the run. *Total*:
//! streams keep their proportions over all volumes together, and a slow volume slows only itself.
//!
//! # Where to read on
//!
//! `spec` (the input), `run` (threads, start and end), `worker` (the loop), `stream` (the sequence of I/Os), `record`
//! (measurements), `verify` (checked data), `facts` (the actual settings). `bulk` is separate: TCP streams
//! that share the network with storage; `ends` reads the ends of network volumes before a run writes; `virtual_time` runs
//! the same streams in virtual time, straight on an array's volumes.

mod backend;
pub mod bulk;
pub mod ends;
mod error;
pub mod facts;
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
pub use error::RunError;
pub use facts::{Facts, ThreadFacts, VolumeFacts};
pub use linerate_blame::Blame;
pub use record::{
    Generator, Histogram, HistogramError, HlogWriter, HostUse, Interval, Latency, LatencyKind, Op, PathRow,
    Row, RunEvent, RunOutcome, Summary, TcpSums,
};
pub use run::{PreparedRun, Run};
pub use spec::{RunSpec, SpecError};
pub use virtual_time::{MakeVirtualArray, VirtualArray, VirtualVolume};
