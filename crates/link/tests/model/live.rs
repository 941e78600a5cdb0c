//! Changes while frames are in transit.

use crate::lab::{GBIT, Lab, MS, assert_near, flow, line_bytes, mac, wire};
use linerate_link::{FlowControl, NicConfig, Schedule, SwitchConfig, WireConfig};

#[test]
fn rate_delay_and_loss_change_at_once() {
    let (mut lab, _, hosts) = Lab::star(SwitchConfig::default(), 2);
    lab.introduce();
    let nic = lab.nics[0];
    lab.saturate(&[flow(hosts[0], hosts[1], 1514)], 50 * MS);
    lab.network.set_nic_wire(nic, wire(GBIT / 10), None);
    lab.saturate(&[flow(hosts[0], hosts[1], 1514)], 50 * MS);
    let expected = line_bytes(GBIT / 10, 1514, 50 * MS);
    assert_near(lab.bytes_between(hosts[0], hosts[1]) as f64, expected, 1.0, "a tenth of the rate");
    lab.advance(lab.network.now() + 1000 * MS);
    lab.network.set_nic_wire(nic, WireConfig { delay_ns: 5 * MS, ..wire(GBIT) }, None);
    lab.inbox.arrivals.clear();
    let sent = lab.network.now();
    lab.send(hosts[0], mac(1), 1514, 0);
    lab.advance(sent + 100 * MS);
    assert_eq!(lab.inbox.arrivals[0].at - sent, 2 * 12_304 + 5 * MS);
    lab.network.set_nic_wire(nic, WireConfig { loss: 1.0, ..wire(GBIT) }, None);
    lab.inbox.arrivals.clear();
    lab.send(hosts[0], mac(1), 1514, 0);
    lab.advance(sent + 200 * MS);
    assert!(lab.inbox.arrivals.is_empty());
}

#[test]
fn a_cable_that_is_pulled_out_loses_what_is_on_it() {
    let (mut lab, _, hosts) = Lab::star(SwitchConfig::default(), 2);
    lab.introduce();
    let (nic, long) = (lab.nics[1], WireConfig { delay_ns: MS, ..wire(GBIT) });
    lab.network.set_nic_wire(nic, long, None);
    lab.send(hosts[0], mac(1), 1514, 0);
    lab.advance(lab.network.now() + MS / 2);
    lab.network.set_nic_wire(nic, WireConfig { up: false, ..long }, None);
    lab.send(hosts[0], mac(1), 1514, 0);
    lab.advance(lab.network.now() + 10 * MS);
    assert!(lab.inbox.arrivals.is_empty());
    assert_eq!(lab.network.port_stats(nic).received.drops.down, 2);
    lab.network.set_nic_wire(nic, long, None);
    lab.send(hosts[0], mac(1), 1514, 0);
    lab.advance(lab.network.now() + 10 * MS);
    assert_eq!(lab.inbox.arrivals.len(), 1);
}

/// Faults of cables and changes of rules under pause must not leave the fabric paused for ever.
#[test]
fn no_change_leaves_a_sender_paused_for_ever() {
    let pause = SwitchConfig { flow_control: FlowControl::Pause, ..SwitchConfig::default() };
    let (mut lab, switch, hosts) = Lab::star(pause.clone(), 3);
    lab.introduce();
    let flows = [flow(hosts[0], hosts[2], 1514), flow(hosts[1], hosts[2], 1514)];
    let pfc = SwitchConfig {
        flow_control: FlowControl::Pfc,
        lossless_priorities: vec![0],
        schedule: Schedule::ets(&[(0, 100)]),
        ..SwitchConfig::default()
    };
    for round in 0..60 {
        lab.saturate(&flows, MS + round * 37_123);
        match round % 6 {
            0 => lab.network.set_switch(switch, SwitchConfig::default()),
            1 => lab.network.set_switch(switch, pause.clone()),
            2 => lab.network.set_switch(switch, pfc.clone()),
            3 => {
                for nic in [lab.nics[0], lab.nics[2]] {
                    lab.network.set_nic_wire(nic, WireConfig { up: false, ..wire(GBIT) }, None);
                    lab.network.set_nic_wire(nic, WireConfig { delay_ns: 300_000, ..wire(GBIT) }, None);
                }
            }
            4 => {
                lab.nics.clone().into_iter().for_each(|nic| lab.network.set_nic_wire(nic, wire(GBIT), None));
            }
            _ => {
                let deaf = NicConfig { pause_rx: false, ..NicConfig::default() };
                lab.network.set_nic(lab.nics[1], deaf);
                lab.network.set_nic(lab.nics[1], NicConfig::default());
            }
        }
        lab.saturate(&flows, 20 * MS);
        let bytes: u64 = [0, 1].iter().map(|&from| lab.bytes_between(hosts[from], hosts[2])).sum();
        assert_near(bytes as f64, line_bytes(GBIT, 1514, 20 * MS), 8.0, &format!("round {round}"));
    }
    lab.advance(lab.network.now() + 1000 * MS);
    assert_eq!(lab.network.switch_stats(switch).buffered_bytes, 0);
    assert!(lab.network.next_event().is_none(), "everything comes to rest");
    assert_eq!(lab.network.room(hosts[0]), 512);
}
