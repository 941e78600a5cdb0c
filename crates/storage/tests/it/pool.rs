//! A pool as its users see it: thin volumes, snapshots, clones, limits, settings; before and after it is opened again.

use bytes::{Bytes, BytesMut};
use linerate_io::Region;
use linerate_storage::{
    Disk, DiskError, Executor, Runtime,
    disk::{Chunk, Lease, MemoryDisk},
    pool::{Change, Extent, MIN_PAGE_BYTES, Pool, PoolConfig, PoolError, PoolVolume},
};
use std::{future::Future, rc::Rc, sync::Arc};

const PAGE: u64 = 64 << 10;
const DISK_BYTES: u64 = 16 << 20;

fn config() -> PoolConfig {
    PoolConfig { page_bytes: PAGE, ..PoolConfig::new("p0") }
}

/// Runs a test on a pool on an empty disk.
fn with_pool<F: Future<Output = ()> + 'static>(
    config: PoolConfig,
    test: impl FnOnce(Pool, Rc<dyn Disk>, Runtime) -> F + 'static,
) {
    let mut executor = Executor::new();
    let runtime = executor.runtime();
    let end = executor.run_in_virtual_time(async move {
        let disk: Rc<dyn Disk> = Rc::new(MemoryDisk::new("d0", DISK_BYTES, 512).unwrap());
        let pool = Pool::create(runtime.clone(), config, Rc::clone(&disk)).await.unwrap();
        test(pool, disk, runtime).await;
    });
    assert_eq!(end, Some(()), "everything waits for something");
}

async fn put(disk: &dyn Disk, offset: u64, len: u64, byte: u8) {
    disk.write(offset, Bytes::from(vec![byte; len as usize]), true).await.unwrap();
}

/// The byte that fills a range; panics if the bytes differ.
async fn byte_of(disk: &dyn Disk, offset: u64, len: u64) -> u8 {
    let bytes = disk.read(offset, BytesMut::zeroed(len as usize)).await.unwrap();
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "one byte in {offset}+{len}");
    bytes[0]
}

fn used_pages(pool: &Pool) -> u64 {
    pool.status().used_bytes / PAGE
}

#[test]
fn a_volume_takes_up_what_is_written_and_gives_back_what_is_discarded() {
    with_pool(config(), |pool, disk, runtime| async move {
        let volume = pool.create_volume("v0", 1 << 40).await.unwrap();
        assert_eq!((volume.size_bytes(), used_pages(&pool)), (1 << 40, 0));
        assert_eq!(byte_of(volume.as_ref(), (1 << 40) - PAGE, PAGE).await, 0);
        put(volume.as_ref(), 3 * PAGE - 512, 1024, 7).await;
        assert_eq!(used_pages(&pool), 2);
        assert_eq!(byte_of(volume.as_ref(), 2 * PAGE, PAGE - 512).await, 0);
        let extent = volume.allocated(PAGE).unwrap();
        assert_eq!(extent, Extent { offset_bytes: PAGE, len_bytes: PAGE, is_mapped: false });
        let extent = volume.allocated(2 * PAGE + 512).unwrap();
        assert_eq!(
            extent,
            Extent { offset_bytes: 2 * PAGE + 512, len_bytes: 2 * PAGE - 512, is_mapped: true }
        );
        volume.discard(2 * PAGE, PAGE + 512).await.unwrap();
        volume.flush().await.unwrap();
        assert_eq!(used_pages(&pool), 1);
        assert_eq!(byte_of(volume.as_ref(), 2 * PAGE, 2 * PAGE).await, 0);
        drop((pool, volume));
        let pool = Pool::open(runtime, config(), disk).await.unwrap();
        let volume = pool.volume("v0").unwrap();
        assert_eq!((used_pages(&pool), volume.size_bytes()), (1, 1 << 40));
        assert_eq!(byte_of(volume.as_ref(), 2 * PAGE, 2 * PAGE).await, 0);
    });
}

