//! Tasks and their ends, over real sockets.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly

mod ownership;
mod resets;
#[path = "../support/mod.rs"]
mod support;
