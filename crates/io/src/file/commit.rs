//! Group commit: durable writes of one file that are in flight together share their flush.
//!
//! A durable write that is alone is written through (`RWF_DSYNC`), which has the shortest latency. While another one is in
//! flight, a write is written without a flush, and is complete when a flush (`fdatasync`) that began after it has ended. A
//! file has one flush at a time. Writes that end meanwhile share the next flush.
//!
//! If a flush fails, all of its writes fail: the kernel reports an error once, and may have dropped the bytes of any.

use crate::{Completion, Handle, pool::OpenFile};
use std::{io, net::TcpStream};

/// How a write becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// Its caller does not ask for it.
    None,
    /// With the write.
    Through,
    /// With the next flush of the file.
    Shared,
}

/// The durable writes in flight of all files of a driver.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    /// Only files with durable writes in flight.
    files: Vec<FileCommits>,
    /// For reuse, so that nothing is allocated per write.
    spare: Vec<FileCommits>,
}

#[derive(Debug)]
struct FileCommits {
    handle: Handle,
    /// None while it is spare, so that no file stays open.
    open: Option<OpenFile>,
    /// Durable writes that are being written, those written through included.
    writing: u32,
    /// Written, and waiting for a flush: tag and bytes.
    written: Vec<(u64, usize)>,
    /// Written before the flush that is in progress.
    flushing: Vec<(u64, usize)>,
    is_flushing: bool,
}

impl Commits {
    /// A durable write begins.
    pub(crate) fn begin(&mut self, handle: Handle, open: &OpenFile) -> Commit {
        if let Some(file) = self.files.iter_mut().find(|file| file.handle == handle) {
            file.writing += 1;
            return Commit::Shared;
        }
        let spare = self.spare.pop().unwrap_or_default();
        self.files.push(FileCommits { handle, open: Some(open.clone()), writing: 1, ..spare });
        Commit::Through
    }

    /// A write has ended. Its completion is appended to `ready`, now or after a flush.
    pub(crate) fn written(
        &mut self,
        handle: Handle,
        tag: u64,
        commit: Commit,
        result: io::Result<usize>,
        ready: &mut Vec<Completion<TcpStream>>,
    ) {
        if commit != Commit::None {
            let at = self.at(handle);
            let file = &mut self.files[at];
            file.writing -= 1;
            if let (Commit::Shared, Ok(moved)) = (commit, &result) {
                return file.written.push((tag, *moved));
            }
            self.end_if_idle(at);
        }
        ready.push(Completion::File { file: handle, tag, result });
    }

    /// A file whose flush is to be started now.
    pub(crate) fn next_flush(&mut self) -> Option<(Handle, OpenFile)> {
        let file = self.files.iter_mut().find(|file| !file.is_flushing && !file.written.is_empty())?;
        file.is_flushing = true;
        std::mem::swap(&mut file.written, &mut file.flushing);
        debug_assert!(file.written.is_empty(), "writes of a flush that is under way are not flushed again");
        Some((file.handle, file.open.clone()?))
    }

    /// The flush of a file has ended; the completions of its writes are appended to `ready`.
    pub(crate) fn flushed(
        &mut self,
        handle: Handle,
        result: &io::Result<usize>,
        ready: &mut Vec<Completion<TcpStream>>,
    ) {
        let at = self.at(handle);
        let file = &mut self.files[at];
        file.is_flushing = false;
        ready.extend(file.flushing.drain(..).map(|(tag, moved)| {
            let result = match result {
                Ok(_) => Ok(moved),
                Err(error) => Err(error
                    .raw_os_error()
                    .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)),
            };
            Completion::File { file: handle, tag, result }
        }));
        self.end_if_idle(at);
    }

    /// Whether writes of a file wait for a flush that has not begun.
    pub(crate) fn is_flush_due(&self, handle: Handle) -> bool {
        self.files.iter().any(|file| file.handle == handle && !file.written.is_empty())
    }

    fn at(&self, handle: Handle) -> usize {
        let at = self.files.iter().position(|file| file.handle == handle);
        at.unwrap_or_else(|| unreachable!("a file is listed while durable writes are in flight"))
    }

    fn end_if_idle(&mut self, at: usize) {
        let file = &self.files[at];
        if file.writing == 0 && file.written.is_empty() && !file.is_flushing {
            self.spare.push(FileCommits { open: None, ..self.files.swap_remove(at) });
        }
    }
}

