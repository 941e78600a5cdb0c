//! A pool's metadata when the disk damages it, when a write is interrupted at any point, and when space for it runs
//! low.

use bytes::{Bytes, BytesMut};
use linerate_storage::{
    Disk, DiskError, Executor, Runtime,
    disk::{CrashDisk, FaultyDisk, MemoryDisk},
    pool::{Pool, PoolConfig, PoolError},
};
use std::{future::Future, rc::Rc};

const PAGE: u64 = 4096;
const DISK_BYTES: u64 = 9 << 20;
/// Where the first copy begins, and how long each is, for a disk of this size.
const COPY: u64 = 4096;
const COPY_BYTES: u64 = (4 << 20) + 4096;

fn config() -> PoolConfig {
    PoolConfig { page_bytes: PAGE, ..PoolConfig::new("p0") }
}

fn run<T: 'static, F: Future<Output = T> + 'static>(
    executor: &mut Executor,
    work: impl FnOnce(Runtime) -> F,
) -> T {
    let work = work(executor.runtime());
    executor.run_in_virtual_time(work).expect("everything waits for something")
}

/// A pool with a snapshot and a setting.
async fn fill(runtime: Runtime, disk: Rc<dyn Disk>) -> Result<(), PoolError> {
    let pool = Pool::create(runtime, config(), disk).await?;
    let volume = pool.create_volume("v0", 64 * PAGE).await?;
    volume.write(0, Bytes::from(vec![1; 4 * PAGE as usize]), true).await?;
    pool.snapshot(&["v0"], "s1", 1.5).await?;
    volume.write(PAGE, Bytes::from(vec![2; PAGE as usize]), true).await?;
    pool.put_setting("key", Some(Bytes::from("value"))).await
}

async fn check(runtime: Runtime, disk: Rc<dyn Disk>) -> Result<(), PoolError> {
    let pool = Pool::open(runtime, config(), disk).await?;
    assert_eq!(pool.setting("key"), Some(Bytes::from("value")));
    let status = pool.status();
    assert_eq!((status.used_bytes, pool.volumes()[0].snapshots[0].at_s), (5 * PAGE, 1.5));
    let (volume, view) = (pool.volume("v0").unwrap(), pool.view("v0", "s1")?);
    assert_eq!(volume.read(PAGE, BytesMut::zeroed(PAGE as usize)).await?[..], [2; PAGE as usize]);
    assert_eq!(view.read(PAGE, BytesMut::zeroed(PAGE as usize)).await?[..], [1; PAGE as usize]);
    // The repaired copy is written to as before.
    pool.put_setting("key", Some(Bytes::from("value"))).await
}

fn filled(executor: &mut Executor) -> FaultyDisk {
    let memory = Rc::new(MemoryDisk::new("d0", DISK_BYTES, 512).unwrap());
    let disk = FaultyDisk::new(&executor.runtime(), memory, 1);
    run(executor, |runtime| fill(runtime, Rc::new(disk.clone()))).unwrap();
    disk
}

#[test]
fn either_copy_of_the_metadata_is_enough_and_the_other_is_mended() {
    let far = DISK_BYTES - 4096 - COPY_BYTES;
    for (start, len) in
        [(0, 4096), (DISK_BYTES - 4096, 4096), (COPY, 4096), (COPY + 8192, 65_536), (far, 65_536)]
    {
        let mut executor = Executor::new();
        let disk = filled(&mut executor);
        disk.make_unreadable(start, len);
        run(&mut executor, |runtime| check(runtime, Rc::new(disk.clone()))).unwrap();
        assert!(
            run(&mut executor, |_| disk.read(start, BytesMut::zeroed(len as usize))).is_ok(),
            "{start}+{len} is not mended"
        );
        let mut executor = Executor::new();
        let disk = filled(&mut executor);
        run(&mut executor, |_| disk.write(start, Bytes::from(vec![0xA5; len as usize]), true)).unwrap();
        let shared: Rc<dyn Disk> = Rc::new(disk);
        run(&mut executor, |runtime| check(runtime, Rc::clone(&shared))).unwrap();
        let other = if start < DISK_BYTES / 2 { (far, COPY_BYTES) } else { (COPY, COPY_BYTES) };
        run(&mut executor, |_| shared.write(other.0, Bytes::from(vec![0x5A; other.1 as usize]), true))
            .unwrap();
        run(&mut executor, |runtime| check(runtime, shared)).unwrap();
    }
}

