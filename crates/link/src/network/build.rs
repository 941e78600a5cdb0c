//! Building a network, before or while time passes.

use super::{Bond, Network, NicId, SwitchId, TrunkId};
use crate::{
    config::{NicConfig, Schedule, SwitchConfig, WireConfig},
    lane::{Ends, Lane, Node},
    nic::{Interface, InterfaceConfig, InterfaceId, Nic},
    rng::LinkRng,
    switch::Switch,
};
use std::collections::BinaryHeap;

/// A cable, or several that work as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cable {
    /// Each of the links.
    pub wire: WireConfig,
    /// The number of cables, at least one.
    pub links: u32,
    /// Most bytes that a priority may have waiting at a switch for this cable; None: the switch's setting.
    pub queue_bytes: Option<u64>,
}

impl<P: Clone> Network<P> {
    /// An empty network at time 0. The seed determines every loss and every jitter, for each link separately.
    pub fn new(seed: u64) -> Self {
        Self {
            now: 0,
            seed,
            events: BinaryHeap::new(),
            sequence: 0,
            pauses_under_way: 0,
            lanes: Vec::new(),
            bonds: Vec::new(),
            nics: Vec::new(),
            interfaces: Vec::new(),
            switches: Vec::new(),
            trunks: Vec::new(),
        }
    }

    /// Adds a switch.
    pub fn add_switch(&mut self, config: SwitchConfig) -> SwitchId {
        self.switches.push(Switch::new(config));
        SwitchId(self.switches.len() - 1)
    }

    /// Adds a NIC that is cabled to a switch.
    pub fn add_nic(&mut self, switch: SwitchId, config: NicConfig, cable: Cable) -> NicId {
        let index = self.nics.len();
        let schedules = [config.schedule.clone(), self.switches[switch.0].config.schedule.clone()];
        let (bond, towards) = self.add_cable(Node::Nic(index), Node::Switch(switch.0), cable, &schedules);
        self.nics.push(Nic::new(config, bond));
        self.switches[switch.0].bonds.push(towards);
        self.time_passages();
        NicId(index)
    }

    /// Adds an interface to a NIC. The interfaces of one NIC have different VLANs.
    pub fn add_interface(&mut self, nic: NicId, config: InterfaceConfig) -> InterfaceId {
        let index = self.interfaces.len();
        self.interfaces.push(Interface { nic: nic.0, config, waiting: 0 });
        self.nics[nic.0].interfaces.push(index);
        InterfaceId(index)
    }

    /// Joins two switches. Switches must not be joined in a ring: broadcast frames would circulate for ever.
    pub fn add_trunk(&mut self, a: SwitchId, b: SwitchId, cable: Cable) -> TrunkId {
        let schedules = [a, b].map(|switch| self.switches[switch.0].config.schedule.clone());
        let (from_a, from_b) = self.add_cable(Node::Switch(a.0), Node::Switch(b.0), cable, &schedules);
        self.switches[a.0].bonds.push(from_a);
        self.switches[b.0].bonds.push(from_b);
        self.trunks.push((from_a, from_b));
        self.time_passages();
        TrunkId(self.trunks.len() - 1)
    }

    /// Computes how fast a frame can pass each switch and reach the next port.
    pub(super) fn time_passages(&mut self) {
        for index in 0..self.switches.len() {
            let lanes = self.lanes.iter().filter(|lane| lane.from == Node::Switch(index));
            let passages = lanes.map(|lane| match lane.to {
                Node::Nic(nic) => lane.passage_ns() + self.nics[nic].patience(),
                Node::Switch(_) => lane.passage_ns(),
            });
            self.switches[index].passage_ns = passages.min().unwrap_or(0);
        }
    }

    /// Both directions of a cable: the bonds of its ends.
    fn add_cable(&mut self, a: Node, b: Node, cable: Cable, schedules: &[Schedule; 2]) -> (usize, usize) {
        let first = self.bonds.len();
        let bond = || Bond { lanes: Vec::new(), usable: Vec::new(), queue_bytes: cable.queue_bytes };
        self.bonds.extend([bond(), bond()]);
        for _ in 0..cable.links.max(1) {
            let index = self.lanes.len();
            let ends = [
                Ends { from: a, to: b, bond: first, reverse: index + 1 },
                Ends { from: b, to: a, bond: first + 1, reverse: index },
            ];
            for (offset, (ends, schedule)) in ends.into_iter().zip(schedules).enumerate() {
                let rng = LinkRng::new(self.seed ^ (index + offset) as u64);
                self.lanes.push(Lane::new(ends, cable.wire, schedule, rng));
                self.bonds[first + offset].lanes.push(index + offset);
            }
        }
        self.settle_links(first);
        (first, first + 1)
    }
}
