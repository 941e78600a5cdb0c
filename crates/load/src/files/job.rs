//! A run: its threads and its clock.

use super::{operation::FileThread, prepare::ThreadFiles, record::Collector, shared::Shared};
use crate::{
    error::RunError,
    record::{Interval, RunOutcome, Summary},
    schedule::RunSchedule,
};
use linerate_io::system;
use std::{
    sync::{Arc, atomic::Ordering::SeqCst, mpsc::Sender},
    thread,
    time::Duration,
};

/// A run without an end has this length.
const YEAR_S: f64 = 366.0 * 86_400.0;
/// How long operations in flight may take after the end.
const DRAIN_NS: u64 = 30_000_000_000;

/// From the run to its owner.
#[derive(Debug)]
pub(super) enum FilesMessage {
    Interval(Box<Interval>),
    End(Box<Summary>),
}

/// The body of a thread.
fn work(shared: &Shared, work: usize, files: ThreadFiles, is_first: bool) {
    let index = shared.next_thread.fetch_add(1, SeqCst) as usize;
    let mut thread = FileThread::new(shared, work, index, files);
    shared.wait_for_start();
    match shared.spec.format {
        Some(format) => thread.format(format, is_first),
        None => thread.run(),
    }
    // Logs off before the thread counts as ended.
    drop(thread);
    if shared.live_of[work].fetch_sub(1, SeqCst) == 1 {
        shared.pace.end(work);
    }
    if shared.live.fetch_sub(1, SeqCst) == 1 {
        shared.signal.notify();
    }
}

/// Starts the threads of the workloads. `files`: by workload, for each of its threads.
fn start_threads(shared: &Arc<Shared>, files: Vec<Vec<ThreadFiles>>) -> Result<(), RunError> {
    let mut running = 0;
    for (work, files) in files.into_iter().enumerate() {
        for (number, files) in files.into_iter().enumerate() {
            let mine = Arc::clone(shared);
            let started = thread::Builder::new()
                .name(format!("files{work}"))
                .stack_size(256 << 10)
                .spawn(move || self::work(&mine, work, files, number == 0));
            if let Err(error) = started {
                return Err(RunError::Host(format!(
                    "this host starts only {running} of {} threads: {error}; write fewer threads=, or raise the \
                     limit: ulimit -u and -v, pids.max of the cgroup, kernel.threads-max or vm.max_map_count",
                    shared.threads
                )));
            }
            running += 1;
        }
    }
    Ok(())
}

/// Runs until the end: the thread that cuts intervals.
pub(super) fn collect(shared: &Arc<Shared>, files: Vec<Vec<ThreadFiles>>, sender: &Sender<FilesMessage>) {
    let spec = &shared.spec;
    let schedule = RunSchedule::new(spec.warmup_s, spec.elapsed_s.unwrap_or(YEAR_S), spec.interval_s);
    let mut collector = Collector::new(spec);
    let mut index = 0;
    let outcome = match start_threads(shared, files) {
        Ok(()) => {
            let send = |interval| {
                // The owner has left: nothing is read any more.
                let _ = sender.send(FilesMessage::Interval(Box::new(interval)));
            };
            index = cut_intervals(shared, schedule, &mut collector, send);
            let was_stopped = shared.signal.is_stopped();
            shared.signal.stop();
            let ended = if was_stopped { RunOutcome::Stopped } else { RunOutcome::Completed };
            let late = drain(shared);
            shared.failure.get().cloned().or(late).map_or(ended, RunOutcome::Failed)
        }
        Err(error) => {
            // Threads that wait at a part of a format for those that are missing end too.
            shared.signal.stop();
            RunOutcome::Failed(error)
        }
    };
    let (begun, now) = (schedule.start(index), system::now_ns().saturating_sub(shared.start));
    let end = now.min(schedule.cut(index)).max(begun + 1);
    let last = collector.cut(&shared.recorder, seconds(begun, end), schedule.is_warmup(index));
    let _ = sender.send(FilesMessage::Interval(Box::new(last)));
    let _ = sender.send(FilesMessage::End(Box::new(Summary { total: collector.total(), outcome })));
}

/// Sends each interval that is over. Returns the index of the last one, in which the run ends.
fn cut_intervals(
    shared: &Shared,
    schedule: RunSchedule,
    collector: &mut Collector,
    send: impl Fn(Interval),
) -> u32 {
    let mut index = 0;
    loop {
        let cut = schedule.cut(index);
        if wait_until(shared, cut) < cut || cut >= schedule.end() {
            return index;
        }
        let span = seconds(schedule.start(index), cut);
        send(collector.cut(&shared.recorder, span, schedule.is_warmup(index)));
        index += 1;
    }
}

/// Waits for operations in flight. The error: some do not end.
fn drain(shared: &Shared) -> Option<RunError> {
    let from = system::now_ns();
    while shared.live.load(SeqCst) > 0 {
        if system::now_ns() - from > DRAIN_NS {
            let threads = shared.live.load(SeqCst);
            let what = format!("{threads} threads wait for an operation that began more than 30 s ago");
            return Some(RunError::Host(what));
        }
        thread::park_timeout(Duration::from_millis(1));
    }
    None
}

fn seconds(start: u64, end: u64) -> (f64, f64) {
    (start as f64 / 1e9, end as f64 / 1e9)
}

/// Waits until an instant of the run, its end, or the end of its last thread. Returns the instant.
fn wait_until(shared: &Shared, instant: u64) -> u64 {
    loop {
        let now = system::now_ns().saturating_sub(shared.start);
        if now >= instant || shared.live.load(SeqCst) == 0 || shared.signal.is_stopped() {
            return now;
        }
        shared.signal.wait((instant - now).min(100_000_000));
    }
}
