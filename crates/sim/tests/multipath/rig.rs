//! One array with several portals, one initiator with a path to each, and a model of every block's contents.

use crate::faults::Faults;
use linerate_io::{Driver, Nanos, Region, RegionId, Seg, Wait};
use linerate_iscsi_initiator::{
    Credentials, DeviceId, DeviceState, Event, EventKind, Failback, Initiator, IoDone, IoOp, IoRequest,
    IoSink, LunAddress, MultipathOptions, PathSpec, Policy, PortalAddress, ReadInto, SessionOptions,
    SubmitError,
};
use linerate_iscsi_target::{ArrayConfig, Worker};
use linerate_sim::{Conditions, Rng, SimDriver, SimNetwork};
use serde_json::json;
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

const TARGET: &str = "iqn.2026-11.lab.linerate:paths";
const BLOCK: u64 = 512;
/// Few blocks, so that a late old write finds a newer one in its place.
const BLOCKS: u64 = 24;
const BLOCKS_MAX: u64 = 4;
const SLOTS: usize = 8;
const SLOT_BYTES: u64 = BLOCKS_MAX * BLOCK;
pub(crate) const SECOND_NS: Nanos = 1_000_000_000;
const HOUR_NS: Nanos = 3600 * SECOND_NS;
/// Until an I/O that was in flight on a failed path has completed on another one.
const FAILOVER_NS: Nanos = 1_500_000_000;

/// Around a fault the slots do not pause, so that I/Os are in flight.
const RUSH_NS: Nanos = 5_000_000;

/// The work of a slot.
#[derive(Clone, Copy, Debug)]
struct Job {
    write: bool,
    first: u64,
    blocks: u64,
    /// The contents of the blocks after a write.
    fill: u64,
}

impl Job {
    fn conflicts(&self, other: &Job) -> bool {
        let overlaps = self.first < other.first + other.blocks && other.first < self.first + self.blocks;
        overlaps && (self.write || other.write)
    }
}

/// The reports of the initiator.
#[derive(Default)]
struct Heard {
    done: Vec<IoDone>,
    events: Vec<Event>,
}

impl IoSink for Heard {
    fn done(&mut self, done: IoDone) {
        self.done.push(done);
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// The bytes of a block that holds `fill`.
fn content(fill: u64) -> [u8; BLOCK as usize] {
    let mut bytes = [0; BLOCK as usize];
    if fill != 0 {
        for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(
                &((fill << 8 | index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes(),
            );
        }
    }
    bytes
}

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) acknowledged: u64,
    pub(crate) faults: u64,
    pub(crate) paths_failed: u64,
    pub(crate) requeued: u64,
    pub(crate) failovers: u64,
    /// The longest time from a fault to the first I/O that completed on another path.
    pub(crate) failover_max_ns: Nanos,
    pub(crate) ended_at: Nanos,
}

/// A portal, which is one path, and its group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) address: IpAddr,
    pub(crate) group: u16,
}

/// See the file's text.
pub(crate) struct Rig {
    pub(crate) network: SimNetwork,
    pub(crate) rng: Rng,
    pub(crate) worker: Worker<SimDriver>,
    pub(crate) places: Vec<Place>,
    faults: Faults,
    driver: SimDriver,
    initiator: Initiator,
    device: DeviceId,
    memory: Arc<Region>,
    region: RegionId,
    jobs: [Option<Job>; SLOTS],
    /// The end of each slot's pause.
    rests: [Nanos; SLOTS],
    model: [u64; BLOCKS as usize],
    next_fill: u64,
    heard: Heard,
    /// The times of path failures that no other path has replaced yet.
    open_failovers: Vec<Option<Nanos>>,
    pub(crate) outcome: Outcome,
}

