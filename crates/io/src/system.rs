//! Facts about processors and time: the clock, which CPUs a thread may use, how much CPU time was spent.

use rustix::{
    process::Pid,
    thread::CpuSet,
    time::{ClockId, clock_gettime},
};
use std::{
    ffi::c_int,
    fs, io,
    time::{Duration, SystemTime},
};

/// Seconds since 1970, by the host's wall clock: for display, never for intervals.
pub fn unix_time_s() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// CPUs that the calling thread may run on, ascending.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Restricts the calling thread to one CPU. Errors: no such CPU, or one that this process may not use.
pub fn pin_thread(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no CPU {cpu}")));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None::<Pid>, &set)?)
}

/// The kernel's number of the calling thread: its directory under `/proc/PID/task`.
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The scheduling of a thread that models hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// Before all ordinary threads, at once (`SCHED_FIFO`).
    RealTime,
    /// As an ordinary thread of the highest priority.
    Priority,
    /// As any other thread, in short slices.
    Slices,
}

/// Asks the scheduler to run the calling thread as soon as it wakes up, for threads that model hardware: with real-time
/// priority if that is permitted and there is another CPU for other threads; else with the highest ordinary priority;
/// else with the shortest time slice, which needs no privilege (since Linux 6.12).
///
/// A thread that already has another policy keeps it. Errors: the scheduler has no time slices.
pub fn hurry_thread() -> io::Result<Haste> {
    const SLICE_NS: u64 = 100_000;
    /// Higher than the threads that receive for hosts, if those have real-time priority, too.
    const PRIORITY: u32 = 2;
    let ask = |policy: c_int, flags: c_int, nice: i32| {
        // SAFETY: all-zero is a valid sched_attr.
        let mut wish: libc::sched_attr = unsafe { std::mem::zeroed() };
        wish.size = size_of::<libc::sched_attr>() as u32;
        wish.sched_policy = policy as u32;
        wish.sched_flags = flags as u64;
        wish.sched_nice = nice;
        if policy == libc::SCHED_FIFO {
            wish.sched_priority = PRIORITY;
        } else {
            wish.sched_runtime = SLICE_NS;
        }
        // SAFETY: the kernel reads one sched_attr; 0 is the calling thread.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wish, 0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: asks for the policy of the calling thread.
    match unsafe { libc::sched_getscheduler(0) } {
        libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE => return Ok(Haste::RealTime),
        libc::SCHED_OTHER if allowed_cpus()?.len() > 1 && ask(libc::SCHED_FIFO, 0, 0).is_ok() => {
            return Ok(Haste::RealTime);
        }
        _ => {}
    }
    let keep = libc::SCHED_FLAG_KEEP_POLICY;
    match ask(0, keep, -20) {
        Ok(()) => Ok(Haste::Priority),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            ask(0, keep, 0).map(|()| Haste::Slices)
        }
        Err(error) => Err(error),
    }
}

/// Gives the calling thread the lowest priority: it runs when no other thread wants its CPU.
pub(crate) fn yield_to_others() {
    const NICE_MAX: libc::c_int = 19;
    // SAFETY: no memory is passed; 0 is the calling thread. Lowering the priority needs no privilege.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE_MAX) };
}

/// CPU time of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCpu {
    /// In user mode, microseconds.
    pub user_us: u64,
    /// In the kernel, microseconds.
    pub system_us: u64,
}

/// CPU time that this process has used.
pub fn process_cpu() -> io::Result<ProcessCpu> {
    usage(libc::RUSAGE_SELF)
}

/// CPU time that the calling thread has used.
pub fn thread_cpu() -> io::Result<ProcessCpu> {
    usage(libc::RUSAGE_THREAD)
}

fn usage(who: libc::c_int) -> io::Result<ProcessCpu> {
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in one rusage.
    if unsafe { libc::getrusage(who, &raw mut usage) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Ok(ProcessCpu { user_us: us(usage.ru_utime), system_us: us(usage.ru_stime) })
}

/// CPU time of the whole host since it started, summed over its CPUs, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostCpu {
    /// User mode, niced included.
    pub user_s: f64,
    /// Kernel, interrupts included.
    pub system_s: f64,
    /// Idle.
    pub idle_s: f64,
    /// Idle while I/O was outstanding.
    pub wait_s: f64,
    /// Taken by the hypervisor for others.
    pub steal_s: f64,
}

/// CPU time of the whole host, from `/proc/stat`.
pub fn host_cpu() -> io::Result<HostCpu> {
    let stat = fs::read_to_string("/proc/stat")?;
    let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
    parse_host_cpu(&stat, ticks_per_s)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/stat has no \"cpu\" line"))
}

/// `proc_stat(5)`: user nice system idle iowait irq softirq steal.
fn parse_host_cpu(stat: &str, ticks_per_s: f64) -> Option<HostCpu> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut times = [0.0; 8];
    for (time, text) in times.iter_mut().zip(line.split_ascii_whitespace()) {
        *time = text.parse::<f64>().ok()? / ticks_per_s;
    }
    let [user, nice, system, idle, wait, irq, softirq, steal] = times;
    Some(HostCpu {
        user_s: user + nice,
        system_s: system + irq + softirq,
        idle_s: idle,
        wait_s: wait,
        steal_s: steal,
    })
}

