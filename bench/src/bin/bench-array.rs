//! `bench-array CONFIG.json`: serves an array, prints its portals as JSON, ends when standard input does.

use linerate_iscsi_target::{Array, ArrayConfig};
use std::io::{Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: bench-array CONFIG.json")?;
    let config: ArrayConfig = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let array = Array::start(config)?;
    let portals: Vec<String> = array.portals().iter().map(ToString::to_string).collect();
    let facts = serde_json::json!({ "portals": portals, "driver": array.driver() });
    let mut out = std::io::stdout();
    writeln!(out, "{facts}")?;
    out.flush()?;
    // The parent process has the other end of standard input.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    array.stop();
    Ok(())
}
