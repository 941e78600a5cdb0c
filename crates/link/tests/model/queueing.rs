//! Which frames pass when more arrive than can leave.

use crate::lab::{GBIT, Lab, MS, assert_near, cable, flow, line_bytes, wire};
use linerate_link::{InterfaceId, NicConfig, Schedule, SwitchConfig};

/// Two senders with priorities 3 and 0 into one receiver with an interface for each.
fn two_classes(config: SwitchConfig) -> (Lab, [InterfaceId; 2], [InterfaceId; 2]) {
    let mut lab = Lab::new(1);
    let switch = lab.network.add_switch(config);
    let interface = |lab: &mut Lab, vlan, priority| {
        let nic = lab.nic(switch, NicConfig::default(), cable(wire(GBIT)));
        lab.interface(nic, vlan, priority)
    };
    let from = [interface(&mut lab, 10, 3), interface(&mut lab, 20, 0)];
    let shared = lab.nic(switch, NicConfig::default(), cable(wire(GBIT)));
    let to = [lab.interface(shared, 10, 3), lab.interface(shared, 20, 0)];
    lab.introduce();
    (lab, from, to)
}

#[test]
fn ets_shares_hold_and_each_class_alone_has_the_whole_line() {
    for (share, length) in [(50, [1514, 1514]), (70, [9014, 9014]), (50, [9014, 1514]), (30, [1514, 64])] {
        let schedule = Schedule::ets(&[(3, share), (0, 100 - share)]);
        let config = SwitchConfig { schedule, queue_bytes: 256 << 10, ..SwitchConfig::default() };
        let (mut lab, from, to) = two_classes(config);
        let flows = [flow(from[0], to[0], length[0]), flow(from[1], to[1], length[1])];
        lab.saturate(&flows, 200 * MS);
        let bytes = [lab.bytes_between(from[0], to[0]), lab.bytes_between(from[1], to[1])];
        let percent = 100.0 * bytes[0] as f64 / (bytes[0] + bytes[1]) as f64;
        assert!((percent - f64::from(share)).abs() < 1.0, "{percent} % instead of {share} with {length:?}");
        for class in 0..2 {
            lab.advance(lab.network.now() + 100 * MS);
            lab.saturate(&flows[class..=class], 200 * MS);
            let alone = lab.bytes_between(from[class], to[class]) as f64;
            assert_near(alone, line_bytes(GBIT, length[class], 200 * MS), 0.3, "alone");
        }
    }
}

#[test]
fn strict_priority_starves_the_lower_one() {
    let (mut lab, from, to) = two_classes(SwitchConfig::default());
    lab.saturate(&[flow(from[0], to[0], 1514), flow(from[1], to[1], 1514)], 100 * MS);
    assert_near(
        lab.bytes_between(from[0], to[0]) as f64,
        line_bytes(GBIT, 1514, 100 * MS),
        0.3,
        "priority 3",
    );
    assert!(lab.bytes_between(from[1], to[1]) < 10_000);
}

#[test]
fn a_host_shares_its_own_line_among_its_interfaces() {
    let mut lab = Lab::new(1);
    let switch = lab.network.add_switch(SwitchConfig::default());
    let schedule = Schedule::ets(&[(3, 70), (0, 30)]);
    let nic = lab.nic(switch, NicConfig { schedule, ..NicConfig::default() }, cable(wire(GBIT)));
    let from = [lab.interface(nic, 10, 3), lab.interface(nic, 20, 0)];
    let nics = [0, 1].map(|_| lab.nic(switch, NicConfig::default(), cable(wire(GBIT))));
    let to = [lab.interface(nics[0], 10, 3), lab.interface(nics[1], 20, 0)];
    lab.introduce();
    lab.saturate(&[flow(from[0], to[0], 1514), flow(from[1], to[1], 1514)], 100 * MS);
    let bytes = [0, 1].map(|class| lab.bytes_between(from[class], to[class]) as f64);
    assert_near(bytes[0] / (bytes[0] + bytes[1]), 0.7, 1.0, "share of the SAN interface");
    assert_eq!(lab.drops(), 0, "the host waits, nothing is lost");
}