/// Resident memory of this process in bytes, from `/proc/self/statm`.
pub fn resident_bytes() -> io::Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages
        .map(|pages| pages * rustix::param::page_size() as u64)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/self/statm has no second number"))
}

/// Memory that this process could use without swapping, in bytes: the available memory of the host (`MemAvailable` of
/// `proc_meminfo(5)`), or the limit of its control group, if that is lower (`memory.max` of cgroup v2).
pub fn available_bytes() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let host = parse_available(&text)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/meminfo has no \"MemAvailable\""))?;
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let limit = fs::read_to_string(format!("/sys/fs/cgroup{group}/memory.max")).unwrap_or_default();
    Ok(limit.trim().parse().map_or(host, |limit: u64| limit.min(host)))
}

fn parse_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()? << 10)
}

/// Frequency of the processor's time-stamp counter in hertz, measured over about ten milliseconds. `None` if there is
/// no such counter. Multiplied by CPU seconds it gives cycles.
pub fn tsc_hz() -> Option<u64> {
    let (counter, began) = (read_tsc()?, now_ns());
    std::thread::sleep(Duration::from_millis(10));
    let (cycles, elapsed_ns) = (read_tsc()? - counter, now_ns() - began);
    Some((u128::from(cycles) * 1_000_000_000 / u128::from(elapsed_ns.max(1))) as u64)
}

#[cfg_attr(target_arch = "x86_64", expect(clippy::unnecessary_wraps, reason = "other platforms have none"))]
fn read_tsc() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and Linux lets user mode execute it.
    return Some(unsafe { std::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_times_are_sums_of_their_kinds() {
        let stat = "cpu  100 20 30 400 50 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        let expected = HostCpu { user_s: 1.2, system_s: 0.43, idle_s: 4.0, wait_s: 0.5, steal_s: 0.08 };
        assert_eq!(parse_host_cpu(stat, 100.0), Some(expected));
        assert_eq!(parse_host_cpu("intr 1 2 3\n", 100.0), None);
    }

    #[test]
    fn available_memory_is_found_by_its_name() {
        let text = "MemTotal:       24518540 kB\nMemAvailable:   1024 kB\nBuffers: 1 kB\n";
        assert_eq!(parse_available(text), Some(1 << 20));
        assert_eq!(parse_available("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn this_host_answers_plausibly() {
        let cpus = allowed_cpus().unwrap();
        assert!(!cpus.is_empty());
        assert!(host_cpu().unwrap().idle_s > 0.0);
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(available_bytes().unwrap() > 1 << 20);
        if let Some(hz) = tsc_hz() {
            assert!((100_000_000..20_000_000_000).contains(&hz), "{hz} Hz");
        }
    }

    #[test]
    fn pinning_binds_the_thread_and_refuses_nonsense() {
        let cpu = *allowed_cpus().unwrap().last().unwrap();
        std::thread::spawn(move || {
            pin_thread(cpu).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [cpu]);
        })
        .join()
        .unwrap();
        assert!(pin_thread(1_000_000).is_err());
    }

    #[test]
    fn a_thread_is_found_by_its_number() {
        let path = format!("/proc/self/task/{}/comm", thread_id());
        let name = std::thread::current().name().unwrap().chars().take(15).collect::<String>();
        assert_eq!(fs::read_to_string(path).unwrap().trim_end(), name);
    }

    #[test]
    fn a_thread_in_a_hurry_is_what_it_is_told() {
        std::thread::spawn(|| {
            // SAFETY: asks for the policy of the calling thread.
            let policy = || unsafe { libc::sched_getscheduler(0) };
            let before = policy();
            let haste = hurry_thread().unwrap();
            let is_real_time = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE].contains(&policy());
            assert_eq!(haste == Haste::RealTime, is_real_time);
            assert!(haste == Haste::RealTime || policy() == before);
            assert_eq!(hurry_thread().unwrap(), haste, "asking again changes nothing");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_of_another_policy_keeps_it() {
        std::thread::spawn(|| {
            // SAFETY: all-zero is a valid sched_param; the calling thread becomes a batch job, which needs no privilege.
            unsafe {
                let parameter: libc::sched_param = std::mem::zeroed();
                assert_eq!(libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameter), 0);
                hurry_thread().unwrap();
                assert_eq!(libc::sched_getscheduler(0), libc::SCHED_BATCH);
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn time_and_cpu_time_pass() {
        let (began, before) = (now_ns(), thread_cpu().unwrap());
        while now_ns() - began < 20_000_000 {}
        let after = thread_cpu().unwrap();
        assert!(after.user_us + after.system_us > before.user_us + before.system_us);
        assert!(process_cpu().unwrap().user_us >= after.user_us / 2);
    }
}
