//! Several paths to our own array over loopback, through relays that fall silent, close, or deliver old bytes later: no
//! error while a path works, every block is right, and no old write overwrites a newer one.

use crate::rig::relay::Mode;
use crate::rig::{BLOCK, Rig, SECOND, is_failure, multipath, two};
use linerate_io::{Driver, Region, Seg};
use linerate_iscsi_initiator::{
    DeviceState, EventKind, Failback, IoError, IoOp, IoRequest, MultipathOptions, PathSpec, PathState,
    Policy, SessionOptions,
};

#[test]
fn every_policy_moves_data_over_its_paths() {
    let all = [
        (Policy::FailoverOnly, vec![0]),
        (Policy::RoundRobin, vec![0, 1, 2]),
        (Policy::RoundRobinSubset, vec![0, 1]),
        (Policy::LeastQueueDepth, vec![0, 1, 2]),
        (Policy::LeastBlocks, vec![0, 1, 2]),
        (Policy::WeightedPaths, vec![2]),
        (Policy::ServiceTime, vec![0, 1, 2]),
    ];
    for (policy, used) in all {
        // The first path has two sessions.
        let mut specs = two();
        specs[0] = PathSpec { sessions: 2, weight: 5, ..specs[0].clone() };
        specs[1].standby = policy == Policy::RoundRobinSubset;
        let mut rig = Rig::open(&multipath(policy), specs);
        let names: Vec<_> = rig.initiator.path_facts(rig.device).map(|path| path.name.to_owned()).collect();
        assert_eq!(names, ["left#1", "left#2", "right"]);
        for round in 0..20_u32 {
            for slot in 0..16 {
                rig.write(slot, u64::from(slot), round as u8);
            }
            let wanted = 16 * (round as usize + 1);
            rig.run("writes", |rig| rig.heard.done.len() == wanted);
        }
        assert_eq!(rig.succeeded(), 320);
        let carried: Vec<u64> = rig.counters().iter().map(|counters| counters.write_ios).collect();
        assert_eq!(carried.iter().sum::<u64>(), 320, "{policy:?}");
        let carriers: Vec<usize> = (0..3).filter(|place| carried[*place] > 0).collect();
        assert_eq!((carriers, rig.in_use()), (used.clone(), used), "{policy:?} {carried:?}");
        if policy == Policy::RoundRobin {
            assert!(carried.iter().all(|ios| (106..=107).contains(ios)), "{carried:?}");
        }
        assert_eq!(rig.value(7), 19);
        assert!(rig.counters().iter().map(|counters| counters.read_bytes).sum::<u64>() == BLOCK);
    }
}

#[test]
fn a_silent_path_is_found_in_time_and_its_io_is_done_elsewhere() {
    let mut rig = Rig::open(&multipath(Policy::RoundRobin), two());
    rig.write(0, 0, 1);
    rig.run("a write", |rig| rig.heard.done.len() == 1);
    rig.relays[0].set(Mode::Silent);
    for slot in 0..32 {
        rig.write(slot, u64::from(slot), 2);
    }
    let took = rig.run("32 writes", |rig| rig.heard.done.len() == 33);
    assert_eq!(rig.succeeded(), 33);
    assert!(took < SECOND + SECOND / 2, "{took} ns");
    let requeued: u64 = rig.counters().iter().map(|counters| counters.requeued).sum();
    assert_eq!(requeued, 16, "every second one, once");
    assert!(rig.has(is_failure(0)) && !rig.has(is_failure(1)));
    // The key that the user sets; the session's own times follow from it.
    let names = |kind: &EventKind, words| matches!(kind, EventKind::PathFailed { reason, .. } if reason.contains(words));
    assert!(rig.has(|kind| names(kind, "a ping within path_timeout")), "{:?}", rig.heard.events);
    assert!(rig.has(|kind| matches!(kind, EventKind::FailoverDone { path: 0, to: 1, .. })));
    assert_eq!(rig.in_use(), [1]);
    rig.relays[0].set(Mode::Pass);
    rig.run("the path's return", |rig| rig.has(|kind| *kind == EventKind::PathRestored { path: 0 }));
    assert_eq!(rig.in_use(), [0, 1]);
    for slot in 0..32 {
        assert_eq!(rig.value(slot), 2);
    }
}

