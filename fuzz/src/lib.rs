//! Bodies of the fuzz targets: each takes any bytes and must return, with its assertions holding.
//!
//! They are plain functions so that the stable toolchain can run them over random bytes and the corpus (`make fuzz-smoke`,
//! part of `make test`), while `make fuzz` lets cargo-fuzz look for new paths.

mod array_sessions;
mod smb_answers;
mod smb_shares;
mod vhdx_image;

pub use array_sessions::array_sessions;
use linerate_iscsi_proto::chap::{Algorithm, ChapConfig, ChapSecret, Credentials};
use linerate_iscsi_proto::frame::{Event, Receiver};
use linerate_iscsi_proto::keys::{Negotiation, Offer, Side};
use linerate_iscsi_proto::login::{
    Accepted, InitiatorConfig, InitiatorLogin, Lookup, SessionRequest, TargetHost, TargetLogin,
    TargetLoginConfig, TargetStep,
};
use linerate_iscsi_proto::names::IscsiName;
use linerate_iscsi_proto::params::{DigestKind, SessionParams};
use linerate_iscsi_proto::pdu::{
    BHS_BYTES, Bhs, DataIn, DataOut, LoginRequest, LoginResponse, LoginStatus, R2t, Request, Response,
    ScsiCommand, TextRequest, sense_data,
};
use linerate_iscsi_proto::send_targets::{InitiatorText, TargetText, read_targets};
use linerate_iscsi_proto::text::{self, Writer};
use linerate_iscsi_proto::transfer::{InitiatorRead, InitiatorWrite, TargetWrite};
use linerate_iscsi_proto::window::TargetWindow;
pub use smb_answers::smb_answers;
pub use smb_shares::smb_shares;
pub use vhdx_image::vhdx_image;

/// Headers and framing: every header that parses is written back the same; the receiver never claims more than its input.
pub fn pdu_parse(data: &[u8]) {
    if let Some(bhs) = data.first_chunk::<BHS_BYTES>() {
        let mut again: Bhs = [0; BHS_BYTES];
        if let Ok(pdu) = Request::parse(bhs) {
            pdu.emit(&mut again);
            assert_eq!(Request::parse(&again), Ok(pdu));
        }
        if let Ok(pdu) = Response::parse(bhs) {
            pdu.emit(&mut again);
            assert_eq!(Response::parse(&again), Ok(pdu));
        }
    }
    let _ = sense_data(data);
    let Some((&choice, stream)) = data.split_first() else { return };
    let digest = |on| if on { DigestKind::Crc32c } else { DigestKind::None };
    let mut receiver = Receiver::new(4096);
    receiver.negotiated(digest(choice & 1 != 0), digest(choice & 2 != 0), 4096);
    for chunk in stream.chunks(usize::from(choice >> 2) + 1) {
        let mut input = chunk;
        loop {
            let Ok(step) = receiver.next(input) else { return };
            assert!(step.consumed <= input.len());
            if let Event::Data { payload, .. } = &step.event {
                assert!(payload.end <= step.consumed);
            }
            input = &input[step.consumed..];
            if step.event == Event::NeedMore {
                assert!(input.is_empty());
                break;
            }
        }
    }
}

/// Text grammar, key negotiation on both sides, discovery lists: results stay inside the agreed ranges.
pub fn text_negotiation(data: &[u8]) {
    let _ = read_targets(data);
    let Ok(pairs) = text::parse(data) else { return };
    for side in [Side::Target, Side::Initiator] {
        let mut keys = Negotiation::new(side, Offer::default(), data.len() % 2 == 1);
        let mut out = Writer::default();
        keys.propose(&mut out);
        for (key, value) in &pairs {
            if keys.receive(key, value, &mut out).is_err() {
                break;
            }
        }
        let params = keys.params();
        assert!((512..1 << 24).contains(&params.peer_max_recv_data_segment_length));
        assert!((512..=1_048_576).contains(&params.max_burst_length));
        assert!((512..=params.max_burst_length).contains(&params.first_burst_length));
        assert!(params.max_connections == 1 && params.error_recovery_level == 0);
        assert!(text::parse(&out.into_bytes()).is_ok(), "what we write obeys the grammar");
    }
}

/// A target that demands a secret which no input knows.
struct Host;

impl TargetHost for Host {
    fn find(&mut self, _initiator: &str, _target: Option<&str>) -> Lookup {
        Lookup::Accept(Accepted { chap: Some(chap()), ..Accepted::default() })
    }

    fn random(&mut self, bytes: &mut [u8]) {
        bytes.fill(0xa5);
    }

    fn admit(&mut self, _request: &SessionRequest) -> Result<u16, LoginStatus> {
        panic!("somebody logged in without the secret");
    }
}

fn chap() -> ChapConfig {
    let side = |name: &str, secret: &[u8]| Credentials { name: name.into(), secret: ChapSecret::new(secret) };
    let (initiator, target) =
        (side("alice", b"\x01\x02 not in any corpus"), side("array", b"\x03\x04 nor this"));
    ChapConfig::new(&[Algorithm::Sha256, Algorithm::Md5], initiator, Some(target)).expect("valid")
}

/// Takes pieces off the input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        head
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn header(&mut self) -> Bhs {
        let mut bhs = [0; BHS_BYTES];
        let given = self.take(BHS_BYTES);
        bhs[..given.len()].copy_from_slice(given);
        bhs
    }
}

/// Texts that lead deep into a login.
const TEXTS: [&[u8]; 6] = [
    b"InitiatorName=iqn.2026-11.lab:a\0TargetName=iqn.2026-11.lab:b\0AuthMethod=CHAP\0",
    b"CHAP_A=5,7\0",
    b"CHAP_N=alice\0CHAP_R=0x00112233445566778899aabbccddeeff\0",
    b"CHAP_N=alice\0CHAP_R=0x00\0CHAP_I=1\0CHAP_C=0xa5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5\0",
    b"AuthMethod=None\0",
    b"HeaderDigest=CRC32C,None\0MaxBurstLength=65536\0",
];

