//! The actual settings of a run: negotiated, resolved and read back at its start. Results record these, not the requested
//! ones.

use serde::Serialize;

/// Facts of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// Driver of the workers.
    pub driver: String,
    /// Worker threads.
    pub workers: usize,
    /// The workers, in order.
    pub threads: Vec<ThreadFacts>,
    /// CPU of each worker; empty = not pinned.
    pub cpus: Vec<usize>,
    /// Cycles per second of the time stamp counter; 0 = unknown.
    pub tsc_hz: f64,
    /// The start of the run on the monotonic clock, at which `at_s` of events is 0. None before the start is known.
    pub started_monotonic_ns: Option<u64>,
    /// In the order of the specification.
    pub volumes: Vec<VolumeFacts>,
}

/// Facts of one worker. Its CPU time can be read from `/proc/PID/task/THREAD_ID/stat` while the run lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadFacts {
    /// The kernel's number of the thread.
    pub thread_id: u32,
    /// Path of the network namespace that it entered; none = this process's.
    pub netns: Option<String>,
}

/// Facts of one volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VolumeFacts {
    /// Its name in the specification.
    pub name: String,
    /// `iscsi`, `smb`, `file`, `block` or `null`.
    pub kind: String,
    /// Worker that drives it.
    pub worker: usize,
    /// Bytes that the run may use.
    pub size_bytes: u64,
    /// Bytes of the whole device.
    pub capacity_bytes: u64,
    /// Smallest unit of I/O.
    pub block_bytes: u32,
    /// iSCSI: the negotiated values, the options and the ends of the socket. With several paths these are those of the
    /// first one in use, and `paths` has those of all. SMB: the same of the file's connection. Null otherwise.
    pub session: serde_json::Value,
}
