//! One I/O, as the caller requests it.

use linerate_io::Seg;

/// Destination of a read's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadInto {
    /// No destination: received and dropped. The fastest.
    Nothing,
    /// Shown to [`IoSink::read_data`] in the receive buffer.
    Shown,
    /// Into this segment, which is at least as long as the read. Long pieces are received straight into it.
    Segment(Seg),
}

/// The operation of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoOp {
    /// READ.
    Read(ReadInto),
    /// WRITE of this segment's first `len_bytes` bytes, which must not change until the I/O is done.
    Write(Seg),
    /// The same with FUA: the data are on stable storage when it is done.
    WriteDurable(Seg),
    /// SYNCHRONIZE CACHE of the whole LUN; offset and length are ignored.
    Sync,
    /// UNMAP of the range.
    Discard,
}

/// One I/O. Offset and length are multiples of the device's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// The caller's identifier, returned in [`IoDone`].
    pub slot: u32,
    /// What to do.
    pub op: IoOp,
    /// First byte on the LUN.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub len_bytes: u32,
}

/// A refused I/O; the caller must correct it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The device is not ready.
    #[error("device is not ready")]
    NotReady,
    /// Offset or length is no multiple of the block, or the length is zero.
    #[error("offset and length must be multiples of the block and not zero")]
    Alignment,
    /// The I/O ends behind the LUN's last block.
    #[error("I/O ends behind the end of the device")]
    OutOfRange,
    /// The I/O is longer than the target accepts (VPD B0).
    #[error("I/O is longer than the device's maximum transfer length")]
    TooLong,
    /// The segment is shorter than the I/O, or not inside its region.
    #[error("segment is shorter than the I/O or not inside its region")]
    Segment,
    /// The region was not attached with [`crate::Initiator::attach`].
    #[error("region is not attached to the initiator")]
    UnknownRegion,
    /// The target does not support UNMAP.
    #[error("device does not support discard (UNMAP)")]
    NoDiscard,
    /// 65535 commands are in flight on the session.
    #[error("too many I/Os in flight on one session")]
    Full,
}
