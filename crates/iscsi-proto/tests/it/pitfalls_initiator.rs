//! Bugs of real initiators that concern the protocol alone; `docs/pitfalls.md` has the list.

use super::pair::*;
use linerate_iscsi_proto::chap::{Algorithm, encode_base64, encode_hex};
use linerate_iscsi_proto::login::*;
use linerate_iscsi_proto::params::SessionParams;
use linerate_iscsi_proto::pdu::*;
use linerate_iscsi_proto::send_targets::{InitiatorText, TextStep, read_targets, write_targets};
use linerate_iscsi_proto::text::parse;
use linerate_iscsi_proto::transfer::*;
use linerate_iscsi_proto::window::{ExpectedStatus, InitiatorWindow};

fn sn(stat_sn: u32, exp_cmd_sn: u32, max_cmd_sn: u32) -> StatusNumbers {
    StatusNumbers { stat_sn, exp_cmd_sn, max_cmd_sn }
}

fn response(request: &LoginRequest, stat_sn: u32, data: &[u8]) -> LoginResponse {
    LoginResponse {
        transit: false,
        cont: false,
        current: request.current,
        next: Stage::Security,
        version_max: 0,
        version_active: 0,
        isid: request.isid,
        tsih: 0,
        itt: request.itt,
        sn: sn(stat_sn, request.cmd_sn, request.cmd_sn),
        status: LoginStatus::SUCCESS,
        data_len: data.len() as u32,
    }
}

#[test]
fn pitfall_09_long_challenges_are_hashed_whole() {
    let secret = one_way(&[Algorithm::Sha256], "secret").initiator().secret.clone();
    for length in [1, 255, 256, 1024] {
        let challenge: Vec<u8> = (0..length).map(|n| (n * 7 % 251) as u8).collect();
        for form in [encode_hex(&challenge), encode_base64(&challenge)] {
            let chap = Some(one_way(&[Algorithm::Sha256], "secret"));
            let mut login = InitiatorLogin::new(InitiatorConfig { chap, ..initiator_config() });
            let (request, _) = login.start();
            let text = b"AuthMethod=CHAP\0";
            login.receive(&response(&request, 1, text), text, &mut |_| ()).unwrap();
            let text = format!("CHAP_A=7\0CHAP_I=200\0CHAP_C={form}\0");
            let step = login.receive(&response(&request, 2, text.as_bytes()), text.as_bytes(), &mut |_| ());
            let Ok(InitiatorStep::Send(_, data)) = step else { panic!("{length}: {step:?}") };
            let proof = encode_hex(&Algorithm::Sha256.respond(200, &secret, &challenge));
            assert!(parse(&data).unwrap().contains(&("CHAP_R", &proof)), "{length}");
        }
    }
    let chap = Some(one_way(&[Algorithm::Sha256], "secret"));
    let mut login = InitiatorLogin::new(InitiatorConfig { chap, ..initiator_config() });
    let (request, _) = login.start();
    login.receive(&response(&request, 1, b""), b"AuthMethod=CHAP\0", &mut |_| ()).unwrap();
    let text = format!("CHAP_A=7\0CHAP_I=1\0CHAP_C={}\0", encode_base64(&[1; 1025]));
    let step = login.receive(&response(&request, 2, b""), text.as_bytes(), &mut |_| ());
    assert!(matches!(step, Err(LoginFailure::Protocol(_))), "{step:?}");
}

#[test]
fn pitfall_12_very_long_discovery_answers_are_bounded() {
    let names: Vec<String> = (0..10_000).map(|n| format!("iqn.2026-11.lab.linerate:disk{n}")).collect();
    let whole = write_targets(names.iter().map(|name| (name.as_str(), &[][..])));
    assert_eq!(read_targets(&whole).unwrap().len(), 10_000);
    let answer = |final_pdu, data: &[u8]| TextResponse {
        final_pdu,
        cont: !final_pdu,
        lun: Lun(0),
        itt: 1,
        ttt: if final_pdu { RESERVED_TAG } else { 5 },
        sn: StatusNumbers::default(),
        data_len: data.len() as u32,
    };
    let mut text = InitiatorText::new(1, 100_000);
    let pieces = whole.chunks(8192).take_while(|piece| text.receive(&answer(false, piece), piece).is_ok());
    assert_eq!(pieces.count(), 100_000 / 8192, "the answer is cut off at the limit");
    let mut text = InitiatorText::new(1, 100);
    assert!(text.receive(&answer(false, b""), b"").is_err(), "nothing to add and no end");
    assert_eq!(text.receive(&answer(true, b""), b""), Ok(TextStep::Done(Vec::new())));
}

fn window() -> InitiatorWindow {
    let (initiator, _) = run(initiator_config(), target_config(), &mut Host::default()).done();
    InitiatorWindow::after_login(&initiator)
}

#[test]
fn pitfall_14_numbers_are_taken_when_a_command_is_sent() {
    let mut window = window();
    assert_eq!(window.take(), 500);
    // A command that is cancelled while it waits has used no number: the next one follows without a gap.
    assert_eq!(window.take(), 501);
    assert_eq!(window.immediate(), 502, "an immediate PDU carries the next number and leaves it");
    assert_eq!(window.take(), 502);
}

