//! A run allocates nothing per I/O: counted by a counting allocator.

#![allow(unsafe_code, clippy::unwrap_used, reason = "an allocator cannot be written without")]

mod common;

use common::{null_volume, spec, stream};
use linerate_load::Run;
use serde_json::json;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: passes everything to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller guarantees the conditions of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of everything in the process over a second in the middle of a run, and its I/Os.
fn allocations(order: linerate_load::RunSpec) -> (u64, u64) {
    let run = Run::start(order).unwrap();
    assert!(run.next_interval(Duration::from_millis(500)).is_none());
    let before = ALLOCATIONS.load(Relaxed);
    assert!(run.next_interval(Duration::from_millis(500)).is_none());
    let after = ALLOCATIONS.load(Relaxed);
    run.stop();
    (after - before, run.finish().total.ios())
}

#[test]
fn nothing_is_allocated_per_io() {
    let mixed = json!({"read_percent": 67, "random_percent": 80});
    let rest = json!({"elapsed_s": 10, "interval_s": 10});
    let closed = spec(
        &json!([null_volume("a", 8), null_volume("b", 8)]),
        &json!([stream("s", &["a", "b"], &mixed)]),
        &rest,
    );
    let mut open = closed.clone();
    open.arrival =
        serde_json::from_value(json!({"kind": "open", "process": "poisson", "rate_iops": 50_000})).unwrap();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("f");
    let file = json!([{"name": "a", "url": format!("file:{}", path.display()), "create": true, "size_bytes": 1 << 20,
                       "direct": false}]);
    let file = spec(&file, &json!([stream("s", &["a"], &mixed)]), &rest);
    for (name, order) in [("closed", closed), ("open", open), ("file", file)] {
        let (allocations, ios) = allocations(order);
        assert!(ios > 5000, "{name}: only {ios} I/Os");
        assert!(allocations <= 20, "{name}: {allocations} allocations for about {} I/Os", ios / 2);
    }
}