#[test]
fn a_path_that_takes_no_more_bytes_is_found_in_time_too() {
    // The ping waits behind a send that cannot end; the kernel's timeout detects the loss.
    const LEN: u32 = 128 * 1024;
    let session = SessionOptions { send_buffer_bytes: Some(64 * 1024), ..SessionOptions::default() };
    let mut rig = Rig::two_groups(&multipath(Policy::FailoverOnly), "active_non_optimized", &session);
    let memory = Region::anonymous(64 * u64::from(LEN)).unwrap();
    memory.fill(0, memory.len(), &[7]);
    let region = rig.initiator.attach(&mut rig.driver, &memory);
    rig.relays[0].set(Mode::Silent);
    for slot in 0..64 {
        let offset = u64::from(slot) * u64::from(LEN);
        let op = IoOp::Write(Seg { region, offset, len: LEN });
        let request = IoRequest { slot, op, offset_bytes: offset, len_bytes: LEN };
        rig.initiator.submit(rig.device, &request).unwrap();
    }
    let took = rig.run("64 writes", |rig| rig.heard.done.len() == 64);
    rig.succeeded();
    assert!(took < 3 * SECOND, "{took} ns");
    assert_eq!((rig.value(0), rig.value(2047)), (7, 7));
}

#[test]
fn a_closed_path_is_left_at_once_and_again_and_again() {
    let mut rig = Rig::open(&multipath(Policy::LeastQueueDepth), two());
    let mut written = 0;
    for round in 0..10_u8 {
        for slot in 0..32 {
            rig.write(slot, u64::from(slot), round + 1);
        }
        written += 32;
        let cut = usize::from(round % 2);
        rig.relays[cut].set(Mode::Close);
        rig.run("writes", |rig| rig.heard.done.len() == written);
        rig.relays[cut].set(Mode::Pass);
        rig.run("both paths", |rig| rig.in_use() == [0, 1]);
    }
    assert_eq!(rig.succeeded(), 320);
    for slot in 0..32 {
        assert_eq!(rig.value(slot), 10);
    }
}

#[test]
fn an_old_write_that_arrives_late_never_overwrites_a_newer_one() {
    // One session per path; the array gets the data that the silent relay keeps long after the retry.
    let mut rig = Rig::open(&multipath(Policy::FailoverOnly), two());
    for round in 0..5_u64 {
        rig.relays[0].set(Mode::Silent);
        let done = rig.heard.done.len();
        for slot in 0..8 {
            rig.write(slot, round * 8 + u64::from(slot), 1);
        }
        rig.run("retries", |rig| rig.heard.done.len() == done + 8);
        for slot in 0..8 {
            rig.write(slot, round * 8 + u64::from(slot), 2);
        }
        let took = rig.run("newer writes", |rig| rig.heard.done.len() == done + 16);
        assert!(took < SECOND, "the fence is made over the living path: {took} ns");
        rig.relays[0].set(Mode::Pass);
        rig.run("the path's return", |rig| rig.in_use() == [0]);
        for slot in 0..8 {
            assert_eq!(rig.value(round * 8 + slot), 2);
        }
    }
    rig.succeeded();
}

#[test]
fn without_any_path_io_waits_and_then_fails() {
    let options = MultipathOptions { no_path_queue_s: Some(0.5), ..multipath(Policy::RoundRobin) };
    let mut rig = Rig::open(&options, two());
    rig.relays.iter().for_each(|relay| relay.set(Mode::Close));
    rig.run("no path", |rig| rig.has(|kind| *kind == EventKind::NoPath));
    rig.write(0, 0, 1);
    let took = rig.run("its end", |rig| rig.heard.done.len() == 1);
    assert_eq!(rig.heard.done[0].result, Err(IoError::NoPath));
    assert!((SECOND * 3 / 10..3 * SECOND).contains(&took), "{took} ns");
    rig.write(1, 0, 1);
    let took = rig.run("its end", |rig| rig.heard.done.len() == 2);
    assert!(took < SECOND / 10, "it has waited long enough: {took} ns");
    rig.relays[1].set(Mode::Pass);
    rig.run("a path", |rig| rig.has(|kind| matches!(kind, EventKind::PathsBack { .. })));
    rig.write(2, 0, 3);
    rig.run("a write", |rig| rig.heard.done.len() == 3);
    assert_eq!((rig.heard.done[2].result, rig.value(0)), (Ok(()), 3));
}

