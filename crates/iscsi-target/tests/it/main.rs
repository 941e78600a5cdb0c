//! The array over real sockets, one file per topic.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may wait and may fail loudly")]

mod digests;
mod following;
mod groups;
mod hostile;
mod managed;
mod mcs;
mod portals;
mod replication;
mod sessions;
mod stalls;
mod strangers;
mod striped;
#[path = "../support/mod.rs"]
mod support;
mod tasks;
