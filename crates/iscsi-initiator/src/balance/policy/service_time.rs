//! The path that would complete the I/O first: bytes in flight and its own, times the measured time per byte.
//!
//! An estimate gets old while a path is not used. So from time to time a path is used even if its estimate is bad.

use super::super::meter::Load;
use super::select::{Select, least};

/// One of this many I/Os uses the next path in turn.
const PROBE_EVERY: u32 = 256;

/// Paths with equal values take turns.
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
        // A path without a measurement counts as equal to the best one.
        let known = (0..count).map(|at| load(at).cost).filter(|cost| *cost > 0).min().unwrap_or(1);
        // An I/O without data also waits in the queue.
        let bytes = u64::from(bytes.max(512));
        least(&mut self.turn, count, |at| {
            let load = load(at);
            let cost = if load.cost == 0 { known } else { load.cost };
            (load.bytes + bytes).saturating_mul(cost)
        })
    }
}
