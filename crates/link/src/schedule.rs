//! Selects the priority that sends next.
//!
//! ETS is start-time fair queueing: every queue has a tag, the virtual time at which its next frame may start. The
//! queue with the smallest tag sends, and its tag grows by length / share. A queue that was empty starts at the
//! present, so it has neither a debt nor a credit. Over any time the shares are exact to within one frame per queue,
//! for frames of any size.

use crate::config::{PRIORITIES, Schedule, ScheduleKind};

/// Tag units per byte at a share of 100 percent.
const UNITS: u64 = 6_400;
/// Tag above which all tags start again: far more than one frame below the maximum of the type.
const TAG_MAX: u64 = 1 << 60;

#[derive(Debug)]
pub(crate) struct Scheduler {
    /// Percent by priority; 0 = without a share.
    shares: [u32; PRIORITIES],
    /// Priorities with a share, as bits.
    shared: u8,
    tags: [u64; PRIORITIES],
    /// Tag of the last sent frame.
    present: u64,
}

impl Scheduler {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        let mut shares = [0; PRIORITIES];
        let mut shared = 0;
        if schedule.kind == ScheduleKind::Ets {
            for (&priority, &share) in &schedule.shares {
                shares[usize::from(priority)] = share;
                shared |= 1 << priority;
            }
        }
        Self { shares, shared, tags: [0; PRIORITIES], present: 0 }
    }

    /// Selects among the priorities whose bits are set. `length_of` returns the length of a priority's next frame.
    pub(crate) fn pick(&mut self, ready: u8, length_of: impl Fn(usize) -> u32) -> Option<usize> {
        if ready == 0 {
            return None;
        }
        let rivals = ready & self.shared;
        if rivals == 0 {
            return Some(7 - ready.leading_zeros() as usize);
        }
        let mut best: Option<usize> = None;
        // From the top: of equal tags the higher priority wins.
        for priority in (0..PRIORITIES).rev().filter(|priority| rivals >> priority & 1 == 1) {
            self.tags[priority] = self.tags[priority].max(self.present);
            if best.is_none_or(|best| self.tags[priority] < self.tags[best]) {
                best = Some(priority);
            }
        }
        let chosen = best?;
        self.present = self.tags[chosen];
        self.tags[chosen] += u64::from(length_of(chosen)) * UNITS * 100 / u64::from(self.shares[chosen]);
        if self.present > TAG_MAX {
            // Only the distance of a tag from the present counts.
            let present = std::mem::take(&mut self.present);
            self.tags = self.tags.map(|tag| tag.saturating_sub(present));
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that each priority sends out of 1,000,000 if the given ones always have frames of the given lengths.
    fn sent(schedule: &Schedule, ready: &[(usize, u32)]) -> [u64; PRIORITIES] {
        let mut scheduler = Scheduler::new(schedule);
        let mut lengths = [0; PRIORITIES];
        let mut mask = 0;
        for &(priority, length) in ready {
            lengths[priority] = length;
            mask |= 1 << priority;
        }
        let mut bytes = [0; PRIORITIES];
        while bytes.iter().sum::<u64>() < 1_000_000 {
            let chosen = scheduler.pick(mask, |priority| lengths[priority]).unwrap();
            bytes[chosen] += u64::from(lengths[chosen]);
        }
        bytes
    }

    #[test]
    fn strict_lets_the_highest_go_first() {
        let bytes = sent(&Schedule::default(), &[(0, 1514), (3, 1514), (6, 64)]);
        assert!(bytes[6] >= 1_000_000 && bytes[3] == 0 && bytes[0] == 0);
    }

    #[test]
    fn shares_hold_whatever_the_frame_sizes() {
        for (shares, lengths) in [([50, 50], [9014, 64]), ([70, 30], [1514, 9014]), ([1, 99], [9014, 1514])] {
            let schedule = Schedule::ets(&[(3, shares[0]), (0, shares[1])]);
            let bytes = sent(&schedule, &[(3, lengths[0]), (0, lengths[1])]);
            let percent = bytes[3] as f64 / 10_000.0;
            assert!((percent - f64::from(shares[0])).abs() < 1.0, "{percent} of {shares:?}");
        }
    }

    #[test]
    fn a_priority_without_a_share_gets_the_rest() {
        let schedule = Schedule::ets(&[(3, 50)]);
        assert!(sent(&schedule, &[(3, 1514), (7, 1514)])[7] == 0);
        assert!(sent(&schedule, &[(7, 1514), (1, 1514)])[7] >= 1_000_000);
    }

    #[test]
    fn silence_saves_nothing_up() {
        let mut scheduler = Scheduler::new(&Schedule::ets(&[(3, 50), (0, 50)]));
        for _ in 0..10_000 {
            assert_eq!(scheduler.pick(1, |_| 1514), Some(0));
        }
        let first: Vec<_> = (0..20).map(|_| scheduler.pick(0b1001, |_| 1514).unwrap()).collect();
        let late = first.iter().filter(|&&priority| priority == 3).count();
        assert!((9..=11).contains(&late), "{first:?}");
    }

    #[test]
    fn shares_hold_however_long_it_runs() {
        let mut scheduler = Scheduler::new(&Schedule::ets(&[(3, 25), (0, 75)]));
        scheduler.present = TAG_MAX;
        let chosen: Vec<_> = (0..40).map(|_| scheduler.pick(0b1001, |_| 1514).unwrap()).collect();
        let quarter = chosen.iter().filter(|&&priority| priority == 3).count();
        assert!((9..=11).contains(&quarter), "{chosen:?}");
        assert!(scheduler.present < TAG_MAX);
    }

    #[test]
    fn nothing_ready_nothing_sent() {
        assert_eq!(Scheduler::new(&Schedule::default()).pick(0, |_| 1), None);
    }
}
