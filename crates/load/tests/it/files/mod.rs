//! File system workloads: structures on disk, counts of operations, and what a format may remove.

use linerate_load::{
    RunOutcome, Summary,
    files::{
        FileOp, FileRateSpec, FileSelect, FileStreamSpec, FileWorkSpec, FilesIn, FilesRun, FilesRunSpec,
        FormatSpec, HostPart, PreparedFilesRun, StructureSpec, WrittenFiles,
    },
    spec::ArrivalProcess,
};
use std::{collections::BTreeMap, fs, path::Path, time::Duration};

mod copies;
mod data;
mod hosts;

fn structure(anchor: &Path) -> StructureSpec {
    StructureSpec {
        name: "fsd1".into(),
        anchor: anchor.to_str().unwrap().into(),
        user: None,
        secret: None,
        smb: serde_json::Map::new(),
        depth: 2,
        width: 3,
        files: 4,
        sizes: vec![(4096, 50.0), (10_000, 50.0)],
        files_in: FilesIn::Bottom,
        total_bytes: None,
        working_set_bytes: None,
        create_anchor: false,
        host_part: None,
    }
}

fn work(operation: FileOp, threads: u32) -> FileWorkSpec {
    FileWorkSpec {
        name: "fwd1".into(),
        structure: 0,
        operation,
        target: None,
        read_percent: None,
        random_io: false,
        shared_files: false,
        select: FileSelect::Sequential,
        sizes: vec![(4096, 100.0)],
        threads,
        share_percent: 100.0,
        stop_after_blocks: None,
        stop_after_percent: None,
        direct: false,
        durable: false,
    }
}

const ALL: [FileOp; 13] = [
    FileOp::Read,
    FileOp::Write,
    FileOp::Mkdir,
    FileOp::Rmdir,
    FileOp::Create,
    FileOp::Delete,
    FileOp::Getattr,
    FileOp::Setattr,
    FileOp::Access,
    FileOp::Open,
    FileOp::Close,
    FileOp::Copy,
    FileOp::Move,
];

fn run_spec(anchor: &Path, works: Vec<FileWorkSpec>) -> FilesRunSpec {
    let streams = (0..works.len()).flat_map(|workload| {
        ALL.map(|operation| FileStreamSpec { name: format!("{workload} {operation:?}"), workload, operation })
    });
    FilesRunSpec {
        version: 1,
        seed: 1,
        warmup_s: 0.0,
        elapsed_s: Some(60.0),
        interval_s: 0.1,
        structures: vec![structure(anchor)],
        streams: streams.collect(),
        workloads: works,
        rate: None,
        format: None,
        compression_ratio: None,
        dedup: None,
        verify_unit_bytes: None,
    }
}

/// Runs to the end. Returns the counts by stream name, and the bytes of all.
fn counts(spec: FilesRunSpec) -> (BTreeMap<String, u64>, u64, Summary) {
    counts_after(spec, &WrittenFiles::default())
}

/// The same after other runs.
fn counts_after(spec: FilesRunSpec, written: &WrittenFiles) -> (BTreeMap<String, u64>, u64, Summary) {
    let names: Vec<String> = spec.streams.iter().map(|stream| stream.name.clone()).collect();
    let run = FilesRun::start(spec, written).unwrap();
    let mut of_intervals = 0;
    while !run.finished() {
        of_intervals += run.next_interval(Duration::from_millis(50)).map_or(0, |interval| interval.ios());
    }
    let summary = run.finish();
    assert_eq!(summary.total.errors(), 0, "{:?}", summary.total);
    assert_eq!(summary.total.ios(), of_intervals);
    let rows = summary.total.rows.iter();
    let found = rows.map(|row| (names[row.stream as usize].clone(), row.ios)).collect();
    (found, summary.total.bytes(), summary)
}

