//! A run: opens the volumes, starts the workers at one instant, merges their measurements, ends them.
//!
//! Threads of a run: its workers, and a sampler that sleeps until each interval's end and then reads the host's CPU
//! times. The caller of [`Run::next_interval`] merges. A run in virtual time has one worker and no sampler.

mod merge;
mod virtual_time;

use crate::{
    error::RunError,
    facts::{Facts, ThreadFacts},
    plan::RunPlan,
    record::{Interval, RunOutcome, Summary, message::WorkerMessage, tally::Tally},
    schedule::RunSchedule,
    spec::{DriverChoice, RunSpec, SpecError},
    virtual_time::ArrayReports,
    worker::{
        self, Hooks, ReadyWorker, WorkerSetup,
        control::{Control, Wake},
    },
};
use linerate_blame::Blame;
use linerate_io::{Driver, Nanos, Preference, net::netns, open_driver, system, with_driver};
use merge::Merger;
use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvError, RecvTimeoutError, Sender, SyncSender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Most intervals per worker that wait to be merged; beyond that the worker's interval gets longer.
const WAITING_INTERVALS: usize = 64;
/// From the last worker's readiness to the first I/O.
const START_DELAY_NS: u64 = 2_000_000;
/// How long the end of a run waits for threads. A thread that a device blocks longer is not joined.
const JOIN_TIMEOUT: Duration = Duration::from_millis(200);

/// A running run. All methods may be called from any thread; only one thread should fetch intervals.
#[derive(Debug)]
pub struct Run {
    facts: Facts,
    control: Arc<Control>,
    merging: Mutex<Merging>,
    /// Of a run in virtual time.
    reports: Option<Arc<ArrayReports>>,
}

#[derive(Debug)]
struct Merging {
    merger: Merger,
    messages: Receiver<WorkerMessage>,
    threads: Vec<JoinHandle<()>>,
    /// See [`Workers`].
    stay: Vec<Sender<()>>,
    /// Disconnected when all threads have ended.
    gone: Receiver<()>,
}

/// A run whose volumes are open and whose workers wait for the start; meanwhile they answer the targets.
/// Drop closes the volumes ([`Self::discard`] waits for that).
#[derive(Debug)]
pub struct PreparedRun {
    facts: Facts,
    control: Arc<Control>,
    plan: Arc<RunPlan>,
    schedule: RunSchedule,
    sender: SyncSender<WorkerMessage>,
    messages: Receiver<WorkerMessage>,
    gone: Receiver<()>,
    workers: Workers,
}

impl Run {
    /// Opens every volume and starts the load. Returns when all workers are ready, just before the first I/O.
    pub fn start(spec: RunSpec) -> Result<Self, RunError> {
        Self::start_with(spec, Hooks::default())
    }

    pub(crate) fn start_with(spec: RunSpec, hooks: Hooks) -> Result<Self, RunError> {
        let prepared = PreparedRun::with(spec, hooks)?;
        prepared.begin(system::now_ns() + START_DELAY_NS)
    }

    /// The actual settings: resolved, negotiated and read back.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The next interval; `None` when the timeout passes first or no further interval will come
    /// (see [`Self::finished`]). Merging happens in the calling thread.
    pub fn next_interval(&self, timeout: Duration) -> Option<Interval> {
        self.merging().next(timeout)
    }

    /// No further interval will come.
    pub fn finished(&self) -> bool {
        self.merging().merger.is_finished()
    }

