//! A disk in memory: as fast as copying, gone with its process.

use super::{Disk, DiskError, DiskStats, Reading, Writing, check_range};
use bytes::{Bytes, BytesMut};
use futures::future::ready;
use linerate_io::Region;
use std::{cell::Cell, io, sync::Arc};

/// A disk over a [`Region`]. Every operation is over when the call returns.
#[derive(Debug)]
pub struct MemoryDisk {
    name: String,
    block_bytes: u32,
    region: Arc<Region>,
    stats: Cell<DiskStats>,
}

impl MemoryDisk {
    /// A disk of zeros. Pages cost memory once they are written. Errors: length zero, or not enough address space.
    pub fn new(name: impl Into<String>, size_bytes: u64, block_bytes: u32) -> io::Result<Self> {
        let region = Region::anonymous(size_bytes)?;
        Ok(Self { name: name.into(), block_bytes, region, stats: Cell::default() })
    }

    /// The bytes themselves, for whoever serves them without a copy.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    fn count<T>(
        &self,
        result: Result<T, DiskError>,
        change: impl FnOnce(&mut DiskStats),
    ) -> Result<T, DiskError> {
        let mut stats = self.stats.get();
        match result {
            Ok(_) => change(&mut stats),
            Err(_) => stats.errors += 1,
        }
        self.stats.set(stats);
        result
    }
}

impl Disk for MemoryDisk {
    fn name(&self) -> &str {
        &self.name
    }

    fn size_bytes(&self) -> u64 {
        self.region.len()
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn stats(&self) -> DiskStats {
        self.stats.get()
    }

    fn read(&self, offset: u64, mut into: BytesMut) -> Reading {
        let len = into.len() as u64;
        let result = check_range(self, offset, len).map(|()| {
            self.region.read(offset, &mut into);
            into
        });
        Box::pin(ready(self.count(result, |stats| {
            stats.reads += 1;
            stats.read_bytes += len;
        })))
    }

    fn write(&self, offset: u64, data: Bytes, _durable: bool) -> Writing {
        let len = data.len() as u64;
        let result = check_range(self, offset, len).map(|()| self.region.write(offset, &data));
        Box::pin(ready(self.count(result, |stats| {
            stats.writes += 1;
            stats.write_bytes += len;
        })))
    }

    fn flush(&self) -> Writing {
        Box::pin(ready(self.count(Ok(()), |stats| stats.flushes += 1)))
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        let result = check_range(self, offset, len).map(|()| self.region.fill(offset, len, &[0]));
        Box::pin(ready(self.count(result, |stats| stats.discards += 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;

    #[test]
    fn bytes_come_back_and_discarded_ones_are_zero() {
        let disk = MemoryDisk::new("m0", 1 << 20, 512).unwrap();
        block_on(disk.write(4096, Bytes::from(vec![7; 1024]), true)).unwrap();
        block_on(disk.discard(4608, 512)).unwrap();
        let bytes = block_on(disk.read(4096, BytesMut::zeroed(1024))).unwrap();
        assert_eq!(bytes[..512], [7; 512]);
        assert_eq!(bytes[512..], [0; 512]);
        let stats = disk.stats();
        assert_eq!((stats.reads, stats.read_bytes, stats.writes, stats.discards), (1, 1024, 1, 1));
    }

    #[test]
    fn ranges_outside_or_between_blocks_are_refused() {
        let disk = MemoryDisk::new("m0", 1 << 20, 512).unwrap();
        for (offset, len) in [(1 << 20, 512), (100, 512), (0, 100), (u64::MAX - 511, 512)] {
            let result = block_on(disk.read(offset, BytesMut::zeroed(len)));
            assert_eq!(result, Err(DiskError::OutOfRange { offset_bytes: offset, len_bytes: len as u64 }));
        }
        assert_eq!(disk.stats().errors, 4);
    }
}
