//! Several disks joined to one (md calls this linear).

use crate::disk::{Chunk, Disk, DiskError, DiskStats, NextAccess, Reading, Writing, check_range};
use bytes::{Bytes, BytesMut};
use futures::{
    FutureExt,
    future::{join_all, ready},
};
use std::rc::Rc;

/// See the module text. Bytes of a disk beyond the last whole block of the largest block size are not used.
pub(super) struct Concat {
    name: String,
    block_bytes: u32,
    /// Each with the place of its first byte.
    parts: Vec<(u64, Rc<dyn Disk>)>,
    size_bytes: u64,
}

impl Concat {
    /// One disk made of several; a single one is returned unchanged.
    pub(super) fn of(name: &str, disks: Vec<Rc<dyn Disk>>) -> Rc<dyn Disk> {
        if let [only] = &disks[..] {
            return Rc::clone(only);
        }
        let block_bytes = disks.iter().map(|disk| disk.block_bytes()).max().unwrap_or(512);
        let (mut parts, mut size_bytes) = (Vec::new(), 0);
        for disk in disks {
            let first = size_bytes;
            size_bytes += disk.size_bytes() / u64::from(block_bytes) * u64::from(block_bytes);
            parts.push((first, disk));
        }
        Rc::new(Self { name: name.to_owned(), block_bytes, parts, size_bytes })
    }

    /// The disks that a range touches, and which part of it each has: offset on the disk, length.
    fn split(&self, offset: u64, len: u64) -> impl Iterator<Item = (&Rc<dyn Disk>, u64, u64)> {
        let ends = self.parts.iter().skip(1).map(|(first, _)| *first).chain([self.size_bytes]);
        self.parts.iter().zip(ends).filter_map(move |((first, disk), end)| {
            let (from, to) = (offset.max(*first), (offset + len).min(end));
            (from < to).then(|| (disk, from - first, to - from))
        })
    }

    fn on_each(&self, act: impl Fn(&dyn Disk) -> Writing) -> Writing {
        all(self.parts.iter().map(|(_, disk)| act(&**disk)).collect())
    }
}

fn all(writings: Vec<Writing>) -> Writing {
    join_all(writings).map(|results| results.into_iter().collect()).boxed_local()
}

impl Disk for Concat {
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
        let mut sum = DiskStats::default();
        for stats in self.parts.iter().map(|(_, disk)| disk.stats()) {
            sum.reads += stats.reads;
            sum.writes += stats.writes;
            sum.read_bytes += stats.read_bytes;
            sum.write_bytes += stats.write_bytes;
            sum.flushes += stats.flushes;
            sum.discards += stats.discards;
            sum.errors += stats.errors;
            sum.response_ns += stats.response_ns;
            sum.busy_ns = sum.busy_ns.max(stats.busy_ns);
        }
        sum
    }

    fn read(&self, offset: u64, mut into: BytesMut) -> Reading {
        let len = into.len() as u64;
        if let Err(error) = check_range(self, offset, len) {
            return ready(Err(error)).boxed_local();
        }
        let readings: Vec<Reading> = self
            .split(offset, len)
            .map(|(disk, at, len)| disk.read(at, into.split_to(len as usize)))
            .collect();
        let join = |read: Vec<Result<BytesMut, DiskError>>| {
            let mut read = read.into_iter();
            let mut whole = read.next().unwrap_or_else(|| Ok(BytesMut::new()))?;
            for part in read {
                whole.unsplit(part?);
            }
            Ok(whole)
        };
        join_all(readings).map(join).boxed_local()
    }

    fn write(&self, offset: u64, mut data: Bytes, durable: bool) -> Writing {
        if let Err(error) = check_range(self, offset, data.len() as u64) {
            return ready(Err(error)).boxed_local();
        }
        let parts = self.split(offset, data.len() as u64);
        all(parts.map(|(disk, at, len)| disk.write(at, data.split_to(len as usize), durable)).collect())
    }

    fn flush(&self) -> Writing {
        self.on_each(|disk| disk.flush())
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        if let Err(error) = check_range(self, offset, len) {
            return ready(Err(error)).boxed_local();
        }
        all(self.split(offset, len).map(|(disk, at, len)| disk.discard(at, len)).collect())
    }

    fn is_thin(&self) -> bool {
        self.parts.iter().any(|(_, disk)| disk.is_thin())
    }

    fn reserve(&self, offset: u64, len: u64) -> Writing {
        if let Err(error) = check_range(self, offset, len) {
            return ready(Err(error)).boxed_local();
        }
        all(self.split(offset, len).map(|(disk, at, len)| disk.reserve(at, len)).collect())
    }

    fn read_nowait(&self, offset: u64, len: u64, each: &mut dyn FnMut(Chunk<'_>)) -> Option<()> {
        check_range(self, offset, len).ok()?;
        self.split(offset, len).try_for_each(|(disk, at, len)| disk.read_nowait(at, len, each))
    }

    fn prefetch(&self, offset: u64, len: u64, next: NextAccess) {
        if check_range(self, offset, len).is_ok() {
            self.split(offset, len).for_each(|(disk, at, len)| disk.prefetch(at, len, next));
        }
    }

    fn write_nowait(&self, offset: u64, data: &[u8], durable: bool) -> Option<()> {
        check_range(self, offset, data.len() as u64).ok()?;
        let mut rest = data;
        self.split(offset, data.len() as u64).try_for_each(|(disk, at, len)| {
            let (now, later) = rest.split_at(len as usize);
            rest = later;
            disk.write_nowait(at, now, durable)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::MemoryDisk;
    use futures::executor::block_on;

    #[test]
    fn bytes_cross_from_one_disk_to_the_next() {
        let disks = [8192, 4608, 4096].map(|size| -> Rc<dyn Disk> {
            Rc::new(MemoryDisk::new("m", size, if size == 4608 { 512 } else { 4096 }).unwrap())
        });
        let joined = Concat::of("j", disks.to_vec());
        assert_eq!((joined.size_bytes(), joined.block_bytes()), (16384, 4096));
        let data: Vec<u8> = (0..12288).map(|at| (at / 512) as u8).collect();
        block_on(joined.write(4096, data.clone().into(), false)).unwrap();
        assert_eq!(block_on(joined.read(4096, BytesMut::zeroed(12288))).unwrap(), data);
        assert_eq!(block_on(disks[2].read(0, BytesMut::zeroed(4096))).unwrap(), data[8192..]);
        block_on(joined.discard(8192, 8192)).unwrap();
        assert_eq!(block_on(joined.read(8192, BytesMut::zeroed(8192))).unwrap(), vec![0; 8192]);
        assert!(block_on(joined.read(12288, BytesMut::zeroed(8192))).is_err());
    }
}
