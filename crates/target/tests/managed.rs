//! Volumes whose bytes lie behind the engine: RAID sets and pools, through real sockets.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly

mod support;

use linerate_target::{Array, ArrayConfig};
use support::{Client, IQN};

/// An array whose LUN 0 is made of six disks in a RAID set: `volume` says how.
fn array(level: &str, pools: &str, volume: &str) -> Array {
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0"], "storage": {{
            "disks": [{{"name": "d", "size_bytes": 33554432, "count": 6}}],
            "raid_sets": [{{"name": "r", "level": "{level}", "disks": ["d0", "d1", "d2", "d3"],
                "spares": ["d4"], "initialise": "assume_clean"}}], "pools": [{pools}]}},
            "targets": [{{"name": "{IQN}", "volumes": [{{"lun": 0, "name": "v0", {volume}}}]}}]}}"#
    );
    let config: ArrayConfig = serde_json::from_str(&json).unwrap();
    Array::start(config).unwrap()
}

fn kinds() -> [Array; 3] {
    let pool = r#"{"name": "p", "raid_sets": ["r"], "page_bytes": 65536}"#;
    [
        array("raid0", "", r#""kind": "raid""#),
        array("raid5", "", r#""kind": "raid""#),
        array("raid6", pool, r#""kind": "pool", "size_bytes": 16777216"#),
    ]
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 512 * 31 + at % 251 + seed) as u8).collect()
}

#[test]
fn what_is_written_is_read_back_at_every_size() {
    for array in kinds() {
        let mut client = Client::login(array.portals()[0], 1, "ImmediateData=Yes\0InitialR2T=Yes\0");
        client.clear_attention();
        for (lba, len) in [(0, 512), (7, 4096), (100, 8192)] {
            let bytes = pattern(len, lba as usize);
            client.write(lba, &bytes);
            assert_eq!(client.read(lba, len), bytes);
        }
        let bytes = pattern(1 << 20, 9);
        client.write_as_asked(2048, &bytes, 8192);
        assert_eq!(client.read(2048, 1 << 20), bytes);
        let storage = array.report().storage.unwrap();
        let written: u64 = storage.disks.iter().map(|disk| disk.stats.write_bytes).sum();
        assert!(written >= (1 << 20) + 512, "{storage:?}");
    }
}
