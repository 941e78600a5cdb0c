//! Excludes plain writes from blocks with a read-modify-write in progress.
//!
//! COMPARE AND WRITE and ORWRITE must be one uninterrupted action against every other write of the unit, also against
//! writes of other worker threads (SBC-3 5.2). A lock around every write would be simple, but slow. Instead the medium
//! is divided into stripes of 1 MiB that share 128 counters:
//!
//! - a plain write *enters* its stripes (one atomic add each, nearly always one) and leaves them after its last byte
//!   has been written. It never waits: if a stripe is closed, it leaves again, and the command becomes a waiting task;
//! - a section *closes* its stripes, waits until the writes inside have left, reads, decides, writes, and opens them.
//!
//! Stripes are closed before they are drained, so new writers cannot enter and a section cannot starve. Sections take
//! their stripes in ascending order, and entering never waits while it holds a stripe, so there is no deadlock. Plain
//! reads do not take part: a read that overlaps a section may see blocks from before and after it, as SBC permits.

use std::sync::atomic::{AtomicU32, Ordering};

const STRIPE_SHIFT: u32 = 20;
const STRIPES: u64 = 128;
/// Top bit of a counter: a section has the stripe. The other bits count writes inside.
const CLOSED: u32 = 1 << 31;

/// A counter on its own cache line, so that workers that write to different places do not share one.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(AtomicU32);

#[derive(Debug)]
pub(crate) struct Stripes(Box<[Stripe]>);

/// The stripes of a byte range, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mask(u128);

impl Mask {
    pub(crate) fn of(offset_bytes: u64, len_bytes: u64) -> Self {
        if len_bytes == 0 {
            return Self(0);
        }
        let first = offset_bytes >> STRIPE_SHIFT;
        let last = (offset_bytes + (len_bytes - 1)) >> STRIPE_SHIFT;
        if last - first >= STRIPES - 1 {
            return Self(u128::MAX);
        }
        let run = u128::MAX >> (STRIPES - 1 - (last - first));
        Self(run.rotate_left((first % STRIPES) as u32))
    }

    fn indices(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let index = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                index
            })
        })
    }
}

/// The index of the stripe if the range is in a single one, which is the usual case.
fn only_stripe(offset_bytes: u64, len_bytes: u32) -> Option<usize> {
    let first = offset_bytes >> STRIPE_SHIFT;
    let last = (offset_bytes + u64::from(len_bytes.max(1) - 1)) >> STRIPE_SHIFT;
    (first == last && len_bytes > 0).then_some((first % STRIPES) as usize)
}

impl Default for Stripes {
    fn default() -> Self {
        Self((0..STRIPES).map(|_| Stripe::default()).collect())
    }
}

impl Stripes {
    /// Enters the stripes of a plain write; false (and none is held) if a section has any of them.
    pub(crate) fn enter_range(&self, offset_bytes: u64, len_bytes: u32) -> bool {
        match only_stripe(offset_bytes, len_bytes) {
            Some(index) => self.enter_one(index),
            None => self.enter(Mask::of(offset_bytes, u64::from(len_bytes))),
        }
    }

    /// Leaves the stripes of the same range.
    pub(crate) fn leave_range(&self, offset_bytes: u64, len_bytes: u32) {
        match only_stripe(offset_bytes, len_bytes) {
            Some(index) => self.leave_one(index),
            None => self.leave(Mask::of(offset_bytes, u64::from(len_bytes))),
        }
    }

    pub(crate) fn enter(&self, mask: Mask) -> bool {
        for index in mask.indices() {
            if !self.enter_one(index) {
                let entered_before = Mask(mask.0 & ((1 << index) - 1));
                self.leave(entered_before);
                return false;
            }
        }
        true
    }

    /// Leaves the stripes of the same mask.
    pub(crate) fn leave(&self, mask: Mask) {
        mask.indices().for_each(|index| self.leave_one(index));
    }

    /// Whether no write and no section is in any of them.
    pub(crate) fn are_empty(&self) -> bool {
        self.0.iter().all(|stripe| stripe.0.load(Ordering::Acquire) == 0)
    }

    fn enter_one(&self, index: usize) -> bool {
        let open = self.0[index].0.fetch_add(1, Ordering::Acquire) & CLOSED == 0;
        if !open {
            self.leave_one(index);
        }
        open
    }

    fn leave_one(&self, index: usize) {
        let before = self.0[index].0.fetch_sub(1, Ordering::Release);
        debug_assert_ne!(before & !CLOSED, 0, "a write left a stripe that it had not entered");
    }
}

