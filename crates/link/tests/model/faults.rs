//! Failures of cables, links and switches, and that everything works again after them.

use crate::lab::{BROADCAST, Flow, GBIT, Lab, MS, US, assert_near, cable, flow, line_bytes, mac, wire};
use linerate_link::{
    Cable, FaultConfig, FlowControl, InterfaceId, LinkConfig, NicConfig, NicId, SwitchConfig, SwitchId,
    TrunkId, WireConfig,
};
use std::collections::HashMap;

const PULLED: LinkConfig = LinkConfig {
    up: false,
    outbound: FaultConfig { loss: 0.0, mtu: 0 },
    inbound: FaultConfig { loss: 0.0, mtu: 0 },
};

#[test]
fn loss_in_one_direction_leaves_the_other_alone() {
    let (mut lab, _, hosts) = Lab::star(SwitchConfig::default(), 2);
    lab.introduce();
    let deaf = LinkConfig { inbound: FaultConfig { loss: 1.0, mtu: 0 }, ..LinkConfig::default() };
    lab.network.set_nic_link(lab.nics[0], 0, deaf);
    for (from, to) in [(0, 1), (1, 0)] {
        for _ in 0..20 {
            lab.send(hosts[from], mac(to), 1514, 0);
        }
    }
    lab.advance(lab.network.now() + 10 * MS);
    assert!(lab.inbox.arrivals.iter().all(|arrival| arrival.to == 1));
    assert_eq!(lab.inbox.arrivals.len(), 20);
    let stats = lab.network.port_stats(lab.nics[0]);
    assert_eq!((stats.sent.drops.loss, stats.received.drops.loss), (0, 20));
    assert!(lab.network.carrier(lab.nics[0]), "the carrier stays on");
    lab.network.set_nic_link(lab.nics[0], 0, LinkConfig::default());
    lab.send(hosts[1], mac(0), 1514, 0);
    lab.advance(lab.network.now() + MS);
    assert_eq!(lab.inbox.arrivals.len(), 21);
}

#[test]
fn a_hop_with_a_smaller_mtu_swallows_long_frames_only() {
    let mut lab = Lab::new(1);
    let switches = [0, 1].map(|_| lab.network.add_switch(SwitchConfig::default()));
    let trunk = lab.network.add_trunk(switches[0], switches[1], cable(wire(GBIT)));
    let hosts = switches.map(|switch| lab.host(switch, wire(GBIT), 0));
    lab.introduce();
    let narrow = LinkConfig { outbound: FaultConfig { loss: 0.0, mtu: 1500 }, ..LinkConfig::default() };
    lab.network.set_trunk_link(trunk, 0, narrow);
    for (from, to) in [(0, 1), (1, 0)] {
        for length in [60, 1514, 1515, 9014] {
            lab.send(hosts[from], mac(hosts[to].index()), length, 0);
        }
    }
    lab.advance(lab.network.now() + 10 * MS);
    let lengths = |to: usize| -> Vec<u32> {
        let arrivals = lab.inbox.arrivals.iter().filter(|arrival| arrival.to == to);
        arrivals.map(|arrival| arrival.length).collect()
    };
    assert_eq!(lengths(1), [60, 1514]);
    assert_eq!(lengths(0), [60, 1514, 1515, 9014], "the other direction is sound");
    assert_eq!(lab.network.trunk_stats(trunk).a_to_b.drops.mtu, 2);
}

/// Two hosts with teams of four links each, on one switch.
fn teams() -> (Lab, [InterfaceId; 2]) {
    let mut lab = Lab::new(1);
    let switch = lab.network.add_switch(SwitchConfig::default());
    let team = Cable { links: 4, ..cable(wire(GBIT)) };
    let hosts = [0, 1].map(|_| {
        let nic = lab.nic(switch, NicConfig::default(), team);
        lab.interface(nic, 0, 0)
    });
    lab.introduce();
    (lab, hosts)
}

/// The number of lines that sixteen conversations fill from one host to the other.
fn lines(lab: &mut Lab, [a, b]: [InterfaceId; 2]) -> f64 {
    lab.advance(lab.network.now() + 20 * MS);
    lab.saturate(&[Flow { flows: 16, ..flow(a, b, 1514) }], 50 * MS);
    lab.bytes_between(a, b) as f64 / line_bytes(GBIT, 1514, 50 * MS)
}

