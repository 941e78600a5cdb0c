//! Specifications for tests, and a run from start to end.

#![allow(dead_code, clippy::unwrap_used, reason = "every test uses its part of it")]

use linerate_load::{Interval, Op, Run, RunOutcome, RunSpec, Summary};
use serde_json::{Value, json};
use std::time::Duration;

/// A run of these volumes and streams; `rest` overrides the other keys.
pub(crate) fn spec(volumes: &Value, streams: &Value, rest: &Value) -> RunSpec {
    let mut spec = json!({
        "version": 1, "seed": 7, "elapsed_s": 0.5, "interval_s": 0.1, "workers": 1,
        "volumes": volumes, "streams": streams,
    });
    for (key, value) in rest.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    RunSpec::from_json(&spec.to_string()).unwrap()
}

/// A null volume of 1 GiB.
pub(crate) fn null_volume(name: &str, outstanding: u32) -> Value {
    json!({"name": name, "url": "null:1073741824", "outstanding": outstanding})
}

/// A stream of 4 KiB I/Os; `rest` overrides.
pub(crate) fn stream(name: &str, volumes: &[&str], rest: &Value) -> Value {
    let mut stream =
        json!({"name": name, "volumes": volumes, "sizes": {"kind": "mix", "parts": [[4096, 100]]}});
    for (key, value) in rest.as_object().into_iter().flatten() {
        stream[key] = value.clone();
    }
    stream
}

/// Runs to the end, pulling every interval.
pub(crate) fn run(spec: RunSpec) -> (Vec<Interval>, Summary) {
    let run = Run::start(spec).unwrap();
    let mut intervals = Vec::new();
    while !run.finished() {
        intervals.extend(run.next_interval(Duration::from_secs(5)));
    }
    (intervals, run.finish())
}

/// Runs to the end; the run must succeed.
pub(crate) fn run_well(spec: RunSpec) -> (Vec<Interval>, Interval) {
    let (intervals, summary) = run(spec);
    assert!(
        matches!(summary.outcome, RunOutcome::Completed),
        "{:?}: {:?}",
        summary.outcome,
        summary.total.events
    );
    (intervals, summary.total)
}

/// The drivers to test where a test takes seconds on each: both, or with `LINERATE_QUICK` set (`make test`) the usual
/// one.
pub(crate) fn slow_drivers() -> &'static [&'static str] {
    if std::env::var_os("LINERATE_QUICK").is_some() { &["auto"] } else { &["epoll", "auto"] }
}

/// Makes up to three attempts: another program on the machine may disturb a measured time once. `Err` has the measured
/// values.
pub(crate) fn within_three_attempts(attempt: impl Fn() -> Result<(), String>) {
    let failures: Vec<String> = (0..3).map_while(|_| attempt().err()).collect();
    assert!(failures.len() < 3, "{failures:?}");
}

/// I/Os of a stream, a volume and an operation; None: any.
pub(crate) fn ios(interval: &Interval, stream: Option<u32>, volume: Option<u32>, op: Option<Op>) -> u64 {
    interval
        .rows
        .iter()
        .filter(|row| stream.is_none_or(|stream| stream == row.stream))
        .filter(|row| volume.is_none_or(|volume| volume == row.volume))
        .filter(|row| op.is_none_or(|op| op == row.op))
        .map(|row| row.ios)
        .sum()
}
