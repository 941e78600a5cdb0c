//! The models against the drives' sheets, in virtual time.

use super::{
    ModelledDisk,
    drives::{DRIVES, Mechanism, RotatingSheet, drive},
};
use crate::{
    disk::{Disk, DiskStats, MemoryDisk},
    runtime::{Executor, Runtime},
};
use bytes::{Bytes, BytesMut};
use std::{cell::Cell, rc::Rc};

const SIZE_BYTES: u64 = 8 << 30;
const MIB: u64 = 1 << 20;

fn disk(runtime: &Runtime, name: &str, block_bytes: u32) -> Rc<ModelledDisk> {
    let inner = MemoryDisk::new("d0", SIZE_BYTES, block_bytes).unwrap();
    Rc::new(ModelledDisk::new(runtime.clone(), drive(name).unwrap(), Rc::new(inner)))
}

/// A load on a disk: `depth` operations at a time, the n-th at the place that `at` returns.
struct Load {
    depth: u32,
    operations: u64,
    len: u64,
    writes: bool,
    at: fn(u64) -> u64,
}

/// The n-th place of a fixed random sequence (`SplitMix64`), aligned to 4 KiB.
fn random(nth: u64) -> u64 {
    let mixed = (nth + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)) % (SIZE_BYTES / 4096 - 1) * 4096
}

/// Runs a load; seconds of virtual time and the disk's counters.
fn run(name: &str, block_bytes: u32, load: &Load) -> (f64, DiskStats) {
    let mut executor = Executor::new();
    let runtime = executor.runtime();
    let disk = disk(&runtime, name, block_bytes);
    let next = Rc::new(Cell::new(0));
    let (len, writes, at, operations) = (load.len, load.writes, load.at, load.operations);
    let workers: Vec<_> = (0..load.depth)
        .map(|_| {
            let (disk, next) = (Rc::clone(&disk), Rc::clone(&next));
            async move {
                while next.get() < operations {
                    let offset = at(next.replace(next.get() + 1));
                    if writes {
                        disk.write(offset, Bytes::from(vec![1; len as usize]), false).await.unwrap();
                    } else {
                        disk.read(offset, BytesMut::zeroed(len as usize)).await.unwrap();
                    }
                }
            }
        })
        .collect();
    let seconds = executor
        .run_in_virtual_time(async move {
            futures::future::join_all(workers).await;
            runtime.now() as f64 / 1e9
        })
        .unwrap();
    (seconds, disk.stats())
}

fn iops(name: &str, depth: u32, writes: bool, operations: u64) -> f64 {
    let (seconds, stats) = run(name, 512, &Load { depth, operations, len: 4096, writes, at: random });
    assert_eq!(stats.reads + stats.writes, operations);
    operations as f64 / seconds
}

/// MB/s of 10^6 bytes.
fn sequential(name: &str, depth: u32, writes: bool, at: fn(u64) -> u64) -> f64 {
    let load = Load { depth, operations: 800, len: 128 << 10, writes, at };
    let (seconds, stats) = run(name, 512, &load);
    (stats.read_bytes + stats.write_bytes) as f64 / 1e6 / seconds
}

fn outer(nth: u64) -> u64 {
    nth * (128 << 10)
}

fn inner(nth: u64) -> u64 {
    SIZE_BYTES - 200 * MIB + nth * (128 << 10)
}

fn rotating() -> impl Iterator<Item = (&'static str, &'static RotatingSheet)> {
    DRIVES.iter().filter_map(|drive| match &drive.mechanism {
        Mechanism::Rotating(sheet) => Some((drive.name, sheet)),
        Mechanism::Flash(_) => None,
    })
}

fn near(measured: f64, expected: f64, share: f64, what: &str) {
    let off = measured / expected - 1.0;
    assert!(off.abs() < share, "{what}: {measured:.1}, expected {expected:.1}");
}