/// A page is written as a whole at its first use, unless it is known to hold zeros.
#[test]
fn on_a_disk_of_zeros_a_first_write_writes_nothing_around_it() {
    for is_disk_zeroed in [false, true] {
        with_pool(PoolConfig { is_disk_zeroed, ..config() }, move |pool, disk, _| async move {
            let volume = pool.create_volume("v0", 4 * PAGE).await.unwrap();
            let before = disk.stats().write_bytes;
            volume.write(512, Bytes::from(vec![7; 512]), false).await.unwrap();
            let written = disk.stats().write_bytes - before;
            assert_eq!(written < PAGE, is_disk_zeroed, "{written} bytes for 512");
            assert_eq!(byte_of(volume.as_ref(), 0, 512).await, 0);
            assert_eq!(byte_of(volume.as_ref(), 512, 512).await, 7);
            assert_eq!(byte_of(volume.as_ref(), 1024, PAGE - 1024).await, 0);
        });
    }
}

/// The pool is full, a reader sends a page in place, and the page's volume is deleted: another volume's write waits.
#[test]
fn a_page_that_is_lent_holds_no_other_volumes_bytes() {
    with_pool(config(), |pool, _, runtime| async move {
        let size_bytes = pool.status().size_bytes;
        let volume = pool.create_volume("v0", size_bytes).await.unwrap();
        put(volume.as_ref(), 0, size_bytes, 7).await;
        let (mut lease, mut places) = (Lease::default(), Vec::new());
        let mut lend = |chunk: Chunk<'_>| {
            let (region, offset) = lease.lend(chunk).unwrap();
            places.push((Arc::clone(region), offset, chunk.len()));
        };
        volume.read_nowait(PAGE, PAGE, &mut lend).unwrap();
        let all_are = |byte: u8| {
            let is = |(region, offset, len): &(Arc<Region>, u64, usize)| {
                region.compare(*offset, &vec![byte; *len]).is_none()
            };
            places.iter().all(is)
        };
        assert!(all_are(7) && places.iter().map(|(_, _, len)| *len as u64).sum::<u64>() == PAGE);
        pool.delete("v0").await.unwrap();
        let other = pool.create_volume("v1", size_bytes).await.unwrap();
        put(other.as_ref(), 0, size_bytes - PAGE, 9).await;
        let last = other.write(size_bytes - PAGE, Bytes::from(vec![9; PAGE as usize]), true);
        runtime.sleep(100_000_000).await;
        assert!(all_are(7), "the page has another volume's bytes");
        drop(lease);
        last.await.unwrap();
        assert!(all_are(9), "the page was free at last");
    });
}

/// Fills a pool on a disk of zeros, deletes the volume, and uses all pages once more.
#[test]
fn a_page_that_was_used_is_not_taken_for_zeros() {
    with_pool(PoolConfig { is_disk_zeroed: true, ..config() }, |pool, _, _| async move {
        let size_bytes = pool.status().size_bytes;
        let volume = pool.create_volume("v0", size_bytes).await.unwrap();
        put(volume.as_ref(), 0, size_bytes, 9).await;
        pool.delete("v0").await.unwrap();
        let volume = pool.create_volume("v1", size_bytes).await.unwrap();
        for page in (0..size_bytes).step_by(PAGE as usize) {
            put(volume.as_ref(), page, 512, 5).await;
            assert_eq!(byte_of(volume.as_ref(), page + 512, PAGE - 512).await, 0, "page at {page}");
        }
    });
}

