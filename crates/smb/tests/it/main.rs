//! The SMB client against Samba and scripted servers, one file per topic.
#![allow(clippy::unwrap_used, reason = "a test's unwrap is an assertion")]

mod channels;
mod compounds;
#[path = "../fake/mod.rs"]
mod fake;
#[path = "../load/mod.rs"]
mod load;
mod misbehaviour;
#[path = "../peers/mod.rs"]
mod peers;
mod recovery;
mod replays;
mod samba;
mod shares;
mod shuffled;
mod splitting;
mod tree;
mod wire;
