//! Volume operations in progress. Each owns its I/O buffers until it ends, even if the command, the connection or the
//! session ends before.

use crate::{
    buffers::pool::Chunks,
    connection::TaskId,
    connection_key::ConnectionKey,
    context::WorkerContext,
    engine::{BufferPart, InPlace, Operation, OperationRequest, VolumeNumber},
};
use linerate_io::{Driver, Handle};
use slab::Slab;
use std::sync::Arc;

/// Which command an operation is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) connection: ConnectionKey,
    pub(crate) task: TaskId,
}

/// An operation in progress.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) origin: Origin,
    pub(crate) chunks: Chunks,
}

/// The operations of one worker.
pub(crate) type Operations = Slab<InFlight>;

/// Where an asynchronous operation runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Executor {
    File(Handle),
    /// The engine of the volume.
    Engine(VolumeNumber),
}

impl<D: Driver> WorkerContext<D> {
    /// Starts an operation; its bytes are in `chunks`, or are stored there. It ends in
    /// [`crate::connection::Connection::medium_done`].
    pub(crate) fn begin_operation(
        &mut self,
        origin: Origin,
        chunks: Chunks,
        executor: Executor,
        operation: Operation,
    ) {
        let id = self.operations.insert(InFlight { origin, chunks });
        let (tag, segs) = (id as u64, self.operations[id].chunks.segs());
        let file = match executor {
            Executor::Engine(volume) => {
                let piece = |seg: &linerate_io::Seg| BufferPart {
                    region: Arc::clone(self.pool.region(*seg)),
                    offset: seg.offset,
                    len: seg.len,
                };
                let mut memory = self.spare_parts.take();
                memory.extend(segs.iter().map(piece));
                let may_stay = matches!(operation, Operation::Read { in_place: true, .. });
                let in_place =
                    may_stay.then(|| InPlace { parts: self.spare_parts.take(), ..InPlace::default() });
                self.requests.push_back(OperationRequest {
                    volume,
                    operation,
                    memory,
                    in_place,
                    worker: self.index,
                    tag,
                });
                return;
            }
            Executor::File(file) => file,
        };
        match operation {
            Operation::Read { offset_bytes, .. } => self.driver.read_at(file, tag, segs, offset_bytes),
            Operation::Write { offset_bytes, durable } => {
                self.driver.write_at(file, tag, segs, offset_bytes, durable);
            }
            Operation::Discard { offset_bytes, len_bytes } => {
                self.driver.discard(file, tag, offset_bytes, len_bytes);
            }
            Operation::Sync => self.driver.sync(file, tag),
            Operation::Mapped { .. } | Operation::Keep { .. } => {
                unreachable!("what a file has no operation for is answered at once");
            }
        }
    }
}
