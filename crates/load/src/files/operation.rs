//! A thread of a workload: it takes a permit, carries out one operation, waits for it, and counts it.
//!
//! An operation works on files or folders that the thread has claimed. Blocks of a file are read and written between
//! one open and one close, which are counted too.

use super::{
    block::OpenBlocks,
    data::BlockBuffers,
    file_system::{FileSystem, OpenedFile, blame_of, refused},
    prepare::ThreadFiles,
    record::{Entry, event},
    shared::Shared,
    spec::{FileOp, FileSelect, FileWorkSpec},
    tree::Tree,
};
use crate::{
    error::WriteRefusal,
    stream::rng::{Rng, Use},
};
use linerate_blame::Blame;
use linerate_io::{blocking::BlockingMode, system};
use std::{
    io::{self, ErrorKind},
    path::Path,
};

/// A search that found so many files or folders in use, or in the wrong state, waits before it goes on.
const MISSES_AT_ONCE: u64 = 64;
const MISS_WAIT_NS: u64 = 100_000;
/// After so many of them in a row the thread ends (vdbench's number).
const MISSES_MAX: u64 = 10_000;
/// A file gets a time of last change that is so far in the future (vdbench's number).
const YEAR_S: f64 = 31_536_000.0;

/// See the module text.
#[derive(Debug)]
pub(super) struct FileThread<'a> {
    pub(super) shared: &'a Shared,
    pub(super) tree: &'a Tree,
    pub(super) work: &'a FileWorkSpec,
    pub(super) files: ThreadFiles,
    pub(super) index: usize,
    /// Of the workload.
    pub(super) work_index: usize,
    pub(super) rng: Rng,
    pub(super) path: String,
    pub(super) buffers: BlockBuffers,
    pub(super) open: Option<OpenBlocks>,
}

/// What became of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// An operation was made, or failed.
    Done,
    /// The thread has nothing more to do.
    Over,
}

impl<'a> FileThread<'a> {
    pub(super) fn new(shared: &'a Shared, work_index: usize, index: usize, files: ThreadFiles) -> Self {
        let work = &shared.spec.workloads[work_index];
        let rng = Rng::new(shared.spec.seed, work_index as u32, index as u32, Use::Shots);
        Self {
            shared,
            tree: &shared.trees[work.structure],
            work,
            files,
            index,
            work_index,
            rng,
            path: String::new(),
            buffers: BlockBuffers::new(shared, work_index, index),
            open: None,
        }
    }

    /// Works until the run is over or nothing is left to do.
    pub(super) fn run(&mut self) {
        loop {
            let (may_start, intended) = self.shared.pace.permit(self.work_index, &self.shared.signal);
            if !may_start || self.operation(intended) == Turn::Over {
                break;
            }
        }
        self.close_blocks();
    }

    fn operation(&mut self, intended: Option<u64>) -> Turn {
        match self.work.operation {
            FileOp::Read | FileOp::Write => self.block(intended),
            FileOp::Mkdir | FileOp::Rmdir => self.folder(intended),
            FileOp::Create => self.create(intended),
            FileOp::Copy | FileOp::Move => self.copy(intended),
            _ => self.file(intended),
        }
    }

    /// Times a call and counts it. None: it failed, which is counted too.
    pub(super) fn timed<T>(
        &self,
        op: FileOp,
        (bytes, intended): (u64, Option<u64>),
        call: impl FnOnce() -> io::Result<T>,
    ) -> Option<T> {
        let (span, result) = self.carried_out(call);
        self.counted(op, (bytes, intended), span, result)
    }

    /// Makes the folder whose path is at hand. Another host that shares the structure may have made it: it is there then,
    /// and not counted. None: it failed, which is counted.
    pub(super) fn make_named_folder(&self, intended: Option<u64>) -> Option<()> {
        let (span, result) = self.carried_out(|| self.files.own.make_folder(Path::new(&self.path)));
        if self.tree.was_done(&result, ErrorKind::AlreadyExists) {
            return Some(());
        }
        self.counted(FileOp::Mkdir, (0, intended), span, result)
    }

    /// Makes a call and tells what happened besides. Returns the instants of its begin and end too.
    fn carried_out<T>(&self, call: impl FnOnce() -> io::Result<T>) -> ((u64, u64), io::Result<T>) {
        let begun = system::now_ns();
        let result = call();
        let span = (begun, system::now_ns());
        for notice in self.files.each().flat_map(FileSystem::take_notices) {
            let seconds = self.shared.seconds();
            let told = event(notice.kind, seconds, self.structure(), notice.message, notice.blame);
            self.shared.recorder.note(self.index, told);
        }
        (span, result)
    }

