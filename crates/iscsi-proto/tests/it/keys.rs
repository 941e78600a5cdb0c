//! The table of keys: the results of negotiation.

use linerate_iscsi_proto::keys::{DigestOffer, KEYS, Kind, Negotiation, NegotiationError, Offer, Side};
use linerate_iscsi_proto::params::{DigestKind, SessionParams};
use linerate_iscsi_proto::text::{Writer, parse};
use proptest::prelude::*;

/// One exchange: the initiator offers, the target answers, the initiator accepts the answers.
fn agree(
    ours: Offer,
    theirs: Offer,
    discovery: bool,
) -> Result<(SessionParams, SessionParams), NegotiationError> {
    let mut initiator = Negotiation::new(Side::Initiator, ours, discovery);
    let mut target = Negotiation::new(Side::Target, theirs, discovery);
    let (mut offers, mut answers, mut rest) = (Writer::default(), Writer::default(), Writer::default());
    initiator.propose(&mut offers);
    for (key, value) in parse(&offers.into_bytes()).unwrap() {
        target.receive(key, value, &mut answers)?;
    }
    target.propose(&mut answers);
    for (key, value) in parse(&answers.into_bytes()).unwrap() {
        initiator.receive(key, value, &mut rest)?;
    }
    assert!(rest.is_empty() && !initiator.is_waiting(), "one exchange is enough");
    Ok((initiator.params(), target.params()))
}

/// The answer of a target with the default offer to one pair.
fn answer(key: &str, value: &str) -> Result<String, NegotiationError> {
    let mut out = Writer::default();
    Negotiation::new(Side::Target, Offer::default(), false).receive(key, value, &mut out)?;
    Ok(String::from_utf8(out.into_bytes()).unwrap().trim_end_matches('\0').to_owned())
}

#[test]
fn defaults_of_both_sides_agree() {
    let (initiator, target) = agree(Offer::default(), Offer::default(), false).unwrap();
    assert_eq!(initiator, target);
    assert_eq!(initiator.max_burst_length, 1_048_576);
    assert_eq!(initiator.first_burst_length, 262_144);
    assert_eq!((initiator.initial_r2t, initiator.immediate_data), (false, true));
    assert_eq!((initiator.header_digest, initiator.data_digest), (DigestKind::None, DigestKind::None));
    assert_eq!((initiator.default_time2wait_s, initiator.default_time2retain_s), (2, 0));
    assert_eq!(initiator.peer_max_recv_data_segment_length, 262_144);
}

#[test]
fn nothing_said_leaves_the_defaults_of_the_rfc() {
    let silent = Negotiation::new(Side::Target, Offer::default(), false);
    assert_eq!(silent.params(), SessionParams::default());
}

#[test]
fn a_digest_is_chosen_by_both() {
    use DigestOffer::{Accept, Prefer, Refuse, Require};
    let none = Ok(DigestKind::None);
    let crc = Ok(DigestKind::Crc32c);
    let nothing = Err(NegotiationError::NoCommonValue("HeaderDigest"));
    for (ours, theirs, expected) in [
        (Accept, Accept, none),
        (Prefer, Accept, crc),
        (Accept, Prefer, none),
        (Accept, Require, crc),
        (Require, Accept, crc),
        (Refuse, Prefer, none),
        (Refuse, Require, nothing),
        (Require, Refuse, nothing),
    ] {
        let offer = |header_digest| Offer { header_digest, ..Offer::default() };
        let result = agree(offer(ours), offer(theirs), false).map(|(params, _)| params.header_digest);
        assert_eq!(result, expected, "{ours:?} against {theirs:?}");
    }
}

