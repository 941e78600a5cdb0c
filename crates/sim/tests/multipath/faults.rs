//! Faults of paths: when, for how long, and never of all of them at once.

use crate::rig::{Rig, SECOND_NS};
use linerate_io::{Nanos, net::NetEvent};
use linerate_iscsi_target::ArrayChange;
use linerate_sim::Wire;
use serde_json::json;
use std::fmt;

/// A healed path counts as working after this time: first it must be noticed, logged in and probed.
const RECOVERY_NS: Nanos = 8 * SECOND_NS;

/// The kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A pulled cable.
    Silence,
    /// Only data from the array arrives.
    OneWayToServer,
    /// Only data to the array arrives.
    OneWayToClient,
    /// Every connection is reset, once.
    Reset,
    /// The array's host loses the address.
    AddressGone,
    /// All ports of one group fail with everything that is in progress in them.
    ControllerKilled,
    /// The array accepts no I/O through one group.
    Alua(&'static str),
}

const KINDS: [Kind; 8] = [
    Kind::Silence,
    Kind::OneWayToServer,
    Kind::OneWayToClient,
    Kind::Reset,
    Kind::AddressGone,
    Kind::ControllerKilled,
    Kind::Alua("standby"),
    Kind::Alua("unavailable"),
];

/// One fault that lasts.
#[derive(Clone, Debug)]
struct Fault {
    kind: Kind,
    paths: Vec<usize>,
    began: Nanos,
    ends: Nanos,
}

/// A schedule of faults, made as it goes on.
#[derive(Default)]
pub(crate) struct Faults {
    going_on: Vec<Fault>,
    next: Nanos,
    /// By path, since when it is whole.
    whole_since: Vec<Nanos>,
}

impl Faults {
    pub(crate) fn new(paths: usize, now: Nanos) -> Self {
        Faults { going_on: Vec::new(), next: now + RECOVERY_NS, whole_since: vec![now; paths] }
    }

    /// When the next fault is due.
    pub(crate) fn next(&self) -> Nanos {
        self.next
    }

    /// The time at which the fault of a path began.
    pub(crate) fn since(&self, path: usize) -> Option<Nanos> {
        self.going_on.iter().find(|fault| fault.paths.contains(&path)).map(|fault| fault.began)
    }

    /// Ends faults that are over and begins those that are due. Returns how many began.
    pub(crate) fn advance(&mut self, rig: &mut Rig) -> u64 {
        let now = rig.network.now();
        for fault in self.going_on.extract_if(.., |fault| fault.ends <= now).collect::<Vec<_>>() {
            self.heal(rig, &fault);
        }
        if now < self.next {
            return 0;
        }
        self.next = now + rig.rng.range(SECOND_NS / 10, 2 * SECOND_NS);
        let kind = KINDS[rig.rng.range(0, KINDS.len() as u64 - 1) as usize];
        let hit = rig.rng.range(0, rig.places.len() as u64 - 1) as usize;
        let of_group = |path: &usize| rig.places[*path].group == rig.places[hit].group;
        let paths: Vec<usize> = match kind {
            Kind::ControllerKilled | Kind::Alua(_) => (0..rig.places.len()).filter(of_group).collect(),
            _ => vec![hit],
        };
        let whole = |path: usize| self.since(path).is_none();
        let lives = |path: usize| whole(path) && self.whole_since[path] + RECOVERY_NS <= now;
        let spared = (0..rig.places.len()).any(|path| !paths.contains(&path) && lives(path));
        if !spared || !paths.iter().all(|path| whole(*path)) {
            return 0;
        }
        let ends = now + rig.rng.range(SECOND_NS / 10, 7 * SECOND_NS);
        let fault = Fault { kind, paths, began: now, ends };
        begin(rig, &fault);
        self.going_on.push(fault);
        1
    }

    pub(crate) fn heal_all(&mut self, rig: &mut Rig) {
        for fault in std::mem::take(&mut self.going_on) {
            self.heal(rig, &fault);
        }
    }

    fn heal(&mut self, rig: &mut Rig, fault: &Fault) {
        let now = rig.network.now();
        for path in &fault.paths {
            let address = rig.places[*path].address;
            self.whole_since[*path] = now;
            match fault.kind {
                Kind::Alua(_) | Kind::Reset => {}
                Kind::AddressGone => {
                    rig.worker.network(&NetEvent::AddressAdded { interface: "p".into(), address });
                    rig.network.set_wire(address, Wire::WHOLE);
                }
                _ => rig.network.set_wire(address, Wire::WHOLE),
            }
        }
        if let Kind::Alua(_) = fault.kind {
            alua(rig, fault, "active_optimized");
        }
    }
}

fn begin(rig: &mut Rig, fault: &Fault) {
    for path in &fault.paths {
        let address = rig.places[*path].address;
        let wire = match fault.kind {
            Kind::OneWayToServer => Wire { to_server: false, to_client: true },
            Kind::OneWayToClient => Wire { to_server: true, to_client: false },
            Kind::Silence | Kind::AddressGone | Kind::ControllerKilled => Wire::SILENT,
            Kind::Reset | Kind::Alua(_) => Wire::WHOLE,
        };
        rig.network.set_wire(address, wire);
        match fault.kind {
            Kind::Reset => rig.network.reset_wire(address),
            Kind::ControllerKilled => rig.network.kill_server(address),
            Kind::AddressGone => {
                rig.worker.network(&NetEvent::AddressAdded { interface: "p".into(), address });
                rig.worker.network(&NetEvent::AddressRemoved { interface: "p".into(), address });
            }
            _ => {}
        }
    }
    if let Kind::Alua(state) = fault.kind {
        alua(rig, fault, state);
    }
}

fn alua(rig: &mut Rig, fault: &Fault, state: &str) {
    let group = rig.places[fault.paths[0]].group;
    let change = json!({ "alua": [{ "group": group, "state": state }] });
    let change: ArrayChange = serde_json::from_value(change).unwrap();
    rig.worker.change(&change).unwrap();
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.going_on)
    }
}
