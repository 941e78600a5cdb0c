//! Before the run: looks at the structures, and logs on for every thread, so that no logon is in the time of the run.

use super::{
    file_system::{FileSystem, file_system, refused},
    signal::Signal,
    spec::{FileOp, FileWorkSpec, FilesRunSpec, StructureSpec},
    tree::{CONTROL_FILE, Tree, remove_notes},
};
use crate::error::RunError;
use linerate_blame::Blame;
use linerate_io::blocking::EntryKind;
use std::{io, path::Path, sync::Arc};

/// What a thread uses: the files of its structure, and those of the structure that gets the copies.
#[derive(Debug)]
pub(super) struct ThreadFiles {
    pub(super) own: Box<dyn FileSystem>,
    pub(super) target: Option<Box<dyn FileSystem>>,
}

impl ThreadFiles {
    /// One after the other.
    pub(super) fn each(&self) -> impl Iterator<Item = &dyn FileSystem> {
        [Some(&self.own), self.target.as_ref()].into_iter().flatten().map(|files| &**files)
    }
}

/// See the module text.
pub(super) struct Prepared {
    pub(super) trees: Vec<Tree>,
    /// By structure: the facts of its first session.
    pub(super) sessions: Vec<serde_json::Value>,
    /// By workload: for each of its threads.
    pub(super) files: Vec<Vec<ThreadFiles>>,
}

/// See the module text.
pub(super) fn prepare(spec: &FilesRunSpec, signal: &Arc<Signal>) -> Result<Prepared, RunError> {
    let connect = |index: usize| file_system(&spec.structures[index], is_changed(spec, index), signal);
    let (mut trees, mut sessions, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
    for (index, structure) in spec.structures.iter().enumerate() {
        let first = connect(index)?;
        trees.push(open_structure(&*first, structure, spec.format.is_some())?);
        sessions.push(first.session());
        firsts.push(Some(first));
    }
    let mut files = Vec::new();
    for work in &spec.workloads {
        let mut next = |index: usize| firsts[index].take().map_or_else(|| connect(index), Ok);
        let mut mine = Vec::new();
        for _ in 0..work.threads {
            let own = next(work.structure)?;
            mine.push(ThreadFiles { own, target: work.target.map(&mut next).transpose()? });
        }
        if let Some(first) = mine.first() {
            make_ready(work, first, spec, &trees)?;
        }
        files.push(mine);
    }
    Ok(Prepared { trees, sessions, files })
}

/// Whether a run changes a structure.
fn is_changed(spec: &FilesRunSpec, structure: usize) -> bool {
    let changes = |work: &FileWorkSpec| {
        let here = work.structure == structure
            && (changes_structure(work.operation)
                || work.operation == FileOp::Setattr
                || work.read_percent.is_some());
        here || work.target == Some(structure)
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

/// Removes vdbench's notes about structures that a workload changes, and makes the folders that its target lacks.
fn make_ready(
    work: &FileWorkSpec,
    files: &ThreadFiles,
    spec: &FilesRunSpec,
    trees: &[Tree],
) -> Result<(), RunError> {
    if !changes_structure(work.operation) {
        return Ok(());
    }
    let places = [Some(work.structure), work.target].into_iter().flatten();
    for (files, index) in files.each().zip(places) {
        remove_notes(files, &trees[index]).map_err(|error| {
            let what = format!("{}/{CONTROL_FILE} cannot be removed: {error}", trees[index].anchor);
            refused(&spec.structures[index], what, &error)
        })?;
    }
    if let (Some(target), Some(files)) = (work.target, &files.target) {
        trees[target].make_missing_folders(&**files).map_err(|(path, error)| {
            refused(&spec.structures[target], format!("{path} cannot be made: {error}"), &error)
        })?;
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