#[test]
fn a_team_goes_on_with_the_links_that_are_left() {
    let (mut lab, hosts) = teams();
    let nic = lab.nics[1];
    assert_near(lines(&mut lab, hosts), 4.0, 2.0, "all links");
    let before: Vec<_> = lab.network.port_stats(nic).links.iter().map(|link| link.inbound.frames).collect();
    assert!(before.iter().all(|&frames| frames > 4_000), "each carries its share: {before:?}");
    for link in [1, 3] {
        lab.network.set_nic_link(nic, link, PULLED);
    }
    let stats = lab.network.port_stats(nic);
    assert_eq!(stats.links.iter().map(|link| link.up).collect::<Vec<_>>(), [true, false, true, false]);
    assert_near(lines(&mut lab, hosts), 2.0, 2.0, "the sender has four, the receiver two");
    for link in [0, 2] {
        lab.network.set_nic_link(nic, link, PULLED);
    }
    assert!(!lab.network.carrier(nic));
    assert!(lines(&mut lab, hosts) == 0.0);
    lab.network.set_nic_link(nic, 2, LinkConfig::default());
    assert!(lab.network.carrier(nic));
    assert_near(lines(&mut lab, hosts), 1.0, 2.0, "one came back");
    (0..4).for_each(|link| lab.network.set_nic_link(nic, link, LinkConfig::default()));
    assert_near(lines(&mut lab, hosts), 4.0, 2.0, "all came back");
}

#[test]
fn a_team_does_not_see_that_one_of_its_links_is_deaf() {
    let (mut lab, hosts) = teams();
    let deaf = LinkConfig { inbound: FaultConfig { loss: 1.0, mtu: 0 }, ..LinkConfig::default() };
    lab.network.set_nic_link(lab.nics[1], 2, deaf);
    assert_near(lines(&mut lab, hosts), 3.0, 2.0, "a quarter of the conversations is lost");
    let links = lab.network.port_stats(lab.nics[1]).links;
    assert!(links.iter().all(|link| link.up));
    assert!(links[2].inbound.drops.loss > 1_000 && links[0].inbound.drops.total() == 0);
}

#[test]
fn a_switch_without_power_takes_all_its_links_down() {
    let mut lab = Lab::new(1);
    let switches = [0, 1].map(|_| lab.network.add_switch(SwitchConfig::default()));
    let trunk = lab.network.add_trunk(switches[0], switches[1], cable(wire(GBIT)));
    let hosts = [0, 0, 1].map(|at: usize| lab.host(switches[at], wire(GBIT), 0));
    lab.introduce();
    let dark = SwitchConfig { up: false, ..SwitchConfig::default() };
    lab.network.set_switch(switches[0], dark);
    let carriers = |lab: &Lab| lab.nics.iter().map(|&nic| lab.network.carrier(nic)).collect::<Vec<_>>();
    assert_eq!(carriers(&lab), [false, false, true]);
    assert!(!lab.network.trunk_stats(trunk).links[0].up);
    lab.send(hosts[0], mac(1), 1514, 0);
    lab.send(hosts[2], mac(0), 1514, 0);
    lab.advance(lab.network.now() + 10 * MS);
    assert!(lab.inbox.arrivals.is_empty());
    assert_eq!(lab.network.switch_stats(switches[0]).addresses, 0, "it has forgotten who is where");
    lab.network.set_switch(switches[0], SwitchConfig::default());
    assert_eq!(carriers(&lab), [true, true, true]);
    lab.send(hosts[2], mac(0), 1514, 0);
    lab.advance(lab.network.now() + 10 * MS);
    let to: Vec<_> = lab.inbox.arrivals.iter().map(|arrival| arrival.to).collect();
    assert_eq!(to, [0, 1], "an address that it knows no more is flooded");
}

#[test]
fn a_cable_and_its_links_are_pulled_out_independently() {
    let (mut lab, _, _) = Lab::star(SwitchConfig::default(), 1);
    let nic = lab.nics[0];
    lab.network.set_nic_link(nic, 0, PULLED);
    lab.network.set_nic_wire(nic, WireConfig { delay_ns: 5, ..wire(GBIT) }, None);
    assert!(!lab.network.carrier(nic), "new figures do not plug it in");
    lab.network.set_nic_wire(nic, WireConfig { up: false, ..wire(GBIT) }, None);
    lab.network.set_nic_link(nic, 0, LinkConfig::default());
    assert!(!lab.network.carrier(nic));
    lab.network.set_nic_wire(nic, wire(GBIT), None);
    assert!(lab.network.carrier(nic));
}

/// Everything in it that can fail.
struct Parts {
    switches: [SwitchId; 2],
    trunk: TrunkId,
    hosts: [InterfaceId; 3],
    config: SwitchConfig,
}

