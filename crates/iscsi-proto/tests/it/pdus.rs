//! Every PDU: the positions of its bytes by the RFC, and round trips.

use linerate_iscsi_proto::pdu::*;
use proptest::prelude::*;

const SN: StatusNumbers =
    StatusNumbers { stat_sn: 0x1818_1818, exp_cmd_sn: 0x1c1c_1c1c, max_cmd_sn: 0x2020_2020 };

fn hex(bhs: &Bhs) -> String {
    let words: Vec<String> = (0..12)
        .map(|n| u32::from_be_bytes(*bhs[4 * n..].first_chunk().unwrap()))
        .map(|word| format!("{word:08x}"))
        .collect();
    words.join(" ")
}

fn request(pdu: Request) -> String {
    let mut bhs = [0xff; BHS_BYTES];
    pdu.emit(&mut bhs);
    assert_eq!(Request::parse(&bhs), Ok(pdu));
    hex(&bhs)
}

fn response(pdu: Response) -> String {
    let mut bhs = [0xff; BHS_BYTES];
    pdu.emit(&mut bhs);
    assert_eq!(Response::parse(&bhs), Ok(pdu));
    hex(&bhs)
}

/// Written by hand from the diagrams of RFC 7143 section 11: this detects a mistake that parse and emit share.
#[test]
fn requests_on_the_wire() {
    let cdb = *b"\x28\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e";
    let command = ScsiCommand {
        immediate: false,
        final_pdu: true,
        read: true,
        write: false,
        attribute: TaskAttribute::Simple,
        lun: Lun::from_number(1),
        itt: 0x1010_1010,
        expected_len: 4096,
        cmd_sn: 0x1818_1818,
        exp_stat_sn: 0x1c1c_1c1c,
        cdb,
        ahs_len: 8,
        data_len: 0x0001_0203,
    };
    assert_eq!(
        request(Request::ScsiCommand(command)),
        "01c10000 02010203 00010000 00000000 10101010 00001000 18181818 1c1c1c1c 28000102 03040506 0708090a 0b0c0d0e"
    );
    let data_out = DataOut {
        final_pdu: true,
        lun: Lun(2),
        itt: 3,
        ttt: 4,
        exp_stat_sn: 5,
        data_sn: 6,
        buffer_offset: 7,
        data_len: 8,
    };
    assert_eq!(
        request(Request::DataOut(data_out)),
        "05800000 00000008 00000000 00000002 00000003 00000004 00000000 00000005 00000000 00000006 00000007 00000000"
    );
    let nop = NopOut { immediate: true, lun: Lun(1), itt: 2, ttt: 3, cmd_sn: 4, exp_stat_sn: 5, data_len: 6 };
    assert_eq!(
        request(Request::NopOut(nop)),
        "40800000 00000006 00000000 00000001 00000002 00000003 00000004 00000005 00000000 00000000 00000000 00000000"
    );
    let task = TaskManagement {
        immediate: true,
        function: TaskFunction::LogicalUnitReset,
        lun: Lun(1),
        itt: 2,
        referenced_itt: RESERVED_TAG,
        cmd_sn: 3,
        exp_stat_sn: 4,
        ref_cmd_sn: 5,
        exp_data_sn: 6,
    };
    assert_eq!(
        request(Request::TaskManagement(task)),
        "42850000 00000000 00000000 00000001 00000002 ffffffff 00000003 00000004 00000005 00000006 00000000 00000000"
    );
    let logout = LogoutRequest {
        immediate: true,
        reason: LogoutReason::CloseConnection,
        itt: 1,
        cid: 2,
        cmd_sn: 3,
        exp_stat_sn: 4,
    };
    assert_eq!(
        request(Request::Logout(logout)),
        "46810000 00000000 00000000 00000000 00000001 00020000 00000003 00000004 00000000 00000000 00000000 00000000"
    );
}

