//! Phases of an image backup on files and LUNs, with QEMU and libvhdi as judges of the image.

use linerate_io::system;
use linerate_iscsi_target::Array;
use linerate_load::{
    Blame, Interval, RunError, RunOutcome,
    backup::job::{BackupJob, BackupJobSpec, JobTotals, STREAMS},
};
use linerate_vhdx::{GuidSource, OpenMode, VhdxImage};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

const MIB: u64 = 1 << 20;
const TARGET: &str = "iqn.2026-11.lab.linerate:backup";

/// A phase on an image of 64 MiB with blocks of 2 MiB; `rest` overrides.
fn spec(url: &str, phase: &str, rest: &Value) -> BackupJobSpec {
    let backup = json!({
        "image_bytes": 64 * MIB, "used_percent": 60.0, "changed_percent": 20.0, "used_run_clusters": 8,
        "changed_run_clusters": 3, "transfer_bytes": 1 << 20, "writes_per_metadata_write": 7,
        "flush_bytes": 8 * MIB, "seed": 5,
    });
    let image = json!({"name": "image", "url": url, "direct": false, "outstanding": 8});
    let mut spec = json!({
        "version": 1, "phase": phase, "backup": backup, "block_bytes": 2 * MIB, "image": image, "interval_s": 0.2,
    });
    for (key, value) in rest.as_object().into_iter().flatten() {
        if let (Some(fields), Value::Object(changes)) = (spec[key].as_object_mut(), value) {
            fields.extend(changes.clone());
        } else {
            spec[key] = value.clone();
        }
    }
    serde_json::from_value(spec).unwrap()
}

/// A phase that must succeed: all of it as one interval.
fn run(spec: BackupJobSpec) -> (Interval, JobTotals) {
    let job = BackupJob::start(spec).unwrap();
    let (summary, totals) = (job.finish(), job.totals());
    assert!(matches!(summary.outcome, RunOutcome::Completed), "{:?}", summary.outcome);
    (summary.total, totals)
}

/// Why a phase fails.
fn failure(spec: BackupJobSpec) -> RunError {
    match BackupJob::start(spec).map(|job| job.finish().outcome) {
        Err(error) | Ok(RunOutcome::Failed(error)) => error,
        Ok(outcome) => panic!("{outcome:?}"),
    }
}

fn bytes_of(total: &Interval, stream: &str) -> u64 {
    let rows = total.rows.iter().filter(|row| STREAMS[row.stream as usize] == stream);
    rows.map(|row| row.bytes).sum()
}

fn folder() -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image.vhdx");
    let url = format!("file:{}", path.display());
    (folder, path, url)
}

/// What a program says about an image, if it is installed.
fn judged(program: &str, args: &[&str], image: &Path) -> Option<String> {
    let Ok(output) = Command::new(program).args(args).arg(image).output() else {
        assert!(std::env::var_os("LINERATE_CI").is_none(), "{program} is not installed");
        eprintln!("skipped: {program} is not installed (Debian: qemu-utils, libvhdi-utils)");
        return None;
    };
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{program}: {said}");
    Some(said)
}

/// Create, full backup, two incremental ones, restore.
fn whole_backup(url: &str, rest: &Value) -> Vec<(Interval, JobTotals)> {
    let with = |incrementals: u32| {
        let mut rest = rest.clone();
        rest["incrementals"] = json!(incrementals);
        rest
    };
    [("create", 0), ("full", 0), ("incremental", 0), ("incremental", 1), ("restore", 2)]
        .map(|(phase, incrementals)| run(spec(url, phase, &with(incrementals))))
        .into()
}

