//! Several connections in one session (MC/S), with our own array over loopback.

use crate::rig::relay::{Mode, Relay};
use crate::rig::{Heard, IQN, Rig, SECOND, multipath, two};
use linerate_io::{Driver, EpollDriver, Nanos, Region, RegionId, Seg};
use linerate_iscsi_initiator::{
    ConnectionPolicy, Credentials, DeviceId, DeviceState, EventKind, Initiator, IoOp, IoRequest, LunAddress,
    MultipathOptions, PathSpec, PortalAddress, ReadInto, SessionOptions, Sharing,
};
use linerate_iscsi_target::{Array, ArrayConfig};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;

const BLOCK: u64 = 4096;
const SLOTS: u32 = 16;

fn array(limits: &serde_json::Value) -> Array {
    let volume = json!({ "lun": 0, "name": "v", "kind": "memory", "size_bytes": 16 << 20 });
    let config: ArrayConfig = serde_json::from_value(json!({
        "portals": ["127.0.0.1:0"], "workers": 2, "limits": limits,
        "targets": [{ "name": IQN, "volumes": [volume] }],
    }))
    .unwrap();
    Array::start(config).unwrap()
}

/// A device on one session, driven step by step.
struct One {
    driver: EpollDriver,
    initiator: Initiator,
    device: DeviceId,
    memory: Arc<Region>,
    region: RegionId,
    heard: Heard,
}

impl One {
    fn open(portal: SocketAddr, options: &SessionOptions) -> Self {
        let mut driver = EpollDriver::new().unwrap();
        let mut initiator = Initiator::new();
        let memory = Region::anonymous(u64::from(SLOTS) * BLOCK).unwrap();
        let region = initiator.attach(&mut driver, &memory);
        let address = LunAddress { portal: portal.into(), target: IQN.into(), lun: 0 };
        let credentials = Credentials::default();
        let device = initiator.open(&mut driver, &address, options, &credentials, Sharing::Own).unwrap();
        let mut heard = Heard::default();
        initiator.wait_ready(&mut driver, &mut heard).unwrap();
        assert_eq!(*initiator.state(device), DeviceState::Ready, "{:?}", heard.events);
        Self { driver, initiator, device, memory, region, heard }
    }

    fn submit(&mut self, slot: u32, block: u64, write: Option<u8>) {
        let seg = Seg { region: self.region, offset: u64::from(slot) * BLOCK, len: BLOCK as u32 };
        let op = match write {
            Some(value) => {
                self.memory.fill(seg.offset, BLOCK, &[value]);
                IoOp::Write(seg)
            }
            None => IoOp::Read(ReadInto::Segment(seg)),
        };
        let request = IoRequest { slot, op, offset_bytes: block * BLOCK, len_bytes: BLOCK as u32 };
        self.initiator.submit(self.device, &request).unwrap();
    }

    fn turn(&mut self, until: Nanos) {
        crate::rig::turn(&mut self.initiator, &mut self.driver, &mut self.heard, until);
    }

    /// Every slot writes a block of its own and reads it back, `rounds` times; `after` is called after each I/O. A read
    /// must show what its slot has just written.
    fn load(&mut self, rounds: u32, mut after: impl FnMut(u32)) {
        let limit = self.driver.now() + 60 * SECOND;
        let (mut step, mut ended) = ([0_u32; SLOTS as usize], 0);
        let value = |slot: u32, step: u32| (slot * 31 + step / 2) as u8;
        let block = |slot: u32, step: u32| u64::from(slot * 64 + step / 2 % 64);
        for slot in 0..SLOTS {
            self.submit(slot, block(slot, 0), Some(value(slot, 0)));
        }
        while ended < SLOTS {
            assert!(self.driver.now() < limit, "I/O ends: {:?}", self.heard.events);
            self.turn(limit);
            for done in std::mem::take(&mut self.heard.done) {
                assert_eq!(done.result, Ok(()), "{:?}", self.heard.events);
                let (slot, at) = (done.slot, step[done.slot as usize]);
                if at % 2 == 1 {
                    let mut bytes = [0; BLOCK as usize];
                    self.memory.read(u64::from(slot) * BLOCK, &mut bytes);
                    assert!(bytes == [value(slot, at); BLOCK as usize], "block {} is wrong", block(slot, at));
                }
                step[slot as usize] += 1;
                after(at);
                let at = at + 1;
                if at == 2 * rounds {
                    ended += 1;
                } else {
                    self.submit(slot, block(slot, at), (at % 2 == 0).then(|| value(slot, at)));
                }
            }
        }
    }