    /// Counts what began and ended at the instants of `span`. None: it failed, which is counted too.
    pub(super) fn counted<T>(
        &self,
        op: FileOp,
        (bytes, intended): (u64, Option<u64>),
        span: (u64, u64),
        result: io::Result<T>,
    ) -> Option<T> {
        match result {
            Ok(value) => {
                let entry = Entry { work: self.work_index, op, bytes, span, intended };
                self.shared.recorder.done(self.index, entry);
                Some(value)
            }
            Err(error) => {
                let what = format!("{} of {} failed: {error}", words(op), self.path);
                let (blame, _) = blame_of(&error, Blame::Peer);
                if WriteRefusal::of_call(error.kind()).is_some() {
                    let structure = &self.shared.spec.structures[self.work.structure];
                    self.shared.fail(refused(structure, what.clone(), &error));
                }
                self.shared.recorder.failed(self.index, (self.work_index, op), || {
                    event("io_error", self.shared.seconds(), self.structure(), what, blame)
                });
                if let Some(failure) = self.files.each().find_map(FileSystem::failure) {
                    self.shared.fail(failure);
                }
                None
            }
        }
    }

    /// Puts the path of a file at hand, for its operations and their messages.
    pub(super) fn name_file(&mut self, structure: usize, file: u32) {
        self.shared.trees[structure].file_path(file, &mut self.path);
    }

    /// Opens the file whose path is at hand, and counts that.
    pub(super) fn open_named(&self, structure: usize, mode: BlockingMode) -> Option<Box<dyn OpenedFile>> {
        let files = self.files_of(structure);
        self.timed(FileOp::Open, (0, None), || files.open(Path::new(&self.path), mode))
    }

    /// Deletes the file whose path is at hand, and counts that. None: it failed.
    pub(super) fn delete_named(&self, structure: usize, file: u32, intended: Option<u64>) -> Option<()> {
        let files = self.files_of(structure);
        self.timed(FileOp::Delete, (0, intended), || files.remove_file(Path::new(&self.path)))?;
        self.shared.trees[structure].set_size(file, None);
        self.shared.data.removed(structure, file);
        Some(())
    }

    /// The files of the thread's structure, or of its target.
    fn files_of(&self, structure: usize) -> &dyn FileSystem {
        let target = self.files.target.as_deref().filter(|_| structure != self.work.structure);
        target.unwrap_or(&*self.files.own)
    }

    pub(super) fn structure(&self) -> &str {
        &self.shared.spec.structures[self.work.structure].name
    }

    /// The next place in the order, or a random one; None: each had its turn.
    fn next_place(&mut self, count: u64, next: impl FnOnce(&Tree) -> u64) -> Option<u64> {
        let select = match self.work.operation {
            // Files in their order are copied once each.
            FileOp::Copy if self.work.select == FileSelect::Sequential => FileSelect::Once,
            _ => self.work.select,
        };
        match select {
            _ if count == 0 => None,
            FileSelect::Random => Some(self.rng.below(count)),
            FileSelect::Sequential => Some(next(self.tree) % count),
            FileSelect::Once => Some(next(self.tree)).filter(|place| *place < count),
        }
    }

    /// Claims a file that `suits`, given its size. None: the run is over, or there is no such file.
    pub(super) fn claim_file(&mut self, alone: bool, suits: impl Fn(&Tree, u32) -> bool) -> Option<u32> {
        let mut misses = 0;
        loop {
            let file = self.next_place(self.tree.file_count(), Tree::next_file)?;
            let file = self.tree.file_at(file);
            if self.tree.claim(file, alone) {
                if suits(self.tree, file) {
                    return Some(file);
                }
                self.tree.release(file);
            }
            misses += 1;
            if self.gives_up(misses) {
                return None;
            }
        }
    }

    /// Whether a search is to end: nothing that suits can be left, or it took too long.
    fn gives_up(&self, misses: u64) -> bool {
        let (tree, shared) = (self.tree, self.shared);
        let others = |ops: &[FileOp]| shared.is_active(self.work.structure, ops);
        let is_hopeless = match self.work.operation {
            FileOp::Mkdir => {
                tree.existing_folders() == tree.folders.len() as u64 && !others(&[FileOp::Rmdir])
            }
            FileOp::Rmdir => tree.existing_own_folders() == 0 && !others(&[FileOp::Mkdir]),
            FileOp::Create => tree.existing_files() >= tree.file_count() && !others(&[FileOp::Delete]),
            _ => tree.existing_files() == 0 && !others(&[FileOp::Create, FileOp::Write]),
        };
        if is_hopeless {
            return true;
        }
        let places = tree.file_count().max(tree.folders.len() as u64);
        if misses >= MISSES_MAX.max(4 * places) {
            let what = format!(
                "{}: a thread ends, since it found nothing for {} in {misses} attempts",
                self.work.name,
                words(self.work.operation)
            );
            let told = event("no_work", shared.seconds(), self.structure(), what, Blame::User);
            shared.recorder.note(self.index, told);
            return true;
        }
        misses.is_multiple_of(MISSES_AT_ONCE) && shared.signal.wait(MISS_WAIT_NS)
            || shared.signal.is_stopped()
    }

