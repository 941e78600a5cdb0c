//! The addresses on which a worker listens: those of the configuration, and those of interfaces that it follows.

use super::Worker;
use crate::{
    array::ArrayError,
    portals::{ListenOn, Portal, can_serve},
};
use linerate_io::{Driver, Handle, SocketOptions, net::NetEvent};
use std::{
    io,
    net::{IpAddr, SocketAddr},
};

/// An address on which it listens.
pub(super) struct Listener {
    pub(super) handle: Handle,
    addr: SocketAddr,
    pub(super) group: u16,
    /// The interface that it follows.
    interface: Option<String>,
}

impl<D: Driver> Worker<D> {
    /// Serves a portal; connections go to the least loaded worker. A portal that follows an interface begins with the
    /// addresses from [`Worker::network`].
    pub(crate) fn serve(&mut self, portal: Portal) -> Result<(), ArrayError> {
        match portal.on {
            ListenOn::Address(addr) => {
                let listened = self.listen(addr, portal.group, None);
                listened.map_err(|error| ArrayError::Listen { portal: addr, error })
            }
            ListenOn::Interface { .. } => {
                self.following.push(portal);
                Ok(())
            }
        }
    }

    fn listen(&mut self, portal: SocketAddr, group: u16, interface: Option<&str>) -> io::Result<()> {
        let handle = self.context.driver.listen(portal, &SocketOptions::default())?;
        let addr = self.context.driver.local_addr(handle)?;
        self.context.shared.portals().add(addr, group);
        self.listeners.push(Listener { handle, addr, group, interface: interface.map(Into::into) });
        Ok(())
    }

    /// The host's links or addresses have changed. For simulators; the array itself watches the network.
    pub fn network(&mut self, event: &NetEvent) {
        self.context.shared.portals().learn(event);
        self.follow(event);
    }

    pub(super) fn follow(&mut self, event: &NetEvent) {
        match event {
            NetEvent::AddressAdded { interface, address } => {
                if let Err(error) = self.address_added(interface, *address) {
                    tracing::error!(
                        event = "portal_down",
                        interface,
                        %error,
                        "a new address cannot be served yet; it is tried again ten times per second"
                    );
                    self.unserved.push((interface.clone(), *address));
                }
            }
            NetEvent::AddressRemoved { interface, address } => self.address_removed(interface, *address),
            NetEvent::LinkUp { .. } | NetEvent::LinkDown { .. } => {}
        }
    }

    /// Listens on a new address, for every portal that follows its interface.
    pub(crate) fn address_added(&mut self, interface: &str, address: IpAddr) -> Result<(), ArrayError> {
        if self.stopping.is_some() || !can_serve(address) {
            return Ok(());
        }
        for portal in self.following.clone() {
            let ListenOn::Interface { name, port } = portal.on else { continue };
            let portal_is = |listener: &Listener| {
                (listener.interface.as_deref(), listener.addr.ip(), listener.group)
                    == (Some(interface), address, portal.group)
            };
            if name != interface || self.listeners.iter().any(portal_is) {
                continue;
            }
            let addr = SocketAddr::new(address, port);
            let listened = self.listen(addr, portal.group, Some(interface));
            listened.map_err(|error| ArrayError::Listen { portal: addr, error })?;
            tracing::info!(event = "portal_up", portal = %addr, interface, "a portal has come");
        }
        Ok(())
    }

    /// Tries the addresses again that it could not listen on. An address that came back at once may still be in use by
    /// the closed listener: the kernel ends its last operation later.
    pub(super) fn serve_again(&mut self) {
        for (interface, address) in std::mem::take(&mut self.unserved) {
            if self.address_added(&interface, address).is_err() {
                self.unserved.push((interface, address));
            }
        }
    }

    fn address_removed(&mut self, interface: &str, address: IpAddr) {
        self.unserved.retain(|(other, unserved)| other != interface || *unserved != address);
        let gone = |listener: &mut Listener| {
            listener.interface.as_deref() == Some(interface) && listener.addr.ip() == address
        };
        for listener in self.listeners.extract_if(.., gone) {
            tracing::warn!(event = "portal_down", portal = %listener.addr, interface, "a portal is gone");
            self.context.driver.close(listener.handle);
            self.context.shared.portals().remove(listener.addr);
        }
        if !self.context.shared.portals().is_lost(address) {
            return;
        }
        for index in 0..self.slots.len() as u32 {
            self.with_slot(index, |connection, context| {
                if connection.local().ip() == address {
                    connection.close(context);
                }
            });
        }
    }
}
