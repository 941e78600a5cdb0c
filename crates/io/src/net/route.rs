//! The rtnetlink(7) messages about links and addresses: requests for lists, and the contents of replies and
//! notifications.
//!
//! Only the attributes in use are decoded: a message counts even if a later kernel changes another attribute of it.

use libc::{RTM_DELADDR, RTM_DELLINK, RTM_NEWADDR, RTM_NEWLINK};
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NlaBuffer, NlasIterator, Parseable, parse_i32,
};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressFlags, AddressHeader, AddressMessage},
    link::{LinkFlags, LinkHeader, LinkMessage},
};
use std::net::IpAddr;

/// Groups of notifications in `struct sockaddr_nl`: links, and addresses of both families.
pub(super) const GROUPS: u32 = 0x1 | 0x10 | 0x100;

/// `struct ifinfomsg` and `struct ifaddrmsg`.
const LINK_BYTES: usize = 16;
const ADDRESS_BYTES: usize = 8;

/// The content of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RouteFact {
    /// A link with this name exists; `up`: it is set up and has a carrier.
    Link { index: u32, name: String, up: bool },
    /// A link was removed.
    LinkGone { index: u32 },
    /// A link has a usable address.
    Address { index: u32, address: IpAddr },
    /// The address was removed, or cannot be used yet.
    AddressGone { index: u32, address: IpAddr },
    /// The kernel changed links or addresses while it listed them, so the list may be incomplete.
    Interrupted,
    /// The list is complete.
    Done,
    /// The request was refused with this error number.
    Refused(i32),
}

/// A list that can be requested.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    Links,
    Addresses,
}

