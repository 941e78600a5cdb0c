//! Bulk streams over the loopback interface.

use crate::common::within_three_attempts;
use linerate_io::system::now_ns;
use linerate_load::{Blame, BulkSink, BulkSource};
use serde_json::{Value, json};
use std::{thread::sleep, time::Duration};

fn sink() -> BulkSink {
    BulkSink::start(serde_json::from_value(json!({"address": "127.0.0.1:0"})).unwrap()).unwrap()
}

fn source(sink: &BulkSink, rest: &Value) -> BulkSource {
    let mut spec = json!({"address": sink.address().to_string()});
    for (key, value) in rest.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    BulkSource::start(serde_json::from_value(spec).unwrap()).unwrap()
}

/// Bits per second that arrive over so many ms.
fn rate(sink: &BulkSink, ms: u64) -> f64 {
    let (began, before) = (now_ns(), sink.stats().bytes_received);
    sleep(Duration::from_millis(ms));
    (sink.stats().bytes_received - before) as f64 * 8e9 / (now_ns() - began) as f64
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = now_ns() + 10_000_000_000;
    while !is_so() {
        assert!(now_ns() < until, "{what}");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_stream_takes_what_goes() {
    let sink = sink();
    let source = source(&sink, &json!({"connections": 3, "congestion_control": "reno"}));
    wait_for("bytes arrive", || sink.stats().bytes_received > 100_000_000);
    wait_for("the kernel was asked", || source.stats().bytes_sent > 100_000_000);
    let stats = source.stats();
    assert_eq!((stats.connections, sink.stats().connections), (3, 3));
    assert_eq!(stats.congestion_control, "reno");
    assert!(stats.segments_sent > 0 && stats.rtt_us > 0.0 && stats.lost.is_none(), "{stats:?}");
    drop(source);
    wait_for("the sink sees the end", || sink.stats().connections == 0);
    let arrived = sink.stats().bytes_received;
    assert!(arrived >= stats.bytes_sent);
}

#[test]
fn a_rate_is_kept_by_all_connections_together() {
    let sink = sink();
    let _source = source(&sink, &json!({"connections": 4, "rate_bits_per_s": 80e6}));
    within_three_attempts(|| {
        let rate = rate(&sink, 500);
        if (rate / 80e6 - 1.0).abs() < 0.05 { Ok(()) } else { Err(format!("{rate} bit/s")) }
    });
}

#[test]
fn a_source_notices_that_its_sink_is_gone() {
    let sink = sink();
    let source = source(&sink, &json!({"connections": 2}));
    drop(sink);
    // The first counters may not exist yet: then there are no connections either.
    wait_for("both are lost", || source.stats().lost.is_some() && source.stats().connections == 0);
}

#[test]
fn what_cannot_be_is_told() {
    let refused = |spec: Value| BulkSource::start(serde_json::from_value(spec).unwrap()).unwrap_err();
    let address = sink().address();
    let gone = refused(json!({"address": address.to_string()}));
    assert_eq!(gone.blame(), Blame::Peer);
    assert!(gone.to_string().starts_with(&format!("cannot connect to {address}: ")), "{gone}");
    let none = refused(json!({"address": "127.0.0.1:1", "connections": 0}));
    assert_eq!(
        (none.blame(), none.to_string().as_str()),
        (Blame::User, "connections: must lie between 1 and 1024")
    );
    let absent = refused(json!({"address": "127.0.0.1:1", "netns": "/nowhere"}));
    assert_eq!(absent.blame(), Blame::User);
    let elsewhere = serde_json::from_value(json!({"address": "192.0.2.1:0"})).unwrap();
    let error = BulkSink::start(elsewhere).unwrap_err();
    assert!(error.to_string().starts_with("cannot listen on 192.0.2.1:0: "), "{error}");
}
