//! A run ends when its time is over, for any behaviour of its target, and reports few events about it.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may fail loudly and use the real clock"
)]

#[path = "../common/mod.rs"]
mod common;
mod peer;

use common::{slow_drivers, spec, stream};
use linerate_load::{Interval, Run, RunEvent, read_ends};
use peer::{IQN, Peer, listen};
use serde_json::{Value, json};
use std::io::{self, Read};
use std::time::{Duration, Instant};

const ELAPSED_S: f64 = 1.0;
/// Time that a busy machine may need to give the run its CPU.
const SLACK_S: f64 = 3.0;
/// Reads that every target answers before it turns.
const READS: u32 = 20;
/// PDUs per send of a flood.
const PDUS: usize = 1000;
/// Limit of the events of one kind in an interval.
const EVENTS_OF_A_KIND_MAX: usize = 11;

/// Sends PDUs without end; the initiator's PDUs are read and dropped, or not read at all.
fn flood(peer: &mut Peer, reads: bool, mut next: impl FnMut(&mut Peer) -> [u8; 48]) -> io::Result<()> {
    if reads {
        let mut stream = peer.stream()?;
        std::thread::spawn(move || {
            let mut thrown_away = vec![0; 1 << 20];
            while stream.read(&mut thrown_away).is_ok_and(|count| count > 0) {}
        });
    }
    loop {
        let bytes: Vec<u8> = (0..PDUS).flat_map(|_| next(peer)).collect();
        peer.send_raw(&bytes)?;
    }
}

/// An asynchronous message: SCSI events have sense data, others do not.
fn message(peer: &mut Peer, event: u8) -> [u8; 48] {
    let mut bhs = peer.header(0x32, 0x80, &[0xff; 4], true);
    bhs[20..24].copy_from_slice(&[0xff; 4]);
    bhs[36] = event;
    bhs
}

fn ping(peer: &mut Peer, ttt: [u8; 4]) -> [u8; 48] {
    let mut bhs = peer.header(0x20, 0x80, &[0xff; 4], false);
    bhs[20..24].copy_from_slice(&ttt);
    bhs
}

fn after_reads(peer: &mut Peer) -> io::Result<()> {
    peer.serve(|reads| reads == READS)
}

fn vendor_messages(peer: &mut Peer) -> io::Result<()> {
    after_reads(peer)?;
    flood(peer, true, |peer| message(peer, 255))
}

fn unread_messages(peer: &mut Peer) -> io::Result<()> {
    after_reads(peer)?;
    flood(peer, false, |peer| message(peer, 0))
}

fn logout_requests(peer: &mut Peer) -> io::Result<()> {
    after_reads(peer)?;
    flood(peer, true, |peer| message(peer, 1))
}

fn pings(peer: &mut Peer) -> io::Result<()> {
    after_reads(peer)?;
    flood(peer, true, |peer| ping(peer, [0, 0, 0, 9]))
}

fn unread_pings(peer: &mut Peer) -> io::Result<()> {
    after_reads(peer)?;
    flood(peer, false, |peer| ping(peer, [0, 0, 0, 9]))
}

fn news(peer: &mut Peer) -> io::Result<()> {
    after_reads(peer)?;
    flood(peer, true, |peer| ping(peer, [0xff; 4]))
}

/// A disk that sends a message after each answer: its reads continue.
fn messages_between(peer: &mut Peer) -> io::Result<()> {
    loop {
        let (request, _) = peer.read()?;
        peer.answer(&request)?;
        let words: Vec<u8> = (0..20).flat_map(|_| message(peer, 255)).collect();
        peer.send_raw(&words)?;
    }
}

fn drops(peer: &mut Peer) -> io::Result<()> {
    peer.serve(|reads| reads == 1)
}

fn trickle(peer: &mut Peer) -> io::Result<()> {
    after_reads(peer)?;
    loop {
        for byte in message(peer, 255) {
            peer.send_raw(&[byte])?;
        }
    }
}

fn silence(peer: &mut Peer) -> io::Result<()> {
    after_reads(peer)?;
    loop {
        peer.read()?;
    }
}

/// The run on the target `script`, its intervals, and how long all of it took.
fn load(script: fn(&mut Peer) -> io::Result<()>, driver: &str) -> (Vec<Interval>, f64) {
    let url = format!("iscsi://{}/{IQN}/0", listen(32, script));
    let volumes = json!([{"name": "sd1", "url": url, "outstanding": 4}]);
    let rest = json!({"elapsed_s": ELAPSED_S, "interval_s": 0.25, "driver": driver});
    let run = Run::start(spec(&volumes, &json!([stream("s", &["sd1"], &json!({}))]), &rest)).unwrap();
    let began = Instant::now();
    let mut intervals = Vec::new();
    while !run.finished() {
        intervals.extend(run.next_interval(Duration::from_secs(1)));
    }
    intervals.push(run.finish().total);
    (intervals, began.elapsed().as_secs_f64())
}

