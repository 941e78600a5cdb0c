//! Bugs of real targets that concern the protocol alone; `docs/pitfalls.md` has the list.

use super::pair::*;
use super::transfers::{command, data_out};
use linerate_iscsi_proto::chap::{Algorithm, decode, encode_base64, encode_hex};
use linerate_iscsi_proto::digest::Crc32c;
use linerate_iscsi_proto::frame::{Event, FrameError, Framer, Receiver};
use linerate_iscsi_proto::login::*;
use linerate_iscsi_proto::params::{DigestKind, SessionParams};
use linerate_iscsi_proto::pdu::*;
use linerate_iscsi_proto::send_targets::{ExchangeError, TargetAddress, TargetText, write_targets};
use linerate_iscsi_proto::text::{TextError, parse};
use linerate_iscsi_proto::transfer::*;
use linerate_iscsi_proto::window::{Admission, TargetWindow};

const BOTH: [Algorithm; 2] = [Algorithm::Sha256, Algorithm::Md5];

/// A login with hand-written text.
struct ByHand {
    login: TargetLogin,
    host: Host,
    request: LoginRequest,
}

impl ByHand {
    fn new(host: Host) -> Self {
        let (request, _) = InitiatorLogin::new(initiator_config()).start();
        let request = LoginRequest { transit: false, next: Stage::Security, ..request };
        ByHand { login: TargetLogin::new(target_config()), host, request }
    }

    /// A login after its challenge has arrived; returns the challenge.
    fn challenged(host: Host, algorithm: Algorithm) -> (Self, u8, Vec<u8>) {
        let mut login = ByHand::new(host);
        let names = format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0AuthMethod=CHAP\0");
        assert_eq!(login.say(names.as_bytes()).step, TargetStep::Continue);
        let reply = login.say(format!("CHAP_A={}\0", algorithm.code()).as_bytes());
        let pairs = parse(&reply.data).unwrap();
        let value = |key| pairs.iter().find(|(name, _)| *name == key).unwrap().1;
        let (identifier, challenge) = (value("CHAP_I").parse().unwrap(), decode(value("CHAP_C")).unwrap());
        (login, identifier, challenge)
    }

    fn say(&mut self, text: &[u8]) -> TargetReply {
        self.login.receive(&self.request, text, &mut self.host)
    }

    fn continued(&mut self, text: &[u8]) -> TargetReply {
        let request = LoginRequest { cont: true, ..self.request };
        self.login.receive(&request, text, &mut self.host)
    }
}

fn refused(reply: &TargetReply) -> LoginStatus {
    assert!(matches!(reply.step, TargetStep::Close(_)), "{:?}", reply.step);
    reply.response.status
}

#[test]
fn pitfall_01_oversized_segment_before_login_is_refused_on_its_header() {
    let mut receiver = Receiver::new(LOGIN_DATA_BYTES_MAX);
    for code in [opcode::LOGIN_REQUEST, opcode::TEXT_REQUEST, opcode::SCSI_COMMAND, 0x3f] {
        let mut bhs = [0; BHS_BYTES];
        bhs[0] = code;
        bhs[5..8].copy_from_slice(&[0xff, 0xff, 0xff]);
        let error = receiver.clone().next(&bhs).unwrap_err();
        assert_eq!(error, FrameError::TooLong { announced: (1 << 24) - 1, limit: LOGIN_DATA_BYTES_MAX });
    }
    assert_eq!(receiver.next(&[]).unwrap().event, Event::NeedMore);
}

#[test]
fn pitfall_02_odd_keys_are_answered_or_refused_without_harm() {
    let names = format!("InitiatorName={INITIATOR}\0TargetName={TARGET}\0");
    for length in [1, 63, 64, 255, 8191] {
        let key = "K".repeat(length);
        let mut login = ByHand::new(Host::default());
        let reply = login.say(format!("{names}{key}=1\0").as_bytes());
        if length <= 63 {
            let answer = format!("{key}=NotUnderstood\0");
            assert!(reply.data.windows(answer.len()).any(|part| part == answer.as_bytes()), "{length}");
        } else {
            assert_eq!(refused(&reply), LoginStatus::INITIATOR_ERROR, "{length}");
        }
        let value = "v".repeat(length);
        let reply = ByHand::new(Host::default()).say(format!("{names}X-key={value}\0").as_bytes());
        assert_eq!(reply.step == TargetStep::Continue, length <= 2050, "{length}");
    }
    for odd in ["=\0", "=1\0", "key\0", "key=1", "\u{1}=1\0", " =1\0"] {
        let reply = ByHand::new(Host::default()).say(format!("{names}{odd}").as_bytes());
        assert_eq!(refused(&reply), LoginStatus::INITIATOR_ERROR, "{odd:?}");
    }
}

