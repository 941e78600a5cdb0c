//! Which of the usable paths an I/O takes: small pure modules with one interface.
//!
//! A selector sees positions 0 to `count - 1`, one per usable path, and the I/O in flight on each path. It allocates
//! nothing, reads no clock and does not use sessions. `paths/priority.rs` decides which paths are usable.

mod least_blocks;
mod least_queue_depth;
mod round_robin;
mod select;
mod service_time;

use super::meter::Load;
use super::options::{BalanceOptions, Policy};
use least_blocks::LeastBlocks;
use least_queue_depth::LeastQueueDepth;
use round_robin::RoundRobin;
use select::Select;
use service_time::ServiceTime;

/// A policy at work.
#[derive(Clone, Debug)]
pub(crate) enum Selector {
    /// Under failover only, a single path has the best rank.
    First,
    RoundRobin(RoundRobin),
    LeastQueueDepth(LeastQueueDepth),
    LeastBlocks(LeastBlocks),
    ServiceTime(ServiceTime),
}

impl Selector {
    pub(crate) fn new(options: &BalanceOptions) -> Self {
        match options.policy {
            Policy::FailoverOnly => Selector::First,
            Policy::RoundRobin | Policy::RoundRobinSubset => {
                Selector::RoundRobin(RoundRobin::new(options.ios_per_path, options.bytes_per_path))
            }
            // The weight is part of the rank; paths with equal weight take turns.
            Policy::WeightedPaths => Selector::RoundRobin(RoundRobin::new(1, None)),
            Policy::LeastQueueDepth => Selector::LeastQueueDepth(LeastQueueDepth::default()),
            Policy::LeastBlocks => Selector::LeastBlocks(LeastBlocks::default()),
            Policy::ServiceTime => Selector::ServiceTime(ServiceTime::default()),
        }
    }

    /// The position of the path for an I/O of `bytes`; `count` is at least 1.
    #[inline]
    pub(crate) fn select(&mut self, count: usize, bytes: u32, load: impl Fn(usize) -> Load) -> usize {
        if count == 1 {
            return 0;
        }
        match self {
            Selector::First => 0,
            Selector::RoundRobin(policy) => policy.select(count, bytes, load),
            Selector::LeastQueueDepth(policy) => policy.select(count, bytes, load),
            Selector::LeastBlocks(policy) => policy.select(count, bytes, load),
            Selector::ServiceTime(policy) => policy.select(count, bytes, load),
        }
    }
}

#[cfg(test)]
mod tests;
