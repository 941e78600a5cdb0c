//! A structure of folders and files: its names and sizes are vdbench's, so a structure that one of them has made is the
//! other's too. What exists is kept here while a run lasts; threads claim what they use.

use super::{
    file_system::FileSystem,
    java::JavaRandom,
    spec::{FILES_MAX, FOLDERS_MAX, FilesIn, HostPart, StructureSpec},
};
use crate::error::RunError;
use linerate_blame::Blame;
use linerate_io::blocking::EntryKind;
use std::{
    collections::HashMap,
    fmt::Write,
    io::{self, ErrorKind},
    path::Path,
    sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// The size of a file that does not exist.
const ABSENT: u64 = u64::MAX;
/// The users of a file that one thread has alone.
const ALONE: u32 = u32::MAX;
/// vdbench's own notes about a structure.
pub(super) const CONTROL_FILE: &str = "vdb_control.file";

/// A folder.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: Box<str>,
    parent: Option<u32>,
    /// The number of the folder of the first level that it is in, or is.
    top: u32,
    exists: AtomicBool,
    /// A thread makes or removes it, or something in it.
    busy: AtomicBool,
    /// Files and folders that exist in it.
    entries: AtomicU32,
}

/// A file.
#[derive(Debug)]
struct File {
    size: AtomicU64,
    users: AtomicU32,
}

/// See the module text.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) anchor: String,
    pub(super) folders: Vec<Folder>,
    /// The folders that have files.
    file_folders: Vec<u32>,
    per_folder: u32,
    files: Vec<File>,
    /// By file; one entry: of all files.
    wanted: Vec<u64>,
    /// The files in use; None: all.
    chosen: Option<Vec<u32>>,
    /// Other hosts use the other files.
    host_part: Option<HostPart>,
    next_file: AtomicU64,
    next_folder: AtomicU64,
    existing_files: AtomicU64,
    existing_folders: AtomicU64,
    existing_own_folders: AtomicU64,
}

impl Tree {
    /// The structure as it should be; nothing is looked at. `is_format`: the working set is ignored.
    pub(super) fn new(spec: &StructureSpec, is_format: bool) -> Result<Self, RunError> {
        let refused = |message: String| {
            Err(RunError::Volume { volume: spec.name.clone(), message, blame: Blame::User })
        };
        let (folder_count, bottom) = folders_of(spec);
        let file_count = u64::from(spec.files)
            * match spec.files_in {
                FilesIn::Bottom => bottom,
                FilesIn::All => folder_count,
            };
        if folder_count > FOLDERS_MAX || file_count > FILES_MAX {
            return refused(format!(
                "its structure has {folder_count} folders and {file_count} files; at most {FOLDERS_MAX} and \
                 {FILES_MAX} are supported: lower depth, width or files"
            ));
        }
        let mut tree = Self {
            anchor: spec.anchor.trim_end_matches('/').to_owned(),
            folders: Vec::with_capacity(folder_count as usize),
            file_folders: Vec::new(),
            per_folder: spec.files,
            files: Vec::new(),
            wanted: wanted_sizes(spec, file_count),
            chosen: None,
            host_part: spec.host_part,
            next_file: AtomicU64::new(0),
            next_folder: AtomicU64::new(0),
            existing_files: AtomicU64::new(0),
            existing_folders: AtomicU64::new(0),
            existing_own_folders: AtomicU64::new(0),
        };
        tree.add_folders(spec, None, 1);
        let file = || File { size: AtomicU64::new(ABSENT), users: AtomicU32::new(0) };
        tree.files = (0..file_count).map(|_| file()).collect();
        // As vdbench does, before the subsets are drawn.
        tree.chosen =
            spec.host_part.map(|part| (0..file_count as u32).filter(|file| part.has(*file)).collect());
        for (what, limit) in [
            ("totalsize", spec.total_bytes),
            ("workingsetsize", spec.working_set_bytes.filter(|_| !is_format)),
        ] {
            if let Some(bytes) = limit.filter(|bytes| *bytes > 0) {
                let Some(chosen) = tree.subset(bytes) else {
                    return refused(format!("{what} is larger than all of its files: make it smaller"));
                };
                tree.chosen = Some(chosen);
            }
        }
        Ok(tree)
    }