#[test]
fn pitfall_03_continued_text_needs_text_and_an_end() {
    let mut login = ByHand::new(Host::default());
    assert_eq!(refused(&login.continued(b"")), LoginStatus::INITIATOR_ERROR);

    let mut login = ByHand::new(Host::default());
    let piece = [b'x'; 4096];
    let rounds = (0..100).take_while(|_| login.continued(&piece).step == TargetStep::Continue).count();
    assert_eq!(rounds, 65_536 / piece.len(), "an endless chain ends at the limit");

    let mut both = [0; BHS_BYTES];
    both[0] = opcode::TEXT_REQUEST;
    both[1] = 0xc0;
    assert!(TextRequest::parse(&both).is_err(), "C and F exclude each other");

    let text = |cont: bool, ttt| TextRequest {
        immediate: true,
        final_pdu: !cont,
        cont,
        lun: Lun(0),
        itt: 1,
        ttt,
        cmd_sn: 0,
        exp_stat_sn: 0,
        data_len: 0,
    };
    let mut target = TargetText::new(100);
    let empty = target.receive(&text(true, RESERVED_TAG), b"", 512, |_| None);
    assert_eq!(empty, Err(ExchangeError::Text(TextError::EmptyContinuation)));
    let (response, _) = target.receive(&text(true, RESERVED_TAG), b"SendT", 512, |_| None).unwrap();
    let (end, data) = target
        .receive(&text(false, response.ttt), b"argets=All\0", 512, |all| (all == "All").then(Vec::new))
        .unwrap();
    assert!(end.final_pdu && data.is_empty());
    let reused = target.receive(&text(false, response.ttt), b"", 512, |_| None);
    assert_eq!(reused, Err(ExchangeError::UnknownTag(response.ttt)));
}

#[test]
fn pitfall_04_truncated_pdus_wait_and_never_underflow() {
    for code in 0..64 {
        let mut bhs = [0; BHS_BYTES];
        bhs[0] = code;
        bhs[4] = 2;
        bhs[7] = 5;
        let mut stream = bhs.to_vec();
        stream.extend_from_slice(&[0; 8 + 8]);
        for end in 0..stream.len() {
            let mut receiver = Receiver::new(8192);
            let mut input = &stream[..end];
            let mut complete = false;
            while !input.is_empty() {
                let step = receiver.next(input).unwrap();
                input = &input[step.consumed..];
                complete |= matches!(step.event, Event::Data { complete: true, .. });
            }
            assert!(!complete, "{end} of {} bytes are no PDU", stream.len());
        }
    }
    let login = ByHand::new(Host::default()).say(b"");
    assert_eq!(refused(&login), LoginStatus::MISSING_PARAMETER);
}

#[test]
fn pitfall_05_every_challenge_is_the_callers_fresh_randomness() {
    let host = |random| Host { random, ..Host::with_chap(one_way(&BOTH, "secret")) };
    let (mut first, id, challenge) = ByHand::challenged(host(1), Algorithm::Sha256);
    let mut expected = vec![0; 33];
    host(1).random(&mut expected);
    assert_eq!((id, &challenge[..]), (expected[0], &expected[1..]), "no byte is made up elsewhere");
    first.login = TargetLogin::new(target_config());
    let (_, _, again) = ByHand::challenged(Host { random: first.host.random, ..host(0) }, Algorithm::Sha256);
    assert_ne!(challenge, again);
}

#[test]
fn pitfall_06_a_reflected_challenge_is_refused() {
    let host = Host::with_chap(mutual(&BOTH, "array secret"));
    let (mut login, id, challenge) = ByHand::challenged(host, Algorithm::Md5);
    let secret = mutual(&BOTH, "array secret").initiator().secret.clone();
    let proof = encode_hex(&Algorithm::Md5.respond(id, &secret, &challenge));
    for form in [encode_hex(&challenge), encode_base64(&challenge)] {
        let mut again = ByHand::challenged(Host::with_chap(mutual(&BOTH, "array secret")), Algorithm::Md5).0;
        let text = format!("CHAP_N=alice\0CHAP_R={proof}\0CHAP_I=1\0CHAP_C={form}\0");
        let reply = again.say(text.as_bytes());
        assert_eq!(refused(&reply), LoginStatus::AUTHENTICATION_FAILED);
        assert!(reply.data.is_empty(), "no response may leave");
    }
    let text = format!("CHAP_N=alice\0CHAP_R={proof}\0CHAP_I=1\0CHAP_C=0x0102030405060708\0");
    assert_eq!(login.say(text.as_bytes()).step, TargetStep::Continue, "an own challenge is answered");
}

