//! Times and rates of a path without other traffic.

use crate::lab::{BROADCAST, GBIT, Lab, MS, US, assert_near, cable, flow, line_bytes, mac, wire};
use linerate_link::{NicConfig, SwitchConfig, WireConfig};

/// Two hosts on a switch; the second one's NIC and both wires as given.
fn pair(wire: WireConfig, nic: NicConfig) -> (Lab, [linerate_link::InterfaceId; 2]) {
    let mut lab = Lab::new(3);
    let switch = lab.network.add_switch(SwitchConfig::default());
    let first = lab.host(switch, wire, 0);
    let nic = lab.nic(switch, nic, cable(wire));
    let second = lab.interface(nic, 0, 0);
    (lab, [first, second])
}

fn arrival_times(lab: &Lab) -> Vec<u64> {
    lab.inbox.arrivals.iter().map(|arrival| arrival.at).collect()
}

#[test]
fn a_frame_takes_two_serializations_and_two_delays() {
    let (mut lab, [a, b]) = pair(WireConfig { delay_ns: 50_000, ..wire(GBIT) }, NicConfig::default());
    lab.send(a, mac(b.index()), 1514, 0);
    lab.advance(MS);
    // (1514 + 24) * 8 = 12,304 ns per hop at 1 Gbit/s.
    assert_eq!(arrival_times(&lab), [2 * 12_304 + 2 * 50_000]);
    lab.send(a, mac(b.index()), 10, 0);
    lab.advance(2 * MS);
    assert_eq!(arrival_times(&lab)[1], MS + 2 * 84 * 8 + 100_000, "short frames are padded to 60 bytes");
}

#[test]
fn a_line_carries_its_rate_at_any_speed() {
    for rate in [10_000_000, GBIT, 10 * GBIT, 97 * GBIT] {
        for length in [64, 1514, 9014] {
            let (mut lab, [a, b]) = pair(wire(rate), NicConfig::default());
            // About 10,000 frames; a ring for the shortest interval at which senders fill it.
            let duration = 10_000 * (u64::from(length) + 24) * 8 * GBIT / rate;
            lab.introduce();
            let nic = lab.nics[0];
            lab.network.set_nic(nic, NicConfig { tx_ring_frames: 12_000, ..NicConfig::default() });
            lab.saturate(&[flow(a, b, length)], duration);
            let expected = line_bytes(rate, length, duration);
            // The first frame needs some time to arrive, and the last ones are still in transit.
            let edge = 100.0 * 4.0 * f64::from(length) / expected + 0.05;
            assert_near(
                lab.bytes_between(a, b) as f64,
                expected,
                edge,
                &format!("{rate} bit/s, {length} bytes"),
            );
        }
    }
}

#[test]
fn both_directions_are_independent() {
    let (mut lab, [a, b]) = pair(wire(GBIT), NicConfig::default());
    lab.introduce();
    lab.saturate(&[flow(a, b, 1514), flow(b, a, 1514)], 100 * MS);
    for (from, to) in [(a, b), (b, a)] {
        assert_near(lab.bytes_between(from, to) as f64, line_bytes(GBIT, 1514, 100 * MS), 0.2, "full duplex");
    }
}

#[test]
fn jitter_stays_in_its_range_and_keeps_order() {
    let jittery = WireConfig { delay_ns: 100_000, jitter_ns: 500_000, ..wire(GBIT) };
    let (mut lab, [a, b]) = pair(jittery, NicConfig::default());
    for step in 0..500 {
        lab.advance(step * 3 * MS);
        lab.send(a, mac(b.index()), 60, 0);
    }
    lab.advance(2000 * MS);
    let extra: Vec<_> = lab
        .inbox
        .arrivals
        .iter()
        .map(|arrival| arrival.at - arrival.number * 3 * MS - 2 * 84 * 8 - 200_000)
        .collect();
    assert_eq!(extra.len(), 500);
    assert!(extra.iter().all(|&extra| extra <= MS), "two wires add at most twice the jitter");
    let mean = extra.iter().sum::<u64>() as f64 / 500.0;
    assert_near(mean, 500_000.0, 10.0, "mean jitter of two wires");
    lab.saturate(&[flow(a, b, 60)], 20 * MS);
    assert!(lab.inbox.arrivals.windows(2).all(|pair| pair[0].number < pair[1].number), "nothing overtakes");
}

#[test]
fn loss_is_as_frequent_as_asked_and_repeats_with_the_seed() {
    let run = |seed| {
        let mut lab = Lab::new(seed);
        let switch = lab.network.add_switch(SwitchConfig::default());
        let a = lab.host(switch, WireConfig { loss: 0.01, ..wire(GBIT) }, 0);
        let b = lab.host(switch, wire(GBIT), 0);
        lab.introduce();
        lab.saturate(&[flow(a, b, 1514)], 1000 * MS);
        let arrived: Vec<_> = lab.inbox.arrivals.iter().map(|arrival| arrival.number).collect();
        (arrived, lab.network.port_stats(lab.nics[0]).sent.drops.loss)
    };
    let (arrived, lost) = run(1);
    assert_near(lost as f64, 812.7, 15.0, "1 % of 81,274 frames");
    assert!((81_250..=81_290).contains(&(arrived.len() as u64 + lost)), "{} + {lost}", arrived.len());
    assert_eq!(run(1), (arrived.clone(), lost));
    assert_ne!(run(2).0, arrived);
}

