//! Comparison benches: what `run.py` starts, pins and compares.
//!
//! - [`rawtcp`]: the limit. A request/response pair that moves the same bytes at the same depth as an iSCSI session, with
//!   nothing else in it. Every ratio in the bench table is taken against it.
//! - [`affinity`]: one process on one core, and its CPU time.

pub mod affinity;
pub mod rawtcp;