impl Rig {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let network = SimNetwork::new(seed, conditions(&mut rng));
        let places = places(&mut rng);
        let mut chance = Rng::new(rng.next_u64());
        let random = move |bytes: &mut [u8]| chance.fill(bytes);
        let worker = Worker::alone(network.driver(), &array(&mut rng, &places), random).unwrap();
        let mut driver = network.driver();
        let mut chance = rng.clone();
        let mut initiator = Initiator::with_random(Box::new(move |bytes| chance.fill(bytes)));
        let memory = Region::anonymous(SLOTS as u64 * SLOT_BYTES).unwrap();
        let region = initiator.attach(&mut driver, &memory);
        let paths: Vec<PathSpec> = places.iter().map(path).collect();
        let portal = paths[0].portal.clone().unwrap();
        let address = LunAddress { portal, target: TARGET.into(), lun: 0 };
        let (multipath, options) = (multipath(&mut rng), session(&mut rng));
        let credentials = Credentials::default();
        let device = initiator.open_paths(&mut driver, &address, &paths, &multipath, &options, &credentials);
        Rig {
            faults: Faults::new(places.len(), network.now()),
            open_failovers: vec![None; places.len()],
            network,
            rng,
            worker,
            places,
            driver,
            initiator,
            device: device.unwrap(),
            memory,
            region,
            jobs: [None; SLOTS],
            rests: [0; SLOTS],
            model: [0; BLOCKS as usize],
            next_fill: 1,
            heard: Heard::default(),
            outcome: Outcome::default(),
        }
    }

    /// Waits until the device can be used.
    pub(crate) fn open(&mut self) {
        self.wait_until("opening", |rig| *rig.initiator.state(rig.device) == DeviceState::Ready);
    }

    /// One turn for all parts, then time moves on, to `until` at most.
    fn turn(&mut self) {
        // Twice: the first turn may change how long the target waits.
        self.worker.turn(Wait::Forever).unwrap();
        self.worker.turn(Wait::Forever).unwrap();
        let mut completions = Vec::new();
        loop {
            self.initiator.flush(&mut self.driver);
            let wait = self.next_wake().map_or(Wait::Forever, Wait::Until);
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
        for event in std::mem::take(&mut self.heard.events) {
            self.note(event);
        }
        for done in std::mem::take(&mut self.heard.done) {
            self.judge(done);
        }
        assert!(self.network.advance(), "nothing will ever happen again; jobs {:?}", self.jobs);
    }

    /// When the initiator, a pausing slot or the schedule must continue.
    fn next_wake(&self) -> Option<Nanos> {
        let now = self.network.now();
        let resting = self.rests.iter().copied().chain([self.faults.next() - RUSH_NS, self.faults.next()]);
        resting.chain(self.initiator.next_deadline()).filter(|at| *at > now).min()
    }

    fn wait_until(&mut self, what: &str, ready: impl Fn(&Self) -> bool) {
        let limit = self.network.now() + HOUR_NS;
        while !ready(self) {
            self.turn();
            assert!(self.network.now() < limit, "{what}: nothing for an hour; jobs {:?}", self.jobs);
        }
    }

    fn note(&mut self, event: Event) {
        match event.kind {
            EventKind::PathFailed { path, requeued, .. } => {
                self.outcome.paths_failed += 1;
                self.outcome.requeued += u64::from(requeued);
                let since = self.faults.since(path).filter(|_| requeued > 0);
                // Failovers to this path from a path that failed before start again. A reset has no duration: its fault
                // is over when it is seen.
                let again = if requeued > 0 { since.unwrap_or(event.at) } else { 0 };
                for open in self.open_failovers.iter_mut().flatten() {
                    *open = (*open).max(again);
                }
                self.open_failovers[path] = self.open_failovers[path].or(since);
            }
            EventKind::FailoverDone { path, .. } => {
                self.outcome.failovers += 1;
                if let Some(since) = self.open_failovers[path].take() {
                    let took_ns = event.at - since;
                    self.outcome.failover_max_ns = self.outcome.failover_max_ns.max(took_ns);
                    assert!(took_ns <= FAILOVER_NS, "{took_ns} ns from the fault to the first I/O elsewhere");
                }
            }
            EventKind::NoPath => panic!("a path lives: {}", self.faults),
            EventKind::DeviceFailed(failure) => panic!("{failure}"),
            _ => {}
        }
    }

    /// Starts a job in a free slot, on blocks that no running job conflicts with.
    fn submit(&mut self, slot: usize, job: Job) -> bool {
        if self.jobs.iter().flatten().any(|other| job.conflicts(other)) {
            return false;
        }
        let offset = slot as u64 * SLOT_BYTES;
        let len_bytes = (job.blocks * BLOCK) as u32;
        let seg = Seg { region: self.region, offset, len: len_bytes };
        let op = if job.write {
            for block in 0..job.blocks {
                self.memory.write(offset + block * BLOCK, &content(job.fill + block));
            }
            IoOp::Write(seg)
        } else {
            self.memory.fill(offset, len_bytes.into(), &[0xee]);
            IoOp::Read(ReadInto::Segment(seg))
        };
        let request = IoRequest { slot: slot as u32, op, offset_bytes: job.first * BLOCK, len_bytes };
        match self.initiator.submit(self.device, &request) {
            Ok(()) => self.jobs[slot] = Some(job),
            Err(SubmitError::Full) => return false,
            Err(error) => panic!("{error}"),
        }
        true
    }

    fn judge(&mut self, done: IoDone) {
        let slot = done.slot as usize;
        let job = self.jobs[slot].take().expect("an I/O ends once");
        if let Err(error) = done.result {
            panic!("{job:?} ended with \"{error}\" while a path lived: {}", self.faults);
        }
        self.outcome.acknowledged += 1;
        let now = self.network.now();
        let rush = now + RUSH_NS >= self.faults.next();
        self.rests[slot] = if rush { now } else { now + self.rng.range(5_000_000, 60_000_000) };
        for index in 0..job.blocks {
            let block = (job.first + index) as usize;
            if job.write {
                self.model[block] = job.fill + index;
                continue;
            }
            let mut found = [0; BLOCK as usize];
            self.memory.read(slot as u64 * SLOT_BYTES + index * BLOCK, &mut found);
            let expected = self.model[block];
            assert!(found == content(expected), "block {block} is wrong: it does not hold write {expected}");
        }
    }

    fn random_job(&mut self) -> Job {
        let blocks = self.rng.range(1, BLOCKS_MAX);
        let first = self.rng.range(0, BLOCKS - blocks);
        let fill = self.next_fill;
        self.next_fill += BLOCKS_MAX;
        Job { write: self.rng.chance(60), first, blocks, fill }
    }

    /// Keeps random jobs running for a time, while faults begin and end.
    pub(crate) fn work(&mut self, duration_ns: Nanos) {
        let end = self.network.now() + duration_ns;
        while self.network.now() < end {
            for slot in 0..SLOTS {
                if self.jobs[slot].is_none() && self.rests[slot] <= self.network.now() {
                    let job = self.random_job();
                    self.submit(slot, job);
                }
            }
            let mut faults = std::mem::take(&mut self.faults);
            self.outcome.faults += faults.advance(self);
            self.faults = faults;
            self.turn();
        }
    }

    /// Heals everything, waits until all PDUs in transit have arrived, and reads every block back.
    pub(crate) fn verify(&mut self) {
        let mut faults = std::mem::take(&mut self.faults);
        faults.heal_all(self);
        self.faults = faults;
        self.wait_until("draining", |rig| rig.jobs.iter().all(Option::is_none));
        let rested = self.network.now() + 20 * SECOND_NS;
        self.wait_until("resting", |rig| rig.network.now() >= rested);
        for first in (0..BLOCKS).step_by(BLOCKS_MAX as usize) {
            let job = Job { write: false, first, blocks: BLOCKS_MAX, fill: 0 };
            self.wait_until("verifying", |rig| rig.jobs[0].is_none());
            assert!(self.submit(0, job));
        }
        self.wait_until("verifying", |rig| rig.jobs[0].is_none());
        assert_eq!(self.worker.stats().tasks, 0, "a task has been forgotten");
        self.outcome.ended_at = self.network.now();
    }
}

