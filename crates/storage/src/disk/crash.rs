//! A disk for tests that knows which of its bytes survive a power cut, and can produce every possible content after
//! one.
//!
//! Every block has one durable content and the versions that were written since, in their order. A flush makes durable all
//! writes that had completed when it began; a durable write is durable when it completes. After a power cut a block holds
//! its durable content or any later version, independently of other blocks: drives write their caches in any order.

use super::{
    AtOnce, Chunk, Disk, DiskError, DiskStats, Meter, OpKind, Reading, Writing, check_range, faulty::Delays,
};
use crate::runtime::Runtime;
use bytes::{Bytes, BytesMut};
use fastrand::Rng;
use futures::{
    channel::oneshot,
    future::{LocalBoxFuture, ready},
};
use linerate_io::Nanos;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt,
    ops::Range,
    rc::Rc,
};

/// A disk in memory with a volatile write cache. Cheap to clone: a test keeps one to cut the power.
#[derive(Clone)]
pub struct CrashDisk(Rc<Shared>);

struct Shared {
    name: String,
    size_bytes: u64,
    block_bytes: u32,
    runtime: Runtime,
    meter: Meter,
    delays: Delays,
    /// See [`CrashDisk::set_quick_spans`].
    quick_span_ns: Cell<Nanos>,
    blocks: RefCell<Blocks>,
}

/// A block's bytes; None if it was never written, or was discarded: zeros.
type Content = Option<Bytes>;

#[derive(Clone, Default)]
struct Blocks {
    durable: BTreeMap<u64, Bytes>,
    /// Blocks with writes that are not durable yet.
    volatile: BTreeMap<u64, Vec<Version>>,
    /// Writes begun so far; numbers them.
    writes: u64,
    /// Writes completed so far.
    completed: u64,
}

#[derive(Clone)]
struct Version {
    write: u64,
    content: Content,
    /// How many writes had completed when this one completed; None: it is in progress.
    completed: Option<u64>,
}

impl CrashDisk {
    /// A disk of zeros. `seed` determines how long operations take after [`CrashDisk::set_delay`].
    pub fn new(
        runtime: &Runtime,
        name: impl Into<String>,
        size_bytes: u64,
        block_bytes: u32,
        seed: u64,
    ) -> Self {
        Self(Rc::new(Shared {
            name: name.into(),
            size_bytes,
            block_bytes,
            runtime: runtime.clone(),
            meter: Meter::default(),
            delays: Delays::new(seed),
            quick_span_ns: Cell::new(0),
            blocks: RefCell::default(),
        }))
    }

    /// Every operation takes between `least_ns` and `most_ns`, and moves its bytes at some instant in between.
    pub fn set_delay(&self, least_ns: Nanos, most_ns: Nanos) {
        self.0.delays.set(least_ns, most_ns);
    }

    /// The disk is [`Disk::at_once`] in every other span of this length; 0: never. Other operations keep their delays.
    pub fn set_quick_spans(&self, len_ns: Nanos) {
        self.0.quick_span_ns.set(len_ns);
    }

    /// The blocks with more than one possible content after a power cut now, and the number of their contents.
    pub fn undecided(&self) -> Vec<(u64, usize)> {
        let blocks = self.0.blocks.borrow();
        blocks.volatile.iter().map(|(&block, versions)| (block, 1 + versions.len())).collect()
    }

    /// The disk after a power cut now: `pick` selects the content of each block of [`CrashDisk::undecided`]; 0 is the
    /// durable one. The image belongs to `runtime`, because the old tasks have ended.
    #[must_use]
    pub fn image(&self, runtime: &Runtime, seed: u64, mut pick: impl FnMut(u64, usize) -> usize) -> Self {
        self.image_of(runtime, seed, |block, versions| pick(block, 1 + versions.len()))
    }

    /// Every possible image after a power cut now. Their number is the product of the contents in
    /// [`CrashDisk::undecided`], so use this for few blocks.
    pub fn images(&self, runtime: &Runtime) -> impl Iterator<Item = Self> {
        let counts: Vec<_> = self.undecided().into_iter().map(|(_, count)| count).collect();
        let total: usize = counts.iter().product();
        (0..total).map(move |mut number| {
            let mut counts = counts.iter();
            self.image(runtime, 0, |_, _| {
                let count = counts.next().copied().unwrap_or(1);
                let picked = number % count;
                number /= count;
                picked
            })
        })
    }

