//! Blocks of an open file: which file, which place, how many, and what is written.

use super::{
    data::{BlockBuffers, BlockPlace},
    file_system::OpenedFile,
    operation::{FileThread, Turn},
    spec::FileOp,
    tree::Tree,
};
use crate::stream::rng::{Chance, Rng};
use linerate_io::blocking::BlockingMode;
use std::io;

/// A file between its open and its close.
#[derive(Debug)]
pub(super) struct OpenBlocks {
    file: Box<dyn OpenedFile>,
    index: u32,
    /// Bytes that may be used.
    end: u64,
    next: u64,
    blocks_left: u64,
    bytes_left: u64,
}

impl FileThread<'_> {
    /// Reads or writes a block of the open file, or of the next one.
    pub(super) fn block(&mut self, intended: Option<u64>) -> Turn {
        let read = match self.work.read_percent {
            Some(percent) => Chance::percent(percent).roll(&mut self.rng),
            None => self.work.operation == FileOp::Read,
        };
        loop {
            if self.open.as_ref().is_none_or(OpenBlocks::is_used_up) {
                self.close_blocks();
                match self.next_blocks() {
                    None => return Turn::Over,
                    // The open failed, which was counted.
                    Some(false) => return Turn::Done,
                    Some(true) => {}
                }
            }
            let size = self.block_size();
            let (random_io, rng) = (self.work.random_io, &mut self.rng);
            let Some(blocks) = self.open.as_mut() else { continue };
            if let Some((offset, bytes)) = blocks.next_block(size, random_io, rng) {
                self.carry_out(read, offset, bytes, intended);
                return Turn::Done;
            }
            blocks.blocks_left = 0;
        }
    }

    pub(super) fn block_size(&mut self) -> u32 {
        let sizes = &self.work.sizes;
        if let [(bytes, _)] = sizes[..] {
            return bytes;
        }
        let mut drawn = self.rng.unit() * 100.0;
        for (bytes, percent) in sizes {
            drawn -= percent;
            if drawn < 0.0 {
                return *bytes;
            }
        }
        sizes[sizes.len() - 1].0
    }

    fn carry_out(&mut self, read: bool, offset: u64, bytes: u32, intended: Option<u64>) {
        let Some(mut blocks) = self.open.take() else { return };
        let at = BlockPlace { structure: self.work.structure, file: blocks.index, offset };
        if read {
            self.read_block(&mut *blocks.file, at, bytes, intended);
        } else {
            self.write_block(&mut *blocks.file, at, bytes, intended);
        }
        self.open = Some(blocks);
    }

    /// Reads a block, and checks it if the run checks data. Returns whether it was read.
    pub(super) fn read_block(
        &mut self,
        file: &mut dyn OpenedFile,
        at: BlockPlace,
        bytes: u32,
        intended: Option<u64>,
    ) -> bool {
        let mut buffers = std::mem::replace(&mut self.buffers, BlockBuffers::none());
        let length = bytes as usize;
        let read = || match file.read_at(buffers.read(length), at.offset)? {
            count if count == length => Ok(()),
            count => Err(io::Error::other(format!("the file ends after {count} of {length} bytes"))),
        };
        let is_read = self.timed(FileOp::Read, (bytes.into(), intended), read).is_some();
        if is_read && let Some(wrong) = buffers.check(&self.shared.data, at, length) {
            self.shared.miscompare(self.index, at, &wrong);
        }
        self.buffers = buffers;
        is_read
    }

    /// Writes a block. Returns whether it was written.
    pub(super) fn write_block(
        &mut self,
        file: &mut dyn OpenedFile,
        at: BlockPlace,
        bytes: u32,
        intended: Option<u64>,
    ) -> bool {
        let mut buffers = std::mem::replace(&mut self.buffers, BlockBuffers::none());
        let (shared, length) = (self.shared, bytes as usize);
        let data = buffers.data(&shared.data, at, length);
        let write = || file.write_at(data, at.offset);
        let is_written = self.timed(FileOp::Write, (bytes.into(), intended), write).is_some();
        shared.data.written(at, length, is_written);
        if is_written {
            shared.trees[at.structure].grow(at.file, at.offset + u64::from(bytes));
        }
        self.buffers = buffers;
        is_written
    }

    /// Opens the next file. None: there is none; false: it could not be opened.
    fn next_blocks(&mut self) -> Option<bool> {
        let makes_files =
            self.work.read_percent.is_none() && self.work.operation == FileOp::Write && !self.work.random_io;
        let file = self.claim_file(!self.work.shared_files, |tree: &Tree, file| match tree.size(file) {
            Some(size) => size > 0 || makes_files,
            None => makes_files && tree.folder_exists(Some(tree.folder_of(file))),
        })?;
        let writes = self.work.operation == FileOp::Write || self.work.read_percent.is_some();
        let opened = self.open_blocks(file, writes, makes_files);
        if opened.is_none() {
            self.tree.release(file);
        }
        self.open = opened;
        Some(self.open.is_some())
    }

    /// Opens a claimed file; it is made if it may be.
    pub(super) fn open_blocks(&mut self, file: u32, writes: bool, makes_files: bool) -> Option<OpenBlocks> {
        self.name_file(self.work.structure, file);
        let is_new = self.tree.size(file).is_none();
        let mode = BlockingMode { create: makes_files, ..self.mode(writes) };
        let open = || self.open_named(self.work.structure, mode);
        let opened = if is_new {
            self.timed(FileOp::Create, (0, None), || open().ok_or_else(|| io::Error::other("not opened")))
        } else {
            open()
        }?;
        if is_new {
            self.tree.set_size(file, Some(0));
        }
        let wanted = self.tree.wanted_bytes(file);
        let end = if writes { wanted } else { self.tree.size(file).unwrap_or(0) };
        let percent = self.work.stop_after_percent;
        Some(OpenBlocks {
            file: opened,
            index: file,
            end,
            next: 0,
            blocks_left: self.work.stop_after_blocks.unwrap_or(u64::MAX),
            bytes_left: match (percent, self.work.stop_after_blocks) {
                (Some(percent), _) => (wanted as f64 * percent / 100.0) as u64,
                (None, Some(_)) => u64::MAX,
                (None, None) => wanted,
            },
        })
    }

    /// Writes a file from a place to its end and closes it: a format.
    pub(super) fn fill(&mut self, mut blocks: OpenBlocks, from: u64) {
        (blocks.next, blocks.bytes_left, blocks.blocks_left) = (from, u64::MAX, u64::MAX);
        self.open = Some(blocks);
        let size = self.work.sizes[0].0;
        while !self.shared.signal.is_stopped() {
            let next = self.open.as_mut().and_then(|blocks| blocks.next_block(size, false, &mut self.rng));
            let Some((offset, bytes)) = next else { break };
            self.carry_out(false, offset, bytes, None);
        }
        self.close_blocks();
    }

    /// Closes the open file, if there is one.
    pub(super) fn close_blocks(&mut self) {
        if let Some(blocks) = self.open.take() {
            self.close(Some(blocks.file));
            self.tree.release(blocks.index);
        }
    }
}

impl OpenBlocks {
    fn is_used_up(&self) -> bool {
        self.blocks_left == 0 || self.bytes_left == 0
    }

    /// Place and length of the next block; None: a sequential file has ended. A block at the end may be shorter.
    fn next_block(&mut self, size: u32, random_io: bool, rng: &mut Rng) -> Option<(u64, u32)> {
        let size = u64::from(size);
        let offset = match () {
            () if !random_io => self.next,
            () if size > self.end => 0,
            () => rng.below(self.end / size) * size,
        };
        let bytes = size.min(self.end.saturating_sub(offset));
        if bytes == 0 {
            return None;
        }
        self.next = offset + bytes;
        self.blocks_left = self.blocks_left.saturating_sub(1);
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        Some((offset, bytes as u32))
    }
}
