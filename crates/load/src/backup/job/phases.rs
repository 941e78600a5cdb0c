//! The phases of a job: the I/Os of `BackupLoad` on a VHDX image, several in flight.
//!
//! Reads are started ahead of their turn, as many as their volume may have in flight. A write is started in its turn, when
//! the read that it follows has ended, and is in flight while the next ones are started.

use super::{
    image_file::{QueuedFile, SharedQueue},
    parts::{JobPart, Role},
    queue::{BufferPiece, Ended},
    spec::{BackupJobSpec, BackupPhase, ImageKind},
};
use crate::{
    backup::{BackupIo, BackupLoad, BackupOp},
    record::Op,
    verify::{Stamp, Wrong},
};
use linerate_blame::Blame;
use linerate_io::Driver;
use linerate_vhdx::{CreateOptions, GuidSource, NewImage, OpenMode, Preallocation, VhdxError, VhdxImage};
use std::collections::VecDeque;

/// The unit of verified data.
const UNIT_BYTES: u32 = 4096;
/// How much of a LUN is looked at before an image is made there.
const LOOKED_AT_BYTES: u64 = 2 << 20;
/// QEMU reads no other images.
const LOGICAL_SECTOR_BYTES: u32 = 512;
/// Of the data in the part of the image that no backup writes.
const METADATA_GENERATION: u32 = 1;

/// Why a phase ended early.
#[derive(Debug)]
pub(super) enum Problem {
    /// It was stopped, or the queue has the failure.
    Ended,
    /// The image cannot be used.
    Image(VhdxError),
    /// The image does not have the data that a backup wrote.
    Miscompare(Wrong),
}

impl From<Ended> for Problem {
    fn from(_: Ended) -> Self {
        Self::Ended
    }
}

impl From<VhdxError> for Problem {
    fn from(error: VhdxError) -> Self {
        Self::Image(error)
    }
}

/// Carries out the phase of a job. I/Os may be in flight when it returns an error.
pub(super) fn carry_out<D: Driver>(
    queue: &SharedQueue<D>,
    spec: &BackupJobSpec,
    load: &BackupLoad,
) -> Result<(), Problem> {
    let file = QueuedFile::new(queue);
    let mode = match spec.phase {
        BackupPhase::Create => return create(queue, file, spec, load),
        BackupPhase::Restore => OpenMode::ReadOnly,
        BackupPhase::Full | BackupPhase::Incremental => OpenMode::ReadWrite,
    };
    let image = VhdxImage::open(file, mode, GuidSource::random())?;
    let (has, needs) = (image.size_bytes(), spec.backup.image_bytes);
    if has != needs {
        let message = format!("the image's disk has {has} bytes, and the backup {needs}; give the same size");
        queue.borrow_mut().fail(Role::Image, Blame::User, &message);
        return Err(Problem::Ended);
    }
    let seed = spec.backup.seed;
    let mut copying = Copying { queue, image, stamp: Stamp::new(UNIT_BYTES, seed), held: None };
    match spec.phase {
        BackupPhase::Incremental => copying.walk(load.incremental(spec.incrementals))?,
        BackupPhase::Restore => copying.walk(load.restore(spec.incrementals))?,
        BackupPhase::Full | BackupPhase::Create => copying.walk(load.full())?,
    }
    close(queue, copying.image)
}

/// Closes the image: until then its last changes may be in its log only.
fn close<D: Driver>(queue: &SharedQueue<D>, image: VhdxImage<QueuedFile<D>>) -> Result<(), Problem> {
    let blocks = image.allocated_blocks();
    image.close()?;
    queue.borrow_mut().recorder.totals.allocated_blocks = blocks;
    Ok(())
}

