//! A disk with faults on demand, around any other disk: it fails, hangs, loses sectors, returns wrong data, or is slow.

use super::{AtOnce, Disk, DiskError, DiskStats, Meter, OpKind, Reading, Writing, check_range};
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
    collections::BTreeSet,
    rc::Rc,
};

/// A disk around another. Without faults it behaves like the inner disk. One seed determines all random choices.
#[derive(Clone)]
pub struct FaultyDisk(Rc<Shared>);

struct Shared {
    inner: Rc<dyn Disk>,
    runtime: Runtime,
    meter: Meter,
    has_failed: Cell<bool>,
    operations_left: Cell<Option<u64>>,
    is_hanging: Cell<bool>,
    /// Operations that wait for the disk to answer again.
    held: RefCell<Vec<oneshot::Sender<()>>>,
    unreadable: RefCell<BTreeSet<u64>>,
    delays: Delays,
}

impl FaultyDisk {
    /// A faultless disk.
    pub fn new(runtime: &Runtime, inner: Rc<dyn Disk>, seed: u64) -> Self {
        Self(Rc::new(Shared {
            inner,
            runtime: runtime.clone(),
            meter: Meter::default(),
            has_failed: Cell::new(false),
            operations_left: Cell::new(None),
            is_hanging: Cell::new(false),
            held: RefCell::default(),
            unreadable: RefCell::default(),
            delays: Delays::new(seed),
        }))
    }

    /// Every operation fails from now on, also those in progress, whether their bytes were moved or not.
    pub fn fail(&self) {
        self.0.has_failed.set(true);
    }

    /// Fails after so many more operations have begun.
    pub fn fail_after(&self, operations: u64) {
        self.0.operations_left.set(Some(operations));
    }

    /// Returns with the contents that it had at the failure, like a disk whose cable was pulled.
    pub fn revive(&self) {
        self.0.has_failed.set(false);
        self.0.operations_left.set(None);
        self.answer();
    }

    /// The disk stops answering. An operation in progress has moved all its bytes, or none.
    pub fn hang(&self) {
        self.0.is_hanging.set(true);
    }

    /// Whether the disk hangs.
    pub fn is_hanging(&self) -> bool {
        self.0.is_hanging.get()
    }

    /// Continues after a hang: the held operations are done and answered now.
    pub fn answer(&self) {
        self.0.is_hanging.set(false);
        self.0.held.borrow_mut().clear();
    }

    /// Whether the disk has failed.
    pub fn has_failed(&self) -> bool {
        self.0.has_failed.get()
    }

    /// These blocks cannot be read until they are written again.
    pub fn make_unreadable(&self, offset: u64, len: u64) {
        let block = u64::from(self.block_bytes());
        self.0.unreadable.borrow_mut().extend(offset / block..(offset + len).div_ceil(block));
    }

    /// Changes one byte in each of these blocks, without an error.
    pub fn corrupt(&self, offset: u64, len: u64) -> Writing {
        let shared = Rc::clone(&self.0);
        let block = self.block_bytes() as usize;
        Box::pin(async move {
            let mut bytes = shared.inner.read(offset, BytesMut::zeroed(len as usize)).await?;
            for block in bytes.chunks_mut(block) {
                let at = shared.delays.below(block.len() as u64) as usize;
                block[at] ^= 1 << shared.delays.below(8);
            }
            shared.inner.write(offset, bytes.freeze(), true).await
        })
    }

    /// From now on every operation takes between `least_ns` and `most_ns` longer, so operations in progress may
    /// overtake each other.
    pub fn set_delay(&self, least_ns: Nanos, most_ns: Nanos) {
        self.0.delays.set(least_ns, most_ns);
    }

