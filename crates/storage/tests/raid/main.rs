//! The cost of operations of a RAID set, and the members that are used after a restart or a replacement.
#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::{Bytes, BytesMut};
use linerate_storage::{
    Disk, DiskError, Executor, Runtime,
    disk::{CrashDisk, DiskStats, FaultyDisk, MemoryDisk},
    raid::{
        Initialise, JournalUse, MemberState, RaidConfig, RaidError, RaidLevel, RaidSet, RaidState, TaskKind,
    },
};
use std::{future::Future, rc::Rc};

mod closing;
mod failover;

const CHUNK: u64 = 64 << 10;

fn disks(numbers: std::ops::Range<usize>, size_bytes: u64) -> Vec<Rc<dyn Disk>> {
    let disk = |number| MemoryDisk::new(format!("d{number}"), size_bytes, 512).unwrap();
    numbers.map(|number| Rc::new(disk(number)) as Rc<dyn Disk>).collect()
}

fn config(level: RaidLevel) -> RaidConfig {
    RaidConfig { initialise: Initialise::AssumeClean, ..RaidConfig::new("r0", level) }
}

fn run<T: 'static>(executor: &mut Executor, future: impl Future<Output = T> + 'static) -> T {
    executor.run_in_virtual_time(future).expect("everything waits")
}

fn create(executor: &mut Executor, config: &RaidConfig, disks: &[Rc<dyn Disk>]) -> Rc<RaidSet> {
    let creating = RaidSet::create(executor.runtime(), config.clone(), disks.to_vec(), Vec::new());
    run(executor, creating).unwrap()
}

fn assemble(config: &RaidConfig, disks: &[Rc<dyn Disk>]) -> (Executor, Result<Rc<RaidSet>, RaidError>) {
    let mut executor = Executor::new();
    let assembling = RaidSet::assemble(executor.runtime(), config.clone(), disks.to_vec(), Vec::new());
    let set = run(&mut executor, assembling);
    (executor, set)
}

fn write(executor: &mut Executor, set: &RaidSet, offset: u64, len: u64, byte: u8) {
    run(executor, set.write(offset, Bytes::from(vec![byte; len as usize]), true)).unwrap();
}

fn reads_as(executor: &mut Executor, set: &RaidSet, offset: u64, len: u64, byte: u8) {
    let bytes = run(executor, set.read(offset, BytesMut::zeroed(len as usize))).unwrap();
    assert!(bytes.iter().all(|found| *found == byte), "at {offset}: {:?}... is not {byte}", &bytes[..8]);
}

fn reads_and_writes(disks: &[Rc<dyn Disk>]) -> (u64, u64) {
    let sum = |count: fn(&DiskStats) -> u64| disks.iter().map(|disk| count(&disk.stats())).sum();
    (sum(|stats| stats.reads), sum(|stats| stats.writes))
}