#[test]
fn text_and_login_requests_on_the_wire() {
    let login = LoginRequest {
        transit: true,
        cont: false,
        current: Stage::Operational,
        next: Stage::FullFeature,
        version_max: 0,
        version_min: 0,
        isid: [0x40, 1, 2, 3, 4, 5],
        tsih: 0x0607,
        itt: 8,
        cid: 9,
        cmd_sn: 10,
        exp_stat_sn: 11,
        data_len: 12,
    };
    assert_eq!(
        request(Request::Login(login)),
        "43870000 0000000c 40010203 04050607 00000008 00090000 0000000a 0000000b 00000000 00000000 00000000 00000000"
    );
    let text = TextRequest {
        immediate: false,
        final_pdu: false,
        cont: true,
        lun: Lun(1),
        itt: 2,
        ttt: 3,
        cmd_sn: 4,
        exp_stat_sn: 5,
        data_len: 6,
    };
    assert_eq!(
        request(Request::Text(text)),
        "04400000 00000006 00000000 00000001 00000002 00000003 00000004 00000005 00000000 00000000 00000000 00000000"
    );
    let snack = Snack {
        kind: SnackKind::Status,
        lun: Lun(1),
        itt: RESERVED_TAG,
        ttt: 3,
        exp_stat_sn: 4,
        begin_run: 5,
        run_len: 6,
    };
    assert_eq!(
        request(Request::Snack(snack)),
        "10810000 00000000 00000000 00000001 ffffffff 00000003 00000000 00000004 00000000 00000000 00000005 00000006"
    );
}

#[test]
fn responses_on_the_wire() {
    let scsi = ScsiResponse {
        response: 0,
        status: 2,
        itt: 1,
        sn: SN,
        exp_data_sn: 3,
        residual: Residual::Underflow(4),
        data_len: 20,
    };
    assert_eq!(
        response(Response::Scsi(scsi)),
        "21820002 00000014 00000000 00000000 00000001 00000000 18181818 1c1c1c1c 20202020 00000003 00000000 00000004"
    );
    let data_in = DataIn {
        final_pdu: true,
        acknowledge: false,
        status: Some(DataInStatus { status: 0, residual: Residual::Overflow(9) }),
        lun: Lun(0),
        itt: 1,
        ttt: RESERVED_TAG,
        sn: SN,
        data_sn: 2,
        buffer_offset: 3,
        data_len: 4,
    };
    assert_eq!(
        response(Response::DataIn(data_in)),
        "25850000 00000004 00000000 00000000 00000001 ffffffff 18181818 1c1c1c1c 20202020 00000002 00000003 00000009"
    );
    let r2t = R2t { lun: Lun(5), itt: 1, ttt: 6, sn: SN, r2t_sn: 2, buffer_offset: 3, desired_len: 4 };
    assert_eq!(
        response(Response::R2t(r2t)),
        "31800000 00000000 00000000 00000005 00000001 00000006 18181818 1c1c1c1c 20202020 00000002 00000003 00000004"
    );
    let nop = NopIn { lun: Lun(1), itt: RESERVED_TAG, ttt: 3, sn: SN, data_len: 4 };
    assert_eq!(
        response(Response::NopIn(nop)),
        "20800000 00000004 00000000 00000001 ffffffff 00000003 18181818 1c1c1c1c 20202020 00000000 00000000 00000000"
    );
    let task = TaskManagementResponse { result: TaskResult::NotSupported, itt: 1, sn: SN };
    assert_eq!(
        response(Response::TaskManagement(task)),
        "22800500 00000000 00000000 00000000 00000001 00000000 18181818 1c1c1c1c 20202020 00000000 00000000 00000000"
    );
    let logout =
        LogoutResponse { result: LogoutResult::NoSuchCid, itt: 1, sn: SN, time2wait_s: 2, time2retain_s: 20 };
    assert_eq!(
        response(Response::Logout(logout)),
        "26800100 00000000 00000000 00000000 00000001 00000000 18181818 1c1c1c1c 20202020 00000000 00020014 00000000"
    );
}

