//! Logins between both state machines: with and without CHAP, discovery, redirection, sessions, refusals.

use super::pair::*;
use linerate_iscsi_proto::chap::{Algorithm, ChapConfig, ChapConfigError, decode, encode_base64, encode_hex};
use linerate_iscsi_proto::login::*;
use linerate_iscsi_proto::names::{IscsiName, NameError, NamePattern};
use linerate_iscsi_proto::pdu::{BHS_BYTES, LoginRequest, LoginStatus, Stage};
use linerate_iscsi_proto::window::{Admission, ExpectedStatus, InitiatorWindow, TargetWindow};
use proptest::prelude::*;

const BOTH: [Algorithm; 2] = [Algorithm::Sha256, Algorithm::Md5];

#[test]
fn a_plain_login_agrees_on_everything() {
    let mut host = Host::default();
    let (initiator, target) = run(initiator_config(), target_config(), &mut host).done();
    assert_eq!(initiator.tsih, 1);
    assert_eq!(initiator.user, None);
    assert_eq!(initiator.portal_group_tag, Some(0));
    assert_eq!((initiator.cmd_sn, initiator.max_cmd_sn), (500, 531));
    assert_eq!(initiator, Established { params: initiator.params, ..target.clone() });
    assert_eq!(initiator.params.max_burst_length, target.params.max_burst_length);
    let mut commands = InitiatorWindow::after_login(&initiator);
    let mut window = TargetWindow::after_login(&target);
    assert_eq!(commands.room(), 32);
    assert_eq!(window.admit(commands.take(), false), Admission::Run);
    assert_eq!(ExpectedStatus::after_login(&initiator).take(&window.status()), Ok(()));
}

#[test]
fn chap_one_way_and_mutual_with_both_algorithms() {
    for (ours, theirs) in
        [(&BOTH[..], &BOTH[..]), (&BOTH[1..], &BOTH[..]), (&BOTH[..], &BOTH[1..]), (&BOTH[..1], &BOTH[..1])]
    {
        let mut host = Host::with_chap(one_way(theirs, "a secret of alice"));
        let config = InitiatorConfig { chap: Some(one_way(ours, "a secret of alice")), ..initiator_config() };
        let (initiator, target) = run(config, target_config(), &mut host).done();
        assert_eq!(initiator.user.as_deref(), Some("alice"));
        assert_eq!(target.user.as_deref(), Some("alice"));
        let mut host = Host::with_chap(mutual(theirs, "the array's secret"));
        let config = InitiatorConfig { chap: Some(mutual(ours, "the array's secret")), ..initiator_config() };
        let (initiator, target) = run(config, target_config(), &mut host).done();
        assert_eq!(initiator.user, target.user);
    }
}

#[test]
fn wrong_or_missing_secrets_are_refused() {
    let mut host = Host::with_chap(one_way(&BOTH, "right"));
    let wrong = InitiatorConfig { chap: Some(one_way(&BOTH, "wrong")), ..initiator_config() };
    let refused = LoginStatus::AUTHENTICATION_FAILED;
    assert_eq!(run(wrong, target_config(), &mut host).status(), refused);
    assert_eq!(run(initiator_config(), target_config(), &mut host).status(), refused);
    let md5 = InitiatorConfig { chap: Some(one_way(&BOTH[1..], "right")), ..initiator_config() };
    let mut host = Host::with_chap(one_way(&BOTH[..1], "right"));
    assert_eq!(run(md5, target_config(), &mut host).status(), refused);
    assert!(host.sessions.is_empty());
}

#[test]
fn an_impostor_target_is_refused() {
    for host in [
        Host::with_chap(mutual(&BOTH, "not the array's secret")),
        Host::with_chap(one_way(&BOTH, "alice's secret")),
        Host::default(),
    ] {
        let mut host = host;
        let config =
            InitiatorConfig { chap: Some(mutual(&BOTH, "the array's secret")), ..initiator_config() };
        let outcome = run(config, target_config(), &mut host);
        assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    }
}

#[test]
fn an_open_target_takes_an_initiator_that_could_prove_itself() {
    let config = InitiatorConfig { chap: Some(one_way(&BOTH, "a secret")), ..initiator_config() };
    let (initiator, target) = run(config, target_config(), &mut Host::default()).done();
    assert_eq!((initiator.user, target.user), (None, None));
}

#[test]
fn discovery_sessions_need_no_target() {
    let config = InitiatorConfig { target_name: None, ..initiator_config() };
    let (initiator, target) = run(config, target_config(), &mut Host::default()).done();
    assert!(initiator.is_discovery() && target.is_discovery());
    assert_eq!(initiator.portal_group_tag, None);
}

