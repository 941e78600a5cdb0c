//! One operation of a worker on a volume, and the return of its answer.

use super::{
    BufferPart, Deliver, FinishedOperation, InPlace, Operation, OperationError, OperationOutput,
    OperationRequest, OperationResult,
};
use bytes::BytesMut;
use linerate_storage::{
    Disk, DiskError,
    disk::{Chunk, Lease},
    pool::PoolVolume,
    raid::RaidSet,
    replica::Fence,
};
use std::{cell::RefCell, rc::Rc, sync::Arc};

/// Answers that wait for the end of a turn, so that a worker is woken once for all of them.
#[derive(Default)]
pub(super) struct Outbox {
    workers: RefCell<Vec<Deliver>>,
    waiting: RefCell<Vec<Vec<FinishedOperation>>>,
}

impl Outbox {
    pub(super) fn introduce(&self, workers: Vec<Deliver>) {
        self.waiting.borrow_mut().resize_with(workers.len(), Vec::new);
        *self.workers.borrow_mut() = workers;
    }

    fn put(&self, worker: usize, finished: FinishedOperation) {
        if let Some(waiting) = self.waiting.borrow_mut().get_mut(worker) {
            waiting.push(finished);
        }
    }

    /// Delivers the waiting answers.
    pub(super) fn deliver(&self) {
        for (deliver, waiting) in self.workers.borrow().iter().zip(self.waiting.borrow_mut().iter_mut()) {
            if !waiting.is_empty() {
                deliver(waiting);
            }
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.deliver();
    }
}

/// An answer that is due. If it is dropped unanswered, because the engine ends, the worker gets an error.
pub(super) struct Due {
    outbox: Rc<Outbox>,
    worker: usize,
    tag: u64,
    memory: Vec<BufferPart>,
    in_place: Option<InPlace>,
    is_given: bool,
}

impl Due {
    /// The answer to a request of a worker with this tag, this memory and this list.
    pub(super) fn new(
        outbox: &Rc<Outbox>,
        worker: usize,
        tag: u64,
        (memory, in_place): (Vec<BufferPart>, Option<InPlace>),
    ) -> Self {
        Self { outbox: Rc::clone(outbox), worker, tag, memory, in_place, is_given: false }
    }

    pub(super) fn memory(&self) -> &[BufferPart] {
        &self.memory
    }

    pub(super) fn give(mut self, result: Result<OperationOutput, OperationError>) {
        self.put(result);
    }

    fn put(&mut self, result: Result<OperationOutput, OperationError>) {
        self.is_given = true;
        let (memory, in_place) = (std::mem::take(&mut self.memory), self.in_place.take());
        let outcome = OperationResult(result);
        self.outbox.put(self.worker, FinishedOperation { tag: self.tag, outcome, memory, in_place });
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        if !self.is_given {
            self.put(Err(OperationError::Gone));
        }
    }
}

/// A volume by its kind.
#[derive(Clone)]
pub(super) enum Served {
    /// A RAID set.
    Whole(Rc<RaidSet>),
    /// A pool's volume.
    Thin(Rc<PoolVolume>),
    /// A pool's volume that a partner writes.
    Fence(Rc<Fence>),
}

impl Served {
    pub(super) fn disk(&self) -> &dyn Disk {
        match self {
            Self::Whole(set) => &**set,
            Self::Thin(volume) => &**volume,
            Self::Fence(gate) => &**gate,
        }
    }

    /// The unit of allocation of its pool; 0: none.
    pub(super) fn page_bytes(&self) -> u32 {
        match self {
            Self::Thin(volume) => volume.page_bytes() as u32,
            Self::Whole(_) | Self::Fence(_) => 0,
        }
    }