#[test]
fn rare_responses_on_the_wire() {
    let login = LoginResponse {
        transit: true,
        cont: false,
        current: Stage::Security,
        next: Stage::Operational,
        version_max: 0,
        version_active: 0,
        isid: [0x40, 1, 2, 3, 4, 5],
        tsih: 0x0607,
        itt: 1,
        sn: SN,
        status: LoginStatus::AUTHENTICATION_FAILED,
        data_len: 2,
    };
    assert_eq!(
        response(Response::Login(login)),
        "23810000 00000002 40010203 04050607 00000001 00000000 18181818 1c1c1c1c 20202020 02010000 00000000 00000000"
    );
    let text = TextResponse {
        final_pdu: true,
        cont: false,
        lun: Lun(0),
        itt: 1,
        ttt: RESERVED_TAG,
        sn: SN,
        data_len: 2,
    };
    assert_eq!(
        response(Response::Text(text)),
        "24800000 00000002 00000000 00000000 00000001 ffffffff 18181818 1c1c1c1c 20202020 00000000 00000000 00000000"
    );
    let event = AsyncMessage {
        event: AsyncEvent::ConnectionDrop,
        vendor_code: 0,
        lun: Lun(0),
        sn: SN,
        parameter1: 1,
        parameter2: 2,
        parameter3: 3,
        data_len: 0,
    };
    assert_eq!(
        response(Response::Async(event)),
        "32800000 00000000 00000000 00000000 ffffffff 00000000 18181818 1c1c1c1c 20202020 02000001 00020003 00000000"
    );
    let reject = Reject { reason: RejectReason::DataDigest, sn: SN, data_sn: 7, data_len: 48 };
    assert_eq!(
        response(Response::Reject(reject)),
        "3f800200 00000030 00000000 00000000 ffffffff 00000000 18181818 1c1c1c1c 20202020 00000007 00000000 00000000"
    );
}

#[test]
fn impossible_headers_are_refused() {
    let mut bhs = [0; BHS_BYTES];
    for code in 0..64 {
        bhs[0] = code;
        let known = matches!(Request::parse(&bhs), Ok(_) | Err(PduError::Field { .. }));
        assert_eq!(known, matches!(code, 0..=6 | 0x10), "initiator opcode {code:#x}");
        let known = matches!(Response::parse(&bhs), Ok(_) | Err(PduError::Field { .. }));
        assert_eq!(known, matches!(code, 0x20..=0x26 | 0x31 | 0x32 | 0x3f), "target opcode {code:#x}");
    }
    bhs = [0; BHS_BYTES];
    bhs[0] = opcode::LOGIN_REQUEST;
    for (flags, wrong) in
        [(0x08, "CSG"), (0x0c, "CSG"), (0x82, "NSG"), (0x84, "NSG"), (0x80, "NSG"), (0xc1, "NSG")]
    {
        bhs[1] = flags;
        let error = LoginRequest::parse(&bhs).unwrap_err();
        assert!(matches!(error, PduError::Field { field, .. } if field == wrong), "{flags:#x}: {error}");
        assert_eq!(error.reject_reason(), RejectReason::InvalidPduField);
    }
    assert_eq!(
        Request::parse(&[0x3f; BHS_BYTES]).unwrap_err().reject_reason(),
        RejectReason::CommandNotSupported
    );
}

#[test]
fn luns_in_both_addressing_methods() {
    assert_eq!(Lun::from_number(5), Lun(0x0005_0000_0000_0000));
    assert_eq!(Lun::from_number(300), Lun(0x412c_0000_0000_0000));
    for number in 0..1 << 14 {
        assert_eq!(Lun::from_number(number).number(), Some(number));
    }
    assert_eq!(Lun(0x4005_0000_0000_0000).number(), Some(5));
    assert_eq!(Lun(0x0105_0000_0000_0000).number(), None);
    assert_eq!(Lun(0xc101_0000_0000_0000).number(), None);
    assert_eq!(Lun(0x0005_0001_0000_0000).number(), None);
}

#[test]
fn residuals() {
    assert_eq!(Residual::of(512, 512), Residual::None);
    assert_eq!(Residual::of(512, 100), Residual::Underflow(412));
    assert_eq!(Residual::of(512, 1024), Residual::Overflow(512));
    assert_eq!(Residual::of(0, u64::MAX), Residual::Overflow(u32::MAX));
}