/// CPU time of a thread of this process that exists (proc(5)).
fn thread_cpu_s(thread: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

#[test]
fn the_thread_of_a_phase_stays_until_its_cpu_time_was_read() {
    let (_folder, _path, url) = folder();
    for phase in ["create", "full", "restore"] {
        let before = system::process_cpu().unwrap();
        let job = BackupJob::start(spec(&url, phase, &json!({"driver": "epoll"}))).unwrap();
        let thread = job.facts().threads[0].thread_id;
        while !job.finished() {
            job.next_interval(Duration::from_millis(100));
        }
        let seen_s = thread_cpu_s(thread);
        let used = job.finish().total.host;
        let counted_s = used.load_cpu_user_s + used.load_cpu_system_s;
        let process = system::process_cpu().unwrap();
        let process_us = process.user_us + process.system_us - before.user_us - before.system_us;
        assert!(counted_s > 1e-3 && counted_s <= 1e-6 * process_us as f64, "{phase}: {counted_s} s");
        assert!(seen_s >= 0.95 * counted_s, "{phase}: {seen_s} s of {counted_s} s");
    }
}

#[test]
fn images_of_both_kinds_are_written_restored_and_read_by_others() {
    for kind in ["fixed", "dynamic"] {
        let (_folder, path, url) = folder();
        let phases = whole_backup(&url, &json!({"kind": kind}));
        let [create, full, second, third, restore] = phases.try_into().unwrap();
        let zeros = if kind == "fixed" { 64 * MIB } else { 0 };
        assert_eq!(bytes_of(&create.0, "write_zeros"), zeros, "{kind}");
        let data = bytes_of(&full.0, "write_data");
        assert!((30 * MIB..50 * MIB).contains(&data), "{kind}: {data}");
        assert!(bytes_of(&full.0, "write_metadata") > 0 && full.1.flushes >= data / (8 * MIB), "{kind}");
        for changed in [&second, &third] {
            let changed = bytes_of(&changed.0, "write_data") as f64 / data as f64;
            assert!((0.05..0.4).contains(&changed), "{kind}: {changed}");
        }
        assert_eq!(bytes_of(&restore.0, "read_image"), data, "{kind}");
        assert_eq!(restore.1.verified_bytes, data, "{kind}");
        // A fixed image does not grow; a dynamic one does, once for each block.
        let grown = full.1.length_changes;
        assert!(if kind == "fixed" { grown == 0 } else { grown > 10 }, "{kind}: {grown}");
        if let Some(said) = judged("qemu-img", &["check", "-f", "vhdx"], &path) {
            assert!(said.contains("No errors were found"), "{said}");
        }
        if let Some(said) = judged("vhdiinfo", &[], &path) {
            assert!(said.to_lowercase().contains(kind) && said.contains(&(64 * MIB).to_string()), "{said}");
        }
    }
}

#[test]
fn how_many_ios_are_in_flight_does_not_change_the_image() {
    let disk = |outstanding: u32| {
        let (_folder, path, url) = folder();
        whole_backup(&url, &json!({"kind": "dynamic", "image": {"outstanding": outstanding}}));
        let file = File::options().read(true).write(true).open(path).unwrap();
        let mut image = VhdxImage::open(file, OpenMode::ReadOnly, GuidSource::random()).unwrap();
        let mut bytes = vec![0; image.size_bytes() as usize];
        image.read(0, &mut bytes).unwrap();
        bytes
    };
    assert!(disk(1) == disk(16), "the disks differ");
}

#[test]
fn a_source_is_read_and_a_target_gets_the_data() {
    let (folder, _, url) = folder();
    let volume = |name: &str| {
        let path = folder.path().join(name);
        File::create(&path).unwrap().set_len(64 * MIB).unwrap();
        json!({"name": name, "url": format!("file:{}", path.display()), "direct": false, "outstanding": 3})
    };
    let rest = json!({"source": volume("source"), "target": volume("target")});
    let phases = whole_backup(&url, &rest);
    let (full, second, restore) = (&phases[1].0, &phases[2].0, &phases[4].0);
    assert_eq!(bytes_of(full, "read_source"), bytes_of(full, "write_data"));
    // A bit per cluster, in whole clusters.
    assert_eq!((bytes_of(full, "read_map"), bytes_of(second, "read_map")), (0, 65536));
    assert_eq!(bytes_of(restore, "write_target"), bytes_of(full, "write_data"));
    // The target holds what the image holds: another restore from it would find the same data.
    let target = fs::read(folder.path().join("target")).unwrap();
    let used = target.chunks(65536).filter(|cluster| cluster.iter().any(|byte| *byte != 0)).count() as u64;
    assert_eq!(used * 65536, bytes_of(full, "write_data"));
}

#[test]
fn an_existing_image_is_kept_unless_it_may_be_overwritten() {
    let (_folder, path, url) = folder();
    fs::write(&path, b"not to be lost").unwrap();
    let error = failure(spec(&url, "create", &Value::Null));
    assert_eq!(error.blame(), Blame::User);
    let said = error.to_string();
    assert!(said.starts_with("volume image: create: ") && said.contains("--overwrite"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), b"not to be lost");
    run(spec(&url, "create", &json!({"overwrite": true, "kind": "dynamic"})));
    assert!(fs::read(&path).unwrap().starts_with(b"vhdxfile"));
}

#[test]
fn changed_data_of_an_image_are_found_with_their_place() {
    let (_folder, path, url) = folder();
    run(spec(&url, "create", &Value::Null));
    run(spec(&url, "full", &Value::Null));
    // Blocks of a fixed image are in the order of the disk.
    let (file, blocks_at) = (File::options().read(true).write(true).open(&path).unwrap(), 4 * MIB);
    let mut cluster = vec![0; 65536];
    let used = (1..1024).find(|number| {
        file.read_exact_at(&mut cluster, blocks_at + number * 65536).unwrap();
        cluster.iter().any(|byte| *byte != 0)
    });
    let place = used.unwrap() * 65536 + 8192;
    file.write_all_at(b"changed", blocks_at + place + 100).unwrap();
    let error = failure(spec(&url, "restore", &Value::Null));
    assert!(matches!(error, RunError::Miscompare { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("restore: ") && said.contains(&format!("offset {place}:")), "{said}");
    // A backup that was not made is missing.
    file.write_all_at(&[0; 16384], blocks_at + place - 8192).unwrap();
    let said = failure(spec(&url, "restore", &Value::Null)).to_string();
    assert!(said.contains("all zeros"), "{said}");
}

#[test]
fn what_cannot_be_done_is_said_with_the_volume() {
    let (folder, path, url) = folder();
    let missing = failure(spec(&url, "full", &Value::Null)).to_string();
    assert!(missing.starts_with("volume image: cannot open"), "{missing}");
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let foreign = failure(spec(&url, "full", &Value::Null)).to_string();
    assert!(foreign.starts_with("volume image: full backup: this is no VHDX image"), "{foreign}");
    run(spec(&url, "create", &json!({"overwrite": true, "kind": "dynamic"})));
    let other = failure(spec(&url, "full", &json!({"backup": {"image_bytes": 32 * MIB}}))).to_string();
    assert!(other.contains("has 67108864 bytes, and the backup 33554432"), "{other}");
    let small = folder.path().join("small");
    File::create(&small).unwrap().set_len(MIB).unwrap();
    let source = json!({"name": "source", "url": format!("file:{}", small.display()), "direct": false});
    let short = failure(spec(&url, "full", &json!({"source": source}))).to_string();
    assert!(short.starts_with("volume source: the volume has 1048576 bytes"), "{short}");
    let null = failure(spec("null:1000000000", "create", &Value::Null)).to_string();
    assert!(null.starts_with("image.url: a null volume keeps no image"), "{null}");
}

#[test]
fn a_job_that_is_stopped_ends_at_once_and_its_image_can_be_used_again() {
    let (_folder, path, url) = folder();
    let large = json!({"backup": {"image_bytes": 1_u64 << 40}, "block_bytes": 32 * MIB, "kind": "dynamic"});
    run(spec(&url, "create", &large));
    let job = BackupJob::start(spec(&url, "full", &large)).unwrap();
    let first = job.next_interval(Duration::from_secs(10)).unwrap();
    assert!(bytes_of(&first, "write_data") > 0 && job.data_bytes() > 1 << 38);
    let asked = Instant::now();
    job.stop();
    let summary = job.finish();
    assert!(matches!(summary.outcome, RunOutcome::Stopped), "{:?}", summary.outcome);
    assert!(asked.elapsed() < Duration::from_millis(400), "{:?}", asked.elapsed());
    drop(job);
    // As after a power cut: the log is replayed, and the disk is whole.
    judged("qemu-img", &["check", "-r", "all", "-f", "vhdx"], &path);
}

/// An array with a memory LUN of 100 MiB, and its URL.
fn array() -> (Array, String) {
    let volume = json!({
        "lun": 0, "name": "v", "kind": "memory", "size_bytes": 100 * MIB, "sector_bytes": 4096,
        "physical_sector_bytes": 4096,
    });
    let targets = json!([{"name": TARGET, "volumes": [volume]}]);
    let config = json!({"name": "lab", "portals": ["127.0.0.1:0"], "workers": 1, "targets": targets});
    let array = Array::start(serde_json::from_value(config).unwrap()).unwrap();
    let url = format!("iscsi://{}/{TARGET}/0", array.portals()[0]);
    (array, url)
}

#[test]
fn images_are_on_a_lun_with_blocks_of_4096_bytes_too() {
    for kind in ["fixed", "dynamic"] {
        let (array, url) = array();
        let phases = whole_backup(&url, &json!({"kind": kind}));
        let (full, restore) = (&phases[1], &phases[4]);
        assert_eq!(restore.1.verified_bytes, bytes_of(&full.0, "write_data"), "{kind}");
        assert!(full.0.tcp.bytes_sent > bytes_of(&full.0, "write_data"), "{kind}");
        // The LUN has an image now, and old data where a new one puts its blocks.
        let error = failure(spec(&url, "create", &json!({"kind": kind}))).to_string();
        assert!(error.contains("has content"), "{kind}: {error}");
        whole_backup(&url, &json!({"kind": kind, "overwrite": true, "backup": {"seed": 6}}));
        let large = json!({"kind": kind, "overwrite": true, "backup": {"image_bytes": 128 * MIB}});
        if kind == "fixed" {
            let error = failure(spec(&url, "create", &large));
            assert!(error.blame() == Blame::User && error.to_string().contains("the image needs"), "{error}");
        }
        array.stop();
    }
}
