//! The real target and the real initiator under a virtual clock: random I/O compared with a model, while data arrives
//! in pieces, windows close, commands time out, and connections are refused and get lost. No acknowledged write may be
//! lost, every byte must be in its place, and nothing may hang.
//!
//! A seed determines everything: limits of both sides, digests, authentication, LUNs, the network, the work
//! (`choices.rs`); `rig.rs` drives the pair. `make sim SEED=n` replays one seed, `make sim` runs many.
#![allow(clippy::unwrap_used, reason = "tests")]

mod choices;
mod rig;
mod rogue;

use linerate_io::Nanos;
use linerate_sim::{Conditions, for_each_seed};
use rig::Pair;

/// Nothing is lost, so nothing may fail and neither side may end a session.
fn calm(seed: u64) -> (u64, Nanos) {
    let mut pair = Pair::new(seed, false);
    pair.open();
    pair.work(30);
    pair.verify();
    assert_eq!((pair.failed, &pair.heard.lost[..], pair.heard.timeouts), (0, &[][..], 0));
    (pair.acknowledged, pair.network.now())
}

/// Connections are refused and get lost, with an error or silently.
fn lossy(seed: u64) -> (u64, Nanos) {
    let mut pair = Pair::new(seed, false);
    pair.open();
    pair.work(10);
    let conditions = Conditions::random(&mut pair.rng, true);
    pair.network.set_conditions(conditions);
    pair.network.cut_all();
    pair.work(25);
    pair.network.set_conditions(Conditions::calm());
    pair.network.cut_all();
    pair.work(5);
    pair.verify();
    assert!(pair.acknowledged > 25);
    (pair.acknowledged, pair.network.now())
}

/// The initiator aborts slow commands, on a slow network.
fn impatient(seed: u64) -> (u64, u64, Nanos) {
    let mut pair = Pair::new(seed, true);
    pair.open();
    pair.work(10);
    let slow =
        Conditions { ns_per_byte: 2_000, delay_ns: 5_000_000, ..Conditions::random(&mut pair.rng, false) };
    pair.network.set_conditions(slow);
    pair.work(20);
    pair.network.set_conditions(Conditions::calm());
    pair.work(5);
    pair.verify();
    (pair.acknowledged, pair.heard.timeouts, pair.network.now())
}

/// A badly behaved initiator works beside: it may cost time, and nothing else.
fn rude(seed: u64) -> (u64, u64, u64, Nanos) {
    let mut pair = Pair::new(seed, false);
    pair.open();
    pair.add_rogue();
    pair.work(60);
    pair.verify();
    assert_eq!((pair.failed, &pair.heard.lost[..], pair.heard.timeouts), (0, &[][..], 0));
    let rogue = pair.rogue.as_ref().unwrap();
    (pair.acknowledged, rogue.answered, rogue.poisoned, pair.network.now())
}

#[test]
fn neighbours_of_a_rude_initiator_lose_nothing() {
    let (mut answered, mut poisoned) = (0, 0);
    let is_full = for_each_seed(500, |seed| {
        let (_, more_answered, more_poisoned, _) = rude(seed);
        (answered, poisoned) = (answered + more_answered, poisoned + more_poisoned);
    });
    if is_full {
        assert!(
            answered > 1000 && poisoned > 200,
            "only {answered} tasks were ended, {poisoned} were poisoned"
        );
    }
}

#[test]
fn every_acknowledged_write_is_read_back() {
    for_each_seed(500, |seed| _ = calm(seed));
}

#[test]
fn no_acknowledged_write_is_lost_with_a_connection() {
    for_each_seed(500, |seed| _ = lossy(seed));
}

#[test]
fn aborted_commands_leave_nothing_behind() {
    let mut timeouts = 0;
    let is_full = for_each_seed(150, |seed| timeouts += impatient(seed).1);
    if is_full {
        assert!(timeouts > 100, "only {timeouts} commands were aborted");
    }
}

#[test]
fn a_seed_replays_exactly() {
    for_each_seed(20, |seed| {
        assert_eq!(lossy(seed), lossy(seed));
        assert_eq!(impatient(seed), impatient(seed));
        assert_eq!(rude(seed), rude(seed));
    });
}
