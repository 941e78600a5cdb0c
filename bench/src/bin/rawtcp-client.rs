//! `rawtcp-client --port N [--connections N] [--depth N] [--len-bytes N] [--own-buffers] [--read-percent N]
//! [--region-bytes N] [--seconds S] [--wait block|spin] [--cpu N]`: runs the closed loop and prints one JSON object.

use lexopt::prelude::*;
use linerate_bench::affinity::pin;
use linerate_bench::rawtcp::{ClientOptions, Waiting, run_client};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = ClientOptions {
        port: 0,
        connections: 1,
        depth: 32,
        len_bytes: 4096,
        own_buffers: false,
        read_percent: 100,
        region_bytes: 256 << 20,
        seconds: 3.0,
        waiting: Waiting::Block,
    };
    let mut args = lexopt::Parser::from_env();
    while let Some(arg) = args.next()? {
        match arg {
            Long("port") => options.port = args.value()?.parse()?,
            Long("connections") => options.connections = args.value()?.parse()?,
            Long("depth") => options.depth = args.value()?.parse()?,
            Long("len-bytes") => options.len_bytes = args.value()?.parse()?,
            Long("own-buffers") => options.own_buffers = true,
            Long("read-percent") => options.read_percent = args.value()?.parse()?,
            Long("region-bytes") => options.region_bytes = args.value()?.parse()?,
            Long("seconds") => options.seconds = args.value()?.parse()?,
            Long("wait") => options.waiting = args.value()?.parse()?,
            Long("cpu") => pin(args.value()?.parse()?)?,
            other => return Err(other.unexpected().into()),
        }
    }
    let report = run_client(&options)?;
    writeln!(
        std::io::stdout(),
        "{{\"ios\": {}, \"seconds\": {:.6}, \"cpu_s\": {:.6}}}",
        report.ios,
        report.seconds,
        report.cpu_s
    )?;
    Ok(())
}