fn one_of<T: Copy>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.range(0, values.len() as u64 - 1) as usize]
}

fn conditions(rng: &mut Rng) -> Conditions {
    Conditions {
        delay_ns: one_of(rng, &[50_000, 500_000, 2_000_000]),
        jitter_ns: one_of(rng, &[0, 100_000, 2_000_000]),
        segment_bytes: one_of(rng, &[200, 1460, 65_536]),
        ..Conditions::calm()
    }
}

/// Two to four portals in one group, two groups, or a group each.
fn places(rng: &mut Rng) -> Vec<Place> {
    let count = rng.range(2, 4);
    let groups = one_of(rng, &[1, 2, count]);
    let place = |index: u64| Place {
        address: Ipv4Addr::new(10, 0, index as u8, 1).into(),
        group: (index % groups + 1) as u16,
    };
    (0..count).map(place).collect()
}

fn array(rng: &mut Rng, places: &[Place]) -> ArrayConfig {
    let portal =
        |place: &Place| json!({ "address": format!("{}:3260", place.address), "group": place.group });
    serde_json::from_value(json!({
        "name": "sim",
        "portals": places.iter().map(portal).collect::<Vec<_>>(),
        "limits": {
            // An array without pings keeps a session of a silent path, and its effects, for a long time.
            "nop_interval_s": one_of(rng, &[0.0, 2.0]), "nop_timeout_s": 2.0, "login_timeout_s": 5.0,
            "commands_per_session": one_of(rng, &[4, 32]),
            "max_recv_data_segment_bytes": one_of(rng, &[1000, 65_536]),
            "first_burst_bytes": one_of(rng, &[512, 65_536]),
        },
        "targets": [{ "name": TARGET, "volumes": [
            { "lun": 0, "name": "v0", "size_bytes": BLOCKS * BLOCK, "sector_bytes": BLOCK },
        ] }],
    }))
    .unwrap()
}

fn path(place: &Place) -> PathSpec {
    let portal = PortalAddress { host: place.address.to_string(), port: 3260 };
    PathSpec { portal: Some(portal), ..PathSpec::named(format!("to {}", place.address)) }
}

fn multipath(rng: &mut Rng) -> MultipathOptions {
    let policies = [
        Policy::FailoverOnly,
        Policy::RoundRobin,
        Policy::LeastQueueDepth,
        Policy::LeastBlocks,
        Policy::WeightedPaths,
        Policy::ServiceTime,
    ];
    MultipathOptions {
        policy: one_of(rng, &policies),
        failback: one_of(rng, &[Failback::Immediate, Failback::Manual, Failback::Delayed(2.0)]),
        ..MultipathOptions::default()
    }
}

fn session(rng: &mut Rng) -> SessionOptions {
    SessionOptions {
        immediate_data: rng.chance(60),
        initial_r2t: rng.chance(50),
        ..SessionOptions::default()
    }
}
