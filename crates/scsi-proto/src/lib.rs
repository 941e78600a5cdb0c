//! SCSI on the wire: each structure is built and parsed here, once, for the device server (`linerate-scsi`) and for the
//! initiator (`linerate-iscsi-initiator`).
//!
//! The references are SAM-5, SPC-4 and SBC-3. The crate has no state and does no I/O.
//!
//! - [`opcode`], [`cdb`]: command descriptor blocks.
//! - [`status`], [`sense`]: how a command ends, with names for messages.
//! - [`inquiry`], [`vpd`]: the identity of a logical unit. [`capacity`]: its size. [`lun`]: the units of a target.
//! - [`alua`]: access states of target port groups. [`mode`]: mode pages. [`log_page`]: log pages. [`unmap`]: UNMAP
//!   parameter lists.
//!
//! Rules for every parser: it accepts any bytes and does not panic. It uses only the received bytes, never a length in
//! them that goes beyond. `None` means that the reply is too short. `tests/roundtrip.rs` checks that each side reads
//! what the other builds.

pub mod alua;
pub mod capacity;
pub mod cdb;
pub mod inquiry;
pub mod log_page;
pub mod lun;
pub mod mode;
pub mod opcode;
pub mod sense;
pub mod status;
pub mod unmap;
pub mod vpd;
pub mod wire;