#[test]
fn pitfall_15_the_expected_status_is_read_when_a_pdu_is_sent() {
    let (initiator, _) = run(initiator_config(), target_config(), &mut Host::default()).done();
    let mut expected = ExpectedStatus::after_login(&initiator);
    let first = expected.number();
    assert_eq!(expected.take(&sn(first, 500, 531)), Ok(()));
    assert_eq!(expected.number(), first + 1);
    assert!(expected.take(&sn(first, 500, 531)).is_err(), "a status comes once");
    assert!(expected.take(&sn(first + 2, 500, 531)).is_err(), "a status is missing");
}

#[test]
fn the_window_follows_the_target_and_ignores_stale_values() {
    let mut window = window();
    assert_eq!(window.room(), 32);
    window.observe(&sn(0, 500, 540));
    assert_eq!(window.room(), 41);
    window.observe(&sn(0, 500, 510));
    assert_eq!(window.room(), 41, "MaxCmdSN never goes back");
    window.observe(&sn(0, 700, 600));
    assert_eq!(window.room(), 41, "MaxCmdSN below ExpCmdSN - 1 is impossible");
    for _ in 0..41 {
        window.take();
    }
    assert!(!window.can_send());
    assert_eq!(window.room(), 0);
}

#[test]
fn pitfall_17_the_answer_to_a_ping_copies_lun_and_tag() {
    let ping = NopIn { lun: Lun::from_number(7), itt: RESERVED_TAG, ttt: 0x55, sn: sn(1, 2, 3), data_len: 0 };
    let answer = ping.answer(10, 11).unwrap();
    assert_eq!((answer.lun, answer.ttt, answer.itt), (ping.lun, 0x55, RESERVED_TAG));
    assert!(answer.immediate);
    assert_eq!((answer.cmd_sn, answer.exp_stat_sn), (10, 11));
    let silent = NopIn { ttt: RESERVED_TAG, ..ping };
    assert_eq!(silent.answer(10, 11), None);
}

#[test]
fn pitfall_33_lengths_from_the_target_never_reach_outside() {
    assert_eq!(sense_data(&[]), b"");
    assert_eq!(sense_data(&[0]), b"");
    assert_eq!(sense_data(&[0, 0]), b"");
    assert_eq!(sense_data(&[0xff, 0xff, 1, 2]), [1, 2]);
    assert_eq!(sense_data(&[0, 1, 1, 2]), [1]);
    let pdu = |data_sn, buffer_offset, data_len| DataIn {
        final_pdu: false,
        acknowledge: false,
        status: None,
        lun: Lun(0),
        itt: 1,
        ttt: RESERVED_TAG,
        sn: StatusNumbers::default(),
        data_sn,
        buffer_offset,
        data_len,
    };
    let mut read = InitiatorRead::new(512);
    assert_eq!(read.accept(&pdu(0, 0, 513)), Err(DataInError::TooLong { sent: 513, room: 512 }));
    assert_eq!(read.accept(&pdu(0, 512, 1)), Err(DataInError::Offset { expected: 0, got: 512 }));
    assert_eq!(read.accept(&pdu(1, 0, 1)), Err(DataInError::DataSn { expected: 0, got: 1 }));
    assert_eq!(
        read.accept(&pdu(0, u32::MAX, u32::MAX)),
        Err(DataInError::Offset { expected: 0, got: u32::MAX })
    );
    assert_eq!(read.accept(&pdu(0, 0, 512)), Ok(ReadEnd::Open));
    assert_eq!(read.accept(&pdu(1, 512, 1)), Err(DataInError::TooLong { sent: 1, room: 0 }));
    assert_eq!(read.finish(2), Err(DataInError::DataSn { expected: 1, got: 2 }));
    let mut long = InitiatorRead::new(65_536);
    assert_eq!(long.accept(&pdu(0, 0, 8193)), Ok(ReadEnd::Open), "tgt ignores MaxBurstLength");
}

#[test]
fn requests_for_data_never_reach_outside() {
    let params = SessionParams { initial_r2t: true, immediate_data: false, ..SessionParams::default() };
    let r2t = |r2t_sn, buffer_offset, desired_len| R2t {
        lun: Lun(0),
        itt: 1,
        ttt: 2,
        sn: StatusNumbers::default(),
        r2t_sn,
        buffer_offset,
        desired_len,
    };
    let mut write = InitiatorWrite::new(4096, &params);
    assert_eq!(write.accept(&r2t(1, 0, 512)), Err(R2tError::Number { expected: 0, got: 1 }));
    assert_eq!(write.accept(&r2t(0, 0, 4097)), Err(R2tError::Range { offset: 0, len: 4097 }));
    assert_eq!(write.accept(&r2t(0, 512, 512)), Err(R2tError::Range { offset: 512, len: 512 }));
    assert_eq!(write.accept(&r2t(0, u32::MAX, 2)), Err(R2tError::Range { offset: u32::MAX, len: 2 }));
    assert_eq!(write.accept(&r2t(0, 0, 262_145)), Err(R2tError::TooLong { asked: 262_145, limit: 262_144 }));
    assert_eq!(write.accept(&r2t(0, 0, 2048)).unwrap().count(), 1);
    assert_eq!(params.max_outstanding_r2t, 1);
    assert_eq!(write.accept(&r2t(1, 2048, 2048)), Err(R2tError::TooMany { limit: 1 }));
    write.answered();
    assert_eq!(write.accept(&r2t(1, 2048, 2048)).unwrap().count(), 1);
}
