//! Volumes and views of snapshots, as disks.

use super::{
    Extent,
    core::{Core, VolumeCore},
    map::LayerId,
    transfer,
};
use crate::disk::{Chunk, Disk, DiskError, DiskStats, Meter, NextAccess, OpKind, Reading, Writing};
use crate::runtime::Runtime;
use bytes::{Bytes, BytesMut};
use futures::future::{LocalBoxFuture, ready};
use std::{fmt, rc::Rc};

/// A thin volume: a disk whose blocks take space once they are written.
///
/// Handles stay valid when the volume changes: after a resize they show the new size, after a restore the old bytes,
/// and after its deletion every operation fails. A write that finds no free page is [`DiskError::Full`].
pub struct PoolVolume {
    core: Rc<Core>,
    volume: Rc<VolumeCore>,
}

impl PoolVolume {
    pub(crate) fn new(core: Rc<Core>, volume: Rc<VolumeCore>) -> Self {
        Self { core, volume }
    }

    /// The run at `offset` of pages that are all mapped, or all unmapped. It may be shorter than possible. Errors: an
    /// offset outside the volume, a deleted volume.
    pub fn allocated(&self, offset: u64) -> Result<Extent, DiskError> {
        self.volume.check()?;
        if offset >= self.volume.size_bytes.get() {
            return Err(DiskError::OutOfRange { offset_bytes: offset, len_bytes: 1 });
        }
        Ok(transfer::extent(&self.core, &self.volume, offset))
    }

    /// Unit of allocation.
    pub fn page_bytes(&self) -> u64 {
        self.core.page_bytes()
    }

    fn measured<T: 'static>(
        &self,
        kind: OpKind,
        len: u64,
        work: impl Future<Output = Result<T, DiskError>> + 'static,
    ) -> LocalBoxFuture<'static, Result<T, DiskError>> {
        measured(&self.core.runtime, Rc::clone(&self.volume.meter), kind, len, work)
    }
}

impl VolumeCore {
    /// The error of a volume that was deleted.
    pub(crate) fn check(&self) -> Result<(), DiskError> {
        if self.is_gone.get() { Err(DiskError::Failed(self.name.clone())) } else { Ok(()) }
    }
}

impl Disk for PoolVolume {
    fn name(&self) -> &str {
        &self.volume.name
    }

    fn size_bytes(&self) -> u64 {
        self.volume.size_bytes.get()
    }

    fn block_bytes(&self) -> u32 {
        self.core.disk.block_bytes()
    }

    fn stats(&self) -> DiskStats {
        self.volume.meter.stats(self.core.runtime.now())
    }

    fn read_nowait(&self, offset: u64, len: u64, each: &mut dyn FnMut(Chunk<'_>)) -> Option<()> {
        let (core, volume) = (&self.core, &self.volume);
        volume.check().ok()?;
        transfer::check(core, volume.size_bytes.get(), offset, len).ok()?;
        transfer::read_nowait(
            core,
            |layers, index| transfer::find(volume, layers, index),
            offset,
            len,
            each,
        )?;
        volume.meter.count(OpKind::Read, len);
        Some(())
    }

    fn prefetch(&self, offset: u64, len: u64, next: NextAccess) {
        let (core, volume) = (&self.core, &self.volume);
        if transfer::check(core, volume.size_bytes.get(), offset, len).is_ok() {
            transfer::prefetch(
                core,
                |layers, index| transfer::find(volume, layers, index),
                offset,
                len,
                next,
            );
        }
    }

    fn write_nowait(&self, offset: u64, data: &[u8], durable: bool) -> Option<()> {
        let (core, volume, len) = (&self.core, &self.volume, data.len() as u64);
        volume.check().ok()?;
        transfer::check(core, volume.size_bytes.get(), offset, len).ok()?;
        transfer::write_nowait(core, volume, offset, data, durable)?;
        volume.meter.count(OpKind::Write, len);
        Some(())
    }

    fn read(&self, offset: u64, into: BytesMut) -> Reading {
        let (core, volume, len) = (Rc::clone(&self.core), Rc::clone(&self.volume), into.len() as u64);
        self.measured(OpKind::Read, len, async move {
            volume.check()?;
            transfer::check(&core, volume.size_bytes.get(), offset, len)?;
            transfer::read(core, |layers, index| transfer::find(&volume, layers, index), offset, into).await
        })
    }

    fn write(&self, offset: u64, data: Bytes, durable: bool) -> Writing {
        if self.write_nowait(offset, &data, durable).is_some() {
            return Box::pin(ready(Ok(())));
        }
        let (core, volume, len) = (Rc::clone(&self.core), Rc::clone(&self.volume), data.len() as u64);
        self.measured(OpKind::Write, len, transfer::write(core, volume, offset, data, durable))
    }

    fn flush(&self) -> Writing {
        let (core, volume) = (Rc::clone(&self.core), Rc::clone(&self.volume));
        self.measured(OpKind::Flush, 0, async move {
            volume.check()?;
            transfer::flush(core).await
        })
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        let (core, volume) = (Rc::clone(&self.core), Rc::clone(&self.volume));
        self.measured(OpKind::Discard, 0, transfer::discard(core, volume, offset, len))
    }
}

impl fmt::Debug for PoolVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolVolume").field("volume", &self.volume).finish_non_exhaustive()
    }
}