#[test]
fn answers_to_single_pairs() {
    for (key, value, expected) in [
        ("MaxBurstLength", "4096", "MaxBurstLength=4096"),
        ("MaxBurstLength", "0x1000", "MaxBurstLength=4096"),
        ("MaxBurstLength", "16777215", "MaxBurstLength=1048576"),
        ("MaxBurstLength", "511", "MaxBurstLength=Reject"),
        ("MaxBurstLength", "99999999999", "MaxBurstLength=Reject"),
        ("MaxBurstLength", "+4096", "MaxBurstLength=Reject"),
        ("DefaultTime2Wait", "5", "DefaultTime2Wait=5"),
        ("DefaultTime2Wait", "0", "DefaultTime2Wait=2"),
        ("InitialR2T", "Yes", "InitialR2T=Yes"),
        ("ImmediateData", "No", "ImmediateData=No"),
        ("ImmediateData", "yes", "ImmediateData=Reject"),
        ("MaxConnections", "8", "MaxConnections=1"),
        ("ErrorRecoveryLevel", "2", "ErrorRecoveryLevel=0"),
        ("DataPDUInOrder", "No", "DataPDUInOrder=Yes"),
        ("DataSequenceInOrder", "Yes", "DataSequenceInOrder=Yes"),
        ("HeaderDigest", "X-vendor,CRC32C,None", "HeaderDigest=CRC32C"),
        ("TaskReporting", "FastAbort,RFC3720", "TaskReporting=RFC3720"),
        ("TaskReporting", "FastAbort", "TaskReporting=Reject"),
        ("iSCSIProtocolLevel", "2", "iSCSIProtocolLevel=1"),
        ("IFMarker", "Yes", "IFMarker=No"),
        ("OFMarkInt", "1~65535", "OFMarkInt=Reject"),
        ("X-org.example.key", "1", "X-org.example.key=NotUnderstood"),
        ("X-org.example.key", "NotUnderstood", ""),
        ("InitiatorAlias", "a host", ""),
    ] {
        assert_eq!(answer(key, value).as_deref(), Ok(expected), "{key}={value}");
    }
    assert_eq!(answer("TargetAlias", "x"), Err(NegotiationError::WrongSide("TargetAlias")));
    assert_eq!(
        answer("MaxRecvDataSegmentLength", "511"),
        Err(NegotiationError::BadValue("MaxRecvDataSegmentLength"))
    );
    assert_eq!(answer("DataDigest", "MD5"), Err(NegotiationError::NoCommonValue("DataDigest")));
}

#[test]
fn bad_answers_are_refused() {
    let judge = |key: &str, value: &str| {
        let ours = Offer { immediate_data: false, initial_r2t: true, ..Offer::default() };
        let mut initiator = Negotiation::new(Side::Initiator, ours, false);
        initiator.propose(&mut Writer::default());
        initiator.receive(key, value, &mut Writer::default())
    };
    assert_eq!(judge("MaxBurstLength", "2097152"), Err(NegotiationError::BadValue("MaxBurstLength")));
    assert_eq!(judge("DefaultTime2Wait", "1"), Err(NegotiationError::BadValue("DefaultTime2Wait")));
    assert_eq!(judge("ImmediateData", "Yes"), Err(NegotiationError::BadValue("ImmediateData")));
    assert_eq!(judge("InitialR2T", "No"), Err(NegotiationError::BadValue("InitialR2T")));
    assert_eq!(judge("HeaderDigest", "CRC64"), Err(NegotiationError::BadValue("HeaderDigest")));
    assert_eq!(judge("ErrorRecoveryLevel", "Reject"), Err(NegotiationError::Rejected("ErrorRecoveryLevel")));
    assert_eq!(judge("ErrorRecoveryLevel", "Irrelevant"), Ok(()));
}

/// RFC 7143 section 6.2.2: these answers are optional. Linux's LIO leaves them out.
#[test]
fn a_boolean_that_the_offer_decides_needs_no_answer() {
    for (initial_r2t, immediate_data) in [(true, true), (true, false), (false, true), (false, false)] {
        let offer = Offer { initial_r2t, immediate_data, ..Offer::default() };
        let mut initiator = Negotiation::new(Side::Initiator, offer, false);
        let mut target = Negotiation::new(Side::Target, Offer::default(), false);
        let (mut offers, mut answers, mut rest) = (Writer::default(), Writer::default(), Writer::default());
        initiator.propose(&mut offers);
        for (key, value) in parse(&offers.into_bytes()).unwrap() {
            target.receive(key, value, &mut answers).unwrap();
        }
        let decided = |key: &str| match key {
            "DataPDUInOrder" | "DataSequenceInOrder" => true,
            "InitialR2T" => initial_r2t,
            "ImmediateData" => !immediate_data,
            _ => false,
        };
        let answers = answers.into_bytes();
        assert!(initiator.is_waiting(), "the other answers are owed");
        for (key, value) in parse(&answers).unwrap() {
            if !decided(key) {
                initiator.receive(key, value, &mut rest).unwrap();
            }
        }
        assert!(!initiator.is_waiting());
        let params = initiator.params();
        assert_eq!((params.initial_r2t, params.immediate_data), (initial_r2t, immediate_data));
    }
}

