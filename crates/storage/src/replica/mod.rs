//! Replication: volumes of one array kept on another, at points in time that are the same on both.
//!
//! # What is where
//!
//! A [`Group`] is one or more volumes that replicate as of one instant. On one array it is *primary* and hosts write
//! it. On the other it is *replica* and only the partner writes it. A *point* is a snapshot of all its volumes at one
//! instant. Its name is never used again: every snapshot with this name holds the same bytes.
//!
//! - [`Replicator`]: the groups of an array, found again after a restart.
//! - [`Group::prepare`], [`Group::copy`], [`Group::confirm`] (`source.rs`, `copy.rs`): the primary's side.
//! - [`Group::begin`], [`Group::commit`] (`receiver.rs`): the replica's side. [`Fence`] stops late writes.
//! - [`Group::promote`], [`Group::give`], [`Group::demote`] (`role.rs`): which array is primary, and why there is only
//!   one.
//! - [`service`]: all of it as verbs of an array. [`Store`]: the interface to a pool. [`Link`]: the connection to the
//!   partner's volumes.
//!
//! # One transfer
//!
//! ```text
//! source                                                     partner
//! prepare: a new point P (one snapshot of all volumes)
//!    ---- Offer: P, and the points I can tell differences to ---->
//!                      begin: volumes := the newest point we both have; new incarnation; fences open
//!    <--- Answer: copy from there, incarnation N -----------------
//! copy: what changed up to P, through the link; now and then flush at the partner, then note the place
//!    ---- Commit: P, N ------------------------------------------>
//!                      commit: fences close; flush; one snapshot of all volumes, named P
//!    <--- done ---------------------------------------------------
//! confirm: P is common; older points go
//! ```
//!
//! # Why an interruption does no harm
//!
//! Every step may be repeated: `prepare` finds the current point, `begin` the transfer, `commit` the snapshots.
//!
//! - **A point is always complete.** Only the snapshot of all volumes at once, after a flush and with the fences
//!   closed, makes a point. After an earlier failure, the volumes are restored to an older point.
//! - **The position for a restart** is valid only together with the incarnation. The partner makes an incarnation when
//!   it has prepared its volumes and has recorded this. If it must prepare them again, it makes another one.
//! - **Late writes** of an older attempt reach a closed fence.
//! - **A promotion** is recorded before the first volume is changed, and completed after a crash. Hosts wait until it
//!   is done.

mod copy;
mod error;
mod fence;
mod group;
mod link;
mod message;
mod pool;
mod receiver;
mod replicator;
mod role;
pub mod service;
mod source;
mod state;
mod store;

pub use copy::{CopyOptions, Progress};
pub use error::ReplicaError;
pub use fence::Fence;
pub use group::Group;
pub use link::{Link, LinkError, Sending};
pub use message::{Answer, AnsweredVolume, Commit, Offer, OfferedVolume, Point};
pub use receiver::Begun;
pub use replicator::Replicator;
pub use role::Promotion;
pub use state::{Pair, Role};
pub use store::{ReplicaExtent, Store, StoreError};