    /// Starts no more I/Os; the workers end within 200 ms, even if a volume hangs. Returns at once.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Waits for the end and returns the summary of the measured time, including intervals that were not fetched. The
    /// threads have stayed until now, so that the system still knew their CPU time.
    pub fn finish(&self) -> Summary {
        let mut merging = self.merging();
        while !merging.merger.is_finished() {
            merging.next(Duration::from_millis(100));
        }
        merging.stay.clear();
        let mut died = None;
        // Disconnected at once in the normal case.
        let _ = merging.gone.recv_timeout(JOIN_TIMEOUT);
        for thread in merging.threads.drain(..).filter(JoinHandle::is_finished) {
            if let Err(panic) = thread.join() {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                died = Some(
                    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic").to_owned(),
                );
            }
        }
        let outcome = match (died, self.control.failure()) {
            (Some(died), _) => RunOutcome::Failed(RunError::Internal(died)),
            (None, Some(error)) => RunOutcome::Failed(error),
            (None, None) if self.control.was_stopped() => RunOutcome::Stopped,
            (None, None) => RunOutcome::Completed,
        };
        Summary { total: merging.merger.summary(), outcome }
    }

    fn merging(&self) -> MutexGuard<'_, Merging> {
        self.merging.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PreparedRun {
    /// Opens every volume. Returns when all workers are ready.
    pub fn new(spec: RunSpec) -> Result<Self, RunError> {
        Self::with(spec, Hooks::default())
    }

    fn with(spec: RunSpec, hooks: Hooks) -> Result<Self, RunError> {
        spec.validate()?;
        let allowed =
            system::allowed_cpus().map_err(|error| RunError::Host(format!("no CPU set: {error}")))?;
        let spec = Arc::new(spec);
        let plan = Arc::new(RunPlan::new(&spec, allowed.len()));
        let schedule = RunSchedule::new(spec.warmup_s, spec.elapsed_s, spec.interval_s);
        let control = Arc::new(Control::new(&plan, schedule, spec.limits));
        let (sender, messages) = mpsc::sync_channel(WAITING_INTERVALS * (plan.workers + 1));
        let (here, gone) = mpsc::channel();
        let mut workers = Workers::new(&control, here);
        for index in 0..plan.workers {
            let (give_back, returned) = mpsc::channel();
            workers.recycle.push(give_back);
            workers.spawn(WorkerSetup {
                spec: Arc::clone(&spec),
                plan: Arc::clone(&plan),
                control: Arc::clone(&control),
                index,
                hooks,
                virtual_time: None,
                sender: sender.clone(),
                returned,
            })?;
        }
        let tsc_hz = system::tsc_hz().map_or(0.0, |hz| hz as f64);
        let facts = workers.gather(&spec, &plan, tsc_hz)?;
        Ok(Self { facts, control, plan, schedule, sender, messages, gone, workers })
    }

    /// The actual settings: resolved, negotiated and read back.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Starts the load at an instant of the monotonic clock, which must be in the future. Returns at once.
    pub fn start_at(self, start: Nanos) -> Result<Run, RunError> {
        let late = system::now_ns().saturating_sub(start);
        if late > 0 {
            return Err(RunError::Host(format!("the start is over by {} us", late / 1000)));
        }
        self.begin(start)
    }

    /// Starts the load at `start`, or now if that is over: on one host no other load waits for the instant.
    fn begin(self, start: Nanos) -> Result<Run, RunError> {
        let Self { mut facts, control, plan, schedule, sender, messages, gone, mut workers } = self;
        let host = system::host_cpu().unwrap_or_default();
        let (alive, ended) = mpsc::channel();
        for begin in &workers.begin {
            begin.send((start, alive.clone())).map_err(|_| {
                let failure = control.failure();
                control.stop();
                failure.unwrap_or_else(|| RunError::Internal("it ended before the start".into()))
            })?;
        }
        control.wake();
        drop(alive);
        workers
            .thread("load-cpu", move || sample_host(start, schedule, &ended, &sender))
            .inspect_err(|_| control.stop())?;
        workers.here = None;
        facts.started_monotonic_ns = Some(start);
        let (threads, recycle) = (std::mem::take(&mut workers.threads), std::mem::take(&mut workers.recycle));
        let stay = std::mem::take(&mut workers.stay);
        let merger = Merger::new(&plan, schedule, recycle, facts.tsc_hz, host);
        Ok(Run {
            facts,
            control,
            merging: Mutex::new(Merging { merger, messages, threads, stay, gone }),
            reports: None,
        })
    }

    /// Closes the volumes and waits until that is done, but not long for a device that hangs.
    pub fn discard(self) {
        let Self { gone, mut workers, .. } = self;
        workers.here = None;
        drop(workers);
        // Disconnected once the last thread has ended.
        let _ = gone.recv_timeout(JOIN_TIMEOUT);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.control.stop();
    }
}

impl Merging {
    fn next(&mut self, timeout: Duration) -> Option<Interval> {
        let until = system::now_ns() + timeout.as_nanos() as u64;
        loop {
            if let Some(interval) = self.merger.pop() {
                return Some(interval);
            }
            if self.merger.is_finished() {
                return None;
            }
            let rest = Duration::from_nanos(until.saturating_sub(system::now_ns()));
            match self.messages.recv_timeout(rest) {
                Ok(message) => self.merger.take(message),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => self.merger.abandon(),
            }
        }
    }
}

/// The threads of a run until its start. Drop stops workers that were not started.
#[derive(Debug)]
struct Workers {
    control: Arc<Control>,
    threads: Vec<JoinHandle<()>>,
    /// A thread that has done its work stays until its sender is dropped.
    stay: Vec<Sender<()>>,
    ready: Vec<Receiver<Result<ReadyWorker, RunError>>>,
    begin: Vec<Sender<(Nanos, Sender<()>)>>,
    recycle: Vec<Sender<Box<Tally>>>,
    /// Every thread keeps a copy until it ends.
    here: Option<Sender<()>>,
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.begin.clear();
        self.control.wake();
    }
}