#[test]
fn damage_to_both_copies_is_an_error_and_never_an_empty_pool() {
    for places in [[0, DISK_BYTES - 4096], [COPY, DISK_BYTES - 4096 - COPY_BYTES]] {
        let mut executor = Executor::new();
        let disk = filled(&mut executor);
        for start in places {
            disk.make_unreadable(start, 4096);
        }
        let error = run(&mut executor, |runtime| Pool::open(runtime, config(), Rc::new(disk))).unwrap_err();
        assert!(matches!(error, PoolError::Disk(DiskError::Corrupt { .. })), "{error}");
    }
}

#[test]
fn a_disk_that_fails_stops_changes_and_a_restart_finds_what_was_acknowledged() {
    let mut executor = Executor::new();
    let disk = filled(&mut executor);
    let at_work = disk.clone();
    run(&mut executor, |runtime| async move {
        let pool = Pool::open(runtime, config(), Rc::new(at_work.clone())).await.unwrap();
        at_work.fail();
        let failed = PoolError::Disk(DiskError::Failed("d0".into()));
        assert_eq!(pool.put_setting("key", Some(Bytes::from("other"))).await, Err(failed.clone()));
        at_work.revive();
        assert_eq!(pool.create_volume("v1", PAGE).await.map(drop), Err(failed));
        assert!(pool.status().failure.is_some());
    });
    run(&mut executor, |runtime| check(runtime, Rc::new(disk))).unwrap();
}

/// Cuts the power after each number of operations, and checks the contents with all unflushed writes lost, or none.
#[test]
fn a_pool_that_is_being_made_is_there_wholly_or_not_at_all() {
    let mut found = [0; 2];
    for operations in 0.. {
        let mut executor = Executor::new();
        let crash = CrashDisk::new(&executor.runtime(), "d0", DISK_BYTES, 4096, operations);
        let faulty = FaultyDisk::new(&executor.runtime(), Rc::new(crash.clone()), 1);
        faulty.fail_after(operations);
        let made = run(&mut executor, |runtime| Pool::create(runtime, config(), Rc::new(faulty)));
        for keeps_all in [false, true] {
            let mut after = Executor::new();
            let disk = crash.image(&after.runtime(), 1, |_, count| if keeps_all { count - 1 } else { 0 });
            match run(&mut after, |runtime| Pool::open(runtime, config(), Rc::new(disk))) {
                Ok(pool) => {
                    found[0] += 1;
                    assert_eq!(pool.status().used_bytes, 0);
                }
                Err(error) => {
                    found[1] += 1;
                    assert_eq!(error, PoolError::NoPool("d0".into()), "after {operations} operations");
                    assert!(made.is_err(), "it was there");
                }
            }
        }
        if made.is_ok() {
            break;
        }
    }
    assert!(found[0] > 1 && found[1] > 4, "{found:?}");
}

