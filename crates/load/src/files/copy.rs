//! Copies of files in another structure: copy and move, by vdbench's source (5.04.06).
//!
//! A file is copied under its name into the target structure, block by block: each block is read and then written. A
//! file that has the name there is deleted first. A move is a copy, after which the file is deleted: there is no rename,
//! which could not lead to another file system.

use super::{
    data::BlockPlace,
    file_system::OpenedFile,
    operation::{FileThread, Turn},
    spec::FileOp,
};
use linerate_io::{blocking::BlockingMode, system};
use std::io;

/// A file and its copy.
#[derive(Clone, Copy, Debug)]
struct Copies {
    file: u32,
    bytes: u64,
    /// Index of the structure of the copy.
    target: usize,
}

impl FileThread<'_> {
    /// Copies or moves the next file.
    pub(super) fn copy(&mut self, intended: Option<u64>) -> Turn {
        let Some(target) = self.work.target else { return Turn::Over };
        let there = &self.shared.trees[target];
        // The copy is claimed too: a file whose copy is in use has to wait.
        let file = self.claim_file(!self.work.shared_files, |tree, file| {
            tree.size(file).is_some_and(|bytes| bytes > 0) && there.claim(file, true)
        });
        let Some(file) = file else { return Turn::Over };
        let copies = Copies { file, bytes: self.tree.size(file).unwrap_or(0), target };
        let begun = system::now_ns();
        match self.copy_file(copies) {
            Some(true) => {
                let span = (begun, system::now_ns());
                self.counted(self.work.operation, (0, intended), span, Ok(()));
            }
            // The run ended in the middle of the file.
            Some(false) => {}
            None => {
                self.name_file(self.work.structure, file);
                let failed = io::Error::other("a part of it failed");
                let span = (begun, system::now_ns());
                self.counted::<()>(self.work.operation, (0, intended), span, Err(failed));
            }
        }
        there.release(file);
        self.tree.release(file);
        Turn::Done
    }

    /// False: the run was over before the end of the file; None: an operation failed, which was counted.
    fn copy_file(&mut self, copies: Copies) -> Option<bool> {
        let Copies { file, target, .. } = copies;
        if self.shared.trees[target].size(file).is_some() {
            self.name_file(target, file);
            self.delete_named(target, file, None)?;
        }
        self.name_file(self.work.structure, file);
        let mut source = self.open_named(self.work.structure, self.mode(false))?;
        self.name_file(target, file);
        let mode = BlockingMode { create: true, ..self.mode(true) };
        let mut made = self.timed(FileOp::Create, (0, None), || {
            self.open_named(target, mode).ok_or_else(|| io::Error::other("it was not opened"))
        });
        if made.is_some() {
            self.shared.trees[target].set_size(file, Some(0));
        }
        let is_whole = made.as_mut().and_then(|made| self.copy_blocks(&mut *source, &mut **made, copies));
        self.close(made);
        self.name_file(self.work.structure, file);
        self.close(Some(source));
        if is_whole? && self.work.operation == FileOp::Move {
            self.delete_named(self.work.structure, file, None)?;
        }
        is_whole
    }

    fn copy_blocks(
        &mut self,
        source: &mut dyn OpenedFile,
        made: &mut dyn OpenedFile,
        copies: Copies,
    ) -> Option<bool> {
        let Copies { file, bytes, target } = copies;
        let mut offset = 0;
        while offset < bytes {
            if self.shared.signal.is_stopped() {
                return Some(false);
            }
            let block = u64::from(self.block_size()).min(bytes - offset) as u32;
            let at = |structure| BlockPlace { structure, file, offset };
            self.name_file(self.work.structure, file);
            let is_read = self.read_block(source, at(self.work.structure), block, None);
            self.name_file(target, file);
            if !is_read || !self.write_block(made, at(target), block, None) {
                return None;
            }
            offset += u64::from(block);
        }
        Some(true)
    }
}
