//! Runs on LUNs of an array in this process, over TCP on the loopback interface.

use crate::common::{ios, run_well, spec, stream};
use linerate_io::system::now_ns;
use linerate_iscsi_target::Array;
use linerate_load::{Blame, Op, PreparedRun, Run, RunError, RunOutcome};
use serde_json::{Value, json};
use std::time::Duration;

const TARGET: &str = "iqn.2026-11.lab.linerate:load";

/// An array with three memory LUNs of 4 MiB.
fn array(chap: &Value) -> Array {
    let volume = |lun: u32| {
        let name = format!("vol{lun}");
        json!({"lun": lun, "name": name, "kind": "memory", "size_bytes": 4 << 20, "sector_bytes": 512})
    };
    let targets = json!([{"name": TARGET, "chap": chap, "volumes": [volume(0), volume(1), volume(2)]}]);
    let config = json!({"name": "lab", "portals": ["127.0.0.1:0"], "workers": 1, "targets": targets});
    Array::start(serde_json::from_value(config).unwrap()).unwrap()
}

/// A volume on a LUN of the array; `rest` overrides.
fn volume(array: &Array, lun: u32, rest: &Value) -> Value {
    let url = format!("iscsi://{}/{TARGET}/{lun}", array.portals()[0]);
    let mut volume = json!({"name": format!("sd{lun}"), "url": url, "outstanding": 4});
    for (key, value) in rest.as_object().into_iter().flatten() {
        volume[key] = value.clone();
    }
    volume
}

#[test]
fn several_luns_read_and_write_with_own_and_shared_sessions() {
    let array = array(&Value::Null);
    for (session, driver) in [("own", "epoll"), ("shared", "io_uring")] {
        let luns = [0, 1, 2].map(|lun| volume(&array, lun, &json!({"session": session})));
        let streams = json!([stream("s", &["sd0", "sd1", "sd2"], &json!({"read_percent": 67}))]);
        let (_, total) = run_well(spec(&json!(luns), &streams, &json!({"driver": driver})));
        for lun in 0..3 {
            assert!(ios(&total, None, Some(lun), Some(Op::Read)) > 10, "{session} session, LUN {lun}");
            assert!(ios(&total, None, Some(lun), Some(Op::Write)) > 10, "{session} session, LUN {lun}");
        }
        assert!(total.outstanding_mean > 3.0 && total.outstanding_mean < 12.5, "{}", total.outstanding_mean);
        assert!(total.tcp.bytes_received > ios(&total, None, None, Some(Op::Read)) * 4096);
        assert!(total.tcp.bytes_sent > ios(&total, None, None, Some(Op::Write)) * 4096);
    }
    array.stop();
}

#[test]
fn facts_are_what_was_negotiated() {
    let array = array(&Value::Null);
    let options =
        json!({"iscsi": {"max_burst_bytes": 65536, "first_burst_bytes": 8192, "header_digest": "crc32c"}});
    let order = spec(
        &json!([volume(&array, 1, &options)]),
        &json!([stream("s", &["sd1"], &json!({}))]),
        &json!({"elapsed_s": 0.1}),
    );
    let run = Run::start(order).unwrap();
    let facts = run.facts().volumes[0].clone();
    assert_eq!((facts.kind.as_str(), facts.capacity_bytes, facts.block_bytes), ("iscsi", 4 << 20, 512));
    assert_eq!(facts.session["max_burst_bytes"], 65536);
    assert_eq!(facts.session["first_burst_bytes"], 8192);
    assert_eq!(facts.session["header_digest"], "crc32c");
    assert_eq!(facts.session["peer_address"], array.portals()[0].to_string());
    assert!(facts.session["send_buffer_bytes"].as_u64().unwrap() > 0);
    assert!(matches!(run.finish().outcome, RunOutcome::Completed));
    array.stop();
}

/// More than 128 MiB at a time: without digests, slots would share buffers.
#[test]
fn no_data_change_after_their_digest_was_made() {
    let array = array(&Value::Null);
    let volume = volume(&array, 0, &json!({"outstanding": 200, "iscsi": {"data_digest": "crc32c"}}));
    let sizes = json!({"kind": "mix", "parts": [[1 << 20, 100.0]]});
    let writes = stream("s", &["sd0"], &json!({"read_percent": 0, "sizes": sizes}));
    let order = spec(&json!([volume]), &json!([writes]), &json!({"elapsed_s": 1.5}));
    let (_, total) = run_well(order);
    assert!(ios(&total, None, Some(0), Some(Op::Write)) > 0);
    assert_eq!(total.errors(), 0, "{:?}", total.events);
    array.stop();
}

#[test]
fn data_come_back_as_written() {
    let array = array(&Value::Null);
    let sizes = json!({"kind": "range", "min_bytes": 512, "max_bytes": 131_072, "align_bytes": 512});
    let mixed = json!({"read_percent": 50, "sizes": sizes, "align_bytes": 512});
    let order = spec(
        &json!([
            volume(&array, 0, &json!({"outstanding": 16, "durable_writes": true})),
            volume(&array, 1, &json!({"session": "shared"}))
        ]),
        &json!([stream("s", &["sd0", "sd1"], &mixed)]),
        &json!({"verify": "on", "elapsed_s": 1}),
    );
    let (_, total) = run_well(order);
    assert!(total.ios() > 100);
    array.stop();
}

