//! Runs on null volumes: all parts of a run that do not depend on a device.

use crate::common::{ios, null_volume, run, run_well, spec, stream, within_three_attempts};
use linerate_io::system::now_ns;
use linerate_load::{LatencyKind, Op, Run, RunOutcome};
use serde_json::json;
use std::time::Duration;

#[test]
fn intervals_add_up_to_the_summary() {
    let streams = json!([
        stream("mixed", &["a", "b", "c"], &json!({"read_percent": 70})),
        stream("writes", &["b"], &json!({"read_percent": 0, "random_percent": 0}))
    ]);
    let volumes = json!([null_volume("a", 4), null_volume("b", 8), null_volume("c", 1)]);
    let (intervals, total) = run_well(spec(&volumes, &streams, &json!({"warmup_s": 0.2, "workers": 2})));
    assert_eq!(intervals.len(), 7);
    assert!(intervals.iter().enumerate().all(|(at, interval)| interval.index as usize == at));
    assert_eq!(intervals.iter().filter(|interval| interval.warmup).count(), 2);
    assert!((total.start_s - 0.2).abs() < 1e-9 && (total.end_s - 0.7).abs() < 1e-9);
    let measured: Vec<_> = intervals.iter().filter(|interval| !interval.warmup).collect();
    for row in &total.rows {
        let same = measured.iter().flat_map(|interval| &interval.rows);
        let same: Vec<_> =
            same.filter(|r| (r.stream, r.volume, r.op) == (row.stream, row.volume, row.op)).collect();
        assert_eq!(row.ios, same.iter().map(|r| r.ios).sum::<u64>());
        assert_eq!(row.bytes, row.ios * 4096);
        assert_eq!(row.service_sum_ns, same.iter().map(|r| r.service_sum_ns).sum::<u64>());
        assert_eq!(Some(row.service_max_ns), same.iter().map(|r| r.service_max_ns).max());
        assert_eq!(row.response_sum_ns, row.service_sum_ns);
    }
    for (at, latency) in total.latencies.iter().enumerate() {
        let expected = ios(&total, latency.stream, latency.volume, Some(latency.op));
        assert_eq!(latency.histogram.count(), expected, "distribution {at}");
        assert_eq!(latency.kind, LatencyKind::Service);
    }
    assert_eq!(total.latencies.iter().filter(|latency| latency.volume.is_some()).count(), 6);
    assert!(total.host.load_cpu_user_s > 0.0 && total.host.host_cpu_user_s > 0.0);
}

#[test]
fn uncontrolled_volumes_run_freely() {
    let streams = json!([stream("x", &["a", "b"], &json!({})), stream("y", &["a"], &json!({}))]);
    let (_, total) = run_well(spec(&json!([null_volume("a", 4), null_volume("b", 4)]), &streams, &json!({})));
    let (x, y) = (ios(&total, Some(0), Some(0), None), ios(&total, Some(1), Some(0), None));
    assert!(x.abs_diff(y) <= 8, "streams of one volume take turns: {x} and {y}");
    assert!(ios(&total, None, Some(1), None) > 0);
}

#[test]
fn controlled_shares_are_kept_per_volume_and_stream() {
    let volumes = json!([null_volume("a", 2), null_volume("b", 16), null_volume("c", 4)]);
    let streams = json!([
        stream("x", &["a", "b", "c"], &json!({"share_percent": 67, "read_percent": 100})),
        stream("y", &["a", "b", "c"], &json!({"share_percent": 33, "read_percent": 0}))
    ]);
    for workers in [1, 2] {
        let rest = json!({"shares": "controlled", "workers": workers});
        let (_, total) = run_well(spec(&volumes, &streams, &rest));
        for volume in 0..3 {
            for (stream, percent) in [(0, 67.0), (1, 33.0)] {
                let share = ios(&total, Some(stream), Some(volume), None) as f64 / total.ios() as f64 * 300.0;
                assert!((share - percent).abs() < 1.5, "stream {stream} of volume {volume}: {share} %");
            }
        }
    }
}

