//! The names of a specification, what they are in the network, and how they change.

use crate::{
    hosts::{Host, Hosts},
    packet::Segment,
    spec::{ChangeSpec, FabricSpec, PortSpec, SpecError, TrunkSpec, parse_mac},
};
use linerate_link::{
    Cable, InterfaceConfig, InterfaceId, Network, NicConfig, NicId, SwitchConfig, SwitchId, TrunkId,
    WireConfig,
};
use std::{collections::BTreeMap, io, ops::Range};

/// What a network is made of, by name.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) switches: BTreeMap<String, (SwitchId, SwitchConfig)>,
    pub(crate) ports: BTreeMap<String, Port>,
    pub(crate) trunks: BTreeMap<String, Trunk>,
}

#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) nic: NicId,
    pub(crate) settings: PortSettings,
    /// Its TAPs among the hosts.
    pub(crate) hosts: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct PortSettings {
    wire: WireConfig,
    queue_bytes: Option<u64>,
    nic: NicConfig,
    /// By interface; only those that are to change.
    mtu: BTreeMap<String, u32>,
}

#[derive(Debug)]
pub(crate) struct Trunk {
    pub(crate) id: TrunkId,
    wire: WireConfig,
    queue_bytes: Option<u64>,
}

/// A TAP that could not be made.
#[derive(Debug)]
pub(crate) struct TapFailure {
    /// The port and the interface.
    pub(crate) at: String,
    pub(crate) error: io::Error,
}

