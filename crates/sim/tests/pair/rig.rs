//! One target, one initiator, a model of every block's contents, and the jobs in progress.

use crate::{
    choices::{BLOCK, BLOCKS, Choices, LUNS, ROGUE, TARGET},
    rogue::{POISON, Rogue},
};
use linerate_io::{Driver, Nanos, Region, RegionId, Seg, Wait};
use linerate_iscsi_initiator::{
    Credentials, DeviceId, DeviceState, Event, EventKind, Initiator, IoDone, IoError, IoOp, IoRequest,
    IoSink, LunAddress, PortalAddress, ReadInto, SessionId, SessionOptions, Sharing,
};
use linerate_iscsi_target::Worker;
use linerate_sim::{Conditions, Rng, SimDriver, SimNetwork};
use std::sync::Arc;

const SLOTS: usize = 8;
const BLOCKS_MAX: u64 = 48;
const SLOT_BYTES: u64 = BLOCKS_MAX * BLOCK;
const HOUR_NS: Nanos = 3_600_000_000_000;

/// The kind of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Into a region.
    Read,
    /// Shown in the receive buffer.
    Show,
    Write,
    WriteDurable,
    Discard,
    Sync,
}

/// The work of a slot.
#[derive(Clone, Copy, Debug)]
struct Job {
    kind: Kind,
    lun: usize,
    first: u64,
    blocks: u64,
    /// The contents of the blocks after a write; 0 is a discarded block.
    fill: u64,
    /// Its number in the order of submission.
    number: u64,
    /// Jobs from this number on are sent after it; None while it may have to wait for a retry.
    free_from: u64,
    /// It was certainly sent: a job that is sent after it has ended.
    sent: bool,
    /// Its session was lost. It may have been sent, and is sent again then: younger jobs may wait for it.
    may_be_retried: bool,
    /// It was sent for certain when its session was lost. So it is sent again, and nothing may overtake it.
    retried: bool,
}

impl Job {
    fn changes(&self) -> bool {
        matches!(self.kind, Kind::Write | Kind::WriteDurable | Kind::Discard)
    }

    fn conflicts(&self, other: &Job) -> bool {
        let overlaps = self.first < other.first + other.blocks && other.first < self.first + self.blocks;
        self.lun == other.lun && overlaps && (self.changes() || other.changes())
    }

    /// The initiator may make it wait until the older `other` has ended. A flush concerns every block.
    fn may_wait_for(&self, other: &Job) -> bool {
        let flush = self.kind == Kind::Sync || other.kind == Kind::Sync;
        let holds = other.number < self.number && (other.may_be_retried || other.free_from == u64::MAX);
        let wide = flush && self.lun == other.lun && (self.changes() || other.changes());
        holds && (wide || self.conflicts(other))
    }
}

/// The reports of the initiator.
#[derive(Default)]
pub(crate) struct Heard {
    done: Vec<IoDone>,
    /// Read data by slot.
    shown: Vec<Vec<u8>>,
    /// Sessions that were lost, and why.
    pub(crate) lost: Vec<(Option<SessionId>, String)>,
    pub(crate) timeouts: u64,
}

impl IoSink for Heard {
    fn done(&mut self, done: IoDone) {
        self.done.push(done);
    }