/// Three hosts with teams on two switches joined by a LAG.
fn parts(seed: u64, flow_control: FlowControl) -> (Lab, Parts) {
    let mut lab = Lab::new(seed);
    let config = SwitchConfig { flow_control, queue_bytes: 64 << 10, ..SwitchConfig::default() };
    let switches = [0, 1].map(|_| lab.network.add_switch(config.clone()));
    let two = Cable { links: 2, ..cable(wire(GBIT)) };
    let trunk = lab.network.add_trunk(switches[0], switches[1], two);
    let hosts = [0, 0, 1].map(|at: usize| {
        let nic = lab.nic(
            switches[at],
            NicConfig { pause_tx: seed.is_multiple_of(2), ..NicConfig::default() },
            two,
        );
        lab.interface(nic, 0, 0)
    });
    lab.introduce();
    (lab, Parts { switches, trunk, hosts, config })
}

/// One random fault, or the end of one.
fn disturb(lab: &mut Lab, parts: &Parts, dice: &mut impl FnMut(u64) -> u64) {
    let fault = |dice: u64| FaultConfig {
        loss: [0.0, 0.1, 1.0][dice as usize % 3],
        mtu: [0, 1000, 1500][dice as usize / 3 % 3],
    };
    let link = LinkConfig { up: dice(3) > 0, outbound: fault(dice(9)), inbound: fault(dice(9)) };
    let nic = lab.nics[dice(3) as usize];
    match dice(5) {
        0 => lab.network.set_nic_link(nic, dice(2) as usize, link),
        1 => lab.network.set_trunk_link(parts.trunk, dice(2) as usize, link),
        2 => lab.network.set_nic_wire(nic, WireConfig { up: dice(2) > 0, ..wire(GBIT) }, None),
        3 => lab.network.set_trunk_wire(parts.trunk, WireConfig { up: dice(2) > 0, ..wire(GBIT) }, None),
        _ => {
            let config = SwitchConfig { up: dice(2) > 0, ..parts.config.clone() };
            lab.network.set_switch(parts.switches[dice(2) as usize], config);
        }
    }
}

fn heal(lab: &mut Lab, parts: &Parts) {
    for switch in parts.switches {
        lab.network.set_switch(switch, parts.config.clone());
    }
    for link in 0..2 {
        lab.network.set_trunk_link(parts.trunk, link, LinkConfig::default());
        lab.nics.clone().into_iter().for_each(|nic: NicId| {
            lab.network.set_nic_link(nic, link, LinkConfig::default());
        });
    }
    lab.network.set_trunk_wire(parts.trunk, wire(GBIT), None);
    lab.nics.clone().into_iter().for_each(|nic| lab.network.set_nic_wire(nic, wire(GBIT), None));
}

/// The conversations of each sender, of which it has this many, have arrived in order and once.
fn assert_in_order(lab: &Lab, conversations: u64, what: &str) {
    let mut last = HashMap::new();
    for arrival in &lab.inbox.arrivals {
        let key = (arrival.from, arrival.to, arrival.number % conversations);
        let before = last.insert(key, arrival.number);
        assert!(before < Some(arrival.number), "{what}: {before:?}, then {arrival:?}");
    }
}

/// After faults in any order, a healed network carries the same traffic as before, each conversation in order.
#[test]
fn whatever_fails_comes_back() {
    for seed in 0..60_u64 {
        let flow_control = [FlowControl::None, FlowControl::Pause][seed as usize % 2];
        let (mut lab, parts) = parts(seed, flow_control);
        let mut state = seed;
        let mut dice = |sides: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        let [a, b, c] = parts.hosts;
        let flows = [(a, c), (b, c), (c, a)].map(|(from, to)| Flow { flows: 8, ..flow(from, to, 1514) });
        for _ in 0..12 {
            disturb(&mut lab, &parts, &mut dice);
            lab.saturate(&flows, 300 * US + dice(2_000) * US);
        }
        heal(&mut lab, &parts);
        lab.advance(lab.network.now() + 100 * MS);
        // Switches that were off must learn all addresses again.
        for host in parts.hosts {
            lab.send(host, BROADCAST, 60, 0);
        }
        lab.advance(lab.network.now() + MS);
        lab.saturate(&flows, 40 * MS);
        let line = line_bytes(GBIT, 1514, 40 * MS);
        let what = format!("seed {seed}");
        let into_c = lab.bytes_between(a, c) + lab.bytes_between(b, c);
        assert_near(into_c as f64, 2.0 * line, 8.0, &what);
        assert_near(lab.bytes_between(c, a) as f64, 2.0 * line, 8.0, &what);
        assert_in_order(&lab, 8, &what);
        lab.advance(lab.network.now() + 200 * MS);
        assert!(lab.network.next_event().is_none(), "{what}: everything comes to rest");
        assert!(parts.hosts.iter().all(|&host| lab.network.room(host) == 512), "{what}: rings are empty");
        let buffered = parts.switches.map(|switch| lab.network.switch_stats(switch).buffered_bytes);
        assert_eq!(buffered, [0, 0], "{what}");
    }
}
