//! The ends of LUNs are read as the run would read them, and distinguished.

use crate::common::{run_well, spec, stream};
use linerate_iscsi_target::Array;
use linerate_load::{END_BYTES, RunError, VolumeEnds, read_ends};
use serde_json::{Value, json};

const TARGET: &str = "iqn.2026-11.lab.linerate:ends";
const CHAP: [&str; 2] = ["joe", "a secret of some length"];

/// LUN 0 has 4 MiB in blocks of 4096 bytes, LUN 1 less than the length of an end, in blocks of 512.
fn array() -> Array {
    let volume = |lun: u32, size: u64, sector: u32| {
        json!({"lun": lun, "name": format!("vol{lun}"), "kind": "memory", "size_bytes": size, "sector_bytes": sector,
            "physical_sector_bytes": 4096})
    };
    let chap = json!({"algorithms": ["sha256"], "user": CHAP[0], "secret": CHAP[1]});
    let volumes = [volume(0, 4 << 20, 4096), volume(1, 300 << 10, 512)];
    let targets = json!([{"name": TARGET, "chap": chap, "volumes": volumes}]);
    let config = json!({"name": "lab", "portals": ["127.0.0.1:0"], "workers": 1, "targets": targets});
    Array::start(serde_json::from_value(config).unwrap()).unwrap()
}

fn volume(array: &Array, lun: u32, rest: &Value) -> Value {
    let url = format!("iscsi://{}/{TARGET}/{lun}", array.portals()[0]);
    let mut volume = json!({"name": format!("sd{lun}"), "url": url, "user": CHAP[0], "secret": CHAP[1]});
    for (key, value) in rest.as_object().into_iter().flatten() {
        volume[key] = value.clone();
    }
    volume
}

/// Fills a part of a LUN with data that are not zeros.
fn fill(array: &Array, lun: u32, first_byte: u64, size_bytes: u64) {
    let part = volume(array, lun, &json!({"first_byte": first_byte, "size_bytes": size_bytes}));
    let writes = json!({"read_percent": 0, "random_percent": 0, "stop_at_end": true});
    let streams = json!([stream("s", &[&format!("sd{lun}")], &writes)]);
    run_well(spec(&json!([part]), &streams, &json!({"elapsed_s": 10})));
}

fn look(volumes: &Value, driver: &str) -> Result<Vec<VolumeEnds>, RunError> {
    let names: Vec<String> =
        volumes.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    read_ends(&spec(volumes, &json!([stream("s", &names, &json!({}))]), &json!({"driver": driver})))
}

fn used(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte != 0).count()
}

#[test]
fn both_ends_are_what_was_written() {
    let array = array();
    fill(&array, 0, 0, 4096);
    fill(&array, 0, (4 << 20) - 8192, 8192);
    fill(&array, 1, 100 << 10, 4096);
    for driver in ["epoll", "io_uring"] {
        let path = json!({"paths": [{"name": "p", "sessions": 2}]});
        let volumes = json!([
            {"name": "n", "url": "null:1048576"},
            volume(&array, 0, &Value::Null),
            volume(&array, 1, &path),
        ]);
        let found = look(&volumes, driver).unwrap();
        let [long, short] = &found[..] else { panic!("{found:?}") };
        assert_eq!((long.volume, long.capacity_bytes, long.block_bytes), (1, 4 << 20, 4096));
        assert_eq!((short.volume, short.capacity_bytes, short.block_bytes), (2, 300 << 10, 512));
        assert_eq!(long.session["vendor"], "LINERATE");
        assert_eq!(long.session["product"], "MEMORY VOLUME");
        assert_eq!((long.first.len(), long.last.len()), (END_BYTES as usize, END_BYTES as usize));
        // Random data contain a zero sometimes.
        assert!(used(&long.first[..4096]) > 4000 && used(&long.first[4096..]) == 0, "{driver}");
        let rest = END_BYTES as usize - 8192;
        assert!(used(&long.last[rest..]) > 8000 && used(&long.last[..rest]) == 0, "{driver}");
        assert_eq!(short.first.len(), 300 << 10);
        assert_eq!(short.first, short.last);
        assert!(used(&short.first[100 << 10..104 << 10]) > 4000, "{driver}");
        assert!(found.iter().all(|one| one.failure.is_none()), "{found:?}");
    }
    array.stop();
}

#[test]
fn what_cannot_be_opened_fails_as_the_run_would() {
    let array = array();
    let wrong = json!([volume(&array, 0, &json!({"secret": "another secret, wrong"}))]);
    let error = look(&wrong, "auto").unwrap_err();
    assert!(matches!(&error, RunError::Credentials { volume, .. } if volume == "sd0"), "{error:?}");
    let nothing = json!([volume(&array, 0, &Value::Null), volume(&array, 7, &Value::Null)]);
    let error = look(&nothing, "auto").unwrap_err();
    assert!(matches!(&error, RunError::Volume { volume, .. } if volume == "sd7"), "{error:?}");
    array.stop();
}
