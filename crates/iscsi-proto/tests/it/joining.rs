//! Further connections of a session: which logins may join, and which keys they negotiate.

use super::pair::*;
use linerate_iscsi_proto::keys::{DigestOffer, KEYS, Kind, Negotiation, NegotiationError, Offer, Side};
use linerate_iscsi_proto::login::*;
use linerate_iscsi_proto::params::{DigestKind, SessionParams};
use linerate_iscsi_proto::pdu::{LoginStatus, Request, ScsiCommand, TaskAttribute};
use linerate_iscsi_proto::text::{Writer, parse};
use linerate_iscsi_proto::window::{Admission, CommandWindow, TargetWindow};

fn several(connections: u16) -> Offer {
    Offer { max_connections: connections, ..Offer::default() }
}

/// A session of up to `connections` connections with one so far, and its array.
fn session(connections: u16) -> (Established, Host) {
    let mut host = Host::default();
    let config = InitiatorConfig { offer: several(connections), ..initiator_config() };
    let target = TargetLoginConfig { offer: several(8), ..target_config() };
    let (initiator, _) = run(config, target, &mut host).done();
    let commands = CommandWindow::new(700, 9);
    host.joined = Some(Joined { params: initiator.params, commands });
    (initiator, host)
}

fn joining(session: &Established, cid: u16) -> InitiatorConfig {
    let join = Some(Join { tsih: session.tsih, params: session.params });
    InitiatorConfig { cid, join, ..initiator_config() }
}

#[test]
fn the_smaller_number_of_connections_is_agreed_on() {
    for (wanted, agreed) in [(1, 1), (2, 2), (8, 8), (65_535, 8)] {
        assert_eq!(session(wanted).0.params.max_connections, agreed);
    }
}

#[test]
fn a_further_connection_settles_only_what_is_its_own() {
    let (leading, mut host) = session(2);
    let offer = Offer { header_digest: DigestOffer::Prefer, max_burst_length: 512, ..several(2) };
    let config = InitiatorConfig {
        offer: Offer { first_burst_length: 512, max_recv_data_segment_length: 4096, ..offer },
        ..joining(&leading, 2)
    };
    let (initiator, target) = run(config, target_config(), &mut host).done();
    assert_eq!((initiator.tsih, initiator.leading, target.leading), (leading.tsih, false, false));
    assert_eq!(
        (target.params.header_digest, target.params.data_digest),
        (DigestKind::Crc32c, DigestKind::None)
    );
    assert_eq!(target.params.peer_max_recv_data_segment_length, 4096);
    let of_session = SessionParams {
        header_digest: DigestKind::Crc32c,
        max_recv_data_segment_length: 4096,
        ..leading.params
    };
    assert_eq!(initiator.params, of_session);
    assert_eq!((initiator.cmd_sn, initiator.max_cmd_sn), (700, 708), "the session's window, not a new one");
    assert_eq!((target.cmd_sn, target.max_cmd_sn), (700, 708));
    assert_eq!(host.sessions[0].cids, [1, 2]);
}

#[test]
fn keys_of_the_session_are_not_spoken_of_again() {
    let params = SessionParams::default();
    let mut out = Writer::default();
    Negotiation::joining(Side::Initiator, several(4), &params).propose(&mut out);
    let text = out.into_bytes();
    let names: Vec<&str> = parse(&text).unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["HeaderDigest", "DataDigest", "MaxRecvDataSegmentLength"]);
    for key in KEYS.iter().filter(|key| !matches!(key.kind, Kind::DeclaredText)) {
        let mut target = Negotiation::joining(Side::Target, several(4), &params);
        let value = if matches!(key.kind, Kind::Digest { .. }) { "None" } else { "1024" };
        let result = target.receive(key.name, value, &mut Writer::default());
        let refused = result == Err(NegotiationError::LeadingOnly(key.name));
        assert_eq!(refused, key.leading_only, "{}: {result:?}", key.name);
    }
}