#[test]
fn pitfall_07_user_names_are_compared_whole_and_literally() {
    let attempt = |user: &str, named: &str| {
        let chap =
            linerate_iscsi_proto::chap::ChapConfig::new(&BOTH, credentials(user, "secret"), None).unwrap();
        let secret = chap.initiator().secret.clone();
        let (mut login, id, challenge) = ByHand::challenged(Host::with_chap(chap), Algorithm::Sha256);
        let proof = encode_hex(&Algorithm::Sha256.respond(id, &secret, &challenge));
        login.say(format!("CHAP_N={named}\0CHAP_R={proof}\0").as_bytes()).step == TargetStep::Continue
    };
    for (user, named) in [("alice", "alice2"), ("alice2", "alice"), ("alice", "Alice"), ("alice", "")] {
        assert!(!attempt(user, named), "{named} is not {user}");
    }
    for literal in ["alice", "0x616c696365", "0bYWxpY2U=", "0xzz", "0b"] {
        assert!(attempt(literal, literal), "{literal} is a name like any other");
    }
    assert!(!attempt("alice", "0x616c696365"), "a name is never decoded");
}

#[test]
fn pitfall_08_malformed_responses_are_refused() {
    let long = format!("0b{}", "QUJD".repeat(400));
    let base64_extra = format!("{}AAAA", encode_base64(&[1; 32]));
    for wrong in [
        "",
        "0x",
        "0b",
        "0",
        "x",
        "0xabc",
        "0xgg",
        "0b!!!!",
        "0bAAA",
        "0bA===",
        &long,
        &base64_extra,
        "0x00",
        "12",
    ] {
        let host = Host::with_chap(one_way(&BOTH, "secret"));
        let (mut login, ..) = ByHand::challenged(host, Algorithm::Sha256);
        let reply = login.say(format!("CHAP_N=alice\0CHAP_R={wrong}\0").as_bytes());
        assert_eq!(refused(&reply), LoginStatus::AUTHENTICATION_FAILED, "{wrong:?}");
    }
    let host = Host::with_chap(one_way(&BOTH, "secret"));
    let (mut login, id, challenge) = ByHand::challenged(host, Algorithm::Sha256);
    let secret = one_way(&BOTH, "secret").initiator().secret.clone();
    let proof = encode_base64(&Algorithm::Sha256.respond(id, &secret, &challenge));
    let reply = login.say(format!("CHAP_N=alice\0CHAP_R={proof}\0").as_bytes());
    assert_eq!(reply.step, TargetStep::Continue, "base64 is as good as hexadecimal");
}

#[test]
fn pitfall_11_a_long_listing_is_split_at_the_initiators_segment_length() {
    let names: Vec<String> = (0..200).map(|n| format!("iqn.2026-11.lab.linerate:disk{n}")).collect();
    let portal = [TargetAddress { host: "127.0.0.1".into(), port: 3260, portal_group_tag: Some(1) }];
    let whole = write_targets(names.iter().map(|name| (name.as_str(), &portal[..])));
    let mut target = TargetText::new(4096);
    let mut request = TextRequest {
        immediate: true,
        final_pdu: true,
        cont: false,
        lun: Lun(0),
        itt: 1,
        ttt: RESERVED_TAG,
        cmd_sn: 0,
        exp_stat_sn: 0,
        data_len: 0,
    };
    let mut text = &b"SendTargets=All\0"[..];
    let mut received = Vec::new();
    loop {
        let (response, data) = target.receive(&request, text, 512, |_| Some(whole.clone())).unwrap();
        assert!(data.len() <= 512);
        received.extend_from_slice(&data);
        assert_eq!(response.final_pdu, response.ttt == RESERVED_TAG);
        if response.final_pdu {
            break;
        }
        assert!(response.cont);
        (request.ttt, text) = (response.ttt, b"");
    }
    assert_eq!(received, whole);
}