fn create<D: Driver>(
    queue: &SharedQueue<D>,
    file: QueuedFile<D>,
    spec: &BackupJobSpec,
    load: &BackupLoad,
) -> Result<(), Problem> {
    if !spec.overwrite {
        refuse_content(queue)?;
    }
    let options = CreateOptions {
        size_bytes: spec.backup.image_bytes,
        block_bytes: spec.block_bytes,
        logical_sector_bytes: LOGICAL_SECTOR_BYTES,
        preallocation: match spec.kind {
            ImageKind::Fixed => Preallocation::Full,
            ImageKind::Dynamic => Preallocation::Off,
        },
    };
    let new = NewImage::begin(file, &options, GuidSource::random())?;
    if spec.kind == ImageKind::Fixed {
        let blocks = new.blocks();
        let mut queue = queue.borrow_mut();
        // New memory is zeros, and nothing writes to this buffer while it is held.
        let buffer = queue.acquire()?;
        let (memory, place) = queue.memory(buffer);
        memory.fill(place, u64::from(spec.backup.transfer_bytes), &[0]);
        let (part, zeros) = ((Op::Write, JobPart::Zeros), |len| BufferPiece { buffer, from: 0, len });
        for io in load.create() {
            match io.op {
                BackupOp::FlushImage => queue.sync(Role::Image)?,
                _ => queue.start(Role::Image, part, blocks.start + io.offset, zeros(io.bytes))?,
            }
        }
        // The last block may end behind the disk.
        let step = u64::from(spec.backup.transfer_bytes);
        let mut at = blocks.start + spec.backup.image_bytes;
        while at < blocks.end {
            let len = step.min(blocks.end - at);
            queue.start(Role::Image, part, at, zeros(len as u32))?;
            at += len;
        }
        queue.wait_buffer(buffer)?;
        queue.release(buffer);
    }
    close(queue, new.finish()?)
}

/// A volume with content is not overwritten unasked.
fn refuse_content<D: Driver>(queue: &SharedQueue<D>) -> Result<(), Problem> {
    let mut queue = queue.borrow_mut();
    let Some(image) = queue.volume(Role::Image) else { return Err(Problem::Ended) };
    let (has, is_file) = (image.opened.capacity_bytes, matches!(image.opened.kind, "file" | "smb"));
    let mut is_used = is_file && has > 0;
    if !is_file {
        let buffer = queue.acquire()?;
        let step = u64::from(queue.buffer_bytes());
        let end = LOOKED_AT_BYTES.min(has);
        let mut at = 0;
        while at < end && !is_used {
            let len = step.min(end - at) as u32;
            let piece = BufferPiece { buffer, from: 0, len };
            queue.start(Role::Image, (Op::Read, JobPart::Structures), at, piece)?;
            queue.wait_buffer(buffer)?;
            let (memory, place) = queue.memory(buffer);
            memory.for_each_chunk(place, u64::from(len), |chunk| {
                is_used |= chunk.iter().any(|byte| *byte != 0);
            });
            at += u64::from(len);
        }
        queue.release(buffer);
    }
    if is_used {
        let message = format!(
            "the volume of {has} bytes has content, which a new image would overwrite; name it in --overwrite, \
             or use another one"
        );
        queue.fail(Role::Image, Blame::User, &message);
        return Err(Problem::Ended);
    }
    Ok(())
}

/// A backup or a restore.
struct Copying<'a, D: Driver> {
    queue: &'a SharedQueue<D>,
    image: VhdxImage<QueuedFile<D>>,
    stamp: Stamp,
    /// The buffer of the read that the next write follows.
    held: Option<u32>,
}

