//! File disks on the real drivers: bytes in real files, the same for `io_uring` and epoll.
#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::{Bytes, BytesMut};
use linerate_array::{
    Disk, DiskError, Host,
    disk::{FileConfig, FileDisk},
};
use linerate_io::{Driver, Preference, Wait, open_driver, with_driver};
use std::{path::Path, rc::Rc};

const SIZE_BYTES: u64 = 16 << 20;

/// Runs one test on every driver that there is.
macro_rules! on_each_driver {
    ($($test:ident),+ $(,)?) => {
        $(#[test]
        fn $test() {
            for preference in [Preference::Epoll, Preference::IoUring] {
                match open_driver(preference) {
                    Ok(driver) => with_driver!(driver, |driver| bodies::$test(Host::new(driver))),
                    Err(error) => eprintln!("skipped: {error}"),
                }
            }
        })+
    };
}

on_each_driver! {
    bytes_come_back_and_reach_the_file,
    many_operations_share_little_memory,
    a_discarded_range_reads_as_zeros,
    a_disk_in_use_is_not_opened_twice,
    a_file_cut_short_is_unreadable_there,
    an_operation_that_nobody_awaits_is_done,
    sleepers_end_a_wait,
}

fn config(path: &Path, direct: bool) -> FileConfig {
    let (name, path) = ("f0".into(), path.to_owned());
    FileConfig { name, path, size_bytes: Some(SIZE_BYTES), block_bytes: 512, direct }
}

/// The same disk, through the page cache and, if the file system has that, past it.
fn disks<D: Driver>(host: &mut Host<D>, path: &Path, mut test: impl FnMut(&mut Host<D>, FileDisk)) {
    for direct in [false, true] {
        let disk = host.open_file(&config(path, direct)).unwrap();
        assert!(direct || !disk.is_direct());
        test(host, disk);
    }
}

fn pattern(len: usize, seed: usize) -> Bytes {
    (0..len).map(|at| ((at * 31 + seed * 7 + at / 512) % 251) as u8).collect()
}

mod bodies {
    use super::*;

    pub(super) fn bytes_come_back_and_reach_the_file<D: Driver>(mut host: Host<D>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        disks(&mut host, &path, |host, disk| {
            assert_eq!(disk.size_bytes(), SIZE_BYTES);
            // One block, a piece and a half, several parts.
            for (seed, (offset, len)) in
                [(512, 512), (65_536, 98_304), (1 << 20, 5 << 20)].into_iter().enumerate()
            {
                let data = pattern(len, seed);
                host.block_on(disk.write(offset, data.clone(), seed == 0)).unwrap().unwrap();
                host.block_on(disk.flush()).unwrap().unwrap();
                let bytes = host.block_on(disk.read(offset, BytesMut::zeroed(len))).unwrap().unwrap();
                assert!(bytes == data, "{len} bytes at {offset}");
                let offset = offset as usize;
                assert!(std::fs::read(&path).unwrap()[offset..offset + len] == data);
            }
            let stats = disk.stats();
            assert_eq!((stats.read_bytes, stats.flushes, stats.errors), (512 + 98_304 + (5 << 20), 3, 0));
            assert!(stats.busy_ns > 0 && stats.response_ns > 0);
        });
    }

    pub(super) fn many_operations_share_little_memory<D: Driver>(mut host: Host<D>) {
        let dir = tempfile::tempdir().unwrap();
        disks(&mut host, &dir.path().join("disk"), |host, disk| {
            // Together more than the host has memory for.
            let data = pattern(4 << 20, 5);
            let writes: Vec<_> = (0..40).map(|at| disk.write((at % 4) << 22, data.clone(), false)).collect();
            for write in writes {
                host.block_on(write).unwrap().unwrap();
            }
            let reads: Vec<_> = (0..4000).map(|at| disk.read(at * 512, BytesMut::zeroed(512))).collect();
            for (at, read) in reads.into_iter().enumerate() {
                let bytes = host.block_on(read).unwrap().unwrap();
                assert!(bytes == data[at * 512..(at + 1) * 512], "block {at}");
            }
        });
    }

    pub(super) fn a_discarded_range_reads_as_zeros<D: Driver>(mut host: Host<D>) {
        let dir = tempfile::tempdir().unwrap();
        disks(&mut host, &dir.path().join("disk"), |host, disk| {
            host.block_on(disk.write(0, Bytes::from(vec![1; 32_768]), false)).unwrap().unwrap();
            host.block_on(disk.discard(512, 16_384)).unwrap().unwrap();
            let bytes = host.block_on(disk.read(0, BytesMut::zeroed(32_768))).unwrap().unwrap();
            let is_zero: Vec<_> =
                bytes.chunks(512).map(|block| block.iter().all(|&byte| byte == 0)).collect();
            let expected: Vec<_> = (0..64).map(|block| (1..33).contains(&block)).collect();
            assert_eq!(is_zero, expected);
        });
    }

    pub(super) fn a_disk_in_use_is_not_opened_twice<D: Driver>(mut host: Host<D>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        let disk = host.open_file(&config(&path, false)).unwrap();
        let (files, runtime) = (host.files(), host.runtime());
        // Whoever comes second waits a little, and gets it when the first one lets go.
        let second = config(&path, false);
        let opened = host.block_on(async move {
            let begun = runtime.now();
            let hold = async {
                runtime.sleep(100_000_000).await;
                drop(disk);
            };
            let (opened, ()) = futures::join!(files.open(&second), hold);
            (opened.is_ok(), runtime.now() - begun)
        });
        let (is_open, waited_ns) = opened.unwrap();
        assert!(is_open && waited_ns >= 100_000_000, "after {waited_ns} ns");
    }

    pub(super) fn a_file_cut_short_is_unreadable_there<D: Driver>(mut host: Host<D>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        let disk = host.open_file(&config(&path, false)).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
        let expected = DiskError::Unreadable { offset_bytes: 1 << 20, len_bytes: 512 };
        assert_eq!(host.block_on(disk.read(1 << 20, BytesMut::zeroed(512))).unwrap(), Err(expected));
        assert!(host.block_on(disk.read(0, BytesMut::zeroed(512))).unwrap().is_ok());
        assert_eq!(disk.stats().errors, 1);
    }

    pub(super) fn an_operation_that_nobody_awaits_is_done<D: Driver>(mut host: Host<D>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        let disk = host.open_file(&config(&path, true)).unwrap();
        drop(disk.write(4096, Bytes::from(vec![9; 4096]), true));
        drop(disk);
        let disk = host.open_file(&config(&path, true)).unwrap();
        let bytes = host.block_on(disk.read(4096, BytesMut::zeroed(4096))).unwrap().unwrap();
        assert!(bytes.iter().all(|&byte| byte == 9));
    }

    pub(super) fn sleepers_end_a_wait<D: Driver>(mut host: Host<D>) {
        let runtime = host.runtime();
        let woken = Rc::new(std::cell::Cell::new(None));
        let (into, begun) = (Rc::clone(&woken), runtime.now());
        host.runtime().spawn(async move {
            runtime.sleep(5_000_000).await;
            into.set(Some(runtime.now()));
        });
        let mut out = Vec::new();
        while woken.get().is_none() {
            host.turn(Wait::Forever, &mut out).unwrap();
        }
        assert!(woken.get().unwrap() - begun >= 5_000_000);
        assert!(out.is_empty());
    }
}