    fn connections(&self) -> usize {
        let session = self.initiator.session_of(self.device);
        self.initiator.session_facts(session).unwrap().connections.len()
    }

    fn fewer(&self) -> Option<(u16, u16, &str)> {
        self.heard.events.iter().find_map(|event| match &event.kind {
            EventKind::FewerConnections { wanted, count, reason } => Some((*wanted, *count, reason.as_str())),
            _ => None,
        })
    }
}

fn options(connections: u16) -> SessionOptions {
    SessionOptions { connections, login_timeout_s: 2.0, ..SessionOptions::default() }
}

#[test]
fn a_session_opens_the_connections_that_were_agreed_on_and_uses_them_all() {
    for policy in [ConnectionPolicy::RoundRobin, ConnectionPolicy::LeastQueueDepth] {
        for (wanted, agreed) in [(1, 1), (3, 3), (8, 4)] {
            let array = array(&json!({ "connections_per_session": 4 }));
            let options = SessionOptions { connection_policy: policy, ..options(wanted) };
            let mut one = One::open(array.portals()[0], &options);
            assert_eq!(one.connections(), agreed);
            assert_eq!(one.fewer().is_some(), usize::from(wanted) > agreed);
            one.load(40, |_| ());
            let (mut counters, session) = (Vec::new(), one.initiator.session_of(one.device));
            one.initiator.take_connection_counters(session, |cid, count| counters.push((cid, count)));
            assert_eq!(counters.len(), agreed);
            let bytes = 40 * u64::from(SLOTS) * BLOCK;
            assert_eq!(counters.iter().map(|(_, count)| count.write_bytes).sum::<u64>(), bytes);
            assert_eq!(counters.iter().map(|(_, count)| count.read_bytes).sum::<u64>(), bytes);
            let fair = 2 * bytes / agreed as u64;
            for (cid, count) in counters {
                let carried = count.read_bytes + count.write_bytes;
                assert!(carried > fair / 2, "connection {cid} has carried {carried} of {fair} bytes");
            }
            let report = array.report();
            assert_eq!(report.by_session.len(), 1);
            assert_eq!(report.by_session[0].connections.len(), agreed);
            one.initiator.close(&mut one.driver, SECOND, &mut one.heard).unwrap();
        }
    }
}

#[test]
fn a_target_that_allows_one_connection_gets_one_and_an_event_says_so() {
    let array = array(&json!({ "connections_per_session": 1 }));
    let mut one = One::open(array.portals()[0], &options(4));
    let (wanted, count, reason) = one.fewer().unwrap();
    assert_eq!((wanted, count), (4, 1));
    assert!(reason.contains("MaxConnections"), "{reason}");
    one.load(5, |_| ());
    assert_eq!(array.stats().connections, 1);
}

