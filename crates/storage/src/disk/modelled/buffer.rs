//! The buffer of a rotating drive: writes that are not on the medium yet, and data that was read, including read-ahead.

use linerate_io::Nanos;
use std::collections::BTreeMap;

/// Number of read runs that the buffer keeps.
const RUNS_MAX: usize = 16;

/// Ranges of the disk whose writes have completed in the buffer only. Adjacent ranges are merged.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    /// End by start; ranges do not touch or overlap.
    ranges: BTreeMap<u64, u64>,
    bytes: u64,
}

impl Dirty {
    /// Bytes in all ranges.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a range.
    pub(super) fn insert(&mut self, mut start: u64, mut end: u64) {
        while let Some((&from, &to)) = self.ranges.range(..=end).next_back()
            && to >= start
        {
            self.ranges.remove(&from);
            self.bytes -= to - from;
            (start, end) = (start.min(from), end.max(to));
        }
        self.ranges.insert(start, end);
        self.bytes += end - start;
    }

    /// Removes a range.
    pub(super) fn remove(&mut self, start: u64, end: u64) {
        while let Some((&from, &to)) = self.ranges.range(..end).next_back()
            && to > start
        {
            self.ranges.remove(&from);
            self.bytes -= to - from;
            for (left, right) in [(from, start.min(to)), (end.max(from), to)] {
                if left < right {
                    self.ranges.insert(left, right);
                    self.bytes += right - left;
                }
            }
            if from < start {
                return;
            }
        }
    }

    /// Whether all of a range is in the buffer.
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        self.ranges.range(..=start).next_back().is_some_and(|(_, &to)| to >= end)
    }

    /// The range that starts at `from`, if there is one, and about `count` others, spread over all; `turn` varies the
    /// selection.
    pub(super) fn spread(&self, from: u64, count: u64, turn: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ends = self.ranges.first_key_value().zip(self.ranges.last_key_value());
        let (first, last) = ends.map_or((0, 0), |((first, _), (last, _))| (*first, *last));
        let step = (last - first) / count.saturating_sub(1).max(1) + 1;
        // Multiples of the golden ratio never repeat.
        let shift = (u128::from(turn.wrapping_mul(0x9E37_79B9_7F4A_7C15)) * u128::from(step)) >> 64;
        let others = (first + shift as u64..=last).step_by(step as usize);
        let others = others.chain((shift > 0).then_some(first));
        let others = others.filter_map(|from| self.ranges.range(from..).next());
        self.ranges.get_key_value(&from).into_iter().chain(others).map(|(&start, &end)| (start, end))
    }
}

/// Data read from the medium. The last run grows while the arm is idle: read-ahead.
#[derive(Debug)]
pub(super) struct Runs {
    /// Oldest use first.
    kept: Vec<(u64, u64)>,
    run_bytes: u64,
    growing: Option<Growing>,
}

/// The run that grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growing {
    /// First byte of the run.
    pub(super) start: u64,
    /// It grew from here ...
    pub(super) from: u64,
    /// ... since then ...
    pub(super) since: Nanos,
    /// ... and does not grow beyond this.
    pub(super) limit: u64,
}

impl Runs {
    /// Runs for a buffer of this size.
    pub(super) fn new(buffer_bytes: u64) -> Self {
        Self { kept: Vec::new(), run_bytes: buffer_bytes / RUNS_MAX as u64, growing: None }
    }

    /// Whether all of a range was read and is still kept.
    pub(super) fn hold(&self, start: u64, end: u64) -> bool {
        self.kept.iter().any(|run| run.0 <= start && end <= run.1)
    }

    /// The run that grows.
    pub(super) fn growing(&self) -> Option<Growing> {
        self.growing
    }

    /// A range was read at this instant. Then the arm reads on, to `disk_end` at most.
    pub(super) fn read(&mut self, start: u64, end: u64, at: Nanos, disk_end: u64) {
        let joined = self.kept.iter().position(|run| run.0 <= start && start <= run.1);
        let first = joined.map_or(start, |nth| self.kept.remove(nth).0);
        // A run is limited to its part of the buffer: the oldest bytes are dropped.
        let first = first.max(end.saturating_sub(self.run_bytes));
        if self.kept.len() == RUNS_MAX {
            self.kept.remove(0);
        }
        self.kept.push((first, end));
        self.growing = Some(Growing { start: first, from: end, since: at, limit: self.limit(end, disk_end) });
    }

    /// The growing run was read up to `end`, so the buffer has more space. If the run had reached its limit, it grows
    /// again from `since`.
    pub(super) fn go_on(&mut self, since: Nanos, ahead: u64, end: u64, disk_end: u64) {
        let limit = self.limit(end, disk_end);
        if let Some(growing) = &mut self.growing
            && limit > growing.limit
        {
            if ahead == growing.limit {
                (growing.from, growing.since) = (ahead, since);
            }
            growing.limit = limit;
        }
    }

    fn limit(&self, end: u64, disk_end: u64) -> u64 {
        (end + self.run_bytes / 2).min(disk_end)
    }

    /// The arm leaves, or a caller asks for the position of the read-ahead: the growing run ends at `end`.
    pub(super) fn stop(&mut self, end: u64) {
        if let (Some(_), Some(last)) = (self.growing.take(), self.kept.last_mut()) {
            last.1 = last.1.max(end);
            last.0 = last.0.max(last.1.saturating_sub(self.run_bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn dirty_ranges_are_a_set_of_blocks(steps in prop::collection::vec((any::<bool>(), 0_u64..60, 1_u64..12), 1..80)) {
            let mut dirty = Dirty::default();
            let mut blocks = [false; 80];
            for (adds, start, len) in steps {
                if adds { dirty.insert(start, start + len) } else { dirty.remove(start, start + len) }
                blocks[start as usize..(start + len) as usize].fill(adds);
                prop_assert_eq!(dirty.bytes(), blocks.iter().filter(|block| **block).count() as u64);
                for at in 0..79 {
                    prop_assert_eq!(dirty.holds(at, at + 2), blocks[at as usize] && blocks[at as usize + 1], "{}", at);
                }
                let offered: Vec<_> = dirty.spread(30, 8, start).collect();
                prop_assert!(offered.len() <= 9 && offered.is_empty() == (dirty.bytes() == 0), "{:?}", offered);
                for (start, end) in offered {
                    prop_assert!(dirty.holds(start, end));
                }
            }
        }
    }

    #[test]
    fn a_run_grows_until_the_arm_leaves() {
        let mut runs = Runs::new(16 * 1000);
        runs.read(5000, 5100, 7, 1 << 20);
        assert!(runs.hold(5000, 5100) && !runs.hold(5000, 5101));
        let growing = runs.growing().unwrap();
        assert_eq!((growing.start, growing.from, growing.since, growing.limit), (5000, 5100, 7, 5600));
        runs.stop(5400);
        assert!(runs.hold(5000, 5400) && runs.growing().is_none());
        runs.read(5400, 6300, 9, 6350);
        assert!(runs.hold(5300, 6300) && !runs.hold(5299, 6300), "a run keeps its part of the buffer");
        assert_eq!(runs.growing().unwrap().limit, 6350, "not beyond the disk");
        runs.stop(6300);
        for nth in 0..RUNS_MAX as u64 {
            runs.read(100_000 * (nth + 1), 100_000 * (nth + 1) + 10, 9, 1 << 30);
        }
        assert!(!runs.hold(6000, 6300), "the oldest run is forgotten");
    }
}
