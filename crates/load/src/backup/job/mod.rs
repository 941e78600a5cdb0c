//! One phase of an image backup on real volumes: create, full, incremental, restore. Open this file first.
//!
//! [`BackupJob::start`] opens the volumes and starts a thread; [`BackupJob::next_interval`] and [`BackupJob::finish`] have
//! the form of a run's. The I/Os are those of [`BackupLoad`](super::BackupLoad), on a VHDX image (`linerate-vhdx`) on any
//! kind of volume that runs use.
//!
//! - `spec.rs`: the input. `phases.rs`: what a phase does.
//! - `queue.rs`: I/Os in flight. `image_file.rs`: the image's volume as a file. `record.rs`: measurements.
//! - `parts.rs`: the names of results. `control.rs`: what the thread and its owner share.
//!
//! The data are generated: each 4 KiB of a used cluster has its address, the number of the backup that wrote it, and the
//! seed. So a restore can verify all of them without another copy. Data of a source are read and then replaced.

mod control;
mod image_file;
mod parts;
mod phases;
mod queue;
mod record;
mod spec;

pub use parts::{STREAMS, VOLUMES};
pub use record::JobTotals;
pub use spec::{BackupJobSpec, BackupPhase, ImageKind};

use super::{BackupIo, BackupLoad, BackupOp};
use crate::{
    backend::{Backends, OpenedVolume, VolumeToOpen},
    error::RunError,
    facts::{Facts, ThreadFacts, VolumeFacts},
    record::{Interval, RunOutcome, Summary},
    spec::{DriverChoice, VolumeSpec},
    worker::failed,
};
use control::{JobControl, JobMessage};
use linerate_blame::Blame;
use linerate_io::{Driver, Nanos, Preference, net::netns, open_driver, system, with_driver};
use linerate_vhdx::VhdxError;
use parts::Role;
use phases::Problem;
use queue::{IoQueue, JobVolume};
use record::{JobEnd, JobRecorder};
use std::{
    cell::RefCell,
    path::Path,
    rc::Rc,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvError, RecvTimeoutError, Sender, SyncSender},
    },
    thread,
    time::Duration,
};

/// How long volumes may take to close: logouts.
const CLOSE_NS: Nanos = 1_000_000_000;

/// A running job. Drop stops it.
#[derive(Debug)]
pub struct BackupJob {
    facts: Facts,
    data_bytes: u64,
    control: Arc<JobControl>,
    receiving: Mutex<Receiving>,
}

#[derive(Debug)]
struct Receiving {
    messages: Receiver<JobMessage>,
    end: Option<JobEnd>,
    /// The thread stays until this is dropped: the system knows the CPU time of threads that exist.
    stay: Option<Sender<()>>,
}

impl BackupJob {
    /// Opens the volumes and starts the phase.
    pub fn start(spec: BackupJobSpec) -> Result<Self, RunError> {
        let load = spec.load()?;
        let data_bytes = data_bytes(&spec, &load);
        let (sender, messages) = mpsc::channel();
        let control = Arc::new(JobControl::new(sender));
        let (report, ready) = mpsc::sync_channel(1);
        let shared = Arc::clone(&control);
        let (stay, leave) = mpsc::channel();
        thread::Builder::new()
            .name("backup".into())
            .spawn(move || {
                work(&spec, &load, &shared, &report);
                let _: Result<(), RecvError> = leave.recv();
            })
            .map_err(|error| RunError::Host(format!("cannot start a thread: {error}")))?;
        let facts =
            ready.recv().map_err(|_| RunError::Internal("it ended while it opened volumes".into()))??;
        let receiving = Mutex::new(Receiving { messages, end: None, stay: Some(stay) });
        Ok(Self { facts, data_bytes, control, receiving })
    }

    /// The actual settings: negotiated and read back.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Bytes of data that the phase copies, or makes zeros.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// The next interval; None when the timeout passes first, or no further interval will come ([`Self::finished`]).
    pub fn next_interval(&self, timeout: Duration) -> Option<Interval> {
        let mut receiving = self.receiving();
        if receiving.end.is_some() {
            return None;
        }
        match receiving.messages.recv_timeout(timeout) {
            Ok(JobMessage::Interval(interval)) => return Some(*interval),
            Ok(JobMessage::End(end)) => receiving.end = Some(*end),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => receiving.end = Some(JobEnd::of_a_defect()),
        }
        None
    }

    /// No further interval will come.
    pub fn finished(&self) -> bool {
        self.receiving().end.is_some()
    }

