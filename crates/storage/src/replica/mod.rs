//! Replication: volumes of one array kept on another, at points in time that are the same on both.
//!
//! # What is where
//!
//! A [`Group`] is one or more volumes that replicate at one instant. On one array it is *primary*, hosts write it; on the
//! other *replica*, only the partner writes it. A *point* is a snapshot of all its volumes at one instant,
//! under a name that is never given twice: wherever a snapshot has this name it holds the very same bytes.
//!
//! - [`Replicator`]: the groups of an array, found again after a restart.
//! - [`Group::prepare`], [`Group::copy`], [`Group::confirm`] (`source.rs`, `copy.rs`): the primary's side.
//! - [`Group::begin`], [`Group::commit`] (`receiver.rs`): the replica's side. [`Fence`]: what keeps the past out.
//! - [`Group::promote`], [`Group::give`], [`Group::demote`] (`role.rs`): who is primary, and why there is only one.
//! - [`service`]: all of it as verbs of an array. [`Store`]: what all of this asks of a pool. [`Link`]: the
//!   way to the partner's volumes.
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
//! # Why a break does no harm
//!
//! Every step may be repeated: `prepare` finds the point that is under way, `begin` the transfer, `commit` the snapshots.
//!
//! - **Nothing half done is ever a point.** The only thing that makes one is the snapshot of all volumes at once, after a
//!   flush, with the fences closed. After a failure before it, the volumes go back to an older point.
//! - **The place to go on from** counts only together with the incarnation, which the partner makes up when it has prepared
//!   its volumes and has written that down. If it had to prepare them again, it makes up another.
//! - **Late writes** of an older attempt meet a closed fence.
//! - **Promotion** is written down before the first volume is touched and finished after a crash; hosts wait until it is.

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
