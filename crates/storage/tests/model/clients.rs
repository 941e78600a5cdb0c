//! Random work on one volume, checked against its oracle.

use crate::oracle::Oracle;
use bytes::BytesMut;
use fastrand::Rng;
use linerate_storage::{Disk, DiskError, Runtime};
use std::{cell::RefCell, ops::Range, rc::Rc};

/// A disk under test and its possible contents.
#[derive(Clone)]
pub(crate) struct Volume {
    pub(crate) disk: Rc<dyn Disk>,
    /// Offset of the oracle's first block on the disk.
    pub(crate) offset: u64,
    pub(crate) oracle: Rc<RefCell<Oracle>>,
    /// Errors that the current state of the array permits.
    pub(crate) excuses: Rc<dyn Fn(&DiskError) -> bool>,
    /// Number of successful operations: a test without any would prove nothing.
    pub(crate) done: Rc<std::cell::Cell<u64>>,
}

impl Volume {
    /// A disk that must never fail.
    pub(crate) fn new(disk: Rc<dyn Disk>, oracle: Rc<RefCell<Oracle>>) -> Self {
        Self { disk, offset: 0, oracle, excuses: Rc::new(|_| false), done: Rc::default() }
    }

    /// Reads and checks a range. False: the read failed, and this is permitted.
    pub(crate) async fn read(&self, blocks: Range<usize>) -> bool {
        let block_bytes = self.oracle.borrow().block_bytes();
        let watch = self.oracle.borrow_mut().begin_read(blocks.clone());
        let into = BytesMut::zeroed(blocks.len() * block_bytes);
        match self.disk.read(self.offset + (blocks.start * block_bytes) as u64, into).await {
            Ok(bytes) => {
                let checked = self.oracle.borrow_mut().check_read(watch, &bytes);
                checked.unwrap_or_else(|fault| panic!("read of {blocks:?}: {fault}"));
                self.count(true)
            }
            Err(error) => {
                self.oracle.borrow_mut().end_read(watch);
                self.excuse("read", &error)
            }
        }
    }

    /// Reads and checks everything, piece by piece.
    pub(crate) async fn read_all(&self) {
        let blocks = self.oracle.borrow().blocks();
        for start in (0..blocks).step_by(32) {
            self.read(start..blocks.min(start + 32)).await;
        }
    }

    pub(crate) async fn write(&self, blocks: Range<usize>, durable: bool) -> bool {
        let offset = self.offset + (blocks.start * self.oracle.borrow().block_bytes()) as u64;
        let (write, bytes) = self.oracle.borrow_mut().begin_write(blocks, durable);
        let result = self.disk.write(offset, bytes, durable).await;
        self.oracle.borrow_mut().end_write(write, result.is_ok());
        result.map_or_else(|error| self.excuse("write", &error), |()| self.count(true))
    }

    pub(crate) async fn discard(&self, blocks: Range<usize>) -> bool {
        let block_bytes = self.oracle.borrow().block_bytes() as u64;
        let offset = self.offset + blocks.start as u64 * block_bytes;
        let len = blocks.len() as u64 * block_bytes;
        let discard = self.oracle.borrow_mut().begin_discard(blocks);
        let result = self.disk.discard(offset, len).await;
        self.oracle.borrow_mut().end_write(discard, result.is_ok());
        result.map_or_else(|error| self.excuse("discard", &error), |()| self.count(true))
    }

    pub(crate) async fn flush(&self) -> bool {
        let flush = self.oracle.borrow().begin_flush();
        match self.disk.flush().await {
            Ok(()) => {
                self.oracle.borrow_mut().end_flush(flush);
                self.count(true)
            }
            Err(error) => self.excuse("flush", &error),
        }
    }

    fn count(&self, value: bool) -> bool {
        self.done.set(self.done.get() + 1);
        value
    }

    fn excuse(&self, what: &str, error: &DiskError) -> bool {
        assert!((self.excuses)(error), "{what}: {error}");
        false
    }

    /// A random range, often one that other clients use too; mostly a few blocks, sometimes many.
    fn place(&self, rng: &mut Rng) -> Range<usize> {
        let blocks = self.oracle.borrow().blocks();
        let len = match rng.u8(0..10) {
            0..4 => 1,
            4..8 => rng.usize(1..=8),
            8 => rng.usize(1..=32),
            _ => rng.usize(1..=128),
        };
        let len = len.min(blocks);
        let starts = if rng.bool() { blocks - len + 1 } else { (blocks - len + 1).min(24) };
        let start = rng.usize(0..starts);
        let aligned = start / 8 * 8;
        if rng.u8(0..3) == 0 { aligned..aligned + len } else { start..start + len }
    }
}

/// Works on a volume for a number of operations.
pub(crate) async fn work(runtime: Runtime, volume: Volume, mut rng: Rng, operations: usize) {
    for _ in 0..operations {
        let place = volume.place(&mut rng);
        match rng.u8(0..100) {
            0..45 => volume.write(place, rng.u8(0..4) == 0).await,
            45..78 => volume.read(place).await,
            78..86 => volume.flush().await,
            86..93 => volume.discard(place).await,
            _ => {
                runtime.sleep(rng.u64(0..5_000_000)).await;
                true
            }
        };
    }
}
