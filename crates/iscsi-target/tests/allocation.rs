//! No allocation per I/O: counted by a counting allocator.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, unsafe_code)] // an allocator is unsafe by nature

mod support;

use linerate_iscsi_proto::pdu::BHS_BYTES;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    io::{Read, Write},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};
use support::{Client, array_of, read10, write10};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The test's own allocations do not count.
    static IS_TEST: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    if !IS_TEST.try_with(Cell::get).unwrap_or(true) {
        ALLOCATIONS.fetch_add(1, Relaxed);
    }
}

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller guarantees the conditions of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees the conditions of the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller guarantees the conditions of the system's allocator.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DEPTH: usize = 32;
const LEN: usize = 4096;
/// Of reads that are sent from where the disks have their bytes.
const LARGE_LEN: usize = 65536;
/// The default of `MaxRecvDataSegmentLength`.
const SEGMENT_LEN: usize = 8192;

/// Commands of a batch: an answer is no longer than what a worker keeps memory for.
fn depth_of(len: usize) -> usize {
    if len == LEN { DEPTH } else { 8 }
}

/// One batch: reads or writes sent together, and all answers received.
fn batch(client: &mut Client, bytes: &mut [u8], answers: &mut [u8], write: bool, len: usize) {
    let depth = depth_of(len);
    let pdu_bytes = BHS_BYTES + if write { len } else { 0 };
    for at in 0..depth {
        let lba = (at * 64) as u32;
        let cdb = if write { write10(lba, len) } else { read10(lba, len) };
        let mut command = client.command(cdb, !write, write, len as u32);
        command.data_len = if write { len as u32 } else { 0 };
        let mut bhs = [0; BHS_BYTES];
        command.emit(&mut bhs);
        bytes[at * pdu_bytes..at * pdu_bytes + BHS_BYTES].copy_from_slice(&bhs);
    }
    client.socket.write_all(&bytes[..depth * pdu_bytes]).unwrap();
    client.socket.read_exact(answers).unwrap();
}

#[test]
fn nothing_is_allocated_per_io() {
    IS_TEST.with(|is_test| is_test.set(true));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume").display().to_string();
    let file = format!(r#""kind": "file", "path": "{path}", "write_cache": true"#);
    let write_through = format!(r#""kind": "file", "path": "{path}-2""#);
    let storage = r#""storage": {"disks": [{"name": "d", "count": 4, "size_bytes": 33554432}], "raid_sets": [
        {"name": "r", "level": "raid0", "disks": ["d0", "d1", "d2", "d3"], "chunk_bytes": 4096}]},"#;
    let redundant = |level| {
        format!(
            r#""storage": {{"disks": [{{"name": "d", "count": 6, "size_bytes": 67108864}}], "raid_sets": [
            {{"name": "r", "level": "{level}", "disks": ["d0", "d1", "d2", "d3", "d4", "d5"],
            "initialise": "assume_clean"}}], "pools": [{{"name": "p", "raid_sets": ["r"]}}]}},"#
        )
    };
    let thin = r#""kind": "pool", "pool": "p""#;
    for driver in ["epoll", "auto"] {
        let whole = r#""kind": "raid""#;
        let cases = [
            (r#""kind": "memory""#, storage.to_owned()),
            (whole, storage.to_owned()),
            (&file, storage.to_owned()),
            (&write_through, storage.to_owned()),
            (thin, redundant("raid10")),
            (thin, redundant("raid6")),
        ];
        for (volume, storage) in cases {
            let array =
                array_of(volume, &format!(r#""driver": "{driver}", "touch_memory": false, {storage}"#));
            let mut client = Client::login(array.portals()[0], 1, "");
            client.clear_attention();
            let mut bytes = vec![0; DEPTH * (BHS_BYTES + LEN)];
            for (write, len) in [(false, LEN), (true, LEN), (false, LARGE_LEN)] {
                let read_len = BHS_BYTES * len.div_ceil(SEGMENT_LEN) + len;
                let mut answers = vec![0; depth_of(len) * if write { BHS_BYTES } else { read_len }];
                for _ in 0..200 {
                    batch(&mut client, &mut bytes, &mut answers, write, len);
                }
                let before = ALLOCATIONS.load(Relaxed);
                for _ in 0..200 {
                    batch(&mut client, &mut bytes, &mut answers, write, len);
                }
                let made = ALLOCATIONS.load(Relaxed) - before;
                // A list that has grown may still be enlarged once or twice.
                let io = format!("{driver}, {volume}, write {write}, {len} bytes");
                assert!(made < 20, "{made} allocations in 200 batches: {io}");
            }
        }
    }
}
