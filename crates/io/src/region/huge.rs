//! The limit of memory in huge pages.
//!
//! Random access misses the TLB less often with huge pages, which saves a sixth of an array's CPU time at 4K. But a
//! huge page takes memory as a whole once a byte of it is written, so a sparsely written volume would need more memory
//! than its user expects. Therefore every region in huge pages must fit, as if it were fully written, into a part of
//! the memory that is free at first.

use crate::system;
use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Less than this is not a whole huge page on the usual platforms.
const LEN_BYTES_MIN: u64 = 2 << 20;
/// The budget is the available memory divided by this, because several arrays may run on one host.
const ONE_IN: u64 = 4;

/// Bytes that are still available.
#[derive(Debug)]
struct Budget(AtomicU64);

/// Bytes of this process's budget, returned when dropped.
#[derive(Debug)]
pub(crate) struct Share(u64);

impl Budget {
    fn of_process() -> &'static Self {
        static BUDGET: OnceLock<Budget> = OnceLock::new();
        BUDGET.get_or_init(|| {
            // A host that does not report it has no spare memory.
            Self(AtomicU64::new(system::available_bytes().unwrap_or(0) / ONE_IN))
        })
    }

    fn take(&self, len_bytes: u64) -> bool {
        len_bytes >= LEN_BYTES_MIN
            && self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(len_bytes)).is_ok()
    }

    fn give_back(&self, len_bytes: u64) {
        self.0.fetch_add(len_bytes, Relaxed);
    }
}

impl Share {
    /// None: the region is too short, or the budget too small.
    pub(crate) fn take(len_bytes: u64) -> Option<Self> {
        Budget::of_process().take(len_bytes).then_some(Self(len_bytes))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        Budget::of_process().give_back(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{AtomicU64, Budget, LEN_BYTES_MIN};

    #[test]
    fn what_does_not_fit_gets_nothing_and_leaves_room_for_what_does() {
        let budget = Budget(AtomicU64::new(3 * LEN_BYTES_MIN));
        assert!(!budget.take(LEN_BYTES_MIN - 1), "too short");
        assert!(!budget.take(4 * LEN_BYTES_MIN), "too long");
        assert!(budget.take(2 * LEN_BYTES_MIN));
        assert!(!budget.take(2 * LEN_BYTES_MIN), "only half of it is left");
        assert!(budget.take(LEN_BYTES_MIN));
        budget.give_back(2 * LEN_BYTES_MIN);
        assert!(budget.take(2 * LEN_BYTES_MIN));
    }
}