fn format(anchor: &Path, format: FormatSpec) -> (BTreeMap<String, u64>, u64) {
    let spec = FilesRunSpec {
        format: Some(format),
        elapsed_s: None,
        ..run_spec(anchor, vec![work(FileOp::Write, 3)])
    };
    let (found, bytes, summary) = counts(spec);
    assert!(matches!(summary.outcome, RunOutcome::Completed));
    (found, bytes)
}

const NEW: FormatSpec = FormatSpec { delete: true, folders: true, files: true };

/// Paths below a folder with their sizes; folders have none.
fn contents(folder: &Path) -> BTreeMap<String, Option<u64>> {
    let mut found = BTreeMap::new();
    for one in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = one.file_name().into_string().unwrap();
        if one.file_type().unwrap().is_dir() {
            found.extend(
                contents(&one.path()).into_iter().map(|(path, size)| (format!("{name}/{path}"), size)),
            );
            found.insert(name, None);
        } else {
            found.insert(name, Some(one.metadata().unwrap().len()));
        }
    }
    found
}

#[test]
fn a_format_makes_the_structure_of_vdbench() {
    let dir = tempfile::tempdir().unwrap();
    let (found, bytes) = format(dir.path(), NEW);
    // 3 folders with 3 each, and 4 files in each of the 9 of the last level.
    assert_eq!((found["0 Mkdir"], found["0 Create"], found["0 Open"], found["0 Close"]), (12, 36, 36, 36));
    let made = contents(dir.path());
    assert_eq!(made.len(), 12 + 36);
    assert!(made.contains_key("vdb.1_3.dir/vdb.2_1.dir/vdb_f0004.file"));
    let sizes: Vec<u64> = made.values().copied().flatten().collect();
    assert_eq!(sizes.iter().sum::<u64>(), bytes);
    // Java's Random(0).nextInt(100) begins 60, 48, 29, 47.
    let first = |number: u32| made[&format!("vdb.1_1.dir/vdb.2_1.dir/vdb_f{number:04}.file")];
    assert_eq!([1, 2, 3, 4].map(first), [10_000, 4096, 4096, 4096].map(Some));
    let blocks: u64 = sizes.iter().map(|size| size.div_ceil(4096)).sum();
    assert_eq!(found["0 Write"], blocks);
}

#[test]
fn a_format_removes_nothing_but_names_of_a_structure() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), NEW);
    let deep = dir.path().join("vdb.1_1.dir/vdb.2_1.dir");
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    fs::write(deep.join("mine.doc"), "mine").unwrap();
    fs::create_dir(dir.path().join("photos")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("vdb_f0001.file"), "far").unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("vdb.9_9.dir")).unwrap();
    let (found, _) = format(dir.path(), FormatSpec { delete: true, folders: false, files: false });
    assert_eq!((found["0 Delete"], found["0 Rmdir"]), (36, 10));
    let left = contents(dir.path());
    let names: Vec<&str> = left.keys().map(String::as_str).collect();
    let kept = ["notes.txt", "photos", "vdb.1_1.dir", "vdb.1_1.dir/vdb.2_1.dir"];
    assert!(kept.iter().all(|name| names.contains(name)), "{names:?}");
    assert_eq!(names.len(), kept.len() + 2, "{names:?}");
    assert_eq!(fs::read(deep.join("mine.doc")).unwrap(), b"mine");
    assert_eq!(fs::read(outside.path().join("vdb_f0001.file")).unwrap(), b"far");
}

#[test]
fn a_restart_makes_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), NEW);
    let whole = contents(dir.path());
    let file = |name: &str| dir.path().join("vdb.1_2.dir/vdb.2_2.dir").join(name);
    fs::remove_file(file("vdb_f0001.file")).unwrap();
    fs::OpenOptions::new().write(true).open(file("vdb_f0002.file")).unwrap().set_len(100).unwrap();
    let (found, _) = format(dir.path(), FormatSpec { delete: false, ..NEW });
    assert_eq!((found["0 Create"], found["0 Open"]), (1, 2));
    assert!(!found.contains_key("0 Mkdir") && !found.contains_key("0 Delete"));
    assert_eq!(contents(dir.path()), whole);
}

