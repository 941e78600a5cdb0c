//! SCSI on the wire: each structure is built and parsed here, once, for the device server (`linerate-scsi`) and for
//! the initiator (`linerate-iscsi-initiator`).
//!
//! The references are SAM-5, SPC-4 and SBC-3. The crate has no state and does no I/O.
//!
//! - [`opcode`], [`cdb`]: command descriptor blocks.
//! - [`status`], [`sense`]: how a command ends, with the names that people read.
//! - [`inquiry`], [`vpd`]: who a logical unit is. [`capacity`]: how large it is. [`lun`]: which units a target has.
//! - [`alua`]: access states of target port groups. [`mode`]: mode pages. [`unmap`]: UNMAP parameter lists.
//!
//! Rules for every parser: it takes any bytes and does not panic; it uses the bytes that came, never a length inside
//! them that goes beyond; `None` means that the reply is too short to use. `tests/roundtrip.rs` checks that what one
//! side builds the other side reads.

pub mod alua;
pub mod capacity;
pub mod cdb;
pub mod inquiry;
pub mod lun;
pub mod mode;
pub mod opcode;
pub mod sense;
pub mod status;
pub mod unmap;
pub mod vpd;
pub mod wire;
