//! Forwarding: learning, VLANs, trunks, LAGs.

use crate::lab::{BROADCAST, GBIT, Lab, MS, assert_near, cable, flow, line_bytes, mac, wire};
use linerate_link::{Cable, InterfaceId, NicConfig, SwitchConfig};

fn receivers(lab: &Lab) -> Vec<usize> {
    let mut receivers: Vec<_> = lab.inbox.arrivals.iter().map(|arrival| arrival.to).collect();
    receivers.sort_unstable();
    receivers
}

#[test]
fn unknown_addresses_are_flooded_until_they_speak() {
    let (mut lab, switch, hosts) = Lab::star(SwitchConfig::default(), 4);
    lab.send(hosts[0], mac(2), 60, 0);
    lab.advance(MS);
    assert_eq!(receivers(&lab), [1, 2, 3]);
    lab.send(hosts[2], mac(0), 60, 0);
    lab.advance(2 * MS);
    lab.inbox.arrivals.clear();
    lab.send(hosts[0], mac(2), 60, 0);
    lab.advance(3 * MS);
    assert_eq!(receivers(&lab), [2]);
    assert_eq!(lab.network.switch_stats(switch).flooded, 1);
    assert_eq!(lab.network.switch_stats(switch).addresses, 2);
}

#[test]
fn vlans_do_not_hear_each_other() {
    let mut lab = Lab::new(1);
    let switches = [0, 1].map(|_| lab.network.add_switch(SwitchConfig::default()));
    lab.network.add_trunk(switches[0], switches[1], cable(wire(GBIT)));
    let mut interfaces = Vec::new();
    for switch in switches {
        let nic = lab.nic(switch, NicConfig::default(), cable(wire(GBIT)));
        interfaces.push(lab.interface(nic, 10, 3));
        interfaces.push(lab.interface(nic, 20, 0));
    }
    let only_lan = lab.nic(switches[1], NicConfig::default(), cable(wire(GBIT)));
    interfaces.push(lab.interface(only_lan, 20, 0));
    lab.send(interfaces[0], BROADCAST, 60, 0);
    lab.advance(MS);
    assert_eq!(receivers(&lab), [2], "VLAN 10 across the trunk");
    lab.inbox.arrivals.clear();
    lab.send(interfaces[1], BROADCAST, 60, 0);
    lab.advance(2 * MS);
    assert_eq!(receivers(&lab), [3, 4], "VLAN 20");
    assert_eq!(lab.network.port_stats(only_lan).received.frames, 1, "nothing of VLAN 10 took up its wire");
    // The same address in another VLAN is another station.
    lab.inbox.arrivals.clear();
    lab.send(interfaces[3], mac(0), 60, 0);
    lab.advance(3 * MS);
    assert_eq!(receivers(&lab), [1, 4]);
}

#[test]
fn an_address_that_moves_is_followed() {
    let (mut lab, _, hosts) = Lab::star(SwitchConfig::default(), 3);
    lab.introduce();
    // Host 2 takes over the address of host 1.
    let moved = linerate_link::Frame {
        length: 60,
        source: mac(1),
        destination: BROADCAST,
        flow: 0,
        ecn_capable: false,
        marked: false,
        payload: (2, 0),
    };
    lab.network.send(hosts[2], moved);
    lab.advance(lab.network.now() + MS);
    lab.inbox.arrivals.clear();
    lab.send(hosts[0], mac(1), 60, 0);
    lab.advance(lab.network.now() + MS);
    assert_eq!(receivers(&lab), [2]);
}

/// Two switches joined by a LAG, a host of 10 Gbit/s at each.
fn over_lag(links: u32) -> (Lab, [InterfaceId; 2]) {
    let mut lab = Lab::new(1);
    let switches = [0, 1].map(|_| lab.network.add_switch(SwitchConfig::default()));
    let trunk = Cable { links, ..cable(wire(GBIT)) };
    lab.network.add_trunk(switches[0], switches[1], trunk);
    let hosts = switches.map(|switch| lab.host(switch, wire(10 * GBIT), 0));
    lab.introduce();
    (lab, hosts)
}

#[test]
fn a_lag_carries_one_flow_on_one_link_and_many_on_all() {
    let duration = 100 * MS;
    for (links, flows, expected) in [(2, 1, 1.0), (2, 8, 2.0), (4, 8, 4.0), (4, 2, 2.0)] {
        let (mut lab, [a, b]) = over_lag(links);
        lab.saturate(&[crate::lab::Flow { flows, ..flow(a, b, 1514) }], duration);
        let lines = lab.bytes_between(a, b) as f64 / line_bytes(GBIT, 1514, duration);
        assert_near(lines, expected, 3.0, &format!("{flows} flows over {links} links"));
    }
}

#[test]
fn the_frames_of_a_flow_stay_in_order_on_a_lag() {
    let (mut lab, [a, b]) = over_lag(2);
    for _ in 0..200 {
        lab.send(a, mac(b.index()), 1514, 5);
    }
    lab.advance(lab.network.now() + 100 * MS);
    let numbers: Vec<_> = lab.inbox.arrivals.iter().map(|arrival| arrival.number).collect();
    assert_eq!(numbers.len(), 200);
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn a_host_may_have_a_lag_too() {
    let mut lab = Lab::new(1);
    let switch = lab.network.add_switch(SwitchConfig::default());
    let nics = [0, 1].map(|_| lab.nic(switch, NicConfig::default(), Cable { links: 2, ..cable(wire(GBIT)) }));
    let [a, b] = nics.map(|nic| lab.interface(nic, 0, 0));
    lab.send(a, BROADCAST, 60, 1);
    lab.advance(MS);
    assert_eq!(receivers(&lab), [1], "one copy, and none comes back by the other link");
    lab.introduce();
    lab.saturate(&[crate::lab::Flow { flows: 2, ..flow(a, b, 1514) }], 50 * MS);
    assert_near(lab.bytes_between(a, b) as f64, 2.0 * line_bytes(GBIT, 1514, 50 * MS), 0.5, "both links");
}