#[test]
fn a_snapshot_stays_as_it_was_and_a_volume_goes_back_to_it() {
    with_pool(config(), |pool, disk, runtime| async move {
        let volume = pool.create_volume("v0", 8 * PAGE).await.unwrap();
        put(volume.as_ref(), 0, 4 * PAGE, 1).await;
        pool.snapshot(&["v0"], "s1", 100.0).await.unwrap();
        put(volume.as_ref(), PAGE + 512, 512, 2).await;
        volume.discard(2 * PAGE, PAGE).await.unwrap();
        pool.snapshot(&["v0"], "s2", 200.0).await.unwrap();
        put(volume.as_ref(), 0, 8 * PAGE, 3).await;
        drop((pool, volume));
        let pool = Pool::open(runtime, config(), disk).await.unwrap();
        let (volume, s1) = (pool.volume("v0").unwrap(), pool.view("v0", "s1").unwrap());
        let s2 = pool.view("v0", "s2").unwrap();
        assert_eq!(byte_of(s1.as_ref(), 0, 4 * PAGE).await, 1);
        assert_eq!(byte_of(s2.as_ref(), PAGE, 512).await, 1);
        assert_eq!(byte_of(s2.as_ref(), PAGE + 512, 512).await, 2);
        assert_eq!(byte_of(s2.as_ref(), 2 * PAGE, PAGE).await, 0);
        assert_eq!(
            s2.write(0, Bytes::from(vec![0; 512]), false).await,
            Err(DiskError::Protected("v0@s2".into()))
        );
        let page = |index: u64, is_hole| Change { offset_bytes: index * PAGE, len_bytes: PAGE, is_hole };
        assert_eq!(pool.changed("v0", Some("s1"), "s2").unwrap(), [page(1, false), page(2, true)]);
        assert_eq!(
            pool.changed("v0", Some("s2"), "s1").unwrap(),
            [Change { len_bytes: 2 * PAGE, ..page(1, false) }]
        );
        let all = [Change { len_bytes: 2 * PAGE, ..page(0, false) }, page(3, false)];
        assert_eq!(pool.changed("v0", None, "s2").unwrap(), all);
        assert_eq!(used_pages(&pool), 4 + 1 + 8);
        pool.restore("v0", "s1").await.unwrap();
        assert_eq!(used_pages(&pool), 4 + 1);
        assert_eq!(byte_of(volume.as_ref(), 0, 4 * PAGE).await, 1);
        assert_eq!(byte_of(volume.as_ref(), 4 * PAGE, 4 * PAGE).await, 0);
        put(volume.as_ref(), 0, PAGE, 9).await;
        assert_eq!(byte_of(s1.as_ref(), 0, 4 * PAGE).await, 1);
        assert_eq!(byte_of(s2.as_ref(), PAGE + 512, 512).await, 2);
        pool.delete_snapshot("v0", "s1").await.unwrap();
        pool.delete_snapshot("v0", "s2").await.unwrap();
        assert_eq!(used_pages(&pool), 4);
        assert_eq!(byte_of(volume.as_ref(), PAGE, 3 * PAGE).await, 1);
        assert!(s1.read(0, BytesMut::zeroed(512)).await.is_err(), "the view went with its snapshot");
        pool.delete("v0").await.unwrap();
        assert_eq!(used_pages(&pool), 0);
        assert_eq!(volume.flush().await, Err(DiskError::Failed("v0".into())));
    });
}

#[test]
fn a_clone_outlives_the_volume_that_it_came_from() {
    with_pool(config(), |pool, _, _| async move {
        let volume = pool.create_volume("v0", 4 * PAGE).await.unwrap();
        put(volume.as_ref(), 0, 4 * PAGE, 1).await;
        pool.snapshot(&["v0"], "s1", 1.0).await.unwrap();
        let clone = pool.clone_snapshot("v0", "s1", "v1").await.unwrap();
        put(clone.as_ref(), 0, PAGE, 2).await;
        put(volume.as_ref(), PAGE, PAGE, 3).await;
        assert_eq!(pool.delete("v0").await, Err(PoolError::HasSnapshots("v0".into())));
        pool.delete_snapshot("v0", "s1").await.unwrap();
        pool.delete("v0").await.unwrap();
        assert_eq!(used_pages(&pool), 4);
        assert_eq!(byte_of(clone.as_ref(), 0, PAGE).await, 2);
        assert_eq!(byte_of(clone.as_ref(), PAGE, 3 * PAGE).await, 1);
    });
}

#[test]
fn a_resized_volume_shows_no_old_bytes() {
    with_pool(config(), |pool, _, _| async move {
        let volume = pool.create_volume("v0", 4 * PAGE).await.unwrap();
        put(volume.as_ref(), 0, 4 * PAGE, 1).await;
        pool.snapshot(&["v0"], "s1", 1.0).await.unwrap();
        pool.resize("v0", PAGE + 512).await.unwrap();
        let outside = DiskError::OutOfRange { offset_bytes: PAGE + 512, len_bytes: 512 };
        assert_eq!(volume.read(PAGE + 512, BytesMut::zeroed(512)).await, Err(outside));
        pool.resize("v0", 8 * PAGE).await.unwrap();
        assert_eq!(byte_of(volume.as_ref(), 0, PAGE + 512).await, 1);
        assert_eq!(byte_of(volume.as_ref(), PAGE + 512, 7 * PAGE - 512).await, 0);
        let view = pool.view("v0", "s1").unwrap();
        assert_eq!((view.size_bytes(), byte_of(view.as_ref(), 0, 4 * PAGE).await), (4 * PAGE, 1));
        pool.restore("v0", "s1").await.unwrap();
        assert_eq!(volume.size_bytes(), 4 * PAGE);
        assert_eq!(pool.resize("v0", 100).await, Err(PoolError::BadSize(100)));
    });
}