    /// A random image: drives lose all, none, the last, or any part of their cached writes.
    #[must_use]
    pub fn power_cut(&self, runtime: &Runtime, rng: &mut Rng) -> Self {
        let seed = rng.u64(..);
        let last_write = rng.u64(0..=self.0.blocks.borrow().writes);
        match rng.u8(0..6) {
            0 => self.image(runtime, seed, |_, _| 0),
            1 => self.image(runtime, seed, |_, contents| contents - 1),
            2 => self.image_of(runtime, seed, |_, versions| {
                versions.iter().filter(|version| version.write < last_write).count()
            }),
            _ => self.image(runtime, seed, |_, contents| rng.usize(0..contents)),
        }
    }

    fn image_of(&self, runtime: &Runtime, seed: u64, mut pick: impl FnMut(u64, &[Version]) -> usize) -> Self {
        let mut blocks = Blocks { durable: self.0.blocks.borrow().durable.clone(), ..Blocks::default() };
        for (&block, versions) in &self.0.blocks.borrow().volatile {
            if let Some(found) = pick(block, versions).checked_sub(1) {
                blocks.set_durable(block, versions[found].content.clone());
            }
        }
        let image = Self::new(runtime, self.0.name.clone(), self.0.size_bytes, self.0.block_bytes, seed);
        image.set_quick_spans(self.0.quick_span_ns.get());
        image.0.blocks.replace(blocks);
        image
    }

    /// `begin` is called when the bytes move, `end` when the operation is over.
    fn perform<T: 'static, V: 'static>(
        &self,
        kind: OpKind,
        len: u64,
        begin: impl FnOnce(&mut Blocks) -> T + 'static,
        end: impl FnOnce(&mut Blocks, T) -> V + 'static,
    ) -> LocalBoxFuture<'static, Result<V, DiskError>> {
        let shared = Rc::clone(&self.0);
        let begun = shared.runtime.now();
        shared.meter.begin(begun);
        let (before, after) = shared.delays.next();
        if before + after == 0 {
            let mut blocks = shared.blocks.borrow_mut();
            let moved = begin(&mut blocks);
            let value = end(&mut blocks, moved);
            shared.meter.end(begun, begun, kind, len, true);
            return Box::pin(ready(Ok(value)));
        }
        let (done, result) = oneshot::channel();
        let name = shared.name.clone();
        self.0.runtime.spawn(async move {
            shared.runtime.sleep_until(begun + before).await;
            let moved = begin(&mut shared.blocks.borrow_mut());
            shared.runtime.sleep_until(begun + before + after).await;
            let value = end(&mut shared.blocks.borrow_mut(), moved);
            shared.meter.end(begun, shared.runtime.now(), kind, len, true);
            // The caller may have stopped waiting.
            let _ = done.send(value);
        });
        Box::pin(async move { result.await.map_err(|_| DiskError::Failed(name)) })
    }

    fn change(&self, kind: OpKind, offset: u64, len: u64, data: Option<Bytes>, durable: bool) -> Writing {
        if let Err(error) = check_range(self, offset, len) {
            return Box::pin(ready(Err(error)));
        }
        let block_bytes = self.0.block_bytes as usize;
        let first = offset / block_bytes as u64;
        let range = first..first + len / block_bytes as u64;
        let blocks = range.clone();
        self.perform(
            kind,
            len,
            move |all| all.put(blocks, data.as_ref(), block_bytes),
            move |all, write| all.end(range, write, durable),
        )
    }
}

impl Blocks {
    fn content(&self, block: u64) -> Content {
        match self.volatile.get(&block).and_then(|versions| versions.last()) {
            Some(version) => version.content.clone(),
            None => self.durable.get(&block).cloned(),
        }
    }

    fn set_durable(&mut self, block: u64, content: Content) {
        match content {
            Some(bytes) => self.durable.insert(block, bytes),
            None => self.durable.remove(&block),
        };
    }

    /// Drops from the cache the last version that `is_safe`, and all versions before it.
    fn settle(&mut self, block: u64, is_safe: impl Fn(&Version) -> bool) {
        // No write of this block is in the cache.
        let Some(versions) = self.volatile.get_mut(&block) else { return };
        let Some(last) = versions.iter().rposition(is_safe) else { return };
        let content = versions.drain(..=last).next_back().and_then(|version| version.content);
        if versions.is_empty() {
            self.volatile.remove(&block);
        }
        self.set_durable(block, content);
    }

