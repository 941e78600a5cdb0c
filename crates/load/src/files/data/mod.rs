//! What blocks of files contain: random bytes that compress as asked, duplicates, data that are checked when they are
//! read, or what was read before (a copy).

pub(super) mod contents;

use super::{
    shared::Shared,
    spec::{FileOp, FileWorkSpec, FilesRunSpec, StructureSpec},
    tree::Tree,
};
use crate::{
    error::RunError,
    payload::{
        duplicates::{Duplicates, Pattern},
        fill_random,
    },
    spec::DedupSpec,
    stream::rng::{Rng, Use},
    verify::{Stamp, Wrong},
};
use contents::{StructureContents, WrittenFiles};
use linerate_blame::Blame;
use std::sync::Arc;

/// Memory that suits `O_DIRECT`.
const ALIGN_BYTES: usize = 4096;
const PAGE_BYTES: usize = 4096;

/// A place in a file of a structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockPlace {
    pub(super) structure: usize,
    pub(super) file: u32,
    pub(super) offset: u64,
}

/// What the threads of a run share of data, by structure; empty if the run does not need it.
#[derive(Debug)]
pub(super) struct FileData {
    contents: Vec<Arc<StructureContents>>,
    duplicates: Vec<FileDuplicates>,
}

/// The duplicates of a structure. Its files are seen as one volume, one after the other.
#[derive(Debug)]
struct FileDuplicates {
    made: Duplicates,
    /// Where each file begins on that volume.
    starts: Vec<u64>,
}

impl FileData {
    /// For structures that were looked at.
    pub(super) fn new(spec: &FilesRunSpec, trees: &[Tree], written: &WrittenFiles) -> Result<Self, RunError> {
        let structures = || spec.structures.iter().zip(trees);
        let contents = spec.verify_unit_bytes.map_or(Vec::new(), |unit_bytes| {
            structures().map(|(structure, tree)| written.of(structure, tree, unit_bytes)).collect()
        });
        let duplicates = spec.dedup.map_or(Ok(Vec::new()), |dedup| {
            let pattern = Pattern::new(dedup.unit_bytes.into(), spec.compression_ratio.unwrap_or(1.0));
            let of = |(structure, tree): (&StructureSpec, &Tree)| {
                FileDuplicates::new(dedup, pattern.clone(), (spec.seed, &structure.name), tree)
            };
            structures().map(of).collect()
        })?;
        let data = Self { contents, duplicates };
        let is_looked_at = spec.format.is_none();
        let lost = |(nth, contents): (usize, &Arc<StructureContents>)| {
            let (file, wrote, has) = contents.shortened(&trees[nth])?;
            let mut path = String::new();
            trees[nth].file_path(file, &mut path);
            let message = format!("{path}: {wrote} bytes were written, and it has {has}");
            Some(RunError::Miscompare { volume: spec.structures[nth].name.clone(), message })
        };
        let lost = data.contents.iter().enumerate().filter(|_| is_looked_at).find_map(lost);
        lost.map_or(Ok(data), Err)
    }

    /// A write has ended.
    pub(super) fn written(&self, at: BlockPlace, bytes: usize, succeeded: bool) {
        if let Some(contents) = self.contents.get(at.structure) {
            contents.written(at.file, at.offset, bytes, succeeded);
        }
    }

    /// A file was removed.
    pub(super) fn removed(&self, structure: usize, file: u32) {
        if let Some(contents) = self.contents.get(structure) {
            contents.removed(file);
        }
    }

    /// All files of a structure may be removed.
    pub(super) fn all_removed(&self, structure: usize) {
        if let Some(contents) = self.contents.get(structure) {
            contents.all_removed();
        }
    }

    /// The other file of the structure whose block was found.
    pub(super) fn other_file(&self, structure: usize, wrong: &Wrong) -> Option<u32> {
        self.contents.get(structure)?.file_of(wrong.other_file?)
    }
}

impl FileDuplicates {
    fn new(
        dedup: DedupSpec,
        pattern: Pattern,
        (seed, name): (u64, &str),
        tree: &Tree,
    ) -> Result<Self, RunError> {
        let unit = u64::from(dedup.unit_bytes);
        let mut starts = Vec::with_capacity(tree.all_files() as usize);
        let mut next = 0;
        for file in 0..tree.all_files() {
            starts.push(next);
            next += tree.wanted_bytes(file).next_multiple_of(unit);
        }
        let used = (0..tree.file_count()).map(|place| tree.wanted_bytes(tree.file_at(place)));
        let bytes = used.map(|bytes| bytes.next_multiple_of(unit)).sum();
        let refused = |message| RunError::Volume { volume: name.to_owned(), message, blame: Blame::User };
        Ok(Self { made: Duplicates::new(dedup, pattern, bytes, (seed, name)).map_err(refused)?, starts })
    }

