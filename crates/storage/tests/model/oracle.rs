//! A plain map beside the disk under test: which contents each block may have, now and after a power cut.
//!
//! Every write has a number, and its data contains number and position. If writes overlap in time, either may be the
//! last. A power cut may undo writes that were not made durable. So a block has a set of possible contents, nearly
//! always with one element. A content that was read without a concurrent write must stay.

use bytes::{Bytes, BytesMut};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// A content of a block, and the change that made it: the same bytes may return, as zeros do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Content {
    /// Of the write, discard or restore.
    number: u64,
    /// The data on the disk: the number of the write that wrote it first, or [`ZEROS`].
    stamp: u64,
}

const ZEROS: u64 = 0;
const MOST_BLOCK_BYTES: usize = 4096;

/// Possible contents, in order: one or two in most cases.
type Contents = SmallVec<[Content; 2]>;

/// The contents that a disk may have.
pub(crate) struct Oracle {
    block_bytes: usize,
    blocks: Vec<Block>,
    /// Reads and snapshots in progress, by number: they may or may not see changes that begin meanwhile.
    watching: Vec<(u64, Seen)>,
    numbers: u64,
}

#[derive(Clone)]
struct Block {
    /// Contents that a read may find when no change is in progress.
    now: Contents,
    /// Contents that a power cut may leave.
    after_cut: Contents,
    under_way: Contents,
    /// Not written since the power returned: the first content that is read must stay.
    is_untouched: bool,
}

/// A write, discard or restore in progress.
pub(crate) struct Write {
    /// Of each block.
    contents: Vec<Content>,
    blocks: Range<usize>,
    durable: bool,
    /// Contents at its start that are impossible once it has completed: for each block, now and after a power cut.
    replaces: Vec<(Contents, Contents)>,
}

/// A flush in progress: for each block, contents that are impossible after a power cut once it has completed.
pub(crate) struct Flush(Vec<(usize, Contents)>);

/// Possible contents of a range during a read or a snapshot.
#[derive(Clone)]
pub(crate) struct Seen {
    blocks: Range<usize>,
    contents: Vec<Contents>,
    /// Whether a block was written meanwhile.
    is_disturbed: Vec<bool>,
}

/// A read or snapshot in progress.
pub(crate) struct Watch(u64);

impl Oracle {
    /// Of a disk of zeros.
    pub(crate) fn new(blocks: usize, block_bytes: usize) -> Self {
        let zeros = Content { number: 0, stamp: ZEROS };
        Self { block_bytes, blocks: vec![Block::of(zeros); blocks], watching: Vec::new(), numbers: 0 }
    }

    /// The oracle of another disk that begins with these contents.
    pub(crate) fn copy(&self, was: &Settled) -> Self {
        let of = |&stamp: &u64| Block::of(Content { number: 0, stamp });
        let blocks = was.0.iter().map(of).collect();
        Self { blocks, watching: Vec::new(), ..*self }
    }

    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// A write begins: the bytes to write.
    pub(crate) fn begin_write(&mut self, blocks: Range<usize>, durable: bool) -> (Write, Bytes) {
        let stamps = vec![self.numbers + 1; blocks.len()];
        let mut bytes = BytesMut::zeroed(blocks.len() * self.block_bytes);
        for (at, block) in blocks.clone().zip(bytes.chunks_mut(self.block_bytes)) {
            stamp(block, self.numbers + 1, at);
        }
        (self.begin(blocks, &stamps, durable), bytes.freeze())
    }

    /// A discard begins.
    pub(crate) fn begin_discard(&mut self, blocks: Range<usize>) -> Write {
        let stamps = vec![ZEROS; blocks.len()];
        self.begin(blocks, &stamps, false)
    }

    /// The disk begins to be restored.
    pub(crate) fn begin_restore(&mut self, was: &Settled) -> Write {
        self.begin(0..self.blocks.len(), &was.0, true)
    }

    /// The disk is longer or shorter now; a new part is zeros.
    pub(crate) fn resize(&mut self, blocks: usize) {
        self.numbers += 1;
        let zeros = Content { number: self.numbers, stamp: ZEROS };
        self.blocks.resize(blocks, Block::of(zeros));
    }

    fn begin(&mut self, blocks: Range<usize>, stamps: &[u64], durable: bool) -> Write {
        self.numbers += 1;
        let number = self.numbers;
        let contents: Vec<_> = stamps.iter().map(|&stamp| Content { number, stamp }).collect();
        let mut replaces = Vec::with_capacity(blocks.len());
        for (block, &content) in self.blocks[blocks.clone()].iter_mut().zip(&contents) {
            let completed = |set: &[Content]| -> Contents {
                set.iter().copied().filter(|content| !block.under_way.contains(content)).collect()
            };
            replaces.push((completed(&block.now), completed(&block.after_cut)));
            insert(&mut block.after_cut, content);
            block.under_way.push(content);
            block.is_untouched = false;
        }
        for (_, seen) in &mut self.watching {
            for at in overlap(&seen.blocks, &blocks) {
                insert(&mut seen.contents[at - seen.blocks.start], contents[at - blocks.start]);
                seen.is_disturbed[at - seen.blocks.start] = true;
            }
        }
        Write { contents, blocks, durable, replaces }
    }

    /// The operation has ended; if it failed, it may have changed each block or not.
    pub(crate) fn end_write(&mut self, write: Write, is_ok: bool) {
        let changes = write.contents.into_iter().zip(write.replaces);
        for (block, (content, (now, after_cut))) in self.blocks[write.blocks].iter_mut().zip(changes) {
            let at = block.under_way.iter().position(|own| *own == content);
            block.under_way.swap_remove(at.expect("each write ends once"));
            if is_ok {
                block.now.retain(|content| !now.contains(content));
            }
            if is_ok && write.durable {
                block.after_cut.retain(|content| !after_cut.contains(content));
            }
            insert(&mut block.now, content);
            insert(&mut block.after_cut, content);
        }
    }