    fn perform<T: 'static>(
        &self,
        kind: OpKind,
        offset: u64,
        len: u64,
        operation: impl FnOnce(&dyn Disk) -> LocalBoxFuture<'static, Result<T, DiskError>> + 'static,
    ) -> LocalBoxFuture<'static, Result<T, DiskError>> {
        if let Some(left) = self.0.operations_left.get() {
            self.0.operations_left.set(Some(left.saturating_sub(1)));
            self.0.has_failed.set(left == 0 || self.0.has_failed.get());
        }
        let shared = Rc::clone(&self.0);
        if let Err(error) = shared.check() {
            return Box::pin(ready(Err(error)));
        }
        let begun = shared.runtime.now();
        shared.meter.begin(begun);
        let (before, after) = shared.delays.next();
        // A disk without delay starts the operation when it is called.
        let (mut operation, mut started) = (Some(operation), None);
        if before == 0 && !shared.is_hanging.get() {
            started = operation.take().map(|operation| operation(&*shared.inner));
        }
        let (done, result) = oneshot::channel();
        let name = shared.inner.name().to_owned();
        self.0.runtime.spawn(async move {
            shared.runtime.sleep_until(begun + before).await;
            shared.answering().await;
            let mut result = shared.check();
            let mut value = None;
            if result.is_ok() {
                let started = started.or_else(|| operation.map(|operation| operation(&*shared.inner)));
                if let Some(started) = started {
                    match started.await {
                        Ok(done) => value = Some(done),
                        Err(error) => result = Err(error),
                    }
                }
                shared.runtime.sleep(after).await;
                shared.answering().await;
                result = result.and(shared.check()).and(shared.check_sectors(kind, offset, len));
            }
            shared.meter.end(begun, shared.runtime.now(), kind, len, result.is_ok());
            if let Some(result) = result.err().map(Err).or(value.map(Ok)) {
                // The caller may have stopped waiting.
                let _ = done.send(result);
            }
        });
        Box::pin(async move { result.await.unwrap_or(Err(DiskError::Failed(name))) })
    }
}

impl Shared {
    fn check(&self) -> Result<(), DiskError> {
        if self.has_failed.get() { Err(DiskError::Failed(self.inner.name().into())) } else { Ok(()) }
    }

    /// Whether operations pass unchanged, and take no time.
    fn has_no_fault(&self) -> bool {
        !self.has_failed.get()
            && !self.is_hanging.get()
            && self.operations_left.get().is_none()
            && self.unreadable.borrow().is_empty()
            && self.delays.are_none()
    }

    /// Waits while the disk hangs.
    async fn answering(&self) {
        while self.is_hanging.get() {
            let (sender, receiver) = oneshot::channel();
            self.held.borrow_mut().push(sender);
            // Dropping the sender is the signal.
            let _ = receiver.await;
        }
    }

    /// A read of a bad sector fails; a write reallocates the sector.
    fn check_sectors(&self, kind: OpKind, offset: u64, len: u64) -> Result<(), DiskError> {
        let block = u64::from(self.inner.block_bytes());
        let blocks = offset / block..(offset + len) / block;
        let mut unreadable = self.unreadable.borrow_mut();
        match kind {
            OpKind::Read if unreadable.range(blocks.clone()).next().is_some() => {
                return Err(DiskError::Unreadable { offset_bytes: offset, len_bytes: len });
            }
            OpKind::Write | OpKind::Discard => unreadable.retain(|at| !blocks.contains(at)),
            _ => {}
        }
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn name(&self) -> &str {
        self.0.inner.name()
    }

    fn size_bytes(&self) -> u64 {
        self.0.inner.size_bytes()
    }

    fn block_bytes(&self) -> u32 {
        self.0.inner.block_bytes()
    }

    fn stats(&self) -> DiskStats {
        self.0.meter.stats(self.0.runtime.now())
    }

    fn read(&self, offset: u64, into: BytesMut) -> Reading {
        let len = into.len() as u64;
        self.perform(OpKind::Read, offset, len, move |disk| disk.read(offset, into))
    }

    fn write(&self, offset: u64, data: Bytes, durable: bool) -> Writing {
        let len = data.len() as u64;
        self.perform(OpKind::Write, offset, len, move |disk| disk.write(offset, data, durable))
    }

    fn flush(&self) -> Writing {
        self.perform(OpKind::Flush, 0, 0, |disk| disk.flush())
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        if let Err(error) = check_range(self, offset, len) {
            return Box::pin(ready(Err(error)));
        }
        self.perform(OpKind::Discard, offset, len, move |disk| disk.discard(offset, len))
    }

    fn is_thin(&self) -> bool {
        self.0.inner.is_thin()
    }

    fn reserve(&self, offset: u64, len: u64) -> Writing {
        // Counted as the most similar kind: no bytes are moved.
        self.perform(OpKind::Flush, offset, len, move |disk| disk.reserve(offset, len))
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        self.0.has_no_fault().then(|| self.0.inner.at_once())?
    }
}

/// Random durations of operations, by seed.
pub(super) struct Delays {
    range: Cell<(Nanos, Nanos)>,
    rng: RefCell<Rng>,
}

impl Delays {
    pub(super) fn new(seed: u64) -> Self {
        Self { range: Cell::default(), rng: RefCell::new(Rng::with_seed(seed)) }
    }

    pub(super) fn set(&self, least: Nanos, most: Nanos) {
        self.range.set((least, most.max(least)));
    }

    fn are_none(&self) -> bool {
        self.range.get().1 == 0
    }

