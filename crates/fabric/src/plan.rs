//! The names of a specification: their objects in the network, and the current settings.

mod change;

use crate::{
    hosts::{Hosts, TapHost},
    packet::Segment,
    spec::{FabricSpec, PortSpec, TrunkSpec, parse_mac},
};
use linerate_link::{
    Cable, InterfaceConfig, LinkConfig, Network, NicConfig, NicId, SwitchConfig, SwitchId, TrunkId,
    WireConfig,
};
use serde::Serialize;
use std::{collections::BTreeMap, io, ops::Range};

pub(crate) use change::ChangeFailure;

/// The objects of a network, by name.
#[derive(Debug, Default)]
pub(crate) struct FabricPlan {
    pub(crate) switches: BTreeMap<String, (SwitchId, SwitchConfig)>,
    pub(crate) ports: BTreeMap<String, PlannedPort>,
    pub(crate) trunks: BTreeMap<String, Trunk>,
}

#[derive(Debug)]
pub(crate) struct PlannedPort {
    pub(crate) nic: NicId,
    pub(crate) settings: PortSettings,
    /// Its TAPs among the hosts.
    pub(crate) hosts: Range<usize>,
}

/// The current settings of a port; see [`PortSpec`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortSettings {
    /// The cable.
    pub wire: WireConfig,
    /// Most bytes that wait at the switch for this port; None: the switch's setting.
    pub queue_bytes: Option<u64>,
    /// The card.
    pub nic: NicConfig,
    /// Each link of the cable.
    pub links: Vec<LinkConfig>,
}

#[derive(Debug)]
pub(crate) struct Trunk {
    pub(crate) id: TrunkId,
    pub(crate) settings: TrunkSettings,
}

/// The current settings of a trunk; see [`TrunkSpec`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrunkSettings {
    /// The cable.
    pub wire: WireConfig,
    /// Most bytes that wait at either end; None: the switch's setting.
    pub queue_bytes: Option<u64>,
    /// Each link of the cable.
    pub links: Vec<LinkConfig>,
}

/// A TAP that could not be made.
#[derive(Debug)]
pub(crate) struct TapFailure {
    /// The port and the interface.
    pub(crate) at: String,
    pub(crate) error: io::Error,
}

impl FabricPlan {
    /// Builds the network of a valid specification, and the TAPs that it needs.
    pub(crate) fn build(spec: &FabricSpec) -> Result<(Self, Network<Segment>, Hosts), TapFailure> {
        let mut plan = Self::default();
        let mut network = Network::new(spec.seed);
        let mut hosts = Vec::new();
        for switch in &spec.switches {
            let id = network.add_switch(switch.settings.clone());
            plan.switches.insert(switch.name.clone(), (id, switch.settings.clone()));
        }
        for port in &spec.ports {
            plan.add_port(port, &mut network, &mut hosts)?;
        }
        for TrunkSpec { name, a, b, links, wire, queue_bytes } in &spec.trunks {
            let cable = Cable { wire: *wire, links: *links, queue_bytes: *queue_bytes };
            let id = network.add_trunk(plan.switches[a].0, plan.switches[b].0, cable);
            let settings =
                TrunkSettings { wire: *wire, queue_bytes: *queue_bytes, links: sound_links(*links) };
            plan.trunks.insert(name.clone(), Trunk { id, settings });
        }
        Ok((plan, network, Hosts::new(hosts)))
    }

    fn add_port(
        &mut self,
        spec: &PortSpec,
        network: &mut Network<Segment>,
        hosts: &mut Vec<TapHost>,
    ) -> Result<(), TapFailure> {
        let PortSpec { name, switch, links, wire, queue_bytes, nic, interfaces } = spec;
        let cable = Cable { wire: *wire, links: *links, queue_bytes: *queue_bytes };
        let id = network.add_nic(self.switches[switch].0, nic.clone(), cable);
        let first = hosts.len();
        for interface in interfaces {
            let mac = interface.mac.as_deref().and_then(parse_mac);
            let host = TapHost::open(interface, mac, network.carrier(id)).map_err(|error| TapFailure {
                at: format!("ports.{name}.interfaces.{}", interface.name()),
                error,
            })?;
            hosts.push(host);
            let config =
                InterfaceConfig { vlan: interface.vlan, priority: interface.priority, mtu: interface.mtu };
            network.add_interface(id, config);
        }
        let settings = PortSettings {
            wire: *wire,
            queue_bytes: *queue_bytes,
            nic: nic.clone(),
            links: sound_links(*links),
        };
        self.ports.insert(name.clone(), PlannedPort { nic: id, settings, hosts: first..hosts.len() });
        Ok(())
    }
}

fn sound_links(links: u32) -> Vec<LinkConfig> {
    vec![LinkConfig::default(); links as usize]
}
