//! A structure that several hosts share: every file belongs to one of them, and nothing is made or counted twice.

use super::{
    FileOp, FileSelect, FileWorkSpec, FilesRun, FilesRunSpec, FormatSpec, HostPart, NEW, PreparedFilesRun,
    WrittenFiles, contents, counts, run_spec, work,
};
use linerate_io::system::now_ns;
use std::{collections::BTreeMap, path::Path, thread, time::Duration};

const HOSTS: u32 = 3;
const CLEAN: FormatSpec = FormatSpec { delete: true, folders: false, files: false };
const RESTART: FormatSpec = FormatSpec { delete: false, ..NEW };

fn part(spec: &FilesRunSpec, number: u32) -> FilesRunSpec {
    let mut spec = spec.clone();
    spec.structures[0].host_part = Some(HostPart { number, of: HOSTS });
    spec
}

/// Runs on all hosts at the same time. Returns the counts of each by stream name, and the bytes of all.
fn on_hosts(spec: &FilesRunSpec) -> (Vec<BTreeMap<String, u64>>, u64) {
    let runs = (0..HOSTS).map(|number| {
        let spec = part(spec, number);
        thread::spawn(move || counts(spec))
    });
    let ended: Vec<_> = runs.collect::<Vec<_>>().into_iter().map(|run| run.join().unwrap()).collect();
    let bytes = ended.iter().map(|(_, bytes, _)| bytes).sum();
    (ended.into_iter().map(|(found, ..)| found).collect(), bytes)
}

fn format_on_hosts(anchor: &Path, format: FormatSpec) -> (Vec<BTreeMap<String, u64>>, u64) {
    on_hosts(&FilesRunSpec {
        format: Some(format),
        elapsed_s: None,
        ..run_spec(anchor, vec![work(FileOp::Write, 2)])
    })
}

fn sum(found: &[BTreeMap<String, u64>], stream: &str) -> u64 {
    found.iter().filter_map(|one| one.get(stream)).sum()
}

fn each(found: &[BTreeMap<String, u64>], stream: &str) -> Vec<u64> {
    found.iter().map(|one| one.get(stream).copied().unwrap_or(0)).collect()
}

#[test]
fn hosts_make_a_structure_as_one_host_does() {
    let (alone, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, bytes) = super::format(alone.path(), NEW);
    let (found, bytes_of_hosts) = format_on_hosts(shared.path(), RESTART);
    assert_eq!((contents(shared.path()), bytes_of_hosts), (contents(alone.path()), bytes));
    assert_eq!((sum(&found, "0 Mkdir"), each(&found, "0 Create")), (12, vec![12, 12, 12]));
    let (found, _) = format_on_hosts(shared.path(), CLEAN);
    // One of the folders of the first level each, with 3 folders and 12 files.
    assert_eq!((each(&found, "0 Delete"), each(&found, "0 Rmdir")), (vec![12; 3], vec![4; 3]));
    assert!(contents(shared.path()).is_empty());
}

#[test]
fn each_host_has_every_third_file() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes) = super::format(dir.path(), NEW);
    let read = FileWorkSpec { select: FileSelect::Once, ..work(FileOp::Read, 2) };
    let (found, read_bytes) = on_hosts(&run_spec(dir.path(), vec![read]));
    assert_eq!((each(&found, "0 Open"), read_bytes), (vec![12; 3], bytes));
    let delete = part(&run_spec(dir.path(), vec![work(FileOp::Delete, 1)]), 1);
    assert_eq!(counts(delete).0["0 Delete"], 12);
    let left = contents(dir.path());
    let first = |number: u32| left.contains_key(&format!("vdb.1_1.dir/vdb.2_1.dir/vdb_f{number:04}.file"));
    assert_eq!([1, 2, 3, 4].map(first), [true, false, true, true]);
}

#[test]
fn files_and_folders_are_made_and_removed_once() {
    let dir = tempfile::tempdir().unwrap();
    let run = |operation| on_hosts(&run_spec(dir.path(), vec![work(operation, 2)])).0;
    assert_eq!(sum(&run(FileOp::Mkdir), "0 Mkdir"), 12);
    assert_eq!(each(&run(FileOp::Create), "0 Create"), [12; 3]);
    assert_eq!(each(&run(FileOp::Delete), "0 Delete"), [12; 3]);
    assert_eq!(each(&run(FileOp::Rmdir), "0 Rmdir"), [4; 3]);
    assert!(contents(dir.path()).is_empty());
}

#[test]
fn a_host_goes_on_while_files_of_its_own_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    super::format(dir.path(), NEW);
    let own = part(&run_spec(dir.path(), vec![work(FileOp::Delete, 1)]), 2);
    assert_eq!(counts(own).0["0 Delete"], 12);
    // 24 files of the others are there: more than the 12 that it has.
    let own = part(&run_spec(dir.path(), vec![work(FileOp::Create, 1)]), 2);
    assert_eq!(counts(own).0["0 Create"], 12);
}

#[test]
fn a_format_of_several_hosts_either_removes_or_makes() {
    let dir = tempfile::tempdir().unwrap();
    let spec = FilesRunSpec { format: Some(NEW), ..run_spec(dir.path(), vec![work(FileOp::Write, 1)]) };
    let error = FilesRun::start(part(&spec, 0), &WrittenFiles::default()).unwrap_err();
    assert!(error.to_string().contains("either removes or makes"), "{error}");
    let error = FilesRun::start(part(&spec, HOSTS), &WrittenFiles::default()).unwrap_err();
    assert!(error.to_string().contains("number of hosts"), "{error}");
}

#[test]
fn a_prepared_run_starts_at_its_instant() {
    let dir = tempfile::tempdir().unwrap();
    super::format(dir.path(), NEW);
    let spec =
        || FilesRunSpec { elapsed_s: Some(0.3), ..run_spec(dir.path(), vec![work(FileOp::Getattr, 2)]) };
    let prepared = PreparedFilesRun::new(spec(), &WrittenFiles::default()).unwrap();
    assert_eq!(prepared.facts().workers, 2);
    let start = now_ns() + 200_000_000;
    let run = prepared.start_at(start).unwrap();
    assert!(run.next_interval(Duration::from_secs(10)).unwrap().ios() > 0);
    assert!(now_ns() >= start + 100_000_000, "the first interval ended before its time");
    assert!(run.finish().total.ios() > 0);
    let late = PreparedFilesRun::new(spec(), &WrittenFiles::default()).unwrap().start_at(now_ns() - 1000);
    assert!(late.unwrap_err().to_string().contains("the start is over"));
}
