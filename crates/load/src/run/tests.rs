//! A run on a hanging device: correct response times, and an end in time.

use super::{PreparedRun, Run};
use crate::{
    record::{Interval, LatencyKind, RunOutcome},
    spec::RunSpec,
    worker::Hooks,
};
use linerate_io::system::now_ns;
use std::time::Duration;

const MS: u64 = 1_000_000;

fn spec(elapsed_s: f64, arrival: &str) -> RunSpec {
    let text = format!(
        r#"{{"version": 1, "elapsed_s": {elapsed_s}, "interval_s": 0.1, "workers": 1, "arrival": {arrival},
        "volumes": [{{"name": "v", "url": "null:1073741824", "outstanding": 4}}],
        "streams": [{{"name": "s", "volumes": ["v"], "sizes": {{"kind": "mix", "parts": [[4096, 100]]}}}}]}}"#
    );
    RunSpec::from_json(&text).unwrap()
}

fn quantile_ms(interval: &Interval, kind: LatencyKind, q: f64) -> f64 {
    let one = interval.latencies.iter().find(|latency| latency.stream.is_some() && latency.kind == kind);
    one.unwrap().histogram.quantile(q) as f64 / MS as f64
}

/// No coordinated omission: a hang of 200 ms in a second delays a fifth of the arrivals, by 100 ms on average. The
/// service times do not show it, because only the four I/Os in flight took that long.
#[test]
fn response_time_shows_a_stall_that_service_time_hides() {
    let arrival = r#"{"kind": "open", "process": "deterministic", "rate_iops": 5000}"#;
    let hooks = Hooks { null_stall: Some((300 * MS, 500 * MS)) };
    let run = Run::start_with(spec(1.0, arrival), hooks).unwrap();
    let total = run.finish().total;
    assert!((4000..=5000).contains(&total.ios()), "{} I/Os", total.ios());
    let p95_ms = |kind| quantile_ms(&total, kind, 0.95);
    let (service, response) = (p95_ms(LatencyKind::Service), p95_ms(LatencyKind::Response));
    assert!(service < 20.0, "95 % of the service times are below {service} ms");
    assert!(response > 100.0, "95 % of the response times are below {response} ms");
    assert!(
        total.generator.backlog_max > 900 && total.generator.late_arrivals > 900,
        "{:?}",
        total.generator
    );
    let row = total.rows[0];
    assert!(row.response_max_ns > 190 * MS && row.service_max_ns > 190 * MS, "{row:?}");
    assert!(row.response_sum_ns > 10 * row.service_sum_ns, "{row:?}");
}

#[test]
fn a_hanging_volume_does_not_delay_the_end() {
    let hooks = Hooks { null_stall: Some((0, 3_600_000 * MS)) };
    let stop = || {
        let run = Run::start_with(spec(60.0, r#"{"kind": "closed"}"#), hooks).unwrap();
        assert!(run.next_interval(Duration::from_millis(50)).is_none());
        let asked = now_ns();
        run.stop();
        let summary = run.finish();
        assert!(matches!(summary.outcome, RunOutcome::Stopped));
        assert_eq!(summary.total.ios(), 0);
        now_ns() - asked
    };
    // A busy machine may delay one of three.
    assert!((0..3).any(|_| stop() < 200 * MS));
}

#[test]
fn an_overload_is_counted_and_costs_no_memory() {
    let arrival = r#"{"kind": "open", "process": "poisson", "rate_iops": 500000000}"#;
    let total = Run::start_with(spec(0.3, arrival), Hooks::default()).unwrap().finish().total;
    assert!(total.generator.backlog_max > 100_000 && total.ios() > 1000, "{:?}", total.generator);
    assert!(quantile_ms(&total, LatencyKind::Response, 0.5) > 20.0);
}

#[test]
fn an_armed_run_starts_at_its_instant() {
    let armed = PreparedRun::new(spec(0.2, r#"{"kind": "closed"}"#)).unwrap();
    assert_eq!(armed.facts().volumes.len(), 1);
    let start = now_ns() + 100 * MS;
    let run = armed.start_at(start).unwrap();
    assert!(run.next_interval(Duration::from_secs(10)).is_some());
    assert!(now_ns() >= start + 100 * MS, "the first interval ended before its time");
    assert!(run.finish().total.ios() > 0);
}

#[test]
fn an_armed_run_refuses_an_instant_that_is_over() {
    let armed = PreparedRun::new(spec(60.0, r#"{"kind": "closed"}"#)).unwrap();
    let error = armed.start_at(now_ns() - MS).unwrap_err();
    assert!(error.to_string().contains("the start is over"), "{error}");
}
