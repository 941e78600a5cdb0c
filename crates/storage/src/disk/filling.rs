//! A disk for tests, around any other disk: its file system is full at times.

use super::{Disk, DiskError, DiskStats, Reading, Writing, check_range};
use bytes::{Bytes, BytesMut};
use fastrand::Rng;
use futures::future::ready;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    rc::Rc,
};

/// Unit of allocation.
const UNIT_BYTES: u64 = 4096;

/// A thin disk around another. Written or reserved ranges have their space until they are discarded. While the file
/// system is full, writes that need more space are refused; such a write may have changed its first blocks.
#[derive(Clone)]
pub struct FillingDisk(Rc<Shared>);

struct Shared {
    inner: Rc<dyn Disk>,
    allocated: RefCell<BTreeSet<u64>>,
    is_full: Cell<bool>,
    honours_reservations: Cell<bool>,
    refused: Cell<u64>,
    rng: RefCell<Rng>,
}

impl FillingDisk {
    /// A disk on a file system with space; nothing is allocated yet.
    pub fn new(inner: Rc<dyn Disk>, seed: u64) -> Self {
        Self(Rc::new(Shared {
            inner,
            allocated: RefCell::default(),
            is_full: Cell::new(false),
            honours_reservations: Cell::new(true),
            refused: Cell::new(0),
            rng: RefCell::new(Rng::with_seed(seed)),
        }))
    }

    /// Makes the file system full, or frees space again.
    pub fn set_full(&self, is_full: bool) {
        self.0.is_full.set(is_full);
    }

    /// Whether the file system is full.
    pub fn is_full(&self) -> bool {
        self.0.is_full.get()
    }

    /// From now on allocated space does not help, as on copy-on-write file systems: while they are full, any write may
    /// be refused.
    pub fn ignore_reservations(&self) {
        self.0.honours_reservations.set(false);
    }

    /// Whether writes to allocated space always succeed.
    pub fn honours_reservations(&self) -> bool {
        self.0.honours_reservations.get()
    }

    /// How many operations were refused.
    pub fn refused(&self) -> u64 {
        self.0.refused.get()
    }

    /// The same state around another disk, such as the image after a power cut. It is as full as before.
    #[must_use]
    pub fn around(&self, inner: Rc<dyn Disk>, seed: u64) -> Self {
        let other = Self::new(inner, seed);
        other.0.allocated.replace(self.0.allocated.borrow().clone());
        other.0.is_full.set(self.is_full());
        other.0.honours_reservations.set(self.0.honours_reservations.get());
        other
    }

    /// How many bytes from the beginning of a range have space.
    fn space(&self, offset: u64, len: u64) -> u64 {
        if !self.is_full() {
            return len;
        }
        let block = u64::from(self.block_bytes());
        let found = if self.0.honours_reservations.get() {
            let allocated = self.0.allocated.borrow();
            let is_missing = |unit: &u64| !allocated.contains(unit);
            let first = units(offset, len).find(is_missing);
            first.map_or(len, |unit| (unit * UNIT_BYTES).saturating_sub(offset))
        } else if self.0.rng.borrow_mut().bool() {
            len
        } else {
            0
        };
        if found == len || found == 0 {
            return found;
        }
        // The write may fail at an earlier block.
        self.0.rng.borrow_mut().u64(0..=found / block) * block
    }

    fn refuse(&self) -> DiskError {
        self.0.refused.set(self.0.refused.get() + 1);
        DiskError::NoSpace(self.name().to_owned())
    }
}

fn units(offset: u64, len: u64) -> std::ops::Range<u64> {
    offset / UNIT_BYTES..(offset + len).div_ceil(UNIT_BYTES)
}

impl Disk for FillingDisk {
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
        self.0.inner.stats()
    }

    fn is_thin(&self) -> bool {
        true
    }

    fn read(&self, offset: u64, into: BytesMut) -> Reading {
        self.0.inner.read(offset, into)
    }

    fn write(&self, offset: u64, mut data: Bytes, durable: bool) -> Writing {
        let len = data.len() as u64;
        if let Err(error) = check_range(self, offset, len) {
            return Box::pin(ready(Err(error)));
        }
        let space = self.space(offset, len);
        self.0.allocated.borrow_mut().extend(units(offset, space));
        if space == len {
            return self.0.inner.write(offset, data, durable);
        }
        let (error, writing) =
            (self.refuse(), self.0.inner.write(offset, data.split_to(space as usize), durable));
        Box::pin(async move {
            writing.await?;
            Err(error)
        })
    }

    fn flush(&self) -> Writing {
        self.0.inner.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        let whole = offset.div_ceil(UNIT_BYTES)..(offset + len) / UNIT_BYTES;
        self.0.allocated.borrow_mut().retain(|unit| !whole.contains(unit));
        self.0.inner.discard(offset, len)
    }

    fn reserve(&self, offset: u64, len: u64) -> Writing {
        let result = if check_range(self, offset, len).is_err() {
            check_range(self, offset, len)
        } else if self.is_full() && self.0.honours_reservations.get() && self.space(offset, len) < len {
            Err(self.refuse())
        } else {
            self.0.allocated.borrow_mut().extend(units(offset, len));
            Ok(())
        };
        Box::pin(ready(result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::MemoryDisk;
    use futures::executor::block_on;

    fn disk() -> FillingDisk {
        FillingDisk::new(Rc::new(MemoryDisk::new("d0", 1 << 20, 512).unwrap()), 1)
    }

    fn bytes(len: usize) -> Bytes {
        Bytes::from(vec![7; len])
    }

    #[test]
    fn what_has_its_space_is_written_and_the_rest_refused_until_there_is_some() {
        let (disk, no_space) = (disk(), Err(DiskError::NoSpace("d0".into())));
        block_on(disk.write(0, bytes(4096), false)).unwrap();
        block_on(disk.reserve(8192, 4096)).unwrap();
        disk.set_full(true);
        assert_eq!(block_on(disk.write(512, bytes(512), false)), Ok(()));
        assert_eq!(block_on(disk.write(8192, bytes(4096), true)), Ok(()));
        assert_eq!(block_on(disk.write(4096, bytes(512), false)), no_space);
        assert_eq!(block_on(disk.reserve(4096, 8192)), no_space);
        block_on(disk.discard(0, 4096)).unwrap();
        assert_eq!(block_on(disk.write(0, bytes(512), false)), no_space);
        assert_eq!(disk.refused(), 3);
        disk.set_full(false);
        assert_eq!(block_on(disk.write(4096, bytes(512), false)), Ok(()));
    }

    #[test]
    fn a_write_may_be_cut_off_where_space_ends() {
        let disk = disk();
        block_on(disk.write(0, bytes(4096), false)).unwrap();
        disk.set_full(true);
        block_on(disk.write(0, Bytes::from(vec![9; 8192]), false)).unwrap_err();
        let found = block_on(disk.read(0, BytesMut::zeroed(8192))).unwrap();
        assert!(found[..4096].chunks(512).all(|block| block == [7; 512] || block == [9; 512]));
        assert_eq!(found[4096..], [0; 4096]);
    }
}