#[test]
fn bad_joins_get_the_right_status() {
    let (leading, host) = session(2);
    let full = {
        let mut sessions = host.sessions.clone();
        sessions[0].cids.push(9);
        sessions
    };
    let request = SessionRequest {
        initiator_name: INITIATOR.into(),
        target_name: Some(TARGET.into()),
        portal_group_tag: host.sessions[0].portal_group_tag,
        isid: leading.isid,
        tsih: leading.tsih,
        cid: 2,
        max_connections: 2,
    };
    let of_others = |change: fn(&mut SessionRequest)| {
        let mut request = request.clone();
        change(&mut request);
        decide(&host.sessions, &request, 4)
    };
    let none = Decision::Refuse(LoginStatus::NO_SUCH_SESSION);
    assert_eq!(of_others(|_| ()), Decision::Join(0));
    assert_eq!(of_others(|request| request.cid = 1), Decision::Refuse(LoginStatus::CANNOT_INCLUDE));
    assert_eq!(decide(&full, &request, 4), Decision::Refuse(LoginStatus::TOO_MANY_CONNECTIONS));
    assert_eq!(decide(&host.sessions, &request, 1), Decision::Join(0), "no further session is needed");
    assert_eq!(of_others(|request| request.tsih += 1), none);
    assert_eq!(of_others(|request| request.isid[5] ^= 1), none);
    assert_eq!(of_others(|request| request.portal_group_tag += 1), none);
    assert_eq!(of_others(|request| request.initiator_name.push('x')), none);
    assert_eq!(of_others(|request| request.target_name = None), none);
}

#[test]
fn a_login_that_names_no_session_is_refused() {
    let (leading, mut host) = session(2);
    let gone = Established { tsih: leading.tsih + 1, ..leading.clone() };
    assert_eq!(run(joining(&gone, 2), target_config(), &mut host).status(), LoginStatus::NO_SUCH_SESSION);
    host.sessions.clear();
    let status = run(joining(&leading, 2), target_config(), &mut host).status();
    assert_eq!(status, LoginStatus::NO_SUCH_SESSION);
}

#[test]
fn the_command_number_may_move_while_a_connection_joins() {
    let (leading, mut host) = session(2);
    let mut initiator = InitiatorLogin::new(joining(&leading, 2));
    let mut target = TargetLogin::new(target_config());
    let (first, text) = initiator.start();
    let reply = target.receive(&first, &text, &mut host);
    assert_eq!(reply.response.sn.max_cmd_sn, 708);
    let step = initiator.receive(&reply.response, &reply.data, &mut |bytes| bytes.fill(1)).unwrap();
    let InitiatorStep::Send(mut second, text) = step else { panic!("{step:?}") };
    second.cmd_sn += 5;
    if let Some(joined) = &mut host.joined {
        joined.commands = CommandWindow::new(705, 9);
    }
    let reply = target.receive(&second, &text, &mut host);
    assert!(matches!(reply.step, TargetStep::Done(_)), "{reply:?}");
    assert_eq!((reply.response.sn.exp_cmd_sn, reply.response.sn.max_cmd_sn), (705, 713));
}

#[test]
fn early_commands_are_those_inside_the_window_whose_turn_has_not_come() {
    for start in [0, 10, u32::MAX - 2] {
        let mut window = CommandWindow::new(start, 4);
        let early: Vec<u32> =
            (0..8).filter(|n| window.is_early(start.wrapping_add(*n).wrapping_sub(2))).collect();
        assert_eq!(early, [3, 4, 5], "numbers 1 to 3 of 0 to 3");
        assert_eq!(window.admit(start.wrapping_add(1), false), Admission::Gap);
        assert_eq!(window.admit(start, false), Admission::Run);
        assert!(!window.is_early(start.wrapping_add(1)), "now it is its turn");
        assert_eq!(window.admit(start.wrapping_add(1), false), Admission::Run);
    }
}

#[test]
fn connections_number_their_statuses_alone_and_share_the_commands() {
    let (mut a, mut b) = (TargetWindow::new(10, 1, 4), TargetWindow::new(10, 50, 4));
    assert_eq!(a.admit(10, false), Admission::Run);
    b.lend(a.commands());
    assert_eq!(b.admit(11, false), Admission::Run);
    b.release();
    a.lend(b.commands());
    let (from_a, from_b) = (a.status(), b.status());
    assert_eq!((from_a.stat_sn, from_b.stat_sn), (1, 50));
    assert_eq!((from_a.exp_cmd_sn, from_a.max_cmd_sn), (12, 14));
    assert_eq!((from_b.exp_cmd_sn, from_b.max_cmd_sn), (12, 14));
}

#[test]
fn immediate_requests_have_no_turn() {
    let command = ScsiCommand {
        immediate: false,
        final_pdu: true,
        read: false,
        write: false,
        attribute: TaskAttribute::Simple,
        lun: linerate_iscsi_proto::pdu::Lun(0),
        itt: 1,
        expected_len: 0,
        cmd_sn: 77,
        exp_stat_sn: 0,
        cdb: [0; 16],
        ahs_len: 0,
        data_len: 0,
    };
    assert_eq!(Request::ScsiCommand(command).cmd_sn(), Some(77));
    assert_eq!(Request::ScsiCommand(ScsiCommand { immediate: true, ..command }).cmd_sn(), None);
}
