//! The state of one I/O in flight.

use crate::{payload::BufferPlace, record::Op};
use linerate_io::Nanos;

/// One I/O in flight, or a free slot, in its own cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct IoSlot {
    pub(super) volume: u32,
    pub(super) place: BufferPlace,
    pub(super) busy: bool,
    /// A flush of the volume; it moves no data.
    pub(super) is_flush: bool,
    pub(super) flow: u32,
    pub(super) op: Op,
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) submitted: Nanos,
    pub(super) intended: Option<Nanos>,
}

impl IoSlot {
    /// A free slot with its buffers at `place`.
    pub(super) fn free(place: BufferPlace) -> Self {
        Self {
            volume: 0,
            place,
            busy: false,
            is_flush: false,
            flow: 0,
            op: Op::Read,
            offset: 0,
            len: 0,
            submitted: 0,
            intended: None,
        }
    }
}
