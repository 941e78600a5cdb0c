//! Modelled drives: real bytes, modelled time. Open this file first.
//!
//! A [`ModelledDisk`] passes every operation to the disk that holds the bytes, and completes it when the modelled drive
//! would: after milliseconds for the arm and the platter, or microseconds for flash. The executor provides the time. So
//! a model runs on the real clock under an array, and faster than real time in tests and in runs in virtual time.
//!
//! - [`drives`]: the drives' sheets, by name.
//! - `geometry`: zones, tracks, rotation, the seek curve.
//! - `rotating`: command queue, arm and write cache; `buffer`: what the drive's buffer holds.
//! - `flash`: SATA and `NVMe` SSDs.
//!
//! A cached write is passed on at once as not durable, and a flush only when the model's cache is clean. The disk below
//! decides what a power cut loses.

mod buffer;
pub mod drives;
mod flash;
mod geometry;
mod rotating;
#[cfg(test)]
mod tests;

use super::{Disk, DiskError, DiskStats, Meter, OpKind, Reading, Writing, check_range};
use crate::runtime::Runtime;
use bytes::{Bytes, BytesMut};
use drives::{Drive, Mechanism};
use flash::Flash;
use futures::future::{LocalBoxFuture, ready};
use linerate_io::Nanos;
use rotating::{Command, Done, Rotating};
use std::{cell::RefCell, fmt, rc::Rc};

/// A disk that takes the time of a drive. See the module text.
pub struct ModelledDisk {
    inner: Rc<dyn Disk>,
    drive: &'static Drive,
    shared: Rc<Shared>,
}

struct Shared {
    runtime: Runtime,
    mechanism: Model,
    meter: Meter,
}

enum Model {
    Rotating(Box<RefCell<Rotating>>),
    Flash(Box<RefCell<Flash>>),
}

impl ModelledDisk {
    /// A drive of the inner disk's size (it may differ from the sheet's); the inner disk holds the bytes.
    pub fn new(runtime: Runtime, drive: &'static Drive, inner: Rc<dyn Disk>) -> Self {
        let mechanism = match &drive.mechanism {
            Mechanism::Rotating(sheet) => {
                let rotating = Rotating::new(sheet, inner.size_bytes(), hash(inner.name()));
                Model::Rotating(Box::new(RefCell::new(rotating)))
            }
            Mechanism::Flash(sheet) => Model::Flash(Box::new(RefCell::new(Flash::new(sheet)))),
        };
        let shared = Shared { runtime, mechanism, meter: Meter::default() };
        Self { inner, drive, shared: Rc::new(shared) }
    }

    /// The drive that it models.
    pub fn drive(&self) -> &'static Drive {
        self.drive
    }

    /// Asks the model, and completes when the model and the inner disk have completed.
    fn timed<T: 'static>(
        &self,
        command: Command,
        kind: OpKind,
        len: u64,
        inner: LocalBoxFuture<'static, Result<T, DiskError>>,
    ) -> LocalBoxFuture<'static, Result<T, DiskError>> {
        let under_way = UnderWay::new(&self.shared, kind, len);
        let done = self.shared.submit(command);
        Box::pin(async move {
            under_way.shared.reach(done).await;
            let result = inner.await;
            under_way.end(result.is_ok());
            result
        })
    }

    fn checked(&self, offset: u64, len: u64, kind: OpKind) -> Result<(), DiskError> {
        let checked = check_range(self, offset, len);
        if checked.is_err() {
            drop(UnderWay::new(&self.shared, kind, len));
        }
        checked
    }
}

impl Disk for ModelledDisk {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn block_bytes(&self) -> u32 {
        self.inner.block_bytes()
    }

    fn stats(&self) -> DiskStats {
        self.shared.meter.stats(self.shared.runtime.now())
    }

    fn read(&self, offset: u64, into: BytesMut) -> Reading {
        let len = into.len() as u64;
        if let Err(error) = self.checked(offset, len, OpKind::Read) {
            return Box::pin(ready(Err(error)));
        }
        let command = Command::Read { start: offset, end: offset + len };
        self.timed(command, OpKind::Read, len, self.inner.read(offset, into))
    }