    fn add_folders(&mut self, spec: &StructureSpec, parent: Option<u32>, depth: u32) {
        for width in 1..=spec.width {
            let above = parent.map_or(self.anchor.as_str(), |index| &self.folders[index as usize].path);
            let path = format!("{above}/vdb.{depth}_{width}.dir").into();
            let (exists, busy, entries) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU32::new(0));
            let index = self.folders.len() as u32;
            let top = parent.map_or(width, |above| self.folders[above as usize].top);
            self.folders.push(Folder { path, parent, top, exists, busy, entries });
            if depth == spec.depth || spec.files_in == FilesIn::All {
                self.file_folders.push(index);
            }
            if depth < spec.depth {
                self.add_folders(spec, Some(index), depth + 1);
            }
        }
    }

    /// Files drawn as vdbench draws them, in the order of the structure; None: there are too few.
    fn subset(&self, bytes: u64) -> Option<Vec<u32>> {
        let from: Vec<u32> = self.chosen.clone().unwrap_or_else(|| (0..self.files.len() as u32).collect());
        if from.iter().map(|&file| self.wanted_bytes(file)).sum::<u64>() < bytes {
            return None;
        }
        let (mut random, mut taken, mut sum) = (JavaRandom::new(0), vec![false; from.len()], 0);
        while sum < bytes {
            let at = (random.unit() * from.len() as f64) as usize;
            if !std::mem::replace(&mut taken[at], true) {
                sum += self.wanted_bytes(from[at]);
            }
        }
        Some(from.into_iter().zip(taken).filter_map(|(file, is_taken)| is_taken.then_some(file)).collect())
    }

    /// Looks at what exists.
    pub(super) fn look(&self, files: &dyn FileSystem) -> io::Result<()> {
        let ordinal: HashMap<u32, u32> =
            self.file_folders.iter().enumerate().map(|(at, folder)| (*folder, at as u32)).collect();
        for (index, folder) in self.folders.iter().enumerate() {
            let parent = folder.parent.map(|parent| &self.folders[parent as usize]);
            if parent.is_some_and(|parent| !parent.exists.load(Relaxed))
                || files.entry(Path::new(&*folder.path))? != Some(EntryKind::Folder)
            {
                continue;
            }
            self.set_folder(index as u32, true);
            let Some(at) = ordinal.get(&(index as u32)) else { continue };
            for (name, kind) in files.names(Path::new(&*folder.path))? {
                let number = name.strip_prefix("vdb_f").and_then(|rest| rest.strip_suffix(".file"));
                let number = number.and_then(|digits| digits.parse::<u32>().ok());
                let number = number.filter(|number| (1..=self.per_folder).contains(number));
                if let (Some(number), EntryKind::File(bytes)) = (number, kind) {
                    self.set_size(at * self.per_folder + number - 1, Some(bytes));
                }
            }
        }
        Ok(())
    }

    /// Makes the folders that do not exist. The error: the path, and why.
    pub(super) fn make_missing_folders(&self, files: &dyn FileSystem) -> Result<(), (String, io::Error)> {
        for (index, folder) in self.folders.iter().enumerate() {
            if !folder.exists.load(Relaxed) {
                let made = files.make_folder(Path::new(&*folder.path));
                if !self.was_done(&made, ErrorKind::AlreadyExists) {
                    made.map_err(|error| (folder.path.to_string(), error))?;
                }
                self.set_folder(index as u32, true);
            }
        }
        Ok(())
    }

    /// Whether another host has made or removed what a call was to make or remove; its error has this kind then.
    pub(super) fn was_done<T>(&self, result: &io::Result<T>, kind: ErrorKind) -> bool {
        self.host_part.is_some() && result.as_ref().is_err_and(|error| error.kind() == kind)
    }

    /// Whether a file, or else a folder of the first level, is of this host's part.
    pub(super) fn is_own(&self, place: u32) -> bool {
        self.host_part.is_none_or(|part| part.has(place))
    }

    /// Whether this host removes a folder: hosts that share a structure divide those of the first level, with all below.
    pub(super) fn is_own_folder(&self, folder: u32) -> bool {
        self.is_own(self.folders[folder as usize].top)
    }

    /// Number of files, in use or not.
    pub(super) fn all_files(&self) -> u32 {
        self.files.len() as u32
    }

    /// Number of files in use.
    pub(super) fn file_count(&self) -> u64 {
        self.chosen.as_ref().map_or(self.files.len(), Vec::len) as u64
    }

    /// The file at a place among those in use.
    pub(super) fn file_at(&self, place: u64) -> u32 {
        self.chosen.as_ref().map_or(place as u32, |chosen| chosen[place as usize])
    }

    /// The next place in the order of files; it counts on past the last one.
    pub(super) fn next_file(&self) -> u64 {
        self.next_file.fetch_add(1, Relaxed)
    }

    /// The next place in the order of folders; it counts on past the last one.
    pub(super) fn next_folder(&self) -> u64 {
        self.next_folder.fetch_add(1, Relaxed)
    }

    /// Files of this host's part that exist.
    pub(super) fn existing_files(&self) -> u64 {
        self.existing_files.load(Relaxed)
    }

    /// Folders that exist.
    pub(super) fn existing_folders(&self) -> u64 {
        self.existing_folders.load(Relaxed)
    }

    /// Folders that exist and that this host removes.
    pub(super) fn existing_own_folders(&self) -> u64 {
        self.existing_own_folders.load(Relaxed)
    }

    /// Writes the path of a file into `path`.
    pub(super) fn file_path(&self, file: u32, path: &mut String) {
        path.clear();
        let number = file % self.per_folder + 1;
        // Writing to a String cannot fail.
        let _ = write!(path, "{}/vdb_f{number:04}.file", self.folders[self.folder_of(file) as usize].path);
    }

    /// The folder of a file.
    pub(super) fn folder_of(&self, file: u32) -> u32 {
        self.file_folders[(file / self.per_folder) as usize]
    }

    /// The size that a file should have.
    pub(super) fn wanted_bytes(&self, file: u32) -> u64 {
        if let [all] = self.wanted[..] { all } else { self.wanted[file as usize] }
    }

    /// The size that a file has; None: it does not exist.
    pub(super) fn size(&self, file: u32) -> Option<u64> {
        Some(self.files[file as usize].size.load(Acquire)).filter(|size| *size != ABSENT)
    }

    /// A file has another size; None: it does not exist any more.
    pub(super) fn set_size(&self, file: u32, size: Option<u64>) {
        let before = self.files[file as usize].size.swap(size.unwrap_or(ABSENT), AcqRel);
        let entries = &self.folders[self.folder_of(file) as usize].entries;
        let counted = u64::from(self.is_own(file));
        match (before != ABSENT, size.is_some()) {
            (false, true) => {
                entries.fetch_add(1, Relaxed);
                self.existing_files.fetch_add(counted, Relaxed);
            }
            (true, false) => {
                entries.fetch_sub(1, Relaxed);
                self.existing_files.fetch_sub(counted, Relaxed);
            }
            _ => {}
        }
    }

    /// A file has at least this size now.
    pub(super) fn grow(&self, file: u32, size: u64) {
        self.files[file as usize].size.fetch_max(size, AcqRel);
    }

    /// Claims a file, alone or with others; false: it is in use.
    pub(super) fn claim(&self, file: u32, alone: bool) -> bool {
        let users = &self.files[file as usize].users;
        let claimed = |now: u32| match (alone, now) {
            (true, 0) => Some(ALONE),
            (true, _) | (false, ALONE) => None,
            (false, now) => Some(now + 1),
        };
        users.fetch_update(AcqRel, Acquire, claimed).is_ok()
    }

    /// Ends a claim.
    pub(super) fn release(&self, file: u32) {
        let users = &self.files[file as usize].users;
        let _ = users.fetch_update(AcqRel, Acquire, |now| Some(if now == ALONE { 0 } else { now - 1 }));
    }

    /// Whether a folder exists; so does the anchor.
    pub(super) fn folder_exists(&self, folder: Option<u32>) -> bool {
        folder.is_none_or(|index| self.folders[index as usize].exists.load(Acquire))
    }

    /// The folder above; None: the anchor.
    pub(super) fn parent(&self, folder: u32) -> Option<u32> {
        self.folders[folder as usize].parent
    }

    /// Files and folders in a folder.
    pub(super) fn entries(&self, folder: u32) -> u32 {
        self.folders[folder as usize].entries.load(Acquire)
    }

    /// A folder was found or made, or is gone.
    pub(super) fn set_folder(&self, folder: u32, exists: bool) {
        let one = &self.folders[folder as usize];
        if one.exists.swap(exists, AcqRel) == exists {
            return;
        }
        let above = one.parent.map(|parent| parent as usize);
        let counted = u64::from(self.is_own_folder(folder));
        if exists {
            self.existing_folders.fetch_add(1, Relaxed);
            self.existing_own_folders.fetch_add(counted, Relaxed);
            above.map(|parent| self.folders[parent].entries.fetch_add(1, Relaxed));
        } else {
            self.existing_folders.fetch_sub(1, Relaxed);
            self.existing_own_folders.fetch_sub(counted, Relaxed);
            above.map(|parent| self.folders[parent].entries.fetch_sub(1, Relaxed));
        }
    }

    /// Claims a folder for a change of it, or of what is in it; false: it is in use. The anchor needs no claim.
    pub(super) fn claim_folder(&self, folder: Option<u32>) -> bool {
        folder.is_none_or(|index| !self.folders[index as usize].busy.swap(true, AcqRel))
    }

    /// Ends a claim.
    pub(super) fn release_folder(&self, folder: Option<u32>) {
        if let Some(index) = folder {
            self.folders[index as usize].busy.store(false, Release);
        }
    }
}

