//! The real target and the real initiator under a virtual clock: random reads and writes against a model, while connections
//! come in pieces, stall, are refused and get lost. No acknowledged write may be lost, and nothing may hang.
//!
//! `make sim SEED=n` replays one seed, `LINERATE_SIM_RUNS=n` runs more of them.
#![allow(clippy::unwrap_used, reason = "tests")]

use linerate_initiator::{
    Credentials, DeviceId, DeviceState, DigestChoice, Initiator, IoDone, IoOp, IoRequest, LunAddress,
    PortalAddress, ReadInto, SessionOptions, Sharing,
};
use linerate_io::{Driver, Nanos, Region, RegionId, Seg, Wait};
use linerate_sim::{Conditions, Rng, SimDriver, SimNetwork, for_each_seed};
use linerate_target::{ArrayConfig, Worker};
use std::sync::Arc;

const BLOCK: u64 = 512;
const BLOCKS: u64 = 512;
const SLOTS: usize = 8;
const SLOT_BYTES: u64 = 64 * BLOCK;
const HOUR_NS: Nanos = 3_600_000_000_000;

/// What a slot is doing.
#[derive(Clone, Copy, Debug)]
struct Job {
    write: bool,
    first: u64,
    blocks: u64,
    /// What the blocks hold after a write.
    fill: u64,
}

struct Pair {
    network: SimNetwork,
    rng: Rng,
    worker: Worker<SimDriver>,
    driver: SimDriver,
    initiator: Initiator,
    device: DeviceId,
    memory: Arc<Region>,
    region: RegionId,
    jobs: [Option<Job>; SLOTS],
    /// What each block must hold; unknown after a write that failed.
    model: Vec<Option<u64>>,
    next_fill: u64,
    acknowledged: u64,
    failed: u64,
    done: Vec<IoDone>,
}

fn array(rng: &mut Rng) -> ArrayConfig {
    let mut choose = |values: &[u32]| values[rng.range(0, values.len() as u64 - 1) as usize];
    let (segment, first, burst) =
        (choose(&[512, 4096, 65_536]), choose(&[512, 8192]), choose(&[8192, 65_536]));
    let commands = choose(&[1, 4, 32]);
    serde_json::from_value(serde_json::json!({
        "name": "sim",
        "portals": ["127.0.0.1:3260"],
        "limits": {
            "login_timeout_s": 5.0, "nop_interval_s": 5.0, "nop_timeout_s": 5.0, "commands_per_session": commands,
            "max_recv_data_segment_bytes": segment, "max_burst_bytes": burst, "first_burst_bytes": first,
        },
        "targets": [{
            "name": "iqn.2026-11.lab.linerate:sim",
            "volumes": [{ "lun": 0, "name": "v", "kind": "memory", "size_bytes": BLOCKS * BLOCK, "sector_bytes": BLOCK }],
        }],
    }))
    .unwrap()
}

