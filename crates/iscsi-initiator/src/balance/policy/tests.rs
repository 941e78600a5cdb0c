//! The properties of each policy, for any load.

use super::*;
use proptest::prelude::*;

const POLICIES: [Policy; 7] = [
    Policy::FailoverOnly,
    Policy::RoundRobin,
    Policy::RoundRobinSubset,
    Policy::LeastQueueDepth,
    Policy::LeastBlocks,
    Policy::WeightedPaths,
    Policy::ServiceTime,
];

fn selector(policy: Policy, ios_per_path: u32, bytes_per_path: Option<u64>) -> Selector {
    Selector::new(&BalanceOptions { policy, ios_per_path, bytes_per_path })
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    let load = (0..100_u32, 0..10_000_000_u64, 0..100_000_u64);
    prop::collection::vec(load.prop_map(|(ios, bytes, cost)| Load { ios, bytes, cost }), 1..9)
}

/// Two paths, each serving one I/O after the other, and a closed loop over both. Returns the I/Os of each path.
fn race(policy: Policy, ns_per_io: [u64; 2], depth: usize) -> [u64; 2] {
    const BYTES: u32 = 65_536;
    let mut selector = selector(policy, 1, None);
    let mut meters = [super::super::meter::Meter::default(), super::super::meter::Meter::default()];
    // Per path, the I/Os in its queue: sent at, bytes in flight then.
    let mut queues = [std::collections::VecDeque::new(), std::collections::VecDeque::new()];
    let (mut free_at, mut done, mut now) = ([0_u64; 2], [0_u64; 2], 0_u64);
    while done[0] + done[1] < 20_000 {
        while queues[0].len() + queues[1].len() < depth {
            let at = selector.select(2, BYTES, |at| meters[at].load);
            let bytes = meters[at].begin(BYTES);
            if queues[at].is_empty() {
                free_at[at] = now + ns_per_io[at];
            }
            queues[at].push_back((now, bytes));
        }
        let first = queues[1].is_empty() || (!queues[0].is_empty() && free_at[0] <= free_at[1]);
        let next = usize::from(!first);
        now = free_at[next];
        let (sent, bytes) = queues[next].pop_front().unwrap();
        meters[next].done(super::super::meter::Moves::Read, BYTES, bytes, now - sent);
        meters[next].end(BYTES);
        free_at[next] = now + ns_per_io[next];
        done[next] += 1;
    }
    // The rate of the pair as a percentage of the sum of both paths.
    let both = now / ns_per_io[0] + now / ns_per_io[1];
    [(done[0] + done[1]) * 100 / both, done[1]]
}

#[test]
fn unequal_paths_are_filled_by_policies_that_look_and_drag_those_that_do_not() {
    for policy in [Policy::LeastQueueDepth, Policy::LeastBlocks, Policy::ServiceTime] {
        let [percent, slow] = race(policy, [10_000, 100_000], 16);
        assert!(percent >= 95 && slow > 0, "{policy:?} reaches {percent} % of the sum");
    }
    let [percent, _] = race(Policy::RoundRobin, [10_000, 100_000], 16);
    assert!(percent < 30, "round robin waits for the slow path: {percent} % of the sum");
    for policy in POLICIES.into_iter().filter(|policy| *policy != Policy::FailoverOnly) {
        let [percent, _] = race(policy, [10_000, 10_000], 8);
        assert!(percent >= 98, "{policy:?} on equal paths: {percent} %");
    }
}

proptest! {
    #[test]
    fn every_choice_is_one_of_the_paths(loads in loads(), sizes in prop::collection::vec(0..1_000_000_u32, 1..50)) {
        for policy in POLICIES {
            let mut selector = selector(policy, 3, None);
            for bytes in &sizes {
                // The number of usable paths may change from one I/O to the next.
                let count = 1 + *bytes as usize % loads.len();
                prop_assert!(selector.select(count, *bytes, |at| loads[at]) < count);
            }
        }
    }

    #[test]
    fn the_least_is_the_least(loads in loads(), bytes in 0..1_000_000_u32) {
        let count = loads.len();
        let chosen = selector(Policy::LeastQueueDepth, 1, None).select(count, bytes, |at| loads[at]);
        prop_assert!(loads.iter().all(|load| load.ios >= loads[chosen].ios));
        let chosen = selector(Policy::LeastBlocks, 1, None).select(count, bytes, |at| loads[at]);
        prop_assert!(loads.iter().all(|load| load.bytes >= loads[chosen].bytes));
    }

    #[test]
    fn turns_are_fair(count in 2..9_usize, ios in 1..20_u32, rounds in 1..5_u64) {
        let mut selector = selector(Policy::RoundRobin, ios, None);
        let mut taken = vec![0_u64; count];
        let mut moves = 0;
        let mut last = 0;
        for _ in 0..rounds * count as u64 * u64::from(ios) {
            let at = selector.select(count, 4096, |_| Load::default());
            moves += u64::from(at != last);
            last = at;
            taken[at] += 1;
        }
        prop_assert!(taken.iter().all(|taken| *taken == rounds * u64::from(ios)), "{:?}", taken);
        prop_assert_eq!(moves, rounds * count as u64 - 1, "it moves on at the end of a turn only");
    }

    #[test]
    fn turns_in_bytes_differ_by_one_io_at_most(sizes in prop::collection::vec(1..200_000_u32, 200)) {
        const TURN: u64 = 300_000;
        let mut selector = selector(Policy::RoundRobin, 1, Some(TURN));
        let mut in_turn = 0_u64;
        let mut last = 0;
        for bytes in sizes {
            let at = selector.select(3, bytes, |_| Load::default());
            if at != last {
                prop_assert!((TURN..TURN + 200_000).contains(&in_turn), "{}", in_turn);
                (last, in_turn) = (at, 0);
            }
            in_turn += u64::from(bytes);
        }
    }
}
