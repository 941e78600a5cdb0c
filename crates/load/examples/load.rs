//! Runs a specification from Rust alone: `cargo run -p linerate-load --release --example load -- spec.json`. A
//! comparison with the same run through Python shows that the lab plane costs nothing per I/O.

#![allow(clippy::print_stdout)]

use linerate_load::{Interval, LatencyKind, Op, Run, RunOutcome, RunSpec};
use std::{fmt::Write, process::ExitCode, time::Duration};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: load SPEC.json");
        return ExitCode::from(2);
    };
    match run(&path) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run(path: &str) -> Result<ExitCode, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let spec = RunSpec::from_json(&text).map_err(|error| format!("{path}: {error}"))?;
    let run = Run::start(spec).map_err(|error| error.to_string())?;
    println!("driver {}, {} workers", run.facts().driver, run.facts().workers);
    while !run.finished() {
        if let Some(interval) = run.next_interval(Duration::from_millis(500)) {
            println!("{}", line(if interval.warmup { "warm-up" } else { "" }, &interval));
        }
    }
    let summary = run.finish();
    println!("{}", line("total", &summary.total));
    for event in &summary.total.events {
        println!("{:.3} s {} {}: {}", event.at_s, event.kind, event.volume, event.message);
    }
    match summary.outcome {
        RunOutcome::Failed(error) => {
            eprintln!("{error}");
            Ok(ExitCode::FAILURE)
        }
        RunOutcome::Completed | RunOutcome::Stopped => Ok(ExitCode::SUCCESS),
    }
}

fn line(label: &str, interval: &Interval) -> String {
    let seconds = interval.end_s - interval.start_s;
    let ios = interval.ios() as f64;
    let cpu_s = interval.host.load_cpu_user_s + interval.host.load_cpu_system_s;
    let mut text = format!(
        "{label:8}{:8.2}-{:<8.2}{:12.0} IOPS {:10.1} MB/s  in flight {:7.2}  cpu/IO {:7.0} ns  errors {}",
        interval.start_s,
        interval.end_s,
        ios / seconds,
        interval.bytes() as f64 / seconds / f64::from(1 << 20),
        interval.outstanding_mean,
        cpu_s / ios.max(1.0) * 1e9,
        interval.errors()
    );
    for latency in interval.latencies.iter().filter(|latency| latency.stream.is_some()) {
        let op = if latency.op == Op::Read { "read" } else { "write" };
        let kind = if latency.kind == LatencyKind::Service { "service" } else { "response" };
        let us = |q| latency.histogram.quantile(q) as f64 / 1000.0;
        let (p50, p99, p999) = (us(0.5), us(0.99), us(0.999));
        let _ = write!(text, "\n{:18}{op} {kind}: p50 {p50:.1} p99 {p99:.1} p99.9 {p999:.1} us", "");
    }
    text
}
