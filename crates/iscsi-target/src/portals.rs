//! Portals: the configured addresses, their portal groups, and which addresses the host has now.
//!
//! A portal with an address listens on it in any case. A portal with an interface listens on every address of the
//! interface, also on later ones, and stops when an address is removed. When the host loses an address, the sessions of
//! this address end at once, because they cannot be reached any more.

use crate::{
    array::ArrayError,
    config::{ArrayConfig, PortalConfig},
};
use linerate_io::net::NetEvent;
use linerate_iscsi_proto::send_targets::TargetAddress;
use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
};

/// A portal as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Portal {
    pub(crate) on: ListenOn,
    /// Tag of its portal group.
    pub(crate) group: u16,
}

/// See [`Portal`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenOn {
    /// One address, or all of a family.
    Address(SocketAddr),
    /// The addresses of an interface.
    Interface { name: String, port: u16 },
}

impl Portal {
    /// The portals of a configuration.
    pub(crate) fn all(config: &ArrayConfig) -> Result<Vec<Self>, ArrayError> {
        if config.portals.is_empty() {
            return Err(ArrayError::NoPortal);
        }
        config.portals.iter().map(Self::of).collect()
    }

    fn of(config: &PortalConfig) -> Result<Self, ArrayError> {
        let on = match (&config.address, &config.interface) {
            (Some(address), None) => {
                let parsed = address.parse();
                ListenOn::Address(parsed.map_err(|_| ArrayError::Portal(address.clone()))?)
            }
            (None, Some(name)) => ListenOn::Interface { name: name.clone(), port: config.port },
            _ => return Err(ArrayError::PortalPlace),
        };
        Ok(Self { on, group: config.group })
    }
}

/// Tags of all portal groups, ascending: those of portals, and those that are only configured.
pub(crate) fn groups(config: &ArrayConfig) -> Result<Vec<u16>, ArrayError> {
    let described: Vec<u16> = config.portal_groups.iter().map(|group| group.tag).collect();
    let mut tags: Vec<u16> =
        config.portals.iter().map(|portal| portal.group).chain(described.clone()).collect();
    tags.sort_unstable();
    tags.dedup();
    if tags.first() == Some(&0) {
        return Err(ArrayError::GroupZero);
    }
    match described.iter().find(|tag| described.iter().filter(|other| other == tag).count() > 1) {
        Some(tag) => Err(ArrayError::GroupTwice(*tag)),
        None => Ok(tags),
    }
}

/// Addresses that an interface portal uses: those that are reachable without naming an interface.
pub(crate) fn can_serve(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    }
}

/// The current portals, and the known addresses of the host.
#[derive(Debug, Default)]
pub(crate) struct PortalTable {
    listening: Vec<(SocketAddr, u16)>,
    /// Interface and address; empty if they are not watched.
    host: BTreeSet<(String, IpAddr)>,
    /// Addresses that the host had and has lost.
    lost: BTreeSet<IpAddr>,
}

impl PortalTable {
    pub(crate) fn add(&mut self, addr: SocketAddr, group: u16) {
        self.listening.push((addr, group));
    }

    pub(crate) fn remove(&mut self, addr: SocketAddr) {
        self.listening.retain(|(listening, _)| *listening != addr);
    }

    /// The addresses that accept connections now, and the portal group of each.
    pub(crate) fn listening(&self) -> impl Iterator<Item = (SocketAddr, u16)> {
        self.listening.iter().copied().filter(|(addr, _)| !self.lost.contains(&addr.ip()))
    }

    /// The host has these addresses.
    pub(crate) fn learn_all(&mut self, host: impl IntoIterator<Item = (String, IpAddr)>) {
        self.host.extend(host);
    }

    pub(crate) fn learn(&mut self, event: &NetEvent) {
        match event {
            NetEvent::AddressAdded { interface, address } => {
                self.host.insert((interface.clone(), *address));
                self.lost.remove(address);
            }
            NetEvent::AddressRemoved { interface, address } => {
                self.host.remove(&(interface.clone(), *address));
                if !self.host.iter().any(|(_, other)| other == address) {
                    self.lost.insert(*address);
                }
            }
            NetEvent::LinkUp { .. } | NetEvent::LinkDown { .. } => {}
        }
    }

