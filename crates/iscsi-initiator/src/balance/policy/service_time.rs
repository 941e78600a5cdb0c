//! The path that would be done with the I/O first: bytes in flight and its own, times the measured time per byte.
//!
//! An estimate ages while a path is not used, so now and then a path is used even if its estimate is bad.

use super::super::meter::Load;
use super::select::{Select, least};

/// One I/O in so many goes to the next path in turn.
const PROBE_EVERY: u32 = 256;

/// Equals take turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceTime {
    turn: usize,
    probe: usize,
    since_probe: u32,
}

impl Select for ServiceTime {
    #[inline]
    fn select(&mut self, count: usize, bytes: u32, load: impl Fn(usize) -> Load) -> usize {
        self.since_probe += 1;
        if self.since_probe >= PROBE_EVERY {
            self.since_probe = 0;
            self.probe = if self.probe + 1 < count { self.probe + 1 } else { 0 };
            return self.probe;
        }
        // A path that has not been measured is taken to be as good as the best.
        let known = (0..count).map(|at| load(at).cost).filter(|cost| *cost > 0).min().unwrap_or(1);
        // An I/O without data still takes its turn in the queue.
        let bytes = u64::from(bytes.max(512));
        least(&mut self.turn, count, |at| {
            let load = load(at);
            let cost = if load.cost == 0 { known } else { load.cost };
            (load.bytes + bytes).saturating_mul(cost)
        })
    }
}
