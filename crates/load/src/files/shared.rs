//! What the threads of a run share.

use super::{
    data::{BlockPlace, FileData, contents::WrittenFiles},
    pace::Pace,
    record::{Recorder, event},
    signal::Signal,
    spec::{FileOp, FilesRunSpec, StructureSpec},
    tree::{Tree, remove_notes},
};
use crate::{error::RunError, verify::Wrong};
use linerate_blame::Blame;
use linerate_io::{
    blocking::{self, EntryKind},
    system,
};
use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
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
    /// Looks at the structures. `written`: what earlier runs wrote. `start`: on the monotonic clock.
    pub(super) fn new(
        spec: FilesRunSpec,
        signal: Arc<Signal>,
        written: &WrittenFiles,
    ) -> Result<Self, RunError> {
        let trees: Vec<Tree> = spec
            .structures
            .iter()
            .map(|structure| look_at(structure, spec.format.is_some()))
            .collect::<Result<_, _>>()?;
        make_ready(&spec, &trees)?;
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
            failure: OnceLock::new(),
            data: FileData::new(&spec, &trees, written)?,
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
        // The first one is told; several threads may find one at once.
        let _ = self.failure.set(RunError::Miscompare { volume, message });
        self.signal.stop();
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
        let mut fits = works.filter(|(_, work)| work.does(ops, structure));
        fits.any(|(index, _)| !self.pace.has_ended(index))
    }
}

/// Looks at a structure; its anchor is made if it may be.
fn look_at(structure: &StructureSpec, is_format: bool) -> Result<Tree, RunError> {
    let refused =
        |message: String, blame: Blame| RunError::Volume { volume: structure.name.clone(), message, blame };
    let anchor = Path::new(&structure.anchor);
    let failed = |error: std::io::Error| refused(format!("{}: {error}", structure.anchor), Blame::Host);
    match blocking::entry(anchor).map_err(failed)? {
        Some(EntryKind::File(_)) => {
            return Err(refused(format!("{} is a file; name a folder", structure.anchor), Blame::User));
        }
        None if structure.create_anchor => blocking::make_folders(anchor).map_err(failed)?,
        None => {
            let what =
                format!("there is no folder {}; make it, or write create_anchors=yes", structure.anchor);
            return Err(refused(what, Blame::User));
        }
        Some(_) => {}
    }
    let tree = Tree::new(structure, is_format)?;
    if !is_format {
        tree.look().map_err(failed)?;
    }
    Ok(tree)
}

/// Removes vdbench's notes about structures that the run changes, and makes the folders that targets lack.
fn make_ready(spec: &FilesRunSpec, trees: &[Tree]) -> Result<(), RunError> {
    for work in spec.workloads.iter().filter(|work| changes_structure(work.operation)) {
        for structure in [Some(work.structure), work.target].into_iter().flatten() {
            remove_notes(&trees[structure].anchor)
                .map_err(|error| RunError::Host(format!("vdb_control.file cannot be removed: {error}")))?;
        }
        if let Some(target) = work.target {
            trees[target].make_missing_folders().map_err(|(path, error)| RunError::Volume {
                volume: spec.structures[target].name.clone(),
                message: format!("{path} cannot be made: {error}"),
                blame: Blame::Host,
            })?;
        }
    }
    Ok(())
}

/// Whether an operation makes or removes files or folders.
fn changes_structure(op: FileOp) -> bool {
    matches!(
        op,
        FileOp::Write
            | FileOp::Create
            | FileOp::Delete
            | FileOp::Mkdir
            | FileOp::Rmdir
            | FileOp::Copy
            | FileOp::Move
    )
}
