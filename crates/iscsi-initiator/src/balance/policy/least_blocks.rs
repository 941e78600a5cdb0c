//! The path with the fewest bytes in flight.

use super::super::meter::Load;
use super::select::{Select, least};

/// Paths with equal values take turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeastBlocks {
    turn: usize,
}

impl Select for LeastBlocks {
    #[inline]
    fn select(&mut self, count: usize, _: u32, load: impl Fn(usize) -> Load) -> usize {
        least(&mut self.turn, count, |at| load(at).bytes)
    }
}
