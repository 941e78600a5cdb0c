//! What the workers of a run share: the schedule of its intervals, the wish to stop, limits, and progress of shares.
//! Plain atomics; nothing here is touched more often than once per turn of a worker.

use super::plan::Plan;
use crate::{run::RunError, spec::LimitsSpec, stream::share::Pace};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
};

/// When intervals end; all times in ns since the start of the run. The warm-up has intervals of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    warmup: u64,
    elapsed: u64,
    interval: u64,
}

impl Schedule {
    /// From seconds.
    pub(crate) fn new(warmup_s: f64, elapsed_s: f64, interval_s: f64) -> Self {
        let ns = |seconds: f64| (seconds * 1e9).round() as u64;
        Self { warmup: ns(warmup_s), elapsed: ns(elapsed_s), interval: ns(interval_s).max(1) }
    }

    /// End of the warm-up.
    pub(crate) fn measured_from(&self) -> u64 {
        self.warmup
    }

    /// End of the run.
    pub(crate) fn end(&self) -> u64 {
        self.warmup + self.elapsed
    }

    /// Intervals of the warm-up.
    fn warmup_intervals(&self) -> u64 {
        self.warmup.div_ceil(self.interval)
    }

    /// End of an interval.
    pub(crate) fn cut(&self, index: u32) -> u64 {
        let (index, warmup) = (u64::from(index), self.warmup_intervals());
        if index < warmup {
            ((index + 1) * self.interval).min(self.warmup)
        } else {
            (self.warmup + (index + 1 - warmup).saturating_mul(self.interval)).min(self.end())
        }
    }

    /// Start of an interval.
    pub(crate) fn start(&self, index: u32) -> u64 {
        index.checked_sub(1).map_or(0, |before| self.cut(before))
    }

    /// Whether an interval belongs to the warm-up.
    pub(crate) fn is_warmup(&self, index: u32) -> bool {
        u64::from(index) < self.warmup_intervals()
    }
}

/// Shared by all workers of a run.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) schedule: Schedule,
    pub(crate) limits: LimitsSpec,
    /// Progress of volumes (controlled shares).
    pub(crate) volumes: Pace,
    /// Progress of streams (shares in total).
    pub(crate) streams: Pace,
    /// The run is over: by request, limit, end of data or failure.
    over: AtomicBool,
    /// Over because [`crate::Run::stop`] was called.
    stopped: AtomicBool,
    failure: Mutex<Option<RunError>>,
    moved: [AtomicU64; 2],
    /// Lanes that stop at their end and have not reached it.
    to_end: AtomicUsize,
    /// Closed-loop flows per stream that have not reached their end.
    live: Box<[AtomicUsize]>,
    wakers: Mutex<Vec<Wake>>,
}

/// Interrupts one worker's wait.
pub(crate) struct Wake(pub(crate) Box<dyn Fn() + Send>);

impl std::fmt::Debug for Wake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wake")
    }
}

impl Control {
    /// For a planned run.
    pub(crate) fn new(plan: &Plan, schedule: Schedule, limits: LimitsSpec) -> Self {
        Self {
            schedule,
            limits,
            volumes: Pace::new(&plan.volume_weights, plan.workers),
            streams: Pace::new(&plan.stream_weights, plan.workers),
            over: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
            moved: [AtomicU64::new(0), AtomicU64::new(0)],
            to_end: AtomicUsize::new(plan.to_end),
            live: plan.live_flows().into_iter().map(AtomicUsize::new).collect(),
            wakers: Mutex::new(Vec::new()),
        }
    }

    /// Whether no further I/O should start.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// Ends the run because the caller wants it.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
        self.end();
    }

    /// Ends the run: everything was done.
    pub(crate) fn end(&self) {
        if !self.over.swap(true, Relaxed) {
            self.wake();
        }
    }

    /// Interrupts every worker's wait.
    pub(crate) fn wake(&self) {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|wake| wake.0());
    }

    /// Adds a worker that must hear of the end.
    pub(crate) fn add_waker(&self, wake: Wake) {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(wake);
    }

    /// Ends the run as failed; the first failure is kept.
    pub(crate) fn fail(&self, error: RunError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.end();
    }

    /// Whether and why the run failed.
    pub(crate) fn failure(&self) -> Option<RunError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the caller stopped the run.
    pub(crate) fn was_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Whether any limit is set.
    pub(crate) fn has_limits(&self) -> bool {
        self.limits != LimitsSpec::default()
    }

    /// Counts bytes read and written since the end of the warm-up; ends the run at a limit.
    pub(crate) fn moved(&self, read: u64, written: u64) {
        let read = self.moved[0].fetch_add(read, Relaxed) + read;
        let written = self.moved[1].fetch_add(written, Relaxed) + written;
        let reached = |limit: Option<u64>, bytes: u64| limit.is_some_and(|limit| bytes >= limit);
        let LimitsSpec { bytes, read_bytes, written_bytes } = self.limits;
        if reached(bytes, read + written) || reached(read_bytes, read) || reached(written_bytes, written) {
            self.end();
        }
    }

    /// A closed-loop flow of a stream has nothing more to start. The shares no longer include a stream without flows.
    pub(crate) fn lane_ended(&self, stream: usize, worker: usize) {
        if self.live[stream].fetch_sub(1, Relaxed) == 1 {
            self.streams.retire(stream, worker);
        }
    }

    /// A flow that stops at its end has reached it and its last I/O is done.
    pub(crate) fn reached_end(&self) {
        if self.to_end.fetch_sub(1, Relaxed) == 1 {
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn intervals_follow_each_other_without_gaps() {
        for (warmup, elapsed, interval) in
            [(0.0, 10.0, 1.0), (2.5, 3.2, 1.0), (0.3, 0.4, 1.0), (4.0, 6.0, 2.0)]
        {
            let schedule = Schedule::new(warmup, elapsed, interval);
            let (mut index, mut at) = (0, 0);
            while at < schedule.end() {
                assert_eq!(schedule.start(index), at);
                assert!(schedule.cut(index) > at && schedule.cut(index) <= at + (interval * 1e9) as u64);
                assert_eq!(schedule.is_warmup(index), at < schedule.measured_from());
                at = schedule.cut(index);
                index += 1;
            }
            assert_eq!(at, ((warmup + elapsed) * 1e9_f64).round() as u64);
        }
    }
}
