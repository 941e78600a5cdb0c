//! Volumes over several paths: the traffic of each path, and data that is right over all of them.

use crate::common::{ios, run_well, spec, stream};
use linerate_iscsi_target::Array;
use linerate_load::{Op, Run, RunSpec};
use serde_json::{Value, json};

const TARGET: &str = "iqn.2026-11.lab.linerate:paths";

fn array() -> Array {
    let volume = json!({"lun": 0, "name": "v", "kind": "memory", "size_bytes": 4 << 20});
    let config = json!({
        "portals": ["127.0.0.1:0", "127.0.0.1:0"],
        "targets": [{"name": TARGET, "volumes": [volume]}],
    });
    Array::start(serde_json::from_value(config).unwrap()).unwrap()
}

/// A path per portal of the array, the first with this many sessions.
fn volume(array: &Array, sessions: u32, multipath: &Value) -> Value {
    let portals = array.portals();
    json!({
        "name": "sd0",
        "url": format!("iscsi://{}/{TARGET}/0", portals[0]),
        "outstanding": 8,
        "paths": [
            {"name": "a", "portal": portals[0].to_string(), "sessions": sessions},
            {"name": "b", "portal": portals[1].to_string()},
        ],
        "multipath": multipath,
    })
}

#[test]
fn every_path_is_counted_and_all_of_them_make_the_whole() {
    let array = array();
    let streams = json!([stream("s", &["sd0"], &json!({"read_percent": 50}))]);
    let volumes = json!([volume(&array, 2, &json!({"policy": "round_robin"}))]);
    let (_, total) = run_well(spec(&volumes, &streams, &json!({})));
    let names: Vec<_> = total.paths.iter().map(|row| row.path.as_str()).collect();
    assert_eq!(names, ["a#1", "a#2", "b"]);
    for row in &total.paths {
        assert_eq!((row.volume, row.state, row.requeued), (0, "active_optimized", 0));
        assert!(row.read_ios > 10 && row.write_ios > 10, "{row:?}");
        assert_eq!(row.read_bytes, row.read_ios * 4096);
        assert!(row.service_sum_ns > 0 && row.service_max_ns > 0 && row.bytes_sent > row.write_bytes);
    }
    // Only one side may count I/O that is in flight at either end of the measured time.
    for op in [Op::Read, Op::Write] {
        let by_path: u64 =
            total.paths.iter().map(|row| if op == Op::Read { row.read_ios } else { row.write_ios }).sum();
        assert!(by_path.abs_diff(ios(&total, None, None, Some(op))) <= 16, "{op:?}: {by_path}");
    }
    array.stop();
}

#[test]
fn what_ends_after_the_measured_time_counts_on_no_path() {
    let array = array();
    let mut volume = volume(&array, 1, &json!({"policy": "round_robin"}));
    volume["outstanding"] = json!(128);
    let streams =
        json!([stream("s", &["sd0"], &json!({"sizes": {"kind": "mix", "parts": [[65_536, 100]]}}))]);
    let (_, total) = run_well(spec(&json!([volume]), &streams, &json!({})));
    let by_path: u64 = total.paths.iter().map(|row| row.read_ios).sum();
    let whole = ios(&total, None, None, Some(Op::Read));
    // 128 are in flight at the end. One turn of the worker, on both sides of the end, completes far fewer.
    assert!(by_path - whole < 64, "{by_path} on the paths, {whole} in all");
    array.stop();
}

#[test]
fn facts_list_every_path() {
    let array = array();
    let streams = json!([stream("s", &["sd0"], &json!({}))]);
    let run = Run::start(spec(&json!([volume(&array, 1, &json!({}))]), &streams, &json!({}))).unwrap();
    let session = run.facts().volumes[0].session.clone();
    let paths = session["paths"].as_array().unwrap();
    assert_eq!(paths.iter().map(|path| &path["name"]).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(paths[1]["peer_address"], array.portals()[1].to_string());
    assert_eq!(paths[1]["state"], "active_optimized");
    assert!(run.facts().started_monotonic_ns.is_some());
    run.finish();
    array.stop();
}

#[test]
fn four_sessions_keep_the_blocks_right() {
    let array = array();
    let sizes = json!({"kind": "range", "min_bytes": 512, "max_bytes": 65_536, "align_bytes": 512});
    let mixed = json!({"read_percent": 50, "sizes": sizes, "align_bytes": 512});
    for policy in ["round_robin", "least_queue_depth", "service_time"] {
        let volumes = json!([volume(&array, 3, &json!({ "policy": policy }))]);
        let streams = json!([stream("s", &["sd0"], &mixed)]);
        let (_, total) = run_well(spec(&volumes, &streams, &json!({"verify": "on"})));
        assert_eq!(total.paths.len(), 4, "{policy}");
        assert_eq!(total.errors(), 0, "{policy}");
    }
    array.stop();
}

#[test]
fn contradictions_are_named_by_their_key() {
    let array = array();
    let refused = |change: fn(&mut Value)| {
        let mut one = volume(&array, 1, &json!({"policy": "failover_only"}));
        change(&mut one);
        let streams = json!([stream("s", &["sd0"], &json!({}))]);
        let order = json!({"version": 1, "elapsed_s": 1.0, "volumes": [one], "streams": streams});
        RunSpec::from_json(&order.to_string()).unwrap_err().to_string()
    };
    for (message, change) in [
        ("volumes.sd0.paths: only", (|one| one["url"] = "null:4096".into()) as fn(&mut Value)),
        ("volumes.sd0.session: ", |one| one["session"] = "shared".into()),
        ("volumes.sd0.multipath: there is only one path", |one| one["paths"] = json!([])),
        ("volumes.sd0.multipath: unknown variant", |one| one["multipath"] = json!({"policy": "best"})),
        ("volumes.sd0.paths: unknown field `port`", |one| one["paths"][0]["port"] = 1.into()),
        ("volumes.sd0.paths: path \"b\"", |one| one["paths"][0]["name"] = "b".into()),
    ] {
        let said = refused(change);
        assert!(said.starts_with(message), "{said}");
    }
    array.stop();
}

#[test]
fn a_wrong_path_fails_the_start_by_name() {
    let array = array();
    let mut one = volume(&array, 1, &json!({}));
    one["paths"][0]["portal"] = "127.0.0.1:1".into();
    one["paths"][1]["portal"] = "127.0.0.1:1".into();
    let streams = json!([stream("s", &["sd0"], &json!({}))]);
    let error = Run::start(spec(&json!([one]), &streams, &json!({}))).unwrap_err().to_string();
    assert!(error.contains("sd0") && error.contains("127.0.0.1:1"), "{error}");
    array.stop();
}
