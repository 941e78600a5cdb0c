//! Copies of files in another structure.

use super::{NEW, contents, counts_after, format, run_spec, structure, work};
use linerate_load::{
    RunError, RunOutcome,
    files::{FileOp, FileSelect, FileWorkSpec, FilesRun, FilesRunSpec, StructureSpec, WrittenFiles},
};
use std::{fs, os::unix::fs::FileExt, path::Path};

fn copying(source: &Path, target: &Path, operation: FileOp) -> FilesRunSpec {
    let copy = FileWorkSpec { target: Some(1), ..work(operation, 3) };
    let mut spec = run_spec(source, vec![copy]);
    spec.structures.push(StructureSpec { name: "fsd2".into(), ..structure(target) });
    spec
}

/// Paths and contents of all files.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let names = contents(dir).into_iter().filter(|(_, size)| size.is_some());
    names.map(|(name, _)| (name.clone(), fs::read(dir.join(name)).unwrap())).collect()
}

#[test]
fn each_file_is_copied_once_under_its_name_block_by_block() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, bytes) = format(source.path(), NEW);
    let before = files(source.path());
    let (found, moved, summary) =
        counts_after(copying(source.path(), target.path(), FileOp::Copy), &WrittenFiles::default());
    assert!(matches!(summary.outcome, RunOutcome::Completed));
    let blocks: u64 = before.iter().map(|(_, data)| data.len().div_ceil(4096) as u64).sum();
    assert_eq!((found["0 Copy"], found["0 Create"], found["0 Open"], found["0 Close"]), (36, 36, 72, 72));
    assert_eq!((found["0 Read"], found["0 Write"], moved), (blocks, blocks, 2 * bytes));
    assert!(!found.contains_key("0 Delete"));
    assert_eq!(files(source.path()), before);
    assert_eq!(files(target.path()), before);
    // Reads are of the source, and writes of the target.
    let rows = summary.total.rows.iter().filter(|row| row.bytes > 0);
    let mut volumes: Vec<u32> = rows.map(|row| row.volume).collect();
    volumes.sort_unstable();
    assert_eq!(volumes, [0, 1]);
}

#[test]
fn a_file_of_the_target_is_deleted_before_it_is_written_again() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    format(source.path(), NEW);
    let name = "vdb.1_1.dir/vdb.2_1.dir/vdb_f0001.file";
    fs::create_dir_all(target.path().join(name).parent().unwrap()).unwrap();
    fs::write(target.path().join(name), vec![7; 50_000]).unwrap();
    let (found, ..) =
        counts_after(copying(source.path(), target.path(), FileOp::Copy), &WrittenFiles::default());
    assert_eq!((found["0 Copy"], found["0 Delete"]), (36, 1));
    assert_eq!(files(target.path()), files(source.path()));
}

#[test]
fn a_move_leaves_nothing_behind() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    format(source.path(), NEW);
    let before = files(source.path());
    let (found, ..) =
        counts_after(copying(source.path(), target.path(), FileOp::Move), &WrittenFiles::default());
    assert_eq!((found["0 Move"], found["0 Delete"], found["0 Open"]), (36, 36, 72));
    assert!(files(source.path()).is_empty());
    assert_eq!(files(target.path()), before);
}

#[test]
fn copies_are_checked_as_files_of_their_structure() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let written = WrittenFiles::default();
    let checked =
        |spec: FilesRunSpec| counts_after(FilesRunSpec { verify_unit_bytes: Some(512), ..spec }, &written);
    let making = FilesRunSpec { format: Some(NEW), ..run_spec(source.path(), vec![work(FileOp::Write, 2)]) };
    checked(making);
    let (found, _, summary) = checked(copying(source.path(), target.path(), FileOp::Copy));
    assert!(matches!(summary.outcome, RunOutcome::Completed), "{:?}", summary.outcome);
    assert_eq!(found["0 Copy"], 36);
    let reading = || {
        let read = FileWorkSpec { select: FileSelect::Once, ..work(FileOp::Read, 2) };
        checked(run_spec(target.path(), vec![read])).2.outcome
    };
    assert!(matches!(reading(), RunOutcome::Completed));
    let path = target.path().join("vdb.1_3.dir/vdb.2_2.dir/vdb_f0002.file");
    fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&[0; 3], 700).unwrap();
    let RunOutcome::Failed(RunError::Miscompare { message, .. }) = reading() else {
        panic!("the damage was not found");
    };
    assert!(message.contains(path.to_str().unwrap()) && message.contains("offset 512"), "{message}");
}

#[test]
fn a_target_has_the_files_of_the_source_and_is_another() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut spec = copying(source.path(), target.path(), FileOp::Copy);
    spec.structures[1].files = 5;
    let refused = |spec| FilesRun::start(spec, &WrittenFiles::default()).unwrap_err().to_string();
    assert!(refused(spec).contains("the same files"));
    assert!(refused(copying(source.path(), source.path(), FileOp::Copy)).contains("another structure"));
}
