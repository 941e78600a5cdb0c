//! The whole network: its parts, the next event, and the time.
//!
//! A caller moves time forward ([`Network::advance`]), which passes received frames to a [`Receiver`], and then lets
//! hosts send at that time ([`Network::send`]). Events of equal time are processed in the order of their creation, so
//! the same calls with the same seed give the same results, to the nanosecond.

mod build;
mod change;
mod forward;

use crate::{
    frame::{Frame, HEADER_BYTES, Nanos, Tagged},
    lane::{Account, Lane, Node, Waiting},
    nic::{Arrived, Interface, InterfaceConfig, InterfaceId, Nic, Receiver},
    stats::{LaneStats, LinkStats, PortStats, SwitchStats, TrunkStats},
    switch::Switch,
};
pub use build::Cable;

use std::{cmp::Reverse, collections::BinaryHeap};

/// A switch of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SwitchId(usize);

/// A NIC of a [`Network`], with its cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NicId(usize);

/// A cable between two switches of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrunkId(usize);

/// NICs, links and switches in virtual time. `P` is what the caller attaches to a frame.
#[derive(Debug)]
pub struct Network<P> {
    now: Nanos,
    seed: u64,
    events: BinaryHeap<Reverse<NetworkEvent>>,
    /// Events so far: decides between equal times.
    sequence: u64,
    pauses_under_way: usize,
    lanes: Vec<Lane<P>>,
    bonds: Vec<Bond>,
    nics: Vec<Nic<P>>,
    interfaces: Vec<Interface>,
    switches: Vec<Switch>,
    /// Bonds from `a` and from `b`.
    trunks: Vec<(usize, usize)>,
}

/// The sending ends of all links of a cable.
#[derive(Debug)]
struct Bond {
    lanes: Vec<usize>,
    /// Those that are up.
    usable: Vec<usize>,
    /// Most bytes of a queue; None: the switch's setting.
    queue_bytes: Option<u64>,
}