    /// Whether the run at an offset has pages, and its end.
    fn mapped(&self, offset_bytes: u64, len_bytes: u64) -> Result<OperationOutput, DiskError> {
        let Self::Thin(volume) = self else { return Ok(OperationOutput::Mapped { mapped: true, len_bytes }) };
        let run = volume.allocated(offset_bytes)?;
        let ends = run.offset_bytes + run.len_bytes;
        Ok(OperationOutput::Mapped { mapped: run.is_mapped, len_bytes: len_bytes.min(ends - offset_bytes) })
    }
}

/// Performs a read or write that needs no waiting, with a buffer that is used again. None: it must be performed by
/// [`perform`].
pub(super) fn perform_nowait(
    volume: &Served,
    request: &mut OperationRequest,
    buffer: &mut Vec<u8>,
) -> Option<OperationOutput> {
    let disk = volume.disk();
    let OperationRequest { operation, memory, in_place, .. } = request;
    let len: usize = memory.iter().map(|part| part.len as usize).sum();
    match *operation {
        Operation::Read { offset_bytes, .. } => {
            let mut into = Scatter::new(memory);
            let read = match in_place {
                Some(in_place) => disk.read_nowait(offset_bytes, len as u64, &mut into.leaving(in_place)),
                None => disk.read_nowait(offset_bytes, len as u64, &mut |chunk| into.put(chunk)),
            };
            if read.is_none() {
                in_place.iter_mut().for_each(InPlace::clear);
            }
            read?;
        }
        Operation::Write { offset_bytes, durable } => {
            buffer.clear();
            gather(memory, buffer);
            disk.write_nowait(offset_bytes, buffer, durable)?;
        }
        _ => return None,
    }
    Some(OperationOutput::Moved(len))
}

/// Performs an operation of a worker.
pub(super) async fn perform(
    volume: &Served,
    operation: Operation,
    memory: &[BufferPart],
) -> Result<OperationOutput, OperationError> {
    let disk = volume.disk();
    let len: usize = memory.iter().map(|piece| piece.len as usize).sum();
    // A command may move fewer bytes than whole blocks: the rest of its last block is not changed.
    let whole_len = len.next_multiple_of(disk.block_bytes() as usize);
    let done = match operation {
        Operation::Read { offset_bytes, .. } => {
            let read = disk.read(offset_bytes, BytesMut::zeroed(whole_len)).await;
            read.map(|bytes| Scatter::new(memory).put(Chunk::of_slice(&bytes[..len])))
        }
        Operation::Write { offset_bytes, durable } => {
            let mut bytes = Vec::with_capacity(whole_len);
            gather(memory, &mut bytes);
            if whole_len > len {
                let last = BytesMut::zeroed(disk.block_bytes() as usize);
                let found = disk.read(offset_bytes + (whole_len - last.len()) as u64, last).await;
                let found = found.map_err(OperationError::Disk)?;
                bytes.extend_from_slice(&found[found.len() - (whole_len - len)..]);
            }
            disk.write(offset_bytes, bytes.into(), durable).await
        }
        Operation::Discard { offset_bytes, len_bytes } => disk.discard(offset_bytes, len_bytes).await,
        Operation::Sync => disk.flush().await,
        Operation::Mapped { offset_bytes, len_bytes } => {
            return volume.mapped(offset_bytes, len_bytes).map_err(OperationError::Disk);
        }
        // Reservations are no bytes of the volume.
        Operation::Keep { .. } => return Err(OperationError::Gone),
    };
    done.map(|()| OperationOutput::Moved(len)).map_err(OperationError::Disk)
}

impl InPlace {
    /// Adds the place of the next bytes. False: it must not be used.
    fn add(&mut self, chunk: Chunk<'_>) -> bool {
        let Some((region, offset)) = self.lease.lend(chunk) else { return false };
        let len = chunk.len() as u32;
        match self.parts.last_mut() {
            Some(last)
                if Arc::ptr_eq(&last.region, region) && last.offset + u64::from(last.len) == offset =>
            {
                last.len += len;
            }
            _ => self.parts.push(BufferPart { region: Arc::clone(region), offset, len }),
        }
        true
    }

