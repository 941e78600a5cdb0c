//! Sessions and paths against arrays, peers and scripts, one file per topic.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may wait and may fail loudly")]

mod access;
mod array;
mod connections;
#[path = "../fake/mod.rs"]
mod fake;
mod misbehaviour;
mod multipath;
#[path = "../peers/mod.rs"]
mod peers;
mod recovery;
#[path = "../rig/mod.rs"]
mod rig;
mod tgt;
