//! File systems that become full and stay full, over power cuts too. Operations with reserved space continue, others
//! are refused at once, and no disk fails.

use crate::{
    clients::Volume,
    rig::{Drive, oracle, run},
};
use bytes::Bytes;
use fastrand::Rng;
use futures::future::{Either, select};
use linerate_io::Nanos;
use linerate_sim::for_each_seed;
use linerate_storage::{
    Disk, DiskError, Executor, Runtime,
    pool::{Pool, PoolConfig, PoolError},
    raid::{Initialise, JournalUse, RaidConfig, RaidLevel, RaidSet, RaidState},
};
use std::{future::Future, rc::Rc};

const DRIVE_BYTES: u64 = 12 << 20;
const WINDOW_BYTES: usize = 192 << 10;
const LEVELS: [(RaidLevel, usize); 7] = [
    (RaidLevel::Raid0, 3),
    (RaidLevel::Raid1, 2),
    (RaidLevel::Raid5, 3),
    (RaidLevel::Raid6, 4),
    (RaidLevel::Raid10, 4),
    (RaidLevel::Raid50, 6),
    (RaidLevel::Raid60, 8),
];
/// Limit of all operations, even on full file systems.
const PATIENCE_NS: Nanos = 2_000_000_000;

/// A RAID set on thin drives; from some time on all their file systems are full.
struct Array {
    executor: Executor,
    config: RaidConfig,
    drives: Vec<Drive>,
    set: Rc<RaidSet>,
}

impl Array {
    fn new(rng: &mut Rng) -> Self {
        let (level, count) = rng.choice(LEVELS).unwrap();
        let config = RaidConfig {
            chunk_bytes: 4096 << rng.u32(0..5),
            initialise: if rng.bool() { Initialise::Background } else { Initialise::AssumeClean },
            journal: if rng.u8(0..3) == 0 { JournalUse::Always } else { JournalUse::Degraded },
            checksums: rng.u8(0..3) > 0,
            ..RaidConfig::new("r0", level)
        };
        let block_bytes = if rng.bool() { 512 } else { 4096 };
        let mut executor = Executor::new();
        let runtime = executor.runtime();
        let drive = |number| Drive::thin(&runtime, &format!("d{number}"), DRIVE_BYTES, block_bytes, rng);
        let drives: Vec<Drive> = (0..count).map(drive).collect();
        let disks = drives.iter().map(Drive::disk).collect();
        let set = run(&mut executor, RaidSet::create(runtime, config.clone(), disks, Vec::new())).unwrap();
        Self { executor, config, drives, set }
    }

    fn set_full(&self, is_full: bool) {
        self.drives.iter().for_each(|drive| drive.set_full(is_full));
    }

    fn cut_power(&mut self, rng: &mut Rng) {
        let next = Executor::new();
        let runtime = next.runtime();
        self.drives = self.drives.iter().map(|drive| drive.after_power_cut(&runtime, rng)).collect();
        self.executor = next;
        let disks = self.drives.iter().map(Drive::disk).collect();
        let assembling = RaidSet::assemble(runtime, self.config.clone(), disks, Vec::new());
        self.set = self.in_time(assembling).unwrap();
    }

    fn in_time<T: 'static>(&mut self, work: impl Future<Output = T> + 'static) -> T {
        let runtime = self.executor.runtime();
        run(&mut self.executor, in_time(runtime, work))
    }
}

/// It ends soon in any case.
async fn in_time<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    match select(Box::pin(work), Box::pin(runtime.sleep(PATIENCE_NS))).await {
        Either::Left((value, _)) => value,
        Either::Right(_) => panic!("it waits for space"),
    }
}

/// Writes only where all blocks were written before: nothing may fail.
async fn overwrite(volume: Volume, mut rng: Rng) {
    let blocks = volume.oracle.borrow().blocks();
    for _ in 0..rng.usize(1..20) {
        let start = rng.usize(0..blocks);
        let place = start..(start + rng.usize(1..40)).min(blocks);
        match rng.u8(0..4) {
            0 => volume.read(place).await,
            1 => volume.flush().await,
            _ => volume.write(place, rng.bool()).await,
        };
    }
    volume.read_all().await;
}

