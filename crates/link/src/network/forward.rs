//! Forwarding of a frame in a switch: learn, select the port, reserve space, and request a pause before space runs out.

use super::{Network, Node, Waiting};
use crate::{
    frame::{HEADER_BYTES, Tagged},
    lane::Account,
};

impl<P: Clone> Network<P> {
    /// A frame has arrived over a lane.
    pub(super) fn forward(&mut self, index: usize, ingress: usize, tagged: Tagged<P>) {
        let came_by = self.lanes[self.lanes[ingress].reverse].bond;
        let switch = &mut self.switches[index];
        if tagged.frame.length > switch.config.mtu + HEADER_BYTES {
            self.lanes[ingress].stats.drops.mtu += 1;
            return;
        }
        switch.learn(tagged.frame.source, tagged.vlan, came_by);
        if let Some(bond) = switch.find(tagged.frame.destination, tagged.vlan) {
            if bond != came_by {
                self.enqueue(index, bond, ingress, tagged);
            }
            return;
        }
        switch.stats.flooded += 1;
        for position in 0..self.switches[index].bonds.len() {
            let bond = self.switches[index].bonds[position];
            if bond != came_by && self.bonds[bond].is_up() && self.carries(bond, tagged.vlan) {
                self.enqueue(index, bond, ingress, tagged.clone());
            }
        }
    }

    /// Whether frames of a VLAN may leave over a bond: trunks carry all VLANs, NICs those of their interfaces.
    fn carries(&self, bond: usize, vlan: u16) -> bool {
        match self.lanes[self.bonds[bond].lanes[0]].to {
            Node::Switch(_) => true,
            Node::Nic(nic) => {
                let mut members = self.nics[nic].interfaces.iter();
                members.any(|&interface| self.interfaces[interface].config.vlan == vlan)
            }
        }
    }

    fn enqueue(&mut self, index: usize, bond: usize, ingress: usize, mut tagged: Tagged<P>) {
        let egress = self.link_for(bond, tagged.frame.flow);
        let length = u64::from(tagged.frame.length);
        let switch = &mut self.switches[index];
        let lane = &mut self.lanes[egress];
        let waiting_bytes = lane.queued_bytes(tagged.priority);
        let queue = &mut lane.stats.queues[usize::from(tagged.priority)];
        let account = if let Some(class) = switch.lossless_class(tagged.priority) {
            if !self.hold(index, ingress, class, length) {
                self.lanes[egress].stats.queues[usize::from(tagged.priority)].drops += 1;
                self.lanes[egress].stats.drops.headroom += 1;
                return;
            }
            Account::Ingress { lane: ingress, class }
        } else {
            let limit = self.bonds[bond].queue_bytes.unwrap_or(switch.config.queue_bytes);
            if waiting_bytes + length > limit {
                queue.drops += 1;
                lane.stats.drops.queue += 1;
                return;
            }
            if !switch.take(length) {
                queue.drops += 1;
                lane.stats.drops.buffer += 1;
                return;
            }
            Account::Pool
        };
        let threshold = self.switches[index].config.ecn_threshold_bytes;
        let lane = &mut self.lanes[egress];
        if threshold > 0 && waiting_bytes >= threshold && tagged.frame.ecn_capable {
            tagged.frame.marked = true;
            lane.stats.queues[usize::from(tagged.priority)].marked += 1;
        }
        lane.push(Waiting { tagged, account });
        self.start(egress);
    }

    /// Adds bytes of a lossless class to the reserve of their ingress lane; false if even its headroom is full.
    fn hold(&mut self, index: usize, ingress: usize, class: usize, length: u64) -> bool {
        let switch = &self.switches[index];
        let (config, priorities) = (&switch.config, switch.priorities_of(class));
        let lane = &mut self.lanes[ingress];
        let headroom = config.headroom_bytes.unwrap_or_else(|| lane.headroom_bytes(config.mtu));
        let held = lane.held_bytes[class] + length;
        if held > config.xoff_bytes + headroom {
            return false;
        }
        lane.held_bytes[class] = held;
        if held > config.xoff_bytes && lane.asked >> class & 1 == 0 {
            lane.asked |= 1 << class;
            lane.pauses_asked += 1;
            self.ask(ingress, priorities, true);
        }
        true
    }

    /// A frame has left its queue: its space is free again.
    pub(super) fn release(&mut self, account: Account, length: u64, owner: Node) {
        match account {
            Account::Ring(interface) => self.interfaces[interface].waiting -= 1,
            Account::Pool => {
                if let Node::Switch(switch) = owner {
                    self.switches[switch].give_back(length);
                }
            }
            Account::Ingress { lane, class } => {
                self.lanes[lane].held_bytes[class] -= length;
                self.let_go(lane, class);
            }
        }
    }

    /// Lets the sender of a lane continue once little enough of a class is left.
    pub(super) fn let_go(&mut self, index: usize, class: usize) {
        let lane = &mut self.lanes[index];
        // A lane to a NIC: only switches request pauses.
        let Node::Switch(switch) = lane.to else { return };
        let switch = &self.switches[switch];
        if lane.asked >> class & 1 == 1 && lane.held_bytes[class] <= switch.config.xon_bytes {
            lane.asked &= !(1 << class);
            let priorities = switch.priorities_of(class);
            self.ask(index, priorities, false);
        }
    }
}