/// A request for a whole list.
pub(super) fn request(list: List) -> Vec<u8> {
    let payload = match list {
        List::Links => RouteNetlinkMessage::GetLink(LinkMessage::default()),
        List::Addresses => RouteNetlinkMessage::GetAddress(AddressMessage::default()),
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(payload));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// The content of a datagram's messages, in order. Other messages and malformed ones are ignored.
pub(super) fn facts(mut datagram: &[u8]) -> Vec<RouteFact> {
    let mut facts = Vec::new();
    while let Ok(message) = NetlinkBuffer::new_checked(datagram) {
        if message.flags() & NLM_F_DUMP_INTR != 0 {
            facts.push(RouteFact::Interrupted);
        }
        facts.extend(fact(message.message_type(), message.payload()));
        datagram = datagram.get((message.length() as usize).next_multiple_of(4)..).unwrap_or(&[]);
    }
    facts
}

fn fact(kind: u16, body: &[u8]) -> Option<RouteFact> {
    match kind {
        NLMSG_DONE => Some(RouteFact::Done),
        NLMSG_ERROR => Some(RouteFact::Refused(parse_i32(body.get(..4)?).ok()?.wrapping_neg())),
        RTM_NEWLINK | RTM_DELLINK => link(kind == RTM_NEWLINK, body),
        RTM_NEWADDR | RTM_DELADDR => address(kind == RTM_NEWADDR, body),
        _ => None,
    }
}

fn link(exists: bool, body: &[u8]) -> Option<RouteFact> {
    let LinkHeader { interface_family, index, flags, .. } = LinkHeader::parse(body).ok()?;
    // A bridge reports its ports in the same group: a port that leaves the bridge still exists.
    if interface_family != AddressFamily::Unspec {
        return None;
    }
    if !exists {
        return Some(RouteFact::LinkGone { index });
    }
    let name = attributes(body.get(LINK_BYTES..)?).find(|one| one.kind() == libc::IFLA_IFNAME)?;
    // The kernel allows names that are not UTF-8.
    let name = name.value().split(|byte| *byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    Some(RouteFact::Link { index, name, up: flags.contains(LinkFlags::Up | LinkFlags::LowerUp) })
}

fn address(exists: bool, body: &[u8]) -> Option<RouteFact> {
    let AddressHeader { index, flags, .. } = AddressHeader::parse(body).ok()?;
    let mut flags = AddressFlags::from_bits_retain(flags.bits().into());
    // On a point-to-point link `Address` is the peer's. `Local` is missing if the two are the same (IPv6).
    let (mut any, mut local) = (None, None);
    for attribute in attributes(body.get(ADDRESS_BYTES..)?) {
        match AddressAttribute::parse(&attribute) {
            Ok(AddressAttribute::Address(address)) => any = Some(address),
            Ok(AddressAttribute::Local(address)) => local = Some(address),
            Ok(AddressAttribute::Flags(all)) => flags = all,
            _ => {}
        }
    }
    let address = local.or(any)?;
    // Until duplicate address detection is done, no socket can listen on it. The kernel reports it again then.
    let usable = exists && !flags.intersects(AddressFlags::Tentative | AddressFlags::Dadfailed);
    Some(if usable {
        RouteFact::Address { index, address }
    } else {
        RouteFact::AddressGone { index, address }
    })
}

/// The attributes up to the first malformed one.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = NlaBuffer<&[u8]>> {
    NlasIterator::new(bytes).map_while(Result::ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    const HEADER_BYTES: usize = 16;

    fn message(kind: u16, flags: u16, body: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut message = vec![0; HEADER_BYTES];
        message.extend_from_slice(body);
        for (kind, value) in attributes {
            message.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
            message.extend_from_slice(&kind.to_ne_bytes());
            message.extend_from_slice(value);
            message.resize(message.len().next_multiple_of(4), 0);
        }
        let len = message.len() as u32;
        message[0..4].copy_from_slice(&len.to_ne_bytes());
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message[6..8].copy_from_slice(&flags.to_ne_bytes());
        message
    }

    fn link_body(family: u8, index: u32, flags: u32) -> Vec<u8> {
        [&[family, 0, 0, 0][..], &index.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 4]].concat()
    }

    fn address_body(family: u8, flags: u8, index: u32) -> Vec<u8> {
        [&[family, 24, flags, 0][..], &index.to_ne_bytes()].concat()
    }

    const BRIDGE: u8 = 7;

    #[test]
    fn a_link_needs_a_carrier_to_be_up_and_messages_of_bridges_are_ignored() {
        let up = 1 | 1 << 16;
        let datagram = [
            message(RTM_NEWLINK, 0, &link_body(0, 7, up), &[(99, b"xyz"), (3, b"p0\0")]),
            message(RTM_NEWLINK, 0, &link_body(0, 7, 1), &[(3, b"p0\0")]),
            message(RTM_DELLINK, 0, &link_body(BRIDGE, 7, up), &[(3, b"p0\0")]),
            message(RTM_DELLINK, 0, &link_body(0, 7, 0), &[]),
        ]
        .concat();
        let name = || "p0".to_owned();
        let expected = [
            RouteFact::Link { index: 7, name: name(), up: true },
            RouteFact::Link { index: 7, name: name(), up: false },
            RouteFact::LinkGone { index: 7 },
        ];
        assert_eq!(facts(&datagram), expected);
    }

    #[test]
    fn requests_are_dumps_of_links_and_of_addresses() {
        let expected = |kind, body| message(kind, 0x301, &vec![0; body], &[]);
        assert_eq!(request(List::Links), expected(18, LINK_BYTES));
        assert_eq!(request(List::Addresses), expected(22, ADDRESS_BYTES));
    }

    #[test]
    fn a_name_that_is_not_utf_8_is_a_name() {
        let datagram = message(RTM_NEWLINK, 0, &link_body(0, 7, 0), &[(3, b"p\xff\0")]);
        assert_eq!(facts(&datagram), [RouteFact::Link { index: 7, name: "p\u{fffd}".into(), up: false }]);
    }

    #[test]
    fn an_address_counts_once_it_can_be_used() {
        let v6 = Ipv6Addr::LOCALHOST;
        let tentative = 0x40_u32.to_ne_bytes();
        let datagram = [
            message(RTM_NEWADDR, 0, &address_body(2, 0, 3), &[(1, &[10, 0, 0, 2]), (2, &[10, 0, 0, 1])]),
            message(RTM_DELADDR, 0, &address_body(2, 0, 3), &[(2, &[10, 0, 0, 1])]),
            message(RTM_NEWADDR, 0, &address_body(10, 0, 3), &[(1, &v6.octets()), (8, &tentative)]),
            message(RTM_NEWADDR, 0, &address_body(10, 0x80, 3), &[(1, &v6.octets())]),
        ]
        .concat();
        let (local, v6) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from(v6));
        let expected = [
            RouteFact::Address { index: 3, address: local },
            RouteFact::AddressGone { index: 3, address: local },
            RouteFact::AddressGone { index: 3, address: v6 },
            RouteFact::Address { index: 3, address: v6 },
        ];
        assert_eq!(facts(&datagram), expected);
    }

    #[test]
    fn the_end_of_a_list_an_interruption_and_a_refusal_are_reported() {
        let datagram =
            [message(NLMSG_DONE, 0x10, &[0; 4], &[]), message(NLMSG_ERROR, 0, &(-1_i32).to_ne_bytes(), &[])]
                .concat();
        assert_eq!(facts(&datagram), [RouteFact::Interrupted, RouteFact::Done, RouteFact::Refused(1)]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 16_u16..23, len in 0_u32..300) {
            facts(&bytes);
            let mut framed = bytes;
            if framed.len() >= HEADER_BYTES {
                framed[0..4].copy_from_slice(&len.to_ne_bytes());
                framed[4..6].copy_from_slice(&kind.to_ne_bytes());
            }
            facts(&framed);
        }
    }
}
