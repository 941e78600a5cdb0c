//! Sans-I/O SCSI: the answers of a disk logical unit.
//!
//! The crate is a device server as SAM-5, SPC-4 and SBC-3 define it. It has no sockets, files, clocks or threads. It
//! decides how to execute a command and which operations on the medium are needed; the caller performs them.
//! `linerate-scsi-proto` builds and parses the structures on the wire.
//!
//! The main types, from the outside in:
//!
//! - [`Inventory`] is one SCSI target device: a table of LUN to [`LogicalUnit`].
//! - [`Nexus`] is an `I_T` nexus: one initiator port logged in to one target port. [`Inventory::login`] makes
//!   one.
//! - [`Nexus::begin`] takes a CDB and returns a [`Plan`]. Reads and writes become an [`Extent`]: no lock, no
//!   allocation, two atomic loads (and for writes one atomic add). A command of one step is a finished
//!   [`Reply`], one of several steps a [`Task`].
//! - A [`Task`] is a state machine: [`Task::next`] requests data-out, one [`MediumOp`], or a short wait, or is done.
//!
//! Ownership of buffers: payloads of tasks are `Vec<u8>`s that move. The caller collects data-out in a vector and
//! passes it in; a task returns vectors in [`MediumOp::Write`]. Sizes are bounded: a command moves at most
//! [`MAX_TRANSFER_BYTES`], and a task reads or fills at most [`MEDIUM_CHUNK_BYTES`] per step. Plain reads and writes
//! have no buffer here: the caller moves their bytes.
//!
//! Several workers: the state of a unit is behind one mutex. Plain reads and writes never take it, because the part
//! that they need is in one atomic word per `I_T_L` nexus (`fast_path.rs`). Read-modify-write commands exclude plain
//! writes from their blocks by closing stripes of the medium (`unit/write_exclusion.rs`). Therefore
//! [`Nexus::end_write`] must follow every [`Plan::Write`].
//!
//! Several ports: each target port group of a unit has an [`AccessState`], which
//! [`LogicalUnit::set_access`] changes (`unit/access.rs`).
//!
//! Files: `device_server.rs` and `task_manager.rs` are the two entry points; `command/table.rs` lists every command
//! with its rules; `task/` has the commands of several steps by family, `answer/` those of one step; `unit/` is the
//! logical unit and the state that its commands share, `nexus/` an initiator's access to it; `reservation/` and `mode/`
//! have the state that initiators share; `copy/` is EXTENDED COPY.
//!
//! # Example
//!
//! ```
//! use linerate_scsi::{
//!     Expected, Identity, InitiatorPort, Input, Inventory, LogicalUnit, MediumOp, MediumResult, Plan,
//!     Status, TargetPort, TaskStep, UnitConfig,
//! };
//!
//! let unit = LogicalUnit::new(UnitConfig {
//!     identity: Identity {
//!         vendor: "LINERATE".into(),
//!         product: "VIRTUAL DISK".into(),
//!         revision: "0001".into(),
//!         serial: "1".into(),
//!         naa: [0x60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
//!     },
//!     capacity_blocks: 8,
//!     block_bytes: 512,
//!     physical_block_bytes: 512,
//!     write_cache: true,
//!     read_only: false,
//!     thin: true,
//!     unmap_bytes: 0,
//!     keeps_reservations: false,
//!     tag: 0,
//!     ports: vec![TargetPort { relative_id: 1, group: 1, name: "iqn.2026-11.lab:a,t,0x0001".into() }],
//! })?;
//! let inventory = Inventory::new(vec![(0, unit)])?;
//! let nexus = inventory.login(InitiatorPort { name: "iqn.2026-11.lab:host".into(), isid: [0; 6] }, 1);
//! let lun = [0; 8];
//!
//! // The first command after a login gets the unit attention POWER ON.
//! let Plan::Reply(reply) = nexus.begin(lun, &[0; 16], Expected::default()) else { panic!() };
//! assert_eq!(reply.status, Status::CheckCondition);
//!
//! // READ (10) of one block at LBA 3.
//! let read = [0x28, 0, 0, 0, 0, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
//! let expected = Expected { in_bytes: 512, out_bytes: 0 };
//! let Plan::Read(extent) = nexus.begin(lun, &read, expected) else { panic!() };
//! assert_eq!((extent.offset_bytes, extent.len_bytes), (1536, 512));
//!
//! // WRITE SAME (10) over the whole unit is a task.
//! let same = [0x41, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0];
//! let expected = Expected { in_bytes: 0, out_bytes: 512 };
//! let Plan::Task(mut task) = nexus.begin(lun, &same, expected) else { panic!() };
//! let mut input = Input::Start;
//! let reply = loop {
//!     input = match task.next(input) {
//!         TaskStep::DataOut { len_bytes } => Input::DataOut(vec![7; len_bytes as usize]),
//!         TaskStep::Medium { lun: 0, op: MediumOp::Fill { len_bytes, .. } } => {
//!             assert_eq!(len_bytes, 4096);
//!             Input::Medium(Ok(MediumResult::Done))
//!         }
//!         TaskStep::Done(reply) => break reply,
//!         other => panic!("{other:?}"),
//!     };
//! };
//! assert_eq!(reply.status, Status::Good);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod command;
mod copy;
mod device_server;
mod fast_path;
mod inventory;
mod limits;
mod lun_table;
mod mode;
mod nexus;
mod plain;
mod plan;
mod port;
mod reservation;
mod task;
mod task_manager;
mod unit;

pub use inventory::{Inventory, InventoryError};
pub use limits::{MAX_TRANSFER_BYTES, MEDIUM_CHUNK_BYTES};
pub use linerate_scsi_proto::{alua::AccessState, lun::MAX_LUN, status::Status};
pub use nexus::Nexus;
pub use plan::{Expected, Extent, Plan, Reply, Residual};
pub use port::InitiatorPort;
pub use task::{Input, MediumError, MediumOp, MediumResult, Task, TaskStep};
pub use task_manager::{TaskManagement, TaskManagementResponse};
pub use unit::{Identity, LogicalUnit, TargetPort, UnitConfig, UnitError};
