//! Drives that fail, run out of space and lose power, and their clock.

use crate::{
    clients::{Volume, work},
    oracle::Oracle,
};
use bytes::BytesMut;
use fastrand::Rng;
use futures::future;
use linerate_io::Nanos;
use linerate_storage::{
    Disk, DiskError, Executor, Runtime,
    disk::{CrashDisk, FaultyDisk, FillingDisk, TimeoutDisk},
};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

/// Longest time of an operation of a drive.
const DELAY_NS: Nanos = 2_000_000;
/// A drive that takes longer counts as failed.
const TIMEOUT_NS: Nanos = 50_000_000;
/// Time after which a quick drive takes its time, and after which it is quick again.
const QUICK_SPAN_NS: Nanos = 5_000_000;
/// Longest time for which a file system is full.
pub(crate) const FULL_NS: Nanos = 100_000_000;
/// Operations that were requested while it was full end within this time afterwards.
const AFTERMATH_NS: Nanos = 2_000_000_000;

/// A drive: unflushed bytes may be lost in a power cut, and there are other faults of drives.
#[derive(Clone)]
pub(crate) struct Drive {
    bytes: CrashDisk,
    /// The file system of a thin drive.
    filling: Option<FillingDisk>,
    pub(crate) faulty: FaultyDisk,
    watched: Rc<TimeoutDisk>,
}

impl Drive {
    pub(crate) fn new(
        runtime: &Runtime,
        name: &str,
        size_bytes: u64,
        block_bytes: u32,
        rng: &mut Rng,
    ) -> Self {
        let bytes = CrashDisk::new(runtime, name, size_bytes, block_bytes, rng.u64(..));
        let filling = (rng.u8(0..3) > 0).then(|| FillingDisk::new(Rc::new(bytes.clone()), rng.u64(..)));
        if let Some(filling) = filling.as_ref().filter(|_| rng.u8(0..5) == 0) {
            filling.ignore_reservations();
        }
        Self::over(runtime, bytes, filling, rng)
    }

    /// A drive that is quick at times, or one that never is.
    pub(crate) fn quick_or_not(
        is_quick: bool,
        runtime: &Runtime,
        name: &str,
        size_bytes: u64,
        block_bytes: u32,
        rng: &mut Rng,
    ) -> Self {
        if !is_quick {
            return Self::new(runtime, name, size_bytes, block_bytes, rng);
        }
        let bytes = CrashDisk::new(runtime, name, size_bytes, block_bytes, rng.u64(..));
        bytes.set_quick_spans(QUICK_SPAN_NS);
        Self::over(runtime, bytes, None, rng)
    }

    /// A drive that takes space as it is written, and keeps it.
    pub(crate) fn thin(
        runtime: &Runtime,
        name: &str,
        size_bytes: u64,
        block_bytes: u32,
        rng: &mut Rng,
    ) -> Self {
        let bytes = CrashDisk::new(runtime, name, size_bytes, block_bytes, rng.u64(..));
        let filling = FillingDisk::new(Rc::new(bytes.clone()), rng.u64(..));
        Self::over(runtime, bytes, Some(filling), rng)
    }

    /// Makes its file system full, or frees space again.
    pub(crate) fn set_full(&self, is_full: bool) {
        if let Some(filling) = &self.filling {
            filling.set_full(is_full);
        }
    }

    fn over(runtime: &Runtime, bytes: CrashDisk, filling: Option<FillingDisk>, rng: &mut Rng) -> Self {
        bytes.set_delay(1000, rng.u64(1000..DELAY_NS));
        let inner: Rc<dyn Disk> = match &filling {
            Some(filling) => Rc::new(filling.clone()),
            None => Rc::new(bytes.clone()),
        };
        let faulty = FaultyDisk::new(runtime, inner, rng.u64(..));
        let watched = Rc::new(TimeoutDisk::new(runtime, Rc::new(faulty.clone()), TIMEOUT_NS));
        Self { bytes, filling, faulty, watched }
    }

    pub(crate) fn disk(&self) -> Rc<dyn Disk> {
        Rc::clone(&self.watched) as Rc<dyn Disk>
    }

    /// Whether it works.
    pub(crate) fn is_sound(&self) -> bool {
        !self.faulty.has_failed() && !self.faulty.is_hanging() && !self.watched.is_fenced()
    }