    /// The bytes of a write are in the cache, or those of a discard. Returns the number of the write.
    fn put(&mut self, range: Range<u64>, data: Option<&Bytes>, block_bytes: usize) -> u64 {
        self.writes += 1;
        let write = self.writes;
        for (at, block) in range.enumerate() {
            let content = data.map(|data| data.slice(at * block_bytes..(at + 1) * block_bytes));
            self.volatile.entry(block).or_default().push(Version { write, content, completed: None });
        }
        write
    }

    /// A write has completed.
    fn end(&mut self, range: Range<u64>, write: u64, durable: bool) {
        if durable {
            range.for_each(|block| self.settle(block, |version| version.write == write));
        } else {
            self.complete(range, write);
        }
    }

    fn complete(&mut self, blocks: Range<u64>, write: u64) {
        self.completed += 1;
        for (_, versions) in self.volatile.range_mut(blocks) {
            for version in versions.iter_mut().filter(|version| version.write == write) {
                version.completed = Some(self.completed);
            }
        }
    }

    /// A flush has completed; `before` is the number of writes that had completed when it began.
    fn flushed(&mut self, before: u64) {
        let blocks: Vec<u64> = self.volatile.keys().copied().collect();
        for block in blocks {
            self.settle(block, |version| version.completed.is_some_and(|completed| completed <= before));
        }
    }
}

impl Disk for CrashDisk {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn size_bytes(&self) -> u64 {
        self.0.size_bytes
    }

    fn block_bytes(&self) -> u32 {
        self.0.block_bytes
    }

    fn stats(&self) -> DiskStats {
        self.0.meter.stats(self.0.runtime.now())
    }

    fn read(&self, offset: u64, mut into: BytesMut) -> Reading {
        let len = into.len() as u64;
        if let Err(error) = check_range(self, offset, len) {
            return Box::pin(ready(Err(error)));
        }
        let block_bytes = self.0.block_bytes as usize;
        let first = offset / block_bytes as u64;
        let read = move |all: &mut Blocks| {
            for (at, to) in into.chunks_mut(block_bytes).enumerate() {
                match all.content(first + at as u64) {
                    Some(bytes) => to.copy_from_slice(&bytes),
                    None => to.fill(0),
                }
            }
            into
        };
        self.perform(OpKind::Read, len, read, |_, bytes| bytes)
    }

    fn write(&self, offset: u64, data: Bytes, durable: bool) -> Writing {
        self.change(OpKind::Write, offset, data.len() as u64, Some(data), durable)
    }

    fn flush(&self) -> Writing {
        // The flush covers the writes that had completed when it was requested.
        let before = self.0.blocks.borrow().completed;
        self.perform(OpKind::Flush, 0, |_| (), move |all, ()| all.flushed(before))
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        self.change(OpKind::Discard, offset, len, None, false)
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        let span = self.0.runtime.now().checked_div(self.0.quick_span_ns.get());
        span.is_some_and(|span| span.is_multiple_of(2)).then_some(self)
    }
}

impl AtOnce for CrashDisk {
    fn read_now(&self, offset: u64, len: u64, each: &mut dyn FnMut(Chunk<'_>)) {
        let (blocks, block_bytes) = (self.0.blocks.borrow(), self.0.block_bytes as usize);
        let mut piece = [0; 4096];
        let mut done = 0;
        while done < len {
            let piece = &mut piece[..(len - done).min(4096) as usize];
            let first = (offset + done) / block_bytes as u64;
            for (at, to) in piece.chunks_mut(block_bytes).enumerate() {
                match blocks.content(first + at as u64) {
                    Some(bytes) => to.copy_from_slice(&bytes),
                    None => to.fill(0),
                }
            }
            each(Chunk::of_slice(piece));
            done += piece.len() as u64;
        }
    }

    fn write_now(&self, offset: u64, data: &[u8], durable: bool) {
        let len = data.len() as u64;
        let (mut blocks, block_bytes) = (self.0.blocks.borrow_mut(), u64::from(self.0.block_bytes));
        let range = offset / block_bytes..(offset + len) / block_bytes;
        let write = blocks.put(range.clone(), Some(&Bytes::copy_from_slice(data)), block_bytes as usize);
        blocks.end(range, write, durable);
    }
}

impl fmt::Debug for CrashDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashDisk").field("name", &self.0.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Executor;
    use std::collections::BTreeSet;

    const BLOCK: usize = 512;

    fn block(byte: u8) -> Bytes {
        Bytes::from(vec![byte; BLOCK])
    }

