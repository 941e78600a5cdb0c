//! An array's events about its peers: one event for a fault, few for a flood, and no secret in any.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly

#[path = "../support/mod.rs"]
mod support;

use linerate_iscsi_proto::{
    chap::Algorithm,
    pdu::{BHS_BYTES, Stage},
};
use linerate_iscsi_target::{
    Array,
    log::{Level, Log, LogEvent},
};
use std::{
    sync::Mutex,
    time::{Duration, Instant},
};
use support::{
    Client, IQN, array, is_quick,
    logins::{Who, status},
};

const HOST: &str = "iqn.2026-11.lab.linerate:host";
const SECRET: &str = "correct-horse-battery";
const GUESS: &str = "a wrong guess of it";

/// There is one log per process: tests read it in turn.
static LOG: Mutex<()> = Mutex::new(());

/// Reads the log.
struct Reader {
    log: Log,
    seen: Vec<LogEvent>,
    /// How many of them were looked at.
    at: usize,
}

impl Reader {
    fn open() -> Self {
        Self { log: Log::open(Level::Info), seen: Vec::new(), at: 0 }
    }

    /// The next event of a kind.
    fn expect(&mut self, kind: &str) -> LogEvent {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Some(found) = self.seen[self.at..].iter().position(|event| event.event == kind) {
                self.at += found + 1;
                return self.seen[self.at - 1].clone();
            }
            self.seen.extend(self.log.take(Duration::from_millis(100)));
        }
        panic!("no {kind}; there were {:#?}", self.seen);
    }
}

fn guarded() -> Array {
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0"], "limits": {{"sessions": 2, "login_timeout_s": 0.5, "stall_timeout_s": 0.5}},
            "targets": [{{"name": "{IQN}", "volumes": [{{"lun": 0, "name": "v", "size_bytes": 1048576}}]}},
                {{"name": "{IQN}.named", "initiators": ["iqn.2026-11.lab.linerate:other"]}},
                {{"name": "{IQN}.chap", "chap": {{"user": "alice", "secret": "{SECRET}"}}}}]}}"#
    );
    Array::start(serde_json::from_str(&json).unwrap()).unwrap()
}

fn login(array: &Array, isid: u8, target: &str) -> (Client, Option<(u8, u8)>) {
    let mut client = Client::connect(array.portals()[0]);
    let text = format!("InitiatorName={HOST}\0TargetName={target}\0");
    let answer = client.say(isid, Stage::Operational, Some(Stage::FullFeature), &text);
    (client, status(answer))
}

#[test]
fn what_goes_wrong_with_a_peer_is_told_with_its_address_and_reason() {
    let _turn = LOG.lock();
    let mut log = Reader::open();
    let array = guarded();
    let portal = array.portals()[0];
    let field = |event: &LogEvent, name: &str| event.fields[name].as_str().unwrap_or_default().to_owned();

    for (target, reason) in [("none", "target not found"), (&format!("{IQN}.named"), "not allowed")] {
        let target = if target == "none" { format!("{IQN}.none") } else { target.to_owned() };
        let (client, _) = login(&array, 1, &target);
        let event = log.expect("login_refused");
        assert!(event.message.contains(reason), "{event:?}");
        assert_eq!(event.peer, Some(client.socket.local_addr().unwrap().to_string()));
        assert_eq!((field(&event, "initiator"), field(&event, "target")), (HOST.into(), target));
        assert!(field(&event, "status").starts_with("0x020"), "{event:?}");
    }

    let chap = format!("{IQN}.chap");
    for secret in [GUESS, SECRET] {
        let who = Who { initiator: HOST, target: &chap, user: "alice", secret, isid: 1 };
        Client::connect(portal).send_proof(who, Algorithm::Sha256);
        let kind = if secret == SECRET { "logged_in" } else { "chap_failed" };
        let event = log.expect(kind);
        assert_eq!((field(&event, "initiator"), field(&event, "target")), (HOST.into(), chap.clone()));
    }
    log.expect("session_ended");

    let held = [login(&array, 1, IQN), login(&array, 2, IQN)];
    login(&array, 3, IQN);
    assert_eq!(field(&log.expect("limit_reached"), "limit"), "limits.sessions");
    drop(held);

    let _silent = Client::connect(portal);
    assert_eq!(log.expect("login_timeout").level, Level::Warning);
    Client::connect(portal).send_raw(&[0xFF; BHS_BYTES]);
    log.expect("protocol_error");
    let mut client = Client::login(portal, 7, "HeaderDigest=CRC32C\0");
    client.send_raw(&[0; BHS_BYTES + 4]);
    log.expect("digest_error");
    let mut client = Client::login(portal, 8, "InitialR2T=Yes\0ImmediateData=No\0");
    client.clear_attention();
    let write = client.command(support::write10(0, 4096), false, true, 4096);
    client.send(|bhs| write.emit(bhs), &[]);
    let event = log.expect("connection_dropped");
    assert!(event.message.contains("limits.stall_timeout_s"), "{event:?}");

    let all = format!("{:?}", log.seen);
    assert!(!all.contains(SECRET) && !all.contains(GUESS), "a secret shows");
}

#[test]
fn a_flood_of_refused_logins_is_a_few_events_and_a_number() {
    if is_quick() {
        eprintln!("skipped: it takes 11 s; make test-all runs it");
        return;
    }
    let _turn = LOG.lock();
    let log = Log::open(Level::Info);
    let array = array(r#""limits": {"half_open_per_peer": 4},"#);
    let mut seen = Vec::new();
    while !log.take(Duration::from_millis(10)).is_empty() {}
    let began = Instant::now();
    for _ in 0..2000 {
        login(&array, 1, "iqn.2026-11.lab.linerate:nowhere");
    }
    let took = began.elapsed();
    while began.elapsed() < Duration::from_secs(11) {
        seen.extend(log.take(Duration::from_millis(100)));
    }
    let refused: Vec<&LogEvent> = seen.iter().filter(|event| event.event == "login_refused").collect();
    let lines = 12 * (1 + took.as_secs() / 10);
    assert!(refused.len() as u64 <= lines, "{} events in {took:?}", refused.len());
    let left_out: u64 = refused.iter().filter_map(|event| event.fields.get("left_out")?.as_u64()).sum();
    let told = refused.iter().filter(|event| !event.fields.contains_key("left_out")).count() as u64;
    assert_eq!(left_out + told, 2000, "every one is told of or counted");
}
