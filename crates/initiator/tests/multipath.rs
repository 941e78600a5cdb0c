//! Several paths to our own array over loopback, through relays that fall silent, close, or come back with old bytes:
//! no error while a path lives, every block right, nothing old on top of something new.

#![allow(clippy::unwrap_used, reason = "a test's unwrap is an assertion")]

mod relay;

use linerate_initiator::{
    Credentials, DeviceId, DeviceState, Event, EventKind, Failback, Initiator, IoDone, IoError, IoOp,
    IoRequest, IoSink, LunAddress, MultipathOptions, PathCounters, PathSpec, PathState, Policy,
    PortalAddress, ReadInto, SessionOptions,
};
use linerate_io::{Driver, EpollDriver, Nanos, Region, RegionId, Seg, Wait};
use linerate_target::{Array, ArrayConfig};
use relay::{Mode, Relay};
use serde_json::json;
use std::sync::Arc;

const IQN: &str = "iqn.2026-11.lab.linerate:paths";
const SECOND: Nanos = 1_000_000_000;
const BLOCK: u64 = 4096;
const SLOTS: u32 = 64;

fn array(name: &str) -> Array {
    array_with(name, &json!("127.0.0.1:0"), "active_optimized")
}

/// An array whose second portal and the state of that portal's group are as the test wants them.
fn array_with(name: &str, second: &serde_json::Value, state: &str) -> Array {
    let volume = json!({ "lun": 0, "name": name, "kind": "memory", "size_bytes": 16 << 20,
                         "sector_bytes": 512 });
    let config: ArrayConfig = serde_json::from_value(json!({
        "portals": ["127.0.0.1:0", second],
        "portal_groups": second.get("group").map_or(json!([]), |tag| json!([{ "tag": tag, "alua": state }])),
        "targets": [{ "name": IQN, "volumes": [volume] }],
    }))
    .unwrap();
    Array::start(config).unwrap()
}

fn multipath(policy: Policy) -> MultipathOptions {
    MultipathOptions {
        policy,
        path_timeout_s: 0.5,
        checker_interval_s: 0.2,
        no_path_queue_s: Some(20.0),
        ..MultipathOptions::default()
    }
}

#[derive(Default)]
struct Heard {
    done: Vec<IoDone>,
    events: Vec<Event>,
}