#[test]
fn moderation_gathers_frames_for_one_interrupt() {
    let nic = NicConfig { moderation_us: 100, ..NicConfig::default() };
    let (mut lab, [a, b]) = pair(wire(GBIT), nic);
    lab.send(a, mac(b.index()), 1514, 0);
    lab.advance(MS);
    assert_eq!(arrival_times(&lab), [2 * 12_304 + 100_000], "a lone frame waits for the whole time");
    lab.saturate(&[flow(a, b, 1514)], 100 * MS);
    let stats = lab.network.port_stats(lab.nics[1]).nic;
    let per_interrupt = stats.frames as f64 / stats.interrupts as f64;
    assert_near(per_interrupt, 9.0, 3.0, "frames of 12.3 us within 100 us, the first one included");
    assert_near(
        lab.bytes_between(a, b) as f64,
        line_bytes(GBIT, 1514, 100 * MS),
        0.5,
        "no throughput is lost",
    );
    assert!(
        lab.inbox
            .arrivals
            .windows(2)
            .all(|pair| (pair[0].interrupt == pair[1].interrupt) == (pair[0].at == pair[1].at))
    );
}

#[test]
fn enough_frames_interrupt_early() {
    let nic = NicConfig { moderation_us: 1000, moderation_frames: 4, ..NicConfig::default() };
    let (mut lab, [a, b]) = pair(wire(GBIT), nic);
    for _ in 0..6 {
        lab.send(a, mac(b.index()), 1514, 0);
    }
    lab.advance(10 * MS);
    let times = arrival_times(&lab);
    assert_eq!(times[..4], [5 * 12_304; 4]);
    assert_eq!(times[4..], [6 * 12_304 + MS; 2]);
}

#[test]
fn a_ring_that_is_too_small_for_the_moderation_drops() {
    let nic = NicConfig { moderation_us: 1000, rx_ring_frames: 40, ..NicConfig::default() };
    let (mut lab, [a, b]) = pair(wire(GBIT), nic.clone());
    lab.introduce();
    lab.saturate(&[flow(a, b, 1514)], 100 * MS);
    let stats = lab.network.port_stats(lab.nics[1]);
    // 1 ms brings 81 frames and the one that started it; 40 of them find space.
    assert_near(stats.received.drops.ring as f64 / 8_127.0, 1.0 - 40.0 / 82.3, 5.0, "share of frames lost");
    assert_eq!(stats.nic.ring_frames_max, 40);
    let (mut lab, [a, b]) = pair(wire(GBIT), NicConfig { pause_tx: true, ..nic });
    lab.introduce();
    lab.saturate(&[flow(a, b, 1514)], 100 * MS);
    let stats = lab.network.port_stats(lab.nics[1]);
    assert_eq!(stats.received.drops.ring, 0, "a NIC that may pause the switch loses nothing");
    assert!(stats.nic.pauses_asked > 50 && stats.received.queues[0].pauses > 50);
}

#[test]
fn frames_longer_than_the_way_takes_are_dropped_where_it_ends() {
    let mut lab = Lab::new(1);
    let switch = lab.network.add_switch(SwitchConfig { mtu: 4000, ..SwitchConfig::default() });
    let [a, b] = [0, 1].map(|_| lab.host(switch, wire(GBIT), 0));
    lab.network.set_mtu(b, 1500);
    for length in [1514, 1515, 4014, 4015, 9014, 9015] {
        lab.send(a, mac(b.index()), length, 0);
    }
    lab.advance(10 * MS);
    assert_eq!(lab.inbox.arrivals.len(), 1);
    let [first, second] = [0, 1].map(|nic| lab.network.port_stats(lab.nics[nic]));
    // By the switch 4015 and 9014, by the sender's own interface 9015.
    assert_eq!(first.sent.drops.mtu, 3);
    assert_eq!(second.received.drops.mtu, 2);
}

#[test]
fn a_full_ring_holds_the_host_back() {
    let (mut lab, [a, b]) = pair(wire(GBIT), NicConfig::default());
    assert_eq!(lab.network.room(a), 512);
    for _ in 0..100 {
        lab.send(a, mac(b.index()), 1514, 0);
    }
    assert_eq!(lab.network.room(a), 412);
    lab.advance(10 * 12_304 + 5 * US);
    assert_eq!(lab.network.room(a), 422, "a place is free once its frame has been sent");
    lab.send(a, BROADCAST, 60, 0);
    lab.advance(10 * MS);
    assert_eq!((lab.network.room(a), lab.inbox.arrivals.len()), (512, 101));
}