#[test]
fn a_random_read_takes_overhead_seek_and_half_a_revolution() {
    for (name, sheet) in rotating() {
        let access_us = sheet.overhead_us + sheet.read_seek.average_us + 30e6 / sheet.rpm;
        near(iops(name, 1, false, 1500), 1e6 / access_us, 0.03, name);
    }
}

#[test]
fn a_queue_is_served_in_an_order_that_saves_time() {
    for (name, _) in rotating() {
        let [one, eight, full] = [1, 8, 32].map(|depth| iops(name, depth, false, 1500));
        assert!(one * 1.6 < eight && eight * 1.15 < full && full < one * 3.0, "{name}: {one} {eight} {full}");
    }
}

#[test]
fn sequential_rates_are_those_of_the_zones() {
    for (name, sheet) in rotating() {
        for depth in [1, 8] {
            near(sequential(name, depth, false, outer), sheet.outer_mb_s, 0.025, name);
            near(sequential(name, depth, false, inner), sheet.inner_mb_s, 0.025, name);
        }
        if !sheet.write_cache {
            near(sequential(name, 8, true, outer), sheet.outer_mb_s, 0.025, name);
            // Between two commands the next sector passes the head, and returns one revolution later.
            let transfer_us = f64::from(128 << 10) / sheet.outer_mb_s;
            let one_by_one = f64::from(128 << 10) / (60e6 / sheet.rpm + transfer_us);
            near(sequential(name, 1, true, outer), one_by_one, 0.05, name);
        }
    }
}

#[test]
fn flash_has_the_sheets_latencies_and_rates() {
    for drive in &DRIVES {
        let Mechanism::Flash(sheet) = &drive.mechanism else { continue };
        let name = drive.name;
        near(iops(name, 1, false, 500), 1e6 / sheet.random_read_us, 0.01, name);
        near(iops(name, 64, false, 5000), sheet.read_iops, 0.03, name);
        near(iops(name, 64, true, 5000), sheet.write_iops, 0.02, name);
        near(sequential(name, 32, false, outer), sheet.read_mb_s, 0.03, name);
        near(sequential(name, 32, true, outer), sheet.write_mb_s, 0.03, name);
    }
    // These are on the S4500's sheet but not in the model: 48000 reads and 21000 writes of 8 KiB at random.
    let of_8_kib = |writes| {
        let load =
            Load { depth: 32, operations: 5000, len: 8192, writes, at: |nth| random(nth) / 8192 * 8192 };
        5000.0 / run("sata_ssd", 512, &load).0
    };
    near(of_8_kib(false), 48_000.0, 0.1, "8 KiB reads");
    near(of_8_kib(true), 21_000.0, 0.25, "8 KiB writes");
}

/// Runs one operation after another on a disk; the milliseconds that each took.
fn times_ms(name: &str, block_bytes: u32, operations: Vec<(u64, u64, bool)>) -> Vec<f64> {
    let mut executor = Executor::new();
    let runtime = executor.runtime();
    let disk = disk(&runtime, name, block_bytes);
    let all = async move {
        let mut times = Vec::new();
        for (offset, len, durable) in operations {
            let began = runtime.now();
            if len == 0 {
                disk.flush().await.unwrap();
            } else {
                disk.write(offset, Bytes::from(vec![1; len as usize]), durable).await.unwrap();
            }
            times.push((runtime.now() - began) as f64 / 1e6);
        }
        times
    };
    executor.run_in_virtual_time(all).unwrap()
}

#[test]
fn cached_writes_are_done_at_once_and_a_flush_waits_for_the_medium() {
    let mut operations: Vec<_> = (0..100).map(|nth| (random(nth), 4096, false)).collect();
    operations.extend([(0, 0, false), (0, 0, false), (random(200), 4096, true)]);
    let times = times_ms("sata_7200_3_5", 512, operations);
    assert!(times[..100].iter().all(|time| *time < 0.1), "{times:?}");
    let [flush, again, durable] = times[100..] else { panic!() };
    assert!(flush > 100.0 * 1.5 && flush < 100.0 * 12.0, "{flush}");
    assert!(again < 0.1 && durable > 0.5, "{again} {durable}");
}