impl IoSink for Heard {
    fn done(&mut self, done: IoDone) {
        self.done.push(done);
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// A device over relays, stepped by hand. Slot `n` has block-sized memory of its own.
struct Rig {
    driver: EpollDriver,
    initiator: Initiator,
    device: DeviceId,
    memory: Arc<Region>,
    region: RegionId,
    heard: Heard,
    relays: Vec<Relay>,
    array: Array,
}

impl Rig {
    /// One relay per path, to the array's portals in turn.
    fn open(options: &MultipathOptions, specs: Vec<PathSpec>) -> Self {
        let rig = Self::start(options, specs, |_| {});
        assert_eq!(*rig.initiator.state(rig.device), DeviceState::Ready);
        rig
    }

    fn start(options: &MultipathOptions, mut specs: Vec<PathSpec>, before: impl FnOnce(&[Relay])) -> Self {
        let array = array("one");
        let portals = array.portals();
        let relays: Vec<Relay> =
            (0..specs.len()).map(|place| Relay::to(portals[place % portals.len()])).collect();
        before(&relays);
        for (spec, relay) in specs.iter_mut().zip(&relays) {
            spec.portal = Some(PortalAddress::from(relay.addr));
        }
        Self::over(options, &specs, relays, array, &SessionOptions::default())
    }

    /// Two paths to an array whose second portal has a group of its own in this state.
    fn two_groups(options: &MultipathOptions, state: &str, session: &SessionOptions) -> Self {
        let array = array_with("one", &json!({ "address": "127.0.0.1:0", "group": 2 }), state);
        let relays: Vec<Relay> = array.portals().iter().map(|portal| Relay::to(*portal)).collect();
        let mut specs = two();
        for (spec, relay) in specs.iter_mut().zip(&relays) {
            spec.portal = Some(PortalAddress::from(relay.addr));
        }
        Self::over(options, &specs, relays, array, session)
    }

    fn change(&self, states: &[(u16, &str)]) {
        let entry = |(group, state): &(u16, &str)| json!({ "group": group, "state": state });
        let entries: Vec<_> = states.iter().map(entry).collect();
        self.array.change(&serde_json::from_value(json!({ "alua": entries })).unwrap()).unwrap();
    }

    fn over(
        options: &MultipathOptions,
        specs: &[PathSpec],
        relays: Vec<Relay>,
        array: Array,
        session: &SessionOptions,
    ) -> Self {
        let mut driver = EpollDriver::new().unwrap();
        let mut initiator = Initiator::new();
        let memory = Region::anonymous(u64::from(SLOTS) * BLOCK).unwrap();
        let region = initiator.attach(&mut driver, &memory);
        let portal = PortalAddress::from(array.portals()[0]);
        let address = LunAddress { portal, target: IQN.into(), lun: 0 };
        let credentials = Credentials::default();
        let device =
            initiator.open_paths(&mut driver, &address, specs, options, session, &credentials).unwrap();
        let mut heard = Heard::default();
        initiator.wait_ready(&mut driver, &mut heard).unwrap();
        Self { driver, initiator, device, memory, region, heard, relays, array }
    }

    fn seg(&self, slot: u32) -> Seg {
        Seg { region: self.region, offset: u64::from(slot) * BLOCK, len: BLOCK as u32 }
    }

    /// Writes a block whose bytes are all `value`.
    fn write(&mut self, slot: u32, block: u64, value: u8) {
        let seg = self.seg(slot);
        self.memory.fill(seg.offset, BLOCK, &[value]);
        self.submit(slot, IoOp::Write(seg), block);
    }

    fn submit(&mut self, slot: u32, op: IoOp, block: u64) {
        let request = IoRequest { slot, op, offset_bytes: block * BLOCK, len_bytes: BLOCK as u32 };
        self.initiator.submit(self.device, &request).unwrap();
    }

    /// The byte that a block is full of.
    fn value(&mut self, block: u64) -> u8 {
        let (slot, already) = (SLOTS - 1, self.heard.done.len());
        let seg = self.seg(slot);
        self.submit(slot, IoOp::Read(ReadInto::Segment(seg)), block);
        self.run("a read", |rig| rig.heard.done.len() > already);
        let mut bytes = [0; BLOCK as usize];
        self.memory.read(seg.offset, &mut bytes);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "block {block} is torn");
        bytes[0]
    }

    fn turn(&mut self, until: Nanos) {
        let mut completions = Vec::new();
        self.initiator.flush(&mut self.driver);
        let deadline = self.initiator.next_deadline().unwrap_or(until).min(until);
        self.driver.poll(Wait::Until(deadline), &mut completions).unwrap();
        for completion in completions {
            self.initiator.handle_completion(&mut self.driver, completion, &mut self.heard);
        }
        let now = self.driver.now();
        self.initiator.on_time(&mut self.driver, now, &mut self.heard);
    }

    /// Runs until `ready`, at most ten seconds. Gives the time that it took.
    fn run(&mut self, what: &str, ready: impl Fn(&Self) -> bool) -> Nanos {
        let start = self.driver.now();
        while !ready(self) {
            let paths: Vec<_> = self.initiator.path_facts(self.device).collect();
            let limit = start + 10 * SECOND;
            assert!(self.driver.now() < limit, "{what}: {paths:?} {:?}", self.heard.events);
            self.turn(limit);
        }
        self.driver.now() - start
    }

    fn rest(&mut self, ns: Nanos) {
        let until = self.driver.now() + ns;
        while self.driver.now() < until {
            self.turn(until);
        }
    }

    fn succeeded(&self) -> usize {
        let failed: Vec<_> = self.heard.done.iter().filter(|done| done.result.is_err()).collect();
        assert!(failed.is_empty(), "{failed:?} {:?}", self.heard.events);
        self.heard.done.len()
    }

    fn states(&self) -> Vec<PathState> {
        self.initiator.path_facts(self.device).map(|path| path.state).collect()
    }

    fn in_use(&self) -> Vec<usize> {
        let paths = self.initiator.path_facts(self.device).enumerate();
        paths.filter(|(_, path)| path.in_use).map(|(place, _)| place).collect()
    }

    fn counters(&mut self) -> Vec<PathCounters> {
        let mut all = Vec::new();
        self.initiator.take_path_counters(self.device, |_, counters| all.push(counters));
        all
    }

    fn has(&self, fits: impl Fn(&EventKind) -> bool) -> bool {
        self.heard.events.iter().any(|event| fits(&event.kind))
    }
}

fn two() -> Vec<PathSpec> {
    vec![PathSpec::named("left"), PathSpec::named("right")]
}

fn is_failure(of: usize) -> impl Fn(&EventKind) -> bool {
    move |kind| matches!(kind, EventKind::PathFailed { path, .. } if *path == of)
}

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
    let displaced: u64 = rig.counters().iter().map(|counters| counters.displaced).sum();
    assert_eq!(displaced, 16, "every second one, once");
    assert!(rig.has(is_failure(0)) && !rig.has(is_failure(1)));
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
    // The ping that would tell stands behind a send that cannot end; the kernel gives up in its place.
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
fn an_old_write_that_arrives_late_never_lies_on_top_of_a_newer_one() {
    // One session per path; what the silent relay keeps is handed to the array long after its retry.
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
fn what_waits_for_a_path_is_sent_when_one_is_back() {
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
    // And again: with nothing else left, a path that waits for failback is used.
    rig.relays[0].set(Mode::Close);
    rig.run("failover", |rig| rig.in_use() == [1]);
    rig.relays[0].set(Mode::Pass);
    rig.run("return", |rig| rig.states() == [PathState::ActiveOptimized; 2]);
    rig.relays[1].set(Mode::Close);
    rig.run("failover", |rig| rig.in_use() == [0]);
}

#[test]
fn a_path_to_another_disk_is_refused_by_name() {
    let (one, other) = (array("one"), array("other"));
    let mut specs = two();
    specs[0].portal = Some(one.portals()[0].into());
    specs[1].portal = Some(other.portals()[0].into());
    let mut rig =
        Rig::over(&multipath(Policy::RoundRobin), &specs, Vec::new(), one, &SessionOptions::default());
    assert_eq!(*rig.initiator.state(rig.device), DeviceState::Ready);
    let refused = rig.states().iter().position(|state| *state == PathState::Refused).unwrap();
    let named = |kind: &EventKind| {
        let EventKind::PathFailed { path, reason, .. } = kind else { return false };
        *path == refused && reason.contains("another disk") && reason.contains(["left", "right"][refused])
    };
    assert!(rig.has(named), "{:?}", rig.heard.events);
    for slot in 0..8 {
        rig.write(slot, u64::from(slot), 1);
    }
    rig.run("writes", |rig| rig.heard.done.len() == 8);
    rig.succeeded();
    assert_eq!(rig.counters()[refused], PathCounters::default());
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
fn the_link_of_an_interface_takes_its_paths_with_it() {
    // The timeout is so long that nothing else could tell.
    let options = MultipathOptions { path_timeout_s: 30.0, ..multipath(Policy::RoundRobin) };
    let mut specs = two();
    specs[0].interface = Some("san0".into());
    let mut rig = Rig::open(&options, specs);
    rig.relays[0].set(Mode::Silent);
    for slot in 0..8 {
        rig.write(slot, u64::from(slot), 1);
    }
    rig.initiator.flush(&mut rig.driver);
    let now = rig.driver.now();
    for interface in ["san1", "san0"] {
        rig.initiator.link_changed(&mut rig.driver, interface, false, now, &mut rig.heard);
    }
    let took = rig.run("writes", |rig| rig.heard.done.len() == 8);
    assert!(took < SECOND, "{took} ns");
    rig.succeeded();
    let told = |kind: &EventKind| {
        let EventKind::PathFailed { path, reason, displaced } = kind else { return false };
        (*path, *displaced) == (0, 4) && reason.contains("san0")
    };
    assert!(rig.has(told), "{:?}", rig.heard.events);
    rig.relays[0].set(Mode::Pass);
    let now = rig.driver.now();
    rig.initiator.link_changed(&mut rig.driver, "san0", true, now, &mut rig.heard);
    rig.run("the path's return", |rig| rig.in_use() == [0, 1]);
}

#[test]
fn the_arrays_word_on_its_ports_is_followed_while_io_goes_on() {
    let options = multipath(Policy::RoundRobin);
    let mut rig = Rig::two_groups(&options, "active_non_optimized", &SessionOptions::default());
    assert_eq!(*rig.initiator.state(rig.device), DeviceState::Ready);
    assert_eq!(rig.states(), [PathState::ActiveOptimized, PathState::ActiveNonOptimized]);
    assert_eq!(rig.in_use(), [0]);
    let mut written = 0;
    for (first, second, used) in [
        ("active_non_optimized", "active_optimized", vec![1]),
        ("active_optimized", "active_optimized", vec![0, 1]),
        ("standby", "active_non_optimized", vec![1]),
        ("active_non_optimized", "unavailable", vec![0]),
        ("transitioning", "active_optimized", vec![1]),
        ("active_optimized", "active_optimized", vec![0, 1]),
    ] {
        rig.change(&[(1, first), (2, second)]);
        let limit = rig.driver.now() + 5 * SECOND;
        while rig.in_use() != used {
            assert!(rig.driver.now() < limit, "{first} {second}: {:?} {:?}", rig.states(), rig.in_use());
            for slot in 0..8 {
                rig.write(slot, u64::from(slot), 1);
            }
            written += 8;
            rig.run("writes", |rig| rig.heard.done.len() == written);
        }
    }
    rig.succeeded();
    assert!(!rig.has(is_failure(0)) && !rig.has(is_failure(1)), "a state is no failure");
}

#[test]
fn a_path_that_was_never_active_is_checked_before_it_is_used() {
    let options = multipath(Policy::RoundRobin);
    let mut rig = Rig::two_groups(&options, "standby", &SessionOptions::default());
    assert_eq!(rig.states(), [PathState::ActiveOptimized, PathState::Standby]);
    // Nothing is sent over the path on standby, so only its checker can tell.
    rig.change(&[(1, "unavailable"), (2, "active_optimized")]);
    for slot in 0..8 {
        rig.write(slot, u64::from(slot), 3);
    }
    rig.run("writes", |rig| rig.heard.done.len() == 8);
    rig.succeeded();
    assert_eq!(rig.in_use(), [1]);
    assert_eq!(rig.value(5), 3);
}

#[test]
fn io_waits_while_every_port_is_changing() {
    let options = multipath(Policy::RoundRobin);
    let mut rig = Rig::two_groups(&options, "active_optimized", &SessionOptions::default());
    rig.change(&[(1, "transitioning"), (2, "transitioning")]);
    for slot in 0..8 {
        rig.write(slot, 0, slot as u8);
    }
    rig.run("no path", |rig| rig.has(|kind| *kind == EventKind::NoPath));
    rig.rest(SECOND / 5);
    assert_eq!(rig.heard.done.len(), 0);
    rig.change(&[(1, "standby"), (2, "active_optimized")]);
    rig.run("writes", |rig| rig.heard.done.len() == 8);
    rig.succeeded();
}

#[test]
fn without_a_portal_of_the_same_group_a_newer_write_waits_for_the_stated_time() {
    // The silent path's group has no other portal, so no login elsewhere can end its session.
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
