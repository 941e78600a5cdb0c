//! Data sequences of one task (RFC 7143 section 4.2.5 and 11.7, 11.8): which side may send which bytes, and when.
//!
//! - [`TargetWrite`]: the target's side of a command that sends data: checks immediate, unsolicited and solicited
//!   pieces, and returns the R2Ts to send.
//! - [`InitiatorWrite`]: the initiator's side of the same: the immediate data in the command, the unsolicited data, and
//!   the Data-Out PDUs of each R2T.
//! - [`InitiatorRead`]: checks the Data-In PDUs of a command that returns data.
//! - [`DataInSplit`]: splits the data of a read into Data-In PDUs on the target's side.
//!
//! Sequences are always in order (`DataPDUInOrder` and `DataSequenceInOrder` are Yes). So each struct has a few
//! counters, can be copied, and a check takes a few comparisons.

mod initiator;
mod target;

pub use initiator::{Burst, DataInError, InitiatorRead, InitiatorWrite, Piece, R2tError, ReadEnd};
pub use target::{DataInPiece, DataInSplit, R2tGrant, TargetWrite, WriteError, ttt_slot};
