//! An iSCSI initiator on a completion-based driver.
//!
//! # What is here
//!
//! [`Initiator`] is one thread's set of sessions and devices. It owns no thread and no clock: the thread that owns the
//! driver passes completions to it and asks it to flush. The layers, top down:
//!
//! - [`Initiator`]: routes completions, events and time to the others.
//! - `paths`: a device and its paths, one or several: path states, failover, and the rule that keeps writes in order.
//! - `sessions`: the sessions of the thread, and their events.
//! - `session`: one TCP connection or several, and the rules of RFC 7143 for an initiator: login, command window,
//!   tasks, data in both directions, pings, and new logins. Its states and their transitions are a table in
//!   `session/state.rs`.
//! - `device`: a LUN and its facts (capacity, block size, names); `probe`: the commands that read the facts.
//! - `balance`: which of several paths or connections an I/O takes.
//! - `tools`: blocking helpers for discovery and tests, built on the same parts.
//!
//! # The path of one read
//!
//! [`Initiator::submit`] takes a task slot and queues its index: no system call, no PDU yet. [`Initiator::flush`] gives
//! every queued command its `CmdSN` and `ExpStatSN`, appends 48 bytes per command to the session's gather list and
//! passes the list to the driver in *one* send. Received data is parsed in the receive buffer: a read's payload is not
//! copied, the caller gets a slice of it or nothing. The status in the last Data-In frees the slot and becomes an
//! [`IoDone`]. Nothing on this path allocates, locks, hashes or reads a clock (one reading per flush).
//!
//! # Recovery of a lost connection
//!
//! A session that loses its connection returns its commands and logs in again under its own ISID. So the target ends
//! the old session and all its tasks before the new one starts (session reinstatement, RFC 7143 6.3.5). The paths of
//! the device decide where the commands are sent again: over another path at once, or over the same one after the
//! login. `paths/requeue.rs` has the rule that keeps writes in order.

mod balance;
mod device;
mod event;
mod facts;
mod initiator;
mod open;
mod options;
mod paths;
mod probe;
mod probe_command;
mod request;
mod session;
mod sessions;
mod task;
mod tools;

pub use balance::{PathCounters, Policy};
pub use event::{Event, EventKind, Failure, IoDone, IoError, IoSink, Remedy};
pub use facts::{ConnectionFacts, DeviceFacts, DeviceId, DeviceState, PathState, SessionFacts, SessionId};
pub use initiator::Initiator;
pub use linerate_blame::Blame;
pub use linerate_scsi_proto::sense::{SenseCode, SenseKey, code as sense_code};
pub use open::Sharing;
pub use options::address::{AddressError, LunAddress, PortalAddress, Url};
pub use options::credentials::{Credentials, Secret};
pub use options::error::OptionsError;
pub use options::paths::{Failback, MultipathOptions, PATHS_MAX, PathSpec};
pub use options::session::{ConnectionPolicy, DigestChoice, SessionOptions};
pub use paths::PathFacts;
pub use request::{IoOp, IoRequest, ReadInto, SubmitError};
pub use session::{ConnectionCounters, Random};
pub use tools::{Disk, LunInfo, TargetInfo, ToolError, discover, discover_with};