#[test]
fn an_end_within_a_page_tells_two_snapshots_apart_that_share_the_page() {
    with_pool(config(), |pool, _, _| async move {
        let volume = pool.create_volume("v0", 2 * PAGE).await.unwrap();
        put(volume.as_ref(), 0, PAGE, 1).await;
        pool.snapshot(&["v0"], "long", 1.0).await.unwrap();
        pool.resize("v0", 512).await.unwrap();
        pool.snapshot(&["v0"], "short", 2.0).await.unwrap();
        let change = Change { offset_bytes: 0, len_bytes: PAGE, is_hole: false };
        assert_eq!(pool.changed("v0", Some("short"), "long").unwrap(), [change]);
        assert_eq!(pool.changed("v0", Some("long"), "short").unwrap(), []);
    });
}

/// Fills the pool through `volume`; returns the pages written until it was full.
async fn fill(volume: &PoolVolume) -> u64 {
    for index in 0.. {
        match volume.write(index * PAGE, Bytes::from(vec![5; 512]), false).await {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error, DiskError::Full("p0".into()));
                return index;
            }
        }
    }
    unreachable!()
}

#[test]
fn a_full_pool_says_so_and_takes_writes_again_when_pages_come_back() {
    with_pool(config(), |pool, _, _| async move {
        let volume = pool.create_volume("v0", 1 << 30).await.unwrap();
        assert!(!pool.status().warning);
        let pages = fill(&volume).await;
        let status = pool.status();
        assert!(status.warning);
        assert_eq!((pages * PAGE, status.used_bytes), (status.size_bytes, status.size_bytes));
        put(volume.as_ref(), 0, PAGE, 6).await;
        // The discard is not durable yet: the write waits for it.
        volume.discard(PAGE, 2 * PAGE).await.unwrap();
        put(volume.as_ref(), pages * PAGE, 2 * PAGE, 7).await;
        assert_eq!(byte_of(volume.as_ref(), PAGE, 2 * PAGE).await, 0);
        assert_eq!(byte_of(volume.as_ref(), pages * PAGE, 2 * PAGE).await, 7);
        pool.snapshot(&["v0"], "s1", 1.0).await.unwrap();
        let write = volume.write(0, Bytes::from(vec![8; 512]), false).await;
        assert_eq!(
            write,
            Err(DiskError::Full("p0".into())),
            "even what is mapped needs a page after a snapshot"
        );
    });
}

#[test]
fn promises_end_at_the_ratio() {
    let config = PoolConfig { overcommit: Some(1.5), ..config() };
    with_pool(config, |pool, _, _| async move {
        let limit = pool.status().size_bytes * 3 / 2;
        pool.create_volume("v0", limit - PAGE).await.unwrap();
        let error = pool.create_volume("v1", 2 * PAGE).await.unwrap_err();
        assert_eq!(error, PoolError::Overcommitted { provisioned_bytes: limit + PAGE, limit_bytes: limit });
        let error = pool.resize("v0", limit + 512).await.unwrap_err();
        assert_eq!(error, PoolError::Overcommitted { provisioned_bytes: limit + 512, limit_bytes: limit });
        pool.resize("v0", limit).await.unwrap();
        assert_eq!(pool.status().provisioned_bytes, limit);
    });
}

