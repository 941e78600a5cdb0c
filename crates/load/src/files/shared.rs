//! What the threads of a run share.

use super::{
    data::{BlockPlace, FileData},
    pace::Pace,
    record::{Recorder, event},
    signal::Signal,
    spec::{FileOp, FilesRunSpec},
    tree::Tree,
};
use crate::{error::RunError, verify::Wrong};
use linerate_blame::Blame;
use linerate_io::system;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
};

/// See the module text.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) spec: FilesRunSpec,
    pub(super) trees: Vec<Tree>,
    pub(super) data: FileData,
    pub(super) pace: Pace,
    pub(super) recorder: Recorder,
    pub(super) signal: Arc<Signal>,
    pub(super) start: u64,
    /// Threads that work, in all and by workload.
    pub(super) live: AtomicUsize,
    pub(super) live_of: Vec<AtomicUsize>,
    /// Threads in all, and how often one has ended a part of a format.
    pub(super) threads: usize,
    pub(super) parts_ended: AtomicUsize,
    pub(super) next_thread: AtomicU64,
    /// Why the run has failed; the first reason stays.
    pub(super) failure: OnceLock<RunError>,
}

impl Shared {
    /// For structures that were looked at; the run starts at the instant `start`.
    pub(super) fn new(
        spec: FilesRunSpec,
        trees: Vec<Tree>,
        data: FileData,
        signal: Arc<Signal>,
        start: u64,
    ) -> Self {
        let threads = spec.workloads.iter().map(|work| work.threads as usize);
        Self {
            pace: Pace::new(&spec, start),
            recorder: Recorder::new(&spec),
            live: AtomicUsize::new(threads.clone().sum()),
            live_of: threads.clone().map(AtomicUsize::new).collect(),
            threads: threads.sum(),
            parts_ended: AtomicUsize::new(0),
            next_thread: AtomicU64::new(0),
            failure: OnceLock::new(),
            data,
            trees,
            spec,
            signal,
            start,
        }
    }

    /// Waits for the start, or until the run is over.
    pub(super) fn wait_for_start(&self) {
        loop {
            let left = self.start.saturating_sub(system::now_ns());
            if left == 0 || self.signal.wait(left) {
                return;
            }
        }
    }

    /// Ends the run, which fails.
    pub(super) fn fail(&self, error: RunError) {
        // Several threads may fail at once; the first reason stays.
        let _ = self.failure.set(error);
        self.signal.stop();
    }

    /// Ends a part of a format: waits until all threads have ended so many parts, or the run is over.
    pub(super) fn end_part(&self, parts: usize) {
        let all = self.threads * parts;
        if self.parts_ended.fetch_add(1, SeqCst) + 1 == all {
            self.signal.notify();
        }
        self.signal.wait_for(|| self.parts_ended.load(SeqCst) >= all);
    }

    /// Ends the run: a block does not contain what was written to it.
    pub(super) fn miscompare(&self, thread: usize, at: BlockPlace, wrong: &Wrong) {
        let path = |file: u32| {
            let mut path = String::new();
            self.trees[at.structure].file_path(file, &mut path);
            path
        };
        let mut message = format!("{}: {wrong}", path(at.file));
        if let Some(other) = self.data.other_file(at.structure, wrong) {
            message = format!("{message}; the other file is {}", path(other));
        }
        let volume = self.spec.structures[at.structure].name.clone();
        let told = event("miscompare", self.seconds(), &volume, message.clone(), Blame::Peer);
        self.recorder.note(thread, told);
        self.fail(RunError::Miscompare { volume, message });
    }

    /// Seconds since the start.
    pub(super) fn seconds(&self) -> f64 {
        system::now_ns().saturating_sub(self.start) as f64 / 1e9
    }

    /// Whether a workload with one of these operations still works on a structure.
    pub(super) fn is_active(&self, structure: usize, ops: &[FileOp]) -> bool {
        let works = self.spec.workloads.iter().enumerate();
        let mut fits = works.filter(|(_, work)| work.does(ops, structure));
        fits.any(|(index, _)| !self.pace.has_ended(index))
    }
}
