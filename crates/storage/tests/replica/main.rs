//! Replication between two arrays under breaks of every kind, by seed, in virtual time: see `make sim`.
//!
//! The rule: every snapshot of a point has the same bytes, for all volumes of the group at one instant. A promoted
//! array shows exactly a point.

#![allow(clippy::unwrap_used, reason = "tests")]

mod late;
mod link;
mod pools;
mod roles;
mod store;
mod world;

use linerate_sim::for_each_seed;
use linerate_storage::{
    Executor,
    replica::{Group, Promotion, ReplicaError, Role, Store},
};
use std::rc::Rc;
use store::PAGE_BYTES;
use world::World;

const SEEDS: u64 = 1500;

#[test]
fn points_stay_true_and_promotions_whole_whatever_breaks() {
    for_each_seed(SEEDS, |seed| {
        let mut executor = Executor::new();
        let world = World::new(executor.runtime(), seed, 2);
        let end = executor.run_in_virtual_time(scenario(Rc::clone(&world)));
        assert!(end.is_some(), "everything waits for nothing");
    });
}

async fn scenario(world: Rc<World>) {
    let volumes: Vec<String> = (0..world.range(1, 3)).map(|at| format!("v{at}")).collect();
    for volume in &volumes {
        let size_bytes = world.range(1, 24) * PAGE_BYTES as u64;
        world.store(0).create_volume(volume, size_bytes).await.unwrap();
    }
    let mut primary = 0;
    for _ in 0..world.range(1, 6) {
        world.trouble.set(world.range(0, 4) as u32);
        let trouble = world.runtime.clone();
        trouble.spawn(Rc::clone(&world).make_trouble());
        round(&world, primary, &volumes).await;
        if world.chance(40) {
            change_roles(&world, primary).await;
            primary = 1 - primary;
        }
    }
}

/// Hosts write, a volume is resized or a message lost at times, and a transfer is repeated until it is complete.
async fn round(world: &Rc<World>, primary: usize, volumes: &[String]) {
    world.write(primary, world.range(0, 20)).await;
    if world.chance(20) {
        let (store, volume) = (world.store(primary), volumes[0].clone());
        let size_bytes = world.range(1, 24) * PAGE_BYTES as u64;
        world.ask(primary, async move { Ok(store.resize(&volume, size_bytes).await?) }).await;
    }
    if world.chance(10) && world.group(primary).is_some() {
        world.ask_group(primary, |group| async move { group.abandon().await }).await;
    }
    if world.chance(10) {
        lose_a_point(world, primary, &volumes[volumes.len() - 1]).await;
    }
    let hosts = Rc::clone(world);
    let writes = world.range(0, 50);
    world.runtime.spawn(async move { hosts.write(primary, writes).await });
    let keep = world.range(1, 3) as usize;
    for attempt in 0.. {
        assert!(attempt < 60, "replication does not come to an end");
        if let Some(commit) = world.replicate(primary, volumes, keep).await {
            let mut known = Vec::new();
            for array in [primary, 1 - primary] {
                let points = world.group(array).unwrap().points();
                known.push(points.last().unwrap().name.clone());
                assert!(points.len() <= keep, "{} points are kept", points.len());
            }
            // The process that confirmed may have been killed since, but its record is kept.
            assert_eq!(known, [commit.point.clone(), commit.point], "both arrays know the point");
            return;
        }
    }
}

/// An owner deletes a snapshot that replication would have needed.
async fn lose_a_point(world: &World, primary: usize, volume: &str) {
    let array = if world.chance(50) { primary } else { 1 - primary };
    let (store, volume) = (world.store(array), volume.to_owned());
    if let Some(point) = store.snapshots(&volume).pop() {
        world.ask(array, async move { Ok(store.delete_snapshot(&volume, &point).await?) }).await;
    }
}

/// The other array becomes primary, possibly during a transfer; then the first one becomes its copy.
async fn change_roles(world: &Rc<World>, primary: usize) {
    let known = world.group(1 - primary).unwrap().points().pop().unwrap();
    if world.chance(60) {
        world.write(primary, 5).await;
        let volumes = world.group(primary).unwrap().volumes();
        let (transfer, limit) = (Rc::clone(world), world.range(0, 300_000));
        world.runtime.spawn(async move {
            transfer.replicate(primary, &volumes, 2).await;
        });
        world.runtime.sleep(limit).await;
    }
    world.restart(primary).await;
    let replica = 1 - primary;
    let force = |group: Rc<Group<_>>| async move { group.promote(Promotion::Force).await };
    let promoted = until_done(world, replica, force).await.unwrap();
    world.check_volumes(replica, &promoted.name);
    assert!(promoted.at_s >= known.at_s, "a point that both knew was forgotten");
    until_done(world, primary, |group| async move { group.demote().await }).await;
    assert_eq!(world.group(primary).unwrap().role(), Role::Replica);
}

/// Repeats a step on the current process of the array, until it is done.
async fn until_done<T: 'static, F: Future<Output = Result<T, ReplicaError>> + 'static>(
    world: &World,
    array: usize,
    step: impl Fn(Rc<linerate_storage::replica::Group<store::MemoryStore>>) -> F,
) -> T {
    for attempt in 0.. {
        assert!(attempt < 60, "the step does not come to an end");
        match world.ask_group(array, &step).await {
            Some(Ok(value)) => return value,
            Some(Err(error)) => panic!("{error}"),
            None => world.runtime.sleep(10_000).await,
        }
    }
    unreachable!()
}