#[test]
fn names_and_disks_are_checked() {
    with_pool(config(), |pool, disk, runtime| async move {
        for name in ["", "a b", "a/b", &"x".repeat(49)] {
            assert_eq!(pool.create_volume(name, PAGE).await.unwrap_err(), PoolError::BadName(name.into()));
        }
        pool.create_volume("v0", PAGE).await.unwrap();
        assert_eq!(pool.create_volume("v0", PAGE).await.unwrap_err(), PoolError::Exists("v0".into()));
        assert_eq!(pool.delete("v1").await, Err(PoolError::NoVolume("v1".into())));
        pool.snapshot(&["v0"], "s1", 1.0).await.unwrap();
        assert_eq!(pool.snapshot(&["v0"], "s1", 2.0).await, Err(PoolError::Exists("v0@s1".into())));
        let other = PoolConfig::new("p0");
        assert_eq!(
            Pool::open(runtime.clone(), other, disk).await.unwrap_err(),
            PoolError::PageBytes(1 << 20)
        );
        let empty: Rc<dyn Disk> = Rc::new(MemoryDisk::new("d1", DISK_BYTES, 512).unwrap());
        assert_eq!(
            Pool::open(runtime.clone(), config(), empty).await.unwrap_err(),
            PoolError::NoPool("d1".into())
        );
        let small: Rc<dyn Disk> = Rc::new(MemoryDisk::new("d2", 1 << 20, 512).unwrap());
        let error = Pool::create(runtime, config(), small).await.unwrap_err();
        assert!(matches!(error, PoolError::TooSmall { disk_bytes: 1_048_576, .. }), "{error}");
    });
}

#[test]
fn settings_are_there_when_the_pool_is_opened_again() {
    with_pool(config(), |pool, disk, runtime| async move {
        let value = |text: &'static str| Some(Bytes::from(text));
        pool.put_setting("export/v0", value("lun 3")).await.unwrap();
        pool.put_settings(vec![("export/v1".into(), value("lun 4")), ("other".into(), value("x"))])
            .await
            .unwrap();
        pool.put_setting("export/v0", None).await.unwrap();
        drop(pool);
        let pool = Pool::open(runtime, config(), disk).await.unwrap();
        assert_eq!((pool.setting("export/v1"), pool.setting("export/v0")), (value("lun 4"), None));
        assert_eq!(pool.setting_keys("export/"), ["export/v1"]);
    });
}

#[test]
fn a_large_snapshot_goes_in_steps_and_others_have_their_turn() {
    const LEAVES: u64 = 1000;
    /// From one leaf of the map to the next.
    const LEAF_BYTES: u64 = 64 * MIN_PAGE_BYTES;
    let config = PoolConfig { page_bytes: MIN_PAGE_BYTES, merge_leaves: 128, ..config() };
    with_pool(config, |pool, _, runtime| async move {
        let pages = |pool: &Pool| pool.status().used_bytes / MIN_PAGE_BYTES;
        let volume = pool.create_volume("v0", LEAVES * LEAF_BYTES).await.unwrap();
        for leaf in 0..LEAVES {
            put(volume.as_ref(), leaf * LEAF_BYTES, MIN_PAGE_BYTES, 1).await;
        }
        pool.snapshot(&["v0"], "s1", 1.0).await.unwrap();
        for leaf in (0..LEAVES).step_by(2) {
            put(volume.as_ref(), leaf * LEAF_BYTES, MIN_PAGE_BYTES, 2).await;
        }
        assert_eq!(pages(&pool), LEAVES + LEAVES / 2);
        // Operations on memory take no time, so the clock moves once between two steps and at no other time.
        let begun = runtime.now();
        let deleting = pool.delete_snapshot("v0", "s1");
        put(volume.as_ref(), (LEAVES - 1) * LEAF_BYTES, MIN_PAGE_BYTES, 3).await;
        pool.snapshot(&["v0"], "s2", 2.0).await.unwrap();
        let waited = runtime.now() - begun;
        deleting.await.unwrap();
        let steps = runtime.now() - begun + 1;
        assert_eq!(steps, LEAVES.div_ceil(128));
        assert!(waited < 3, "a write and a verb waited for {waited} steps");
        assert_eq!(pages(&pool), LEAVES);
        for leaf in 0..LEAVES {
            let byte = if leaf == LEAVES - 1 { 3 } else { 2 - (leaf % 2) as u8 };
            assert_eq!(
                byte_of(volume.as_ref(), leaf * LEAF_BYTES, MIN_PAGE_BYTES).await,
                byte,
                "leaf {leaf}"
            );
        }
    });
}
