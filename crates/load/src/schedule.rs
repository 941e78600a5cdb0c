//! The intervals of a run: when each one ends.

/// When intervals end; all times in ns since the start of the run. The warm-up has intervals of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSchedule {
    warmup: u64,
    elapsed: u64,
    interval: u64,
}

impl RunSchedule {
    /// From seconds.
    pub(crate) fn new(warmup_s: f64, elapsed_s: f64, interval_s: f64) -> Self {
        let ns = |seconds: f64| (seconds * 1e9).round() as u64;
        Self { warmup: ns(warmup_s), elapsed: ns(elapsed_s), interval: ns(interval_s).max(1) }
    }

    /// End of the warm-up.
    pub(crate) fn measured_from(&self) -> u64 {
        self.warmup
    }

    /// End of the run.
    pub(crate) fn end(&self) -> u64 {
        self.warmup + self.elapsed
    }

    /// Intervals of the warm-up.
    fn warmup_intervals(&self) -> u64 {
        self.warmup.div_ceil(self.interval)
    }

    /// End of an interval.
    pub(crate) fn cut(&self, index: u32) -> u64 {
        let (index, warmup) = (u64::from(index), self.warmup_intervals());
        if index < warmup {
            ((index + 1) * self.interval).min(self.warmup)
        } else {
            (self.warmup + (index + 1 - warmup).saturating_mul(self.interval)).min(self.end())
        }
    }

    /// Start of an interval.
    pub(crate) fn start(&self, index: u32) -> u64 {
        index.checked_sub(1).map_or(0, |before| self.cut(before))
    }

    /// Whether an interval belongs to the warm-up.
    pub(crate) fn is_warmup(&self, index: u32) -> bool {
        u64::from(index) < self.warmup_intervals()
    }
}

#[cfg(test)]
mod tests {
    use super::RunSchedule;

    #[test]
    fn intervals_follow_each_other_without_gaps() {
        for (warmup, elapsed, interval) in
            [(0.0, 10.0, 1.0), (2.5, 3.2, 1.0), (0.3, 0.4, 1.0), (4.0, 6.0, 2.0)]
        {
            let schedule = RunSchedule::new(warmup, elapsed, interval);
            let (mut index, mut at) = (0, 0);
            while at < schedule.end() {
                assert_eq!(schedule.start(index), at);
                assert!(schedule.cut(index) > at && schedule.cut(index) <= at + (interval * 1e9) as u64);
                assert_eq!(schedule.is_warmup(index), at < schedule.measured_from());
                at = schedule.cut(index);
                index += 1;
            }
            assert_eq!(at, ((warmup + elapsed) * 1e9_f64).round() as u64);
        }
    }
}
