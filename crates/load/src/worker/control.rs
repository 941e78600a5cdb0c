//! The state that the workers of a run share: schedule, stop flag, limits, and progress of shares. Plain atomics; a worker
//! uses each at most once per turn.

use crate::{error::RunError, plan::RunPlan, schedule::RunSchedule, spec::LimitsSpec, stream::share::Pace};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
};

/// Shared by all workers of a run.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) schedule: RunSchedule,
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
    /// Flows that stop at their end and have not reached it.
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
    pub(crate) fn new(plan: &RunPlan, schedule: RunSchedule, limits: LimitsSpec) -> Self {
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

    /// Ends the run at the caller's request.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
        self.end();
    }

    /// Ends the run: all work is done.
    pub(crate) fn end(&self) {
        if !self.over.swap(true, Relaxed) {
            self.wake();
        }
    }

    /// Interrupts every worker's wait.
    pub(crate) fn wake(&self) {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|wake| wake.0());
    }

    /// Adds a worker to wake at the end.
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
    pub(crate) fn flow_ended(&self, stream: usize, worker: usize) {
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
