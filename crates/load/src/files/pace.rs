//! When operations may start: at the maximum, several workloads keep their shares; at a rate, times are fixed before.

use super::{signal::Signal, spec::FilesRunSpec};
use crate::stream::arrival::Arrivals;
use linerate_io::system;
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

/// At the maximum a workload may be so many operations ahead of its share: vdbench's queue of each workload.
const AHEAD_MAX: f64 = 2000.0;
/// Wait of a workload that is ahead.
const AHEAD_WAIT_NS: u64 = 100_000;

/// See the module text.
#[derive(Debug)]
pub(super) struct Pace {
    /// Fractions of all operations.
    shares: Vec<f64>,
    started: Vec<AtomicU64>,
    ended: Vec<AtomicBool>,
    arrivals: Vec<Mutex<Arrivals>>,
}

impl Pace {
    /// For a run that starts at `start`.
    pub(super) fn new(spec: &FilesRunSpec, start: u64) -> Self {
        let shares: Vec<f64> = spec.workloads.iter().map(|work| work.share_percent / 100.0).collect();
        let arrivals = spec.rate.map(|rate| {
            let of = |(index, share): (usize, &f64)| {
                let phase = index as f64 / shares.len() as f64;
                let place = (spec.seed, index as u32, 0);
                Mutex::new(Arrivals::of_flow(rate.process, rate.per_s * share, phase, start, place))
            };
            shares.iter().enumerate().map(of).collect()
        });
        Self {
            started: shares.iter().map(|_| AtomicU64::new(0)).collect(),
            ended: shares.iter().map(|_| AtomicBool::new(false)).collect(),
            arrivals: arrivals.unwrap_or_default(),
            shares,
        }
    }

    /// Waits until an operation of a workload may start. Returns its intended start if there is a rate (None: now);
    /// false: the run is over.
    pub(super) fn permit(&self, work: usize, signal: &Signal) -> (bool, Option<u64>) {
        if let Some(arrivals) = self.arrivals.get(work) {
            let intended = arrivals.lock().unwrap_or_else(PoisonError::into_inner).take();
            loop {
                let now = system::now_ns();
                if signal.is_stopped() {
                    return (false, None);
                }
                if now >= intended {
                    return (true, Some(intended));
                }
                signal.wait(intended - now);
            }
        }
        while self.shares.len() > 1 && self.is_ahead(work) {
            if signal.wait(AHEAD_WAIT_NS) {
                return (false, None);
            }
        }
        self.started[work].fetch_add(1, Relaxed);
        (!signal.is_stopped(), None)
    }

    fn is_ahead(&self, work: usize) -> bool {
        let progress = |index: usize| self.started[index].load(Relaxed) as f64 / self.shares[index];
        let others = (0..self.shares.len()).filter(|&other| !self.ended[other].load(Relaxed));
        let least = others.map(progress).fold(f64::INFINITY, f64::min);
        progress(work) > least + AHEAD_MAX / self.shares[work]
    }

    /// A workload has no more operations: others do not wait for it.
    pub(super) fn end(&self, work: usize) {
        self.ended[work].store(true, Relaxed);
    }

    /// Whether a workload has ended.
    pub(super) fn has_ended(&self, work: usize) -> bool {
        self.ended[work].load(Relaxed)
    }
}