impl Plan {
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
            plan.trunks.insert(name.clone(), Trunk { id, wire: *wire, queue_bytes: *queue_bytes });
        }
        Ok((plan, network, Hosts::new(hosts)))
    }

    fn add_port(
        &mut self,
        spec: &PortSpec,
        network: &mut Network<Segment>,
        hosts: &mut Vec<Host>,
    ) -> Result<(), TapFailure> {
        let PortSpec { name, switch, links, wire, queue_bytes, nic, interfaces } = spec;
        let cable = Cable { wire: *wire, links: *links, queue_bytes: *queue_bytes };
        let id = network.add_nic(self.switches[switch].0, nic.clone(), cable);
        let first = hosts.len();
        for interface in interfaces {
            let mac = interface.mac.as_deref().and_then(parse_mac);
            hosts.push(Host::open(interface, mac, wire.up).map_err(|error| TapFailure {
                at: format!("ports.{name}.interfaces.{}", interface.interface),
                error,
            })?);
            let config =
                InterfaceConfig { vlan: interface.vlan, priority: interface.priority, mtu: interface.mtu };
            network.add_interface(id, config);
        }
        let settings =
            PortSettings { wire: *wire, queue_bytes: *queue_bytes, nic: nic.clone(), mtu: BTreeMap::new() };
        self.ports.insert(name.clone(), Port { nic: id, settings, hosts: first..hosts.len() });
        Ok(())
    }

    /// Changes what is named. If anything in it is wrong nothing changes.
    pub(crate) fn change(
        &mut self,
        change: &ChangeSpec,
        network: &mut Network<Segment>,
        hosts: &mut Hosts,
    ) -> Result<(), ChangeFailure> {
        let switches = self.changed_switches(change)?;
        let ports = self.changed_ports(change, hosts)?;
        let trunks = self.changed_trunks(change)?;
        for (name, config) in switches {
            if let Some((id, current)) = self.switches.get_mut(&name) {
                current.clone_from(&config);
                network.set_switch(*id, config);
            }
        }
        for (name, settings) in ports {
            if let Some(port) = self.ports.get_mut(&name) {
                port.set(settings, network, hosts)?;
            }
        }
        for (name, wire, queue_bytes) in trunks {
            if let Some(trunk) = self.trunks.get_mut(&name) {
                (trunk.wire, trunk.queue_bytes) = (wire, queue_bytes);
                network.set_trunk_wire(trunk.id, wire, queue_bytes);
            }
        }
        Ok(())
    }

    fn changed_switches(&self, change: &ChangeSpec) -> Result<Vec<(String, SwitchConfig)>, SpecError> {
        let changed = change.switches.iter().map(|(name, change)| {
            let at = format!("switches.{name}");
            let (_, current) = self
                .switches
                .get(name)
                .ok_or_else(|| SpecError::value("switches", name, "no such switch"))?;
            let config = change.apply(current);
            config.check().map_err(|error| SpecError::at(&at, error))?;
            Ok((name.clone(), config))
        });
        changed.collect()
    }

    fn changed_ports(
        &self,
        change: &ChangeSpec,
        hosts: &Hosts,
    ) -> Result<Vec<(String, PortSettings)>, SpecError> {
        let changed = change.ports.iter().map(|(name, change)| {
            let at = format!("ports.{name}");
            let port = self.ports.get(name).ok_or_else(|| SpecError::value("ports", name, "no such port"))?;
            let current = &port.settings;
            let settings = PortSettings {
                wire: change.wire.apply(&current.wire),
                queue_bytes: change.queue_bytes.or(current.queue_bytes),
                nic: change.nic.apply(&current.nic),
                mtu: change.mtu.clone(),
            };
            settings.wire.check().map_err(|error| SpecError::at(&format!("{at}.wire"), error))?;
            settings.nic.check().map_err(|error| SpecError::at(&format!("{at}.nic"), error))?;
            for (interface, mtu) in &settings.mtu {
                let is_ours = hosts.list[port.hosts.clone()].iter().any(|host| host.name == *interface);
                if !is_ours {
                    return Err(SpecError::value(&at, "mtu", &format!("there is no interface {interface}")));
                }
                crate::spec::check_mtu(&at, *mtu)?;
            }
            Ok((name.clone(), settings))
        });
        changed.collect()
    }

    fn changed_trunks(
        &self,
        change: &ChangeSpec,
    ) -> Result<Vec<(String, WireConfig, Option<u64>)>, SpecError> {
        let changed = change.trunks.iter().map(|(name, change)| {
            let trunk =
                self.trunks.get(name).ok_or_else(|| SpecError::value("trunks", name, "no such trunk"))?;
            let wire = change.wire.apply(&trunk.wire);
            wire.check().map_err(|error| SpecError::at(&format!("trunks.{name}.wire"), error))?;
            Ok((name.clone(), wire, change.queue_bytes.or(trunk.queue_bytes)))
        });
        changed.collect()
    }
}

/// Why a change did not happen.
#[derive(Debug)]
pub(crate) enum ChangeFailure {
    /// It makes no sense; everything is as it was.
    Spec(SpecError),
    /// The kernel refused a part of it.
    Host(String, io::Error),
}

impl From<SpecError> for ChangeFailure {
    fn from(error: SpecError) -> Self {
        Self::Spec(error)
    }
}

impl Port {
    fn set(
        &mut self,
        settings: PortSettings,
        network: &mut Network<Segment>,
        hosts: &mut Hosts,
    ) -> Result<(), ChangeFailure> {
        let interfaces: Vec<InterfaceId> = network.interfaces().collect();
        for index in self.hosts.clone() {
            let host = &hosts.list[index];
            let refused = |error| ChangeFailure::Host(host.name.clone(), error);
            if let Some(&mtu) = settings.mtu.get(&host.name) {
                host.tap.set_mtu(mtu).map_err(refused)?;
                network.set_mtu(interfaces[index], mtu);
            }
            if settings.wire.up != self.settings.wire.up {
                host.tap.set_carrier(settings.wire.up).map_err(refused)?;
            }
        }
        network.set_nic_wire(self.nic, settings.wire, settings.queue_bytes);
        network.set_nic(self.nic, settings.nic.clone());
        self.settings = settings;
        Ok(())
    }
}
