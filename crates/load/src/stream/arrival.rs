//! Intended start times of I/Os in an open loop. Only the seed or a trace determines the times: a slow answer does not
//! move them.
//! This makes response times correct (no coordinated omission).

use super::{
    rng::{Rng, Use},
    trace::Trace,
};
use crate::spec::ArrivalProcess;
use linerate_io::Nanos;
use std::sync::Arc;

/// Most arrivals that one call counts into the backlog.
const STEPS_PER_LOOK: u32 = 1024;

/// The arrivals of one stream on one volume. It needs constant memory, however late it is: a second iterator over the
/// same sequence counts arrivals that are due but not started, and none are stored.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    taken: Walker,
    due: Walker,
    due_count: u64,
    taken_count: u64,
}

/// Walks along the sequence of intended times.
#[derive(Clone, Debug)]
struct Walker {
    times: Times,
    next_ns: f64,
}

/// Where the intended times come from.
#[derive(Clone, Debug)]
enum Times {
    Drawn { process: ArrivalProcess, mean_ns: f64, rng: Rng },
    Recorded { trace: Arc<Trace>, at: usize, start: Nanos },
}

impl Arrivals {
    /// Arrivals at `rate_iops` from `start` on. `phase` (0 to 1) shifts deterministic arrivals within their period, so
    /// that streams of one rate do not start their I/Os in the same instant.
    pub(crate) fn new(process: ArrivalProcess, rate_iops: f64, phase: f64, start: Nanos, rng: Rng) -> Self {
        let mean_ns = 1e9 / rate_iops;
        let mut walker = Walker { times: Times::Drawn { process, mean_ns, rng }, next_ns: start as f64 };
        match process {
            ArrivalProcess::Deterministic => walker.next_ns += phase * mean_ns,
            ArrivalProcess::Poisson | ArrivalProcess::Uniform => walker.step(),
        }
        Self::walking(walker)
    }

    /// The times of a trace from `start` on.
    pub(crate) fn of_trace(trace: &Arc<Trace>, start: Nanos) -> Self {
        let next_ns = trace.time(0, start) as f64;
        Self::walking(Walker { times: Times::Recorded { trace: trace.clone(), at: 0, start }, next_ns })
    }

    fn walking(walker: Walker) -> Self {
        Self { due: walker.clone(), taken: walker, due_count: 0, taken_count: 0 }
    }

    /// The same with a given generator.
    pub(crate) fn of_flow(
        process: ArrivalProcess,
        rate_iops: f64,
        phase: f64,
        start: Nanos,
        (seed, stream, volume): (u64, u32, u32),
    ) -> Self {
        Self::new(process, rate_iops, phase, start, Rng::new(seed, stream, volume, Use::Arrivals))
    }

    /// Intended time of the next I/O to start.
    pub(crate) fn next(&self) -> Nanos {
        self.taken.next_ns as Nanos
    }

    /// Takes the next arrival: its intended time.
    pub(crate) fn take(&mut self) -> Nanos {
        let intended = self.next();
        self.taken.step();
        self.taken_count += 1;
        intended
    }

    /// How many arrivals are due at `now` and not taken. One call counts only a limited number of further ones, so that
    /// an extreme rate does not stop the worker; later calls continue.
    pub(crate) fn backlog(&mut self, now: Nanos) -> u64 {
        for _ in 0..STEPS_PER_LOOK {
            if self.due.next_ns as Nanos > now {
                break;
            }
            self.due.step();
            self.due_count += 1;
        }
        self.due_count.saturating_sub(self.taken_count)
    }
}

impl Walker {
    fn step(&mut self) {
        match &mut self.times {
            Times::Drawn { process, mean_ns, rng } => {
                self.next_ns += match process {
                    ArrivalProcess::Deterministic => *mean_ns,
                    ArrivalProcess::Poisson => -*mean_ns * (1.0 - rng.unit()).ln(),
                    ArrivalProcess::Uniform => 2.0 * *mean_ns * rng.unit(),
                }
            }
            Times::Recorded { trace, at, start } => {
                *at += 1;
                self.next_ns = trace.time(*at, *start) as f64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Arrivals;
    use crate::spec::ArrivalProcess::{self, Deterministic, Poisson, Uniform};

    fn gaps(process: ArrivalProcess, count: usize) -> Vec<f64> {
        let mut arrivals = Arrivals::of_flow(process, 1000.0, 0.0, 5_000, (9, 0, 0));
        let times: Vec<u64> = (0..=count).map(|_| arrivals.take()).collect();
        times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect()
    }

    fn mean_and_dispersion(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, variance.sqrt() / mean)
    }

    #[test]
    fn every_process_keeps_its_rate_and_its_spread() {
        for (process, spread) in [(Deterministic, 0.0), (Poisson, 1.0), (Uniform, 1.0 / 3_f64.sqrt())] {
            let (mean, dispersion) = mean_and_dispersion(&gaps(process, 200_000));
            assert!((mean / 1e6 - 1.0).abs() < 0.01, "{process:?}: mean gap {mean} ns at 1000 per second");
            assert!((dispersion - spread).abs() < 0.01, "{process:?}: coefficient of variation {dispersion}");
        }
    }

    #[test]
    fn poisson_counts_are_dispersed_as_their_mean() {
        let mut arrivals = Arrivals::of_flow(Poisson, 1000.0, 0.0, 0, (11, 0, 0));
        let mut counts = vec![0.0; 5000];
        loop {
            let window = (arrivals.take() / 20_000_000) as usize;
            let Some(count) = counts.get_mut(window) else { break };
            *count += 1.0;
        }
        let (mean, dispersion) = mean_and_dispersion(&counts);
        let index = (dispersion * mean).powi(2) / mean;
        assert!(
            (mean - 20.0).abs() < 0.4 && (index - 1.0).abs() < 0.1,
            "mean {mean}, index of dispersion {index}"
        );
    }

    #[test]
    fn backlog_counts_what_is_due_and_not_taken() {
        let mut arrivals = Arrivals::of_flow(Deterministic, 1000.0, 0.5, 0, (1, 0, 0));
        assert_eq!(arrivals.next(), 500_000);
        assert_eq!(arrivals.backlog(499_999), 0);
        assert_eq!(arrivals.backlog(2_500_000), 3);
        assert_eq!(arrivals.take(), 500_000);
        assert_eq!(arrivals.backlog(2_500_000), 2);
        assert_eq!(arrivals.backlog(2_600_000), 2);
    }

    #[test]
    fn the_seed_decides_the_times() {
        let times = |seed| {
            let mut arrivals = Arrivals::of_flow(Poisson, 5000.0, 0.0, 0, (seed, 2, 3));
            (0..100).map(|_| arrivals.take()).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
    }
}
