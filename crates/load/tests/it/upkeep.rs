//! What the queue of a volume does between I/Os: flushes (fio's fsync=n), and opening it again (Iometer's transactions
//! per connection).

use crate::common::{ios, null_volume, run_well, spec, stream};
use linerate_load::{Interval, Op, Run, RunOutcome, RunSpec};
use serde_json::{Value, json};
use std::time::Duration;

fn volume(outstanding: u32, more: &Value) -> Value {
    let mut volume = null_volume("a", outstanding);
    for (name, value) in more.as_object().expect("keys of the volume") {
        volume[name] = value.clone();
    }
    volume
}

fn file(path: &std::path::Path, bytes: u64, more: &Value) -> Value {
    let mut volume = volume(1, more);
    volume["url"] = json!(format!("file:{}", path.display()));
    volume["create"] = json!(true);
    volume["size_bytes"] = json!(bytes);
    volume["direct"] = json!(false);
    volume
}

fn flushes(total: &Interval) -> u64 {
    total.rows.iter().map(|row| row.flushes).sum()
}

#[test]
fn a_flush_comes_between_every_n_writes_and_none_after_the_last() {
    for (after, writes, blocks) in [(1, 100, true), (3, 100, false), (7, 98, true), (8, 7, true)] {
        let flush = json!({"flush": {"after_writes": after, "blocks": blocks}});
        let amount = json!({"read_percent": 0, "stop_after_bytes": writes * 4096});
        let (_, total) = run_well(spec(
            &json!([volume(1, &flush)]),
            &json!([stream("s", &["a"], &amount)]),
            &json!({"elapsed_s": 60}),
        ));
        assert_eq!(total.ios(), writes, "flushes are no I/Os");
        assert_eq!(flushes(&total), (writes - 1) / after, "every {after} of {writes} writes");
    }
}

#[test]
fn reads_are_not_counted_and_a_rate_is_kept() {
    let flush = json!({"flush": {"after_writes": 10}});
    let rate = json!({"arrival": {"kind": "open", "process": "deterministic", "rate_iops": 2000}});
    let mixed = json!([stream("s", &["a"], &json!({"read_percent": 50}))]);
    let (_, total) = run_well(spec(&json!([volume(4, &flush)]), &mixed, &rate));
    let writes = ios(&total, None, None, Some(Op::Write));
    assert!(flushes(&total).abs_diff(writes / 10) <= 1, "{} after {writes} writes", flushes(&total));
    assert!(total.rows.iter().all(|row| row.op == Op::Write || row.flushes == 0));
}

#[test]
fn ios_at_a_rate_go_on_beside_flushes() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let flush = json!({"flush": {"after_writes": 2, "blocks": false}, "outstanding": 8});
    let made = file(&dir.path().join("f"), 1 << 20, &flush);
    let streams = json!([stream("s", &["a"], &json!({"read_percent": 0, "stop_after_bytes": 400 * 4096}))]);
    let rate = json!({"arrival": {"kind": "open", "process": "poisson", "rate_iops": 2000}, "elapsed_s": 60});
    let (_, total) = run_well(spec(&json!([made]), &streams, &rate));
    assert_eq!((total.ios(), total.errors()), (400, 0));
    assert!((199..=200).contains(&flushes(&total)), "{}", flushes(&total));
}

#[test]
fn flushes_of_a_file_take_time_of_their_own() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let made = file(&dir.path().join("f"), 1 << 20, &json!({"flush": {"after_writes": 4}}));
    let amount = json!({"read_percent": 0, "stop_after_bytes": 1 << 20});
    let streams = json!([stream("s", &["a"], &amount)]);
    let (_, total) = run_well(spec(&json!([made]), &streams, &json!({"elapsed_s": 60})));
    let row = total.rows.iter().find(|row| row.op == Op::Write).unwrap();
    assert_eq!((row.ios, row.flushes), (256, 63));
    assert!(row.flush_sum_ns >= row.flush_max_ns && row.flush_max_ns > 0);
}

#[test]
fn a_sequential_stream_begins_anew_each_time_its_file_is_opened() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("f");
    let made = file(&path, 1 << 20, &json!({"reopen_after_ios": 4, "outstanding": 3}));
    let amount = json!({"read_percent": 0, "random_percent": 0, "stop_after_bytes": 1 << 20});
    let streams = json!([stream("s", &["a"], &amount)]);
    let (_, total) = run_well(spec(&json!([made]), &streams, &json!({"elapsed_s": 60})));
    assert_eq!(total.ios(), 256);
    let bytes = std::fs::read(&path).unwrap();
    let used: Vec<bool> = bytes.chunks(4096).map(|page| page.iter().any(|byte| *byte != 0)).collect();
    assert!(used[..4].iter().all(|used| *used) && !used[4..].iter().any(|used| *used), "{used:?}");
}

