//! The network between clients and one address of a server, and its faults: silence in one direction or both, resets, a
//! server that fails without a message.
//!
//! For TCP a pulled cable is silence: no data arrive, no end gets an error, and data are sent again until they are
//! delivered. So data that a sender has sent before the silence arrive long after, even if the sender has closed since:
//! this is the old write that must not overwrite a newer one.

use crate::link::{Side, SimPiece};
use crate::world::{SimNetwork, World, WorldEvent};
use linerate_io::Nanos;
use std::io::ErrorKind;
use std::net::IpAddr;

/// After a silence the first retransmission is within this time.
const RESEND_NS: Nanos = 200_000_000;
/// Connection attempts are repeated this often.
pub(crate) const ATTEMPT_NS: Nanos = 1_000_000_000;

/// Which directions get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Bytes from clients reach the server.
    pub to_server: bool,
    /// Bytes from the server reach its clients.
    pub to_client: bool,
}

impl Wire {
    /// Both directions get through.
    pub const WHOLE: Wire = Wire { to_server: true, to_client: true };
    /// Both directions are silent.
    pub const SILENT: Wire = Wire { to_server: false, to_client: false };
}

impl SimNetwork {
    /// Changes the wire to a server's address.
    pub fn set_wire(&self, server: IpAddr, wire: Wire) {
        let mut world = self.lock();
        world.wires.insert(server, wire);
        for link in world.links_to(server) {
            for side in [Side::Client, Side::Server] {
                if !world.is_silent(link, side) && !world.links[link].end(side).held.is_empty() {
                    let at = world.now + world.rng.range(0, RESEND_NS);
                    world.schedule(at, WorldEvent::Release { link, side });
                }
            }
        }
    }

    /// Resets every connection to a server's address; both ends are informed soon.
    pub fn reset_wire(&self, server: IpAddr) {
        let mut world = self.lock();
        for link in world.links_to(server) {
            world.cut(link, false);
        }
    }

    /// The server's ends of all connections to an address are lost, as in a power cut. Clients notice it when a piece
    /// of theirs is delivered.
    pub fn kill_server(&self, server: IpAddr) {
        let mut world = self.lock();
        for link in world.links_to(server) {
            world.links[link].end(Side::Server).drop_held();
            world.kill(link, Side::Server, ErrorKind::ConnectionReset);
        }
    }
}

impl World {
    fn links_to(&mut self, server: IpAddr) -> Vec<usize> {
        let links = self.links.iter_mut().enumerate();
        links.filter_map(|(at, link)| (link.end(Side::Server).addr.ip() == server).then_some(at)).collect()
    }

    /// Whether nothing is delivered to this end.
    pub(crate) fn is_silent(&mut self, link: usize, side: Side) -> bool {
        let server = self.links[link].end(Side::Server).addr.ip();
        let wire = self.wires.get(&server).copied().unwrap_or(Wire::WHOLE);
        match side {
            Side::Client => !wire.to_client,
            Side::Server => !wire.to_server,
        }
    }

    /// A piece would be delivered to an end now. In silence its sender keeps it, and may give up later.
    pub(crate) fn reach(&mut self, link: usize, side: Side, piece: SimPiece) {
        let silent = self.is_silent(link, side);
        let now = self.now;
        let end = self.links[link].end(side);
        if !silent && end.held.is_empty() {
            return self.arrive(link, side, piece);
        }
        if end.held.is_empty() {
            end.held_since = now;
            if let Some(timeout) = self.links[link].end(side.other()).user_timeout {
                // Kernels check this only when they retransmit, which becomes less and less frequent.
                let late = self.rng.range(0, timeout);
                self.schedule(now + timeout + late, WorldEvent::GiveUp { link, side: side.other() });
            }
        }
        self.links[link].end(side).held.push_back(piece);
    }

    /// Kept pieces are delivered, unless the end is silent again.
    pub(crate) fn release(&mut self, link: usize, side: Side) {
        if self.is_silent(link, side) {
            return;
        }
        while let Some(piece) = self.links[link].end(side).held.pop_front() {
            self.arrive(link, side, piece);
        }
    }

    /// The kernel of a sender has tried for the configured time.
    pub(crate) fn give_up(&mut self, link: usize, side: Side) {
        let Some(timeout) = self.links[link].end(side).user_timeout else { return };
        let now = self.now;
        let peer = self.links[link].end(side.other());
        if !peer.held.is_empty() && peer.held_since + timeout <= now {
            peer.drop_held();
            self.kill(link, side, ErrorKind::TimedOut);
        }
    }
}
