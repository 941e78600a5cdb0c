//! The whole stack: a pool on a RAID set on drives, with all faults of each of them, at the same time.

use crate::{
    pool::{self, Book},
    raid::Rig,
    rig::FULL_NS,
};
use fastrand::Rng;
use linerate_sim::for_each_seed;
use linerate_storage::{
    Disk,
    pool::{Pool, PoolConfig, PoolError},
};
use std::rc::Rc;

/// Enough for a pool, which may be full at times.
const SET_BYTES: u64 = 12 << 20;

fn whole_stack(seed: u64) {
    let mut rig = Rig::new(seed, SET_BYTES);
    let page_bytes = rig.rng.choice([4096, 16_384, 65_536]).unwrap();
    // Drives begin as zeros.
    let config = PoolConfig { page_bytes, is_disk_zeroed: rig.rng.bool(), ..PoolConfig::new("p0") };
    let book = Book::new(rig.world.set.block_bytes() as usize, true);
    let creating =
        Pool::create(rig.executor.runtime(), config.clone(), Rc::clone(&rig.world.set) as Rc<dyn Disk>);
    let pool = rig.run(creating).unwrap();
    let mut world =
        pool::World::new(rig.executor.runtime(), pool, Rc::clone(&book), rig.world.shortage.clone());
    for _ in 0..rig.rng.usize(0..4) {
        let (raid, mut suffering) = (rig.world.clone(), rig.rng.fork());
        rig.executor.runtime().spawn(async move { raid.suffer(&mut suffering, usize::MAX).await });
        rig.executor.runtime().spawn(world.live(rig.rng.fork(), usize::MAX));
        rig.pass(400_000_000);
        rig.cut_power(|| book.borrow_mut().cut_power());
        let pool = open(&mut rig, &config);
        world = pool::World::new(rig.executor.runtime(), pool, Rc::clone(&book), rig.world.shortage.clone());
        let checked = world.clone();
        rig.run(async move { checked.read_all().await });
    }
    rig.world.may_rot = true;
    let (raid, rng) = (rig.world.clone(), rig.rng.fork());
    rig.run(prove(raid, world, rng));
}

/// Opens the pool, if necessary after space is free again: an interrupted rebuild may have no space on the new drive.
fn open(rig: &mut Rig, config: &PoolConfig) -> Pool {
    let excuses = rig.excuses();
    loop {
        let set = Rc::clone(&rig.world.set) as Rc<dyn Disk>;
        match rig.run(Pool::open(rig.executor.runtime(), config.clone(), set)) {
            Ok(pool) => return pool,
            Err(PoolError::Disk(error)) if excuses(&error) => rig.pass(FULL_NS),
            Err(error) => panic!("open: {error}"),
        }
    }
}

/// Works some more; then everything is repaired, has its redundancy, and nothing is in use when all is deleted.
async fn prove(raid: crate::raid::World, pool: pool::World, mut rng: Rng) {
    let mut suffering = rng.fork();
    futures::join!(pool.clone().live(rng.fork(), 3), raid.suffer(&mut suffering, 5));
    raid.mend(&mut rng).await;
    raid.strip(&mut rng).await;
    pool.read_all().await;
    pool.give_up(rng).await;
}

#[test]
fn the_whole_stack_keeps_what_it_promises() {
    for_each_seed(300, whole_stack);
}