#[test]
fn a_file_that_is_gone_when_it_is_opened_again_ends_the_run() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("f");
    let made = file(&path, 1 << 20, &json!({"reopen_after_ios": 1}));
    let paced = json!({"think_time": {"pause_s": 0.01}});
    let streams = json!([stream("s", &["a"], &paced)]);
    let run = Run::start(spec(&json!([made]), &streams, &json!({"elapsed_s": 60}))).unwrap();
    std::fs::remove_file(&path).unwrap();
    while !run.finished() {
        run.next_interval(Duration::from_secs(5));
    }
    let RunOutcome::Failed(error) = run.finish().outcome else { panic!("it went on") };
    assert!(error.to_string().contains("could not be opened again"), "{error}");
}

#[test]
fn streams_begin_and_end_at_their_own_times() {
    let times = |start: f64, stop: Option<f64>| json!({"start_after_s": start, "stop_after_s": stop});
    let rated = json!({"start_after_s": 0.4, "stop_after_s": 0.8, "rate_iops": 1000});
    let streams = json!([
        stream("early", &["a"], &times(0.0, Some(0.3))),
        stream("late", &["b"], &times(0.5, Some(0.9))),
        stream("rated", &["c"], &rated),
    ]);
    let volumes = json!([null_volume("a", 2), null_volume("b", 2), null_volume("c", 2)]);
    let rest = json!({"elapsed_s": 60, "interval_s": 0.1});
    let (intervals, total) = run_well(spec(&volumes, &streams, &rest));
    assert!((0.8..5.0).contains(&total.end_s), "it ends with its last stream: {}", total.end_s);
    for interval in &intervals {
        for (stream, from, to) in [(0, 0.0, 0.3), (1, 0.5, 0.9), (2, 0.4, 0.8)] {
            let outside = interval.end_s <= from || interval.start_s >= to + 0.1;
            assert!(
                !outside || ios(interval, Some(stream), None, None) == 0,
                "{stream} at {}",
                interval.start_s
            );
        }
    }
    assert!(ios(&total, Some(0), None, None) > 1000 && ios(&total, Some(1), None, None) > 1000);
    let rated = ios(&total, Some(2), None, None);
    assert!((300..=500).contains(&rated), "{rated} in 0.4 s at 1000 per second");
}

#[test]
fn a_shared_queue_goes_on_with_the_volumes_that_have_not_ended() {
    let queue = json!({"queue": {"name": "q"}});
    let named = |name: &str| {
        let mut volume = volume(3, &queue);
        volume["name"] = json!(name);
        volume
    };
    let amount = |blocks: u64| json!({"stop_after_bytes": blocks * 4096});
    let streams = json!([stream("s", &["a", "b"], &amount(50)), stream("t", &["c"], &amount(5000))]);
    let volumes = json!([named("a"), named("b"), named("c")]);
    let (_, total) = run_well(spec(&volumes, &streams, &json!({"elapsed_s": 60})));
    let of = |volume| ios(&total, None, Some(volume), None);
    assert_eq!([of(0), of(1), of(2)], [50, 50, 5000]);
}

#[test]
fn what_contradicts_itself_is_refused_by_key() {
    let refused = |of_volume: &Value, of_stream: &Value, rest: &Value| {
        let mut text = json!({"version": 1, "elapsed_s": 1, "volumes": [volume(1, of_volume)],
            "streams": [stream("s", &["a"], of_stream)]});
        rest.as_object().unwrap().iter().for_each(|(name, value)| text[name] = value.clone());
        RunSpec::from_json(&text.to_string()).unwrap_err().to_string()
    };
    let none = json!({});
    for (of_volume, of_stream, rest, key) in [
        (json!({"flush": {"after_writes": 0}}), none.clone(), none.clone(), "volumes.a.flush.after_writes"),
        (json!({"reopen_after_ios": 0}), none.clone(), none.clone(), "volumes.a.reopen_after_ios"),
        (
            json!({"reopen_after_ios": 1, "url": "smb://host/share/file"}),
            none.clone(),
            none.clone(),
            "volumes.a.reopen_after_ios",
        ),
        (
            json!({"flush": {"after_writes": 1}, "queue": {"name": "q"}}),
            none.clone(),
            none.clone(),
            "volumes.a.reopen_after_ios",
        ),
        (none.clone(), json!({"stop_after_s": 0}), none.clone(), "streams.s.stop_after_s"),
        (
            none.clone(),
            json!({"start_after_s": 2, "stop_after_s": 1}),
            none.clone(),
            "streams.s.stop_after_s",
        ),
        (none.clone(), json!({"stop_after_s": 1}), json!({"shares": "total"}), "streams.s.start_after_s"),
    ] {
        let message = refused(&of_volume, &of_stream, &rest);
        assert!(message.starts_with(&format!("{key}: ")), "{key}: {message}");
    }
}