/// Folders of a structure, and those of its last level. Saturates.
fn folders_of(spec: &StructureSpec) -> (u64, u64) {
    let (mut all, mut level) = (0_u64, 1_u64);
    for _ in 0..spec.depth {
        level = level.saturating_mul(u64::from(spec.width));
        all = all.saturating_add(level);
        if all > FOLDERS_MAX {
            break;
        }
    }
    (all, level)
}

/// One size, or that of each file.
fn wanted_sizes(spec: &StructureSpec, files: u64) -> Vec<u64> {
    let mut random = JavaRandom::new(0);
    match spec.sizes[..] {
        [(bytes, percent)] if percent > 0.0 => vec![bytes],
        [(bytes, _)] => (0..files.max(2)).map(|_| size_around(bytes, &mut random)).collect(),
        _ => (0..files.max(2)).map(|_| drawn(&spec.sizes, random.below(100))).collect(),
    }
}

/// The size whose share of 100 has this number.
fn drawn(sizes: &[(u64, f64)], number: u32) -> u64 {
    let mut sum = 0.0;
    for (bytes, percent) in sizes {
        sum += percent;
        if f64::from(number) < sum {
            return *bytes;
        }
    }
    sizes[sizes.len() - 1].0
}

/// vdbench's `sizes=(n,0)`: from half of n to one and a half, rounded more the larger it is.
fn size_around(wanted: u64, random: &mut JavaRandom) -> u64 {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    let wanted = wanted.min(i32::MAX as u64 / 2);
    let drawn = u64::from(random.below(wanted as u32)) + wanted / 2;
    let unit = if drawn >= 10 * MIB {
        MIB
    } else if wanted >= MIB {
        100 * KIB
    } else if wanted >= 100 * KIB {
        10 * KIB
    } else {
        KIB
    };
    // Java's Math.round of a float.
    ((drawn as f32 / unit as f32 + 0.5).floor() as u64 * unit).max(1)
}

/// Removes vdbench's notes about a structure that a run changes: they would be wrong.
pub(super) fn remove_notes(files: &dyn FileSystem, tree: &Tree) -> io::Result<()> {
    let path = format!("{}/{CONTROL_FILE}", tree.anchor);
    let Some(EntryKind::File(_)) = files.entry(Path::new(&path))? else { return Ok(()) };
    let removed = files.remove_file(Path::new(&path));
    if tree.was_done(&removed, ErrorKind::NotFound) { Ok(()) } else { removed }
}
