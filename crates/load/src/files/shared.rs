//! What the threads of a run share.

use super::{
    file_system::{FileSystem, HostFiles},
    pace::Pace,
    record::Recorder,
    signal::Signal,
    spec::{FileOp, FilesRunSpec},
    tree::{Tree, remove_notes},
};
use crate::error::RunError;
use linerate_blame::Blame;
use linerate_io::{blocking::EntryKind, system};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
};

/// See the module text.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) spec: FilesRunSpec,
    pub(super) trees: Vec<Tree>,
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
}

impl Shared {
    /// Looks at the structures. `start`: on the monotonic clock.
    pub(super) fn new(spec: FilesRunSpec, signal: Arc<Signal>) -> Result<Self, RunError> {
        let files = HostFiles;
        let mut trees = Vec::new();
        for structure in &spec.structures {
            let refused = |message: String, blame: Blame| RunError::Volume {
                volume: structure.name.clone(),
                message,
                blame,
            };
            let anchor = Path::new(&structure.anchor);
            let failed =
                |error: std::io::Error| refused(format!("{}: {error}", structure.anchor), Blame::Host);
            match files.entry(anchor).map_err(failed)? {
                Some(EntryKind::File(_)) => {
                    return Err(refused(
                        format!("{} is a file; name a folder", structure.anchor),
                        Blame::User,
                    ));
                }
                None if structure.create_anchor => files.make_folders(anchor).map_err(failed)?,
                None => {
                    let what = format!(
                        "there is no folder {}; make it, or write create_anchors=yes",
                        structure.anchor
                    );
                    return Err(refused(what, Blame::User));
                }
                Some(_) => {}
            }
            let tree = Tree::new(structure, spec.format.is_some())?;
            if spec.format.is_none() {
                tree.look(&files).map_err(failed)?;
            }
            trees.push(tree);
        }
        for work in spec.workloads.iter().filter(|work| changes_structure(work.operation)) {
            remove_notes(&files, &trees[work.structure].anchor)
                .map_err(|error| RunError::Host(format!("vdb_control.file cannot be removed: {error}")))?;
        }
        let threads = spec.workloads.iter().map(|work| work.threads as usize);
        let start = system::now_ns();
        Ok(Self {
            pace: Pace::new(&spec, start),
            recorder: Recorder::new(&spec),
            live: AtomicUsize::new(threads.clone().sum()),
            live_of: threads.clone().map(AtomicUsize::new).collect(),
            threads: threads.sum(),
            parts_ended: AtomicUsize::new(0),
            next_thread: AtomicU64::new(0),
            trees,
            spec,
            signal,
            start,
        })
    }

    /// Ends a part of a format: waits until all threads have ended so many parts, or the run is over.
    pub(super) fn end_part(&self, parts: usize) {
        let all = self.threads * parts;
        if self.parts_ended.fetch_add(1, SeqCst) + 1 == all {
            self.signal.notify();
        }
        self.signal.wait_for(|| self.parts_ended.load(SeqCst) >= all);
    }

    /// Seconds since the start.
    pub(super) fn seconds(&self) -> f64 {
        system::now_ns().saturating_sub(self.start) as f64 / 1e9
    }

    /// When the run started, on the monotonic clock.
    pub(super) fn started(&self) -> u64 {
        self.start
    }

    /// Whether a workload with one of these operations still works on a structure.
    pub(super) fn is_active(&self, structure: usize, ops: &[FileOp]) -> bool {
        let works = self.spec.workloads.iter().enumerate();
        let mut fits = works.filter(|(_, work)| work.structure == structure && ops.contains(&work.operation));
        fits.any(|(index, _)| !self.pace.has_ended(index))
    }
}

/// Whether an operation makes or removes files or folders.
fn changes_structure(op: FileOp) -> bool {
    matches!(op, FileOp::Write | FileOp::Create | FileOp::Delete | FileOp::Mkdir | FileOp::Rmdir)
}