#[test]
fn pitfall_13_commands_outside_the_window_are_dropped_silently() {
    for start in [0, 100, u32::MAX - 3, u32::MAX] {
        let mut window = TargetWindow::new(start, 0, 8);
        assert_eq!(window.admit(start.wrapping_add(8), false), Admission::Ignore, "MaxCmdSN + 1");
        assert_eq!(window.admit(start.wrapping_sub(1), false), Admission::Ignore, "below ExpCmdSN");
        assert_eq!(window.admit(start.wrapping_add(7), false), Admission::Gap);
        let before = window.peek();
        assert_eq!(window.admit(start.wrapping_add(20), true), Admission::Run, "immediate");
        assert_eq!(window.peek(), before, "immediate commands do not move the window");
        for n in 0..8 {
            assert_eq!(window.admit(start.wrapping_add(n), false), Admission::Run);
        }
        assert_eq!(window.admit(start.wrapping_add(8), false), Admission::Ignore, "the window is full");
        window.release();
        assert_eq!(window.admit(start.wrapping_add(8), false), Admission::Run);
    }
}

#[test]
fn pitfall_16_r2t_carries_the_window_and_the_commands_lun() {
    let params = SessionParams::default();
    let lun = Lun::from_number(3);
    let mut write = TargetWrite::begin(&command(65_536, 0, true), 65_536, &params, 5).unwrap();
    let mut window = TargetWindow::new(10, 20, 4);
    assert_eq!(window.admit(10, false), Admission::Run);
    let r2t = write.next_r2t().unwrap().pdu(lun, 9, window.peek());
    let mut bhs = [0; BHS_BYTES];
    r2t.emit(&mut bhs);
    assert_eq!(&bhs[8..16], &[0, 3, 0, 0, 0, 0, 0, 0]);
    assert_eq!((r2t.sn.stat_sn, r2t.sn.exp_cmd_sn, r2t.sn.max_cmd_sn), (20, 11, 13));
    assert_eq!(window.status().stat_sn, 20, "an R2T uses up no StatSN");
}

#[test]
fn pitfall_18_a_pdu_in_single_bytes_is_one_pdu() {
    let framer = Framer { header_digest: DigestKind::Crc32c, data_digest: DigestKind::Crc32c };
    let data = [7; 13];
    let mut bhs = [0; BHS_BYTES];
    command(13, 13, true).emit(&mut bhs);
    let mut stream = Vec::new();
    framer.write(&bhs, &data, &mut stream);
    for split in 1..stream.len() {
        let mut receiver = Receiver::new(8192);
        receiver.negotiated(framer.header_digest, framer.data_digest, 8192);
        let (mut headers, mut ends, mut payload) = (0, 0, 0);
        for mut input in [&stream[..split], &stream[split..]] {
            while !input.is_empty() {
                let step = receiver.next(input).unwrap();
                input = &input[step.consumed..];
                match step.event {
                    Event::Header { data_len } => {
                        assert_eq!(data_len, 13);
                        headers += 1;
                    }
                    Event::Data { payload: range, complete, .. } => {
                        payload += range.len();
                        ends += usize::from(complete);
                    }
                    Event::NeedMore => {}
                }
            }
        }
        assert_eq!((headers, ends, payload), (1, 1, 13), "split at {split}");
    }
}

#[test]
fn pitfall_19_a_wrong_data_digest_never_completes_a_pdu() {
    let framer = Framer { header_digest: DigestKind::None, data_digest: DigestKind::Crc32c };
    let mut bhs = [0; BHS_BYTES];
    command(16, 16, true).emit(&mut bhs);
    let mut stream = Vec::new();
    framer.write(&bhs, &[1; 16], &mut stream);
    stream[50] ^= 1;
    let mut receiver = Receiver::new(8192);
    receiver.negotiated(framer.header_digest, framer.data_digest, 8192);
    let header = receiver.next(&stream).unwrap();
    assert_eq!(receiver.next(&stream[header.consumed..]), Err(FrameError::DataDigest));
    receiver.next(&stream[..48]).unwrap();
    receiver.advance_direct(16, |crc: Crc32c| crc.update(&stream[48..64]));
    assert_eq!(receiver.next(&stream[64..]), Err(FrameError::DataDigest), "received in place");
    assert!(receiver.at_boundary(), "the stream is in step, so that a Reject can be sent");
}

