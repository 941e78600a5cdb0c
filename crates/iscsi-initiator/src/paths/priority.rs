//! Which paths are usable: the active ones of the best priority.
use crate::balance::Policy;
use crate::facts::PathState;

/// A path's priority; the least is the best.
///
/// The array's access state decides first (ALUA), then the user's choice (standby), then the policy's preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Priority {
    not_optimized: bool,
    standby: bool,
    preference: u32,
}

/// What a path's priority depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rating {
    pub(crate) state: PathState,
    pub(crate) standby: bool,
    pub(crate) weight: u32,
    /// It is back and waits for failback.
    pub(crate) held: bool,
}

impl Rating {
    /// None if no I/O may use the path. `place` is its position in the list.
    pub(crate) fn priority(self, policy: Policy, place: usize) -> Option<Priority> {
        let preference = match policy {
            Policy::FailoverOnly => place as u32,
            Policy::WeightedPaths => self.weight,
            _ => 0,
        };
        let not_optimized = self.state != PathState::ActiveOptimized;
        self.state.is_active().then_some(Priority { not_optimized, standby: self.standby, preference })
    }
}

/// The best priority of the paths that are not held; of all if there are no others.
pub(crate) fn best(policy: Policy, paths: &(impl Iterator<Item = Rating> + Clone)) -> Option<Priority> {
    let of = |held: bool| {
        let paths = paths.clone().enumerate().filter(move |(_, path)| path.held == held);
        paths.filter_map(move |(place, path)| path.priority(policy, place)).min()
    };
    of(false).or_else(|| of(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usable(policy: Policy, paths: &[(PathState, bool, u32, bool)]) -> Vec<usize> {
        let rating = |&(state, standby, weight, held): &_| Rating { state, standby, weight, held };
        let best = best(policy, &paths.iter().map(rating));
        let at_best =
            |place: &usize| best.is_some() && rating(&paths[*place]).priority(policy, *place) == best;
        (0..paths.len()).filter(at_best).collect()
    }

    #[test]
    fn the_array_then_the_user_then_the_policy() {
        use PathState::{ActiveNonOptimized as Non, ActiveOptimized as Opt, Failed, Standby};
        let paths =
            [(Non, false, 1, false), (Opt, true, 3, false), (Opt, false, 2, false), (Opt, false, 7, false)];
        assert_eq!(usable(Policy::RoundRobinSubset, &paths), [2, 3]);
        assert_eq!(usable(Policy::FailoverOnly, &paths), [2]);
        assert_eq!(usable(Policy::WeightedPaths, &paths), [2]);
        let paths = [
            (Non, false, 1, false),
            (Opt, true, 3, false),
            (Failed, false, 2, false),
            (Standby, false, 0, false),
        ];
        assert_eq!(usable(Policy::LeastBlocks, &paths), [1]);
        let paths = [(Non, false, 1, false), (Failed, true, 3, false), (Standby, false, 0, false)];
        assert_eq!(usable(Policy::ServiceTime, &paths), [0]);
        assert!(usable(Policy::RoundRobin, &[(Failed, false, 0, false)]).is_empty());
    }

    #[test]
    fn a_held_path_is_used_when_no_other_is_left() {
        use PathState::{ActiveOptimized as Opt, Failed};
        let paths = [(Opt, false, 0, true), (Opt, false, 0, false)];
        assert_eq!(usable(Policy::FailoverOnly, &paths), [1]);
        let paths = [(Opt, false, 0, true), (Failed, false, 0, false)];
        assert_eq!(usable(Policy::FailoverOnly, &paths), [0]);
    }
}
