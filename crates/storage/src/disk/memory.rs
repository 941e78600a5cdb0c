//! A disk in memory. Its contents are lost when the process ends.

use super::{AtOnce, Chunk, Disk, DiskError, DiskStats, NextAccess, Reading, Writing, check_range};
use bytes::{Bytes, BytesMut};
use futures::future::ready;
use linerate_io::Region;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// A disk over a [`Region`]. Every operation has ended when the call returns.
#[derive(Debug)]
pub struct MemoryDisk {
    name: String,
    block_bytes: u32,
    pages: MemoryPages,
}

/// The memory of a [`MemoryDisk`], for threads that use its bytes in place. They count their I/O here, and the disk's
/// statistics include it.
#[derive(Clone, Debug)]
pub struct MemoryPages {
    region: Arc<Region>,
    counters: Arc<Counters>,
}

/// [`DiskStats`] that several threads update. Operations on memory take no time.
#[derive(Debug, Default)]
struct Counters {
    reads: AtomicU64,
    writes: AtomicU64,
    read_bytes: AtomicU64,
    write_bytes: AtomicU64,
    flushes: AtomicU64,
    discards: AtomicU64,
    errors: AtomicU64,
}

impl MemoryDisk {
    /// A disk of zeros. Pages cost memory once they are written. Errors: length zero, or not enough address space.
    pub fn new(name: impl Into<String>, size_bytes: u64, block_bytes: u32) -> io::Result<Self> {
        let pages = MemoryPages { region: Region::in_huge_pages(size_bytes)?, counters: Arc::default() };
        Ok(Self { name: name.into(), block_bytes, pages })
    }

    fn check_range(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        let checked = check_range(self, offset, len);
        if checked.is_err() {
            self.pages.counters.errors.fetch_add(1, Relaxed);
        }
        checked
    }
}

impl MemoryPages {
    /// The bytes themselves.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// `len_bytes` have been read.
    pub fn count_read(&self, len_bytes: u64) {
        self.counters.reads.fetch_add(1, Relaxed);
        self.counters.read_bytes.fetch_add(len_bytes, Relaxed);
    }

    /// `len_bytes` have been written.
    pub fn count_write(&self, len_bytes: u64) {
        self.counters.writes.fetch_add(1, Relaxed);
        self.counters.write_bytes.fetch_add(len_bytes, Relaxed);
    }

    /// A flush was requested; there is nothing to do.
    pub fn count_flush(&self) {
        self.counters.flushes.fetch_add(1, Relaxed);
    }

    /// A range was discarded.
    pub fn count_discard(&self) {
        self.counters.discards.fetch_add(1, Relaxed);
    }
}

impl Counters {
    fn stats(&self) -> DiskStats {
        DiskStats {
            reads: self.reads.load(Relaxed),
            writes: self.writes.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            write_bytes: self.write_bytes.load(Relaxed),
            flushes: self.flushes.load(Relaxed),
            discards: self.discards.load(Relaxed),
            errors: self.errors.load(Relaxed),
            ..DiskStats::default()
        }
    }
}

impl Disk for MemoryDisk {
    fn name(&self) -> &str {
        &self.name
    }

    fn size_bytes(&self) -> u64 {
        self.pages.region.len()
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn stats(&self) -> DiskStats {
        self.pages.counters.stats()
    }

    fn pages(&self) -> Option<MemoryPages> {
        Some(self.pages.clone())
    }

    fn read(&self, offset: u64, mut into: BytesMut) -> Reading {
        let len = into.len() as u64;
        let read = self.check_range(offset, len).map(|()| {
            self.pages.region.read(offset, &mut into);
            self.pages.count_read(len);
            into
        });
        Box::pin(ready(read))
    }

    fn write(&self, offset: u64, data: Bytes, _durable: bool) -> Writing {
        let len = data.len() as u64;
        let written = self.check_range(offset, len).map(|()| {
            self.pages.region.write_streaming(offset, &data);
            self.pages.count_write(len);
        });
        Box::pin(ready(written))
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        Some(self)
    }

    fn prefetch(&self, offset: u64, len: u64, next: NextAccess) {
        // Writes go past the caches, so the old bytes are not loaded.
        if next == NextAccess::Read && check_range(self, offset, len).is_ok() {
            self.pages.region.prefetch(offset, len);
        }
    }

    fn flush(&self) -> Writing {
        self.pages.count_flush();
        Box::pin(ready(Ok(())))
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        let discarded = self.check_range(offset, len).map(|()| {
            self.pages.region.fill(offset, len, &[0]);
            self.pages.count_discard();
        });
        Box::pin(ready(discarded))
    }
}

impl AtOnce for MemoryDisk {
    fn read_now(&self, offset: u64, len: u64, each: &mut dyn FnMut(Chunk<'_>)) {
        each(Chunk::at(&self.pages.region, offset, len as usize));
        self.pages.count_read(len);
    }

    fn write_now(&self, offset: u64, data: &[u8], _durable: bool) {
        self.pages.region.write_streaming(offset, data);
        self.pages.count_write(data.len() as u64);
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
