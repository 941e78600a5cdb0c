//! An iSCSI initiator on a completion-based driver.
//!
//! # What is here
//!
//! [`Initiator`] is one thread's set of sessions and devices. It owns no thread and no clock: the thread that owns the
//! driver gives it completions and asks it to flush. The layers, top down:
//!
//! - [`Initiator`]: routes completions, events and time to the others.
//! - `paths`: a device and its paths, one or several: path states, failover, and the rule that keeps writes in order.
//! - `sessions`: the sessions of the thread, and what they have reported.
//! - `session`: one TCP connection or several, and what RFC 7143 asks of an initiator on them: login, command window,
//!   tasks, data both ways, pings, and new logins. Its states and their transitions are a table in `session/state.rs`.
//! - `device`: a LUN and its facts (capacity, block size, names); `probe`: the commands that the facts come from.
//! - `balance`: which of several paths or connections an I/O takes.
//! - `tools`: blocking helpers for discovery and tests, built on the same parts.
//!
//! # How one read travels
//!
//! [`Initiator::submit`] takes a task slot and queues its index: no system call, no PDU yet. [`Initiator::flush`] gives
//! every queued command its `CmdSN` and `ExpStatSN`, appends 48 bytes per command to the session's gather list and hands
//! the list to the driver in *one* send. What arrives is parsed where the kernel put it: a read's payload is never
//! copied, the caller sees it as a slice or not at all. The status that rides in the last Data-In frees the slot and
//! becomes an [`IoDone`]. Nothing on this path allocates, locks, hashes or reads a clock (one reading per flush).
//!
//! # How a lost connection heals
//!
//! A session that loses its connection hands its commands back and logs in again under its own ISID, which makes the
//! target end the old session and everything in it before the new one starts (session reinstatement, RFC 7143 6.3.5).
//! The paths of the device decide where the commands are sent again: over another path at once, or over the same one
//! after the login. `paths/requeue.rs` has the rule that keeps writes in order.

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
pub use event::{Event, EventKind, Failure, IoDone, IoError, IoSink};
pub use facts::{ConnectionFacts, DeviceFacts, DeviceId, DeviceState, PathState, SessionFacts, SessionId};
pub use initiator::Initiator;
pub use linerate_blame::Blame;
pub use linerate_scsi_proto::sense::{SenseCode, SenseKey};
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
