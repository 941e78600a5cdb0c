//! The interface of a policy.

use super::super::meter::Load;

/// The one interface.
pub(super) trait Select {
    /// The position of the path for an I/O of `bytes`; `count` is at least 1.
    fn select(&mut self, count: usize, bytes: u32, load: impl Fn(usize) -> Load) -> usize;
}

/// The position with the least value. The search begins one position later each time, so equal positions take turns.
#[inline]
pub(super) fn least(turn: &mut usize, count: usize, value: impl Fn(usize) -> u64) -> usize {
    *turn = if *turn + 1 < count { *turn + 1 } else { 0 };
    let mut best = *turn;
    let mut best_value = value(best);
    for step in 1..count {
        let at = if *turn + step < count { *turn + step } else { *turn + step - count };
        let at_value = value(at);
        if at_value < best_value {
            (best, best_value) = (at, at_value);
        }
    }
    best
}
