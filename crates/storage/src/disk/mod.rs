//! The disk trait, and the disks that hold bytes. Open this file first; each disk has a file of its own.

mod crash;
mod error;
mod faulty;
mod file;
mod filling;
mod lent;
mod memory;
pub mod modelled;
mod overlay;
mod sparse;
mod stats;
mod timeout;
mod wrapper;

pub use crash::CrashDisk;
pub use error::DiskError;
pub use faulty::FaultyDisk;
pub use file::{FileConfig, FileDisk};
pub(crate) use file::{FileFacts, FileState, is_no_space};
pub use filling::FillingDisk;
pub use lent::{Chunk, Lease};
pub(crate) use lent::{CopySum, LentPages};
pub use memory::{MemoryDisk, MemoryPages};
pub use modelled::ModelledDisk;
pub use overlay::OverlayDisk;
pub use sparse::SparseDisk;
pub use stats::{DiskStats, Meter, OpKind};
pub use timeout::TimeoutDisk;
pub(crate) use wrapper::DiskWrapper;

use bytes::{Bytes, BytesMut};
use futures::future::{LocalBoxFuture, ready};

/// Something that stores blocks: a drive, a RAID set, a volume.
///
/// Offsets and lengths are in bytes and multiples of [`Disk::block_bytes`]. Ranges end at [`Disk::size_bytes`] or
/// before. Everything else is [`DiskError::OutOfRange`]. An operation begins when it is called, not when it is first
/// awaited. It is completed even if its caller stops waiting. Operations that overlap in time and place have no order.
/// A crash may lose or tear, block by block, all writes since the last completed [`Disk::flush`], except durable
/// writes.
pub trait Disk {
    /// Name in messages and statistics.
    fn name(&self) -> &str;
    /// Capacity in bytes.
    fn size_bytes(&self) -> u64;
    /// Smallest unit that is written as a whole: 512 or 4096 bytes.
    fn block_bytes(&self) -> u32;
    /// Counters since the start.
    fn stats(&self) -> DiskStats;
    /// The memory of a disk that consists only of memory: a caller may use it directly.
    fn pages(&self) -> Option<MemoryPages> {
        None
    }

    /// Whether space is taken only at writes, so that a write may find none ([`DiskError::NoSpace`]). Each block of
    /// such a write, or of such a discard, is changed or not.
    fn is_thin(&self) -> bool {
        false
    }

    /// Fills all of `into` (its length, not its capacity) from `offset`. To read one contiguous buffer from several
    /// disks, a caller splits it, and joins the parts after the reads ([`BytesMut::unsplit`]).
    fn read(&self, offset: u64, into: BytesMut) -> Reading;
    /// Writes `data` at `offset`; with `durable` it survives a power cut once it completes.
    fn write(&self, offset: u64, data: Bytes, durable: bool) -> Writing;
    /// Makes all writes durable that had completed before.
    fn flush(&self) -> Writing;
    /// Discards a range; it reads as zeros from then on.
    fn discard(&self, offset: u64, len: u64) -> Writing;
    /// Reserves space for writes to a range, until the range is discarded. Some file systems cannot keep a reservation.
    /// The range keeps its contents; the caller must not write to it during this call. Error: [`DiskError::NoSpace`].
    fn reserve(&self, offset: u64, len: u64) -> Writing {
        Box::pin(ready(check_range(self, offset, len)))
    }

    /// The disk, if its operations take no time at this moment.
    fn at_once(&self) -> Option<&dyn AtOnce> {
        None
    }
    /// Reads without waiting, like `RWF_NOWAIT` of Linux; `each` as in [`AtOnce::read_now`]. None: the read must wait, or
    /// something is wrong; `each` may have had some bytes. Then [`Disk::read`] reads all of it.
    fn read_nowait(&self, offset: u64, len: u64, each: &mut dyn FnMut(Chunk<'_>)) -> Option<()> {
        check_range(self, offset, len).ok()?;
        self.at_once()?.read_now(offset, len, each);
        Some(())
    }
    /// Hint: an operation without waiting on the same range follows soon. Disks in memory move the bytes that it reads
    /// towards the processor.
    fn prefetch(&self, _offset: u64, _len: u64, _next: NextAccess) {}
    /// Writes without waiting. None: the write must wait, or something is wrong; some of it may be done. Then
    /// [`Disk::write`] writes all of it.
    fn write_nowait(&self, offset: u64, data: &[u8], durable: bool) -> Option<()> {
        check_range(self, offset, data.len() as u64).ok()?;
        self.at_once()?.write_now(offset, data, durable);
        Some(())
    }
}

/// What an operation does to a range of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAccess {
    /// [`Disk::read_nowait`].
    Read,
    /// [`Disk::write_nowait`].
    Write,
}

/// A disk whose operations have ended when the call returns, without errors. Ranges are inside the disk, and aligned.
pub trait AtOnce {
    /// Passes the bytes to `each`, in order. The pieces of a range of whole 4096 bytes are whole 4096 bytes too.
    fn read_now(&self, offset: u64, len: u64, each: &mut dyn FnMut(Chunk<'_>));
    /// Writes as [`Disk::write`] does.
    fn write_now(&self, offset: u64, data: &[u8], durable: bool);
}

/// A read in progress.
pub type Reading = LocalBoxFuture<'static, Result<BytesMut, DiskError>>;
/// A write, flush or discard in progress.
pub type Writing = LocalBoxFuture<'static, Result<(), DiskError>>;

/// The error of an operation outside a disk, or one that is not aligned to its blocks.
pub fn check_range(disk: &(impl Disk + ?Sized), offset: u64, len: u64) -> Result<(), DiskError> {
    let block = u64::from(disk.block_bytes());
    let fits = offset.checked_add(len).is_some_and(|end| end <= disk.size_bytes());
    if fits && offset.is_multiple_of(block) && len.is_multiple_of(block) {
        return Ok(());
    }
    Err(DiskError::OutOfRange { offset_bytes: offset, len_bytes: len })
}
