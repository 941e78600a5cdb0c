//! Changes of the current settings: everything is checked, then the kernel is asked, and only then the network changes.

use super::{FabricPlan, PortSettings, TrunkSettings};
use crate::{
    hosts::Hosts,
    packet::Segment,
    spec::{ChangeSpec, LinkChange, PortChange, SpecError, check_mtu},
};
use linerate_io::system;
use linerate_link::{InterfaceId, LinkConfig, Nanos, Network, SwitchConfig};
use std::{collections::BTreeMap, io};

/// The result of a change.
struct Changed {
    switches: Vec<(String, SwitchConfig)>,
    ports: Vec<(String, PortSettings)>,
    trunks: Vec<(String, TrunkSettings)>,
    /// TAP -> MTU.
    mtus: Vec<(usize, u32)>,
}

/// Why a change was not made. Nothing has changed.
#[derive(Debug)]
pub(crate) enum ChangeFailure {
    /// It is invalid.
    Spec(SpecError),
    /// The kernel refused a part of it.
    Host(String, io::Error),
}

impl From<SpecError> for ChangeFailure {
    fn from(error: SpecError) -> Self {
        Self::Spec(error)
    }
}

impl FabricPlan {
    /// Makes a change, and returns the monotonic time at which it took effect. If anything in it is wrong nothing
    /// changes.
    pub(crate) fn change(
        &mut self,
        change: &ChangeSpec,
        network: &mut Network<Segment>,
        hosts: &mut Hosts,
    ) -> Result<Nanos, ChangeFailure> {
        let changed = self.changed(change, hosts)?;
        set_mtus(&changed.mtus, network, hosts)?;
        let at = system::now_ns();
        for (name, config) in changed.switches {
            if let Some((id, current)) = self.switches.get_mut(&name) {
                current.clone_from(&config);
                network.set_switch(*id, config);
            }
        }
        for (name, settings) in changed.ports {
            if let Some(port) = self.ports.get_mut(&name) {
                network.set_nic_wire(port.nic, settings.wire, settings.queue_bytes);
                network.set_nic(port.nic, settings.nic.clone());
                for (link, &config) in settings.links.iter().enumerate() {
                    network.set_nic_link(port.nic, link, config);
                }
                port.settings = settings;
            }
        }
        for (name, settings) in changed.trunks {
            if let Some(trunk) = self.trunks.get_mut(&name) {
                network.set_trunk_wire(trunk.id, settings.wire, settings.queue_bytes);
                for (link, &config) in settings.links.iter().enumerate() {
                    network.set_trunk_link(trunk.id, link, config);
                }
                trunk.settings = settings;
            }
        }
        self.set_carriers(network, hosts)?;
        Ok(at)
    }

    /// Tells every host whether its cable has a carrier.
    fn set_carriers(&self, network: &Network<Segment>, hosts: &mut Hosts) -> Result<(), ChangeFailure> {
        for port in self.ports.values() {
            let carrier = network.carrier(port.nic);
            for host in &mut hosts.list[port.hosts.clone()] {
                let set = host.set_carrier(carrier);
                set.map_err(|error| ChangeFailure::Host(host.name.clone(), error))?;
            }
        }
        Ok(())
    }

    fn changed(&self, change: &ChangeSpec, hosts: &Hosts) -> Result<Changed, SpecError> {
        let mut changed =
            Changed { switches: Vec::new(), ports: Vec::new(), trunks: Vec::new(), mtus: Vec::new() };
        for (name, change) in &change.switches {
            let no_such = || SpecError::value("switches", name, "no such switch");
            let (_, current) = self.switches.get(name).ok_or_else(no_such)?;
            let config = change.apply(current);
            config.check().map_err(|error| SpecError::at(&format!("switches.{name}"), error))?;
            changed.switches.push((name.clone(), config));
        }
        for (name, change) in &change.ports {
            changed.ports.push((name.clone(), self.changed_port(name, change)?));
            self.changed_mtus(name, change, hosts, &mut changed.mtus)?;
        }
        for (name, change) in &change.trunks {
            let no_such = || SpecError::value("trunks", name, "no such trunk");
            let TrunkSettings { wire, queue_bytes, links } =
                &self.trunks.get(name).ok_or_else(no_such)?.settings;
            let at = format!("trunks.{name}");
            let wire = change.wire.apply(wire);
            wire.check().map_err(|error| SpecError::at(&format!("{at}.wire"), error))?;
            let links = changed_links(&at, links, &change.links)?;
            let queue_bytes = change.queue_bytes.or(*queue_bytes);
            changed.trunks.push((name.clone(), TrunkSettings { wire, queue_bytes, links }));
        }
        Ok(changed)
    }

    fn changed_port(&self, name: &str, change: &PortChange) -> Result<PortSettings, SpecError> {
        let no_such = || SpecError::value("ports", name, "no such port");
        let current = &self.ports.get(name).ok_or_else(no_such)?.settings;
        let at = format!("ports.{name}");
        let settings = PortSettings {
            wire: change.wire.apply(&current.wire),
            queue_bytes: change.queue_bytes.or(current.queue_bytes),
            nic: change.nic.apply(&current.nic),
            links: changed_links(&at, &current.links, &change.links)?,
        };
        settings.wire.check().map_err(|error| SpecError::at(&format!("{at}.wire"), error))?;
        settings.nic.check().map_err(|error| SpecError::at(&format!("{at}.nic"), error))?;
        Ok(settings)
    }

    fn changed_mtus(
        &self,
        name: &str,
        change: &PortChange,
        hosts: &Hosts,
        into: &mut Vec<(usize, u32)>,
    ) -> Result<(), SpecError> {
        let at = format!("ports.{name}");
        for (interface, &mtu) in &change.mtu {
            let own = self.ports[name].hosts.clone().find(|&index| hosts.list[index].name == *interface);
            let no_such = || SpecError::value(&at, "mtu", &format!("there is no interface {interface}"));
            let index = own.ok_or_else(no_such)?;
            check_mtu(&at, mtu)?;
            into.push((index, mtu));
        }
        Ok(())
    }
}

fn changed_links(
    at: &str,
    current: &[LinkConfig],
    changes: &BTreeMap<u32, LinkChange>,
) -> Result<Vec<LinkConfig>, SpecError> {
    let mut links = current.to_vec();
    for (&index, change) in changes {
        let problem =
            || format!("there is no link {index}; it has {} of them, counted from 0", current.len());
        let link = links.get_mut(index as usize).ok_or_else(|| SpecError::value(at, "links", &problem()))?;
        *link = change.apply(link);
        link.check().map_err(|error| SpecError::at(&format!("{at}.links.{index}"), error))?;
    }
    Ok(links)
}

/// Sets new MTUs of TAPs and their interfaces; if the kernel refuses one, the earlier ones are restored.
fn set_mtus(
    mtus: &[(usize, u32)],
    network: &mut Network<Segment>,
    hosts: &mut Hosts,
) -> Result<(), ChangeFailure> {
    for (position, &(index, mtu)) in mtus.iter().enumerate() {
        let Err(error) = hosts.list[index].tap.set_mtu(mtu) else { continue };
        for &(index, _) in &mtus[..position] {
            let host = &hosts.list[index];
            // The interface had this MTU before.
            drop(host.tap.set_mtu(host.mtu));
        }
        return Err(ChangeFailure::Host(hosts.list[index].name.clone(), error));
    }
    let interfaces: Vec<InterfaceId> = network.interfaces().collect();
    for &(index, mtu) in mtus {
        hosts.list[index].mtu = mtu;
        network.set_mtu(interfaces[index], mtu);
    }
    Ok(())
}