#[test]
fn a_key_comes_once() {
    let mut target = Negotiation::new(Side::Target, Offer::default(), false);
    target.receive("ImmediateData", "Yes", &mut Writer::default()).unwrap();
    let again = target.receive("ImmediateData", "Yes", &mut Writer::default());
    assert_eq!(again, Err(NegotiationError::Repeated("ImmediateData")));
}

#[test]
fn discovery_sessions_leave_out_what_has_no_meaning() {
    let mut out = Writer::default();
    Negotiation::new(Side::Initiator, Offer::default(), true).propose(&mut out);
    let text = out.into_bytes();
    let keys: Vec<&str> = parse(&text).unwrap().into_iter().map(|(key, _)| key).collect();
    assert!(keys.contains(&"MaxRecvDataSegmentLength") && keys.contains(&"HeaderDigest"));
    assert!(!keys.contains(&"MaxBurstLength") && !keys.contains(&"InitialR2T"));
    let mut out = Writer::default();
    let mut target = Negotiation::new(Side::Target, Offer::default(), true);
    target.receive("ImmediateData", "Yes", &mut out).unwrap();
    assert_eq!(out.into_bytes(), b"ImmediateData=Irrelevant\0");
}

#[test]
fn the_table_holds_the_ranges_of_the_rfc() {
    let ranges: Vec<(&str, u32, u32)> = KEYS
        .iter()
        .filter_map(|key| match key.kind {
            Kind::Number { min, max, .. } | Kind::DeclaredNumber { min, max, .. } => {
                Some((key.name, min, max))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        ranges,
        [
            ("MaxRecvDataSegmentLength", 512, 16_777_215),
            ("MaxBurstLength", 512, 16_777_215),
            ("FirstBurstLength", 512, 16_777_215),
            ("MaxOutstandingR2T", 1, 65_535),
            ("MaxConnections", 1, 65_535),
            ("DefaultTime2Wait", 0, 3600),
            ("DefaultTime2Retain", 0, 3600),
            ("ErrorRecoveryLevel", 0, 2),
        ]
    );
}

fn any_offer() -> impl Strategy<Value = Offer> {
    let digest = || prop::sample::select(vec![DigestOffer::Accept, DigestOffer::Prefer]);
    let length = || 512_u32..1 << 24;
    (
        (digest(), digest(), length(), length(), length()),
        (any::<bool>(), any::<bool>(), 1..=u16::MAX, 0..=3600_u16, 0..=3600_u16),
        1..=u16::MAX,
    )
        .prop_map(|(first, (immediate, r2t, outstanding, wait, retain), connections)| {
            let (header, data, segment, a, b) = first;
            Offer {
                header_digest: header,
                data_digest: data,
                max_recv_data_segment_length: segment,
                max_burst_length: a.max(b),
                first_burst_length: a.min(b),
                immediate_data: immediate,
                initial_r2t: r2t,
                max_outstanding_r2t: outstanding,
                default_time2wait_s: wait,
                default_time2retain_s: retain,
                max_connections: connections,
            }
        })
}

proptest! {
    #[test]
    fn both_sides_come_to_the_same_result(ours in any_offer(), theirs in any_offer()) {
        let (initiator, target) = agree(ours, theirs, false).unwrap();
        prop_assert_eq!(initiator.max_recv_data_segment_length, target.peer_max_recv_data_segment_length);
        prop_assert_eq!(initiator.peer_max_recv_data_segment_length, target.max_recv_data_segment_length);
        let mirrored = SessionParams {
            max_recv_data_segment_length: target.peer_max_recv_data_segment_length,
            peer_max_recv_data_segment_length: target.max_recv_data_segment_length,
            ..target
        };
        prop_assert_eq!(initiator, mirrored);
        prop_assert!(initiator.first_burst_length <= initiator.max_burst_length);
        prop_assert_eq!(initiator.max_burst_length, ours.max_burst_length.min(theirs.max_burst_length));
        prop_assert_eq!(initiator.default_time2wait_s, ours.default_time2wait_s.max(theirs.default_time2wait_s));
        prop_assert_eq!(initiator.initial_r2t, ours.initial_r2t || theirs.initial_r2t);
        prop_assert_eq!(initiator.immediate_data, ours.immediate_data && theirs.immediate_data);
    }
}
