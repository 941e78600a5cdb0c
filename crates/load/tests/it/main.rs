//! Runs of workloads from start to end, one file per kind of volume or workload.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may wait and may fail loudly")]

mod backup;
mod bulk;
#[path = "../common/mod.rs"]
mod common;
mod diskspd;
mod ends;
mod file;
mod files;
mod fio;
mod iscsi;
mod null;
mod paths;
mod trace;
mod upkeep;
mod virtual_time;