/// Sequences of events against both login machines, the windows, text exchanges and data sequences.
pub fn session_events(data: &[u8]) {
    let mut input = Input(data);
    let offer = Offer::default();
    let config = TargetLoginConfig { offer, text_bytes_max: 4096, commands: 4, first_stat_sn: 0 };
    let name = |text| IscsiName::parse(text).expect("valid");
    let mut initiator = InitiatorLogin::new(InitiatorConfig {
        initiator_name: name("iqn.2026-11.lab:a"),
        target_name: Some(name("iqn.2026-11.lab:b")),
        isid: [0; 6],
        cid: 0,
        itt: 0,
        cmd_sn: 0,
        offer,
        chap: Some(chap()),
        join: None,
    });
    let _ = initiator.start();
    let mut initiator = Some(initiator);
    let mut target = Some(TargetLogin::new(config));
    let mut texts = (TargetText::new(1024), InitiatorText::new(0, 1024));
    let mut window = TargetWindow::new(0, 0, 4);
    while !input.0.is_empty() {
        match input.byte() % 5 {
            0 => login_request(&mut input, &mut target),
            1 => login_response(&mut input, &mut initiator),
            2 => {
                let before = window.peek();
                window.admit(u32::from(input.byte()), input.byte() & 1 != 0);
                assert!(window.peek().exp_cmd_sn.wrapping_sub(before.exp_cmd_sn) <= 1);
            }
            3 => text_exchange(&mut input, &mut texts),
            _ => transfers(&mut input),
        }
    }
}

fn text_of<'a>(input: &mut Input<'a>) -> &'a [u8] {
    let choice = usize::from(input.byte());
    if choice < TEXTS.len() { TEXTS[choice] } else { input.take(choice) }
}

fn login_request(input: &mut Input<'_>, target: &mut Option<TargetLogin>) {
    let (flags, vary) = (input.byte(), input.byte());
    let mut bhs = if vary == 0xff { input.header() } else { [0; BHS_BYTES] };
    (bhs[0], bhs[1]) = (0x43, flags);
    let text = text_of(input);
    let (Some(login), Ok(request)) = (target.as_mut(), LoginRequest::parse(&bhs)) else { return };
    let reply = login.receive(&request, text, &mut Host);
    assert!(text::parse(&reply.data).is_ok() || reply.response.cont);
    if reply.step != TargetStep::Continue {
        *target = None;
    }
}

fn login_response(input: &mut Input<'_>, initiator: &mut Option<InitiatorLogin>) {
    let (flags, stat_sn) = (input.byte(), input.byte());
    let mut bhs = [0; BHS_BYTES];
    (bhs[0], bhs[1], bhs[27]) = (0x23, flags, stat_sn);
    let text = text_of(input);
    let (Some(login), Ok(response)) = (initiator.as_mut(), LoginResponse::parse(&bhs)) else { return };
    match login.receive(&response, text, &mut |bytes| bytes.fill(0x5a)) {
        Ok(linerate_iscsi_proto::login::InitiatorStep::Done(_)) => {
            panic!("a target without the secret was believed")
        }
        Ok(_) => {}
        Err(_) => *initiator = None,
    }
}

fn text_exchange(input: &mut Input<'_>, texts: &mut (TargetText, InitiatorText)) {
    let mut bhs = input.header();
    bhs[0] = 4;
    let text = text_of(input);
    if let Ok(request) = TextRequest::parse(&bhs)
        && let Ok((response, data)) = texts.0.receive(&request, text, 64, |_| Some(vec![b'x'; 200]))
    {
        assert!(data.len() <= 64);
        let _ = texts.1.receive(&response, &data);
    }
}

/// One command's data sequences, driven by headers from the input: nothing may be placed outside the command's data.
fn transfers(input: &mut Input<'_>) {
    let choice = input.byte();
    let params = SessionParams {
        immediate_data: choice & 1 != 0,
        initial_r2t: choice & 2 != 0,
        max_burst_length: 1024,
        first_burst_length: 512,
        max_outstanding_r2t: 2,
        ..SessionParams::default()
    };
    let total = u32::from(input.byte()) * 16;
    let (mut read, mut source) = (InitiatorRead::new(total), InitiatorWrite::new(total, &params));
    let mut bhs = input.header();
    bhs[0] = 1;
    let Ok(command) = ScsiCommand::parse(&bhs) else { return };
    let command = ScsiCommand { expected_len: total, ..command };
    let Ok(mut write) = TargetWrite::begin(&command, total, &params, 1) else { return };
    for _ in 0..input.byte() % 8 {
        while write.next_r2t().is_some() {}
        let mut bhs = input.header();
        for code in [0x05, 0x25, 0x31] {
            bhs[0] = code;
            if let Ok(pdu) = DataOut::parse(&bhs) {
                let pdu = DataOut { itt: command.itt, ..pdu };
                if write.accept(&pdu).is_ok() {
                    assert!(u64::from(pdu.buffer_offset) + u64::from(pdu.data_len) <= u64::from(total));
                }
            }
            if let Ok(pdu) = DataIn::parse(&bhs)
                && read.accept(&pdu).is_ok()
            {
                assert!(u64::from(pdu.buffer_offset) + u64::from(pdu.data_len) <= u64::from(total));
            }
            if let Ok(pdu) = R2t::parse(&bhs)
                && let Ok(burst) = source.accept(&pdu)
            {
                assert!(burst.map(|piece| piece.len).sum::<u32>() <= total);
            }
        }
    }
}
