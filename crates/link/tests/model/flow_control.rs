//! Pause and priority flow control: no losses, and the price of this.

use crate::lab::{GBIT, Lab, MS, assert_near, cable, flow, line_bytes, mac, wire};
use linerate_link::{FlowControl, InterfaceId, NicConfig, Schedule, SwitchConfig, WireConfig};

fn pause() -> SwitchConfig {
    SwitchConfig { flow_control: FlowControl::Pause, queue_bytes: 64 << 10, ..SwitchConfig::default() }
}

fn pfc() -> SwitchConfig {
    SwitchConfig {
        flow_control: FlowControl::Pfc,
        lossless_priorities: vec![3],
        schedule: Schedule::ets(&[(3, 50), (0, 50)]),
        queue_bytes: 256 << 10,
        ..SwitchConfig::default()
    }
}

/// Four senders of 1 Gbit/s into one receiver.
fn incast(lab: &mut Lab, hosts: &[InterfaceId], length: u32, duration: u64) -> f64 {
    let flows: Vec<_> = (1..5).map(|from| flow(hosts[from], hosts[0], length)).collect();
    lab.saturate(&flows, duration);
    (1..5).map(|from| lab.bytes_between(hosts[from], hosts[0])).sum::<u64>() as f64
}

#[test]
fn pause_makes_incast_lossless_and_keeps_the_line_full() {
    for (delay_ns, length) in [(0, 1514), (0, 9014), (200_000, 1514), (200_000, 9014)] {
        let mut lab = Lab::new(1);
        // A long wire needs more than the usual space: it holds the frames that arrive after the pause.
        let config = SwitchConfig { xoff_bytes: 128 << 10, xon_bytes: 100 << 10, ..pause() };
        let switch = lab.network.add_switch(config);
        let long = WireConfig { delay_ns, ..wire(GBIT) };
        let hosts: Vec<_> = (0..5).map(|_| lab.host(switch, long, 0)).collect();
        lab.introduce();
        let bytes = incast(&mut lab, &hosts, length, 200 * MS);
        assert_eq!(lab.drops(), 0, "delay {delay_ns}, frames of {length}");
        let ramp = 100.0 * (2 * delay_ns) as f64 / (200.0 * 1e6);
        assert_near(bytes, line_bytes(GBIT, length, 200 * MS), ramp + 0.5, "throughput");
        let sender = lab.network.port_stats(lab.nics[1]);
        assert!(sender.pauses_asked > 10 && sender.sent.queues[0].pauses > 10);
        assert_near(
            sender.sent.queues[0].paused_ns as f64 / (200.0 * 1e6),
            0.75,
            5.0,
            "share of time in pause",
        );
    }
}

/// A pause must wait while the switch sends a long frame in the other direction.
#[test]
fn pause_is_lossless_in_both_directions_at_once() {
    for seed in 0..20 {
        let mut lab = Lab::new(seed);
        let config = SwitchConfig { xoff_bytes: 16 << 10, xon_bytes: 8 << 10, ..pause() };
        let switch = lab.network.add_switch(config);
        let hosts: Vec<_> = (0..5).map(|_| lab.host(switch, wire(GBIT / 4), 0)).collect();
        lab.introduce();
        let flows = (1..5).flat_map(|other| {
            let length = 9014 - 101 * ((seed as u32 + other as u32) % 9);
            [flow(hosts[other], hosts[0], length), flow(hosts[0], hosts[other], 9014)]
        });
        let flows: Vec<_> = flows.collect();
        lab.saturate(&flows, 100 * MS);
        assert_eq!(lab.drops(), 0, "seed {seed}");
    }
}

#[test]
fn the_senders_of_an_incast_get_equal_shares() {
    let (mut lab, _, hosts) = Lab::star(pause(), 5);
    lab.introduce();
    let total = incast(&mut lab, &hosts, 1514, 400 * MS);
    for from in 1..5 {
        assert_near(lab.bytes_between(hosts[from], hosts[0]) as f64, total / 4.0, 10.0, "a sender's share");
    }
}

#[test]
fn headroom_that_is_too_small_drops_and_says_so() {
    let config = SwitchConfig { headroom_bytes: Some(0), ..pause() };
    let (mut lab, _, hosts) = Lab::star(config, 5);
    lab.introduce();
    incast(&mut lab, &hosts, 1514, 20 * MS);
    let drops = lab.network.port_stats(lab.nics[0]).received.drops;
    assert!(drops.headroom > 0 && drops.total() == drops.headroom);
}

#[test]
fn a_nic_that_ignores_pauses_loses_frames() {
    let mut lab = Lab::new(1);
    let switch = lab.network.add_switch(pause());
    let receiver = lab.host(switch, wire(GBIT), 0);
    let deaf = NicConfig { pause_rx: false, ..NicConfig::default() };
    let senders = [0, 1].map(|_| {
        let nic = lab.nic(switch, deaf.clone(), cable(wire(GBIT)));
        lab.interface(nic, 0, 0)
    });
    lab.introduce();
    lab.saturate(&senders.map(|sender| flow(sender, receiver, 1514)), 50 * MS);
    let drops = lab.network.port_stats(lab.nics[0]).received.drops;
    assert_near(drops.headroom as f64, 4_063.0, 10.0, "half of what comes in");
    assert_eq!(lab.network.port_stats(lab.nics[1]).sent.queues[0].pauses, 0);
}