impl<D: Driver> Copying<'_, D> {
    fn walk(&mut self, ios: impl Iterator<Item = BackupIo>) -> Result<(), Problem> {
        let (mut ios, mut ahead, mut reading) = (ios.fuse(), VecDeque::new(), 0);
        let depth = self.read_depth();
        loop {
            while reading < depth && ahead.len() < 4 * depth {
                let Some(io) = ios.next() else { break };
                let buffer = self.begin(io)?;
                reading += usize::from(buffer.is_some());
                ahead.push_back((io, buffer));
            }
            let Some((io, buffer)) = ahead.pop_front() else { return Ok(()) };
            reading -= usize::from(buffer.is_some());
            self.carry(io, buffer)?;
        }
    }

    fn read_depth(&self) -> usize {
        let queue = self.queue.borrow();
        let read = queue.volume(Role::Source).or_else(|| queue.volume(Role::Image));
        read.map_or(1, |volume| volume.depth as usize)
    }

    /// Starts a read ahead of its turn. Returns its buffer; None if it is none, or of a source in memory.
    fn begin(&mut self, io: BackupIo) -> Result<Option<u32>, Problem> {
        let mut queue = self.queue.borrow_mut();
        let part = match io.op {
            BackupOp::ReadMap => JobPart::Map,
            BackupOp::ReadSource => JobPart::Source,
            BackupOp::ReadImage => JobPart::ImageRead,
            _ => return Ok(None),
        };
        if part == JobPart::ImageRead {
            let buffer = queue.acquire()?;
            let mut from = 0;
            while from < io.bytes {
                let extent = self.image.extent(io.offset + u64::from(from), u64::from(io.bytes - from))?;
                let piece = BufferPiece { buffer, from, len: extent.bytes as u32 };
                if let Some(offset) = extent.offset {
                    queue.start(Role::Image, (Op::Read, part), offset, piece)?;
                } else {
                    let (memory, place) = queue.memory(buffer);
                    memory.fill(place + u64::from(from), extent.bytes, &[0]);
                }
                from += extent.bytes as u32;
            }
            return Ok(Some(buffer));
        }
        if queue.volume(Role::Source).is_none() {
            return Ok(None);
        }
        let buffer = queue.acquire()?;
        let piece = BufferPiece { buffer, from: 0, len: io.bytes };
        queue.start(Role::Source, (Op::Read, part), io.offset, piece)?;
        Ok(Some(buffer))
    }

    /// Carries out an I/O in its turn. `buffer` is that of a read that was started.
    fn carry(&mut self, io: BackupIo, buffer: Option<u32>) -> Result<(), Problem> {
        match io.op {
            BackupOp::ReadMap => {
                if let Some(buffer) = buffer {
                    let mut queue = self.queue.borrow_mut();
                    queue.wait_buffer(buffer)?;
                    queue.release(buffer);
                }
            }
            BackupOp::ReadSource => {
                if let Some(buffer) = buffer {
                    self.queue.borrow_mut().wait_buffer(buffer)?;
                }
                self.held = buffer;
            }
            BackupOp::WriteData => self.write(io, JobPart::Data, io.backup)?,
            BackupOp::WriteMetadata => self.write(io, JobPart::Metadata, METADATA_GENERATION)?,
            BackupOp::FlushImage => self.image.flush()?,
            BackupOp::ReadImage => {
                if let Some(buffer) = buffer {
                    self.verify(io, buffer)?;
                }
                self.held = buffer;
            }
            BackupOp::WriteTarget => {
                if let Some(buffer) = self.held.take() {
                    let mut queue = self.queue.borrow_mut();
                    if queue.volume(Role::Target).is_some() {
                        let piece = BufferPiece { buffer, from: 0, len: io.bytes };
                        queue.start(Role::Target, (Op::Write, JobPart::Target), io.offset, piece)?;
                    }
                    queue.release(buffer);
                }
            }
            BackupOp::FlushTarget => {
                let mut queue = self.queue.borrow_mut();
                if queue.volume(Role::Target).is_some() {
                    queue.sync(Role::Target)?;
                }
            }
            // Only a new image has them.
            BackupOp::WriteZeros => {}
        }
        Ok(())
    }

    /// Writes generated data to the virtual disk.
    fn write(&mut self, io: BackupIo, part: JobPart, generation: u32) -> Result<(), Problem> {
        let read = if part == JobPart::Data { self.held.take() } else { None };
        let buffer = match read {
            Some(buffer) => buffer,
            None => self.queue.borrow_mut().acquire()?,
        };
        {
            let queue = self.queue.borrow();
            let (memory, place) = queue.memory(buffer);
            for (address, place) in self.stamp.units(io.offset, io.bytes, place) {
                self.stamp.put(memory, place, address, generation);
            }
        }
        let mut from = 0;
        while from < io.bytes {
            let extent =
                self.image.allocate_extent(io.offset + u64::from(from), u64::from(io.bytes - from))?;
            let piece = BufferPiece { buffer, from, len: extent.bytes as u32 };
            if let Some(offset) = extent.offset {
                self.queue.borrow_mut().start(Role::Image, (Op::Write, part), offset, piece)?;
            }
            from += extent.bytes as u32;
        }
        self.queue.borrow_mut().release(buffer);
        Ok(())
    }

    /// Waits for a read of the image, and compares it with what the backup wrote.
    fn verify(&mut self, io: BackupIo, buffer: u32) -> Result<(), Problem> {
        let mut queue = self.queue.borrow_mut();
        queue.wait_buffer(buffer)?;
        let (memory, place) = queue.memory(buffer);
        let wrong = self
            .stamp
            .units(io.offset, io.bytes, place)
            .find_map(|(address, place)| self.stamp.check(memory, place, address, io.backup));
        if let Some(wrong) = wrong {
            return Err(Problem::Miscompare(wrong));
        }
        queue.recorder.totals.verified_bytes += u64::from(io.bytes);
        Ok(())
    }
}
