//! The image's volume as the file of a VHDX image. Writes are in flight when they return; reads, flushes and changes of
//! the length wait for their end.

use super::{
    parts::{JobPart, Role},
    queue::{BufferPiece, Ended, IoQueue},
};
use crate::{backend::BackendKind, record::Op};
use linerate_blame::Blame;
use linerate_io::Driver;
use linerate_vhdx::ImageFile;
use std::{cell::RefCell, io, rc::Rc};

/// What direct I/O of files and block devices needs on every disk.
const DIRECT_BYTES: u64 = 4096;

/// The queue of a job's thread.
pub(super) type SharedQueue<D> = Rc<RefCell<IoQueue<D>>>;

/// See the module text. Errors say nothing: the queue has the failure.
pub(super) struct QueuedFile<D: Driver> {
    queue: SharedQueue<D>,
    length: u64,
    has_length: bool,
    /// Offsets and lengths of its I/Os are multiples of this.
    unit: u64,
}

impl<D: Driver> QueuedFile<D> {
    /// The image's volume of a queue.
    pub(super) fn new(queue: &SharedQueue<D>) -> Self {
        let (length, kind, backend, block) = {
            let queue = queue.borrow();
            let image = queue.volume(Role::Image);
            image.map_or((0, "", BackendKind::Null, 1), |image| {
                let opened = &image.opened;
                (opened.capacity_bytes, opened.kind, image.kind, u64::from(opened.block_bytes))
            })
        };
        let unit = match backend {
            BackendKind::File => DIRECT_BYTES,
            BackendKind::Smb | BackendKind::Null => 1,
            BackendKind::Iscsi => block,
        };
        Self { queue: Rc::clone(queue), length, has_length: matches!(kind, "file" | "smb"), unit }
    }

    /// Ranges of whole units, each at most a buffer long, that cover `len` bytes at `offset`: the first byte and the length
    /// of each.
    fn ranges(&self, offset: u64, len: usize) -> Vec<(u64, u32)> {
        let (first, end) =
            (offset / self.unit * self.unit, (offset + len as u64).next_multiple_of(self.unit));
        let step = u64::from(self.queue.borrow().buffer_bytes());
        (first..end).step_by(step as usize).map(|at| (at, step.min(end - at) as u32)).collect()
    }

    /// Reads a range into a buffer, which the caller holds then. What is behind the end of a file is not known.
    fn read_range(queue: &mut IoQueue<D>, offset: u64, len: u32) -> Result<u32, Ended> {
        let buffer = queue.acquire()?;
        let piece = BufferPiece { buffer, from: 0, len };
        queue.start(Role::Image, (Op::Read, JobPart::Structures), offset, piece)?;
        queue.wait_buffer(buffer)?;
        Ok(buffer)
    }
}

impl<D: Driver> ImageFile for QueuedFile<D> {
    fn length(&mut self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        for (at, len) in self.ranges(offset, into.len()) {
            let mut queue = self.queue.borrow_mut();
            let buffer = Self::read_range(&mut queue, at, len).map_err(ended)?;
            let (from, to) = (at.max(offset), (at + u64::from(len)).min(offset + into.len() as u64));
            let (memory, place) = queue.memory(buffer);
            memory.read(place + from - at, &mut into[(from - offset) as usize..(to - offset) as usize]);
            queue.release(buffer);
        }
        Ok(())
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        for (at, len) in self.ranges(offset, data.len()) {
            let mut queue = self.queue.borrow_mut();
            let (from, to) = (at.max(offset), (at + u64::from(len)).min(offset + data.len() as u64));
            let is_whole = (from, to) == (at, at + u64::from(len));
            let buffer = if is_whole { queue.acquire() } else { Self::read_range(&mut queue, at, len) };
            let buffer = buffer.map_err(ended)?;
            let (memory, place) = queue.memory(buffer);
            memory.write(place + from - at, &data[(from - offset) as usize..(to - offset) as usize]);
            let piece = BufferPiece { buffer, from: 0, len };
            queue.start(Role::Image, (Op::Write, JobPart::Structures), at, piece).map_err(ended)?;
            queue.release(buffer);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.queue.borrow_mut().sync(Role::Image).map_err(ended)
    }

    fn set_length(&mut self, length_bytes: u64) -> io::Result<()> {
        let mut queue = self.queue.borrow_mut();
        if self.has_length {
            queue.set_length(Role::Image, length_bytes).map_err(ended)?;
            self.length = length_bytes;
            return Ok(());
        }
        if length_bytes <= self.length {
            return Ok(());
        }
        let (has, needs) = (self.length, length_bytes);
        let message = format!(
            "the volume has {has} bytes, and the image needs {needs}; use a smaller --size, or a larger volume"
        );
        queue.fail(Role::Image, Blame::User, &message);
        Err(io::ErrorKind::StorageFull.into())
    }

    fn grows_with_zeros(&self) -> bool {
        self.has_length
    }
}

fn ended(_: Ended) -> io::Error {
    io::Error::other("the job has ended")
}
