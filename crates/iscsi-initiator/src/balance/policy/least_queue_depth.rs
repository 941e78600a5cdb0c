//! The path with the fewest I/Os in flight.

use super::super::meter::Load;
use super::select::{Select, least};

/// Paths with equal values take turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeastQueueDepth {
    turn: usize,
}

impl Select for LeastQueueDepth {
    #[inline]
    fn select(&mut self, count: usize, _: u32, load: impl Fn(usize) -> Load) -> usize {
        least(&mut self.turn, count, |at| u64::from(load(at).ios))
    }
}
