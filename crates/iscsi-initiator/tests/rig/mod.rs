//! A device over several paths, driven step by step: to our own array through relays, or to a fake target.

#![allow(dead_code, reason = "every test file uses its own part")]

pub(crate) mod relay;

use linerate_io::{Driver, EpollDriver, Nanos, Region, RegionId, Seg, Wait};
use linerate_iscsi_initiator::{
    Credentials, DeviceId, DeviceState, Event, EventKind, Initiator, IoDone, IoOp, IoRequest, IoSink,
    LunAddress, MultipathOptions, PathCounters, PathSpec, PathState, Policy, PortalAddress, ReadInto,
    SessionOptions,
};
use linerate_iscsi_target::{Array, ArrayConfig};
use relay::Relay;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) const IQN: &str = "iqn.2026-11.lab.linerate:paths";
pub(crate) const SECOND: Nanos = 1_000_000_000;
pub(crate) const BLOCK: u64 = 4096;
pub(crate) const SLOTS: u32 = 64;

pub(crate) fn array(name: &str) -> Array {
    array_with(name, &json!("127.0.0.1:0"), "active_optimized")
}

/// An array; the test sets its second portal and the state of that portal's group.
pub(crate) fn array_with(name: &str, second: &serde_json::Value, state: &str) -> Array {
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

pub(crate) fn multipath(policy: Policy) -> MultipathOptions {
    MultipathOptions {
        policy,
        path_timeout_s: 0.5,
        checker_interval_s: 0.2,
        no_path_queue_s: Some(20.0),
        ..MultipathOptions::default()
    }
}

#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) done: Vec<IoDone>,
    pub(crate) events: Vec<Event>,
}

