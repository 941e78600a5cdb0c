//! The input of a run of a file system workload: structures of files, and what threads do to them. JSON, version 1.

use crate::{
    spec::{ArrivalProcess, DedupSpec, Secret, SmbOptions, SpecError},
    verify::UNIT_BYTES_MAX,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the JSON form that this crate reads.
const FILES_VERSION: u32 = 1;
/// Most files of one structure: each takes about 20 bytes of memory.
pub(super) const FILES_MAX: u64 = 20_000_000;
/// Most folders of one structure: each takes about 200 bytes of memory.
pub(super) const FOLDERS_MAX: u64 = 2_000_000;
const THREADS_MAX: u32 = 4096;

/// An operation on files and folders, in the words of vdbench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileOp {
    /// Reads a block of an open file.
    Read,
    /// Writes a block of an open file.
    Write,
    /// Makes a folder.
    Mkdir,
    /// Removes a folder that is empty.
    Rmdir,
    /// Makes an empty file.
    Create,
    /// Removes a file.
    Delete,
    /// Reads the attributes of a file.
    Getattr,
    /// Sets the time of the last change of a file.
    Setattr,
    /// Asks whether a file may be read.
    Access,
    /// Opens a file for reading, and closes it.
    Open,
    /// Opens a file for writing, and closes it.
    Close,
    /// Copies a file into another structure.
    Copy,
    /// Copies a file into another structure, and removes it.
    Move,
}

/// How many operations there are.
pub(super) const OPS: usize = FileOp::Move as usize + 1;

/// Folders that have files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilesIn {
    /// Those of the last level.
    #[default]
    Bottom,
    /// All.
    All,
}

/// A structure of folders and files under one folder, its anchor (vdbench: file system definition).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StructureSpec {
    /// The name that messages use.
    pub name: String,
    /// Path of the anchor, or `smb://host:port/share/folder`; never holds a user or a secret.
    pub anchor: String,
    /// Of a share: the user, as `user` or `DOMAIN\user`.
    #[serde(default)]
    pub user: Option<String>,
    /// Of a share: the password.
    #[serde(default)]
    pub secret: Option<Secret>,
    /// Of a share: the session.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    #[schemars(with = "linerate_smb::SmbOptions")]
    pub smb: SmbOptions,
    /// Levels of folders.
    pub depth: u32,
    /// Folders in each folder.
    pub width: u32,
    /// Files in each folder that has files.
    pub files: u32,
    /// Sizes of files in bytes, each with its percentage. One size with 0 percent: sizes around it.
    pub sizes: Vec<(u64, f64)>,
    /// Folders that have files.
    #[serde(default)]
    pub files_in: FilesIn,
    /// Only so many bytes of the files are used, chosen at random.
    #[serde(default)]
    pub total_bytes: Option<u64>,
    /// Of these, only so many bytes are used, chosen at random. A format ignores it.
    #[serde(default)]
    pub working_set_bytes: Option<u64>,
    /// Make the anchor and its parents.
    #[serde(default)]
    pub create_anchor: bool,
    /// Other hosts use it at the same time; None: this run alone does.
    #[serde(default)]
    pub host_part: Option<HostPart>,
}

/// The part of a structure that belongs to one of the hosts that share it: every `of`-th file, from file `number` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostPart {
    /// Of this host, from 0.
    pub number: u32,
    /// How many hosts share the structure.
    pub of: u32,
}

impl HostPart {
    /// Whether what has this place in an order is of the part.
    pub(super) fn has(self, place: u32) -> bool {
        place % self.of == self.number
    }
}

impl StructureSpec {
    /// Whether it is another structure with the same files. One may be on this host, and the other on a share.
    fn has_the_files_of(&self, other: &Self) -> bool {
        self.anchor != other.anchor
            && (self.depth, self.width, self.files) == (other.depth, other.width, other.files)
            && (&self.sizes, self.files_in, self.total_bytes, self.host_part)
                == (&other.sizes, other.files_in, other.total_bytes, other.host_part)
    }
}