    fn write(&self, offset: u64, data: Bytes, durable: bool) -> Writing {
        let len = data.len() as u64;
        if let Err(error) = self.checked(offset, len, OpKind::Write) {
            return Box::pin(ready(Err(error)));
        }
        let command = Command::Write { start: offset, end: offset + len, durable };
        self.timed(command, OpKind::Write, len, self.inner.write(offset, data, durable))
    }

    fn flush(&self) -> Writing {
        let under_way = UnderWay::new(&self.shared, OpKind::Flush, 0);
        let done = self.shared.submit(Command::Flush);
        let inner = Rc::clone(&self.inner);
        // The write is done even if the caller has stopped waiting.
        let (made, result) = futures::channel::oneshot::channel();
        self.shared.runtime.spawn(async move {
            under_way.shared.reach(done).await;
            let result = inner.flush().await;
            under_way.end(result.is_ok());
            let _ = made.send(result);
        });
        let name = self.name().to_owned();
        Box::pin(async move { result.await.unwrap_or(Err(DiskError::Failed(name))) })
    }

    fn discard(&self, offset: u64, len: u64) -> Writing {
        if let Err(error) = self.checked(offset, len, OpKind::Discard) {
            return Box::pin(ready(Err(error)));
        }
        // This changes only tables of the drive; the arm does not move.
        let under_way = UnderWay::new(&self.shared, OpKind::Discard, len);
        let inner = self.inner.discard(offset, len);
        Box::pin(async move {
            let result = inner.await;
            under_way.end(result.is_ok());
            result
        })
    }

    fn is_thin(&self) -> bool {
        self.inner.is_thin()
    }

    /// A drive has no such operation.
    fn reserve(&self, offset: u64, len: u64) -> Writing {
        self.inner.reserve(offset, len)
    }
}

impl Shared {
    fn submit(self: &Rc<Self>, command: Command) -> Done {
        let now = self.runtime.now();
        match &self.mechanism {
            Model::Flash(flash) => {
                let mut flash = flash.borrow_mut();
                Done::At(match command {
                    Command::Read { start, end } => flash.done(now, false, start, end - start),
                    Command::Write { start, end, .. } => flash.done(now, true, start, end - start),
                    Command::Flush => now,
                })
            }
            Model::Rotating(rotating) => {
                let done = rotating.borrow_mut().submit(now, command);
                if let Some(until) = rotating.borrow_mut().begin(now) {
                    self.runtime.spawn(Rc::clone(self).serve(until));
                }
                done
            }
        }
    }

    /// Moves the arm until no work is left.
    async fn serve(self: Rc<Self>, mut until: Nanos) {
        let Model::Rotating(rotating) = &self.mechanism else {
            unreachable!("only a rotating drive has an arm to serve");
        };
        self.meter.begin(self.runtime.now());
        loop {
            self.runtime.sleep_until(until).await;
            rotating.borrow_mut().finish();
            let next = rotating.borrow_mut().begin(until);
            match next {
                Some(at) => until = at,
                None => break,
            }
        }
        self.meter.rest(self.runtime.now());
    }

    /// Waits until a command is done.
    async fn reach(&self, done: Done) {
        let at = match done {
            Done::At(at) => at,
            // The arm ends only together with its executor.
            Done::Later(later) => later.await.unwrap_or(0),
        };
        self.runtime.sleep_until(at).await;
    }
}

/// Counts one operation. An operation that is dropped before its end counts as failed.
struct UnderWay {
    shared: Rc<Shared>,
    kind: OpKind,
    len: u64,
    began: Nanos,
    is_ok: bool,
}

impl UnderWay {
    fn new(shared: &Rc<Shared>, kind: OpKind, len: u64) -> Self {
        let began = shared.runtime.now();
        shared.meter.begin(began);
        Self { shared: Rc::clone(shared), kind, len, began, is_ok: false }
    }

    fn end(mut self, is_ok: bool) {
        self.is_ok = is_ok;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let now = self.shared.runtime.now();
        self.shared.meter.end(self.began, now, self.kind, self.len, self.is_ok);
    }
}

impl fmt::Debug for ModelledDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelledDisk")
            .field("name", &self.inner.name())
            .field("drive", &self.drive.name)
            .finish_non_exhaustive()
    }
}

/// FNV-1a: a hash of a name, the same in every run.
fn hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}