#[test]
fn an_array_that_dies_ends_the_run_as_its_fault() {
    let array = array(&Value::Null);
    let options = json!({"iscsi": {"replacement_timeout_s": 0.3, "login_timeout_s": 0.2}});
    let order = spec(
        &json!([volume(&array, 0, &options), volume(&array, 1, &options)]),
        &json!([stream("s", &["sd0", "sd1"], &json!({}))]),
        &json!({"elapsed_s": 30, "interval_s": 0.2, "workers": 2}),
    );
    let run = Run::start(order).unwrap();
    assert!(run.next_interval(Duration::from_secs(5)).is_some());
    array.stop();
    let summary = run.finish();
    let RunOutcome::Failed(error @ RunError::Volume { .. }) = &summary.outcome else {
        panic!("{:?}", summary.outcome)
    };
    assert_eq!(error.blame(), Blame::Peer, "{error}");
    assert!(summary.total.ios() > 0 && summary.total.end_s < 10.0);
    let events = &summary.total.events;
    let count = |kind: &str| events.iter().filter(|event| event.kind == kind).count();
    // Each has four I/Os in flight. The run may be over before the second volume has failed.
    assert_eq!(count("io_error"), 0, "{events:?}");
    for kind in ["session_lost", "session_failed"] {
        assert!((1..=2).contains(&count(kind)), "{events:?}");
    }
    for name in ["sd0", "sd1"] {
        let failed = events.iter().filter(|event| event.kind == "volume_failed" && event.volume == name);
        assert!(failed.count() <= 1, "{events:?}");
    }
    assert!(count("volume_failed") > 0, "{events:?}");
}

#[test]
fn what_cannot_be_reached_is_explained() {
    let array = array(&json!({"algorithms": ["sha256"], "user": "joe", "secret": "a secret of some length"}));
    let wrong = json!({"user": "joe", "secret": "another secret, wrong"});
    let elsewhere =
        json!({"url": format!("iscsi://{}/iqn.2026-11.lab.linerate:nothing/0", array.portals()[0])});
    let closed = json!({"url": format!("iscsi://127.0.0.1:1/{TARGET}/0"), "iscsi": {"login_timeout_s": 0.5}});
    for rest in [wrong, elsewhere, closed] {
        let order =
            spec(&json!([volume(&array, 0, &rest)]), &json!([stream("s", &["sd0"], &json!({}))]), &json!({}));
        let error = Run::start(order).unwrap_err();
        let named = match &error {
            RunError::Volume { volume, .. } => volume == "sd0" && rest.get("user").is_none(),
            RunError::Credentials { volume, .. } => volume == "sd0" && rest.get("user").is_some(),
            _ => false,
        };
        assert!(named, "{error:?}");
        assert!(!error.to_string().contains("another secret"), "{error}");
    }
    let right = json!({"user": "joe", "secret": "a secret of some length"});
    run_well(spec(
        &json!([volume(&array, 0, &right)]),
        &json!([stream("s", &["sd0"], &json!({}))]),
        &json!({"elapsed_s": 0.1}),
    ));
    array.stop();
}

/// The target closes a session that does not answer its pings for 0.3 s: it must not notice the long time before the
/// start.
#[test]
fn an_armed_run_answers_its_targets_and_can_be_called_off() {
    let volumes = json!([{"lun": 0, "name": "v", "kind": "memory", "size_bytes": 4 << 20}]);
    let config = json!({"name": "lab", "portals": ["127.0.0.1:0"], "workers": 1,
        "targets": [{"name": TARGET, "volumes": volumes}],
        "limits": {"nop_interval_s": 0.1, "nop_timeout_s": 0.3}});
    let array = Array::start(serde_json::from_value(config).unwrap()).unwrap();
    let order = || {
        let volumes = json!([volume(&array, 0, &Value::Null)]);
        spec(&volumes, &json!([stream("s", &["sd0"], &json!({}))]), &json!({"elapsed_s": 0.2}))
    };
    for driver in ["epoll", "io_uring"] {
        let mut asked = order();
        asked.driver = serde_json::from_value(json!(driver)).unwrap();
        let armed = PreparedRun::new(asked).unwrap();
        let logins = array.stats().logins;
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(array.stats().logins, logins, "{driver}: the session was lost meanwhile");
        let run = armed.start_at(now_ns() + 50_000_000).unwrap();
        let summary = run.finish();
        assert!(matches!(summary.outcome, RunOutcome::Completed), "{driver}: {:?}", summary.outcome);
        assert_eq!(summary.total.events, [], "{driver}");
        assert!(summary.total.ios() > 10, "{driver}");

        PreparedRun::new(order()).unwrap().discard();
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            array.stats().sessions == 0
        });
        assert!(gone, "{driver}: the session was not logged out");
    }
    array.stop();
}
