//! An iSCSI array: portals, connections and volumes.
//!
//! [`ArrayConfig`] is the configuration, [`Array::start`] serves it. From the outside in:
//!
//! - `array/`: [`Array`], its threads, and the errors that a user can cause.
//! - `shared.rs`: state that workers share (targets, sessions, limits); no command uses it.
//! - `admission/`: decides which logins are admitted when there are too many.
//! - `worker.rs`: [`Worker`], one thread's loop: poll the driver, handle completions. It is generic over the driver and
//!   can be called step by step, so the simulator runs the same code.
//! - `mcs.rs`: state that the connections of one session share (MC/S).
//! - `connection/`: one connection, from received bytes to sent answers; the hot path is `command.rs` and `reply.rs`.
//! - `portals.rs`: the addresses and portal groups, and how they follow the host's addresses.
//! - `log/`: events of an array while it serves.
//! - `volume.rs`: volumes; `memory_volume.rs`: the bytes of those in memory.
//! - `buffers/`: I/O buffers for all other volumes: their number, the share of one connection, and operations on them.
//!
//! The cost of a 4 KiB read of a memory volume: its 48-byte header is parsed once in the receive buffer. The unit
//! answers with an extent (atomics only). One 48-byte header plus one reference to the volume's pages are added to the
//! gather list. There is no lock, no allocation, no copy of the payload outside the kernel, and no system call for it
//! alone. One send answers everything that arrived together.

mod admission;
mod array;
mod buffers;
mod completion_guard;
mod config;
mod connection;
mod connection_key;
mod context;
mod engine;
pub mod log;
mod mcs;
mod memory_volume;
mod portals;
mod replication_link;
mod shared;
mod stats;
mod target;
mod volume;
mod worker;

pub use array::change::ChangeError;
pub use array::{Array, ArrayError, ArrayReport};
pub use config::{
    AluaChange, AluaState, ArrayChange, ArrayConfig, ArrayLimits, ChapSettings, DriverName, PortalConfig,
    PortalGroupConfig, TargetConfig, VolumeConfig, VolumeKind,
};
pub use stats::{ArrayStats, ConnectionStats, PortalStats, SessionStats};
pub use target::TargetError;
pub use volume::VolumeError;
pub use worker::Worker;