#[test]
fn connections_go_to_the_portals_that_were_named_and_one_that_is_dead_is_done_without() {
    let array = array(&json!({}));
    let relay = Relay::to(array.portals()[0]);
    let dead = Relay::to(array.portals()[0]);
    dead.set(Mode::Close);
    let silent = Relay::to(array.portals()[0]);
    silent.set(Mode::Silent);
    let portals = |relays: &[&Relay]| relays.iter().map(|relay| PortalAddress::from(relay.addr)).collect();
    let through = SessionOptions { connection_portals: portals(&[&relay, &dead]), ..options(3) };
    let mut one = One::open(array.portals()[0], &through);
    let (wanted, count, _) = one.fewer().unwrap();
    assert_eq!((wanted, count, one.connections()), (3, 2, 2));
    let session = one.initiator.session_of(one.device);
    let facts = one.initiator.session_facts(session).unwrap();
    assert_eq!(facts.connections[1].peer_addr, relay.addr);
    one.load(20, |_| ());
    let through = SessionOptions { connection_portals: portals(&[&silent, &relay]), ..options(3) };
    let mut one = One::open(array.portals()[0], &through);
    let (_, count, reason) = one.fewer().unwrap();
    assert_eq!(count, 2);
    assert!(reason.contains("login_timeout_s"), "{reason}");
    one.load(20, |_| ());
}

/// Error recovery level 0: the loss of any connection is the loss of the session, which is restored with all
/// connections.
#[test]
fn a_connection_cut_during_load_costs_no_write_and_no_error() {
    for connection_policy in [ConnectionPolicy::RoundRobin, ConnectionPolicy::LeastQueueDepth] {
        let array = array(&json!({}));
        let relay = Relay::to(array.portals()[0]);
        let through = SessionOptions {
            connection_portals: vec![PortalAddress::from(relay.addr)],
            connection_policy,
            ..options(3)
        };
        let mut one = One::open(array.portals()[0], &through);
        let mut count = 0;
        one.load(150, |_| {
            count += 1;
            if count % 1200 == 600 {
                relay.set(Mode::Close);
                std::thread::sleep(std::time::Duration::from_millis(30));
                relay.set(Mode::Pass);
            }
        });
        let has =
            |fits: fn(&EventKind) -> bool| one.heard.events.iter().filter(|event| fits(&event.kind)).count();
        let lost = has(|kind| matches!(kind, EventKind::SessionLost(_)));
        assert!(lost >= 3, "{:?}", one.heard.events);
        assert_eq!(has(|kind| matches!(kind, EventKind::SessionRestored { .. })), lost);
        assert_eq!(array.stats().sessions, 1);
    }
}

#[test]
fn a_connection_that_falls_silent_is_found_by_its_own_ping() {
    let array = array(&json!({}));
    let relay = Relay::to(array.portals()[0]);
    let through = SessionOptions {
        connection_portals: vec![PortalAddress::from(relay.addr)],
        ping_interval_s: 0.1,
        ping_timeout_s: 0.3,
        ..options(2)
    };
    let mut one = One::open(array.portals()[0], &through);
    relay.set(Mode::Silent);
    let limit = one.driver.now() + 10 * SECOND;
    while !one.heard.events.iter().any(|event| matches!(&event.kind, EventKind::SessionLost(_))) {
        assert!(one.driver.now() < limit);
        one.turn(limit);
    }
    one.load(5, |_| ());
    assert_eq!(one.connections(), 1, "the other one is done without");
}

#[test]
fn paths_may_have_several_connections_each() {
    let specs: Vec<PathSpec> = two().into_iter().map(|spec| PathSpec { connections: 2, ..spec }).collect();
    let mut rig =
        Rig::open(&MultipathOptions { ..multipath(linerate_iscsi_initiator::Policy::RoundRobin) }, specs);
    for block in 0..32 {
        rig.write(block as u32, block, block as u8 + 1);
    }
    rig.run("writes", |rig| rig.heard.done.len() == 32);
    assert_eq!(rig.succeeded(), 32);
    let report = rig.array.as_ref().unwrap().report();
    assert_eq!(report.by_session.iter().map(|session| session.connections.len()).collect::<Vec<_>>(), [2, 2]);
    rig.relays[0].set(Mode::Close);
    for block in 0..32 {
        rig.write(block as u32, block, 99);
    }
    rig.run("writes go on", |rig| rig.heard.done.len() == 64);
    assert_eq!(rig.succeeded(), 64);
    assert_eq!(rig.value(7), 99);
}