    /// It hangs: for good, or for some time, mostly until it counts as failed, so that its operations are done late.
    pub(crate) fn hang(&self, runtime: &Runtime, rng: &mut Rng) {
        self.faulty.hang();
        let (drive, sleeper) = (self.clone(), runtime.clone());
        let late = (rng.u8(0..3) > 0).then(|| rng.u64(0..4 * TIMEOUT_NS));
        runtime.spawn(async move {
            if let Some(late) = late {
                sleeper.sleep(late).await;
                return drive.faulty.answer();
            }
            let asked = drive.watched.read(0, BytesMut::zeroed(4096));
            let heard = future::select(asked, Box::pin(sleeper.sleep(2 * TIMEOUT_NS))).await;
            let is_given_up = matches!(heard, future::Either::Left((Err(_), _)));
            assert!(is_given_up, "{} does not answer, and is not given up", drive.watched.name());
        });
    }

    /// The drive after a power cut, with another clock. A failed drive stays failed; a drive that hung is back, with
    /// its contents.
    #[must_use]
    pub(crate) fn after_power_cut(&self, runtime: &Runtime, rng: &mut Rng) -> Self {
        let bytes = self.bytes.power_cut(runtime, rng);
        let filling = self.filling.as_ref().map(|own| own.around(Rc::new(bytes.clone()), rng.u64(..)));
        let drive = Self::over(runtime, bytes, filling, rng);
        if self.faulty.has_failed() {
            drive.faulty.fail();
        }
        drive
    }
}

/// When file systems are full, and which errors this permits.
#[derive(Clone, Default)]
pub(crate) struct Shortage(Rc<Cell<Nanos>>);

impl Shortage {
    /// The file systems of some thin drives are full for a while.
    pub(crate) fn begin<'a>(
        &self,
        runtime: &Runtime,
        drives: impl Iterator<Item = &'a Drive>,
        rng: &mut Rng,
    ) {
        let all = rng.bool();
        let chosen = drives.filter_map(|drive| drive.filling.clone()).filter(|_| all || rng.bool());
        let chosen: Vec<_> = chosen.collect();
        for filling in &chosen {
            filling.set_full(true);
        }
        self.end_some_time(runtime, chosen, rng);
    }

    /// The same file systems are full after a power cut, if the array can be started with them.
    pub(crate) fn go_on<'a>(
        &self,
        runtime: &Runtime,
        drives: impl Iterator<Item = &'a Drive>,
        rng: &mut Rng,
    ) {
        let full = drives.filter_map(|drive| drive.filling.clone()).filter(FillingDisk::is_full);
        let (stay, end): (Vec<_>, Vec<_>) = full.partition(FillingDisk::honours_reservations);
        for filling in &end {
            filling.set_full(false);
        }
        self.end_some_time(runtime, stay, rng);
    }

    fn end_some_time(&self, runtime: &Runtime, full: Vec<FillingDisk>, rng: &mut Rng) {
        let lasts = rng.u64(0..FULL_NS);
        self.0.set(self.0.get().max(runtime.now() + lasts + AFTERMATH_NS));
        let sleeper = runtime.clone();
        runtime.spawn(async move {
            sleeper.sleep(lasts).await;
            for filling in &full {
                filling.set_full(false);
            }
        });
    }

    /// Whether an error is permitted.
    pub(crate) fn excuses(&self, runtime: &Runtime, error: &DiskError) -> bool {
        matches!(error, DiskError::NoSpace(_)) && runtime.now() < self.0.get()
    }
}

/// Runs a future to its end in virtual time.
pub(crate) fn run<T: 'static>(executor: &mut Executor, work: impl Future<Output = T> + 'static) -> T {
    executor.run_in_virtual_time(work).expect("a deadlock: everything waits for something else")
}

/// Lets time pass.
pub(crate) fn pass(executor: &mut Executor, len: Nanos) {
    let runtime = executor.runtime();
    run(executor, async move { runtime.sleep(len).await });
}

/// Starts some clients on a volume. The future ends when all of them have.
pub(crate) fn start_clients(
    runtime: &Runtime,
    volume: &Volume,
    rng: &mut Rng,
    clients: usize,
    operations: usize,
) -> impl Future<Output = ()> + use<> {
    let clients: Vec<_> =
        (0..clients).map(|_| work(runtime.clone(), volume.clone(), rng.fork(), operations)).collect();
    let (done, all) = futures::channel::oneshot::channel();
    runtime.spawn(async move {
        future::join_all(clients).await;
        let _ = done.send(());
    });
    async move { all.await.expect("the clients were dropped") }
}

/// An oracle to be shared.
pub(crate) fn oracle(blocks: usize, block_bytes: usize) -> Rc<RefCell<Oracle>> {
    Rc::new(RefCell::new(Oracle::new(blocks, block_bytes)))
}
