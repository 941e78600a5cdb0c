//! Data sequences of one task (RFC 7143 section 4.2.5 and 11.7, 11.8): who may send which bytes when.
//!
//! - [`TargetWrite`]: the target's side of a command that sends data: immediate, unsolicited and solicited pieces are
//!   checked as they come, and R2Ts are asked for.
//! - [`InitiatorWrite`]: the initiator's side of the same: what rides in the command, what follows unsolicited, and the
//!   Data-Out PDUs of each R2T.
//! - [`InitiatorRead`]: checks the Data-In PDUs of a command that returns data.
//! - [`DataInSplit`]: cuts the data of a read into Data-In PDUs on the target's side.
//!
//! Sequences are always in order (`DataPDUInOrder` and `DataSequenceInOrder` are Yes), so that each struct is a few
//! counters, copied freely, and a check is a few comparisons.

mod initiator;
mod target;

pub use initiator::{Burst, DataInError, InitiatorRead, InitiatorWrite, Piece, R2tError, ReadEnd};
pub use target::{DataInPiece, DataInSplit, R2tGrant, TargetWrite, WriteError, ttt_slot};
