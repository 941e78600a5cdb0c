//! Sans-I/O SCSI: what a disk logical unit answers.
//!
//! The crate is a device server in the words of SAM-5, SPC-4 and SBC-3. It knows no sockets, files, clocks or threads;
//! it decides what a command means and what must happen to the medium, and the caller makes it happen.
//!
//! The nouns, from the outside in:
//!
//! - [`Inventory`] is one SCSI target device: a table of LUN to [`LogicalUnit`].
//! - [`Nexus`] is an `I_T` nexus: one initiator port logged in to one target port. [`Inventory::login`] makes one.
//! - [`Nexus::begin`] takes a CDB and returns a [`Plan`]. Reads and writes become an [`Extent`]: no lock, no
//!   allocation, one atomic load (and for writes one atomic add). Everything small is a finished [`Reply`]. What takes
//!   several steps is a [`Task`].
//! - A [`Task`] is a state machine: [`Task::next`] asks for data-out, for one [`MediumOp`], for patience, or is done.
//!
//! Who owns buffers: payloads of tasks are `Vec<u8>`s that move. The caller collects data-out into a vector and gives
//! it away; a task gives vectors away in [`MediumOp::Write`]. Sizes are bounded: a command moves at most
//! [`MAX_TRANSFER_BYTES`], and a task reads or writes at most [`MEDIUM_CHUNK_BYTES`] per step unless the bytes came
//! with the command. Plain reads and writes own nothing here: the caller moves their bytes where it likes.

mod answer;
mod command;
mod copy;
mod inventory;
mod itl;
mod limits;
mod mode;
mod nexus;
mod plan;
mod reservation;
mod sense;
mod stripes;
mod task;
mod unit;
mod wire;

pub use inventory::{Inventory, InventoryError, MAX_LUN};
pub use limits::{MAX_TRANSFER_BYTES, MEDIUM_CHUNK_BYTES};
pub use nexus::{InitiatorPort, Nexus, TaskManagement, TaskManagementResponse};
pub use plan::{Expected, Extent, Plan, Reply, Residual, Status};
pub use task::{Input, MediumError, MediumOp, MediumResult, Task, TaskStep};
pub use unit::{Identity, LogicalUnit, TargetPort, UnitConfig, UnitError};