impl IoSink for Heard {
    fn done(&mut self, done: IoDone) {
        self.done.push(done);
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// One turn of a loop without other work, which waits until `until` at most.
pub(crate) fn turn(initiator: &mut Initiator, driver: &mut EpollDriver, heard: &mut Heard, until: Nanos) {
    let mut completions = Vec::new();
    initiator.flush(driver);
    let deadline = initiator.next_deadline().unwrap_or(until).min(until);
    driver.poll(Wait::Until(deadline), &mut completions).unwrap();
    for completion in completions {
        initiator.handle_completion(driver, completion, heard);
    }
    let now = driver.now();
    initiator.on_time(driver, now, heard);
}

/// A device over relays, driven step by step. Slot `n` has its own memory of one block.
pub(crate) struct Rig {
    pub(crate) driver: EpollDriver,
    pub(crate) initiator: Initiator,
    pub(crate) device: DeviceId,
    pub(crate) memory: Arc<Region>,
    pub(crate) region: RegionId,
    pub(crate) heard: Heard,
    pub(crate) relays: Vec<Relay>,
    pub(crate) array: Option<Array>,
}

impl Rig {
    /// One relay per path, to the array's portals in turn.
    pub(crate) fn open(options: &MultipathOptions, specs: Vec<PathSpec>) -> Self {
        let rig = Self::start(options, specs, |_| {});
        assert_eq!(*rig.initiator.state(rig.device), DeviceState::Ready);
        rig
    }

    pub(crate) fn start(
        options: &MultipathOptions,
        mut specs: Vec<PathSpec>,
        before: impl FnOnce(&[Relay]),
    ) -> Self {
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

    /// Two paths to an array whose second portal has its own group in this state.
    pub(crate) fn two_groups(options: &MultipathOptions, state: &str, session: &SessionOptions) -> Self {
        let array = array_with("one", &json!({ "address": "127.0.0.1:0", "group": 2 }), state);
        let relays: Vec<Relay> = array.portals().iter().map(|portal| Relay::to(*portal)).collect();
        let mut specs = two();
        for (spec, relay) in specs.iter_mut().zip(&relays) {
            spec.portal = Some(PortalAddress::from(relay.addr));
        }
        Self::over(options, &specs, relays, array, session)
    }

    pub(crate) fn change(&self, states: &[(u16, &str)]) {
        let entry = |(group, state): &(u16, &str)| json!({ "group": group, "state": state });
        let entries: Vec<_> = states.iter().map(entry).collect();
        self.array
            .as_ref()
            .unwrap()
            .change(&serde_json::from_value(json!({ "alua": entries })).unwrap())
            .unwrap();
    }

    pub(crate) fn over(
        options: &MultipathOptions,
        specs: &[PathSpec],
        relays: Vec<Relay>,
        array: Array,
        session: &SessionOptions,
    ) -> Self {
        let rig = Self::at_with(options, specs, IQN, array.portals()[0], session);
        Self { relays, array: Some(array), ..rig }
    }

    pub(crate) fn at(
        options: &MultipathOptions,
        specs: &[PathSpec],
        target: &str,
        portal: SocketAddr,
    ) -> Self {
        Self::at_with(options, specs, target, portal, &SessionOptions::default())
    }

    pub(crate) fn at_with(
        options: &MultipathOptions,
        specs: &[PathSpec],
        target: &str,
        portal: SocketAddr,
        session: &SessionOptions,
    ) -> Self {
        let mut driver = EpollDriver::new().unwrap();
        let mut initiator = Initiator::new();
        let memory = Region::anonymous(u64::from(SLOTS) * BLOCK).unwrap();
        let region = initiator.attach(&mut driver, &memory);
        let address = LunAddress { portal: portal.into(), target: target.into(), lun: 0 };
        let credentials = Credentials::default();
        let device =
            initiator.open_paths(&mut driver, &address, specs, options, session, &credentials).unwrap();
        let mut heard = Heard::default();
        initiator.wait_ready(&mut driver, &mut heard).unwrap();
        Self { driver, initiator, device, memory, region, heard, relays: Vec::new(), array: None }
    }

    pub(crate) fn seg(&self, slot: u32) -> Seg {
        Seg { region: self.region, offset: u64::from(slot) * BLOCK, len: BLOCK as u32 }
    }

    /// Writes a block whose bytes are all `value`.
    pub(crate) fn write(&mut self, slot: u32, block: u64, value: u8) {
        let seg = self.seg(slot);
        self.memory.fill(seg.offset, BLOCK, &[value]);
        self.submit(slot, IoOp::Write(seg), block);
    }

    pub(crate) fn submit(&mut self, slot: u32, op: IoOp, block: u64) {
        let request = IoRequest { slot, op, offset_bytes: block * BLOCK, len_bytes: BLOCK as u32 };
        self.initiator.submit(self.device, &request).unwrap();
    }

    /// The byte that a block is full of.
    pub(crate) fn value(&mut self, block: u64) -> u8 {
        let (slot, already) = (SLOTS - 1, self.heard.done.len());
        let seg = self.seg(slot);
        self.submit(slot, IoOp::Read(ReadInto::Segment(seg)), block);
        self.run("a read", |rig| rig.heard.done.len() > already);
        let mut bytes = [0; BLOCK as usize];
        self.memory.read(seg.offset, &mut bytes);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "block {block} is torn");
        bytes[0]
    }

    pub(crate) fn turn(&mut self, until: Nanos) {
        turn(&mut self.initiator, &mut self.driver, &mut self.heard, until);
    }

    /// Runs until `ready`, at most ten seconds. Returns the time that it took.
    pub(crate) fn run(&mut self, what: &str, ready: impl Fn(&Self) -> bool) -> Nanos {
        let start = self.driver.now();
        while !ready(self) {
            let paths: Vec<_> = self.initiator.path_facts(self.device).collect();
            let limit = start + 10 * SECOND;
            assert!(self.driver.now() < limit, "{what}: {paths:?} {:?}", self.heard.events);
            self.turn(limit);
        }
        self.driver.now() - start
    }

    pub(crate) fn rest(&mut self, ns: Nanos) {
        let until = self.driver.now() + ns;
        while self.driver.now() < until {
            self.turn(until);
        }
    }

    pub(crate) fn succeeded(&self) -> usize {
        let failed: Vec<_> = self.heard.done.iter().filter(|done| done.result.is_err()).collect();
        assert!(failed.is_empty(), "{failed:?} {:?}", self.heard.events);
        self.heard.done.len()
    }

    pub(crate) fn states(&self) -> Vec<PathState> {
        self.initiator.path_facts(self.device).map(|path| path.state).collect()
    }

    pub(crate) fn in_use(&self) -> Vec<usize> {
        let paths = self.initiator.path_facts(self.device).enumerate();
        paths.filter(|(_, path)| path.in_use).map(|(place, _)| place).collect()
    }

    pub(crate) fn counters(&mut self) -> Vec<PathCounters> {
        let mut all = Vec::new();
        self.initiator.take_path_counters(self.device, |_, counters| all.push(counters));
        all
    }

    pub(crate) fn has(&self, fits: impl Fn(&EventKind) -> bool) -> bool {
        self.heard.events.iter().any(|event| fits(&event.kind))
    }
}

pub(crate) fn two() -> Vec<PathSpec> {
    vec![PathSpec::named("left"), PathSpec::named("right")]
}

pub(crate) fn is_failure(of: usize) -> impl Fn(&EventKind) -> bool {
    move |kind| matches!(kind, EventKind::PathFailed { path, .. } if *path == of)
}
