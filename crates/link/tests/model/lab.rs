//! Hosts on switches, and senders that always have frames.

use linerate_link::{
    Cable, Frame, InterfaceConfig, InterfaceId, Mac, Nanos, Network, NicConfig, NicId, Receiver,
    SwitchConfig, SwitchId, WireConfig,
};

pub(crate) const US: Nanos = 1_000;
pub(crate) const MS: Nanos = 1_000_000;
pub(crate) const GBIT: u64 = 1_000_000_000;

/// The payload of a frame: its sender, and its number.
pub(crate) type Payload = (usize, u64);

/// One frame that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: Nanos,
    pub(crate) to: usize,
    pub(crate) from: usize,
    pub(crate) number: u64,
    pub(crate) length: u32,
    pub(crate) marked: bool,
    /// Which interrupt brought it.
    pub(crate) interrupt: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub(crate) arrivals: Vec<Arrival>,
    interrupts: usize,
}

impl Receiver<Payload> for Inbox {
    fn interrupt(&mut self, at: Nanos, _rsc: bool, ring: std::vec::Drain<'_, (InterfaceId, Frame<Payload>)>) {
        self.interrupts += 1;
        for (interface, frame) in ring {
            self.arrivals.push(Arrival {
                at,
                to: interface.index(),
                from: frame.payload.0,
                number: frame.payload.1,
                length: frame.length,
                marked: frame.marked,
                interrupt: self.interrupts,
            });
        }
    }
}

/// A network, what has arrived in it, and a counter for every sender.
pub(crate) struct Lab {
    pub(crate) network: Network<Payload>,
    pub(crate) inbox: Inbox,
    numbers: Vec<u64>,
    pub(crate) nics: Vec<NicId>,
}

/// A sender that always has frames for some receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) from: InterfaceId,
    pub(crate) to: InterfaceId,
    pub(crate) length: u32,
    /// Conversations that it has, for LAGs.
    pub(crate) flows: u32,
}

pub(crate) fn flow(from: InterfaceId, to: InterfaceId, length: u32) -> Flow {
    Flow { from, to, length, flows: 1 }
}

pub(crate) fn wire(rate_bits_per_s: u64) -> WireConfig {
    WireConfig { rate_bits_per_s, ..WireConfig::default() }
}

pub(crate) fn cable(wire: WireConfig) -> Cable {
    Cable { wire, links: 1, queue_bytes: None }
}

/// An interface's address.
pub(crate) fn mac(interface: usize) -> Mac {
    Mac::new([2, 0, 0, 0, 0, interface as u8])
}

pub(crate) const BROADCAST: Mac = Mac::new([255; 6]);

impl Lab {
    pub(crate) fn new(seed: u64) -> Self {
        Self { network: Network::new(seed), inbox: Inbox::default(), numbers: Vec::new(), nics: Vec::new() }
    }

    /// A lab with one switch and hosts of one interface each, on 1 Gbit/s.
    pub(crate) fn star(config: SwitchConfig, hosts: usize) -> (Self, SwitchId, Vec<InterfaceId>) {
        let mut lab = Self::new(7);
        let switch = lab.network.add_switch(config);
        let interfaces = (0..hosts).map(|_| lab.host(switch, wire(GBIT), 0)).collect();
        (lab, switch, interfaces)
    }

    /// A host with one interface in VLAN 0.
    pub(crate) fn host(&mut self, switch: SwitchId, wire: WireConfig, priority: u8) -> InterfaceId {
        let nic = self.nic(switch, NicConfig::default(), cable(wire));
        self.interface(nic, 0, priority)
    }

    pub(crate) fn nic(&mut self, switch: SwitchId, config: NicConfig, cable: Cable) -> NicId {
        let nic = self.network.add_nic(switch, config, cable);
        self.nics.push(nic);
        nic
    }

    /// Adds an interface; the switches learn its address.
    pub(crate) fn interface(&mut self, nic: NicId, vlan: u16, priority: u8) -> InterfaceId {
        self.numbers.push(0);
        self.network.add_interface(nic, InterfaceConfig { vlan, priority, mtu: 9000 })
    }

    pub(crate) fn send(&mut self, from: InterfaceId, to: Mac, length: u32, flow: u32) {
        let number = self.numbers[from.index()];
        self.numbers[from.index()] += 1;
        let frame = Frame {
            length,
            source: mac(from.index()),
            destination: to,
            flow,
            ecn_capable: true,
            marked: false,
            payload: (from.index(), number),
        };
        self.network.send(from, frame);
    }

    /// Lets time pass, and checks the network's own prediction of the next interrupt.
    pub(crate) fn advance(&mut self, until: Nanos) {
        let (promised, before) = (self.network.next_interrupt(), self.inbox.arrivals.len());
        self.network.advance(until, &mut self.inbox);
        if let Some(first) = self.inbox.arrivals.get(before) {
            assert!(promised.is_some_and(|promised| promised <= first.at), "{promised:?}, then {}", first.at);
        }
    }

    /// Every interface sends a frame, so that nothing is flooded afterwards.
    pub(crate) fn introduce(&mut self) {
        for index in 0..self.numbers.len() {
            let interface = self.interfaces()[index];
            self.send(interface, BROADCAST, 60, 0);
        }
        self.advance(self.network.now() + 100 * MS);
        self.inbox.arrivals.clear();
    }

    fn interfaces(&self) -> Vec<InterfaceId> {
        self.network.interfaces().collect()
    }

    /// Keeps the senders' rings full for a while. Earlier arrivals are forgotten.
    pub(crate) fn saturate(&mut self, flows: &[Flow], duration: Nanos) {
        self.inbox.arrivals.clear();
        let end = self.network.now() + duration;
        while self.network.now() < end {
            for sender in flows {
                while self.network.room(sender.from) > 0 {
                    let conversation = self.numbers[sender.from.index()] as u32 % sender.flows;
                    self.send(sender.from, mac(sender.to.index()), sender.length, conversation);
                }
            }
            self.advance((self.network.now() + 50 * US).min(end));
        }
    }

    /// Fills a sender's ring up to `most` frames, for its receivers in turn.
    pub(crate) fn fill_in_turn(&mut self, flows: &[Flow], most: u32) {
        while self.network.room(flows[0].from) > 512 - most {
            for sender in flows {
                self.send(sender.from, mac(sender.to.index()), sender.length, 0);
            }
        }
    }

    /// Bytes that arrived from one interface at another since `saturate` began.
    pub(crate) fn bytes_between(&self, from: InterfaceId, to: InterfaceId) -> u64 {
        let ours = |arrival: &&Arrival| arrival.from == from.index() && arrival.to == to.index();
        self.inbox.arrivals.iter().filter(ours).map(|arrival| u64::from(arrival.length)).sum()
    }

    /// Drops of all NICs' cables.
    pub(crate) fn drops(&self) -> u64 {
        let of = |&nic: &NicId| {
            let stats = self.network.port_stats(nic);
            stats.sent.drops.total() + stats.received.drops.total()
        };
        self.nics.iter().map(of).sum()
    }
}

/// Bytes that a line carries at most, in frames of one length.
pub(crate) fn line_bytes(rate: u64, length: u32, duration: Nanos) -> f64 {
    rate as f64 / 8.0 * (duration as f64 / 1e9) * f64::from(length) / (f64::from(length) + 24.0)
}

pub(crate) fn assert_near(value: f64, expected: f64, tolerance_percent: f64, what: &str) {
    let off = (value / expected - 1.0) * 100.0;
    assert!(off.abs() <= tolerance_percent, "{what}: {value} is {off:+.2} % off {expected}");
}
