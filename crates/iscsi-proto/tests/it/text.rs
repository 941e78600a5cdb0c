//! Text: grammar, limits, splitting, discovery.

use linerate_iscsi_proto::pdu::{RESERVED_TAG, TextRequest, TextResponse};
use linerate_iscsi_proto::send_targets::*;
use linerate_iscsi_proto::text::*;
use proptest::prelude::*;

#[test]
fn text_is_parsed_by_the_grammar() {
    assert_eq!(parse(b""), Ok(vec![]));
    assert_eq!(parse(b"A=1\0B=\0C=x=y\0"), Ok(vec![("A", "1"), ("B", ""), ("C", "x=y")]));
    assert_eq!(parse(b"A=1\0\0\0"), Ok(vec![("A", "1")]));
    assert_eq!(parse(b"A=1"), Err(TextError::Unterminated));
    assert_eq!(parse(b"A\0"), Err(TextError::NoEquals));
    assert_eq!(parse(b"=1\0"), Err(TextError::KeyName));
    assert_eq!(parse(b"1A=1\0"), Err(TextError::KeyName));
    assert_eq!(parse(b"A B=1\0"), Err(TextError::KeyName));
    assert_eq!(parse(b"A=\xff\0"), Err(TextError::NotUtf8));
}

#[test]
fn addresses_have_three_forms() {
    for (text, host, port, tag) in [
        ("10.0.0.1", "10.0.0.1", 3260, None),
        ("10.0.0.1:3261,1", "10.0.0.1", 3261, Some(1)),
        ("[fe80::1]:3260,65535", "fe80::1", 3260, Some(65535)),
        ("[::1]", "::1", 3260, None),
        ("array.lab.example:860,2", "array.lab.example", 860, Some(2)),
    ] {
        let address = TargetAddress { host: host.into(), port, portal_group_tag: tag };
        assert_eq!(TargetAddress::parse(text).as_ref(), Some(&address));
        assert_eq!(TargetAddress::parse(&address.to_string()), Some(address));
    }
    for bad in [
        "",
        ":3260",
        "10.0.0.1:",
        "10.0.0.1:0",
        "10.0.0.1:65536",
        "10.0.0.1,",
        "[::1",
        "[::1]3260",
        "a b",
        "::1",
    ] {
        assert_eq!(TargetAddress::parse(bad), None, "{bad:?}");
    }
}

fn targets(count: usize) -> Vec<DiscoveredTarget> {
    (0..count)
        .map(|n| DiscoveredTarget {
            name: format!("iqn.2026-11.lab.linerate:disk{n}"),
            addresses: (0..n % 3)
                .map(|tag| TargetAddress {
                    host: "127.0.0.1".into(),
                    port: 3260,
                    portal_group_tag: Some(tag as u16),
                })
                .collect(),
        })
        .collect()
}

fn listing(targets: &[DiscoveredTarget]) -> Vec<u8> {
    write_targets(targets.iter().map(|target| (target.name.as_str(), &target.addresses[..])))
}

/// Runs a whole discovery against a target side whose answers are split at `segment_max`.
fn discover(count: usize, segment_max: u32) -> (Vec<DiscoveredTarget>, usize) {
    let mut target = TargetText::new(4096);
    let mut initiator = InitiatorText::new(77, 10_000_000);
    let (mut request, mut data) = initiator.start("All");
    for pdus in 1.. {
        let answer = |value: &str| (value == "All").then(|| listing(&targets(count)));
        let (response, piece) = target.receive(&request, &data, segment_max, answer).unwrap();
        assert!(piece.len() <= segment_max as usize);
        match initiator.receive(&response, &piece).unwrap() {
            TextStep::Send(next) => (request, data) = (next, Vec::new()),
            TextStep::Done(text) => return (read_targets(&text).unwrap(), pdus),
        }
    }
    unreachable!("every answer ends")
}

