//! Images as a whole: what was written is read, after power cuts and by other programs; damage is named.
//!
//! `cut_disk.rs` is a file or a LUN that can lose its power; `power.rs` uses it. `strangers.rs` compares with QEMU and
//! libvhdi.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod calls;
mod cut_disk;
mod damage;
mod patch;
mod power;
mod round_trip;
mod strangers;
