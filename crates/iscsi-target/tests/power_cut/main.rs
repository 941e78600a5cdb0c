//! Power cuts under file volumes: a real array writes to ext4 on a disk that logs every write and every flush.
//!
//! The parts: a client that notes when each write was sent and answered (`writer`); the array, a process of
//! its own; ext4, mounted from a loop device; a disk whose only file is that device's image and which logs what the kernel
//! does to it (`disk`, served through FUSE). After the run, the disk is made again as it may be after a power cut between
//! any two of its flushes: all that was flushed, and any part of the rest. `e2fsck` replays the journal, `debugfs` takes
//! the volume's file out, and each sector must hold what was acknowledged before the cut, or something newer (`cut`).
//!
//! Two controls show that the test finds losses: a volume with a write cache, and a disk that ignores flushes.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly

mod cut;
mod disk;
mod mounted;
#[path = "../support/mod.rs"]
mod support;
mod writer;

use cut::{Flushes, losses};
use mounted::Mounted;
use support::{
    IQN,
    served::{self, Served},
};
use writer::{Durable, Writer};

const VOLUME_BYTES: u64 = 2 << 20;
const WRITES: usize = 400;
const DRIVERS: [&str; 2] = ["epoll", "io_uring"];

/// Not a test: the array's process, which ends with its standard input.
#[test]
#[ignore = "only other tests start it"]
fn serve() {
    served::serve();
}

/// What a client wrote to an array on a logged disk, and the log.
fn run(driver: &str, write_cache: bool, durable: Durable, seed: u64) -> Option<(Writer, disk::Log)> {
    if linerate_io::open_driver(driver.parse().unwrap()).is_err() {
        eprintln!("skipped: no {driver} here");
        return None;
    }
    let mounted = Mounted::new();
    let path = mounted.folder().join("volume");
    let array = Served::start(&format!(
        r#"{{"portals": ["127.0.0.1:0"], "driver": "{driver}", "targets": [{{"name": "{IQN}",
            "volumes": [{{"lun": 0,
            "name": "v0", "kind": "file", "path": "{}", "size_bytes": {VOLUME_BYTES},
            "write_cache": {write_cache}}}]}}]}}"#,
        path.display()
    ));
    let mut writer = Writer::new(array.portal, durable, seed);
    writer.write(WRITES);
    let log = mounted.log();
    drop(array);
    Some((writer, log))
}

#[test]
fn acknowledged_writes_are_there_after_a_power_cut_at_any_barrier() {
    if mounted::enter("acknowledged_writes_are_there_after_a_power_cut_at_any_barrier") {
        for (seed, driver) in DRIVERS.into_iter().enumerate() {
            let Some((writer, log)) = run(driver, false, Durable::Acknowledged, seed as u64) else {
                continue;
            };
            let flushes = log.flushes();
            assert!(flushes < WRITES, "{driver}: writes share flushes, and {WRITES} took {flushes}");
            let found = losses(&log, &writer, Flushes::Obeyed, seed as u64);
            assert!(found.cuts >= 20, "{driver}: {found:?}");
            assert!(found.lost.is_empty(), "{driver}, seed {seed}: {found:?}");
        }
    }
}

#[test]
fn a_write_cache_keeps_what_was_synchronized() {
    if mounted::enter("a_write_cache_keeps_what_was_synchronized") {
        let Some((writer, log)) = run("epoll", true, Durable::Synchronized, 2) else { return };
        let found = losses(&log, &writer, Flushes::Obeyed, 2);
        assert!(found.cuts >= 5 && found.lost.is_empty(), "{found:?}");
    }
}

#[test]
fn the_test_finds_what_is_lost_without_flushes() {
    if mounted::enter("the_test_finds_what_is_lost_without_flushes") {
        let Some((writer, log)) = run("epoll", true, Durable::Acknowledged, 3) else { return };
        let found = losses(&log, &writer, Flushes::Obeyed, 3);
        assert!(!found.lost.is_empty(), "a write cache loses writes that were not synchronized: {found:?}");

        let Some((writer, log)) = run("epoll", false, Durable::Acknowledged, 4) else { return };
        let found = losses(&log, &writer, Flushes::Ignored, 4);
        assert!(!found.lost.is_empty(), "a disk that ignores flushes loses acknowledged writes: {found:?}");
    }
}
