//! What a fabric tells about itself: counters since its start, by name.

use crate::{
    hosts::{HostStats, Hosts},
    packet::Segment,
    plan::Plan,
};
use linerate_link::{Nanos, Network, PortStats, SwitchStats, TrunkStats};
use serde::Serialize;
use std::collections::BTreeMap;

/// All counters. Whatever does not say otherwise adds up from the start.
#[derive(Clone, Debug, Serialize)]
pub struct FabricStats {
    /// Time since the start, as the network has lived it.
    pub elapsed_ns: Nanos,
    /// CPU time of the fabric's thread. Without NAPI it carries frames into the hosts' stacks too.
    pub cpu_us: u64,
    /// How late the fabric was.
    pub lag: LagStats,
    /// Ports of hosts and arrays.
    pub ports: BTreeMap<String, NamedPortStats>,
    /// Cables between switches.
    pub trunks: BTreeMap<String, TrunkStats>,
    /// Switches.
    pub switches: BTreeMap<String, SwitchStats>,
}

/// How late things were done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LagStats {
    /// Longest ever.
    pub max_ns: Nanos,
    /// Longest since the previous question.
    pub recent_max_ns: Nanos,
    /// Turns that began more than a millisecond late.
    pub late_turns: u64,
    /// Time that was not caught up with: the network stood still.
    pub given_up_ns: Nanos,
}

/// A port and its interfaces.
#[derive(Clone, Debug, Serialize)]
pub struct NamedPortStats {
    /// The cable, both ways, and the NIC.
    #[serde(flatten)]
    pub port: PortStats,
    /// TAPs by name.
    pub interfaces: BTreeMap<String, InterfaceStats>,
}

/// One TAP.
#[derive(Clone, Debug, Serialize)]
pub struct InterfaceStats {
    /// Its address.
    pub mac: String,
    /// Packets between the host's stack and the NIC.
    #[serde(flatten)]
    pub(crate) packets: HostStats,
}

impl LagStats {
    pub(crate) fn note(&mut self, lag: Nanos, late: Nanos) {
        self.max_ns = self.max_ns.max(lag);
        self.recent_max_ns = self.recent_max_ns.max(lag);
        self.late_turns += u64::from(lag > late);
    }
}

impl FabricStats {
    pub(crate) fn collect(
        plan: &Plan,
        network: &Network<Segment>,
        hosts: &Hosts,
        cpu_us: u64,
        lag: LagStats,
    ) -> Self {
        let ports = plan.ports.iter().map(|(name, port)| {
            let interfaces = hosts.list[port.hosts.clone()].iter();
            let interfaces = interfaces.map(|host| {
                let mac = host.mac.map(|byte| format!("{byte:02x}")).join(":");
                (host.name.clone(), InterfaceStats { mac, packets: host.stats })
            });
            let stats =
                NamedPortStats { port: network.port_stats(port.nic), interfaces: interfaces.collect() };
            (name.clone(), stats)
        });
        let trunks = plan.trunks.iter().map(|(name, trunk)| (name.clone(), network.trunk_stats(trunk.id)));
        let switches = plan.switches.iter().map(|(name, (id, _))| (name.clone(), network.switch_stats(*id)));
        Self {
            elapsed_ns: network.now(),
            cpu_us,
            lag,
            ports: ports.collect(),
            trunks: trunks.collect(),
            switches: switches.collect(),
        }
    }
}