#[test]
fn pfc_protects_its_priority_only_and_ets_holds() {
    for share in [50, 70] {
        let mut lab = Lab::new(1);
        let config = SwitchConfig { schedule: Schedule::ets(&[(3, share), (0, 100 - share)]), ..pfc() };
        let switch = lab.network.add_switch(config);
        let san: Vec<_> = (0..2).map(|_| lab.host(switch, wire(GBIT), 3)).collect();
        let lan: Vec<_> = (0..2)
            .map(|_| {
                let nic = lab.nic(switch, NicConfig::default(), cable(wire(GBIT)));
                lab.interface(nic, 20, 0)
            })
            .collect();
        let shared = lab.nic(switch, NicConfig::default(), cable(wire(GBIT)));
        let to = [lab.interface(shared, 0, 3), lab.interface(shared, 20, 0)];
        lab.introduce();
        let both: Vec<_> = (san.iter().map(|&from| flow(from, to[0], 9014)))
            .chain(lan.iter().map(|&from| flow(from, to[1], 1514)))
            .collect();
        lab.saturate(&both, 200 * MS);
        let bytes =
            |from: &[InterfaceId], to| from.iter().map(|&from| lab.bytes_between(from, to)).sum::<u64>();
        let [iscsi, other] = [bytes(&san, to[0]) as f64, bytes(&lan, to[1]) as f64];
        let percent = 100.0 * iscsi / (iscsi + other);
        assert!((percent - f64::from(share)).abs() < 2.0, "{percent} % instead of {share}");
        let received = lab.network.port_stats(shared).received;
        assert_eq!(received.queues[3].drops, 0, "nothing of the lossless class is lost");
        assert!(received.queues[0].drops > 100, "the other class drops as before");
        assert!(lab.network.port_stats(lab.nics[0]).sent.queues[3].pauses > 10);
        assert_eq!(lab.network.port_stats(lab.nics[2]).sent.queues[0].pauses, 0);
    }
}

#[test]
fn a_pause_spreads_to_those_who_did_nothing() {
    // The array sends to the congested host and to a free one over the same wire: with 802.3x the free one is slowed
    // too.
    let run = |flow_control| {
        let (mut lab, _, hosts) = Lab::star(SwitchConfig { flow_control, ..pause() }, 6);
        lab.introduce();
        let array = flow(hosts[1], hosts[0], 1514);
        let victim = flow(hosts[1], hosts[5], 1514);
        let others = (2..5).map(|from| flow(hosts[from], hosts[0], 1514));
        // The array's ring serves both receivers in turn.
        lab.inbox.arrivals.clear();
        let others: Vec<_> = others.collect();
        let (mut to_victim, end) = (0, lab.network.now() + 200 * MS);
        while lab.network.now() < end {
            lab.fill_in_turn(&[array, victim], 64);
            lab.saturate(&others, MS / 4);
            to_victim += lab.bytes_between(hosts[1], hosts[5]);
        }
        (to_victim as f64 / line_bytes(GBIT, 1514, 200 * MS), lab.drops())
    };
    let (free, drops) = run(FlowControl::None);
    assert_near(free, 0.5, 5.0, "without flow control half of the array's line");
    assert!(drops > 1000);
    let (held_up, drops) = run(FlowControl::Pause);
    assert!((0.1..0.35).contains(&held_up), "with it, as slow as the congested one: {held_up}");
    assert_eq!(drops, 0);
}

#[test]
fn a_pause_crosses_a_trunk_and_stops_the_sender_behind_it() {
    let mut lab = Lab::new(1);
    let config = pause();
    let switches = [0, 1].map(|_| lab.network.add_switch(config.clone()));
    let fast = lab.host(switches[0], wire(GBIT), 0);
    let slow = lab.host(switches[1], wire(GBIT / 10), 0);
    let trunk = lab.network.add_trunk(switches[0], switches[1], cable(wire(GBIT)));
    lab.introduce();
    lab.saturate(&[flow(fast, slow, 1514)], 200 * MS);
    assert_near(
        lab.bytes_between(fast, slow) as f64,
        line_bytes(GBIT / 10, 1514, 200 * MS),
        1.0,
        "slow line",
    );
    assert_eq!(lab.drops(), 0);
    assert!(lab.network.trunk_stats(trunk).a_to_b.queues[0].pauses > 5, "the trunk's sender is paused");
    assert!(lab.network.port_stats(lab.nics[0]).sent.queues[0].pauses > 5, "and so is the host behind it");
    let held = lab.network.trunk_stats(trunk).a_to_b.queues[0].queued_bytes_max;
    assert!(held <= (64 << 10) + 30_000, "the first switch holds no more than xoff and headroom: {held}");
}

#[test]
fn a_sender_that_is_let_go_may_be_heard_before_what_let_it_go() {
    let mut lab = Lab::new(1);
    let switch = lab.network.add_switch(SwitchConfig { xoff_bytes: 3000, xon_bytes: 0, ..pause() });
    let sender = lab.host(switch, wire(GBIT), 0);
    let far = lab.host(switch, WireConfig { delay_ns: 50 * MS, ..wire(GBIT / 10) }, 0);
    let near = lab.host(switch, wire(GBIT), 0);
    lab.introduce();
    lab.advance(lab.network.now() + 200 * MS);
    lab.inbox.arrivals.clear();
    for _ in 0..4 {
        lab.send(sender, mac(far.index()), 1514, 0);
    }
    for _ in 0..40 {
        lab.send(sender, mac(near.index()), 1514, 0);
    }
    for _ in 0..30 {
        lab.advance(lab.network.now() + 10_000);
    }
    lab.advance(lab.network.now() + 200 * MS);
    assert_eq!((lab.drops(), lab.inbox.arrivals.len()), (0, 44));
}
