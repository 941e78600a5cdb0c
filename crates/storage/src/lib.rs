//! The storage of an array: disks, RAID sets, a pool, snapshots, replication.
//!
//! Everything here is one stack of [`Disk`]s, of which the upper ones are made of the lower ones: a RAID set is a disk made
//! of disks, a volume is a disk made of a pool's pages. All of it runs on one thread as tasks of an [`Executor`], which is
//! told the time: the same code runs behind a real array, in a simulator, and ahead of the clock.
//!
//! From the bottom up:
//!
//! - [`disk`]: the trait, and the disks that hold bytes: memory, file, modelled drives, faulty ones.
//! - [`raid`]: disks made of disks: striping, copies, parity; rebuilds, checks, power cuts.
//! - [`pool`]: thin volumes of pages, snapshots, clones.
//! - [`replica`]: copying what changed between snapshots to a partner.
//! - [`runtime`]: tasks and timers.
//! - [`host`]: a thread's driver under its tasks: files and the real clock.
//! - [`controller`]: all of it made from a configuration, managed, and asked how it is.

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
