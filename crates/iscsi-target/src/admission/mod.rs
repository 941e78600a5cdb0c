//! Decides which logins are admitted when there are too many.
//!
//! Peers are distinguished by address: before a login nothing else is known about them, and a name is only a claim.
//!
//! - `connections.rs`: connections that have not logged in (half-open) and connections of sessions. If there are too
//!   many half-open ones, the oldest of the address with the most is dropped. Known initiators may have more sessions
//!   than others.
//! - `chap_delays.rs`: after a wrong CHAP response, the next response of the same peer is delayed.

mod chap_delays;
mod connections;

pub(crate) use chap_delays::{ChapAttempt, ChapCheck, ChapDelays, ChapIdentity};
pub(crate) use connections::{Connections, Standing, Victim};

use std::net::{IpAddr, Ipv6Addr};

/// Identifies a connection from its arrival to its end, on all workers; ascending, never reused.
pub(crate) type Ticket = u64;

/// The source of connections: an IPv4 address, or the /64 network of an IPv6 address, because one host may use all of
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Peer;

    #[test]
    fn a_peer_is_an_ipv4_address_or_an_ipv6_network() {
        let peer = |text: &str| Peer::of(text.parse().unwrap());
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("192.0.2.1"), peer("::ffff:192.0.2.1"));
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff::9"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
    }
}
