//! The report of a fabric: counters since its start, by name.

use crate::{
    hosts::{HostStats, Hosts},
    packet::Segment,
    plan::{FabricPlan, PortSettings, TrunkSettings},
};
use linerate_link::{Nanos, Network, PortStats, SwitchConfig, SwitchStats, TrunkStats};
use serde::Serialize;
use std::collections::BTreeMap;

/// All counters. Unless a field says otherwise, it counts from the start.
#[derive(Clone, Debug, Serialize)]
pub struct FabricStats {
    /// Virtual time since the start.
    pub elapsed_ns: Nanos,
    /// The work of the fabric's thread.
    #[serde(flatten)]
    pub effort: Effort,
    /// Ports of hosts and arrays.
    pub ports: BTreeMap<String, NamedPortStats>,
    /// Cables between switches.
    pub trunks: BTreeMap<String, NamedTrunkStats>,
    /// Switches.
    pub switches: BTreeMap<String, NamedSwitchStats>,
}

/// The fabric's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// CPU time. Without NAPI it includes the receiving hosts' stacks.
    pub cpu_us: u64,
    /// The scheduling of the thread: `real_time`, `priority` (the highest of ordinary threads), `slices` (short time
    /// slices of an ordinary thread) or `ordinary`.
    pub scheduling: &'static str,
    /// How late it was.
    pub lag: LagStats,
}

/// Lag above which a measurement is doubtful.
const LATE_NS: Nanos = 1_000_000;

/// How late events were processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LagStats {
    /// Longest ever.
    pub max_ns: Nanos,
    /// Longest since the previous question.
    pub recent_max_ns: Nanos,
    /// Turns that began more than a millisecond late.
    pub late_turns: u64,
    /// Part of the network's time whose events were processed more than a millisecond late.
    pub late_ns: Nanos,
    /// Time that was given up: the network stood still.
    pub given_up_ns: Nanos,
}

/// A port and its interfaces.
#[derive(Clone, Debug, Serialize)]
pub struct NamedPortStats {
    /// The cable, both ways, and the NIC.
    #[serde(flatten)]
    pub port: PortStats,
    /// Whether the host sees a carrier.
    pub carrier: bool,
    /// The current settings.
    pub settings: PortSettings,
    /// TAPs by name.
    pub interfaces: BTreeMap<String, InterfaceStats>,
}

/// A trunk.
#[derive(Clone, Debug, Serialize)]
pub struct NamedTrunkStats {
    /// Both ways.
    #[serde(flatten)]
    pub trunk: TrunkStats,
    /// The current settings.
    pub settings: TrunkSettings,
}

/// A switch.
#[derive(Clone, Debug, Serialize)]
pub struct NamedSwitchStats {
    /// As a whole.
    #[serde(flatten)]
    pub switch: SwitchStats,
    /// The current settings.
    pub settings: SwitchConfig,
}

/// One TAP.
#[derive(Clone, Debug, Serialize)]
pub struct InterfaceStats {
    /// Its address.
    pub mac: String,
    /// The MTU that the fabric last gave it.
    pub mtu: u32,
    /// Packets between the host's stack and the NIC.
    #[serde(flatten)]
    pub(crate) packets: HostStats,
}

impl LagStats {
    /// Records a turn: events that were due since `due` are processed up to `until`, at the time `now`.
    pub(crate) fn note(&mut self, due: Nanos, until: Nanos, now: Nanos) {
        let lag = now.saturating_sub(due);
        self.max_ns = self.max_ns.max(lag);
        self.recent_max_ns = self.recent_max_ns.max(lag);
        if lag > LATE_NS {
            self.late_turns += 1;
            self.late_ns += until.min(now - LATE_NS) - due;
        }
    }
}

impl FabricStats {
    pub(crate) fn collect(
        plan: &FabricPlan,
        network: &Network<Segment>,
        hosts: &Hosts,
        effort: Effort,
    ) -> Self {
        let ports = plan.ports.iter().map(|(name, port)| {
            let interfaces = hosts.list[port.hosts.clone()].iter();
            let interfaces = interfaces.map(|host| {
                let mac = host.mac.map(|byte| format!("{byte:02x}")).join(":");
                (host.name.clone(), InterfaceStats { mac, mtu: host.mtu, packets: host.stats })
            });
            let stats = NamedPortStats {
                port: network.port_stats(port.nic),
                carrier: network.carrier(port.nic),
                settings: port.settings.clone(),
                interfaces: interfaces.collect(),
            };
            (name.clone(), stats)
        });
        let trunks = plan.trunks.iter().map(|(name, trunk)| {
            let stats =
                NamedTrunkStats { trunk: network.trunk_stats(trunk.id), settings: trunk.settings.clone() };
            (name.clone(), stats)
        });
        let switches = plan.switches.iter().map(|(name, (id, settings))| {
            let stats = NamedSwitchStats { switch: network.switch_stats(*id), settings: settings.clone() };
            (name.clone(), stats)
        });
        Self {
            elapsed_ns: network.now(),
            effort,
            ports: ports.collect(),
            trunks: trunks.collect(),
            switches: switches.collect(),
        }
    }
}
