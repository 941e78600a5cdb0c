//! Changes of a running network. Frames in queues and on the wire stay there.

use super::{Network, NicId, Node, SwitchId, TrunkId};
use crate::{
    config::{LinkConfig, NicConfig, PRIORITIES, SwitchConfig, WireConfig},
    lane::Lane,
    nic::InterfaceId,
    schedule::Scheduler,
};

impl<P: Clone> Network<P> {
    /// Changes the cable of a NIC.
    pub fn set_nic_wire(&mut self, nic: NicId, wire: WireConfig, queue_bytes: Option<u64>) {
        let bond = self.nics[nic.0].bond;
        self.set_wire(bond, wire, queue_bytes);
    }

    /// Changes the cable of a trunk.
    pub fn set_trunk_wire(&mut self, trunk: TrunkId, wire: WireConfig, queue_bytes: Option<u64>) {
        let (bond, _) = self.trunks[trunk.0];
        self.set_wire(bond, wire, queue_bytes);
    }

    /// Changes one link of a NIC's cable. There must be such a link.
    pub fn set_nic_link(&mut self, nic: NicId, link: usize, config: LinkConfig) {
        let bond = self.nics[nic.0].bond;
        self.set_link(bond, link, config);
    }

    /// Changes one link of a trunk. There must be such a link.
    pub fn set_trunk_link(&mut self, trunk: TrunkId, link: usize, config: LinkConfig) {
        let (bond, _) = self.trunks[trunk.0];
        self.set_link(bond, link, config);
    }

    /// Changes a NIC. An interrupt that is due remains due.
    pub fn set_nic(&mut self, nic: NicId, config: NicConfig) {
        let bond = self.nics[nic.0].bond;
        let released = self.nics[nic.0].config.pause_rx && !config.pause_rx;
        for position in 0..self.bonds[bond].lanes.len() {
            let lane = self.bonds[bond].lanes[position];
            if self.nics[nic.0].config.schedule != config.schedule {
                self.lanes[lane].scheduler = Scheduler::new(&config.schedule);
            }
            if released {
                self.lanes[lane].pause(u8::MAX, false, self.now);
                self.start(lane);
            }
        }
        self.nics[nic.0].config = config;
        self.time_passages();
        self.ask_for_ring(nic.0);
    }

    /// Changes the MTU of an interface.
    pub fn set_mtu(&mut self, interface: InterfaceId, mtu: u32) {
        self.interfaces[interface.0].config.mtu = mtu;
    }

    /// Changes a switch. Pauses that it requested under other rules are lifted.
    pub fn set_switch(&mut self, switch: SwitchId, config: SwitchConfig) {
        let before = std::mem::replace(&mut self.switches[switch.0].config, config);
        let after = self.switches[switch.0].config.clone();
        if before.up != after.up {
            self.switches[switch.0].forget();
            self.switches[switch.0].bonds.clone().into_iter().for_each(|bond| self.settle_links(bond));
        }
        let rules = |config: &SwitchConfig| (config.flow_control, config.lossless_priorities.clone());
        let new_rules = rules(&before) != rules(&after);
        for index in 0..self.lanes.len() {
            if self.lanes[index].from == Node::Switch(switch.0) && before.schedule != after.schedule {
                self.lanes[index].scheduler = Scheduler::new(&after.schedule);
            }
            if self.lanes[index].to != Node::Switch(switch.0) {
                continue;
            }
            if new_rules && self.lanes[index].asked != 0 {
                self.lanes[index].asked = 0;
                self.ask(index, u8::MAX, false);
            }
            (0..PRIORITIES).for_each(|class| self.let_go(index, class));
        }
    }

    fn set_wire(&mut self, bond: usize, wire: WireConfig, queue_bytes: Option<u64>) {
        for position in 0..self.bonds[bond].lanes.len() {
            let lane = self.bonds[bond].lanes[position];
            for index in [lane, self.lanes[lane].reverse] {
                let other = self.lanes[index].bond;
                self.bonds[other].queue_bytes = queue_bytes;
                self.lanes[index].wire = wire;
            }
        }
        self.settle_links(bond);
        self.time_passages();
    }

    fn set_link(&mut self, bond: usize, link: usize, config: LinkConfig) {
        let lane = self.bonds[bond].lanes[link];
        for (index, fault) in [(lane, config.outbound), (self.lanes[lane].reverse, config.inbound)] {
            self.lanes[index].plugged = config.up;
            self.lanes[index].fault = fault;
        }
        self.settle_links(bond);
    }

    /// Computes which links of a cable are up. A link that goes down forgets all pauses, so that both of its ends start
    /// without pauses when it is back.
    pub(super) fn settle_links(&mut self, bond: usize) {
        for position in 0..self.bonds[bond].lanes.len() {
            let own = self.bonds[bond].lanes[position];
            for index in [own, self.lanes[own].reverse] {
                let Lane { from, to, wire, plugged, up, .. } = self.lanes[index];
                let is_up = wire.up && plugged && self.has_power(from) && self.has_power(to);
                self.lanes[index].up = is_up;
                if up && !is_up {
                    self.lanes[index].unplug(self.now);
                    if let Node::Nic(nic) = to {
                        self.nics[nic].asked = false;
                    }
                    self.start(index);
                }
            }
        }
        let other = self.lanes[self.lanes[self.bonds[bond].lanes[0]].reverse].bond;
        for bond in [bond, other] {
            let up = self.bonds[bond].lanes.iter().copied().filter(|&lane| self.lanes[lane].up);
            self.bonds[bond].usable = up.collect();
        }
    }

    fn has_power(&self, node: Node) -> bool {
        match node {
            Node::Nic(_) => true,
            Node::Switch(switch) => self.switches[switch].config.up,
        }
    }
}
