//! A disk over another one that is never written: writes stay in memory.

use super::{Disk, DiskError, DiskStats, Meter, OpKind, Reading, Writing, check_range};
use bytes::{Bytes, BytesMut};
use futures::future::ready;
use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

/// Reads from the disk below, except blocks that were written since. It shows what an array would make of its disks.
#[derive(Clone)]
pub struct OverlayDisk(Rc<Shared>);

struct Shared {
    inner: Rc<dyn Disk>,
    written: RefCell<BTreeMap<u64, Bytes>>,
    meter: Meter,
}

impl OverlayDisk {
    /// Nothing is written yet.
    pub fn new(inner: Rc<dyn Disk>) -> Self {
        Self(Rc::new(Shared { inner, written: RefCell::default(), meter: Meter::default() }))
    }

    fn put(&self, kind: OpKind, offset: u64, len: u64, content: impl Fn(usize) -> Bytes) -> Writing {
        let result = check_range(self, offset, len);
        if result.is_ok() {
            let block = u64::from(self.block_bytes());
            let blocks = offset / block..(offset + len) / block;
            let blocks = blocks.enumerate().map(|(number, block)| (block, content(number)));
            self.0.written.borrow_mut().extend(blocks);
        }
        self.0.meter.begin(0);
        self.0.meter.end(0, 0, kind, len, result.is_ok());
        Box::pin(ready(result))
    }
}

impl Disk for OverlayDisk {
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
        self.0.meter.stats(0)
    }

    fn read(&self, offset: u64, into: BytesMut) -> Reading {
        let (shared, reading) = (Rc::clone(&self.0), self.0.inner.read(offset, into));
        let block = self.block_bytes() as usize;
        Box::pin(async move {
            let mut bytes = reading.await?;
            let written = shared.written.borrow();
            for (number, into) in bytes.chunks_exact_mut(block).enumerate() {
                if let Some(content) = written.get(&(offset / block as u64 + number as u64)) {
                    into.copy_from_slice(content);
                }
            }
            drop(written);
            Ok(bytes)
        })
    }

    fn write(&self, offset: u64, data: Bytes, _durable: bool) -> Writing {
        let block = self.block_bytes() as usize;
        let content = |number: usize| data.slice(number * block..(number + 1) * block);
        self.put(OpKind::Write, offset, data.len() as u64, content)
    }

    fn flush(&self) -> Writing {
        Box::pin(ready(Ok::<(), DiskError>(())))
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        let zeros = Bytes::from(vec![0; self.block_bytes() as usize]);
        self.put(OpKind::Discard, offset, len, |_| zeros.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::MemoryDisk;
    use futures::executor::block_on;

    #[test]
    fn what_is_written_is_read_and_reaches_nothing() {
        let below: Rc<dyn Disk> = Rc::new(MemoryDisk::new("d0", 1 << 20, 512).unwrap());
        block_on(below.write(0, Bytes::from(vec![1; 4096]), true)).unwrap();
        let disk = OverlayDisk::new(Rc::clone(&below));
        block_on(disk.write(512, Bytes::from(vec![2; 1024]), true)).unwrap();
        block_on(disk.discard(2048, 512)).unwrap();
        let bytes = block_on(disk.read(0, BytesMut::zeroed(4096))).unwrap();
        let found: Vec<u8> = bytes.chunks(512).map(|block| block[0]).collect();
        assert_eq!(found, [1, 2, 2, 1, 0, 1, 1, 1]);
        assert_eq!(block_on(below.read(0, BytesMut::zeroed(4096))).unwrap(), vec![1; 4096]);
        assert!(block_on(disk.write(256, Bytes::from(vec![2; 512]), true)).is_err());
    }
}