fn any_header() -> impl Strategy<Value = Bhs> {
    let codes = prop::sample::select(vec![
        0u8, 1, 2, 3, 4, 5, 6, 0x10, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x31, 0x32, 0x3f, 0x1f, 0x3e,
    ]);
    (codes, any::<bool>(), prop::array::uniform32(any::<u8>()), prop::array::uniform16(any::<u8>())).prop_map(
        |(code, immediate, head, tail)| {
            let mut bhs = [0; BHS_BYTES];
            bhs[..32].copy_from_slice(&head);
            bhs[32..].copy_from_slice(&tail);
            bhs[0] = code | if immediate { 0x40 } else { 0 };
            bhs
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// Every struct is the result of parsing some header, so this covers all of them: a parsed header is written back
    /// unchanged, and a second pass changes no byte.
    #[test]
    fn whatever_parses_survives_a_round_trip(bhs in any_header()) {
        let mut again = [0; BHS_BYTES];
        let mut third = [0; BHS_BYTES];
        if let Ok(pdu) = Request::parse(&bhs) {
            pdu.emit(&mut again);
            prop_assert_eq!(Request::parse(&again), Ok(pdu));
            Request::parse(&again).unwrap().emit(&mut third);
            prop_assert_eq!(again, third);
            prop_assert_eq!(data_len(&again) == data_len(&bhs), !matches!(pdu,
                Request::TaskManagement(_) | Request::Logout(_) | Request::Snack(_)) || data_len(&bhs) == 0);
        }
        if let Ok(pdu) = Response::parse(&bhs) {
            pdu.emit(&mut again);
            prop_assert_eq!(Response::parse(&again), Ok(pdu));
            Response::parse(&again).unwrap().emit(&mut third);
            prop_assert_eq!(again, third);
        }
    }
}

/// One line, in the words of the RFC; data are counted, not shown.
#[test]
fn pdus_print_as_one_line() {
    let mut cdb = [0; 16];
    cdb[..10].copy_from_slice(&[0x2a, 0, 0, 0, 1, 0, 0, 0, 8, 0]);
    let command = ScsiCommand {
        immediate: false,
        final_pdu: true,
        read: false,
        write: true,
        attribute: TaskAttribute::Simple,
        lun: Lun::from_number(3),
        itt: 0x1f,
        expected_len: 4096,
        cmd_sn: 7,
        exp_stat_sn: 5,
        cdb,
        ahs_len: 0,
        data_len: 4096,
    };
    let expected = "SCSI Command [F W] ITT 0x1f lun 3 WRITE (10) lba 256 blocks 8 expects 4096 bytes \
                    CmdSN 7 ExpStatSN 5 data 4096 bytes";
    assert_eq!(command.to_string(), expected);
    let mut bhs = [0; BHS_BYTES];
    command.emit(&mut bhs);
    assert_eq!(Header(&bhs).to_string(), expected);
    let sn = StatusNumbers { stat_sn: 5, exp_cmd_sn: 8, max_cmd_sn: 71 };
    let residual = Residual::Underflow(512);
    let response =
        ScsiResponse { response: 0, status: 2, itt: 0x1f, sn, exp_data_sn: 0, residual, data_len: 20 };
    assert_eq!(
        Response::Scsi(response).to_string(),
        "SCSI Response ITT 0x1f CHECK CONDITION underflow 512 bytes ExpDataSN 0 StatSN 5 ExpCmdSN 8 \
         MaxCmdSN 71 data 20 bytes"
    );
    bhs[0] = 0x3e;
    assert!(Header(&bhs).to_string().starts_with("not a PDU: "));
}

proptest! {
    #[test]
    fn any_header_prints_one_line(bhs in any::<[u8; 32]>(), rest in any::<[u8; 16]>()) {
        let header: Bhs = [&bhs[..], &rest[..]].concat().try_into().unwrap();
        let line = Header(&header).to_string();
        prop_assert!(!line.is_empty() && line.len() < 400 && !line.contains('\n'), "{}", line);
    }
}
