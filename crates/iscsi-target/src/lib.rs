//! An iSCSI array: portals, connections and volumes.
//!
//! [`ArrayConfig`] says what to serve, [`Array::start`] serves it. From the outside in:
//!
//! - `array/`: [`Array`], its threads, and the errors that a user can cause.
//! - `shared.rs`: what workers share (targets, sessions, limits); never touched per command.
//! - `admission/`: who may log in when too many want to.
//! - `worker.rs`: [`Worker`], one thread's loop: poll the driver, act on completions. Generic over the driver and
//!   steppable, so that the simulator runs the same code.
//! - `mcs.rs`: what the connections of one session share (MC/S).
//! - `connection/`: one connection, from received bytes to gathered answers; the hot path is `command.rs` and `reply.rs`.
//! - `portals.rs`: where it listens, in which portal groups, and how that follows the host's addresses.
//! - `log/`: what an array reports while it serves.
//! - `volume.rs`: volumes; `memory_volume.rs`: the bytes of those in memory.
//! - `buffers/`: I/O buffers for all other volumes: how many, how many one connection may hold, and operations on them.
//!
//! What a 4 KiB read of a memory volume costs: its 48-byte header is parsed once where it was received, the unit answers
//! with an extent (atomics only), and one 48-byte header plus one reference to the volume's pages go into the gathering
//! list: no lock, no allocation, no copy of the payload outside the kernel, no system call of its own. Everything that
//! arrived together is answered by one send.

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
    PortalGroupConfig, TargetConfig, VolumeConfig, VolumeKind, WaitMode,
};
pub use stats::{ArrayStats, ConnectionStats, PortalStats, SessionStats};
pub use target::TargetError;
pub use volume::VolumeError;
pub use worker::Worker;