#[test]
fn discovery_lists_every_target() {
    assert_eq!(discover(0, 512), (vec![], 1));
    assert_eq!(discover(3, 8192), (targets(3), 1));
    let (found, pdus) = discover(1000, 512);
    assert_eq!(found, targets(1000));
    assert_eq!(pdus, listing(&targets(1000)).len().div_ceil(512));
}

#[test]
fn exchanges_with_wrong_tags_are_refused() {
    let mut target = TargetText::new(4096);
    let initiator = InitiatorText::new(77, 10_000);
    let (request, data) = initiator.start("All");
    let (response, _) = target.receive(&request, &data, 512, |_| Some(listing(&targets(100)))).unwrap();
    assert!(!response.final_pdu && response.cont && response.ttt != RESERVED_TAG);
    let other = TextRequest { ttt: response.ttt + 1, data_len: 0, ..request };
    assert_eq!(target.receive(&other, b"", 512, |_| None), Err(ExchangeError::UnknownTag(other.ttt)));
    let foreign = TextRequest { ttt: response.ttt, itt: 78, data_len: 0, ..request };
    assert_eq!(target.receive(&foreign, b"", 512, |_| None), Err(ExchangeError::UnknownTag(foreign.ttt)));
    let talking = TextRequest { ttt: response.ttt, ..request };
    assert_eq!(target.receive(&talking, &data, 512, |_| None), Err(ExchangeError::Interrupted));
    let (again, _) = target.receive(&request, &data, 8192, |_| Some(listing(&targets(1)))).unwrap();
    assert!(again.final_pdu);
    assert_eq!(target.receive(&talking, b"", 512, |_| None), Err(ExchangeError::UnknownTag(talking.ttt)));
}

#[test]
fn unknown_keys_and_refused_values_are_answered() {
    let mut target = TargetText::new(4096);
    let (request, _) = InitiatorText::new(1, 100).start("All");
    let text = b"X-a=1\0MaxConnections=4\0SendTargets=other\0";
    let (response, data) = target.receive(&request, text, 512, |_| None).unwrap();
    assert!(response.final_pdu);
    assert_eq!(data, b"X-a=NotUnderstood\0MaxConnections=Reject\0SendTargets=Reject\0");
}

#[test]
fn a_listing_is_checked() {
    assert_eq!(read_targets(b"TargetAddress=a\0"), Err(DiscoveryError::NoName));
    assert_eq!(read_targets(b"TargetName=x\0"), Err(DiscoveryError::Name("x".into())));
    let bad = b"TargetName=iqn.2026-11.lab:x\0TargetAddress=:\0";
    assert_eq!(read_targets(bad), Err(DiscoveryError::Address(":".into())));
    let mut initiator = InitiatorText::new(1, 100);
    let empty = TextResponse {
        final_pdu: false,
        cont: false,
        lun: linerate_iscsi_proto::pdu::Lun(0),
        itt: 1,
        ttt: 5,
        sn: linerate_iscsi_proto::pdu::StatusNumbers::default(),
        data_len: 0,
    };
    assert!(initiator.receive(&empty, b"").is_err(), "an empty answer that goes on could go on for ever");
}

proptest! {
    #[test]
    fn text_survives_splitting_anywhere(
        pairs in prop::collection::vec(("[A-Z][A-Za-z0-9.+@_-]{0,62}", "[ -~]{0,100}"), 0..20), limit in 1u32..64,
    ) {
        let mut out = Writer::default();
        for (key, value) in &pairs {
            out.push(key, value);
        }
        let bytes = out.into_bytes();
        let (mut splitter, mut collector) = (Splitter::default(), Collector::new(bytes.len()));
        splitter.load(bytes);
        let whole = loop {
            let (piece, cont) = splitter.next_piece(limit);
            prop_assert!(piece.len() <= limit as usize);
            if let Some(whole) = collector.push(&piece, cont).unwrap() {
                break whole;
            }
        };
        let expected: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        prop_assert_eq!(parse(&whole), Ok(expected));
    }

    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&noise);
        let _ = read_targets(&noise);
    }
}
