//! Route netlink on the wire: what the kernel tells of links and addresses, and how it is asked (rtnetlink(7)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Groups of notifications, as `struct sockaddr_nl` names them: links, and addresses of both families.
pub(super) const GROUPS: u32 = 0x1 | 0x10 | 0x100;

const HEADER_BYTES: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_GETADDR: u16 = 22;
/// `struct ifinfomsg` and `struct ifaddrmsg`.
const LINK_BYTES: usize = 16;
const ADDRESS_BYTES: usize = 8;

/// What one message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// A link is there, under this name; `up`: it is set up and has a carrier.
    Link { index: u32, name: String, up: bool },
    /// A link is gone.
    LinkGone { index: u32 },
    /// A link has an address that can be used.
    Address { index: u32, address: IpAddr },
    /// It has it no longer, or not yet.
    AddressGone { index: u32, address: IpAddr },
    /// The kernel changed what it was listing, so the list may lack something.
    Interrupted,
    /// The list is complete.
    Done,
    /// The request was refused with this error number.
    Refused(i32),
}

/// A list that can be asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    Links,
    Addresses,
}

/// A request for a whole list.
pub(super) fn request(list: List) -> Vec<u8> {
    const NLM_F_REQUEST_DUMP: u16 = 0x1 | 0x300;
    let (kind, body) = match list {
        List::Links => (RTM_GETLINK, LINK_BYTES),
        List::Addresses => (RTM_GETADDR, ADDRESS_BYTES),
    };
    let mut message = vec![0; HEADER_BYTES + body];
    let len = message.len() as u32;
    message[0..4].copy_from_slice(&len.to_ne_bytes());
    message[4..6].copy_from_slice(&kind.to_ne_bytes());
    message[6..8].copy_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
    message
}

/// What a datagram's messages say, in order. Other messages, and what is malformed, are passed over.
pub(super) fn facts(mut datagram: &[u8]) -> Vec<Fact> {
    const NLM_F_DUMP_INTR: u16 = 0x10;
    let mut facts = Vec::new();
    while let (Some(len), Some(kind), Some(flags)) =
        (u32_at(datagram, 0), u16_at(datagram, 4), u16_at(datagram, 6))
    {
        let Some(body) = datagram.get(HEADER_BYTES..len as usize) else { break };
        if flags & NLM_F_DUMP_INTR != 0 {
            facts.push(Fact::Interrupted);
        }
        facts.extend(fact(kind, body));
        datagram = datagram.get((len as usize).next_multiple_of(4)..).unwrap_or(&[]);
    }
    facts
}

fn fact(kind: u16, body: &[u8]) -> Option<Fact> {
    match kind {
        NLMSG_DONE => Some(Fact::Done),
        NLMSG_ERROR => Some(Fact::Refused(u32_at(body, 0)?.cast_signed().wrapping_neg())),
        RTM_NEWLINK | RTM_DELLINK => link(kind == RTM_NEWLINK, body),
        RTM_NEWADDR | RTM_DELADDR => address(kind == RTM_NEWADDR, body),
        _ => None,
    }
}

fn link(there: bool, body: &[u8]) -> Option<Fact> {
    const IFLA_IFNAME: u16 = 3;
    const IFF_UP: u32 = 1;
    const IFF_LOWER_UP: u32 = 1 << 16;
    // A bridge tells of its ports in the same group: a port that leaves it is not gone.
    if *body.first()? != 0 {
        return None;
    }
    let (index, flags) = (u32_at(body, 4)?, u32_at(body, 8)?);
    if !there {
        return Some(Fact::LinkGone { index });
    }
    let (_, name) = attributes(body.get(LINK_BYTES..)?).find(|(kind, _)| *kind == IFLA_IFNAME)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..end]).into_owned();
    Some(Fact::Link { index, name, up: flags & IFF_UP != 0 && flags & IFF_LOWER_UP != 0 })
}

fn address(there: bool, body: &[u8]) -> Option<Fact> {
    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    const IFA_FLAGS: u16 = 8;
    const IFA_F_DADFAILED: u32 = 0x08;
    const IFA_F_TENTATIVE: u32 = 0x40;
    let index = u32_at(body, 4)?;
    let mut flags = u32::from(*body.get(2)?);
    // On a point-to-point link ADDRESS is the peer's; LOCAL is missing where the two are the same (IPv6).
    let (mut any, mut local) = (None, None);
    for (kind, value) in attributes(body.get(ADDRESS_BYTES..)?) {
        match kind {
            IFA_ADDRESS => any = ip(value),
            IFA_LOCAL => local = ip(value),
            IFA_FLAGS => flags = u32_at(value, 0)?,
            _ => {}
        }
    }
    let address = local.or(any)?;
    // Before duplicate address detection ends, no socket can bind to it; a second event follows.
    let usable = there && flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED) == 0;
    Some(if usable { Fact::Address { index, address } } else { Fact::AddressGone { index, address } })
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(bytes).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into())
}

/// Kind and value of each attribute.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// Marks of nested and of big-endian attributes are no part of the kind.
    const KIND: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let (len, kind) = (usize::from(u16_at(bytes, 0)?), u16_at(bytes, 2)? & KIND);
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn links_are_up_with_a_carrier_only_and_bridges_are_not_believed() {
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
            Fact::Link { index: 7, name: name(), up: true },
            Fact::Link { index: 7, name: name(), up: false },
            Fact::LinkGone { index: 7 },
        ];
        assert_eq!(facts(&datagram), expected);
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
            Fact::Address { index: 3, address: local },
            Fact::AddressGone { index: 3, address: local },
            Fact::AddressGone { index: 3, address: v6 },
            Fact::Address { index: 3, address: v6 },
        ];
        assert_eq!(facts(&datagram), expected);
    }

    #[test]
    fn the_end_of_a_list_an_interruption_and_a_refusal_are_told() {
        let datagram =
            [message(NLMSG_DONE, 0x10, &[0; 4], &[]), message(NLMSG_ERROR, 0, &(-1_i32).to_ne_bytes(), &[])]
                .concat();
        assert_eq!(facts(&datagram), [Fact::Interrupted, Fact::Done, Fact::Refused(1)]);
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
