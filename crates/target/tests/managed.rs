//! Volumes whose bytes lie behind the engine: RAID sets and pools, through real sockets.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly

mod support;

use linerate_target::{Array, ArrayConfig};
use support::{Client, IQN};

/// An array whose LUN 0 is a RAID set of disks like `disks`.
fn raid(disks: &str, level: &str, names: &str) -> Array {
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0"], "storage": {{"disks": [{disks}],
            "raid_sets": [{{"name": "r", "level": "{level}", "disks": [{names}]}}]}},
            "targets": [{{"name": "{IQN}", "volumes": [{{"lun": 0, "name": "v0", "kind": "raid"}}]}}]}}"#
    );
    let config: ArrayConfig = serde_json::from_str(&json).unwrap();
    Array::start(config).unwrap()
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 512 * 31 + at % 251 + seed) as u8).collect()
}

#[test]
fn what_is_written_is_read_back_at_every_size() {
    let array = raid(r#"{"name": "d", "size_bytes": 16777216, "count": 1}"#, "raid0", r#""d0""#);
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
    assert!(storage.disks[0].stats.write_bytes >= (1 << 20) + 512, "{storage:?}");
}
