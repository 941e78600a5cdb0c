//! Portals of every kind, and redirected logins.

use crate::support::{Client, IQN, SIZE_BYTES};
use linerate_iscsi_proto::pdu::Response;
use linerate_iscsi_target::Array;
use std::net::{IpAddr, SocketAddr};

/// An array that listens on `portal`; `target` is added to the target's configuration.
fn array_at(portal: &str, target: &str) -> Array {
    let json = format!(
        r#"{{"portals": ["{portal}"], "targets": [{{"name": "{IQN}", {target}
            "volumes": [{{"lun": 0, "name": "v0", "size_bytes": {SIZE_BYTES}}}]}}]}}"#
    );
    Array::start(serde_json::from_str(&json).unwrap()).unwrap()
}

fn has_ipv6() -> bool {
    let there = std::net::TcpListener::bind("[::1]:0").is_ok();
    if !there {
        eprintln!("skipped: this host has no IPv6");
    }
    there
}

#[test]
fn an_ipv6_portal_serves_and_names_itself_in_brackets() {
    if !has_ipv6() {
        return;
    }
    let array = array_at("[::1]:0", "");
    let portal = array.portals()[0];
    let mut client = Client::login(portal, 1, "");
    client.clear_attention();
    client.write(5, &[0x66; 4096]);
    assert_eq!(client.read(5, 4096), [0x66; 4096]);
    let expected = format!("TargetName={IQN}\0TargetAddress=[::1]:{},1\0", portal.port());
    assert_eq!(Client::discover(portal), expected);
}

#[test]
fn a_wildcard_portal_is_named_by_the_address_that_the_peer_used() {
    for (portal, used) in [("0.0.0.0:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.2"), ("[::]:0", "::1")] {
        if portal.starts_with('[') && !has_ipv6() {
            continue;
        }
        let array = array_at(portal, "");
        let used = SocketAddr::new(used.parse::<IpAddr>().unwrap(), array.portals()[0].port());
        let expected = format!("TargetName={IQN}\0TargetAddress={used},1\0");
        assert_eq!(Client::discover(used), expected, "{portal}");
    }
}

/// If a wildcard IPv6 portal also accepts IPv4 peers, they must not get an address that only this host can use.
#[test]
fn a_wildcard_ipv6_portal_names_ipv4_addresses_as_such() {
    if !has_ipv6() {
        return;
    }
    let array = array_at("[::]:0", "");
    let used = SocketAddr::new("127.0.0.1".parse().unwrap(), array.portals()[0].port());
    if std::net::TcpStream::connect(used).is_err() {
        return; // IPv6 only, which is right as well
    }
    assert_eq!(Client::discover(used), format!("TargetName={IQN}\0TargetAddress={used},1\0"));
}

#[test]
fn a_redirected_target_says_where_it_is_and_closes() {
    let array = array_at("127.0.0.1:0", r#""redirect": "192.0.2.7:3260","#);
    let mut client = Client::connect(array.portals()[0]);
    let pdu = client.log_in(1, &format!("InitiatorName=iqn.2026-11.lab.linerate:host\0TargetName={IQN}\0"));
    let Response::Login(response) = pdu.response else { panic!("{pdu:?}") };
    assert_eq!((response.status.class, response.status.detail), (1, 1), "moved temporarily");
    let text = String::from_utf8(pdu.data).unwrap();
    assert!(text.split('\0').any(|pair| pair == "TargetAddress=192.0.2.7:3260"), "{text:?}");
    assert!(client.receive().is_none(), "the connection ends");
    crate::support::wait_for(&array, "nothing is left", |stats| {
        stats.connections == 0 && stats.sessions == 0
    });
}
