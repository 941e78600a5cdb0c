//! Changing what is there while time passes. What is in queues or on the wire stays there.

use super::{Network, NicId, Node, SwitchId, TrunkId};
use crate::{
    config::{NicConfig, PRIORITIES, SwitchConfig, WireConfig},
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

    /// Changes a NIC. An interrupt that is due stays due.
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

    /// Changes a switch. Pauses that it asked for under other rules are lifted.
    pub fn set_switch(&mut self, switch: SwitchId, config: SwitchConfig) {
        let before = std::mem::replace(&mut self.switches[switch.0].config, config);
        let after = self.switches[switch.0].config.clone();
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

    /// A cable that is pulled out forgets all pauses; both ends begin afresh when it is plugged in again.
    fn set_wire(&mut self, bond: usize, wire: WireConfig, queue_bytes: Option<u64>) {
        for position in 0..self.bonds[bond].lanes.len() {
            let lane = self.bonds[bond].lanes[position];
            for index in [lane, self.lanes[lane].reverse] {
                let other = self.lanes[index].bond;
                self.bonds[other].queue_bytes = queue_bytes;
                let now = self.now;
                let lane = &mut self.lanes[index];
                lane.wire = wire;
                if !wire.up {
                    lane.unplug(now);
                    if let Node::Nic(nic) = lane.to {
                        self.nics[nic].asked = false;
                    }
                    self.start(index);
                }
            }
        }
        self.time_passages();
    }
}