/// Deletes two snapshots at once, and cuts the power at many instants: all metadata is lost that is not flushed, and no
/// data.
#[test]
fn a_snapshot_keeps_its_pages_until_its_deletion_is_durable() {
    const LOOKS: u64 = 128;
    let mut executor = Executor::new();
    let crash = CrashDisk::new(&executor.runtime(), "d0", DISK_BYTES, 4096, 1);
    let disk: Rc<dyn Disk> = Rc::new(crash.clone());
    let config = PoolConfig { merge_leaves: 1, ..config() };
    let many_steps = 40;
    let pool = run(&mut executor, |runtime| async move {
        let pool = Pool::create(runtime, config, disk).await.unwrap();
        // Layers are merged from the newest on, one leaf at a time.
        let large = pool.create_volume("v1", 64 * many_steps * PAGE).await.unwrap();
        let small = pool.create_volume("v0", LOOKS * PAGE).await.unwrap();
        small.write(0, Bytes::from(vec![1; (LOOKS * PAGE) as usize]), true).await.unwrap();
        for step in 0..many_steps {
            large.write(64 * step * PAGE, Bytes::from(vec![2; PAGE as usize]), false).await.unwrap();
        }
        pool.snapshot(&["v0"], "s", 1.5).await.unwrap();
        pool.snapshot(&["v1"], "s", 1.5).await.unwrap();
        pool
    });
    crash.set_delay(50_000, 100_000);
    let volume = pool.volume("v0").unwrap();
    let runtime = executor.runtime();
    let large = pool.delete_snapshot("v1", "s");
    runtime.spawn(async move { assert_eq!(large.await, Ok(())) });
    run(&mut executor, |runtime| async move { runtime.sleep(300_000).await });
    let small = pool.delete_snapshot("v0", "s");
    runtime.spawn(async move { assert_eq!(small.await, Ok(())) });
    let metadata = COPY + COPY_BYTES;
    let (mut there, mut gone) = (0, 0);
    for look in 0..LOOKS {
        // Each write is the first one to its page: in place, if that is the volume's own.
        let writing = volume.write(look * PAGE, Bytes::from(vec![9; PAGE as usize]), false);
        runtime.spawn(async move { assert_eq!(writing.await, Ok(())) });
        run(&mut executor, |runtime| async move { runtime.sleep(10_000).await });
        let mut after = Executor::new();
        let pick = |block: u64, contents: usize| {
            let is_data = (metadata..DISK_BYTES - metadata).contains(&(block * 4096));
            if is_data { contents - 1 } else { 0 }
        };
        let disk = crash.image(&after.runtime(), 1, pick);
        let pool = run(&mut after, |runtime| Pool::open(runtime, self::config(), Rc::new(disk))).unwrap();
        let Ok(view) = pool.view("v0", "s") else {
            gone += 1;
            continue;
        };
        there += 1;
        let bytes = run(&mut after, |_| view.read(0, BytesMut::zeroed((LOOKS * PAGE) as usize))).unwrap();
        let changed = bytes.iter().position(|byte| *byte != 1);
        assert_eq!(changed, None, "of the snapshot, after {look} looks");
    }
    assert!(there > 5 && gone > 5, "{there} {gone}");
}

#[test]
fn room_for_metadata_suffices_for_every_page_and_is_refused_to_others_in_time() {
    let mut executor = Executor::new();
    run(&mut executor, |runtime| async move {
        let disk: Rc<dyn Disk> = Rc::new(MemoryDisk::new("d0", 60 << 20, 512).unwrap());
        let pool = Pool::create(runtime.clone(), config(), Rc::clone(&disk)).await.unwrap();
        let volume = pool.create_volume("v0", 1 << 40).await.unwrap();
        let value = Some(Bytes::from(vec![7; 4096]));
        let mut settings = 0;
        let error = loop {
            match pool.put_setting(&format!("key{settings}"), value.clone()).await {
                Ok(()) => settings += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error, PoolError::Disk(DiskError::Full("p0".into())));
        assert!(settings > 100, "{settings}");
        // The maximum that pages can need is one leaf for each.
        let pages = pool.status().size_bytes / PAGE;
        for index in 0..pages {
            volume.write(index * 64 * PAGE, Bytes::from(vec![5; 512]), false).await.unwrap();
            if index % 256 == 0 {
                volume.flush().await.unwrap();
            }
        }
        volume.flush().await.unwrap();
        let too_many = volume.write(pages * 64 * PAGE, Bytes::from(vec![5; 512]), false).await;
        assert_eq!(too_many, Err(DiskError::Full("p0".into())));
        let too_long = pool.put_setting("key", Some(Bytes::from(vec![0; 1 << 20]))).await.unwrap_err();
        assert!(matches!(too_long, PoolError::SettingsTooLong { .. }), "{too_long}");
        for number in 0..settings {
            pool.put_setting(&format!("key{number}"), None).await.unwrap();
        }
        assert_eq!(pool.status().failure, None);
        drop((pool, volume));
        let pool = Pool::open(runtime, config(), disk).await.unwrap();
        assert_eq!(pool.status().used_bytes, pages * PAGE);
    });
}
