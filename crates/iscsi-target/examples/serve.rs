//! Serves an array from a JSON configuration until standard input ends:
//! `cargo run -p linerate-iscsi-target --example serve -- config.json < /dev/tty`.
//! `-` instead of a file serves one memory volume of 1 GiB on a free port.

#![allow(clippy::print_stdout)] // a program talks to its user

use linerate_iscsi_target::{Array, ArrayConfig};
use std::{error::Error, io::Read};

const SMALLEST: &str = r#"{"portals": ["127.0.0.1:0"], "targets": [{"name": "iqn.2026-11.lab.linerate:demo",
    "volumes": [{"lun": 0, "name": "vol0", "size_bytes": 1073741824}]}]}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: serve CONFIG.json (or -)")?;
    let json = if path == "-" { SMALLEST.to_owned() } else { std::fs::read_to_string(path)? };
    let config: ArrayConfig = serde_json::from_str(&json)?;
    let names: Vec<String> = config.targets.iter().map(|target| target.name.clone()).collect();
    let array = Array::start(config)?;
    for portal in array.portals() {
        for name in &names {
            println!("iscsi://{portal}/{name}/0 ({})", array.driver());
        }
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    println!("{:#?}", array.stats());
    array.stop();
    Ok(())
}