/// A claim on stripes by a read-modify-write command.
#[derive(Debug)]
pub(crate) struct Claim {
    wanted: Mask,
    closed: Mask,
}

impl Claim {
    pub(crate) fn new(wanted: Mask) -> Self {
        Self { wanted, closed: Mask(0) }
    }

    /// Continues to close stripes; true once every stripe is closed and empty.
    pub(crate) fn advance(&mut self, stripes: &Stripes) -> bool {
        for index in Mask(self.wanted.0 & !self.closed.0).indices() {
            if stripes.0[index].0.fetch_or(CLOSED, Ordering::Acquire) & CLOSED != 0 {
                return false;
            }
            self.closed.0 |= 1 << index;
        }
        self.closed.indices().all(|index| stripes.0[index].0.load(Ordering::Acquire) == CLOSED)
    }

    /// Opens the closed stripes.
    pub(crate) fn release(&mut self, stripes: &Stripes) {
        for index in self.closed.indices() {
            stripes.0[index].0.fetch_and(!CLOSED, Ordering::Release);
        }
        self.closed = Mask(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << STRIPE_SHIFT;

    #[test]
    fn masks_cover_exactly_the_touched_stripes() {
        assert_eq!(Mask::of(0, 0).0, 0);
        assert_eq!(Mask::of(0, 1).0, 1);
        assert_eq!(Mask::of(MIB - 1, 2).0, 0b11);
        assert_eq!(Mask::of(127 * MIB, 2 * MIB).0, (1 << 127) | 1);
        assert_eq!(Mask::of(5, STRIPES * MIB).0, u128::MAX);
        assert_eq!(Mask::of(0, (STRIPES - 1) * MIB).0, u128::MAX >> 1);
    }

    #[test]
    fn the_short_way_to_a_stripe_agrees_with_the_mask() {
        for (offset, len) in [(0, 512), (MIB - 512, 512), (200 * MIB + 5, 4096), (MIB - 1, 2), (7, 0)] {
            let (short, mask) = (only_stripe(offset, len), Mask::of(offset, u64::from(len)));
            let single = mask.0.is_power_of_two().then(|| mask.0.trailing_zeros() as usize);
            assert_eq!(short, single, "{len} bytes at {offset}");
        }
    }

    #[test]
    fn a_section_waits_for_writers_and_keeps_new_ones_out() {
        let stripes = Stripes::default();
        let write = Mask::of(0, 2 * MIB);
        assert!(stripes.enter(write));
        let mut claim = Claim::new(Mask::of(MIB, 512));
        assert!(!claim.advance(&stripes), "a write is inside");
        assert!(!stripes.enter(write), "the stripe is closed");
        assert!(stripes.enter(Mask::of(0, 512)), "the neighbour is open");
        stripes.leave(Mask::of(0, 512));
        stripes.leave(write);
        assert!(claim.advance(&stripes));
        claim.release(&stripes);
        assert!(stripes.enter(write));
        stripes.leave(write);
        assert!(stripes.0.iter().all(|stripe| stripe.0.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn sections_exclude_each_other_and_cannot_wait_in_a_circle() {
        let stripes = Stripes::default();
        let mut first = Claim::new(Mask::of(0, 3 * MIB));
        let mut second = Claim::new(Mask::of(2 * MIB, 2 * MIB));
        assert!(first.advance(&stripes));
        assert!(!second.advance(&stripes));
        first.release(&stripes);
        assert!(second.advance(&stripes));
        assert!(!first.advance(&stripes));
        second.release(&stripes);
        assert!(first.advance(&stripes));
    }

    #[test]
    fn threads_never_meet_inside_a_section() {
        let stripes = Stripes::default();
        // Two halves of a value that are equal except while a section changes them.
        let (left, right) = (AtomicU32::new(0), AtomicU32::new(0));
        let mask = Mask::of(0, 4096);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let mut claim = Claim::new(mask);
                        while !claim.advance(&stripes) {
                            std::thread::yield_now();
                        }
                        let value = left.load(Ordering::Relaxed);
                        assert_eq!(value, right.load(Ordering::Relaxed));
                        left.store(value + 1, Ordering::Relaxed);
                        right.store(value + 1, Ordering::Relaxed);
                        claim.release(&stripes);
                    }
                });
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        if stripes.enter(mask) {
                            assert_eq!(left.load(Ordering::Relaxed), right.load(Ordering::Relaxed));
                            stripes.leave(mask);
                        }
                    }
                });
            }
        });
        assert_eq!(left.into_inner(), 4_000);
    }
}
