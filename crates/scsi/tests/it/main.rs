//! The device server through its public interface, one file per topic.
#![allow(clippy::unwrap_used, reason = "a test's unwrap is an assertion")]

mod access;
mod identity;
mod medium;
mod model;
mod provisioning;
mod sharing;
#[path = "../support/mod.rs"]
mod support;