#[test]
fn shares_in_total_leave_volumes_free() {
    let volumes = json!([null_volume("a", 1), null_volume("b", 32)]);
    let streams = json!([
        stream("x", &["a", "b"], &json!({"share_percent": 80})),
        stream("y", &["b"], &json!({"share_percent": 20}))
    ]);
    let (_, total) = run_well(spec(&volumes, &streams, &json!({"shares": "total"})));
    let share = ios(&total, Some(0), None, None) as f64 / total.ios() as f64 * 100.0;
    assert!((share - 80.0).abs() < 1.0, "{share} %");
}

#[test]
fn reads_and_sizes_come_as_ordered() {
    let sizes = json!({"kind": "mix", "parts": [[4096, 75], [8192, 25]]});
    let one = stream("s", &["a"], &json!({"read_percent": 67, "sizes": sizes}));
    let (_, total) = run_well(spec(&json!([null_volume("a", 8)]), &json!([one]), &json!({})));
    let reads = ios(&total, None, None, Some(Op::Read)) as f64 / total.ios() as f64;
    let mean_bytes = total.bytes() as f64 / total.ios() as f64;
    assert!((reads - 0.67).abs() < 0.01 && (mean_bytes / 5120.0 - 1.0).abs() < 0.01, "{reads}, {mean_bytes}");
}

#[test]
fn a_run_ends_when_every_stream_reached_its_end() {
    let volumes = json!([
        {"name": "a", "url": "null:10485760", "outstanding": 7}, {"name": "b", "url": "null:5245440", "outstanding": 3}
    ]);
    let sizes = json!({"kind": "mix", "parts": [[65536, 100]]});
    let fill = stream("fill", &["a", "b"], &json!({"read_percent": 0, "stop_at_end": true, "sizes": sizes}));
    for shares in ["uncontrolled", "controlled", "total"] {
        let rest = json!({"elapsed_s": 60, "shares": shares, "workers": 2});
        let (_, total) = run_well(spec(&volumes, &json!([fill]), &rest));
        assert_eq!(total.bytes(), 10_485_760 + 5_245_440, "{shares}");
        assert!(total.end_s < 5.0);
    }
}

#[test]
fn limits_end_a_run() {
    let one = json!([stream("s", &["a"], &json!({"read_percent": 50}))]);
    for (key, op) in [("bytes", None), ("read_bytes", Some(Op::Read)), ("written_bytes", Some(Op::Write))] {
        let limit = 4096 * 20_000_u64;
        let rest = json!({"elapsed_s": 60, "limits": {key: limit}});
        let (_, total) = run_well(spec(&json!([null_volume("a", 4)]), &one, &rest));
        let moved = ios(&total, None, None, op) * 4096;
        assert!((limit..limit + 4096 * 64).contains(&moved), "{key}: {moved}");
    }
}

#[test]
fn open_loops_keep_their_rate_whatever_the_process() {
    let volumes = json!([null_volume("a", 8), null_volume("b", 8)]);
    let streams = json!([
        stream("x", &["a", "b"], &json!({"share_percent": 75})),
        stream("y", &["b"], &json!({"share_percent": 25}))
    ]);
    for process in ["deterministic", "poisson", "uniform"] {
        let arrival = json!({"kind": "open", "process": process, "rate_iops": 20_000});
        let order = spec(&volumes, &streams, &json!({"arrival": arrival, "workers": 2}));
        within_three_attempts(|| {
            let (_, total) = run_well(order.clone());
            let share = ios(&total, Some(0), None, None) as f64 / total.ios() as f64;
            assert!(total.latencies.iter().any(|latency| latency.kind == LatencyKind::Response));
            let kept = (total.ios() as f64 / 10_000.0 - 1.0).abs() < 0.05 && (share - 0.75).abs() < 0.02;
            kept.then_some(()).ok_or_else(|| format!("{process}: {} I/Os, share {share}", total.ios()))
        });
    }
}

