//! Touches memory ahead of its first use.
//!
//! Memory that was never written has no pages yet. The kernel finds and zeroes a huge page at the first write, in the
//! middle of an I/O: a fresh array would be slow for its first seconds, and every page would be measured once as a slow
//! I/O. So one thread of the process, of the lowest priority, asks for the pages in the background
//! (`MADV_POPULATE_WRITE`, Linux 5.14), which changes no byte. It ends when it is done, and stops early if memory becomes
//! scarce: then pages are made at their first use, as without it.

use super::Region;
use crate::{pool::lock, system};
use std::{
    io,
    sync::{
        Mutex, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

/// Touched at a time. The process's memory map is locked meanwhile, for 1 to 4 ms.
const PIECE_BYTES: u64 = 8 << 20;
/// The thread stops when less than the first available memory divided by this is left.
const KEEP_ONE_IN: u64 = 2;

#[derive(Debug, Default)]
struct Queue {
    regions: Vec<Weak<Region>>,
    is_running: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { regions: Vec::new(), is_running: false });
static UNTOUCHED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes that the process still touches ahead of their first use; 0: none.
pub fn untouched_bytes() -> u64 {
    UNTOUCHED_BYTES.load(Relaxed)
}

/// Touches a region in the background.
pub(super) fn touch(region: Weak<Region>, len_bytes: u64) {
    let mut queue = lock(&QUEUE);
    UNTOUCHED_BYTES.fetch_add(len_bytes, Relaxed);
    queue.regions.push(region);
    if !queue.is_running {
        queue.is_running = thread::Builder::new().name("touch-ahead".into()).spawn(run).is_ok();
        if !queue.is_running {
            forget(&mut queue);
        }
    }
}

fn run() {
    system::yield_to_others();
    let keep_bytes = system::available_bytes().unwrap_or(0) / KEEP_ONE_IN;
    loop {
        let mut queue = lock(&QUEUE);
        let Some(region) = queue.regions.pop() else {
            queue.is_running = false;
            return UNTOUCHED_BYTES.store(0, Relaxed);
        };
        drop(queue);
        if touch_whole(&region, keep_bytes).is_err() {
            let mut queue = lock(&QUEUE);
            queue.is_running = false;
            return forget(&mut queue);
        }
    }
}

/// Errors: memory is scarce, or the kernel cannot touch it ahead.
fn touch_whole(region: &Weak<Region>, keep_bytes: u64) -> io::Result<()> {
    let mut offset = 0;
    // It ends with the region, which may be dropped meanwhile.
    while let Some(region) = region.upgrade() {
        let len = PIECE_BYTES.min(region.len() - offset);
        if len == 0 {
            return Ok(());
        }
        if system::available_bytes()? < keep_bytes {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        region.populate(offset, len)?;
        offset += len;
        UNTOUCHED_BYTES.fetch_sub(len, Relaxed);
    }
    Ok(())
}

fn forget(queue: &mut Queue) {
    queue.regions.clear();
    UNTOUCHED_BYTES.store(0, Relaxed);
}
