//! `rawtcp-server [--port N] [--connections N] [--region-bytes N] [--wait block|spin] [--work-us N]
//! [--cpu N]`: prints its port as `port N`, serves one client, ends.

use lexopt::prelude::*;
use linerate_bench::affinity::pin;
use linerate_bench::rawtcp::{Server, ServerOptions, Waiting};
use std::io::Write;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options =
        ServerOptions { port: 0, region_bytes: 256 << 20, waiting: Waiting::Block, work: Duration::ZERO };
    let mut connections = 1;
    let mut args = lexopt::Parser::from_env();
    while let Some(arg) = args.next()? {
        match arg {
            Long("port") => options.port = args.value()?.parse()?,
            Long("connections") => connections = args.value()?.parse()?,
            Long("region-bytes") => options.region_bytes = args.value()?.parse()?,
            Long("wait") => options.waiting = args.value()?.parse()?,
            Long("work-us") => options.work = Duration::from_micros(args.value()?.parse()?),
            Long("cpu") => pin(args.value()?.parse()?)?,
            other => return Err(other.unexpected().into()),
        }
    }
    let server = Server::bind(&options)?;
    writeln!(std::io::stdout(), "port {}", server.port())?;
    Ok(server.serve(connections)?)
}
