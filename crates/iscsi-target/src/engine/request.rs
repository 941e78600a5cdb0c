//! The requests of workers to the engine, and the answers.

use linerate_io::Region;
use linerate_scsi::MediumError;
use linerate_storage::disk::{DiskError, Lease};
use std::{io, sync::Arc};

/// The number of a volume: unique on the array, and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VolumeNumber {
    /// Number of its engine.
    pub(crate) engine: u8,
    /// Its number there.
    pub(crate) index: u32,
}

/// An operation on a volume, requested by a worker.
#[derive(Debug)]
pub(crate) struct OperationRequest {
    pub(crate) volume: VolumeNumber,
    pub(crate) operation: Operation,
    /// The source or destination of its bytes: a worker's I/O buffers, which stay lent until the answer has arrived.
    pub(crate) memory: Vec<BufferPart>,
    /// For a read that need not fill its memory: an empty list.
    pub(crate) in_place: Option<InPlace>,
    pub(crate) worker: usize,
    /// The worker's tag.
    pub(crate) tag: u64,
}

/// A part of a worker's I/O buffers, or of a disk's memory.
#[derive(Debug)]
pub(crate) struct BufferPart {
    pub(crate) region: Arc<Region>,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// The bytes of a read where the disks have them, to be sent from there. Others may write to them meanwhile.
#[derive(Debug, Default)]
pub(crate) struct InPlace {
    /// In order. None: the bytes are in the memory of the request.
    pub(crate) parts: Vec<BufferPart>,
    /// Until it ends, no other volume has bytes there.
    pub(crate) lease: Lease,
}

/// The kind of an operation. Offsets and lengths are as in [`linerate_scsi::MediumOp`].
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// `in_place`: its bytes need not be copied, and may change until they are sent.
    Read {
        offset_bytes: u64,
        in_place: bool,
    },
    Write {
        offset_bytes: u64,
        durable: bool,
    },
    Discard {
        offset_bytes: u64,
        len_bytes: u64,
    },
    Sync,
    Mapped {
        offset_bytes: u64,
        len_bytes: u64,
    },
    Keep {
        number: u64,
        reservations: Vec<u8>,
    },
}

/// A completed request.
#[derive(Debug)]
pub(crate) struct FinishedOperation {
    pub(crate) tag: u64,
    pub(crate) outcome: OperationResult,
    /// That of the request, as is the list in `in_place`.
    pub(crate) memory: Vec<BufferPart>,
    pub(crate) in_place: Option<InPlace>,
}

/// How much a worker may perform itself before it sends the answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) operations: usize,
    /// The operation that uses up the last of them is performed as a whole.
    pub(crate) bytes: u64,
}

impl Quota {
    pub(crate) fn is_used_up(self) -> bool {
        self.operations == 0 || self.bytes == 0
    }

    /// An operation was performed.
    pub(super) fn take(&mut self, done: &FinishedOperation) {
        let len: u64 = done.memory.iter().map(|part| u64::from(part.len)).sum();
        self.operations = self.operations.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(len);
    }
}

/// The result of an operation on a volume, from any executor.
#[derive(Debug)]
pub(crate) struct OperationResult(pub(crate) Result<OperationOutput, OperationError>);

/// The output of an operation.
#[derive(Debug)]
pub(crate) enum OperationOutput {
    /// So many bytes were moved.
    Moved(usize),
    /// Whether the run at the requested offset has pages, and its length.
    Mapped { mapped: bool, len_bytes: u64 },
}

/// Why an operation failed.
#[derive(Debug)]
pub(crate) enum OperationError {
    /// The host's file or device failed it.
    Host(io::Error),
    /// Fewer bytes were moved than asked for.
    Short,
    /// The disks of the volume failed it.
    Disk(DiskError),
    /// The volume or the engine does not exist any more.
    Gone,
}

impl OperationResult {
    /// Whether all bytes were moved.
    pub(crate) fn moved(self, wanted: usize) -> Result<(), OperationError> {
        match self.0? {
            OperationOutput::Moved(count) if count == wanted => Ok(()),
            _ => Err(OperationError::Short),
        }
    }
}

impl OperationError {
    /// The error of a read for the initiator.
    pub(crate) fn on_read(&self) -> MediumError {
        match self {
            Self::Host(_) | Self::Short => MediumError::Read,
            Self::Disk(error) => of_disk(error, MediumError::Read),
            Self::Gone => MediumError::Hardware,
        }
    }

    /// The error of other operations for the initiator.
    pub(crate) fn on_write(&self) -> MediumError {
        match self {
            Self::Host(error)
                if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) =>
            {
                MediumError::NoSpace
            }
            Self::Host(_) | Self::Short => MediumError::Write,
            Self::Disk(error) => of_disk(error, MediumError::Write),
            Self::Gone => MediumError::Hardware,
        }
    }
}

fn of_disk(error: &DiskError, unreadable: MediumError) -> MediumError {
    match error {
        DiskError::Unreadable { .. } => unreadable,
        DiskError::Full(_) | DiskError::NoSpace(_) => MediumError::NoSpace,
        DiskError::Protected(_) => MediumError::Protected,
        DiskError::OutOfRange { .. }
        | DiskError::Failed(_)
        | DiskError::Lost(_)
        | DiskError::Corrupt { .. } => MediumError::Hardware,
    }
}