/// Disk reads and writes of one write, once the flags of its region are set.
fn cost(level: RaidLevel, members: usize, offset: u64, len: u64) -> (u64, u64) {
    let mut executor = Executor::new();
    let disks = disks(0..members, 64 << 20);
    let set = create(&mut executor, &config(level), &disks);
    write(&mut executor, &set, offset, len, 1);
    let before = reads_and_writes(&disks);
    write(&mut executor, &set, offset, len, 2);
    let after = reads_and_writes(&disks);
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn a_write_costs_what_the_level_is_known_for() {
    let small = |level, members| cost(level, members, 8192, 8192);
    assert_eq!(small(RaidLevel::Raid0, 4), (0, 1));
    assert_eq!(small(RaidLevel::Raid10, 4), (0, 2));
    assert_eq!(small(RaidLevel::Raid1, 3), (0, 3));
    // Old data and old parity, new data and new parity.
    assert_eq!(small(RaidLevel::Raid5, 14), (2, 2));
    assert_eq!(small(RaidLevel::Raid6, 14), (3, 3));
    assert_eq!(small(RaidLevel::Raid50, 28), (2, 2));
    // Of three disks, the rest of the stripe is one chunk.
    assert_eq!(small(RaidLevel::Raid5, 3), (1, 2));
    // Three of four data chunks: reading the fourth is cheaper than reading three and parity.
    assert_eq!(cost(RaidLevel::Raid5, 5, 0, 3 * CHUNK), (1, 4));
    // Whole stripes need no reads.
    assert_eq!(cost(RaidLevel::Raid5, 5, 0, 4 * CHUNK), (0, 5));
    assert_eq!(cost(RaidLevel::Raid6, 6, 0, 4 * CHUNK), (0, 6));
    assert_eq!(cost(RaidLevel::Raid50, 10, 0, 2 * 4 * CHUNK), (0, 10));
}

#[test]
fn writing_on_and_on_needs_few_superblocks() {
    let mut executor = Executor::new();
    let disks = disks(0..5, 64 << 20);
    let set = create(&mut executor, &config(RaidLevel::Raid5), &disks);
    let stripes = set.size_bytes() / (4 * CHUNK);
    let before = reads_and_writes(&disks);
    for stripe in 0..stripes {
        write(&mut executor, &set, stripe * 4 * CHUNK, 4 * CHUNK, 1);
    }
    let (reads, writes) = reads_and_writes(&disks);
    let superblocks = (writes - before.1) / 5 - stripes;
    // Regions of four stripes: 1, 2, 4 and 8 of them are flagged at once, and then nine at a time.
    let regions = stripes.div_ceil(4);
    assert_eq!((reads - before.0, superblocks), (0, 4 + (regions - 15).div_ceil(9)));
}

#[test]
fn capacity_is_that_of_the_data_disks() {
    let mut executor = Executor::new();
    let disks = disks(0..28, 64 << 20);
    let mut size =
        |level| create(&mut executor, &config(level), &disks).size_bytes() as f64 / f64::from(64 << 20);
    let (striped, mirrored, parity) =
        (size(RaidLevel::Raid0), size(RaidLevel::Raid10), size(RaidLevel::Raid50));
    // Superblocks, journal and checksums take a few percent of disks as small as these.
    assert!((27.5..28.0).contains(&striped) && (13.7..14.0).contains(&mirrored), "{striped} {mirrored}");
    assert!((24.7..26.0).contains(&parity), "{parity}");
}

#[test]
fn a_member_that_missed_something_is_not_believed() {
    let mut executor = Executor::new();
    let disks = disks(0..2, 8 << 20);
    let set = create(&mut executor, &config(RaidLevel::Raid1), &disks);
    write(&mut executor, &set, 0, 4096, 1);
    let failing = Rc::clone(&set);
    run(&mut executor, async move { failing.fail_disk("d1").await }).unwrap();
    write(&mut executor, &set, 0, 4096, 2);
    drop((executor, set));
    let (mut executor, set) = assemble(&config(RaidLevel::Raid1), &disks);
    let set = set.unwrap();
    assert_eq!(set.status().state, RaidState::Degraded);
    assert_eq!(set.status().members[1].state, MemberState::Missing);
    for _ in 0..4 {
        reads_as(&mut executor, &set, 0, 4096, 2);
    }
    let (_, alone) = assemble(&config(RaidLevel::Raid1), &disks[1..]);
    assert!(matches!(alone, Err(RaidError::Incomplete { .. })), "{:?}", alone.map(|set| set.status()));
}

#[test]
fn a_set_comes_back_only_as_what_it_was() {
    let mut executor = Executor::new();
    let disks = disks(0..4, 8 << 20);
    let (_, none) = assemble(&config(RaidLevel::Raid5), &disks);
    assert_eq!(none.map(|_| ()), Err(RaidError::NotFound("r0".into())));
    let first = create(&mut executor, &config(RaidLevel::Raid6), &disks);
    write(&mut executor, &first, 0, 4096, 1);
    // Made again, by a set with fewer generations.
    let set = create(&mut executor, &config(RaidLevel::Raid5), &disks);
    write(&mut executor, &set, 0, 4096, 2);
    let reversed: Vec<_> = disks.iter().rev().cloned().collect();
    let (mut executor, set) = assemble(&config(RaidLevel::Raid5), &reversed);
    reads_as(&mut executor, &set.unwrap(), 0, 4096, 2);
    for (wrong, what) in [
        (config(RaidLevel::Raid6), "it is raid5, not raid6"),
        (
            RaidConfig { chunk_bytes: 4096, ..config(RaidLevel::Raid5) },
            "its chunks have 65536 bytes, not 4096",
        ),
    ] {
        let (_, refused) = assemble(&wrong, &disks);
        assert_eq!(refused.map(|_| ()), Err(RaidError::Differs { set: "r0".into(), what: what.into() }));
    }
}

/// The offset of the first unit of a disk whose bytes are all `byte`.
fn find(executor: &mut Executor, disk: &Rc<dyn Disk>, byte: u8) -> Option<u64> {
    let bytes = run(executor, disk.read(0, BytesMut::zeroed(disk.size_bytes() as usize))).unwrap();
    let at = bytes.chunks_exact(4096).position(|unit| unit.iter().all(|found| *found == byte))?;
    Some(at as u64 * 4096)
}

/// Overwrites the first unit of a disk whose bytes are all `byte`. None: there is no such unit.
fn rot(executor: &mut Executor, disk: &Rc<dyn Disk>, byte: u8) -> Option<()> {
    let at = find(executor, disk, byte)?;
    run(executor, disk.write(at, Bytes::from(vec![0x55; 4096]), true)).unwrap();
    Some(())
}

/// The set as it is after a power cut, when its stripes agree again. The disks keep what was written.
fn after_a_power_cut(config: &RaidConfig, disks: &[Rc<dyn Disk>]) -> (Executor, Rc<RaidSet>) {
    let (mut executor, set) = assemble(config, disks);
    let (runtime, set) = (executor.runtime(), set.unwrap());
    run(&mut executor, until_optimal(runtime, Rc::clone(&set)));
    (executor, set)
}

#[test]
fn copies_are_read_in_turn() {
    let mut executor = Executor::new();
    for disks in [disks(0..2, 24 << 20), as_disks(&crash_disks(&executor, 2))] {
        let set = create(&mut executor, &config(RaidLevel::Raid1), &disks);
        write(&mut executor, &set, 0, 4096, 1);
        let before: Vec<u64> = disks.iter().map(|disk| disk.stats().reads).collect();
        for _ in 0..32 {
            if set.read_nowait(0, 4096, &mut |_| ()).is_none() {
                reads_as(&mut executor, &set, 0, 4096, 1);
            }
        }
        let reads = disks.iter().zip(before).map(|(disk, before)| disk.stats().reads - before);
        assert_eq!(reads.collect::<Vec<_>>(), [16, 16]);
    }
}

#[test]
fn rot_in_any_copy_is_found_after_a_power_cut() {
    let (disks, config) = (disks(0..2, 8 << 20), config(RaidLevel::Raid1));
    let mut executor = Executor::new();
    let set = create(&mut executor, &config, &disks);
    write(&mut executor, &set, 0, CHUNK, 7);
    drop((set, executor));
    for rotten in 0..2 {
        let (mut executor, set) = after_a_power_cut(&config, &disks);
        rot(&mut executor, &disks[rotten], 7).unwrap();
        // Copies are read in turn.
        for _ in 0..4 {
            reads_as(&mut executor, &set, 0, CHUNK, 7);
        }
    }
}

#[test]
fn rot_in_parity_is_found_after_a_power_cut() {
    for journal in [JournalUse::Degraded, JournalUse::Always] {
        let (disks, config) = (disks(0..4, 8 << 20), RaidConfig { journal, ..config(RaidLevel::Raid6) });
        let mut executor = Executor::new();
        let set = create(&mut executor, &config, &disks);
        write(&mut executor, &set, 0, CHUNK, 1);
        write(&mut executor, &set, CHUNK, CHUNK, 2);
        // More than the journal holds: it does not write the first stripe again.
        for stripe in 1..32 {
            write(&mut executor, &set, 2 * CHUNK * stripe, 2 * CHUNK, 9);
        }
        drop((set, executor));
        let (mut executor, set) = after_a_power_cut(&config, &disks);
        // The sum of both chunks is the first parity.
        assert_eq!(disks.iter().filter_map(|disk| rot(&mut executor, disk, 1 ^ 2)).count(), 1);
        let holder = disks.iter().find(|disk| find(&mut executor, disk, 1).is_some());
        let first = holder.unwrap().name().to_owned();
        let failing = Rc::clone(&set);
        run(&mut executor, async move { failing.fail_disk(&first).await }).unwrap();
        reads_as(&mut executor, &set, 0, CHUNK, 1);
    }
}

async fn until_optimal(runtime: Runtime, set: Rc<RaidSet>) {
    while set.status().state != RaidState::Optimal || set.status().task.is_some() {
        runtime.sleep(1_000_000).await;
    }
}

#[test]
fn a_spare_takes_over_and_the_rebuild_keeps_its_rate() {
    let mut executor = Executor::new();
    let runtime = executor.runtime();
    let mut all = disks(0..5, 16 << 20);
    let spare = all.pop().unwrap();
    let faulty = FaultyDisk::new(&runtime, Rc::clone(&all[2]), 1);
    all[2] = Rc::new(faulty.clone());
    let config = RaidConfig { rebuild_bytes_per_s: Some(4 << 20), ..config(RaidLevel::Raid5) };
    let creating = RaidSet::create(runtime.clone(), config, all, vec![spare]);
    let set = run(&mut executor, creating).unwrap();
    write(&mut executor, &set, 0, 1 << 20, 7);
    faulty.fail();
    reads_as(&mut executor, &set, 0, 1 << 20, 7);
    let status = set.status();
    assert_eq!(status.state, RaidState::Degraded);
    assert_eq!((&*status.members[2].name, status.members[2].state), ("d4", MemberState::Rebuilding));
    assert_eq!(status.task.unwrap().kind, TaskKind::Rebuild);
    assert!(status.counters.degraded_reads > 0);
    let begun = runtime.now();
    run(&mut executor, until_optimal(runtime.clone(), Rc::clone(&set)));
    let took_s = (runtime.now() - begun) as f64 / 1e9;
    assert!((3.4..4.2).contains(&took_s), "16 MiB at 4 MiB/s took {took_s} s");
    // The new member has its data: the set tolerates another failure.
    let failing = Rc::clone(&set);
    run(&mut executor, async move { failing.fail_disk("d0").await }).unwrap();
    reads_as(&mut executor, &set, 0, 1 << 20, 7);
}

fn crash_disks(executor: &Executor, count: usize) -> Vec<CrashDisk> {
    let drive = |number| CrashDisk::new(&executor.runtime(), format!("d{number}"), 24 << 20, 512, 0);
    (0..count).map(drive).collect()
}

fn as_disks(drives: &[CrashDisk]) -> Vec<Rc<dyn Disk>> {
    drives.iter().map(|drive| Rc::new(drive.clone()) as Rc<dyn Disk>).collect()
}

/// The set after a power cut that took everything that was only in the caches of the drives.
fn after_lost_caches(config: &RaidConfig, drives: &[CrashDisk]) -> (Executor, Rc<RaidSet>) {
    let mut executor = Executor::new();
    let images: Vec<_> = drives.iter().map(|drive| drive.image(&executor.runtime(), 0, |_, _| 0)).collect();
    let assembling = RaidSet::assemble(executor.runtime(), config.clone(), as_disks(&images), Vec::new());
    let set = run(&mut executor, assembling).unwrap();
    (executor, set)
}

/// A set of two drives that may lose power; the second one may fail.
fn mirror_that_may_fail(
    executor: &mut Executor,
    config: &RaidConfig,
) -> (Vec<CrashDisk>, FaultyDisk, Rc<RaidSet>) {
    let drives = crash_disks(executor, 2);
    let mut disks = as_disks(&drives);
    let faulty = FaultyDisk::new(&executor.runtime(), disks.remove(1), 1);
    disks.push(Rc::new(faulty.clone()));
    let set = create(executor, config, &disks);
    (drives, faulty, set)
}

#[test]
fn a_flush_ends_when_the_others_know_of_a_failed_member() {
    let (mut executor, config) = (Executor::new(), config(RaidLevel::Raid1));
    let (drives, faulty, set) = mirror_that_may_fail(&mut executor, &config);
    write(&mut executor, &set, 0, 4096, 1);
    drives[0].set_delay(50_000, 60_000);
    run(&mut executor, set.write(0, Bytes::from(vec![2; 4096]), false)).unwrap();
    faulty.fail();
    run(&mut executor, set.flush()).unwrap();

    let (mut executor, set) = after_lost_caches(&config, &drives);
    assert_eq!(set.status().members[1].state, MemberState::Missing);
    reads_as(&mut executor, &set, 0, 4096, 2);
}

#[test]
fn copies_agree_after_a_power_cut_while_a_failure_is_not_recorded() {
    let (mut executor, config) = (Executor::new(), config(RaidLevel::Raid1));
    let (drives, faulty, set) = mirror_that_may_fail(&mut executor, &config);
    let last = set.size_bytes() - 4096;
    for offset in [0, last] {
        write(&mut executor, &set, offset, 4096, 1);
    }
    run(&mut executor, set.write(0, Bytes::from(vec![2; 4096]), false)).unwrap();
    // A long write to another region: a failure is recorded after it.
    drives[0].set_delay(200_000_000_000, 200_000_000_001);
    let long = set.write(last, Bytes::from(vec![3; 4096]), false);
    let runtime = executor.runtime();
    runtime.spawn(async move { assert_eq!(long.await, Ok(())) });
    let time = runtime.clone();
    run(&mut executor, async move { time.sleep(1).await });
    drives[0].set_delay(0, 0);
    faulty.fail();
    // Flags of a region go down a minute after its last write.
    run(&mut executor, async move { runtime.sleep(62_000_000_000).await });
    assert_eq!(set.status().state, RaidState::Degraded);

    let (mut executor, set) = after_lost_caches(&config, &drives);
    // The copies of the other region are made to agree.
    let runtime = executor.runtime();
    run(&mut executor, async move { runtime.sleep(1_000_000_000).await });
    let first = run(&mut executor, set.read(0, BytesMut::zeroed(4096))).unwrap();
    // Copies are read in turn.
    for _ in 0..4 {
        reads_as(&mut executor, &set, 0, 4096, first[0]);
    }
}

#[test]
fn rot_in_what_was_discarded_is_found() {
    for rotten in 0..2 {
        let (disks, config) = (disks(0..2, 8 << 20), config(RaidLevel::Raid1));
        let mut executor = Executor::new();
        let set = create(&mut executor, &config, &disks);
        write(&mut executor, &set, 0, 1 << 20, 7);
        let place = find(&mut executor, &disks[rotten], 7).unwrap();
        run(&mut executor, set.discard(0, 1 << 20)).unwrap();
        assert!(disks[rotten].stats().discards > 0);
        run(&mut executor, disks[rotten].write(place, Bytes::from(vec![0x55; 4096]), true)).unwrap();
        // Copies are read in turn.
        for _ in 0..4 {
            reads_as(&mut executor, &set, 0, CHUNK, 0);
        }
    }
}

#[test]
fn a_stripe_that_never_agreed_agrees_after_a_write_to_a_part_of_it() {
    const STRIPE: u64 = 4 * CHUNK;
    for failing in ["d0", "d1", "d2", "d3", "d4"] {
        let (mut executor, disks) = (Executor::new(), disks(0..5, 64 << 20));
        for (number, disk) in disks.iter().enumerate() {
            let bytes = Bytes::from(vec![1 << number; 64 << 20]);
            run(&mut executor, disk.write(0, bytes, true)).unwrap();
        }
        let config =
            RaidConfig { rebuild_bytes_per_s: Some(1 << 20), ..RaidConfig::new("r0", RaidLevel::Raid5) };
        let set = create(&mut executor, &config, &disks);
        // Initialisation has not come to the end. The first write sets the flags of all four stripes.
        let stripes = set.size_bytes() / STRIPE;
        let start = (stripes / 4 - 1) * 4 * STRIPE;
        for stripe in 0..4 {
            write(&mut executor, &set, start + stripe * STRIPE, 8192, 0x77);
        }
        let before = run(&mut executor, set.read(start, BytesMut::zeroed(4 * STRIPE as usize))).unwrap();
        let member = Rc::clone(&set);
        run(&mut executor, async move { member.fail_disk(failing).await }).unwrap();
        let after = run(&mut executor, set.read(start, BytesMut::zeroed(4 * STRIPE as usize))).unwrap();
        assert!(before == after, "without {failing} other bytes are read");
    }
}

#[test]
fn checksums_are_those_of_what_was_written_without_waiting() {
    let (mut executor, config) = (Executor::new(), config(RaidLevel::Raid5));
    let drives = crash_disks(&executor, 3);
    let set = create(&mut executor, &config, &as_disks(&drives));
    let stripes = set.size_bytes() / (2 * CHUNK);
    for stripe in 0..stripes {
        write(&mut executor, &set, stripe * 2 * CHUNK, 2 * CHUNK, 1);
    }
    run(&mut executor, async move { set.close().await }).unwrap();
    for drive in &drives {
        drive.set_quick_spans(u64::MAX);
    }
    // Flags are set ahead of the writes. Checksums are read when they are needed.
    let assembling = RaidSet::assemble(executor.runtime(), config, as_disks(&drives), Vec::new());
    let set = run(&mut executor, assembling).unwrap();
    for stripe in 0..stripes {
        write(&mut executor, &set, stripe * 2 * CHUNK, 2 * CHUNK, 2);
    }
    for stripe in 0..stripes {
        reads_as(&mut executor, &set, stripe * 2 * CHUNK, 2 * CHUNK, 2);
    }
}

#[test]
fn a_mark_of_a_lost_block_goes_when_new_contents_are_durable() {
    let (mut executor, config) = (Executor::new(), config(RaidLevel::Raid5));
    let drives = crash_disks(&executor, 3);
    let disks = as_disks(&drives);
    let set = create(&mut executor, &config, &disks);
    write(&mut executor, &set, 0, CHUNK, 1);
    write(&mut executor, &set, CHUNK, CHUNK, 2);
    for byte in [1, 2] {
        assert_eq!(disks.iter().filter_map(|disk| rot(&mut executor, disk, byte)).count(), 1);
    }
    // Parity of this write needs the block of the other chunk, which is lost.
    write(&mut executor, &set, 0, 4096, 3);
    let lost = run(&mut executor, set.read(CHUNK, BytesMut::zeroed(4096)));
    assert!(matches!(lost, Err(DiskError::Unreadable { .. })), "{lost:?}");
    run(&mut executor, set.write(CHUNK, Bytes::from(vec![4; 4096]), false)).unwrap();

    let (mut executor, set) = after_lost_caches(&config, &drives);
    reads_as(&mut executor, &set, CHUNK, 4096, 4);
}

#[test]
fn a_rebuild_that_is_recorded_rests_on_what_is_durable() {
    let rebuild_bytes_per_s = Some(1 << 20);
    let config = RaidConfig { rebuild_bytes_per_s, checksums: false, ..config(RaidLevel::Raid5) };
    let mut executor = Executor::new();
    let drives = crash_disks(&executor, 4);
    let mut disks = as_disks(&drives);
    let new = disks.remove(3);
    let set = create(&mut executor, &config, &disks);
    write(&mut executor, &set, 0, 2 * CHUNK, 1);
    let runtime = executor.runtime();
    let rebuilding = async move {
        // The parity of the first stripe is on this disk: without it, writes go past the journal.
        set.fail_disk("d2").await.unwrap();
        set.write(CHUNK, Bytes::from(vec![2; CHUNK as usize]), false).await.unwrap();
        set.replace_disk("d2", new).await.unwrap();
        runtime.sleep(5_000_000_000).await;
        assert_eq!(set.status().task.map(|task| task.kind), Some(TaskKind::Rebuild));
    };
    run(&mut executor, rebuilding);

    // The power fails. The old drives lose what was only in their caches, and the new one nothing.
    let mut executor = Executor::new();
    let image = |number: usize| {
        let cut = |_, contents: usize| if number == 3 { contents - 1 } else { 0 };
        Rc::new(drives[number].image(&executor.runtime(), 0, cut)) as Rc<dyn Disk>
    };
    let images = [0, 1, 3].map(image).to_vec();
    let assembling = RaidSet::assemble(executor.runtime(), config, images, Vec::new());
    let set = run(&mut executor, assembling).unwrap();
    let runtime = executor.runtime();
    run(&mut executor, until_optimal(runtime, Rc::clone(&set)));
    let failing = Rc::clone(&set);
    run(&mut executor, async move { failing.fail_disk("d0").await }).unwrap();
    reads_as(&mut executor, &set, 0, CHUNK, 1);
}

#[test]
fn what_the_set_needs_is_not_replaced_and_what_it_does_not_know_is_refused() {
    let mut executor = Executor::new();
    let set = create(&mut executor, &config(RaidLevel::Raid5), &disks(0..3, 8 << 20));
    let other =
        |name: &str, size_bytes| Rc::new(MemoryDisk::new(name, size_bytes, 512).unwrap()) as Rc<dyn Disk>;
    let mut ask = |old: &'static str, new: Rc<dyn Disk>| {
        let set = Rc::clone(&set);
        run(&mut executor, async move { set.replace_disk(old, new).await })
    };
    assert!(matches!(ask("d9", other("n", 8 << 20)), Err(RaidError::NoSuchDisk { .. })));
    assert!(matches!(ask("d0", other("d1", 8 << 20)), Err(RaidError::SameName { .. })));
    assert!(matches!(ask("d0", other("n", 2 << 20)), Err(RaidError::TooSmall { .. })));
    assert_eq!(ask("d0", other("n0", 8 << 20)), Ok(()));
    assert!(matches!(ask("d1", other("n1", 8 << 20)), Err(RaidError::Needed { .. })));
}