#[test]
fn each_file_is_read_once_and_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes) = format(dir.path(), NEW);
    let read = FileWorkSpec { select: FileSelect::Once, ..work(FileOp::Read, 4) };
    let (found, read_bytes, _) = counts(run_spec(dir.path(), vec![read]));
    assert_eq!((found["0 Open"], found["0 Close"], read_bytes), (36, 36, bytes));
}

#[test]
fn files_are_created_and_deleted_until_none_is_left_to_do() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), FormatSpec { files: false, ..NEW });
    let (found, _, _) = counts(run_spec(dir.path(), vec![work(FileOp::Create, 2)]));
    assert_eq!((found["0 Create"], found["0 Open"], found["0 Close"]), (36, 36, 36));
    assert_eq!(contents(dir.path()).values().flatten().count(), 36);
    let (found, _, _) = counts(run_spec(dir.path(), vec![work(FileOp::Delete, 3)]));
    assert_eq!(found, BTreeMap::from([("0 Delete".to_owned(), 36)]));
    let (found, _, _) = counts(run_spec(dir.path(), vec![work(FileOp::Rmdir, 2)]));
    assert_eq!(found, BTreeMap::from([("0 Rmdir".to_owned(), 12)]));
    let (found, _, _) = counts(run_spec(dir.path(), vec![work(FileOp::Mkdir, 2)]));
    assert_eq!(found, BTreeMap::from([("0 Mkdir".to_owned(), 12)]));
    assert_eq!(contents(dir.path()).len(), 12);
}

#[test]
fn reads_and_writes_of_a_file_have_the_percentage() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), NEW);
    let mixed = FileWorkSpec { read_percent: Some(70.0), random_io: true, ..work(FileOp::Read, 2) };
    let spec = FilesRunSpec { elapsed_s: Some(0.5), ..run_spec(dir.path(), vec![mixed]) };
    let (found, _, _) = counts(spec);
    let (reads, writes) = (found["0 Read"] as f64, found["0 Write"] as f64);
    assert!((reads / (reads + writes) - 0.7).abs() < 0.05, "{found:?}");
    assert_eq!(found["0 Open"], found["0 Close"]);
}

#[test]
fn a_rate_and_shares_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path(), NEW);
    let share = |operation, percent| FileWorkSpec {
        share_percent: percent,
        select: FileSelect::Random,
        ..work(operation, 2)
    };
    let rate = FileRateSpec { per_s: 1000.0, process: ArrivalProcess::Deterministic };
    let works = vec![share(FileOp::Getattr, 75.0), share(FileOp::Access, 25.0)];
    let spec = FilesRunSpec { elapsed_s: Some(1.0), rate: Some(rate), ..run_spec(dir.path(), works) };
    let (found, _, _) = counts(spec);
    assert!((700..=755).contains(&found["0 Getattr"]), "{found:?}");
    assert!((230..=255).contains(&found["1 Access"]), "{found:?}");
}

#[test]
fn a_subset_has_the_size_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = FilesRunSpec {
        format: Some(NEW),
        elapsed_s: None,
        ..run_spec(dir.path(), vec![work(FileOp::Write, 2)])
    };
    spec.structures[0].total_bytes = Some(100_000);
    let (_, bytes, _) = counts(spec.clone());
    assert!((100_000..110_000).contains(&bytes), "{bytes}");
    spec.structures[0].total_bytes = Some(10_000_000);
    let error = FilesRun::start(spec, &WrittenFiles::default()).unwrap_err().to_string();
    assert!(error.contains("totalsize"), "{error}");
}

#[test]
fn a_missing_anchor_is_the_users_to_make() {
    let dir = tempfile::tempdir().unwrap();
    let anchor = dir.path().join("none");
    let spec = run_spec(&anchor, vec![work(FileOp::Read, 1)]);
    let error = FilesRun::start(spec, &WrittenFiles::default()).unwrap_err();
    assert!(error.to_string().contains("create_anchors=yes"), "{error}");
    assert!(!anchor.exists());
}