    /// The time before and after the bytes move.
    pub(super) fn next(&self) -> (Nanos, Nanos) {
        let (least, most) = self.range.get();
        if most == 0 {
            return (0, 0);
        }
        let mut rng = self.rng.borrow_mut();
        let whole = rng.u64(least..=most);
        let before = rng.u64(0..=whole);
        (before, whole - before)
    }

    pub(super) fn below(&self, end: u64) -> u64 {
        self.rng.borrow_mut().u64(0..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Executor, disk::MemoryDisk};

    fn disk() -> (Executor, FaultyDisk) {
        let executor = Executor::new();
        let inner = Rc::new(MemoryDisk::new("d0", 1 << 20, 512).unwrap());
        let disk = FaultyDisk::new(&executor.runtime(), inner, 1);
        (executor, disk)
    }

    fn failed() -> DiskError {
        DiskError::Failed("d0".into())
    }

    #[test]
    fn a_failed_disk_takes_what_is_under_way_along() {
        let (mut executor, disk) = disk();
        disk.set_delay(100, 200);
        let write = disk.write(0, Bytes::from(vec![1; 512]), true);
        disk.fail();
        assert_eq!(executor.run_in_virtual_time(write), Some(Err(failed())));
        assert_eq!(executor.run_in_virtual_time(disk.read(0, BytesMut::zeroed(512))), Some(Err(failed())));
        disk.revive();
        assert!(executor.run_in_virtual_time(disk.read(0, BytesMut::zeroed(512))).unwrap().is_ok());
    }

    #[test]
    fn a_hanging_disk_goes_on_where_it_hung() {
        let (mut executor, disk) = disk();
        disk.hang();
        let write = disk.write(0, Bytes::from(vec![1; 512]), true);
        let done = Rc::new(Cell::new(false));
        let told = Rc::clone(&done);
        executor.runtime().spawn(async move { told.set(write.await.is_ok()) });
        executor.run(1_000_000);
        assert!(!done.get());
        disk.answer();
        executor.run(1_000_000);
        assert!(done.get());
        let bytes = executor.run_in_virtual_time(disk.read(0, BytesMut::zeroed(512))).unwrap().unwrap();
        assert_eq!(bytes[0], 1);
    }

    #[test]
    fn it_fails_after_so_many_operations() {
        let (mut executor, disk) = disk();
        disk.fail_after(2);
        let results: Vec<_> = (0..4).map(|_| executor.run_in_virtual_time(disk.flush()).unwrap()).collect();
        assert_eq!(results, [Ok(()), Ok(()), Err(failed()), Err(failed())]);
    }

    #[test]
    fn bad_sectors_are_mended_by_writing_them() {
        let (mut executor, disk) = disk();
        disk.make_unreadable(1024, 512);
        let unreadable = DiskError::Unreadable { offset_bytes: 0, len_bytes: 4096 };
        assert_eq!(executor.run_in_virtual_time(disk.read(0, BytesMut::zeroed(4096))), Some(Err(unreadable)));
        assert!(executor.run_in_virtual_time(disk.read(1536, BytesMut::zeroed(512))).unwrap().is_ok());
        executor.run_in_virtual_time(disk.write(1024, Bytes::from(vec![5; 512]), false)).unwrap().unwrap();
        let bytes = executor.run_in_virtual_time(disk.read(0, BytesMut::zeroed(4096))).unwrap().unwrap();
        assert_eq!(bytes[1024..1536], [5; 512]);
    }

    #[test]
    fn rot_is_silent_and_in_every_block_asked_for() {
        let (mut executor, disk) = disk();
        executor.run_in_virtual_time(disk.corrupt(512, 1024)).unwrap().unwrap();
        let bytes = executor.run_in_virtual_time(disk.read(0, BytesMut::zeroed(2048))).unwrap().unwrap();
        let changed: Vec<_> =
            bytes.chunks(512).map(|block| block.iter().filter(|&&byte| byte != 0).count()).collect();
        assert_eq!(changed, [0, 1, 1, 0]);
    }

    #[test]
    fn delays_are_kept_and_counted() {
        let (mut executor, disk) = disk();
        disk.set_delay(1000, 1000);
        for _ in 0..3 {
            drop(disk.write(0, Bytes::from(vec![1; 512]), false));
        }
        executor.run_in_virtual_time(disk.read(0, BytesMut::zeroed(512))).unwrap().unwrap();
        let stats = disk.stats();
        assert_eq!((stats.writes, stats.reads, stats.response_ns, stats.busy_ns), (3, 1, 4000, 1000));
    }
}
