//! The storage of an array: disks, RAID sets, a pool, snapshots, replication.
//!
//! Everything here is one stack of [`Disk`]s; the upper ones are made of the lower ones. A RAID set is a disk made of
//! disks, and a volume is a disk made of a pool's pages. All of it runs on one thread as tasks of an [`Executor`]. Time
//! is an argument of the executor. So the same code runs in a real array, in a simulator, and in virtual time.
//!
//! From the bottom up:
//!
//! - [`disk`]: the trait, and the disks that hold bytes: memory, file, modelled drives, faulty ones.
//! - [`raid`]: disks made of disks: striping, copies, parity; rebuilds, checks, power cuts.
//! - [`pool`]: thin volumes of pages, snapshots, clones.
//! - [`replica`]: copies the changes between snapshots to a partner.
//! - [`runtime`]: tasks and timers.
//! - [`host`]: a thread's driver under its tasks: files and the real clock.
//! - [`controller`]: all of it, created from a configuration, managed, and reported.

mod amount;
pub mod controller;
pub mod disk;
pub mod host;
pub mod pool;
pub mod raid;
pub mod replica;
pub mod runtime;

pub use amount::size_text;
pub use disk::{Disk, DiskError};
pub use host::Host;
pub use pool::{Pool, PoolConfig};
pub use runtime::{Executor, Runtime};