impl Workers {
    fn new(control: &Arc<Control>, here: Sender<()>) -> Self {
        Self {
            control: Arc::clone(control),
            threads: Vec::new(),
            stay: Vec::new(),
            ready: Vec::new(),
            begin: Vec::new(),
            recycle: Vec::new(),
            here: Some(here),
        }
    }

    fn thread(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), RunError> {
        let here = self.here.clone();
        let (stay, leave) = mpsc::channel();
        let named = thread::Builder::new().name(name.into()).spawn(move || {
            let _here = here;
            body();
            let _: Result<(), RecvError> = leave.recv();
        });
        self.stay.push(stay);
        self.threads.push(named.map_err(|error| RunError::Host(format!("cannot start a thread: {error}")))?);
        Ok(())
    }

    fn spawn(&mut self, setup: WorkerSetup) -> Result<(), RunError> {
        let (report, ready) = mpsc::channel();
        let (begin, wait) = mpsc::channel();
        self.ready.push(ready);
        self.begin.push(begin);
        self.thread(&format!("load-{}", setup.index), move || work(setup, &report, &wait))
    }

    /// Waits until every worker is ready; the first failure ends the others.
    fn gather(&mut self, spec: &RunSpec, plan: &RunPlan, tsc_hz: f64) -> Result<Facts, RunError> {
        let mut facts = Facts { workers: plan.workers, tsc_hz, ..Facts::default() };
        facts.cpus = spec.cpus.as_ref().map_or_else(Vec::new, |cpus| {
            (0..plan.workers).filter_map(|worker| cpus.get(worker % cpus.len().max(1)).copied()).collect()
        });
        facts.volumes.resize(spec.volumes.len(), crate::facts::VolumeFacts::default());
        for ready in &self.ready {
            let ready =
                ready.recv().map_err(|_| RunError::Internal("it ended while it opened volumes".into()))??;
            facts.driver = ready.driver.into();
            facts.threads.extend(ready.facts.threads);
            for (index, volume) in ready.indices.into_iter().zip(ready.facts.volumes) {
                facts.volumes[index as usize] = volume;
            }
        }
        Ok(facts)
    }
}