    fn put(&self, at: BlockPlace, data: &mut [u8], unique: &mut u64) {
        let offset = self.starts[at.file as usize] + at.offset;
        for part in self.made.parts(offset, data.len() as u64) {
            *unique = unique.wrapping_add(1);
            let (from, bytes) = (part.at as usize, self.made.bytes(part, *unique));
            data[from..from + bytes.len()].copy_from_slice(bytes);
            for (at, stamp) in self.made.stamps(part, *unique) {
                let (at, left) = (at as usize, data.len() - at as usize);
                data[at..at + left.min(8)].copy_from_slice(&stamp[..left.min(8)]);
            }
        }
    }
}

/// Where a thread's written data come from.
#[derive(Debug)]
enum Source {
    /// Random bytes; every page begins with a number that no other has.
    Random,
    Duplicates,
    /// Blocks that are compared when they are read.
    Checked(Box<Stamp>),
    /// What was read last.
    Read,
}

/// The memory of a thread's blocks.
#[derive(Debug)]
pub(super) struct BlockBuffers {
    read: AlignedMemory,
    write: AlignedMemory,
    source: Source,
    unique: u64,
}

#[derive(Debug, Default)]
struct AlignedMemory {
    memory: Vec<u8>,
    start: usize,
}

impl AlignedMemory {
    fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + ALIGN_BYTES];
        let start = memory.as_ptr().align_offset(ALIGN_BYTES);
        Self { memory, start }
    }

    fn of(&mut self, bytes: usize) -> &mut [u8] {
        &mut self.memory[self.start..self.start + bytes]
    }
}

impl BlockBuffers {
    /// For a thread of a workload; it has memory for what the workload does.
    pub(super) fn new(shared: &Shared, work_index: usize, thread: usize) -> Self {
        let work = &shared.spec.workloads[work_index];
        let copies = work.target.is_some();
        let source = match shared.data.contents.first() {
            Some(contents) => Source::Checked(Box::new(contents.new_stamp())),
            None if copies => Source::Read,
            None if shared.spec.dedup.is_some() => Source::Duplicates,
            None => Source::Random,
        };
        let sizes = work.sizes.iter().map(|(bytes, _)| *bytes as usize);
        let largest = sizes.clone().max().unwrap_or(0);
        let reads = copies || does(work, FileOp::Read);
        let writes = does(work, FileOp::Write) || (copies && !matches!(source, Source::Read));
        let memory = |wanted: bool| AlignedMemory::new(if wanted { largest } else { 0 });
        let (read, mut write) = (memory(reads), memory(writes));
        let mut rng = Rng::new(shared.spec.seed, work_index as u32, thread as u32, Use::Payload);
        if writes && matches!(source, Source::Random) {
            let page = sizes.min().unwrap_or(PAGE_BYTES).clamp(8, PAGE_BYTES);
            let ratio = shared.spec.compression_ratio.unwrap_or(1.0);
            for page in write.of(largest).chunks_mut(page) {
                fill_random(page, ratio, &mut rng);
            }
        }
        Self { read, write, source, unique: (rng.bits() << 20) ^ thread as u64 }
    }

    /// No memory.
    pub(super) fn none() -> Self {
        Self {
            read: AlignedMemory::default(),
            write: AlignedMemory::default(),
            source: Source::Random,
            unique: 0,
        }
    }

    /// The memory of a read.
    pub(super) fn read(&mut self, bytes: usize) -> &mut [u8] {
        self.read.of(bytes)
    }

    /// The data of a write.
    pub(super) fn data(&mut self, data: &FileData, at: BlockPlace, bytes: usize) -> &[u8] {
        match &mut self.source {
            Source::Read => return self.read.of(bytes),
            Source::Checked(stamp) => {
                data.contents[at.structure].stamp(stamp, at.file, at.offset, self.write.of(bytes));
            }
            Source::Duplicates => {
                data.duplicates[at.structure].put(at, self.write.of(bytes), &mut self.unique);
            }
            Source::Random => {
                for page in self.write.of(bytes).chunks_mut(PAGE_BYTES).filter(|page| page.len() >= 8) {
                    self.unique = self.unique.wrapping_add(0x9E37_79B9_7F4A_7C15);
                    page[..8].copy_from_slice(&self.unique.to_le_bytes());
                }
            }
        }
        self.write.of(bytes)
    }

    /// Compares what was read with what was written. Returns the first block that differs.
    pub(super) fn check(&mut self, data: &FileData, at: BlockPlace, bytes: usize) -> Option<Wrong> {
        let Source::Checked(stamp) = &mut self.source else { return None };
        data.contents[at.structure].check(stamp, at.file, at.offset, self.read.of(bytes))
    }
}

/// Whether a workload reads, or writes, blocks that it was asked for.
fn does(work: &FileWorkSpec, op: FileOp) -> bool {
    let share = |read: f64| if op == FileOp::Read { read } else { 100.0 - read };
    work.read_percent.map_or(work.operation == op, |read| share(read) > 0.0)
}
