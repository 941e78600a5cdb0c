//! Each path in turn.

use super::super::meter::Load;
use super::select::Select;

/// Changes the path after a number of I/Os or bytes.
#[derive(Clone, Debug)]
pub(crate) struct RoundRobin {
    /// I/Os or bytes of one turn.
    turn: u64,
    in_bytes: bool,
    at: usize,
    /// The rest of this turn.
    left: u64,
}

impl RoundRobin {
    pub(super) fn new(ios: u32, bytes: Option<u64>) -> Self {
        let turn = bytes.unwrap_or(u64::from(ios));
        Self { turn, in_bytes: bytes.is_some(), at: 0, left: turn }
    }
}

impl Select for RoundRobin {
    #[inline]
    fn select(&mut self, count: usize, bytes: u32, _: impl Fn(usize) -> Load) -> usize {
        if self.left == 0 {
            self.left = self.turn;
            self.at += 1;
        }
        if self.at >= count {
            self.at = 0;
        }
        self.left = self.left.saturating_sub(if self.in_bytes { u64::from(bytes) } else { 1 });
        self.at
    }
}