/// How a thread chooses its next file or folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileSelect {
    /// In the order of the structure, and again from the first.
    #[default]
    Sequential,
    /// At random.
    Random,
    /// Each once, in the order of the structure.
    Once,
}

/// What a group of threads does (vdbench: file system workload definition, with one operation on one structure).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileWorkSpec {
    /// The name that messages use.
    pub name: String,
    /// Index into the structures.
    pub structure: usize,
    /// What it does.
    pub operation: FileOp,
    /// Index into the structures: where copies go. It has the same folders and files.
    #[serde(default)]
    pub target: Option<usize>,
    /// Percentage of blocks that are read of each file; None: as the operation says.
    #[serde(default)]
    pub read_percent: Option<f64>,
    /// Blocks at random places, not one after the other.
    #[serde(default)]
    pub random_io: bool,
    /// Several threads may use one file.
    #[serde(default)]
    pub shared_files: bool,
    /// How files and folders are chosen.
    #[serde(default)]
    pub select: FileSelect,
    /// Sizes of blocks in bytes, each with its percentage.
    pub sizes: Vec<(u32, f64)>,
    /// Threads.
    pub threads: u32,
    /// Percentage of all operations that were asked for.
    pub share_percent: f64,
    /// A file is closed after so many blocks.
    #[serde(default)]
    pub stop_after_blocks: Option<u64>,
    /// A file is closed after this percentage of its size.
    #[serde(default)]
    pub stop_after_percent: Option<f64>,
    /// `O_DIRECT`.
    #[serde(default)]
    pub direct: bool,
    /// `O_DSYNC`.
    #[serde(default)]
    pub durable: bool,
}

/// What a format does. It ends when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatSpec {
    /// First remove what has names of a structure.
    pub delete: bool,
    /// Make the folders.
    pub folders: bool,
    /// Make the files, and write those that are not full.
    pub files: bool,
}

/// The rate of operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRateSpec {
    /// Operations that were asked for, per second.
    pub per_s: f64,
    /// Times between them.
    pub process: ArrivalProcess,
}

/// What a stream of the results counts: one operation of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileStreamSpec {
    /// Its name in the results.
    pub name: String,
    /// Index into the workloads.
    pub workload: usize,
    /// The operation.
    pub operation: FileOp,
}

/// One run of a file system workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesRunSpec {
    /// Always 1.
    pub version: u32,
    /// Determines every sequence of files, places, sizes and times.
    #[serde(default)]
    pub seed: u64,
    /// Seconds at the start that are not measured.
    #[serde(default)]
    pub warmup_s: f64,
    /// Seconds measured after the warm-up; None: until the work is done.
    #[serde(default)]
    pub elapsed_s: Option<f64>,
    /// Seconds per interval.
    pub interval_s: f64,
    /// The structures.
    pub structures: Vec<StructureSpec>,
    /// The workloads.
    pub workloads: Vec<FileWorkSpec>,
    /// The streams of the results.
    pub streams: Vec<FileStreamSpec>,
    /// The rate of operations; None: the maximum.
    #[serde(default)]
    pub rate: Option<FileRateSpec>,
    /// The run is a format: its workloads, one per structure, write files.
    #[serde(default)]
    pub format: Option<FormatSpec>,
    /// Written data compress so many to one; None: not at all.
    #[serde(default)]
    pub compression_ratio: Option<f64>,
    /// Duplicates in written data.
    #[serde(default)]
    pub dedup: Option<DedupSpec>,
    /// Every block of so many bytes is checked when it is read; None: data are not checked.
    #[serde(default)]
    pub verify_unit_bytes: Option<u32>,
}

impl FileWorkSpec {
    /// The structure that an operation of it changes or reads, as results show it.
    pub(super) fn structure_of(&self, operation: FileOp) -> usize {
        match (operation, self.target) {
            (FileOp::Write | FileOp::Create | FileOp::Copy, Some(target)) => target,
            (FileOp::Delete, Some(target)) if self.operation == FileOp::Copy => target,
            _ => self.structure,
        }
    }