#[test]
fn redirection_says_where_and_for_how_long() {
    for permanent in [false, true] {
        let lookup = Lookup::Redirect { address: "[::1]:3261,1".into(), permanent };
        let mut host = Host { lookup, ..Host::default() };
        match run(initiator_config(), target_config(), &mut host) {
            Outcome::Redirected { address, permanent: told } => {
                assert_eq!((address.as_str(), told), ("[::1]:3261,1", permanent));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_array_can_refuse() {
    let unknown = IscsiName::parse("iqn.2026-11.lab.linerate:other").unwrap();
    let config = InitiatorConfig { target_name: Some(unknown), ..initiator_config() };
    assert_eq!(run(config, target_config(), &mut Host::default()).status(), LoginStatus::NOT_FOUND);
    let mut host = Host { lookup: Lookup::Refuse(LoginStatus::FORBIDDEN), ..Host::default() };
    assert_eq!(run(initiator_config(), target_config(), &mut host).status(), LoginStatus::FORBIDDEN);
    let failure = LoginFailure::Refused(LoginStatus::UNAVAILABLE);
    assert!(failure.is_transient() && !LoginFailure::Refused(LoginStatus::NOT_FOUND).is_transient());
}

fn request(isid: u8, tsih: u16) -> SessionRequest {
    SessionRequest {
        initiator_name: INITIATOR.into(),
        target_name: Some(TARGET.into()),
        portal_group_tag: 1,
        isid: [isid; 6],
        tsih,
        cid: 0,
        max_connections: 1,
    }
}

fn existing(isid: u8, tsih: u16, target: Option<&str>) -> ExistingSession {
    ExistingSession {
        initiator_name: INITIATOR.into(),
        target_name: target.map(Into::into),
        portal_group_tag: 1,
        isid: [isid; 6],
        tsih,
        max_connections: 1,
        cids: vec![0],
    }
}

#[test]
fn sessions_are_new_replaced_or_refused() {
    let sessions = [existing(1, 10, Some(TARGET)), existing(2, 11, Some(TARGET)), existing(3, 12, None)];
    assert_eq!(decide(&sessions, &request(9, 0), 4), Decision::New);
    assert_eq!(decide(&sessions, &request(2, 0), 3), Decision::Replace(1));
    assert_eq!(decide(&sessions, &request(3, 0), 4), Decision::New);
    assert_eq!(decide(&sessions, &request(9, 0), 3), Decision::Refuse(LoginStatus::OUT_OF_RESOURCES));
    assert_eq!(decide(&sessions, &request(2, 11), 4), Decision::Refuse(LoginStatus::CANNOT_INCLUDE));
    assert_eq!(decide(&sessions, &request(2, 99), 4), Decision::Refuse(LoginStatus::NO_SUCH_SESSION));
    let further = SessionRequest { cid: 1, ..request(2, 11) };
    assert_eq!(decide(&sessions, &further, 4), Decision::Refuse(LoginStatus::TOO_MANY_CONNECTIONS));
    let stranger = SessionRequest { initiator_name: "iqn.2026-11.lab.linerate:x".into(), ..request(2, 0) };
    assert_eq!(decide(&sessions, &stranger, 4), Decision::New);
    let elsewhere = |tsih| SessionRequest { portal_group_tag: 2, ..request(2, tsih) };
    assert_eq!(decide(&sessions, &elsewhere(0), 4), Decision::New, "another portal group, another nexus");
    assert_eq!(decide(&sessions, &elsewhere(11), 4), Decision::Refuse(LoginStatus::NO_SUCH_SESSION));
    let discovery = SessionRequest { target_name: None, ..request(3, 0) };
    assert_eq!(decide(&sessions, &discovery, 4), Decision::New);
}

/// A first request with hand-written text.
fn first(text: &[u8]) -> (LoginRequest, Vec<u8>) {
    let mut login = InitiatorLogin::new(initiator_config());
    let (mut request, _) = login.start();
    request.data_len = text.len() as u32;
    (request, text.to_vec())
}

fn refusal(request: &LoginRequest, data: &[u8]) -> LoginStatus {
    let reply = TargetLogin::new(target_config()).receive(request, data, &mut Host::default());
    assert!(matches!(reply.step, TargetStep::Close(_)), "{:?}", reply.step);
    reply.response.status
}

fn names() -> Vec<u8> {
    format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0AuthMethod=None\0").into_bytes()
}

#[test]
fn malformed_first_requests_get_the_right_status() {
    let names = names();
    for (text, status) in [
        (&b"TargetName=iqn.2026-11.lab:x\0"[..], LoginStatus::MISSING_PARAMETER),
        (b"InitiatorName=iqn.2026-11.lab:x\0", LoginStatus::MISSING_PARAMETER),
        (b"InitiatorName=host\0TargetName=iqn.2026-11.lab:x\0", LoginStatus::INITIATOR_ERROR),
        (b"InitiatorName=iqn.2026-11.lab:x\0SessionType=Odd\0", LoginStatus::SESSION_TYPE_NOT_SUPPORTED),
        (b"InitiatorName", LoginStatus::INITIATOR_ERROR),
        (b"\xff=1\0", LoginStatus::INITIATOR_ERROR),
    ] {
        let (request, data) = first(text);
        assert_eq!(refusal(&request, &data), status, "{:?}", String::from_utf8_lossy(text));
    }
    let (request, data) = first(&names);
    let newer = LoginRequest { version_min: 1, version_max: 2, ..request };
    assert_eq!(refusal(&newer, &data), LoginStatus::UNSUPPORTED_VERSION);
    let twice = [&names[..], b"AuthMethod=None\0"].concat();
    assert_eq!(refusal(&request, &twice), LoginStatus::INITIATOR_ERROR);
    let operational = [&names[..], b"ImmediateData=Yes\0"].concat();
    assert_eq!(refusal(&request, &operational), LoginStatus::INITIATOR_ERROR);
    let joining = LoginRequest { tsih: 77, next: Stage::FullFeature, ..request };
    assert_eq!(refusal(&joining, &data), LoginStatus::NO_SUCH_SESSION);
}

#[test]
fn the_security_stage_may_be_skipped_only_without_chap() {
    let (request, data) = first(&names());
    let operational = LoginRequest { current: Stage::Operational, next: Stage::FullFeature, ..request };
    let text = data.strip_suffix(b"AuthMethod=None\0").unwrap();
    let mut login = TargetLogin::new(target_config());
    let reply = login.receive(&operational, text, &mut Host::default());
    assert!(matches!(reply.step, TargetStep::Done(_)), "{:?}", reply.step);
    assert_eq!((reply.response.transit, reply.response.next), (true, Stage::FullFeature));
    assert!(String::from_utf8_lossy(&reply.data).contains("MaxRecvDataSegmentLength=262144"));
    let mut host = Host::with_chap(one_way(&BOTH, "a secret"));
    let reply = TargetLogin::new(target_config()).receive(&operational, text, &mut host);
    assert_eq!(reply.response.status, LoginStatus::AUTHENTICATION_FAILED);
}

#[test]
fn a_later_request_must_belong_to_the_same_login() {
    let (request, data) = first(&names());
    let stay = LoginRequest { transit: false, next: Stage::Security, ..request };
    for other in [
        LoginRequest { itt: 1, ..stay },
        LoginRequest { isid: [0; 6], ..stay },
        LoginRequest { cid: 9, ..stay },
        LoginRequest { cmd_sn: 501, ..stay },
        LoginRequest { current: Stage::Operational, ..stay },
    ] {
        let mut login = TargetLogin::new(target_config());
        let mut host = Host::default();
        assert_eq!(login.receive(&stay, &data, &mut host).step, TargetStep::Continue);
        let reply = login.receive(&other, b"", &mut host);
        assert!(matches!(reply.step, TargetStep::Close(LoginRefusal::Protocol(_))), "{other:?}");
    }
}

#[test]
fn a_login_without_end_is_ended() {
    let (request, data) = first(&names());
    let stay = LoginRequest { transit: false, next: Stage::Security, ..request };
    let mut login = TargetLogin::new(target_config());
    let mut host = Host::default();
    let mut data = &data[..];
    let rounds = (0..1000).take_while(|_| {
        let reply = login.receive(&stay, data, &mut host);
        data = b"";
        reply.step == TargetStep::Continue
    });
    assert_eq!(rounds.count(), 64);
}

#[test]
fn names_are_checked_and_normalised() {
    for good in [
        "iqn.2026-11.lab.linerate",
        "iqn.2026-11.lab.linerate:Array-1:disk.2",
        "eui.02004567A425678D",
        "naa.52004567BA64678D",
        "naa.62004567BA64678D0123456789ABCDEF",
    ] {
        assert_eq!(IscsiName::parse(good).unwrap().as_str(), good.to_lowercase());
    }
    for (bad, error) in [
        ("", NameError::Type),
        ("host", NameError::Type),
        ("iqn.", NameError::Date),
        ("iqn.2026-13.lab.linerate", NameError::Date),
        ("iqn.2026-1.lab.linerate", NameError::Date),
        ("iqn.2026-11", NameError::Date),
        ("iqn.2026-11.", NameError::Authority),
        ("iqn.2026-11.lab..x", NameError::Authority),
        ("iqn.2026-11.-lab", NameError::Authority),
        ("iqn.2026-11.lab:a b", NameError::Character(' ')),
        ("iqn.2026-11.lab:a_b", NameError::Character('_')),
        ("eui.02004567A425678", NameError::Hex),
        ("eui.02004567A425678G", NameError::Hex),
        ("naa.5200", NameError::Hex),
    ] {
        assert_eq!(IscsiName::parse(bad), Err(error), "{bad:?}");
    }
    let long = format!("iqn.2026-11.lab:{}", "x".repeat(208));
    assert_eq!(IscsiName::parse(&long), Err(NameError::TooLong(224)));
}

#[test]
fn patterns_of_names_are_normalised_as_names_are() {
    let matches = |pattern: &str, name: &str| NamePattern::parse(pattern).unwrap().matches(name);
    assert!(matches("IQN.1991-05.com.Microsoft:Host1", "iqn.1991-05.com.microsoft:host1"));
    assert!(!matches("iqn.1991-05.com.microsoft:host1", "iqn.1991-05.com.microsoft:host10"));
    assert!(matches("iqn.1991-05.COM.microsoft:*", "iqn.1991-05.com.microsoft:host10"));
    assert!(!matches("iqn.1991-05.com.microsoft:*", "iqn.1991-05.com.microsofts:host10"));
    assert!(matches("*", "eui.02004567a425678d") && matches("naa.5*", "naa.52004567ba64678d"));
    assert_eq!(NamePattern::parse("host*"), Err(NameError::Type));
    assert_eq!(NamePattern::parse("iqn.1991-05.*:host"), Err(NameError::Character('*')));
    assert_eq!(NamePattern::parse(""), Err(NameError::Type));
}

#[test]
fn chap_values_and_configurations() {
    assert_eq!(encode_hex(&[0, 0xab]), "0x00ab");
    assert_eq!(encode_base64(&[0, 0xab]), "0bAKs=");
    // RFC 1994 names the hash; the value was computed with another implementation (Python's hashlib).
    let secret = linerate_iscsi_proto::chap::ChapSecret::new("secret");
    let proof = Algorithm::Md5.respond(1, &secret, &[2; 16]);
    assert_eq!(encode_hex(&proof), "0x0e2483e0da85f656522f3da3ffe0a142");
    assert_eq!(format!("{secret:?}"), "ChapSecret(..)");
    let same = ChapConfig::new(&BOTH, credentials("a", "s"), Some(credentials("b", "s")));
    assert_eq!(same, Err(ChapConfigError::SameSecret));
    assert_eq!(ChapConfig::new(&[], credentials("a", "s"), None), Err(ChapConfigError::NoAlgorithm));
    assert_eq!(ChapConfig::new(&BOTH, credentials("", "s"), None), Err(ChapConfigError::EmptyName));
}

proptest! {
    #[test]
    fn binary_values_survive_both_forms(bytes in prop::collection::vec(any::<u8>(), 1..1024)) {
        prop_assert_eq!(decode(&encode_hex(&bytes)), Ok(bytes.clone()));
        prop_assert_eq!(decode(&encode_base64(&bytes)), Ok(bytes));
    }

    #[test]
    fn noise_in_a_login_never_panics(
        pdus in prop::collection::vec(
            (prop::array::uniform32(any::<u8>()), prop::collection::vec(any::<u8>(), 0..60), any::<u8>()), 1..8),
    ) {
        let mut login = TargetLogin::new(target_config());
        let mut host = Host::with_chap(one_way(&BOTH, "a secret"));
        let (request, data) = first(&names());
        let mut texts: Vec<&[u8]> = vec![&data, b"CHAP_A=5,7\0", b"CHAP_N=alice\0CHAP_R=0x00\0", b"AuthMethod=CHAP\0"];
        texts.extend(pdus.iter().map(|(_, noise, _)| &noise[..]));
        for (head, _, choice) in &pdus {
            let mut bhs = [0; BHS_BYTES];
            request.emit(&mut bhs);
            bhs[1] = head[1];
            if choice & 1 == 0 {
                bhs[8..16].copy_from_slice(&head[8..16]);
            }
            let Ok(parsed) = LoginRequest::parse(&bhs) else { continue };
            let reply = login.receive(&parsed, texts[usize::from(*choice) % texts.len()], &mut host);
            if reply.step != TargetStep::Continue {
                break;
            }
        }
    }
}