    pub(crate) fn is_lost(&self, address: IpAddr) -> bool {
        self.lost.contains(&address)
    }

    /// The addresses of a target, for a peer that is connected to `local`.
    pub(crate) fn addresses(&self, local: SocketAddr) -> Vec<TargetAddress> {
        let mut seen = Vec::new();
        for (portal, group) in self.listening() {
            if portal.ip().is_unspecified() {
                self.behind_wildcard(portal, local.ip(), |addr| seen.push((addr, group)));
            } else {
                seen.push((portal, group));
            }
        }
        let address = |(portal, group): (SocketAddr, u16)| TargetAddress {
            host: portal.ip().to_string(),
            port: portal.port(),
            portal_group_tag: Some(group),
        };
        seen.into_iter().map(address).collect()
    }

    /// A wildcard portal is reachable at the address that the peer has used, and at every other address of the host. An
    /// initiator that used the loopback address needs no other.
    fn behind_wildcard(&self, portal: SocketAddr, found: IpAddr, mut see: impl FnMut(SocketAddr)) {
        let same_family = |address: &IpAddr| address.is_ipv4() == portal.is_ipv4();
        if same_family(&found) {
            see(SocketAddr::new(found, portal.port()));
        }
        if found.is_loopback() {
            return;
        }
        let others: BTreeSet<IpAddr> = self.host.iter().map(|(_, address)| *address).collect();
        let told = |address: &IpAddr| {
            same_family(address) && *address != found && !address.is_loopback() && can_serve(*address)
        };
        others.into_iter().filter(told).for_each(|address| see(SocketAddr::new(address, portal.port())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(interface: &str, address: &str) -> NetEvent {
        NetEvent::AddressAdded { interface: interface.into(), address: address.parse().unwrap() }
    }

    fn removed(interface: &str, address: &str) -> NetEvent {
        NetEvent::AddressRemoved { interface: interface.into(), address: address.parse().unwrap() }
    }

    fn told(table: &PortalTable, local: &str) -> Vec<String> {
        let local = SocketAddr::new(local.parse().unwrap(), 3260);
        table.addresses(local).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_address_is_listed_while_the_host_has_it_anywhere() {
        let mut table = PortalTable::default();
        table.add("10.0.0.1:3260".parse().unwrap(), 1);
        table.add("10.0.1.1:3261".parse().unwrap(), 2);
        assert_eq!(told(&table, "10.0.0.1"), ["10.0.0.1:3260,1", "10.0.1.1:3261,2"]);
        table.learn(&added("a", "10.0.0.1"));
        table.learn(&added("b", "10.0.0.1"));
        table.learn(&removed("a", "10.0.0.1"));
        assert!(!table.is_lost([10, 0, 0, 1].into()), "it has moved to the other interface");
        table.learn(&removed("b", "10.0.0.1"));
        assert_eq!(told(&table, "10.0.1.1"), ["10.0.1.1:3261,2"]);
        table.learn(&added("a", "10.0.0.1"));
        assert_eq!(told(&table, "10.0.1.1").len(), 2);
    }

    #[test]
    fn a_wildcard_portal_is_all_addresses_of_its_family() {
        let mut table = PortalTable::default();
        table.add("0.0.0.0:3260".parse().unwrap(), 1);
        table.add("[::]:3260".parse().unwrap(), 2);
        for address in ["127.0.0.1", "10.0.0.1", "10.0.1.1", "::1", "fd00::1", "fe80::1"] {
            table.learn(&added("a", address));
        }
        assert_eq!(told(&table, "10.0.1.1"), ["10.0.1.1:3260,1", "10.0.0.1:3260,1", "[fd00::1]:3260,2"]);
        assert_eq!(told(&table, "127.0.0.1"), ["127.0.0.1:3260,1"]);
    }
}