    /// delete, getattr, setattr, access, open, close.
    fn file(&mut self, intended: Option<u64>) -> Turn {
        let op = self.work.operation;
        let alone = op == FileOp::Delete || !self.work.shared_files;
        let Some(file) = self.claim_file(alone, |tree, file| tree.size(file).is_some()) else {
            return Turn::Over;
        };
        self.name_file(self.work.structure, file);
        let at = Path::new(&self.path);
        let asked = (0, intended);
        match op {
            FileOp::Delete => {
                self.delete_named(self.work.structure, file, intended);
            }
            FileOp::Getattr => drop(self.timed(op, asked, || self.files.own.entry(at))),
            FileOp::Setattr => {
                let later = system::unix_time_s() + YEAR_S;
                self.timed(op, asked, || self.files.own.set_modified(at, later as i64));
            }
            FileOp::Access => drop(self.timed(op, asked, || self.files.own.may_read(at))),
            FileOp::Open => {
                let file = self.timed(op, asked, || self.files.own.open(at, self.mode(false)));
                self.close(file);
            }
            _ => {
                if let Some(file) = self.open_named(self.work.structure, self.mode(true)) {
                    self.timed_close(op, asked, file);
                }
            }
        }
        self.tree.release(file);
        Turn::Done
    }

    /// Makes an empty file.
    fn create(&mut self, intended: Option<u64>) -> Turn {
        let suits = |tree: &Tree, file: u32| {
            tree.size(file).is_none() && tree.folder_exists(Some(tree.folder_of(file)))
        };
        let Some(file) = self.claim_file(true, suits) else { return Turn::Over };
        self.name_file(self.work.structure, file);
        let mode = BlockingMode { create: true, ..self.mode(true) };
        let made = self.timed(FileOp::Create, (0, intended), || {
            let opened = self.open_named(self.work.structure, mode);
            // The failure of the open was counted and told.
            opened.map(|opened| self.close(Some(opened))).ok_or_else(|| io::Error::other("it was not opened"))
        });
        if made.is_some() {
            self.tree.set_size(file, Some(0));
        }
        self.tree.release(file);
        Turn::Done
    }

    /// mkdir, rmdir.
    fn folder(&mut self, intended: Option<u64>) -> Turn {
        let (tree, makes) = (self.tree, self.work.operation == FileOp::Mkdir);
        let mut misses = 0;
        let folder = loop {
            let Some(folder) = self.next_place(tree.folders.len() as u64, Tree::next_folder) else {
                return Turn::Over;
            };
            let folder = folder as u32;
            if self.claim_change(folder, makes) {
                break folder;
            }
            misses += 1;
            if self.gives_up(misses) {
                return Turn::Over;
            }
        };
        self.path.clear();
        self.path.push_str(&tree.folders[folder as usize].path);
        let remove = || self.files.own.remove_folder(Path::new(&self.path));
        let changed = if makes {
            self.make_named_folder(intended)
        } else {
            self.timed(FileOp::Rmdir, (0, intended), remove)
        };
        if changed.is_some() {
            tree.set_folder(folder, makes);
        }
        tree.release_folder(tree.parent(folder));
        tree.release_folder(Some(folder));
        Turn::Done
    }

    /// Claims a folder and the one above it if the folder can be made or removed.
    fn claim_change(&self, folder: u32, makes: bool) -> bool {
        let (tree, above) = (self.tree, self.tree.parent(folder));
        let is_mine = makes || tree.is_own_folder(folder);
        if !is_mine || tree.folder_exists(Some(folder)) == makes || !tree.claim_folder(Some(folder)) {
            return false;
        }
        if tree.claim_folder(above) {
            let fits = if makes {
                !tree.folder_exists(Some(folder)) && tree.folder_exists(above)
            } else {
                tree.folder_exists(Some(folder)) && tree.entries(folder) == 0
            };
            if fits {
                return true;
            }
            tree.release_folder(above);
        }
        tree.release_folder(Some(folder));
        false
    }

    /// How this workload opens files.
    pub(super) fn mode(&self, write: bool) -> BlockingMode {
        BlockingMode { write, create: false, direct: self.work.direct, durable: self.work.durable }
    }

    fn timed_close(&self, op: FileOp, asked: (u64, Option<u64>), file: Box<dyn OpenedFile>) {
        self.timed(op, asked, || file.close());
    }

    /// Closes a file, and counts that.
    pub(super) fn close(&self, file: Option<Box<dyn OpenedFile>>) {
        if let Some(file) = file {
            self.timed_close(FileOp::Close, (0, None), file);
        }
    }
}

/// An operation in messages.
pub(super) fn words(op: FileOp) -> &'static str {
    match op {
        FileOp::Read => "read",
        FileOp::Write => "write",
        FileOp::Mkdir => "mkdir",
        FileOp::Rmdir => "rmdir",
        FileOp::Create => "create",
        FileOp::Delete => "delete",
        FileOp::Getattr => "getattr",
        FileOp::Setattr => "setattr",
        FileOp::Access => "access",
        FileOp::Open => "open",
        FileOp::Close => "close",
        FileOp::Copy => "copy",
        FileOp::Move => "move",
    }
}
