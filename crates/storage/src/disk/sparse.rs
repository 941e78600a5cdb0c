//! A disk in memory that stores only blocks that are not zero, so it can be as large as a real drive.

use super::{Disk, DiskError, DiskStats, Meter, OpKind, Reading, Writing, check_range};
use bytes::{Bytes, BytesMut};
use futures::future::ready;
use std::{cell::RefCell, collections::HashMap};

const PAGE_BYTES: usize = 4096;
const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// A disk of 4 KiB pages. A page exists once something other than zeros was written to it. Every operation has ended
/// when the call returns. It is slower than a [`super::MemoryDisk`], and smaller: zeros take no memory, however many
/// are written.
#[derive(Debug)]
pub struct SparseDisk {
    name: String,
    size_bytes: u64,
    block_bytes: u32,
    pages: RefCell<HashMap<u64, Box<[u8; PAGE_BYTES]>>>,
    meter: Meter,
}

impl SparseDisk {
    /// A disk of zeros.
    pub fn new(name: impl Into<String>, size_bytes: u64, block_bytes: u32) -> Self {
        Self {
            name: name.into(),
            size_bytes,
            block_bytes,
            pages: RefCell::default(),
            meter: Meter::default(),
        }
    }

    /// Pages that are not zero, in bytes.
    pub fn held_bytes(&self) -> u64 {
        (self.pages.borrow().len() * PAGE_BYTES) as u64
    }

    /// Does `work` if the range is inside the disk, and counts.
    fn at_once<T>(
        &self,
        (kind, offset, len): (OpKind, u64, u64),
        work: impl FnOnce() -> T,
    ) -> Result<T, DiskError> {
        let result = check_range(self, offset, len).map(|()| work());
        // Nothing here takes time, so no clock is needed.
        self.meter.begin(0);
        self.meter.end(0, 0, kind, len, result.is_ok());
        result
    }

    /// The parts of a range by page: page, first byte in it, first and last byte of the range.
    fn parts(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
        let page_bytes = PAGE_BYTES as u64;
        let end = offset + len;
        (offset / page_bytes..end.div_ceil(page_bytes)).map(move |page| {
            let (from, to) = (offset.max(page * page_bytes), end.min((page + 1) * page_bytes));
            (page, (from % page_bytes) as usize, (from - offset) as usize..(to - offset) as usize)
        })
    }

    fn store(&self, offset: u64, data: &[u8]) {
        let mut pages = self.pages.borrow_mut();
        for (page, at, part) in Self::parts(offset, data.len() as u64) {
            let bytes = &data[part];
            let is_zero = *bytes == ZEROS[..bytes.len()];
            if is_zero && bytes.len() == PAGE_BYTES {
                pages.remove(&page);
            } else if !is_zero || pages.contains_key(&page) {
                let held = pages.entry(page).or_insert_with(|| Box::new(ZEROS));
                held[at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}

impl Disk for SparseDisk {
    fn name(&self) -> &str {
        &self.name
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn stats(&self) -> DiskStats {
        self.meter.stats(0)
    }

    fn read(&self, offset: u64, mut into: BytesMut) -> Reading {
        let len = into.len() as u64;
        Box::pin(ready(self.at_once((OpKind::Read, offset, len), || {
            let pages = self.pages.borrow();
            for (page, at, part) in Self::parts(offset, len) {
                let held = pages.get(&page).map_or(&ZEROS, |page| page);
                let bytes = &held[at..at + part.len()];
                into[part].copy_from_slice(bytes);
            }
            drop(pages);
            into
        })))
    }

    fn write(&self, offset: u64, data: Bytes, _durable: bool) -> Writing {
        let operation = (OpKind::Write, offset, data.len() as u64);
        Box::pin(ready(self.at_once(operation, || self.store(offset, &data))))
    }

    fn flush(&self) -> Writing {
        Box::pin(ready(self.at_once((OpKind::Flush, 0, 0), || ())))
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        Box::pin(ready(self.at_once((OpKind::Discard, offset, len), || {
            for (page, at, part) in Self::parts(offset, len) {
                if part.len() == PAGE_BYTES {
                    self.pages.borrow_mut().remove(&page);
                } else if let Some(page) = self.pages.borrow_mut().get_mut(&page) {
                    page[at..at + part.len()].fill(0);
                }
            }
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::MemoryDisk;
    use futures::executor::block_on;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_holds_what_a_plain_disk_holds(
            steps in prop::collection::vec((0_u8..3, 0_u64..200, 1_u64..40, any::<u8>()), 1..60),
        ) {
            let (sparse, plain) = (SparseDisk::new("s", 128 << 10, 512), MemoryDisk::new("m", 128 << 10, 512).unwrap());
            let disks: [&dyn Disk; 2] = [&sparse, &plain];
            for (what, block, blocks, value) in steps {
                let (offset, len) = (block * 512, blocks * 512);
                for disk in disks {
                    block_on(match what {
                        0 => disk.discard(offset, len),
                        1 => disk.write(offset, Bytes::from(vec![0; len as usize]), false),
                        _ => disk.write(offset, Bytes::from(vec![value; len as usize]), true),
                    }).unwrap();
                }
                let [held, expected] = disks.map(|disk| block_on(disk.read(512, BytesMut::zeroed(127 << 10))).unwrap());
                prop_assert!(held == expected, "after {what} at {offset}");
            }
            prop_assert_eq!(sparse.stats().writes, plain.stats().writes);
        }
    }

    #[test]
    fn zeros_cost_nothing() {
        let disk = SparseDisk::new("s", 1 << 40, 4096);
        block_on(disk.write(0, Bytes::from(vec![0; 1 << 20]), false)).unwrap();
        block_on(disk.write(1 << 39, Bytes::from(vec![1; 8192]), false)).unwrap();
        assert_eq!(disk.held_bytes(), 8192);
        block_on(disk.write((1 << 39) + 4096, Bytes::from(vec![0; 4096]), false)).unwrap();
        assert_eq!(disk.held_bytes(), 4096);
        assert!(block_on(disk.write(512, Bytes::from(vec![0; 512]), false)).is_err());
    }
}