    fn clear(&mut self) {
        self.parts.clear();
        self.lease = Lease::default();
    }
}

/// Appends the bytes of parts of I/O buffers.
fn gather(memory: &[BufferPart], into: &mut Vec<u8>) {
    for BufferPart { region, offset, len } in memory {
        region.append_to(*offset, *len as usize, into);
    }
}

/// Fills parts of I/O buffers one after the other.
struct Scatter<'a> {
    memory: &'a [BufferPart],
    /// The part that is filled now.
    part: usize,
    /// Bytes of it that are filled.
    filled: u32,
}

impl<'a> Scatter<'a> {
    fn new(memory: &'a [BufferPart]) -> Self {
        Self { memory, part: 0, filled: 0 }
    }

    /// Leaves chunks where they are, as long as all of them may stay there. Puts them, if not.
    fn leaving(mut self, in_place: &'a mut InPlace) -> impl FnMut(Chunk<'_>) {
        let mut all_stay = true;
        move |chunk| {
            if all_stay && in_place.add(chunk) {
                return;
            }
            if all_stay {
                all_stay = false;
                for BufferPart { region, offset, len } in &in_place.parts {
                    self.put(Chunk::at(region, *offset, *len as usize));
                }
                in_place.clear();
            }
            self.put(chunk);
        }
    }

    /// Puts the next bytes. All of them together fit.
    fn put(&mut self, chunk: Chunk<'_>) {
        let mut at = 0;
        while at < chunk.len() {
            let BufferPart { region, offset, len } = &self.memory[self.part];
            let now = (chunk.len() - at).min((len - self.filled) as usize);
            chunk.part(at..at + now).copy_to(region, offset + u64::from(self.filled));
            self.filled += now as u32;
            if self.filled == *len {
                (self.part, self.filled) = (self.part + 1, 0);
            }
            at += now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_io::Region;

    #[test]
    fn bytes_stay_in_place_only_if_all_of_them_may() {
        let (disk, buffer) = (Region::anonymous(8192).unwrap(), Region::anonymous(4096).unwrap());
        disk.write(100, b"0123");
        disk.write(200, b"5");
        let memory = [BufferPart { region: buffer.clone(), offset: 0, len: 6 }];
        let leave = |in_place: &mut InPlace, chunks: &[Chunk<'_>]| {
            let mut into = Scatter::new(&memory).leaving(in_place);
            for chunk in chunks {
                into(*chunk);
            }
        };
        let mut in_place = InPlace::default();
        leave(&mut in_place, &[Chunk::at(&disk, 100, 2), Chunk::at(&disk, 102, 2)]);
        let places: Vec<_> = in_place.parts.iter().map(|part| (part.offset, part.len)).collect();
        assert_eq!(places, [(100, 4)], "one run of bytes");
        assert_eq!(buffer.compare(0, &[0; 6]), None, "nothing was copied");
        in_place.clear();
        let mixed = [Chunk::at(&disk, 100, 4), Chunk::of_slice(b"4"), Chunk::at(&disk, 200, 1)];
        leave(&mut in_place, &mixed);
        assert!(in_place.parts.is_empty());
        assert_eq!(buffer.compare(0, b"012345"), None);
    }

    #[test]
    fn pieces_of_any_length_fill_parts_of_any_length() {
        let region = Region::anonymous(4096).unwrap();
        let part = |offset, len| BufferPart { region: region.clone(), offset, len };
        let memory = [part(100, 3), part(10, 1), part(200, 6)];
        let mut into = Scatter::new(&memory);
        for bytes in [&b"01"[..], b"", b"2345", b"6789"] {
            into.put(Chunk::of_slice(bytes));
        }
        let mut found = [0; 6];
        for (offset, expected) in [(100, &b"012"[..]), (10, b"3"), (200, b"456789")] {
            region.read(offset, &mut found[..expected.len()]);
            assert_eq!(&found[..expected.len()], expected);
        }
    }
}