fn on_a_set(seed: u64) -> u64 {
    let mut rng = Rng::with_seed(seed);
    let mut array = Array::new(&mut rng);
    let block_bytes = array.set.block_bytes() as usize;
    let oracle = oracle(WINDOW_BYTES / block_bytes, block_bytes);
    let volume = |array: &Array| Volume::new(Rc::clone(&array.set) as Rc<dyn Disk>, Rc::clone(&oracle));
    let written = volume(&array);
    array.in_time(async move { written.write(0..WINDOW_BYTES / block_bytes, true).await });
    array.set_full(true);
    let (mut refused, far) = (0, array.set.size_bytes() / 2 / block_bytes as u64 * block_bytes as u64);
    for _ in 0..rng.usize(1..4) {
        array.in_time(overwrite(volume(&array), rng.fork()));
        for _ in 0..rng.usize(1..6) {
            let offset = far + rng.u64(0..256) * block_bytes as u64;
            let data = Bytes::from(vec![0xEE; rng.usize(1..64) * block_bytes]);
            match array.in_time(array.set.write(offset, data, rng.bool())) {
                Err(DiskError::NoSpace(_)) => refused += 1,
                result => assert_eq!(result, Ok(())),
            }
        }
        assert_eq!(array.set.status().state, RaidState::Optimal, "no disk has failed");
        if rng.bool() {
            oracle.borrow_mut().cut_power();
            array.cut_power(&mut rng);
            let checked = volume(&array);
            array.in_time(async move { checked.read_all().await });
        }
    }
    array.set_full(false);
    let data = Bytes::from(vec![0xAA; 64 * block_bytes]);
    assert_eq!(array.in_time(array.set.write(far, data, true)), Ok(()), "there is space again");
    array.in_time(overwrite(volume(&array), rng.fork()));
    let scrub = array.set.scrub();
    let report = run(&mut array.executor, scrub).unwrap();
    assert_eq!((report.mismatches_found, report.lost), (0, 0), "{report:?}");
    refused
}

fn on_a_pool(seed: u64) -> u64 {
    let mut rng = Rng::with_seed(seed);
    let mut array = Array::new(&mut rng);
    let block_bytes = array.set.block_bytes() as usize;
    let blocks = WINDOW_BYTES / block_bytes;
    let config =
        PoolConfig { page_bytes: rng.choice([4096, 16_384, 65_536]).unwrap(), ..PoolConfig::new("p0") };
    let disk = |array: &Array| Rc::clone(&array.set) as Rc<dyn Disk>;
    let creating = Pool::create(array.executor.runtime(), config.clone(), disk(&array));
    let mut pool = array.in_time(creating).unwrap();
    let oracle = oracle(blocks, block_bytes);
    array.in_time(pool.create_volume("v", WINDOW_BYTES as u64)).unwrap();
    array.in_time(pool.create_volume("other", WINDOW_BYTES as u64)).unwrap();
    let volume = |pool: &Pool| Volume::new(pool.volume("v").unwrap() as Rc<dyn Disk>, Rc::clone(&oracle));
    let written = volume(&pool);
    array.in_time(async move { written.write(0..blocks, true).await });
    array.set_full(true);
    let mut refused = 0;
    for number in 0..rng.usize(1..4) {
        array.in_time(overwrite(volume(&pool), rng.fork()));
        let other = pool.volume("other").unwrap();
        match array.in_time(other.write(0, Bytes::from(vec![0xEE; WINDOW_BYTES]), true)) {
            Err(DiskError::NoSpace(_)) => refused += 1,
            result => assert_eq!(result, Ok(())),
        }
        // Verbs have space for their records, and a deleted snapshot returns pages that have theirs.
        let name = format!("s{number}");
        array.in_time(pool.snapshot(&["v"], &name, 0.0)).unwrap();
        let shared = volume(&pool);
        let shared = Volume { excuses: Rc::new(|error| matches!(error, DiskError::NoSpace(_))), ..shared };
        array.in_time(async move { shared.write(0..8, false).await });
        array.in_time(pool.delete_snapshot("v", &name)).unwrap();
        if rng.bool() {
            drop(pool);
            oracle.borrow_mut().cut_power();
            array.cut_power(&mut rng);
            let opening = Pool::open(array.executor.runtime(), config.clone(), disk(&array));
            pool = array.in_time(opening).unwrap_or_else(|error: PoolError| panic!("open: {error}"));
        }
        assert_eq!(array.set.status().state, RaidState::Optimal, "no disk has failed");
    }
    array.set_full(false);
    let other = pool.volume("other").unwrap();
    let data = Bytes::from(vec![0xAA; WINDOW_BYTES]);
    assert_eq!(array.in_time(other.write(0, data, true)), Ok(()), "there is space again");
    array.in_time(overwrite(volume(&pool), rng.fork()));
    refused
}

#[test]
fn a_raid_set_on_full_file_systems_refuses_what_needs_space_and_nothing_else() {
    let mut refused = 0;
    for_each_seed(300, |seed| refused += on_a_set(seed));
    assert!(refused > 0, "nothing was ever refused");
}

#[test]
fn a_pool_on_full_file_systems_refuses_what_needs_space_and_nothing_else() {
    let mut refused = 0;
    for_each_seed(200, |seed| refused += on_a_pool(seed));
    assert!(refused > 0, "nothing was ever refused");
}