#[test]
fn a_full_cache_takes_writes_as_fast_as_the_medium() {
    let load = Load { depth: 4, operations: 600, len: MIB, writes: true, at: |nth| nth * MIB };
    let (seconds, stats) = run("sata_7200_3_5", 512, &load);
    // The cache took 128 MiB; the rest was written at the rate of the outer zones.
    near((stats.write_bytes as f64 - 128e6) / 1e6 / seconds, 250.0, 0.05, "MB/s");
}

#[test]
fn a_sector_written_in_part_costs_a_revolution_more() {
    let misaligned = |nth: u64| random(nth) + 512;
    let mean = |name: &str, block_bytes: u32, at: &dyn Fn(u64) -> u64| {
        let operations = (0..400).map(|nth| (at(nth), 4096, true)).collect();
        times_ms(name, block_bytes, operations).iter().sum::<f64>() / 400.0
    };
    let native = mean("sata_7200_3_5", 512, &misaligned);
    let emulated = mean("sata_7200_3_5_512e", 512, &misaligned);
    let aligned = mean("sata_7200_3_5_512e", 512, &random);
    let large = mean("sata_7200_3_5_512e", 4096, &random);
    near(emulated - native, 60e3 / 7200.0, 0.03, "ms more");
    near(aligned, native, 0.01, "aligned to the sectors");
    near(large, native, 0.01, "blocks of a sector");
}

#[test]
fn no_command_starves_beside_a_sequential_stream() {
    let mut executor = Executor::new();
    let runtime = executor.runtime();
    let disk = disk(&runtime, "sas_10k_2_5", 512);
    let far = Rc::new(Cell::new(0));
    let done = Rc::clone(&far);
    let streams: Vec<_> = (0..4_u64)
        .map(|stream| {
            let (disk, done) = (Rc::clone(&disk), Rc::clone(&done));
            async move {
                let mut nth = stream;
                while done.get() == 0 {
                    disk.read(nth * 65536, BytesMut::zeroed(65536)).await.unwrap();
                    nth += 4;
                }
            }
        })
        .collect();
    let at = Rc::clone(&disk);
    let waited = async move {
        at.read(SIZE_BYTES / 2, BytesMut::zeroed(4096)).await.unwrap();
        done.set(runtime.now());
    };
    executor.run_in_virtual_time(futures::future::join(futures::future::join_all(streams), waited)).unwrap();
    assert!(far.get() < 1_000_000_000, "{} ns", far.get());
}

#[test]
fn bytes_come_back_and_books_are_kept() {
    let mut executor = Executor::new();
    let runtime = executor.runtime();
    for drive in &DRIVES {
        let disk = disk(&runtime, drive.name, 512);
        let (used, began) = (Rc::clone(&disk), runtime.now());
        let bytes = executor.run_in_virtual_time(async move {
            // An operation whose caller does not wait is done, too.
            drop(used.write(4096, Bytes::from(vec![3; 4096]), true));
            used.write(8192, Bytes::from(vec![4; 4096]), false).await.unwrap();
            used.flush().await.unwrap();
            used.discard(8192, 512).await.unwrap();
            assert!(used.read(SIZE_BYTES, BytesMut::zeroed(512)).await.is_err());
            used.read(4096, BytesMut::zeroed(8192)).await.unwrap()
        });
        let expected = [vec![3; 4096], vec![0; 512], vec![4; 3584]].concat();
        assert_eq!(bytes.unwrap(), expected, "{}", drive.name);
        let stats = disk.stats();
        assert_eq!((stats.reads, stats.writes, stats.flushes, stats.discards, stats.errors), (1, 1, 1, 1, 2));
        assert!(stats.response_ns > 0 && stats.response_ns <= stats.busy_ns, "{stats:?}");
        assert!(stats.busy_ns <= runtime.now() - began, "{stats:?}");
    }
}
