//! Which clusters are used, and which of them change: runs and gaps of random lengths from the seed.

use super::BackupLoad;
use crate::stream::rng::{Rng, Use};
use std::{iter::Peekable, ops::Range};

/// Runs of clusters in ascending order. Their lengths, and those of the gaps between them, are geometric.
#[derive(Clone, Debug)]
pub(super) struct ClusterRuns {
    rng: Rng,
    at: u64,
    end: u64,
    run_mean: f64,
    gap_mean: f64,
}

impl ClusterRuns {
    /// Runs in `range` that cover about `percent` of it; `map` distinguishes maps of one seed.
    fn new(range: Range<u64>, percent: f64, run_clusters: u32, (seed, map): (u64, u32)) -> Self {
        let run_mean = f64::from(run_clusters);
        // With 0 percent the first gap is endless.
        let gap_mean = run_mean * (100.0 - percent) / percent;
        Self { rng: Rng::new(seed, map, 0, Use::Backup), at: range.start, end: range.end, run_mean, gap_mean }
    }

    /// A number from 0 on with this mean.
    fn geometric(&mut self, mean: f64) -> u64 {
        if mean <= 0.0 {
            return 0;
        }
        // Conversion of what is too large ends at the largest number.
        ((1.0 - self.rng.unit()).ln() / (mean / (mean + 1.0)).ln()) as u64
    }
}

impl Iterator for ClusterRuns {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        if self.gap_mean.is_infinite() {
            return None;
        }
        let gap = self.geometric(self.gap_mean);
        let run = 1 + self.geometric(self.run_mean - 1.0);
        let begin = self.at.saturating_add(gap);
        self.at = begin.saturating_add(run);
        (begin < self.end).then(|| begin..self.at.min(self.end))
    }
}

/// What two ascending lists of runs have in common.
pub(super) struct Common<A: Iterator<Item = Range<u64>>, B: Iterator<Item = Range<u64>>> {
    one: Peekable<A>,
    other: Peekable<B>,
}

impl<A: Iterator<Item = Range<u64>>, B: Iterator<Item = Range<u64>>> Iterator for Common<A, B> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        loop {
            let (one, other) = (self.one.peek()?.clone(), self.other.peek()?.clone());
            if one.end <= other.end {
                self.one.next();
            } else {
                self.other.next();
            }
            let common = one.start.max(other.start)..one.end.min(other.end);
            if !common.is_empty() {
                return Some(common);
            }
        }
    }
}

impl BackupLoad {
    /// The used clusters of the source.
    pub(super) fn used(&self) -> ClusterRuns {
        let (spec, range) = (&self.spec, self.metadata_clusters..self.clusters);
        ClusterRuns::new(range, spec.used_percent, spec.used_run_clusters, (spec.seed, 1))
    }

    /// The used clusters that have changed before the incremental backup with this number, from 2 on.
    pub(super) fn changed(&self, backup: u32) -> Common<ClusterRuns, ClusterRuns> {
        let (spec, range) = (&self.spec, self.metadata_clusters..self.clusters);
        let changed =
            ClusterRuns::new(range, spec.changed_percent, spec.changed_run_clusters, (spec.seed, backup));
        Common { one: self.used().peekable(), other: changed.peekable() }
    }
}