#[test]
fn pitfall_21_data_out_of_sequence_fails_the_task() {
    let params = SessionParams { max_burst_length: 4096, max_outstanding_r2t: 2, ..SessionParams::default() };
    let begin = || {
        let mut write = TargetWrite::begin(&command(8192, 0, true), 8192, &params, 3).unwrap();
        let grants: Vec<R2tGrant> = std::iter::from_fn(|| write.next_r2t()).collect();
        (write, grants)
    };
    let (write, grants) = begin();
    assert_eq!(grants.len(), 2);
    let ttt = grants[0].ttt;
    let good = Piece { data_sn: 0, buffer_offset: 0, len: 2048, final_pdu: false };
    for (tag, piece, error) in [
        (ttt, Piece { data_sn: 1, ..good }, WriteError::DataSn { expected: 0, got: 1 }),
        (ttt, Piece { buffer_offset: 512, ..good }, WriteError::Offset { expected: 0, got: 512 }),
        (ttt, Piece { len: 8192, ..good }, WriteError::TooLong { sent: 8192, room: 4096 }),
        (ttt, Piece { final_pdu: true, ..good }, WriteError::FinalBit),
        (ttt, Piece { len: 4096, ..good }, WriteError::FinalBit),
        (ttt + 100, good, WriteError::UnknownTag(ttt + 100)),
        (grants[1].ttt, good, WriteError::UnknownTag(grants[1].ttt)),
        (RESERVED_TAG, good, WriteError::UnsolicitedForbidden),
    ] {
        assert_eq!(write.clone().accept(&data_out(tag, &piece)), Err(error), "{piece:?}");
    }
    let (mut write, _) = begin();
    assert_eq!(write.accept(&data_out(ttt, &good)), Ok(false));
    let repeated = write.accept(&data_out(ttt, &good));
    assert_eq!(repeated, Err(WriteError::DataSn { expected: 1, got: 0 }));
    assert_eq!(WriteError::FinalBit.sense(), (0x0c, 0x0d));
}

#[test]
fn pitfall_22_unsolicited_data_is_bounded_by_the_first_burst() {
    let params = SessionParams { initial_r2t: false, first_burst_length: 8192, ..SessionParams::default() };
    let too_much = TargetWrite::begin(&command(65_536, 8193, true), 65_536, &params, 0);
    assert_eq!(too_much, Err(WriteError::TooMuchUnsolicited { sent: 8193, limit: 8192 }));
    let beyond = TargetWrite::begin(&command(512, 1024, true), 512, &params, 0);
    assert_eq!(beyond, Err(WriteError::TooMuchUnsolicited { sent: 1024, limit: 512 }));
    let none = SessionParams { immediate_data: false, initial_r2t: true, ..params };
    assert_eq!(
        TargetWrite::begin(&command(512, 512, true), 512, &none, 0),
        Err(WriteError::ImmediateForbidden)
    );
    assert_eq!(
        TargetWrite::begin(&command(512, 0, false), 512, &none, 0),
        Err(WriteError::UnsolicitedForbidden)
    );
    let mut write = TargetWrite::begin(&command(65_536, 4096, false), 65_536, &params, 0).unwrap();
    let piece = Piece { data_sn: 0, buffer_offset: 4096, len: 4097, final_pdu: true };
    let error = write.accept(&data_out(RESERVED_TAG, &piece));
    assert_eq!(error, Err(WriteError::TooLong { sent: 4097, room: 4096 }));
}

#[test]
fn pitfall_37_the_same_isid_replaces_one_session_and_only_that() {
    let mut host = Host::default();
    for round in 0..5 {
        run(initiator_config(), target_config(), &mut host).done();
        assert_eq!(host.sessions.len(), 1, "round {round}");
    }
    let other = InitiatorConfig { isid: [9; 6], ..initiator_config() };
    run(other, target_config(), &mut host).done();
    assert_eq!(host.sessions.len(), 2);
    run(initiator_config(), target_config(), &mut host).done();
    assert_eq!(host.sessions.len(), 2);
}

#[test]
fn pitfall_40_logins_beyond_the_limit_are_refused() {
    let mut host = Host::default();
    let status = (0..9_u8).find_map(|n| {
        let config = InitiatorConfig { isid: [n; 6], ..initiator_config() };
        match run(config, target_config(), &mut host) {
            Outcome::Done { .. } => None,
            outcome => Some((n, outcome.status())),
        }
    });
    assert_eq!(status, Some((4, LoginStatus::OUT_OF_RESOURCES)));
}

#[test]
fn pitfall_41_redirection_addresses_keep_host_and_port_apart() {
    let address = TargetAddress::parse("10.0.0.9:3261").unwrap();
    assert_eq!((address.host.as_str(), address.port), ("10.0.0.9", 3261));
    for swapped in ["3261:10.0.0.9", "3260:host", "[3260]:::1"] {
        assert_eq!(TargetAddress::parse(swapped), None, "{swapped}");
    }
}