fn options(rng: &mut Rng) -> SessionOptions {
    let digest = |on| if on { DigestChoice::Crc32c } else { DigestChoice::None };
    SessionOptions {
        header_digest: digest(rng.chance(30)),
        data_digest: digest(rng.chance(30)),
        immediate_data: rng.chance(70),
        initial_r2t: rng.chance(50),
        max_outstanding_r2t: rng.range(1, 4) as u16,
        max_recv_data_segment_bytes: if rng.chance(50) { 4096 } else { 65_536 },
        login_timeout_s: 3.0,
        command_timeout_s: 20.0,
        replacement_timeout_s: 3600.0,
        ping_interval_s: 1.0,
        ping_timeout_s: 1.0,
        ..SessionOptions::default()
    }
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let network = SimNetwork::new(seed, Conditions::random(&mut rng, false));
        let worker = Worker::alone(network.driver(), &array(&mut rng)).unwrap();
        let mut driver = network.driver();
        let mut chance = rng.clone();
        let mut initiator = Initiator::with_random(Box::new(move |bytes| chance.fill(bytes)));
        let memory = Region::anonymous(SLOTS as u64 * SLOT_BYTES).unwrap();
        let region = initiator.attach(&mut driver, &memory);
        let address = LunAddress {
            portal: PortalAddress { host: "127.0.0.1".into(), port: 3260 },
            target: "iqn.2026-11.lab.linerate:sim".into(),
            lun: 0,
        };
        let options = options(&mut rng);
        let device =
            initiator.open(&mut driver, &address, &options, &Credentials::default(), Sharing::Own).unwrap();
        Pair {
            network,
            rng,
            worker,
            driver,
            initiator,
            device,
            memory,
            region,
            jobs: [None; SLOTS],
            model: vec![Some(0); BLOCKS as usize],
            next_fill: 0,
            acknowledged: 0,
            failed: 0,
            done: Vec::new(),
        }
    }

    /// One turn for everybody, then time moves on.
    fn turn(&mut self) {
        // Twice: what the first turn did may change until when the target wants to wait.
        self.worker.turn(Wait::Forever).unwrap();
        self.worker.turn(Wait::Forever).unwrap();
        let mut completions = Vec::new();
        loop {
            self.initiator.flush(&mut self.driver);
            let wait = self.initiator.next_deadline().map_or(Wait::Forever, Wait::Until);
            self.driver.poll(wait, &mut completions).unwrap();
            if completions.is_empty() {
                break;
            }
            for completion in completions.drain(..) {
                self.initiator.handle_completion(&mut self.driver, completion, &mut self.done);
            }
        }
        let now = self.driver.now();
        self.initiator.on_time(&mut self.driver, now, &mut self.done);
        self.initiator.flush(&mut self.driver);
        for done in std::mem::take(&mut self.done) {
            self.judge(done);
        }
        assert!(self.network.advance(), "nothing will ever happen again");
    }

    fn wait_until(&mut self, what: &str, ready: impl Fn(&Self) -> bool) {
        let limit = self.network.now() + HOUR_NS;
        while !ready(self) {
            self.turn();
            assert!(self.network.now() < limit, "{what}: nothing for an hour; jobs {:?}", self.jobs);
        }
    }

    /// Submits a job in a free slot, on blocks that no running job conflicts with.
    fn submit(&mut self, slot: usize, job: Job) -> bool {
        let overlaps =
            |other: &Job| job.first < other.first + other.blocks && other.first < job.first + job.blocks;
        if self.jobs.iter().flatten().any(|other| (job.write || other.write) && overlaps(other)) {
            return false;
        }
        let offset = slot as u64 * SLOT_BYTES;
        let seg = Seg { region: self.region, offset, len: (job.blocks * BLOCK) as u32 };
        let op = if job.write {
            for block in 0..job.blocks {
                let word = (job.fill + block).to_le_bytes();
                self.memory.fill(offset + block * BLOCK, BLOCK, &word);
            }
            IoOp::Write(seg)
        } else {
            self.memory.fill(offset, seg.len.into(), &[0xee]);
            IoOp::Read(ReadInto::Segment(seg))
        };
        let request =
            IoRequest { slot: slot as u32, op, offset_bytes: job.first * BLOCK, len_bytes: seg.len };
        let taken = self.initiator.submit(self.device, &request).is_ok();
        if taken {
            self.jobs[slot] = Some(job);
        }
        taken
    }

    fn judge(&mut self, done: IoDone) {
        let slot = done.slot as usize;
        let job = self.jobs[slot].take().expect("an I/O ends once");
        let blocks = job.first..job.first + job.blocks;
        if done.result.is_err() {
            self.failed += 1;
            if job.write {
                blocks.for_each(|block| self.model[block as usize] = None);
            }
            return;
        }
        self.acknowledged += 1;
        for (index, block) in blocks.enumerate() {
            if job.write {
                self.model[block as usize] = Some(job.fill + index as u64);
                continue;
            }
            let Some(expected) = self.model[block as usize] else { continue };
            let mut found = [0; BLOCK as usize];
            self.memory.read(slot as u64 * SLOT_BYTES + index as u64 * BLOCK, &mut found);
            let right = found.chunks(8).all(|word| word == expected.to_le_bytes());
            assert!(right, "block {block}: expected {expected}, found {:?}", &found[..16]);
        }
    }

    /// Keeps random jobs going until `count` have ended.
    fn work(&mut self, count: u64) {
        let end = self.acknowledged + self.failed + count;
        let limit = self.network.now() + HOUR_NS;
        while self.acknowledged + self.failed < end {
            for slot in 0..SLOTS {
                if self.jobs[slot].is_none() {
                    let blocks = if self.rng.chance(50) { 8 } else { self.rng.range(1, 64) };
                    let first = self.rng.range(0, BLOCKS - blocks);
                    let job = Job { write: self.rng.chance(50), first, blocks, fill: self.next_fill };
                    self.next_fill += 1000;
                    self.submit(slot, job);
                }
            }
            self.turn();
            assert!(self.network.now() < limit, "no progress for an hour; jobs {:?}", self.jobs);
        }
    }

    /// Reads the whole volume back.
    fn verify(&mut self) {
        self.wait_until("draining", |pair| pair.jobs.iter().all(Option::is_none));
        for first in (0..BLOCKS).step_by(64) {
            assert!(self.submit(0, Job { write: false, first, blocks: 64, fill: 0 }));
            self.wait_until("verifying", |pair| pair.jobs[0].is_none());
        }
    }
}

fn scenario(seed: u64, lossy: bool) -> (u64, u64, Nanos) {
    let mut pair = Pair::new(seed);
    pair.wait_until("opening", |pair| *pair.initiator.state(pair.device) != DeviceState::Opening);
    assert_eq!(*pair.initiator.state(pair.device), DeviceState::Ready);
    pair.work(40);
    if lossy {
        let conditions = Conditions::random(&mut pair.rng, true);
        pair.network.set_conditions(conditions);
        pair.network.cut_all();
        pair.work(80);
        pair.network.set_conditions(Conditions::calm());
        pair.network.cut_all();
    }
    pair.work(20);
    pair.verify();
    (pair.acknowledged, pair.failed, pair.network.now())
}

#[test]
fn every_acknowledged_write_is_read_back() {
    for_each_seed(100, |seed| {
        let (_, failed, _) = scenario(seed, false);
        assert_eq!(failed, 0, "nothing was lost, so nothing may fail");
    });
}

#[test]
fn no_acknowledged_write_is_lost_with_a_connection() {
    for_each_seed(100, |seed| {
        let (acknowledged, ..) = scenario(seed, true);
        assert!(acknowledged > 60);
    });
}

#[test]
fn a_seed_replays_exactly() {
    for_each_seed(10, |seed| assert_eq!(scenario(seed, true), scenario(seed, true)));
}
