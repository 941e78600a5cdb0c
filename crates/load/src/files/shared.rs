//! What the threads of a run share.

use super::{
    file_system::{FileSystem, file_system, refused},
    pace::Pace,
    record::Recorder,
    signal::Signal,
    spec::{FileOp, FileWorkSpec, FilesRunSpec, StructureSpec},
    tree::{CONTROL_FILE, Tree, remove_notes},
};
use crate::error::RunError;
use linerate_blame::Blame;
use linerate_io::{blocking::EntryKind, system};
use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
};

/// See the module text.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) spec: FilesRunSpec,
    pub(super) trees: Vec<Tree>,
    /// By structure: the facts of its first session.
    pub(super) sessions: Vec<serde_json::Value>,
    /// By workload: for each of its threads, until the thread takes it.
    files_of: Vec<Mutex<Vec<Box<dyn FileSystem>>>>,
    /// Why the run failed.
    failure: Mutex<Option<RunError>>,
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
    /// Looks at the structures, and logs on for every thread, so that no logon is in the time of the run.
    pub(super) fn new(spec: FilesRunSpec, signal: Arc<Signal>) -> Result<Self, RunError> {
        let (mut trees, mut sessions, mut files_of) = (Vec::new(), Vec::new(), Vec::new());
        let mut firsts = Vec::new();
        for (index, structure) in spec.structures.iter().enumerate() {
            let files = file_system(structure, is_changed(&spec, index), &signal)?;
            trees.push(open_structure(&*files, structure, spec.format.is_some())?);
            sessions.push(files.session());
            firsts.push(Some(files));
        }
        for work in &spec.workloads {
            let (index, structure) = (work.structure, &spec.structures[work.structure]);
            let mut mine: Vec<_> = firsts[index].take().into_iter().collect();
            while mine.len() < work.threads as usize {
                mine.push(file_system(structure, is_changed(&spec, index), &signal)?);
            }
            if let Some(files) = mine.first().filter(|_| changes_structure(work.operation)) {
                let anchor = &trees[index].anchor;
                remove_notes(&**files, anchor).map_err(|error| {
                    refused(structure, format!("{anchor}/{CONTROL_FILE} cannot be removed: {error}"), &error)
                })?;
            }
            files_of.push(Mutex::new(mine));
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
            sessions,
            files_of,
            failure: Mutex::new(None),
            spec,
            signal,
            start,
        })
    }

    /// What a thread of a workload uses.
    pub(super) fn take_files(&self, work: usize) -> Option<Box<dyn FileSystem>> {
        self.files_of[work].lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Ends the run, which fails.
    pub(super) fn fail(&self, error: RunError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.signal.stop();
    }

    /// Why the run failed.
    pub(super) fn failure(&self) -> Option<RunError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

/// Whether a run changes a structure.
fn is_changed(spec: &FilesRunSpec, structure: usize) -> bool {
    let changes = |work: &FileWorkSpec| {
        work.structure == structure
            && (changes_structure(work.operation)
                || work.operation == FileOp::Setattr
                || work.read_percent.is_some())
    };
    spec.structures[structure].create_anchor || spec.workloads.iter().any(changes)
}

/// Looks at a structure; its anchor is made if it may be.
fn open_structure(
    files: &dyn FileSystem,
    structure: &StructureSpec,
    is_format: bool,
) -> Result<Tree, RunError> {
    let anchor = Path::new(&structure.anchor);
    let failed = |error: io::Error| refused(structure, format!("{}: {error}", structure.anchor), &error);
    let wrong =
        |message: String| RunError::Volume { volume: structure.name.clone(), message, blame: Blame::User };
    match files.entry(anchor).map_err(failed)? {
        Some(EntryKind::File(_)) => {
            return Err(wrong(format!("{} is a file; name a folder", structure.anchor)));
        }
        None if structure.create_anchor => files.make_folders(anchor).map_err(failed)?,
        None => {
            return Err(wrong(format!(
                "there is no folder {}; make it, or write create_anchors=yes",
                structure.anchor
            )));
        }
        Some(_) => {}
    }
    let tree = Tree::new(structure, is_format)?;
    if !is_format {
        tree.look(files).map_err(failed)?;
    }
    Ok(tree)
}

/// Whether an operation makes or removes files or folders.
fn changes_structure(op: FileOp) -> bool {
    matches!(op, FileOp::Write | FileOp::Create | FileOp::Delete | FileOp::Mkdir | FileOp::Rmdir)
}