/// A snapshot as a disk that cannot be written. When the snapshot is deleted, every operation fails.
pub(crate) struct View {
    core: Rc<Core>,
    volume: u64,
    snapshot: String,
    /// volume@snapshot
    name: String,
    size_bytes: u64,
    meter: Rc<Meter>,
}

impl View {
    pub(crate) fn new(core: Rc<Core>, volume: &VolumeCore, snapshot: &str, size_bytes: u64) -> Self {
        let name = format!("{}@{snapshot}", volume.name);
        Self {
            core,
            volume: volume.id,
            snapshot: snapshot.to_owned(),
            name,
            size_bytes,
            meter: Rc::default(),
        }
    }

    fn layer(&self) -> Result<LayerId, DiskError> {
        let map = self.core.map.borrow();
        let record = map.snapshot(self.volume, &self.snapshot);
        record.map(|record| record.layer).ok_or_else(|| DiskError::Failed(self.name.clone()))
    }

    fn answer(&self, kind: OpKind, answer: Result<(), DiskError>) -> Writing {
        measured(&self.core.runtime, Rc::clone(&self.meter), kind, 0, ready(answer))
    }
}

impl Disk for View {
    fn name(&self) -> &str {
        &self.name
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn block_bytes(&self) -> u32 {
        self.core.disk.block_bytes()
    }

    fn stats(&self) -> DiskStats {
        self.meter.stats(self.core.runtime.now())
    }

    fn read(&self, offset: u64, into: BytesMut) -> Reading {
        let (core, len) = (Rc::clone(&self.core), into.len() as u64);
        let layer = transfer::check(&core, self.size_bytes, offset, len).and_then(|()| self.layer());
        let meter = Rc::clone(&self.meter);
        measured(&self.core.runtime, meter, OpKind::Read, len, async move {
            let layer = layer?;
            transfer::read(core, |layers, index| layers.find(layer, index), offset, into).await
        })
    }

    fn write(&self, _offset: u64, _data: Bytes, _durable: bool) -> Writing {
        self.answer(OpKind::Write, Err(DiskError::Protected(self.name.clone())))
    }

    fn flush(&self) -> Writing {
        self.answer(OpKind::Flush, Ok(()))
    }

    fn discard(&self, _offset: u64, _len: u64) -> Writing {
        self.answer(OpKind::Discard, Err(DiskError::Protected(self.name.clone())))
    }
}

/// Begins an operation, and counts it when it ends.
fn measured<T: 'static>(
    runtime: &Runtime,
    meter: Rc<Meter>,
    kind: OpKind,
    len: u64,
    work: impl Future<Output = Result<T, DiskError>> + 'static,
) -> LocalBoxFuture<'static, Result<T, DiskError>> {
    let (clock, begun) = (runtime.clone(), runtime.now());
    meter.begin(begun);
    runtime.start(async move {
        let result = work.await;
        meter.end(begun, clock.now(), kind, len, result.is_ok());
        result
    })
}
