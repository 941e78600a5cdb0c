//! A stream that replays a trace: order, places, times, lateness and end.

use crate::common::{ios, null_volume, run_well, spec, stream, within_three_attempts};
use linerate_load::{LatencyKind, Op, Run, RunSpec};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Time in ns, offset, length, write.
type Record = (u64, u64, u32, u32);

fn compiled(folder: &Path, records: &[Record]) -> PathBuf {
    let bytes: Vec<u8> = records
        .iter()
        .flat_map(|(at_ns, offset, len, write)| {
            [&at_ns.to_le_bytes()[..], &offset.to_le_bytes(), &len.to_le_bytes(), &write.to_le_bytes()]
                .concat()
        })
        .collect();
    let path = folder.join("trace");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn replay(path: &Path, ios: usize, volume: &Value, rest: &Value) -> RunSpec {
    let mut trace = json!({"path": path, "ios": ios, "span_bytes": 1 << 30});
    for (key, value) in rest.as_object().into_iter().flatten() {
        trace[key] = value.clone();
    }
    let rest = json!({"rate_iops": 100, "read_percent": 50, "trace": trace});
    let name = volume["name"].as_str().unwrap().to_owned();
    let streams = json!([stream("t", &[&name], &rest)]);
    spec(&json!([volume]), &streams, &json!({"elapsed_s": 5}))
}

#[test]
fn a_replay_keeps_counts_and_pace_and_then_ends() {
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<Record> =
        (0_u32..100).map(|nth| (u64::from(nth) * 4_000_000, 0, 4096, u32::from(nth % 4 == 0))).collect();
    let path = compiled(folder.path(), &records);
    within_three_attempts(|| {
        let half = json!({"time_scale": 0.5});
        let (intervals, total) = run_well(replay(&path, 100, &null_volume("a", 8), &half));
        assert_eq!(
            (ios(&total, None, None, Some(Op::Read)), ios(&total, None, None, Some(Op::Write))),
            (75, 25)
        );
        assert_eq!(total.rows.iter().map(|row| row.bytes).sum::<u64>(), 100 * 4096);
        // The last I/O is due after 99 * 4 ms, at twice the pace.
        assert!(total.end_s >= 0.198, "{}", total.end_s);
        let counts: Vec<u64> = intervals.iter().map(|interval| ios(interval, None, None, None)).collect();
        if total.end_s < 0.25 && counts.first().is_some_and(|count| count.abs_diff(50) <= 3) {
            Ok(())
        } else {
            Err(format!("end {} s, {counts:?}", total.end_s))
        }
    });
}

#[test]
fn the_response_time_of_a_late_io_counts_from_its_recorded_time() {
    let folder = tempfile::tempdir().unwrap();
    // Ten I/Os at once, the last one later; one at a time is in flight.
    let mut records = vec![(0, 0, 4096, 0); 10];
    records.push((50_000_000, 0, 4096, 0));
    let path = compiled(folder.path(), &records);
    let (_, total) = run_well(replay(&path, 11, &null_volume("a", 1), &json!({})));
    assert_eq!(ios(&total, None, None, None), 11);
    let responses = total.latencies.iter().filter(|latency| latency.kind == LatencyKind::Response);
    assert_eq!(responses.map(|latency| latency.histogram.count()).max(), Some(11));
    let row = &total.rows[0];
    assert!(row.response_sum_ns >= row.service_sum_ns, "{row:?}");
}

#[test]
fn writes_go_where_the_trace_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    std::fs::write(&file, vec![0; 1 << 20]).unwrap();
    // The third one is beyond the end and comes to 8192, the fourth one is at the start of the second part.
    let records =
        [(0, 65_536, 4096, 1), (1000, 0, 4096, 0), (2000, (1 << 20) + 8192, 4096, 1), (3000, 0, 4096, 1)];
    let path = compiled(folder.path(), &records);
    let volume =
        json!({"name": "f", "url": format!("file:{}", file.display()), "direct": false, "outstanding": 1});
    run_well(replay(&path, 3, &volume, &json!({})));
    let written = |bytes: &[u8]| -> Vec<usize> {
        let blocks = bytes.chunks(4096).enumerate();
        blocks.filter(|(_, block)| block.iter().any(|byte| *byte != 0)).map(|(at, _)| at).collect()
    };
    assert_eq!(written(&std::fs::read(&file).unwrap()), [2, 16]);
    run_well(replay(&path, 1, &volume, &json!({"first_io": 3})));
    assert_eq!(written(&std::fs::read(&file).unwrap()), [0, 2, 16]);
}

#[test]
fn a_trace_that_is_not_whole_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (second_ns, ios, expected) in [(6, 3, "cannot be read"), (4, 2, "damaged")] {
        let path = compiled(folder.path(), &[(5, 0, 4096, 0), (second_ns, 0, 4096, 0)]);
        let error = Run::start(replay(&path, ios, &null_volume("a", 1), &json!({}))).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
