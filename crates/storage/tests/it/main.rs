//! Storage through its public interface, one file per topic.
#![allow(clippy::unwrap_used, reason = "a test's unwrap is an assertion")]

mod controller;
mod damage;
mod host;
mod pool;
mod pool_metadata;
