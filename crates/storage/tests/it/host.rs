//! File disks on the real drivers: bytes in real files, the same for `io_uring` and epoll.

use bytes::{Bytes, BytesMut};
use linerate_io::{Driver, Preference, Wait, open_driver, space, with_driver};
use linerate_storage::{
    Disk, DiskError, Host,
    disk::{FileConfig, FileDisk},
};
use std::{path::Path, rc::Rc};

const SIZE_BYTES: u64 = 16 << 20;

/// Runs one test on every driver of this host.
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
    a_file_is_allocated_as_a_whole_or_as_it_is_written,
    a_file_that_exists_keeps_its_length,
    a_disk_for_looking_changes_nothing,
    an_operation_that_nobody_awaits_is_done,
    sleepers_end_a_wait,
}

fn config(path: &Path, direct: bool) -> FileConfig {
    let (name, path) = ("f0".into(), path.to_owned());
    let size_bytes = Some(SIZE_BYTES);
    FileConfig { name, path, size_bytes, block_bytes: 512, direct, thin: true, read_only: false }
}

/// The same disk, through the page cache and, if the file system can, with direct I/O.
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
            // Through the page cache, a durable write includes a flush.
            let flushes = if disk.is_direct() { 3 } else { 4 };
            assert_eq!(
                (stats.read_bytes, stats.flushes, stats.errors),
                (512 + 98_304 + (5 << 20), flushes, 0)
            );
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
        // The second one waits a little, and gets the lock when the first one releases it.
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

    fn allocated(path: &Path) -> u64 {
        space::file_space(path).unwrap().unwrap().allocated_bytes
    }

    pub(super) fn a_file_is_allocated_as_a_whole_or_as_it_is_written<D: Driver>(mut host: Host<D>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("thin");
        let thin = host.open_file(&config(&path, true)).unwrap();
        assert!(thin.is_new() && thin.is_thin() && allocated(&path) < SIZE_BYTES);
        host.block_on(thin.reserve(1 << 20, 1 << 20)).unwrap().unwrap();
        assert!((1 << 20..SIZE_BYTES).contains(&allocated(&path)));
        drop(thin);
        let whole = FileConfig { thin: false, ..config(&path, true) };
        let disk = host.open_file(&whole).unwrap();
        if disk.is_thin() {
            return eprintln!("skipped: this file system cannot allocate");
        }
        assert!(!disk.is_new() && allocated(&path) >= SIZE_BYTES);
        host.block_on(disk.write(0, pattern(1 << 20, 3), false)).unwrap().unwrap();
        host.block_on(disk.discard(4096, 65_536)).unwrap().unwrap();
        assert!(allocated(&path) >= SIZE_BYTES, "space is given back");
        let bytes = host.block_on(disk.read(4096, BytesMut::zeroed(65_536))).unwrap().unwrap();
        assert!(bytes.iter().all(|&byte| byte == 0));
    }

    pub(super) fn a_file_that_exists_keeps_its_length<D: Driver>(mut host: Host<D>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let disk = host.open_file(&config(&path, false)).unwrap();
        assert_eq!((disk.size_bytes(), disk.is_new()), (1 << 20, false));
        drop(disk);
        std::fs::write(&path, []).unwrap();
        assert_eq!(host.open_file(&config(&path, false)).unwrap().size_bytes(), SIZE_BYTES);
        let missing = FileConfig { size_bytes: None, ..config(&dir.path().join("other"), false) };
        assert_eq!(host.open_file(&missing).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }

    pub(super) fn a_disk_for_looking_changes_nothing<D: Driver>(mut host: Host<D>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        let looking = FileConfig { read_only: true, ..config(&path, true) };
        assert_eq!(host.open_file(&looking).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        assert!(!path.exists());
        let disk = host.open_file(&config(&path, true)).unwrap();
        assert_eq!(host.open_file(&looking).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        drop(disk);
        let (one, other) = (host.open_file(&looking).unwrap(), host.open_file(&looking).unwrap());
        assert!(host.block_on(one.read(0, BytesMut::zeroed(4096))).unwrap().is_ok());
        assert!(host.block_on(other.write(0, pattern(4096, 1), false)).unwrap().is_err());
        assert!(std::fs::read(&path).unwrap().iter().all(|&byte| byte == 0));
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