impl Default for FileCommits {
    fn default() -> Self {
        Self {
            handle: Handle::new(u32::MAX, 0),
            open: None,
            writing: 0,
            written: Vec::new(),
            flushing: Vec::new(),
            is_flushing: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Commit, Commits};
    use crate::{Completion, Handle, file::FileKind, pool::OpenFile};
    use std::{io, net::TcpStream, sync::Arc};

    const FILE: Handle = Handle::new(3, 1);

    fn open() -> OpenFile {
        let file = Arc::new(tempfile::tempfile().unwrap());
        OpenFile { file, kind: FileKind::Regular, direct: false }
    }

    fn tags(ready: &mut Vec<Completion<TcpStream>>) -> Vec<(u64, bool)> {
        ready
            .drain(..)
            .map(|completion| match completion {
                Completion::File { tag, result, .. } => (tag, result.is_ok()),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_write_that_is_alone_is_written_through() {
        let (mut commits, open, mut ready) = (Commits::default(), open(), Vec::new());
        for tag in 0..3 {
            assert_eq!(commits.begin(FILE, &open), Commit::Through);
            commits.written(FILE, tag, Commit::Through, Ok(512), &mut ready);
            assert!(commits.next_flush().is_none());
        }
        assert_eq!(tags(&mut ready), [(0, true), (1, true), (2, true)]);
        assert_eq!(Arc::strong_count(&open.file), 1, "the file can be closed");
    }

    #[test]
    fn a_shared_write_is_complete_only_after_a_flush_that_began_after_it() {
        let (mut commits, open, mut ready) = (Commits::default(), open(), Vec::new());
        assert_eq!(commits.begin(FILE, &open), Commit::Through);
        for _ in 1..4 {
            assert_eq!(commits.begin(FILE, &open), Commit::Shared);
        }
        commits.written(FILE, 1, Commit::Shared, Ok(512), &mut ready);
        commits.written(FILE, 2, Commit::Shared, Ok(512), &mut ready);
        assert!(ready.is_empty());
        assert_eq!(commits.next_flush().unwrap().0, FILE);
        commits.written(FILE, 3, Commit::Shared, Ok(512), &mut ready);
        assert!(commits.next_flush().is_none(), "one flush at a time");
        assert!(commits.is_flush_due(FILE));
        commits.flushed(FILE, &Ok(0), &mut ready);
        assert_eq!(tags(&mut ready), [(1, true), (2, true)]);
        assert_eq!(commits.next_flush().unwrap().0, FILE);
        commits.flushed(FILE, &Ok(0), &mut ready);
        commits.written(FILE, 0, Commit::Through, Ok(512), &mut ready);
        assert_eq!(tags(&mut ready), [(3, true), (0, true)]);
        assert_eq!(commits.begin(FILE, &open), Commit::Through, "nothing is in flight any more");
    }

    #[test]
    fn a_failed_flush_fails_its_writes_and_a_failed_write_needs_none() {
        let (mut commits, open, mut ready) = (Commits::default(), open(), Vec::new());
        for _ in 0..4 {
            commits.begin(FILE, &open);
        }
        commits.written(FILE, 0, Commit::Through, Ok(512), &mut ready);
        commits.written(FILE, 1, Commit::Shared, Err(io::ErrorKind::StorageFull.into()), &mut ready);
        commits.written(FILE, 2, Commit::Shared, Ok(512), &mut ready);
        commits.next_flush().unwrap();
        commits.written(FILE, 3, Commit::Shared, Ok(512), &mut ready);
        commits.flushed(FILE, &Err(io::Error::from_raw_os_error(libc::EIO)), &mut ready);
        assert_eq!(tags(&mut ready), [(0, true), (1, false), (2, false)]);
        commits.next_flush().unwrap();
        commits.flushed(FILE, &Ok(0), &mut ready);
        assert_eq!(tags(&mut ready), [(3, true)]);
    }

    #[test]
    fn files_do_not_share_flushes() {
        let (mut commits, open, mut ready) = (Commits::default(), open(), Vec::new());
        let other = Handle::new(3, 2);
        assert_eq!(commits.begin(FILE, &open), Commit::Through);
        assert_eq!(commits.begin(other, &open), Commit::Through);
        assert_eq!(commits.begin(other, &open), Commit::Shared);
        commits.written(other, 7, Commit::Shared, Ok(512), &mut ready);
        assert!(!commits.is_flush_due(FILE));
        assert_eq!(commits.next_flush().unwrap().0, other);
        commits.flushed(other, &Ok(0), &mut ready);
        assert_eq!(tags(&mut ready), [(7, true)]);
    }
}