/// A worker's thread: pin, open, report, wait, run.
fn work(
    setup: WorkerSetup,
    report: &Sender<Result<ReadyWorker, RunError>>,
    wait: &Receiver<(Nanos, Sender<()>)>,
) {
    if let Err(error) = pin(&setup).and_then(|()| enter_netns(&setup)) {
        let _ = report.send(Err(error));
        return;
    }
    let preference = match setup.spec.driver {
        // Files complete in the ring itself; with epoll, threads must wait for them.
        DriverChoice::Auto if setup.has_files() => Preference::IoUring,
        DriverChoice::Auto => Preference::Auto,
        DriverChoice::IoUring => Preference::IoUring,
        DriverChoice::Epoll => Preference::Epoll,
    };
    let opened = match open_driver(preference) {
        Err(_) if setup.spec.driver == DriverChoice::Auto => open_driver(Preference::Auto),
        opened => opened,
    };
    match opened {
        Ok(any) => with_driver!(any, |driver| work_on(driver, setup, report, wait)),
        Err(error) => {
            let _ = report.send(Err(RunError::Host(error.to_string())));
        }
    }
}

fn work_on<D: Driver>(
    driver: D,
    setup: WorkerSetup,
    report: &Sender<Result<ReadyWorker, RunError>>,
    wait: &Receiver<(Nanos, Sender<()>)>,
) {
    let (name, waker) = (driver.name(), driver.waker());
    setup.control.add_waker(Wake(Box::new(move || D::wake(&waker))));
    let netns = setup.plan.netns_of(setup.index, &setup.spec).map(str::to_owned);
    let thread = ThreadFacts { thread_id: system::thread_id(), netns };
    let opened = worker::open(driver, setup);
    match opened {
        Err(error) => {
            let _ = report.send(Err(error));
        }
        Ok((mut worker, facts)) => {
            let (indices, volumes) = facts.into_iter().unzip();
            let facts = Facts { volumes, threads: vec![thread], ..Facts::default() };
            let _ = report.send(Ok(ReadyWorker { driver: name, facts, indices }));
            match worker.await_start(wait) {
                Some((start, alive)) => worker.run(start, alive),
                None => worker.close(),
            }
        }
    }
}

fn pin(setup: &WorkerSetup) -> Result<(), RunError> {
    let Some(cpus) = setup.spec.cpus.as_ref().filter(|cpus| !cpus.is_empty()) else { return Ok(()) };
    let cpu = cpus[setup.index % cpus.len()];
    system::pin_thread(cpu).map_err(|error| {
        SpecError::value("cpus", format!("cannot pin a worker to CPU {cpu}: {error}")).into()
    })
}

/// From now on the thread opens files and sockets in its volumes' namespace.
fn enter_netns(setup: &WorkerSetup) -> Result<(), RunError> {
    let Some(path) = setup.plan.netns_of(setup.index, &setup.spec) else { return Ok(()) };
    netns::enter(Path::new(path)).map_err(|error| {
        let blame = if error.kind() == io::ErrorKind::PermissionDenied { Blame::Host } else { Blame::User };
        let first = setup.plan.volumes_of(setup.index).next();
        let volume = first.map(|volume| setup.spec.volumes[volume as usize].name.clone());
        RunError::Volume { volume: volume.unwrap_or_default(), message: error.to_string(), blame }
    })
}

/// Reads the host's CPU times at the end of every interval, and once more when the last worker has ended.
fn sample_host(
    start: Nanos,
    schedule: RunSchedule,
    ended: &Receiver<()>,
    sender: &SyncSender<WorkerMessage>,
) {
    let mut index = 0;
    loop {
        let cut = start + schedule.cut(index);
        let over = if cut >= start + schedule.end() {
            ended.recv().is_err()
        } else {
            let rest = Duration::from_nanos(cut.saturating_sub(system::now_ns()));
            ended.recv_timeout(rest) == Err(RecvTimeoutError::Disconnected)
        };
        let cpu = system::host_cpu().unwrap_or_default();
        if sender.send(WorkerMessage::Host { index, cpu, last: over }).is_err() || over {
            return;
        }
        index += 1;
    }
}

#[cfg(test)]
mod tests;