#[test]
fn a_shallow_queue_drops_its_tail_and_never_holds_more() {
    let config = SwitchConfig { queue_bytes: 64 << 10, ..SwitchConfig::default() };
    let (mut lab, _, hosts) = Lab::star(config, 3);
    lab.introduce();
    lab.saturate(&[flow(hosts[0], hosts[2], 1514), flow(hosts[1], hosts[2], 1514)], 100 * MS);
    let received = lab.network.port_stats(lab.nics[2]).received;
    // If two senders are in step, one may get the free place every time; together they fill the line.
    let bytes = lab.bytes_between(hosts[0], hosts[2]) + lab.bytes_between(hosts[1], hosts[2]);
    assert_near(bytes as f64, line_bytes(GBIT, 1514, 100 * MS), 0.3, "both");
    assert_near(received.drops.queue as f64, 8_127.0, 2.0, "twice the line rate comes in");
    assert!(received.queues[0].queued_bytes_max <= 64 << 10);
    assert!(received.queues[0].queued_bytes_max > (64 << 10) - 1514);
    assert_eq!(received.drops.total(), received.drops.queue);
}

#[test]
fn the_queues_of_a_switch_share_its_memory() {
    let config = SwitchConfig { queue_bytes: 1 << 20, buffer_bytes: 1 << 20, ..SwitchConfig::default() };
    let (mut lab, switch, hosts) = Lab::star(config, 6);
    lab.introduce();
    let flows = [(0, 4), (1, 4), (2, 5), (3, 5)].map(|(from, to)| flow(hosts[from], hosts[to], 1514));
    lab.saturate(&flows, 100 * MS);
    let stats = lab.network.switch_stats(switch);
    assert!(stats.buffered_bytes_max > (1 << 20) - 1514 && stats.buffered_bytes_max <= 1 << 20);
    let received = [4, 5].map(|nic| lab.network.port_stats(lab.nics[nic]).received);
    assert!(received.iter().all(|lane| lane.drops.buffer > 100 && lane.drops.queue == 0));
    lab.advance(lab.network.now() + 1000 * MS);
    assert_eq!(lab.network.switch_stats(switch).buffered_bytes, 0, "all of it is given back");
}

#[test]
fn a_congested_queue_marks_instead_of_dropping() {
    let config = SwitchConfig { ecn_threshold_bytes: 30_000, ..SwitchConfig::default() };
    let (mut lab, _, hosts) = Lab::star(config, 3);
    lab.introduce();
    lab.saturate(&[flow(hosts[0], hosts[2], 1514)], 10 * MS);
    assert!(lab.inbox.arrivals.iter().all(|arrival| !arrival.marked), "a free line marks nothing");
    lab.saturate(&[flow(hosts[0], hosts[2], 1514), flow(hosts[1], hosts[2], 1514)], 2 * MS);
    let marked = lab.inbox.arrivals.iter().filter(|arrival| arrival.marked).count() as u64;
    let queue = lab.network.port_stats(lab.nics[2]).received.queues[0];
    assert!(marked > 50 && queue.marked >= marked);
    let first = lab.inbox.arrivals.iter().position(|arrival| arrival.marked).unwrap();
    // 30,000 bytes are 19.8 frames: with twice the line rate coming in, the queue is that long after 40 frames.
    assert!((38..=44).contains(&first), "{first} frames passed unmarked");
}

#[test]
fn a_port_may_have_a_queue_of_its_own_size() {
    let mut lab = Lab::new(1);
    let switch = lab.network.add_switch(SwitchConfig::default());
    let senders = [0, 1].map(|_| lab.host(switch, wire(GBIT), 0));
    let shallow = linerate_link::Cable { queue_bytes: Some(10_000), ..cable(wire(GBIT)) };
    let nic = lab.nic(switch, NicConfig::default(), shallow);
    let receiver = lab.interface(nic, 0, 0);
    lab.introduce();
    lab.saturate(&[flow(senders[0], receiver, 1514), flow(senders[1], receiver, 1514)], 20 * MS);
    assert!(lab.network.port_stats(nic).received.queues[0].queued_bytes_max <= 10_000);
}