fn of_kind<'a>(interval: &'a Interval, kind: &str) -> Vec<&'a RunEvent> {
    interval.events.iter().filter(|event| event.kind == kind).collect()
}

fn ends_in_time(script: fn(&mut Peer) -> io::Result<()>) -> Vec<Interval> {
    let mut all = Vec::new();
    for driver in slow_drivers() {
        let (intervals, took_s) = load(script, driver);
        assert!(took_s < ELAPSED_S + SLACK_S, "{driver}: {ELAPSED_S} s took {took_s:.1} s");
        let (total, each) = intervals.split_last().unwrap();
        assert!(total.ios() > 0, "{driver}");
        for interval in each {
            for event in &interval.events {
                let number = of_kind(interval, &event.kind).len();
                assert!(number <= EVENTS_OF_A_KIND_MAX, "{driver}: {number} times {}", event.kind);
            }
        }
        all.extend(intervals);
    }
    all
}

#[test]
fn asynchronous_messages_without_end() {
    let intervals = ends_in_time(vendor_messages);
    assert!(intervals.iter().any(|interval| !of_kind(interval, "async_message").is_empty()));
    ends_in_time(unread_messages);
    ends_in_time(logout_requests);
}

#[test]
fn asynchronous_messages_between_good_answers() {
    let intervals = ends_in_time(messages_between);
    for interval in &intervals {
        let left_out: u64 = of_kind(interval, "events_left_out")
            .iter()
            .map(|event| event.message.split(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        // Twenty for every read; four reads may have been answered just before the interval's end.
        let told = of_kind(interval, "async_message").len() as u64 + left_out;
        assert!(told + 100 > 20 * interval.ios(), "{told} told of {} reads", interval.ios());
    }
}

#[test]
fn pings_without_end() {
    for script in [pings, unread_pings, news] {
        ends_in_time(script);
    }
}

#[test]
fn connections_that_never_last() {
    ends_in_time(drops);
}

#[test]
fn bytes_one_by_one_and_none_at_all() {
    ends_in_time(trickle);
    ends_in_time(silence);
}

/// A target that accepts no command, or answers none, fails within its time limits.
#[test]
fn a_volume_that_never_opens_is_given_up() {
    let limits = json!({"login_timeout_s": 0.5, "command_timeout_s": 0.5, "ping_timeout_s": 0.3,
        "ping_interval_s": 0.2, "replacement_timeout_s": 0.5});
    let open = |window: u32, script: fn(&mut Peer) -> io::Result<()>, driver: &str| {
        let url = format!("iscsi://{}/{IQN}/0", listen(window, script));
        let volumes: Value = json!([{"name": "sd1", "url": url, "iscsi": limits}]);
        let asked = spec(&volumes, &json!([stream("s", &["sd1"], &json!({}))]), &json!({"driver": driver}));
        let began = Instant::now();
        let error = Run::start(asked).unwrap_err();
        let took_s = began.elapsed().as_secs_f64();
        assert!(took_s < 10.0, "{driver}: it took {took_s:.1} s: {error}");
        assert!(error.to_string().contains("sd1"), "{error}");
    };
    for driver in slow_drivers() {
        open(0, |peer| peer.serve(|_| false), driver);
        open(32, |peer| flood(peer, true, |peer| message(peer, 255)), driver);
        open(32, |_| Ok(()), driver);
        open(
            32,
            |peer| loop {
                peer.read()?;
            },
            driver,
        );
    }
}

/// Reading the ends of a LUN ends in time as well, and reports the missing ends.
#[test]
fn ends_that_are_never_sent() {
    for driver in slow_drivers() {
        let url = format!("iscsi://{}/{IQN}/0", listen(32, |peer| peer.serve(|reads| reads == 1)));
        let limits = json!({"command_timeout_s": 0.5, "ping_timeout_s": 0.3, "replacement_timeout_s": 0.5,
            "login_timeout_s": 0.5});
        let volumes = json!([{"name": "sd1", "url": url, "iscsi": limits}]);
        let asked = spec(&volumes, &json!([stream("s", &["sd1"], &json!({}))]), &json!({"driver": driver}));
        let began = Instant::now();
        let found = read_ends(&asked).unwrap();
        assert!(began.elapsed().as_secs_f64() < 40.0, "{driver}");
        assert!(found[0].failure.is_some(), "{driver}");
    }
}