#[test]
fn what_no_scrub_can_show_is_not_scrubbed_and_a_failed_set_does_nothing() {
    let mut executor = Executor::new();
    let plain = create(&mut executor, &config(RaidLevel::Raid0), &disks(0..2, 4 << 20));
    assert!(matches!(plain.may_scrub(), Err(RaidError::NoScrub { .. })));
    let set = create(&mut executor, &config(RaidLevel::Raid5), &disks(0..3, 4 << 20));
    let runtime = executor.runtime();
    run(&mut executor, async move {
        until_optimal(runtime, Rc::clone(&set)).await;
        assert_eq!(set.may_scrub(), Ok(()));
        set.add_spare(disks(9..10, 4 << 20).remove(0)).await.unwrap();
        set.fail_disk("d0").await.unwrap();
        assert!(set.status().task.is_some(), "the spare is filled");
        set.fail_disk("d1").await.unwrap();
        assert_eq!((set.status().state, set.status().task), (RaidState::Failed, None));
        assert!(matches!(set.may_scrub(), Err(RaidError::NoScrub { .. })));
    });
}

#[test]
fn raid_0_serves_from_where_the_bytes_lie_and_ends_with_its_first_disk() {
    let mut executor = Executor::new();
    let disks = disks(0..3, 8 << 20);
    let set = create(&mut executor, &config(RaidLevel::Raid0), &disks);
    write(&mut executor, &set, 3 * CHUNK + 512, 512, 9);
    let before = disks[0].stats().read_bytes;
    let pages = set.striped_pages().unwrap();
    let found = pages.run(3 * CHUNK + 512, 2 * CHUNK);
    assert_eq!((found.member, found.len), (0, CHUNK - 512));
    let mut bytes = [0; 512];
    pages.member(0).region().read(found.offset, &mut bytes);
    pages.member(0).count_read(512);
    assert_eq!((bytes, disks[0].stats().read_bytes - before), ([9; 512], 512));
    assert!(pages.is_served());
    let failing = Rc::clone(&set);
    run(&mut executor, async move { failing.fail_disk("d1").await }).unwrap();
    let result = run(&mut executor, set.read(CHUNK, BytesMut::zeroed(512)));
    assert_eq!(result, Err(DiskError::Lost("r0".into())));
    assert!(!pages.is_served());
}

#[test]
fn only_bare_memory_is_served_from_where_it_lies() {
    let mut executor = Executor::new();
    let redundant = create(&mut executor, &config(RaidLevel::Raid1), &disks(0..2, 8 << 20));
    assert!(redundant.striped_pages().is_none());
    let bare = disks(0..1, 8 << 20).remove(0);
    let faulty: Rc<dyn Disk> = Rc::new(FaultyDisk::new(&executor.runtime(), bare, 1));
    let wrapped = create(&mut executor, &config(RaidLevel::Raid0), &[faulty]);
    assert!(wrapped.striped_pages().is_none());
}
