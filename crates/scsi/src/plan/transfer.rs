//! How many bytes a command moves, from which offset, and the difference from the initiator's expectation.

/// The transfer that the initiator expects, from the R and W bits and the Expected Data Transfer Length of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Bytes the initiator is ready to receive (0 when the R bit is clear).
    pub in_bytes: u32,
    /// Bytes the initiator is ready to send (0 when the W bit is clear).
    pub out_bytes: u32,
}

/// A byte range of the medium that a READ or WRITE moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte on the medium.
    pub offset_bytes: u64,
    /// Bytes to move: the CDB's length, cut to what the initiator expects.
    pub len_bytes: u32,
    /// Bytes that the CDB requires: the residual compares them with the expected length.
    pub asked_bytes: u32,
    /// The data must be on stable storage before GOOD (FUA, or the write cache is off).
    pub durable: bool,
}

/// The difference between the expected and the moved bytes (RFC 7143 11.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// Equal.
    None,
    /// The initiator expected this many bytes more.
    Underflow(u32),
    /// The command would have moved this many bytes more.
    Overflow(u32),
}

impl Residual {
    /// The residual of a transfer of `asked_bytes` against `expected_bytes`.
    pub fn of(expected_bytes: u32, asked_bytes: u32) -> Self {
        match asked_bytes.checked_sub(expected_bytes) {
            Some(0) => Self::None,
            Some(over) => Self::Overflow(over),
            None => Self::Underflow(expected_bytes - asked_bytes),
        }
    }
}
