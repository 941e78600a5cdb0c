//! The processor time between two cuts of a load that counts its threads together.

use super::HostUse;
use linerate_io::system::{self, HostCpu, ProcessCpu};
use std::io;

/// The processor time since the last cut, of the load and of the host.
#[derive(Debug)]
pub(crate) struct CpuMeter {
    read_load: fn() -> io::Result<ProcessCpu>,
    load: ProcessCpu,
    host: HostCpu,
    tsc_hz: f64,
}

impl CpuMeter {
    /// Starts now. `read_load` is what the load has used: [`system::thread_cpu`] or [`system::process_cpu`].
    pub(crate) fn new(read_load: fn() -> io::Result<ProcessCpu>, tsc_hz: f64) -> Self {
        Self {
            read_load,
            load: read_load().unwrap_or_default(),
            host: system::host_cpu().unwrap_or_default(),
            tsc_hz,
        }
    }

    /// What was used since the last cut, or since the start.
    pub(crate) fn cut(&mut self) -> HostUse {
        let (load, host) = ((self.read_load)().unwrap_or_default(), system::host_cpu().unwrap_or_default());
        let seconds = |now: u64, before: u64| now.saturating_sub(before) as f64 / 1e6;
        let used = HostUse {
            load_cpu_user_s: seconds(load.user_us, self.load.user_us),
            load_cpu_system_s: seconds(load.system_us, self.load.system_us),
            host_cpu_user_s: host.user_s - self.host.user_s,
            host_cpu_system_s: host.system_s - self.host.system_s,
            host_cpu_idle_s: host.idle_s - self.host.idle_s,
            host_cpu_wait_s: host.wait_s - self.host.wait_s,
            tsc_hz: self.tsc_hz,
            ..HostUse::default()
        };
        (self.load, self.host) = (load, host);
        used
    }
}