#[test]
fn io_that_waits_for_a_path_is_sent_when_one_is_back() {
    let mut rig = Rig::open(&multipath(Policy::RoundRobin), two());
    rig.relays.iter().for_each(|relay| relay.set(Mode::Silent));
    for slot in 0..16 {
        rig.write(slot, u64::from(slot % 4), 1 + slot as u8);
    }
    rig.run("no path", |rig| rig.has(|kind| *kind == EventKind::NoPath));
    rig.relays[0].set(Mode::Pass);
    rig.run("all writes", |rig| rig.heard.done.len() == 16);
    rig.succeeded();
    let waited = |kind: &EventKind| matches!(kind, EventKind::PathsBack { waiting: 16 });
    assert!(rig.has(waited), "{:?}", rig.heard.events);
    for block in 0..4 {
        assert_eq!(rig.value(block), 13 + block as u8, "in the order of submission");
    }
}

#[test]
fn failback_is_immediate_delayed_or_by_hand() {
    let fail_and_return = |failback: Failback| {
        let options = MultipathOptions { failback, ..multipath(Policy::FailoverOnly) };
        let mut rig = Rig::open(&options, two());
        rig.relays[0].set(Mode::Close);
        rig.run("failover", |rig| rig.in_use() == [1]);
        rig.relays[0].set(Mode::Pass);
        rig.run("return", |rig| rig.states() == [PathState::ActiveOptimized; 2]);
        rig
    };
    let rig = fail_and_return(Failback::Immediate);
    assert_eq!(rig.in_use(), [0]);
    let mut rig = fail_and_return(Failback::Delayed(0.5));
    assert_eq!(rig.in_use(), [1]);
    let took = rig.run("failback", |rig| rig.in_use() == [0]);
    assert!(took > SECOND * 3 / 10, "{took} ns");
    let mut rig = fail_and_return(Failback::Manual);
    rig.rest(SECOND / 2);
    assert_eq!(rig.in_use(), [1]);
    let now = rig.driver.now();
    rig.initiator.fail_back(rig.device, now, &mut rig.heard);
    assert_eq!(rig.in_use(), [0]);
    // And again: if no other path is left, a path that waits for failback is used.
    rig.relays[0].set(Mode::Close);
    rig.run("failover", |rig| rig.in_use() == [1]);
    rig.relays[0].set(Mode::Pass);
    rig.run("return", |rig| rig.states() == [PathState::ActiveOptimized; 2]);
    rig.relays[1].set(Mode::Close);
    rig.run("failover", |rig| rig.in_use() == [0]);
}

#[test]
fn a_device_opens_over_what_there_is() {
    let mut rig = Rig::start(&multipath(Policy::RoundRobin), two(), |relays| relays[0].set(Mode::Silent));
    assert_eq!(*rig.initiator.state(rig.device), DeviceState::Ready);
    assert!(rig.has(is_failure(0)));
    rig.relays[0].set(Mode::Pass);
    rig.run("the other path", |rig| rig.in_use() == [0, 1]);
    let rig = Rig::start(&multipath(Policy::RoundRobin), two(), |relays| {
        for relay in relays {
            relay.set(Mode::Close);
        }
    });
    assert!(matches!(rig.initiator.state(rig.device), DeviceState::Failed(_)));
}

#[test]
fn without_a_portal_of_the_same_group_a_newer_write_waits_for_the_stated_time() {
    // The silent path's group has no other portal, so a login over another path cannot end its session.
    let session = SessionOptions { command_timeout_s: 1.0, ..SessionOptions::default() };
    let options = multipath(Policy::FailoverOnly);
    let mut rig = Rig::two_groups(&options, "active_non_optimized", &session);
    rig.relays[0].set(Mode::Silent);
    rig.write(0, 0, 1);
    rig.run("the retry", |rig| rig.heard.done.len() == 1);
    assert_eq!(rig.value(0), 1, "a read of what the retry has written need not wait");
    rig.write(1, 0, 2);
    rig.write(2, 1, 2);
    rig.run("a write elsewhere", |rig| rig.heard.done.len() == 3);
    assert_eq!(rig.heard.done[2].slot, 2);
    let took = rig.run("the newer write", |rig| rig.heard.done.len() == 4);
    assert!((SECOND / 2..4 * SECOND).contains(&took), "{took} ns");
    rig.succeeded();
    assert_eq!(rig.value(0), 2);
}
