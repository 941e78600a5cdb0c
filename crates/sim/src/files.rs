//! Files of a simulated host: in memory, with operations that take time. The bytes of an operation are read or written
//! directly before its completion, so that memory which was freed too early is detected.

use crate::world::{World, WorldEvent};
use linerate_io::{Completion, FileOptions, Handle, Region, Seg};
use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
};

/// A file, shared by the hosts that open its path.
#[derive(Debug)]
pub(crate) struct SimFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// What an operation on a file does.
#[derive(Debug)]
pub(crate) enum FileWork {
    Read { segs: Vec<Seg>, offset: u64 },
    Write { segs: Vec<Seg>, offset: u64 },
    Sync,
    Discard { offset: u64, len: u64 },
}

/// A file operation in progress.
#[derive(Debug)]
pub(crate) struct FileOperation {
    pub(crate) station: usize,
    /// The file's handle on its host, and its number here.
    pub(crate) handle: Handle,
    pub(crate) file: usize,
    pub(crate) tag: u64,
    pub(crate) work: FileWork,
}

impl World {
    /// Opens a file, or makes it.
    pub(crate) fn open_file(&mut self, path: &Path, options: &FileOptions) -> io::Result<usize> {
        let found = self.files.iter().position(|file| file.path == path);
        let index = match found {
            Some(index) => index,
            None if options.create => {
                self.files.push(SimFile { path: path.into(), bytes: Vec::new() });
                self.files.len() - 1
            }
            None => return Err(ErrorKind::NotFound.into()),
        };
        if let Some(size_bytes) = options.size_bytes {
            self.files[index].bytes.resize(size_bytes as usize, 0);
        }
        Ok(index)
    }

    pub(crate) fn file_bytes(&self, file: usize) -> u64 {
        self.files[file].bytes.len() as u64
    }

    pub(crate) fn begin_file_operation(&mut self, operation: FileOperation) {
        let most = if self.rng.chance(5) { 10 } else { 1 } * self.conditions.file_ns;
        let at = self.now + self.rng.range(1_000, most);
        self.schedule(at, WorldEvent::File(operation));
    }

    /// Performs an operation, and completes it.
    pub(crate) fn finish_file_operation(&mut self, operation: FileOperation) {
        let FileOperation { station, handle, file, tag, work } = operation;
        let regions = self.stations[station].regions.clone();
        let region = |seg: &Seg| Arc::<Region>::clone(&regions[seg.region.index() as usize]);
        let bytes = &mut self.files[file].bytes;
        let count = match work {
            FileWork::Read { segs, offset } => {
                let mut at = offset as usize;
                for seg in &segs {
                    let end = (at + seg.len as usize).min(bytes.len());
                    region(seg).write(seg.offset, &bytes[at..end]);
                    at = end;
                }
                at - offset as usize
            }
            FileWork::Write { segs, offset } => {
                let mut at = offset as usize;
                for seg in &segs {
                    let end = at + seg.len as usize;
                    region(seg).read(seg.offset, &mut bytes[at..end]);
                    at = end;
                }
                at - offset as usize
            }
            FileWork::Sync => 0,
            FileWork::Discard { offset, len } => {
                bytes[offset as usize..(offset + len) as usize].fill(0);
                0
            }
        };
        let completion = Completion::File { file: handle, tag, result: Ok(count) };
        self.stations[station].ready.push_back(completion);
    }
}