    /// Starts no more I/Os; the job ends within 200 ms, even if a volume hangs. Returns at once.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Waits for the end. Returns the measurements of the whole job, and how it ended.
    pub fn finish(&self) -> Summary {
        self.wait().summary
    }

    /// Waits for the end. Returns what is not an I/O of data.
    pub fn totals(&self) -> JobTotals {
        self.wait().totals
    }

    fn wait(&self) -> JobEnd {
        let mut receiving = self.receiving();
        receiving.stay = None;
        loop {
            if let Some(end) = &receiving.end {
                return end.clone();
            }
            match receiving.messages.recv() {
                Ok(JobMessage::Interval(_)) => {}
                Ok(JobMessage::End(end)) => receiving.end = Some(*end),
                Err(_) => receiving.end = Some(JobEnd::of_a_defect()),
            }
        }
    }

    fn receiving(&self) -> MutexGuard<'_, Receiving> {
        self.receiving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BackupJob {
    fn drop(&mut self) {
        self.control.stop();
    }
}

/// Bytes that the phase is about.
fn data_bytes(spec: &BackupJobSpec, load: &BackupLoad) -> u64 {
    let sum = |op: BackupOp, ios: &mut dyn Iterator<Item = BackupIo>| {
        ios.filter(|io| io.op == op).map(|io| u64::from(io.bytes)).sum()
    };
    match spec.phase {
        BackupPhase::Create if spec.kind == ImageKind::Dynamic => 0,
        BackupPhase::Create => spec.backup.image_bytes,
        BackupPhase::Full => sum(BackupOp::WriteData, &mut load.full()),
        BackupPhase::Incremental => sum(BackupOp::WriteData, &mut load.incremental(spec.incrementals)),
        BackupPhase::Restore => sum(BackupOp::ReadImage, &mut load.restore(spec.incrementals)),
    }
}

/// The thread of a job.
fn work(
    spec: &BackupJobSpec,
    load: &BackupLoad,
    control: &Arc<JobControl>,
    report: &SyncSender<Result<Facts, RunError>>,
) {
    let entered = spec.image.netns.as_ref().map_or(Ok(()), |path| netns::enter(Path::new(path)));
    let preference = match spec.driver {
        DriverChoice::Auto => Preference::Auto,
        DriverChoice::IoUring => Preference::IoUring,
        DriverChoice::Epoll => Preference::Epoll,
    };
    let driver = entered
        .map_err(|error| RunError::Host(error.to_string()))
        .and_then(|()| open_driver(preference).map_err(|error| RunError::Host(error.to_string())));
    match driver {
        Ok(any) => with_driver!(any, |driver| work_on(driver, spec, load, control, report)),
        Err(error) => {
            let _ = report.send(Err(error));
        }
    }
}

fn work_on<D: Driver>(
    mut driver: D,
    spec: &BackupJobSpec,
    load: &BackupLoad,
    control: &Arc<JobControl>,
    report: &SyncSender<Result<Facts, RunError>>,
) {
    let waker = driver.waker();
    control.set_wake(move || D::wake(&waker));
    let name = driver.name();
    let mut backends = Backends::default();
    let tsc_hz = system::tsc_hz().map_or(0.0, |hz| hz as f64);
    let opened = open_volumes(&mut driver, &mut backends, spec).and_then(|volumes| {
        let facts = facts_of(spec, &volumes, name, tsc_hz);
        let phase = (Arc::clone(control), spec.phase.words());
        let recorder = JobRecorder::new(driver.now(), spec.interval_s, tsc_hz);
        let queue = IoQueue::new(driver, backends, volumes, spec.backup.transfer_bytes, phase, recorder);
        let queue = queue.map_err(|error| {
            RunError::Host(format!("no memory for I/O buffers: {error}; lower outstanding or transfer_bytes"))
        })?;
        Ok((queue, facts))
    });
    let queue = match opened {
        Ok((queue, facts)) => {
            let _ = report.send(Ok(facts));
            Rc::new(RefCell::new(queue))
        }
        Err(error) => {
            let _ = report.send(Err(error));
            return;
        }
    };
    let result = phases::carry_out(&queue, spec, load);
    let mut queue = queue.borrow_mut();
    queue.drain();
    let last = queue.cut();
    control.send(last);
    let outcome = match (queue.failure(), result) {
        (Some(failure), _) => RunOutcome::Failed(failure.clone()),
        (None, Ok(())) => RunOutcome::Completed,
        (None, Err(problem)) => ended(spec.phase, problem),
    };
    let summary = Summary { total: queue.recorder.total(), outcome };
    control.end(JobEnd { summary, totals: queue.recorder.totals });
    queue.close(CLOSE_NS);
}

/// How a job ended that has no failed I/O.
fn ended(phase: BackupPhase, problem: Problem) -> RunOutcome {
    let (volume, phase) = (VOLUMES[Role::Image as usize].to_owned(), phase.words());
    match problem {
        // The stop request made an I/O of the image end.
        Problem::Ended | Problem::Image(VhdxError::File { .. }) => RunOutcome::Stopped,
        Problem::Image(error) => {
            let (message, blame) = (format!("{phase}: {error}"), error.blame());
            RunOutcome::Failed(RunError::Volume { volume, message, blame })
        }
        Problem::Miscompare(wrong) => {
            RunOutcome::Failed(RunError::Miscompare { volume, message: format!("{phase}: {wrong}") })
        }
    }
}

/// Opens all volumes; LUNs and shares log in in parallel.
fn open_volumes<D: Driver>(
    driver: &mut D,
    backends: &mut Backends,
    spec: &BackupJobSpec,
) -> Result<Vec<JobVolume>, RunError> {
    let mut started = Vec::new();
    for (index, (volume, key)) in spec.volumes().enumerate() {
        let role = role_of(key);
        let creates = role == Role::Image && spec.phase == BackupPhase::Create;
        let volume = VolumeSpec {
            name: key.to_owned(),
            create: creates || (role == Role::Target && volume.create),
            size_bytes: match role {
                // A new file is empty: the image gives it its length.
                Role::Image if creates => Some(0),
                Role::Target if volume.create => Some(spec.backup.image_bytes),
                _ => None,
            },
            ..volume.clone()
        };
        let writes = match role {
            Role::Image => spec.phase != BackupPhase::Restore,
            Role::Source => false,
            Role::Target => true,
        };
        let opening =
            VolumeToOpen { spec: &volume, index: index as u32, writes, may_create: true, array_blocks: None };
        let opened = backends.open(driver, &opening).map_err(|error| failed(&volume, error))?;
        started.push((role, volume, opened));
    }
    backends.wait_ready(driver).map_err(|error| RunError::Host(error.message))?;
    let finish = |(role, volume, (kind, opened)): (Role, VolumeSpec, _)| {
        let opened = backends.finish_opening(driver, kind, opened).map_err(|error| failed(&volume, error))?;
        check_volume(role, spec, &opened)?;
        let (depth, is_durable) = (volume.outstanding, volume.durable_writes);
        Ok(JobVolume { role, kind, opened, depth, is_durable, in_flight: 0 })
    };
    started.into_iter().map(finish).collect()
}

fn role_of(key: &str) -> Role {
    match key {
        "source" => Role::Source,
        "target" => Role::Target,
        _ => Role::Image,
    }
}

/// Sizes of the volume must suit the job.
fn check_volume(role: Role, spec: &BackupJobSpec, opened: &OpenedVolume) -> Result<(), RunError> {
    let (longest, most) = (u64::from(spec.backup.transfer_bytes), opened.max_transfer_bytes);
    let (has, needs) = (opened.capacity_bytes, spec.backup.image_bytes);
    let message = if most > 0 && longest > most {
        format!(
            "I/Os of {longest} bytes are larger than the volume takes at once ({most} bytes); use a smaller --transfer"
        )
    } else if role != Role::Image && has < needs {
        format!("the volume has {has} bytes, fewer than the {needs} of the image; use a smaller --size")
    } else {
        return Ok(());
    };
    let volume = VOLUMES[role as usize].to_owned();
    Err(RunError::Volume { volume, message, blame: Blame::User })
}

fn facts_of(spec: &BackupJobSpec, volumes: &[JobVolume], driver: &str, tsc_hz: f64) -> Facts {
    let of_volume = |volume: &JobVolume| VolumeFacts {
        name: VOLUMES[volume.role as usize].into(),
        kind: volume.opened.kind.into(),
        worker: 0,
        size_bytes: spec.backup.image_bytes,
        capacity_bytes: volume.opened.capacity_bytes,
        block_bytes: volume.opened.block_bytes,
        session: volume.opened.session.clone(),
    };
    Facts {
        driver: driver.into(),
        workers: 1,
        threads: vec![ThreadFacts { thread_id: system::thread_id(), netns: spec.image.netns.clone() }],
        tsc_hz,
        volumes: volumes.iter().map(of_volume).collect(),
        ..Facts::default()
    }
}
