//! One initiator with several paths to one array, under a virtual clock, while paths fail and are restored: cables,
//! one-way loss, resets, removed addresses, failed controllers, changed access states.
//!
//! While a path works, the application gets no error. The first I/O of a failed path completes on another path within
//! 1.5 s. Every I/O is answered. No block ever holds anything but the newest acknowledged write, even when a write from
//! a silent path arrives later.
//!
//! `rig.rs` drives both sides and has the model; `faults.rs` decides about faults. `make sim SEED=n` replays a seed.
#![allow(clippy::unwrap_used, reason = "tests")]

mod faults;
mod rig;

use linerate_sim::for_each_seed;
use rig::{Outcome, Rig, SECOND_NS};

fn run(seed: u64) -> Outcome {
    let mut rig = Rig::new(seed);
    rig.open();
    rig.work(40 * SECOND_NS);
    rig.verify();
    rig.outcome
}

#[test]
fn no_error_and_no_wrong_block_while_a_path_lives() {
    let mut sum = Outcome::default();
    let is_full = for_each_seed(100, |seed| {
        let outcome = run(seed);
        sum.acknowledged += outcome.acknowledged;
        sum.faults += outcome.faults;
        sum.paths_failed += outcome.paths_failed;
        sum.failovers += outcome.failovers;
        sum.requeued += outcome.requeued;
        sum.failover_max_ns = sum.failover_max_ns.max(outcome.failover_max_ns);
    });
    eprintln!("{sum:?}");
    if is_full {
        assert!(sum.faults > 500 && sum.failovers > 100 && sum.requeued > 200, "{sum:?}");
    }
}

#[test]
fn a_seed_of_faults_replays_exactly() {
    for_each_seed(5, |seed| assert_eq!(run(seed), run(seed)));
}