#[test]
fn a_stream_with_a_rate_runs_beside_a_free_one() {
    let streams = json!([
        stream("paced", &["a"], &json!({"rate_iops": 5000, "priority": 1})),
        stream("free", &["a"], &json!({}))
    ]);
    within_three_attempts(|| {
        let (_, total) = run_well(spec(&json!([null_volume("a", 4)]), &streams, &json!({})));
        let paced = ios(&total, Some(0), None, None);
        assert!(ios(&total, Some(1), None, None) > 10 * paced);
        let kept = (paced as f64 / 2500.0 - 1.0).abs() < 0.1;
        kept.then_some(()).ok_or_else(|| format!("{paced} I/Os at 5000 per second"))
    });
}

#[test]
fn stop_is_quick_and_keeps_what_was_measured() {
    let one = json!([stream("s", &["a"], &json!({}))]);
    let rest = json!({"elapsed_s": 60, "interval_s": 10, "wait": "spin"});
    within_three_attempts(|| {
        let run = Run::start(spec(&json!([null_volume("a", 4)]), &one, &rest)).unwrap();
        assert!(run.next_interval(Duration::from_millis(100)).is_none());
        let asked_ns = now_ns();
        run.stop();
        let summary = run.finish();
        let took_ns = now_ns() - asked_ns;
        assert!(matches!(summary.outcome, RunOutcome::Stopped));
        assert!(summary.total.ios() > 1000 && summary.total.end_s < 10.0);
        if took_ns < 50_000_000 { Ok(()) } else { Err(format!("{took_ns} ns")) }
    });
}

#[test]
fn a_reader_who_is_late_loses_nothing() {
    let one = json!([stream("s", &["a"], &json!({}))]);
    let run = Run::start(spec(&json!([null_volume("a", 1)]), &one, &json!({"interval_s": 0.001}))).unwrap();
    let total = run.finish().total;
    let counted: u64 =
        total.latencies.iter().filter(|l| l.stream.is_some()).map(|l| l.histogram.count()).sum();
    assert_eq!(counted, total.ios());
    assert!(total.outstanding_mean > 0.1 && total.outstanding_mean < 1.05, "{}", total.outstanding_mean);
    assert_eq!(run.finish().total.ios(), 0, "a second summary has nothing left to tell");
}

#[test]
fn nonsense_is_refused_by_key() {
    let volume = json!([null_volume("a", 1)]);
    for (streams, rest, key) in [
        (json!([stream("s", &["b"], &json!({}))]), json!({}), "streams.s.volumes"),
        (json!([stream("s", &["a"], &json!({"read_percent": 101}))]), json!({}), "streams.s.read_percent"),
        (json!([stream("s", &["a"], &json!({"share_percent": 60}))]), json!({}), "streams.share_percent"),
        (json!([stream("s", &["a"], &json!({}))]), json!({"elapsed_s": 0}), "elapsed_s"),
        (json!([stream("s", &["a"], &json!({}))]), json!({"version": 2}), "version 2"),
        (json!([stream("s", &["a"], &json!({"colour": 1}))]), json!({}), "colour"),
        (json!([]), json!({}), "streams"),
    ] {
        let mut text = json!({"version": 1, "elapsed_s": 1, "volumes": volume, "streams": streams});
        rest.as_object().unwrap().iter().for_each(|(name, value)| text[name] = value.clone());
        let error = linerate_load::RunSpec::from_json(&text.to_string()).unwrap_err().to_string();
        assert!(error.contains(key), "{error} does not name {key}");
    }
    let (_, summary) =
        run(spec(&volume, &json!([stream("s", &["a"], &json!({}))]), &json!({"elapsed_s": 0.01})));
    assert!(matches!(summary.outcome, RunOutcome::Completed));
}
