//! Runs in virtual time on whole arrays of modelled drives.

use linerate_load::{Interval, Run, RunOutcome, RunSpec, VirtualArray};
use serde_json::{Value, json};
use std::time::Duration;

const GIB: u64 = 1 << 30;

/// Eight 10k drives of 4 GiB in one RAID set, as a volume of its own or under a pool.
fn array(level: &str, volume: &Value) -> String {
    let disks: Vec<_> = (0..8).map(|nth| format!("d{nth}")).collect();
    let drives =
        disks.iter().map(|name| json!({"name": name, "size_bytes": 4 * GIB, "model": "sas_10k_2_5"}));
    json!({
        "name": "a", "targets": [{"name": "iqn.2026-11.lab.linerate:a", "volumes": [volume]}],
        "storage": {
            "disks": drives.collect::<Vec<_>>(),
            "raid_sets": [{"name": "r", "level": level, "disks": disks, "initialise": "assume_clean"}],
            "pools": if volume["kind"] == "pool" { json!([{"name": "p", "raid_sets": ["r"]}]) } else { json!([]) },
        },
    })
    .to_string()
}

fn raid(level: &str) -> String {
    array(level, &json!({"lun": 0, "name": "v", "kind": "raid", "raid_set": "r", "sector_bytes": 512}))
}

fn spec(read_percent: f64, outstanding: u32, verify: bool) -> RunSpec {
    let spec = json!({
        "version": 1, "elapsed_s": 12, "warmup_s": 3, "interval_s": 3, "seed": 3,
        "verify": if verify { "on" } else { "off" },
        "volumes": [{"name": "v", "url": "array:v", "outstanding": outstanding, "size_bytes": 4 * GIB}],
        "streams": [{"name": "s", "volumes": ["v"], "read_percent": read_percent,
                     "sizes": {"kind": "mix", "parts": [[8192, 100]]}}],
    });
    RunSpec::from_json(&spec.to_string()).unwrap()
}

/// IOPS, and the array's report at the start and at the end.
fn run(array: &str, spec: RunSpec) -> (f64, Value, Value) {
    let elapsed_s = spec.elapsed_s;
    let run = Run::in_virtual_time(spec, VirtualArray::of_array(array).unwrap()).unwrap();
    let report = |index| serde_json::from_str(&run.report(index).unwrap()).unwrap();
    let start = report(None);
    let mut last: Option<Interval> = None;
    while !run.finished() {
        last = run.next_interval(Duration::from_secs(60)).or(last);
    }
    let end = report(last.map(|interval| interval.index));
    let summary = run.finish();
    assert!(matches!(summary.outcome, RunOutcome::Completed), "{:?}", summary.outcome);
    (summary.total.ios() as f64 / elapsed_s, start, end)
}

fn counted(start: &Value, end: &Value, key: &str) -> u64 {
    let sum = |report: &Value| {
        report["disks"].as_array().unwrap().iter().map(|disk| disk[key].as_u64().unwrap()).sum::<u64>()
    };
    sum(end) - sum(start)
}

#[test]
fn a_write_costs_what_its_raid_level_says() {
    let [striped, mirrored, parity] = ["raid0", "raid10", "raid5"].map(|level| {
        let (iops, start, end) = run(&raid(level), spec(0.0, 16, false));
        let (reads, writes) = (counted(&start, &end, "reads"), counted(&start, &end, "writes"));
        let ios = iops * 15.0;
        (iops, reads as f64 / ios, writes as f64 / ios)
    });
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.3;
    assert!(striped.1 < 0.1 && near(striped.2, 1.0), "{striped:?}");
    assert!(mirrored.1 < 0.1 && near(mirrored.2, 2.0), "{mirrored:?}");
    assert!(parity.1 > 1.5 && parity.2 > 1.5, "{parity:?}");
    assert!(striped.0 > mirrored.0 && mirrored.0 > 1.3 * parity.0, "{striped:?} {mirrored:?} {parity:?}");
}

#[test]
fn reads_come_from_all_disks() {
    let (iops, start, end) = run(&raid("raid10"), spec(100.0, 32, false));
    // Eight drives of some 200 to 400 reads per second each, over a quarter of their stroke.
    assert!((1600.0..3200.0).contains(&iops), "{iops}");
    for (before, after) in start["disks"].as_array().unwrap().iter().zip(end["disks"].as_array().unwrap()) {
        let reads = after["reads"].as_u64().unwrap() - before["reads"].as_u64().unwrap();
        assert!(reads > 1000, "{after}");
        let busy_s = (after["busy_ns"].as_u64().unwrap() - before["busy_ns"].as_u64().unwrap()) as f64 / 1e9;
        assert!((10.0..15.1).contains(&busy_s), "{after}");
    }
}

#[test]
fn a_thin_volume_gives_back_what_was_written() {
    let volume = json!({"lun": 0, "name": "v", "kind": "pool", "pool": "p", "size_bytes": 4 * GIB});
    let (iops, _, end) = run(&array("raid6", &volume), spec(50.0, 8, true));
    assert!(iops > 50.0, "{iops}");
    assert!(end["pools"][0]["used_bytes"].as_u64().unwrap() > 0, "{end}");
}

#[test]
fn reads_that_no_disk_serves_end_the_run_with_the_reason() {
    let volume = json!({"lun": 0, "name": "v", "kind": "pool", "pool": "p", "size_bytes": 4 * GIB});
    let array = VirtualArray::of_array(&array("raid0", &volume)).unwrap();
    let run = Run::in_virtual_time(spec(100.0, 8, false), array).unwrap();
    while !run.finished() {
        run.next_interval(Duration::from_secs(60));
    }
    let outcome = run.finish().outcome;
    let RunOutcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("took no time"), "{error}");
}

#[test]
fn an_unknown_volume_names_those_that_exist() {
    let mut wrong = spec(0.0, 1, false);
    wrong.volumes[0].url = "array:w".into();
    let array = VirtualArray::of_array(&raid("raid0")).unwrap();
    let error = Run::in_virtual_time(wrong, array).err().unwrap().to_string();
    assert!(error.contains("array:w: the array has no such volume; it has: v"), "{error}");
}

#[test]
fn what_takes_no_time_is_refused() {
    let error = |config: &str| VirtualArray::of_array(config).err().unwrap().to_string();
    let bare = raid("raid0").replace("\"model\":\"sas_10k_2_5\",", "");
    assert!(error(&bare).contains("storage.disks.d0: takes no time"), "{}", error(&bare));
    let memory = array("raid0", &json!({"lun": 0, "name": "v", "kind": "memory", "size_bytes": GIB}));
    assert!(error(&memory).contains("volumes.v.kind"), "{}", error(&memory));
    let unknown = Run::in_virtual_time(
        spec(0.0, 1, false),
        VirtualArray::of_array(&raid("raid0").replace("sas_10k_2_5", "ssd")).unwrap(),
    );
    let error = unknown.err().unwrap().to_string();
    assert!(error.contains("model"), "{error}");
}
