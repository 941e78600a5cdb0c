//! File system workloads: threads that make, read, write and remove the files of a structure. Open this file first.
//!
//! [`PreparedFilesRun::new`] looks at the structures, [`PreparedFilesRun::start_at`] starts the threads, and
//! [`FilesRun::start`] does both; [`FilesRun::next_interval`] and [`FilesRun::finish`] have the form of a block run's.
//! The words and the rules are vdbench's. Each thread waits for its operation, as an application's does: most of them
//! exist as blocking calls only. So a thread of the file is a thread here.
//!
//! - `spec.rs`: the input. `tree.rs`: the structure and what of it exists; `java.rs`: its random sizes.
//! - `job.rs`: the threads and the clock; `shared.rs`: what they share. `operation.rs`: one thread; `block.rs`: reads
//!   and writes of an open file; `format.rs`: a format.
//! - `file_system`: the calls that threads wait for.
//! - `data`: what blocks contain, and what was written where. `copy.rs`: copies of files in another structure.
//! - `pace.rs`: when operations start. `record.rs`: measurements. `signal.rs`: the end.
//!
//! A read or write takes no memory: buffers belong to threads, paths are built in place. Notes about data that are
//! checked grow with a file.

mod block;
mod copy;
mod data;
mod file_system;
mod format;
mod java;
mod job;
mod operation;
mod pace;
mod prepare;
mod record;
mod shared;
mod signal;
mod spec;

mod tree;

pub use data::contents::WrittenFiles;
pub use file_system::anchor_names;
pub use spec::{
    FileOp, FileRateSpec, FileSelect, FileStreamSpec, FileWorkSpec, FilesIn, FilesRunSpec, FormatSpec,
    HostPart, StructureSpec,
};

use crate::{
    error::RunError,
    facts::{Facts, VolumeFacts},
    record::{Interval, RunOutcome, Summary},
};
use data::FileData;
use job::FilesMessage;
use linerate_io::system;
use prepare::{Prepared, ThreadFiles, prepare};
use shared::Shared;
use signal::Signal;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};
use tree::Tree;

/// A run that is ready: its structures were looked at, and every thread has logged on. Drop logs off.
#[derive(Debug)]
pub struct PreparedFilesRun {
    spec: FilesRunSpec,
    signal: Arc<Signal>,
    trees: Vec<Tree>,
    data: FileData,
    files: Vec<Vec<ThreadFiles>>,
    facts: Facts,
}

impl PreparedFilesRun {
    /// Looks at the structures. `written`: what earlier runs wrote, if data are checked.
    pub fn new(spec: FilesRunSpec, written: &WrittenFiles) -> Result<Self, RunError> {
        spec.validate()?;
        let signal = Arc::new(Signal::default());
        let Prepared { trees, sessions, files } = prepare(&spec, &signal)?;
        let data = FileData::new(&spec, &trees, written)?;
        let facts = facts_of(&spec, &trees, sessions);
        Ok(Self { spec, signal, trees, data, files, facts })
    }

    /// The actual settings.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Starts the threads, which wait for an instant of the monotonic clock. It must be in the future.
    pub fn start_at(self, start_ns: u64) -> Result<FilesRun, RunError> {
        let late_ns = system::now_ns().saturating_sub(start_ns);
        if late_ns > 0 {
            return Err(RunError::Host(format!("the start is over by {} us", late_ns / 1000)));
        }
        self.begin(start_ns)
    }

    /// The same, or now if the instant is over: on one host no other load waits for it.
    fn begin(self, start_ns: u64) -> Result<FilesRun, RunError> {
        let Self { spec, signal, trees, data, files, mut facts } = self;
        facts.started_monotonic_ns = Some(start_ns);
        let shared = Arc::new(Shared::new(spec, trees, data, Arc::clone(&signal), start_ns));
        let (sender, messages) = mpsc::channel();
        thread::Builder::new()
            .name("files".into())
            .spawn(move || job::collect(&shared, files, &sender))
            .map_err(|error| RunError::Host(format!("cannot start a thread: {error}")))?;
        Ok(FilesRun { facts, signal, receiving: Mutex::new(Receiving { messages, end: None }) })
    }
}

/// A running run. Drop stops it.
#[derive(Debug)]
pub struct FilesRun {
    facts: Facts,
    signal: Arc<Signal>,
    receiving: Mutex<Receiving>,
}

#[derive(Debug)]
struct Receiving {
    messages: Receiver<FilesMessage>,
    end: Option<Summary>,
}

impl FilesRun {
    /// Looks at the structures and starts the threads. `written`: what earlier runs wrote, if data are checked.
    pub fn start(spec: FilesRunSpec, written: &WrittenFiles) -> Result<Self, RunError> {
        PreparedFilesRun::new(spec, written)?.begin(system::now_ns())
    }

    /// The actual settings.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The next interval; None when the timeout passes first, or no further interval will come ([`Self::finished`]).
    pub fn next_interval(&self, timeout: Duration) -> Option<Interval> {
        let mut receiving = self.receiving();
        if receiving.end.is_some() {
            return None;
        }
        match receiving.messages.recv_timeout(timeout) {
            Ok(FilesMessage::Interval(interval)) => return Some(*interval),
            Ok(FilesMessage::End(end)) => receiving.end = Some(*end),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => receiving.end = Some(defect()),
        }
        None
    }

    /// No further interval will come.
    pub fn finished(&self) -> bool {
        self.receiving().end.is_some()
    }

    /// Lets operations in flight end and starts no more. Returns at once.
    pub fn stop(&self) {
        self.signal.stop();
    }

    /// Waits for the end. Returns the measurements of the measured time, and how the run ended.
    pub fn finish(&self) -> Summary {
        let mut receiving = self.receiving();
        loop {
            if let Some(end) = &receiving.end {
                return end.clone();
            }
            match receiving.messages.recv() {
                Ok(FilesMessage::Interval(_)) => {}
                Ok(FilesMessage::End(end)) => receiving.end = Some(*end),
                Err(_) => receiving.end = Some(defect()),
            }
        }
    }

    fn receiving(&self) -> MutexGuard<'_, Receiving> {
        self.receiving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FilesRun {
    fn drop(&mut self) {
        self.signal.stop();
    }
}

fn defect() -> Summary {
    let outcome = RunOutcome::Failed(RunError::Internal("the thread that collects intervals died".into()));
    Summary { total: Interval::default(), outcome }
}

fn facts_of(spec: &FilesRunSpec, trees: &[Tree], sessions: Vec<serde_json::Value>) -> Facts {
    let structures = spec.structures.iter().zip(trees).zip(sessions);
    let volume = |((spec, tree), session): ((&StructureSpec, &Tree), serde_json::Value)| {
        let bytes = (0..tree.file_count()).map(|place| tree.wanted_bytes(tree.file_at(place))).sum();
        VolumeFacts {
            name: spec.name.clone(),
            kind: "files".into(),
            size_bytes: bytes,
            capacity_bytes: bytes,
            session,
            ..VolumeFacts::default()
        }
    };
    Facts {
        driver: "threads".into(),
        workers: spec.workloads.iter().map(|work| work.threads as usize).sum(),
        tsc_hz: system::tsc_hz().map_or(0.0, |hz| hz as f64),
        volumes: structures.map(volume).collect(),
        ..Facts::default()
    }
}