    /// The first byte of each of the first blocks.
    fn heads(executor: &mut Executor, disk: &CrashDisk, count: usize) -> Vec<u8> {
        let bytes =
            executor.run_in_virtual_time(disk.read(0, BytesMut::zeroed(count * BLOCK))).unwrap().unwrap();
        bytes.chunks(BLOCK).map(|block| block[0]).collect()
    }

    fn images(executor: &mut Executor, disk: &CrashDisk, count: usize) -> BTreeSet<Vec<u8>> {
        let images: Vec<_> = disk.images(&executor.runtime()).collect();
        images.iter().map(|image| heads(executor, image, count)).collect()
    }

    #[test]
    fn what_was_not_flushed_survives_in_any_mixture() {
        let mut executor = Executor::new();
        let disk = CrashDisk::new(&executor.runtime(), "d0", 1 << 20, BLOCK as u32, 0);
        executor.run_in_virtual_time(disk.write(0, block(1), true)).unwrap().unwrap();
        for (at, byte) in [(0, 2), (0, 3), (512, 4)] {
            executor.run_in_virtual_time(disk.write(at, block(byte), false)).unwrap().unwrap();
        }
        assert_eq!(heads(&mut executor, &disk, 2), [3, 4]);
        let expected = [[1, 0], [2, 0], [3, 0], [1, 4], [2, 4], [3, 4]];
        assert_eq!(images(&mut executor, &disk, 2), expected.map(Vec::from).into());
        executor.run_in_virtual_time(disk.flush()).unwrap().unwrap();
        assert_eq!(images(&mut executor, &disk, 2), [vec![3, 4]].into());
        executor.run_in_virtual_time(disk.discard(0, 1024)).unwrap().unwrap();
        assert_eq!(images(&mut executor, &disk, 2).len(), 4);
        assert_eq!(heads(&mut executor, &disk, 2), [0, 0]);
    }

    #[test]
    fn a_flush_covers_only_what_had_completed_before() {
        let mut executor = Executor::new();
        let disk = CrashDisk::new(&executor.runtime(), "d0", 1 << 20, BLOCK as u32, 7);
        executor.run_in_virtual_time(disk.write(0, block(1), false)).unwrap().unwrap();
        disk.set_delay(1000, 1000);
        drop(disk.write(512, block(2), false));
        executor.run_in_virtual_time(disk.flush()).unwrap().unwrap();
        executor.run_in_virtual_time(disk.flush()).unwrap().unwrap();
        assert_eq!(images(&mut executor, &disk, 2), [vec![1, 2]].into());

        let disk = CrashDisk::new(&executor.runtime(), "d0", 1 << 20, BLOCK as u32, 7);
        disk.set_delay(1000, 1000);
        drop(disk.write(512, block(2), false));
        executor.run_in_virtual_time(disk.flush()).unwrap().unwrap();
        assert_eq!(images(&mut executor, &disk, 2), [vec![0, 0], vec![0, 2]].into());
    }

    #[test]
    fn a_durable_write_under_way_may_be_torn_and_a_completed_one_not() {
        let mut executor = Executor::new();
        let disk = CrashDisk::new(&executor.runtime(), "d0", 1 << 20, BLOCK as u32, 3);
        disk.set_delay(1000, 1000);
        let write = disk.write(0, Bytes::from(vec![9; 3 * BLOCK]), true);
        executor.run(999);
        assert_eq!(images(&mut executor, &disk, 3).len(), 8);
        executor.run_in_virtual_time(write).unwrap().unwrap();
        assert_eq!(images(&mut executor, &disk, 3), [vec![9; 3]].into());
    }

    #[test]
    fn power_cuts_by_chance_are_images_and_reach_all_of_them() {
        let mut executor = Executor::new();
        let disk = CrashDisk::new(&executor.runtime(), "d0", 1 << 20, BLOCK as u32, 3);
        for (at, byte) in [(0, 1), (512, 2), (0, 3)] {
            executor.run_in_virtual_time(disk.write(at, block(byte), false)).unwrap().unwrap();
        }
        let possible = images(&mut executor, &disk, 2);
        let mut rng = Rng::with_seed(1);
        let mut seen = BTreeSet::new();
        for _ in 0..200 {
            let image = disk.power_cut(&executor.runtime(), &mut rng);
            seen.insert(heads(&mut executor, &image, 2));
        }
        assert_eq!(seen, possible);
    }
}