impl Bond {
    fn is_up(&self) -> bool {
        !self.usable.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NetworkEvent {
    at: Nanos,
    sequence: u64,
    action: NetworkAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NetworkAction {
    /// A lane has sent its frame.
    Sent(usize),
    /// The first frame on the wire of a lane arrives.
    Arrived(usize),
    /// A NIC interrupts its host.
    Interrupt(usize),
    /// A pause frame reaches the sender of a lane.
    Pause { lane: usize, epoch: u32, priorities: u8, stop: bool },
}

impl<P: Clone> Network<P> {
    /// The time up to which everything has happened.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The time of the next event, if no frame is sent before.
    pub fn next_event(&self) -> Option<Nanos> {
        self.events.peek().map(|Reverse(event)| event.at)
    }

    /// A time before which no host is interrupted, if no frame is sent: a caller that passes frames in real time need
    /// not check earlier. None if there are no events.
    pub fn next_interrupt(&self) -> Option<Nanos> {
        let next = self.next_event()?;
        if self.pauses_under_way > 0 {
            // A sender that may continue has frames that are not sent yet.
            return Some(next);
        }
        let due = self.nics.iter().filter_map(Nic::due);
        let sent = self.lanes.iter().filter_map(|lane| self.next_from(lane));
        due.chain(sent).chain(self.next_from_held()).min()
    }

    /// The earliest interrupt that the frames on a lane can cause.
    fn next_from(&self, lane: &Lane<P>) -> Option<Nanos> {
        Some(lane.next_arrival()? + self.onward_ns(lane))
    }

    /// The earliest interrupt that frames stopped by a pause can cause. Before they may continue, a frame must leave a
    /// switch (or a ring, by an interrupt), and a pause frame must return.
    fn next_from_held(&self) -> Option<Nanos> {
        let held = self.lanes.iter().filter(|lane| lane.is_held());
        let ways =
            held.map(|lane| self.lanes[lane.reverse].passage_ns() + lane.passage_ns() + self.onward_ns(lane));
        let way = ways.min()?;
        let leaving =
            self.lanes.iter().filter(|lane| lane.current.is_some() && matches!(lane.from, Node::Switch(_)));
        leaving.map(|lane| lane.busy_until + way).min()
    }

    /// Shortest time from a frame's arrival at the end of a lane to an interrupt.
    fn onward_ns(&self, lane: &Lane<P>) -> Nanos {
        match lane.to {
            Node::Nic(nic) => self.nics[nic].patience(),
            Node::Switch(switch) => self.switches[switch].passage_ns,
        }
    }

    /// All interfaces, in the order in which they were added.
    pub fn interfaces(&self) -> impl Iterator<Item = InterfaceId> + use<P> {
        (0..self.interfaces.len()).map(InterfaceId)
    }

    /// Frames for which an interface's transmit ring has space.
    pub fn room(&self, interface: InterfaceId) -> u32 {
        let Interface { nic, waiting, .. } = self.interfaces[interface.0];
        self.nics[nic].config.tx_ring_frames.saturating_sub(waiting)
    }

    /// A host sends a frame now. Call [`room`](Self::room) first: a frame beyond it is accepted nevertheless (a host
    /// passes all segments of a packet at once); a frame longer than the interface's MTU is dropped.
    pub fn send(&mut self, interface: InterfaceId, frame: Frame<P>) {
        let Interface { nic, config: InterfaceConfig { vlan, priority, mtu }, .. } =
            self.interfaces[interface.0];
        let bond = self.nics[nic].bond;
        let lane = self.link_for(bond, frame.flow);
        if frame.length > mtu + HEADER_BYTES {
            self.lanes[lane].stats.drops.mtu += 1;
            return;
        }
        self.interfaces[interface.0].waiting += 1;
        let tagged = Tagged { frame, vlan, priority };
        self.lanes[lane].push(Waiting { tagged, account: Account::Ring(interface.0) });
        self.start(lane);
    }

    /// Processes all events up to and including a time, which becomes the current time.
    pub fn advance(&mut self, until: Nanos, receiver: &mut impl Receiver<P>) {
        while let Some(&Reverse(event)) = self.events.peek() {
            if event.at > until {
                break;
            }
            self.events.pop();
            self.now = event.at;
            match event.action {
                NetworkAction::Sent(lane) => self.sent(lane, receiver),
                NetworkAction::Arrived(lane) => {
                    if let Some((_, tagged)) = self.lanes[lane].flying.pop_front() {
                        self.arrive(lane, tagged, receiver);
                    }
                }
                NetworkAction::Interrupt(nic) => self.interrupt(nic, receiver),
                NetworkAction::Pause { lane, epoch, priorities, stop } => {
                    self.pauses_under_way -= 1;
                    if self.lanes[lane].epoch == epoch {
                        self.pause(lane, priorities, stop);
                    }
                }
            }
        }
        self.now = self.now.max(until);
    }

    fn at(&mut self, at: Nanos, action: NetworkAction) {
        self.sequence += 1;
        self.events.push(Reverse(NetworkEvent { at, sequence: self.sequence, action }));
    }

    fn start(&mut self, lane: usize) {
        if let Some(done) = self.lanes[lane].start(self.now) {
            self.at(done, NetworkAction::Sent(lane));
        }
    }

    fn sent(&mut self, index: usize, receiver: &mut impl Receiver<P>) {
        let lane = &mut self.lanes[index];
        let Some(Waiting { tagged, account }) = lane.current.take() else {
            unreachable!("a lane keeps its frame until it has sent it")
        };
        let fate = lane.fate(tagged.frame.length, self.now);
        let from = lane.from;
        self.release(account, u64::from(tagged.frame.length), from);
        self.start(index);
        match fate {
            Some(arrival) if arrival > self.now => {
                self.lanes[index].flying.push_back((arrival, tagged));
                self.at(arrival, NetworkAction::Arrived(index));
            }
            Some(_) => self.arrive(index, tagged, receiver),
            None => {}
        }
    }

    fn arrive(&mut self, lane: usize, tagged: Tagged<P>, receiver: &mut impl Receiver<P>) {
        if !self.lanes[lane].up {
            self.lanes[lane].stats.drops.down += 1;
            return;
        }
        match self.lanes[lane].to {
            Node::Switch(switch) => self.forward(switch, lane, tagged),
            Node::Nic(nic) => self.receive(nic, lane, tagged, receiver),
        }
    }

    /// A frame reaches a NIC.
    fn receive(&mut self, index: usize, lane: usize, tagged: Tagged<P>, receiver: &mut impl Receiver<P>) {
        let nic = &mut self.nics[index];
        let vlan_of = |interface: usize| self.interfaces[interface].config.vlan;
        let member = nic.interfaces.iter().copied().find(|&interface| vlan_of(interface) == tagged.vlan);
        // The switch sends a NIC only frames of its VLANs.
        let Some(interface) = member else { return };
        let drops = &mut self.lanes[lane].stats.drops;
        if tagged.frame.length > self.interfaces[interface].config.mtu + HEADER_BYTES {
            drops.mtu += 1;
            return;
        }
        match nic.arrive(InterfaceId(interface), tagged.frame, self.now) {
            Arrived::Dropped => drops.ring += 1,
            Arrived::Waits => {}
            Arrived::InterruptAt(at) if at == self.now => self.interrupt(index, receiver),
            Arrived::InterruptAt(at) => self.at(at, NetworkAction::Interrupt(index)),
        }
        self.ask_for_ring(index);
    }

    fn interrupt(&mut self, index: usize, receiver: &mut impl Receiver<P>) {
        self.nics[index].interrupt(self.now, receiver);
        self.ask_for_ring(index);
    }

    /// A NIC whose ring fills up requests a pause from the switch, and ends it when the ring has space again.
    fn ask_for_ring(&mut self, index: usize) {
        let nic = &mut self.nics[index];
        let crowded = nic.config.pause_tx && nic.is_crowded();
        if crowded == nic.asked {
            return;
        }
        nic.asked = crowded;
        nic.stats.pauses_asked += u64::from(crowded);
        for link in 0..self.bonds[nic.bond].lanes.len() {
            let own = self.bonds[self.nics[index].bond].lanes[link];
            let towards = self.lanes[own].reverse;
            self.ask(towards, u8::MAX, crowded);
        }
    }

    /// The receiver of a lane requests its sender to pause or to continue.
    fn ask(&mut self, lane: usize, priorities: u8, stop: bool) {
        let reverse = &self.lanes[self.lanes[lane].reverse];
        if reverse.up {
            let arrival = reverse.pause_arrival(self.now);
            let at = self.lanes[lane].after_last_pause(arrival);
            let epoch = self.lanes[lane].epoch;
            self.pauses_under_way += 1;
            self.at(at, NetworkAction::Pause { lane, epoch, priorities, stop });
        }
    }

    /// A pause frame reaches the sender of a lane.
    fn pause(&mut self, index: usize, priorities: u8, stop: bool) {
        let lane = &mut self.lanes[index];
        let obeys = match lane.from {
            Node::Nic(nic) => self.nics[nic].config.pause_rx,
            Node::Switch(_) => true,
        };
        if lane.up && (obeys || !stop) {
            lane.pause(priorities, stop, self.now);
            self.start(index);
        }
    }

    /// The link of a bond for a flow: always the same one while no link goes up or down. If all are down, any one of
    /// them loses the frame.
    fn link_for(&self, bond: usize, flow: u32) -> usize {
        let Bond { lanes, usable, .. } = &self.bonds[bond];
        let links = if usable.is_empty() { lanes } else { usable };
        links[flow as usize % links.len()]
    }
}

impl<P: Clone> Network<P> {
    /// Whether a NIC sees a carrier: one of its links is up.
    pub fn carrier(&self, nic: NicId) -> bool {
        self.bonds[self.nics[nic.0].bond].is_up()
    }

    /// Counters of a NIC and its cable.
    pub fn port_stats(&self, nic: NicId) -> PortStats {
        let bond = self.nics[nic.0].bond;
        let pauses_asked = self.bonds[bond].lanes.iter().map(|&lane| self.lanes[lane].pauses_asked).sum();
        PortStats {
            sent: self.bond_stats(bond, false),
            received: self.bond_stats(bond, true),
            nic: self.nics[nic.0].stats,
            pauses_asked,
            links: self.link_stats(bond),
        }
    }

    /// Counters of a trunk.
    pub fn trunk_stats(&self, trunk: TrunkId) -> TrunkStats {
        let (a, b) = self.trunks[trunk.0];
        TrunkStats {
            a_to_b: self.bond_stats(a, false),
            b_to_a: self.bond_stats(b, false),
            links: self.link_stats(a),
        }
    }

    /// Counters of a switch.
    pub fn switch_stats(&self, switch: SwitchId) -> SwitchStats {
        self.switches[switch.0].stats
    }

    fn link_stats(&self, bond: usize) -> Vec<LinkStats> {
        let of = |&index: &usize| {
            let (lane, reverse) = (&self.lanes[index], &self.lanes[self.lanes[index].reverse]);
            LinkStats { up: lane.up, outbound: lane.snapshot(self.now), inbound: reverse.snapshot(self.now) }
        };
        self.bonds[bond].lanes.iter().map(of).collect()
    }

    fn bond_stats(&self, bond: usize, reverse: bool) -> LaneStats {
        let mut sum = LaneStats::default();
        for &lane in &self.bonds[bond].lanes {
            let lane = if reverse { self.lanes[lane].reverse } else { lane };
            sum.add(&self.lanes[lane].snapshot(self.now));
        }
        sum
    }
}