    /// Whether it has an operation of these on a structure; a copy makes files there, and a move removes some too.
    pub(super) fn does(&self, ops: &[FileOp], structure: usize) -> bool {
        let on = |asked: &FileOp| match (self.operation, asked) {
            (FileOp::Copy | FileOp::Move, FileOp::Write) => self.target == Some(structure),
            (FileOp::Move, FileOp::Delete) => self.structure == structure,
            (operation, asked) => operation == *asked && self.structure == structure,
        };
        ops.iter().any(on)
    }
}

impl FilesRunSpec {
    /// Finds contradictions that need no look at a folder.
    pub(super) fn validate(&self) -> Result<(), SpecError> {
        let wrong = |message: &str| Err(SpecError::value("files", message));
        if self.version != FILES_VERSION {
            return Err(SpecError::Version(self.version));
        }
        if !(self.interval_s >= 0.1 && self.warmup_s >= 0.0 && self.elapsed_s.unwrap_or(1.0) > 0.0) {
            return wrong("interval, warm-up or elapsed time is out of range");
        }
        if self.structures.is_empty() || self.workloads.is_empty() {
            return wrong("there is no structure or no workload");
        }
        for structure in &self.structures {
            let sizes = structure.sizes.iter().all(|(bytes, _)| *bytes > 0);
            if structure.depth == 0 || structure.width == 0 || !sizes || structure.sizes.is_empty() {
                return wrong("a structure needs a depth, a width and sizes above 0");
            }
            if structure.host_part.is_some_and(|part| part.number >= part.of) {
                return wrong("the number of a host is below the number of hosts");
            }
            let removes_and_makes = self.format.is_some_and(|one| one.delete && (one.folders || one.files));
            if structure.host_part.is_some() && removes_and_makes {
                return wrong(
                    "a format of several hosts either removes or makes: one would remove what another has made",
                );
            }
        }
        for work in &self.workloads {
            let sizes = !work.sizes.is_empty() && work.sizes.iter().all(|(bytes, _)| *bytes > 0);
            if work.structure >= self.structures.len() || !sizes || work.share_percent <= 0.0 {
                return wrong("a workload needs a structure, sizes and a share");
            }
            if !(1..=THREADS_MAX).contains(&work.threads) {
                return wrong("a workload has 1 to 4096 threads");
            }
        }
        self.validate_data()?;
        if self.streams.iter().any(|stream| stream.workload >= self.workloads.len()) {
            return wrong("a stream counts a workload that does not exist");
        }
        Ok(())
    }

    /// What blocks contain, and copies.
    fn validate_data(&self) -> Result<(), SpecError> {
        let wrong = |message: &str| Err(SpecError::value("files", message));
        if let Some(dedup) = self.dedup {
            dedup.check("files.dedup")?;
        }
        if self.compression_ratio.is_some_and(|ratio| !(1.0..=1e9).contains(&ratio)) {
            return wrong("a compression ratio is at least 1");
        }
        if let Some(unit) = self.verify_unit_bytes {
            let mut sizes = self.workloads.iter().flat_map(|work| &work.sizes);
            if !(512..=UNIT_BYTES_MAX).contains(&unit)
                || unit % 8 != 0
                || !sizes.all(|(bytes, _)| bytes % unit == 0)
            {
                return wrong("checked data need units of 512 to 4096 bytes that divide all sizes of blocks");
            }
            if self.dedup.is_some() || self.workloads.iter().any(|work| work.shared_files) {
                return wrong("checked data have no duplicates, and one thread uses a file at a time");
            }
        }
        for work in &self.workloads {
            let copies = matches!(work.operation, FileOp::Copy | FileOp::Move);
            let target = work.target.and_then(|target| self.structures.get(target));
            let fits = |target: &StructureSpec| target.has_the_files_of(&self.structures[work.structure]);
            if copies != work.target.is_some() || (copies && !target.is_some_and(fits)) {
                return wrong(
                    "a copy, and nothing else, has a target: another structure with the same files",
                );
            }
        }
        Ok(())
    }
}
