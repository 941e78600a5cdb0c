//! One process on one core, its clocks.

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Confines the calling thread (and what it starts later) to one CPU.
pub fn pin(cpu: usize) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
}

/// Seconds on the monotonic clock.
pub fn now_s() -> f64 {
    seconds(ClockId::Monotonic)
}

/// CPU seconds of this process so far, user and system.
pub fn cpu_s() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