    /// A flush begins.
    pub(crate) fn begin_flush(&self) -> Flush {
        let mut gone = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            let stays = |content: &Content| block.now.contains(content) || block.under_way.contains(content);
            let older: Contents = block.after_cut.iter().copied().filter(|content| !stays(content)).collect();
            if !older.is_empty() {
                gone.push((at, older));
            }
        }
        Flush(gone)
    }

    /// A flush has completed.
    pub(crate) fn end_flush(&mut self, flush: Flush) {
        for (at, gone) in flush.0 {
            self.blocks[at].after_cut.retain(|content| !gone.contains(content));
        }
    }

    /// A read, or a snapshot, begins.
    pub(crate) fn begin_read(&mut self, blocks: Range<usize>) -> Watch {
        let seen = |block: &Block| {
            let mut contents = block.now.clone();
            block.under_way.iter().for_each(|&content| insert(&mut contents, content));
            contents
        };
        let contents = self.blocks[blocks.clone()].iter().map(seen).collect();
        let is_disturbed =
            self.blocks[blocks.clone()].iter().map(|block| !block.under_way.is_empty()).collect();
        self.numbers += 1;
        self.watching.push((self.numbers, Seen { blocks, contents, is_disturbed }));
        Watch(self.numbers)
    }

    /// Possible results of a read, or contents of a snapshot.
    pub(crate) fn end_read(&mut self, Watch(number): Watch) -> Seen {
        let at = self.watching.iter().position(|(own, _)| *own == number).expect("each read ends once");
        self.watching.swap_remove(at).1
    }

    /// Checks the result of a read. Errors: the wrong block and its fault.
    pub(crate) fn check_read(&mut self, watch: Watch, bytes: &[u8]) -> Result<(), String> {
        let seen = self.end_read(watch);
        let found = seen.check(bytes, self.block_bytes)?;
        for (at, content) in seen.blocks.clone().zip(found) {
            let block = &mut self.blocks[at];
            // There was no concurrent change, so an undecided content is decided now.
            if !seen.is_disturbed[at - seen.blocks.start] {
                if block.is_untouched {
                    block.after_cut = smallvec![content];
                }
                block.now = smallvec![content];
            }
        }
        Ok(())
    }

    /// The power is cut: no operation is in progress any more.
    pub(crate) fn cut_power(&mut self) {
        self.watching.clear();
        for block in &mut self.blocks {
            block.under_way.clear();
            block.now.clone_from(&block.after_cut);
            block.is_untouched = true;
        }
    }
}

impl Block {
    fn of(content: Content) -> Self {
        let (now, after_cut) = (smallvec![content], smallvec![content]);
        Self { now, after_cut, under_way: Contents::new(), is_untouched: true }
    }
}

/// The blocks of a snapshot, each with its one content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settled(Vec<u64>);

impl Settled {
    pub(crate) fn blocks(&self) -> usize {
        self.0.len()
    }

    /// Whether a range is the same in another snapshot; behind the end of a snapshot there are zeros.
    pub(crate) fn is_same(&self, other: Option<&Self>, at: usize) -> bool {
        let stamp = |settled: &Self| settled.0.get(at).copied().unwrap_or(ZEROS);
        stamp(self) == other.map_or(ZEROS, stamp)
    }
}

impl Seen {
    pub(crate) fn blocks(&self) -> usize {
        self.contents.len()
    }

    /// The contents that were found: from now on only these are possible.
    pub(crate) fn settle(&mut self, found: &[Content]) -> Settled {
        self.contents = found.iter().map(|&content| smallvec![content]).collect();
        Settled(found.iter().map(|content| content.stamp).collect())
    }

    /// Checks the bytes of the whole range. Returns each block's content, or the wrong block and its fault.
    pub(crate) fn check(&self, bytes: &[u8], block_bytes: usize) -> Result<Vec<Content>, String> {
        let mut found = Vec::with_capacity(self.contents.len());
        for (index, bytes) in bytes.chunks(block_bytes).enumerate() {
            let (at, allowed) = (self.blocks.start + index, &self.contents[index]);
            let stamp =
                stamp_of(bytes, at).map_err(|fault| format!("block {at} {fault}, not {allowed:?}"))?;
            match allowed.iter().rev().find(|content| content.stamp == stamp) {
                Some(&content) => found.push(content),
                None => return Err(format!("block {at} holds {stamp}, not one of {allowed:?}")),
            }
        }
        Ok(found)
    }
}

fn insert(set: &mut Contents, content: Content) {
    if let Err(at) = set.binary_search(&content) {
        set.insert(at, content);
    }
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

/// Number and place, over the whole block.
fn stamp(block: &mut [u8], stamp: u64, at: usize) {
    for (line, bytes) in block.chunks_mut(16).enumerate() {
        bytes[..8].copy_from_slice(&stamp.to_le_bytes());
        bytes[8..].copy_from_slice(&((at as u64) << 16 | line as u64).to_le_bytes());
    }
}

/// The number of the write that wrote a block. Errors: the block is torn, or belongs to another position.
fn stamp_of(block: &[u8], at: usize) -> Result<u64, String> {
    let mut expected = [0; MOST_BLOCK_BYTES];
    let expected = &mut expected[..block.len()];
    if block == expected {
        return Ok(ZEROS);
    }
    let number = u64::from_le_bytes(block[..8].try_into().unwrap());
    stamp(expected, number, at);
    if block == expected {
        Ok(number)
    } else {
        Err(format!("holds bytes that were never written ({:?}...)", &block[..24]))
    }
}
