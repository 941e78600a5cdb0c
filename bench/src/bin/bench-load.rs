//! `bench-load SPEC.json`: one run of the load engine without Python. Prints `started` when every session is logged in,
//! then I/Os, those of each interval, seconds, CPU seconds and quantiles of the first stream's service times as JSON. The
//! CPU seconds are the worker threads'; starting and ending are not in them, and neither are `polled_s`, the seconds of
//! polls that found nothing.

use linerate_load::{Run, RunOutcome, RunSpec};
use std::{io::Write, time::Duration};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: bench-load SPEC.json")?;
    let spec: RunSpec = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let run = Run::start(spec)?;
    writeln!(std::io::stdout(), "started")?;
    let driver = run.facts().driver.clone();
    let mut interval_ios = Vec::new();
    loop {
        match run.next_interval(Duration::from_secs(1)) {
            Some(interval) => interval_ios.push(interval.ios()),
            None if run.finished() => break,
            None => {}
        }
    }
    let summary = run.finish();
    if let RunOutcome::Failed(error) = summary.outcome {
        return Err(error.into());
    }
    let total = &summary.total;
    let (ios, bytes) = total.rows.iter().fold((0, 0), |(ios, bytes), row| (ios + row.ios, bytes + row.bytes));
    let errors: u64 = total.rows.iter().map(|row| row.errors).sum();
    let quantile_us =
        |q: f64| total.latencies.first().map(|latency| latency.histogram.quantile(q) as f64 / 1e3);
    let report = serde_json::json!({
        "ios": ios,
        "interval_ios": interval_ios,
        "bytes": bytes,
        "errors": errors,
        "seconds": total.end_s - total.start_s,
        "cpu_s": total.host.load_cpu_user_s + total.host.load_cpu_system_s,
        "polled_s": total.host.load_cpu_polled_s,
        "p50_us": quantile_us(0.5),
        "p99_us": quantile_us(0.99),
        "driver": driver,
    });
    Ok(writeln!(std::io::stdout(), "{report}")?)
}
