//! What only job files of fio ask for: pauses of slots, reading back what was written, and refusals by key.

use crate::common::{ios, null_volume, run_well, spec, stream};
use linerate_load::{Op, RunSpec};
use serde_json::{Value, json};

#[test]
fn slots_pause_after_their_ios() {
    // Each of four slots makes two I/Os in every 20 ms: at most 400 per second, and most of them also on a busy machine.
    let think = json!({"think_time": {"pause_s": 0.02, "after_ios": 2}, "read_percent": 50});
    let volume = json!([null_volume("a", 4)]);
    let (_, total) = run_well(spec(&volume, &json!([stream("s", &["a"], &think)]), &json!({})));
    assert!((100..=208).contains(&total.ios()), "{} I/Os in half a second", total.ios());
    assert!(total.outstanding_mean < 0.5, "a slot that pauses is not in flight: {}", total.outstanding_mean);
}

#[test]
fn a_stream_without_pauses_goes_on_beside_one_with() {
    let think = json!({"think_time": {"pause_s": 10.0}});
    let streams = json!([stream("slow", &["a"], &think), stream("fast", &["b"], &json!({}))]);
    let (_, total) = run_well(spec(&json!([null_volume("a", 3), null_volume("b", 1)]), &streams, &json!({})));
    assert_eq!(ios(&total, Some(0), None, None), 3);
    assert!(ios(&total, Some(1), None, None) > 1000);
}

#[test]
fn what_was_written_is_read_back_and_compared() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("back");
    let size = (4 << 20) + 8192;
    let file = json!([{"name": "f", "url": format!("file:{}", path.display()), "create": true, "size_bytes": size,
        "direct": false, "outstanding": 8}]);
    let back = json!({"read_percent": 0, "random_percent": 0, "stop_at_end": true, "read_back": true,
        "sizes": {"kind": "mix", "parts": [[65536, 100]]}});
    let rest = json!({"verify": "on", "elapsed_s": 60});
    let (_, total) = run_well(spec(&file, &json!([stream("s", &["f"], &back)]), &rest));
    let bytes = |op| total.rows.iter().filter(|row| row.op == op).map(|row| row.bytes).sum::<u64>();
    assert_eq!((bytes(Op::Write), bytes(Op::Read)), (size, size));
    assert_eq!(total.errors(), 0);
}

#[test]
fn each_stream_ends_after_its_own_amount() {
    let part = |bytes: u64, random: u32| json!({"stop_after_bytes": bytes, "random_percent": random});
    let streams =
        json!([stream("a", &["a", "b"], &part(1 << 20, 100)), stream("b", &["b"], &part(8 << 20, 0))]);
    let volumes = json!([null_volume("a", 4), null_volume("b", 4)]);
    let (_, total) = run_well(spec(&volumes, &streams, &json!({"elapsed_s": 60})));
    assert_eq!(ios(&total, Some(0), None, None), 2 * (1 << 20) / 4096);
    assert_eq!(ios(&total, Some(1), None, None), (8 << 20) / 4096);
}

#[test]
fn writes_of_their_own_size_fit_their_buffers() {
    let mix = json!({"read_percent": 50, "separate_directions": true, "random_percent": 0,
        "write_sizes": {"kind": "mix", "parts": [[262_144, 100]]}});
    let (_, total) =
        run_well(spec(&json!([null_volume("a", 2)]), &json!([stream("s", &["a"], &mix)]), &json!({})));
    for row in &total.rows {
        let size = if row.op == Op::Read { 4096 } else { 262_144 };
        assert!(row.ios > 0 && row.bytes == row.ios * size, "{:?}: {} bytes", row.op, row.bytes);
    }
}

#[test]
fn what_contradicts_itself_is_refused_by_key() {
    let refused = |streams: &Value, rest: &Value| {
        let mut text =
            json!({"version": 1, "elapsed_s": 1, "volumes": [null_volume("a", 1)], "streams": [streams]});
        rest.as_object().unwrap().iter().for_each(|(name, value)| text[name] = value.clone());
        RunSpec::from_json(&text.to_string()).unwrap_err().to_string()
    };
    let open = json!({"arrival": {"kind": "open", "process": "poisson", "rate_iops": 9}});
    let writes_to_end = json!({"read_back": true, "stop_at_end": true, "read_percent": 0});
    for (part, rest, key) in [
        (json!({"think_time": {"pause_s": -1}}), json!({}), "streams.s.think_time.pause_s"),
        (json!({"stop_after_percent": 0}), json!({}), "streams.s.stop_after_percent"),
        (json!({"stop_after_percent": 9, "stop_after_bytes": 9}), json!({}), "streams.s.stop_after_percent"),
        (json!({"think_time": {"pause_s": 1, "after_ios": 0}}), json!({}), "streams.s.think_time.after_ios"),
        (json!({"think_time": {"pause_s": 1}, "rate_iops": 5}), json!({}), "streams.s.think_time"),
        (json!({"think_time": {"pause_s": 1}}), open, "arrival"),
        (json!({"ios_per_place": 0}), json!({}), "streams.s.ios_per_place"),
        (json!({"ios_per_place": 2, "random_percent": 50}), json!({}), "streams.s.ios_per_place"),
        (json!({"read_back": true}), json!({"verify": "on"}), "streams.s.read_back"),
        (writes_to_end, json!({}), "verify"),
        (
            json!({"separate_directions": true, "stop_at_end": true}),
            json!({}),
            "streams.s.separate_directions",
        ),
        (json!({"write_sizes": {"kind": "mix", "parts": []}}), json!({}), "streams.s.write_sizes"),
    ] {
        let error = refused(&stream("s", &["a"], &part), &rest);
        assert!(error.contains(key), "{error} does not name {key}");
    }
}
