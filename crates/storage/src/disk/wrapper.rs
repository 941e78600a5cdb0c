//! The part that all disks around another disk have in common.

use super::{AtOnce, Disk, DiskError, DiskStats, Reading, Writing};
use bytes::{Bytes, BytesMut};
use futures::future::LocalBoxFuture;

/// A disk that has the properties of its inner disk, and handles every kind of operation in its own way.
pub(crate) trait DiskWrapper {
    /// The disk inside.
    fn inner(&self) -> &dyn Disk;
    /// Performs an operation; `begin` starts it on the inner disk. Errors: those of the inner disk and of this disk.
    fn pass<T: 'static>(
        &self,
        begin: impl FnOnce(&dyn Disk) -> LocalBoxFuture<'static, Result<T, DiskError>>,
    ) -> LocalBoxFuture<'static, Result<T, DiskError>>;
    /// The disk inside, if this disk lets every operation pass unchanged now.
    fn unchanged(&self) -> Option<&dyn Disk> {
        None
    }
}

impl<A: DiskWrapper> Disk for A {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn size_bytes(&self) -> u64 {
        self.inner().size_bytes()
    }

    fn block_bytes(&self) -> u32 {
        self.inner().block_bytes()
    }

    fn stats(&self) -> DiskStats {
        self.inner().stats()
    }

    fn is_thin(&self) -> bool {
        self.inner().is_thin()
    }

    fn read(&self, offset: u64, into: BytesMut) -> Reading {
        self.pass(|disk| disk.read(offset, into))
    }

    fn write(&self, offset: u64, data: Bytes, durable: bool) -> Writing {
        self.pass(|disk| disk.write(offset, data, durable))
    }

    fn flush(&self) -> Writing {
        self.pass(|disk| disk.flush())
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        self.pass(|disk| disk.discard(offset, len))
    }

    fn reserve(&self, offset: u64, len: u64) -> Writing {
        self.pass(|disk| disk.reserve(offset, len))
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        self.unchanged()?.at_once()
    }
}