    fn read_data(&mut self, _device: DeviceId, slot: u32, offset_bytes: u32, bytes: &[u8]) {
        let at = offset_bytes as usize;
        self.shown[slot as usize][at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn event(&mut self, event: Event) {
        match event.kind {
            EventKind::SessionLost(why) => self.lost.push((event.session, why)),
            EventKind::CommandTimeout => self.timeouts += 1,
            EventKind::DeviceFailed(failure) => panic!("{failure}"),
            _ => {}
        }
    }
}

/// The bytes of a block with `fill`: no two words of any two blocks are equal, so that every misplaced word is found.
fn content(fill: u64) -> [u8; BLOCK as usize] {
    let mut bytes = [0; BLOCK as usize];
    if fill != 0 {
        for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
            let value = (fill << 8 | index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}

/// See the file's text.
pub(crate) struct Pair {
    pub(crate) network: SimNetwork,
    pub(crate) rng: Rng,
    worker: Worker<SimDriver>,
    driver: SimDriver,
    pub(crate) initiator: Initiator,
    pub(crate) devices: Vec<DeviceId>,
    memory: Arc<Region>,
    region: RegionId,
    jobs: [Option<Job>; SLOTS],
    /// By LUN, the required contents of each block; unknown after a failed write.
    model: Vec<[Option<u64>; BLOCKS as usize]>,
    next_fill: u64,
    /// Losses that have been noted.
    losses: usize,
    pub(crate) acknowledged: u64,
    pub(crate) failed: u64,
    pub(crate) heard: Heard,
    options: SessionOptions,
    /// An initiator beside, which behaves badly.
    pub(crate) rogue: Option<Rogue>,
}

impl Pair {
    pub(crate) fn new(seed: u64, impatient: bool) -> Self {
        let mut rng = Rng::new(seed);
        let network = SimNetwork::new(seed, Conditions::random(&mut rng, false));
        let choices = Choices::new(&mut rng, impatient);
        let mut chance = Rng::new(rng.next_u64());
        let random = move |bytes: &mut [u8]| chance.fill(bytes);
        let worker = Worker::alone(network.driver(), &choices.array, random).unwrap();
        let mut driver = network.driver();
        let mut chance = rng.clone();
        let mut initiator = Initiator::with_random(Box::new(move |bytes| chance.fill(bytes)));
        let memory = Region::anonymous(SLOTS as u64 * SLOT_BYTES).unwrap();
        let region = initiator.attach(&mut driver, &memory);
        let sharing = if choices.shared { Sharing::Shared } else { Sharing::Own };
        let mut open = |lun: &u16| {
            let portal = PortalAddress { host: "127.0.0.1".into(), port: 3260 };
            let address = LunAddress { portal, target: TARGET.into(), lun: *lun };
            let Choices { options, credentials, .. } = &choices;
            initiator.open(&mut driver, &address, options, credentials, sharing).unwrap()
        };
        let devices: Vec<DeviceId> = LUNS[..choices.luns].iter().map(&mut open).collect();
        let shown = vec![vec![0; SLOT_BYTES as usize]; SLOTS];
        Pair {
            network,
            rng,
            worker,
            driver,
            initiator,
            model: vec![[Some(0); BLOCKS as usize]; devices.len()],
            devices,
            memory,
            region,
            jobs: [None; SLOTS],
            next_fill: 1,
            losses: 0,
            acknowledged: 0,
            failed: 0,
            heard: Heard { shown, ..Heard::default() },
            options: choices.options,
            rogue: None,
        }
    }

    /// From now on a rude initiator works beside.
    pub(crate) fn add_rogue(&mut self) {
        let seed = self.rng.next_u64();
        self.rogue = Some(Rogue::new(self.network.driver(), Rng::new(seed)));
    }

    /// Ends the rogue initiator; its volume is checked together with the others.
    fn end_rogue(&mut self) {
        let Some(rogue) = &mut self.rogue else { return };
        rogue.stop();
        let portal = PortalAddress { host: "127.0.0.1".into(), port: 3260 };
        let address = LunAddress { portal, target: ROGUE.into(), lun: 0 };
        let credentials = Credentials::default();
        let opened =
            self.initiator.open(&mut self.driver, &address, &self.options, &credentials, Sharing::Own);
        self.devices.push(opened.unwrap());
        self.model.push([None; BLOCKS as usize]);
        self.open();
    }

    /// Waits until every device can be used.
    pub(crate) fn open(&mut self) {
        let ready = |pair: &Pair| {
            pair.devices.iter().all(|device| *pair.initiator.state(*device) == DeviceState::Ready)
        };
        self.wait_until("opening", ready);
    }

    /// One turn for all parts, then time moves on.
    fn turn(&mut self) {
        // Twice: the first turn may change how long the target waits.
        self.worker.turn(Wait::Forever).unwrap();
        self.worker.turn(Wait::Forever).unwrap();
        if let Some(rogue) = &mut self.rogue {
            rogue.turn();
        }
        let mut completions = Vec::new();
        loop {
            self.initiator.flush(&mut self.driver);
            let wait = self.initiator.next_deadline().map_or(Wait::Forever, Wait::Until);
            self.driver.poll(wait, &mut completions).unwrap();
            if completions.is_empty() {
                break;
            }
            for completion in completions.drain(..) {
                self.initiator.handle_completion(&mut self.driver, completion, &mut self.heard);
            }
        }
        let now = self.driver.now();
        self.initiator.on_time(&mut self.driver, now, &mut self.heard);
        self.initiator.flush(&mut self.driver);
        for done in std::mem::take(&mut self.heard.done) {
            self.judge(done);
        }
        self.note_losses();
        assert!(self.network.advance(), "nothing will ever happen again; jobs {:?}", self.jobs);
    }

    fn wait_until(&mut self, what: &str, ready: impl Fn(&Self) -> bool) {
        let limit = self.network.now() + HOUR_NS;
        while !ready(self) {
            self.turn();
            assert!(self.network.now() < limit, "{what}: nothing for an hour; jobs {:?}", self.jobs);
        }
    }

    fn note_losses(&mut self) {
        while self.losses < self.heard.lost.len() {
            let lost = self.heard.lost[self.losses].0;
            self.losses += 1;
            for job in self.jobs.iter_mut().flatten() {
                let is_lost = lost == Some(self.initiator.session_of(self.devices[job.lun]));
                job.may_be_retried |= is_lost;
                job.retried |= is_lost && job.sent;
            }
        }
        self.find_waiting();
    }

    /// Submits a job in a free slot, on blocks that no running job conflicts with, except a retry: then the initiator
    /// must keep the two in order.
    fn submit(&mut self, slot: usize, job: Job) -> bool {
        if self.jobs.iter().flatten().any(|other| job.conflicts(other) && !other.retried) {
            return false;
        }
        let offset = slot as u64 * SLOT_BYTES;
        let len_bytes = (job.blocks * BLOCK) as u32;
        let seg = Seg { region: self.region, offset, len: len_bytes };
        let op = match job.kind {
            Kind::Write | Kind::WriteDurable => {
                for block in 0..job.blocks {
                    self.memory.write(offset + block * BLOCK, &content(job.fill + block));
                }
                if job.kind == Kind::Write { IoOp::Write(seg) } else { IoOp::WriteDurable(seg) }
            }
            Kind::Read => {
                self.memory.fill(offset, len_bytes.into(), &[0xee]);
                IoOp::Read(ReadInto::Segment(seg))
            }
            Kind::Show => {
                self.heard.shown[slot].fill(0xee);
                IoOp::Read(ReadInto::Shown)
            }
            Kind::Discard => IoOp::Discard,
            Kind::Sync => IoOp::Sync,
        };
        let request = IoRequest { slot: slot as u32, op, offset_bytes: job.first * BLOCK, len_bytes };
        self.initiator.submit(self.devices[job.lun], &request).unwrap();
        self.jobs[slot] = Some(job);
        self.find_waiting();
        true
    }

    /// Finds the jobs that may have to wait, oldest first: each may wait for one that is waiting itself.
    fn find_waiting(&mut self) {
        let running: Vec<(u64, usize)> = self
            .jobs
            .iter()
            .enumerate()
            .filter_map(|(slot, job)| Some((job.as_ref()?.number, slot)))
            .collect();
        let oldest_first: std::collections::BTreeMap<u64, usize> = running.into_iter().collect();
        for slot in oldest_first.into_values() {
            let Some(job) = self.jobs[slot] else { continue };
            let waits = self.jobs.iter().flatten().any(|other| job.may_wait_for(other));
            let free_from = match (waits, job.free_from) {
                (true, _) => u64::MAX,
                (false, u64::MAX) => self.next_fill,
                (false, from) => from,
            };
            self.jobs[slot] = Some(Job { free_from, ..job });
        }
    }

    fn judge(&mut self, done: IoDone) {
        let slot = done.slot as usize;
        let job = self.jobs[slot].take().expect("an I/O ends once");
        assert_eq!(done.device, self.devices[job.lun]);
        for other in self.jobs.iter_mut().flatten().filter(|other| other.lun == job.lun) {
            let overtaken = other.retried && other.number < job.number && job.conflicts(other);
            assert!(!overtaken, "{job:?} has overtaken {other:?}");
            other.sent |= other.free_from <= job.number && other.number < job.number;
        }
        self.find_waiting();
        let blocks = job.first as usize..(job.first + job.blocks) as usize;
        if let Err(error) = done.result {
            let passes = matches!(error, IoError::Timeout | IoError::SessionLost);
            assert!(passes, "{job:?} ended with {error}");
            self.failed += 1;
            if job.changes() {
                self.model[job.lun][blocks].fill(None);
            }
            return;
        }
        self.acknowledged += 1;
        match job.kind {
            Kind::Sync => {}
            Kind::Discard => self.model[job.lun][blocks].fill(Some(0)),
            Kind::Write | Kind::WriteDurable => {
                for (index, block) in blocks.enumerate() {
                    self.model[job.lun][block] = Some(job.fill + index as u64);
                }
            }
            Kind::Read | Kind::Show => self.compare(slot, &job),
        }
    }

    fn compare(&self, slot: usize, job: &Job) {
        let len = (job.blocks * BLOCK) as usize;
        let mut found = vec![0; len];
        match job.kind {
            Kind::Show => found.copy_from_slice(&self.heard.shown[slot][..len]),
            _ => self.memory.read(slot as u64 * SLOT_BYTES, &mut found),
        }
        for (index, found) in found.chunks_exact(BLOCK as usize).enumerate() {
            let block = job.first as usize + index;
            let Some(expected) = self.model[job.lun][block] else { continue };
            let differs = content(expected).iter().zip(found).position(|(a, b)| a != b);
            if let Some(at) = differs {
                panic!(
                    "{job:?}: block {block} differs from {expected} at byte {at}: {:?}",
                    &found[at..][..8]
                );
            }
        }
    }

    fn random_job(&mut self) -> Job {
        use Kind::{Discard, Read, Show, Sync, Write, WriteDurable};
        const KINDS: [Kind; 16] = [
            Read,
            Read,
            Read,
            Read,
            Show,
            Show,
            Write,
            Write,
            Write,
            Write,
            Write,
            Write,
            Write,
            WriteDurable,
            Discard,
            Sync,
        ];
        let kind = KINDS[self.rng.range(0, KINDS.len() as u64 - 1) as usize];
        let blocks = if self.rng.chance(40) { self.rng.range(1, 8) } else { self.rng.range(1, BLOCKS_MAX) };
        let first = self.rng.range(0, BLOCKS - blocks);
        let fill = self.next_fill;
        self.next_fill += BLOCKS_MAX;
        let lun = self.rng.range(0, self.devices.len() as u64 - 1) as usize;
        Job {
            kind,
            lun,
            first,
            blocks,
            fill,
            number: fill,
            free_from: fill,
            sent: false,
            may_be_retried: false,
            retried: false,
        }
    }

    /// Keeps random jobs going until `count` have ended.
    pub(crate) fn work(&mut self, count: u64) {
        let end = self.acknowledged + self.failed + count;
        let limit = self.network.now() + HOUR_NS;
        while self.acknowledged + self.failed < end {
            for slot in 0..SLOTS {
                if self.jobs[slot].is_none() {
                    let job = self.random_job();
                    self.submit(slot, job);
                }
            }
            self.turn();
            assert!(self.network.now() < limit, "no progress for an hour; jobs {:?}", self.jobs);
        }
    }

    /// The last writes of the rogue initiator must be present. Its volume was the last one that was read.
    fn check_rogue(&self) {
        let Some(rogue) = &self.rogue else { return };
        for (block, fill) in rogue.expected().enumerate() {
            let Some(fill) = fill else { continue };
            let mut found = [0; BLOCK as usize];
            let (slot, at) = (block as u64 / BLOCKS_MAX, block as u64 % BLOCKS_MAX);
            self.memory.read(slot * SLOT_BYTES + at * BLOCK, &mut found);
            let differs = found.chunks_exact(8).position(|word| word != fill.to_le_bytes());
            assert_eq!(differs, None, "block {block} of the rude initiator was {fill:#x}");
        }
    }

    /// Data that was sent for a task after its end was answered must be nowhere.
    fn look_for_poison(&self) {
        let mut bytes = vec![0; (SLOTS as u64 * SLOT_BYTES) as usize];
        self.memory.read(0, &mut bytes);
        let found = bytes.chunks_exact(8).position(|word| word == POISON.to_le_bytes());
        assert_eq!(found, None, "data of a task that is over reached a volume");
    }

    /// Reads every LUN back.
    pub(crate) fn verify(&mut self) {
        let idle = |pair: &Pair| pair.jobs.iter().all(Option::is_none);
        self.wait_until("draining", idle);
        self.end_rogue();
        for lun in 0..self.devices.len() {
            for (slot, first) in (0..BLOCKS).step_by(BLOCKS_MAX as usize).enumerate() {
                let blocks = BLOCKS_MAX.min(BLOCKS - first);
                let job = Job { kind: Kind::Read, lun, first, blocks, ..self.random_job() };
                assert!(self.submit(slot, job));
            }
            self.wait_until("verifying", idle);
            self.look_for_poison();
        }
        self.check_rogue();
        let forgotten = |pair: &Self| (pair.worker.stats().tasks, pair.worker.stats().pool_bytes);
        self.wait_until("giving back", |pair| forgotten(pair) == (0, 0) || pair.rogue.is_none());
        assert_eq!(forgotten(self), (0, 0), "tasks and buffers have been forgotten");
    }
}
