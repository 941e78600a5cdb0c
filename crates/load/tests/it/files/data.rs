//! What blocks of files contain: data that are checked, and data that compress or repeat.

use super::{NEW, counts_after, run_spec, work};
use linerate_load::{
    RunError, RunOutcome, Summary,
    files::{FileOp, FileSelect, FileWorkSpec, FilesRunSpec, WrittenFiles},
    spec::DedupSpec,
};
use std::{
    collections::{BTreeMap, HashSet},
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

const FIRST: &str = "vdb.1_1.dir/vdb.2_1.dir/vdb_f0001.file";
const OTHER: &str = "vdb.1_2.dir/vdb.2_3.dir/vdb_f0004.file";

/// A structure that was made and filled by one run, and is used by others.
struct Made {
    dir: tempfile::TempDir,
    written: WrittenFiles,
    unit: Option<u32>,
}

impl Made {
    fn new(unit: Option<u32>) -> Self {
        let made = Self { dir: tempfile::tempdir().unwrap(), written: WrittenFiles::default(), unit };
        let (_, _, summary) = made.run(FilesRunSpec {
            format: Some(NEW),
            elapsed_s: None,
            ..made.spec(work(FileOp::Write, 3))
        });
        assert!(matches!(summary.outcome, RunOutcome::Completed), "{:?}", summary.outcome);
        made
    }

    fn spec(&self, work: FileWorkSpec) -> FilesRunSpec {
        FilesRunSpec { verify_unit_bytes: self.unit, ..run_spec(self.dir.path(), vec![work]) }
    }

    fn run(&self, spec: FilesRunSpec) -> (BTreeMap<String, u64>, u64, Summary) {
        counts_after(spec, &self.written)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Changes bytes of a file behind the load's back.
    fn damage(&self, name: &str, offset: u64, bytes: &[u8]) {
        let file = fs::OpenOptions::new().write(true).open(self.path(name)).unwrap();
        file.write_all_at(bytes, offset).unwrap();
    }

    fn read_all(&self) -> (BTreeMap<String, u64>, u64, Summary) {
        self.run(self.spec(reading()))
    }

    /// Reads all files. Returns what was wrong.
    fn wrong(&self) -> String {
        let (_, _, summary) = self.read_all();
        let RunOutcome::Failed(error @ RunError::Miscompare { .. }) = summary.outcome else {
            return format!("{:?}", summary.outcome);
        };
        error.to_string()
    }
}

fn reading() -> FileWorkSpec {
    FileWorkSpec { select: FileSelect::Once, ..work(FileOp::Read, 4) }
}

#[test]
fn what_was_written_is_right_and_checks_change_no_count() {
    let plain = Made::new(None).read_all();
    for unit in [512, 4096] {
        let made = Made::new(Some(unit));
        let (found, bytes, summary) = made.read_all();
        assert!(matches!(summary.outcome, RunOutcome::Completed), "{:?}", summary.outcome);
        assert_eq!((&found, bytes), (&plain.0, plain.1));
    }
}

#[test]
fn a_byte_that_changed_after_the_format_ends_the_run() {
    let made = Made::new(Some(512));
    let path = made.path(FIRST);
    let mut byte = [0];
    fs::File::open(&path).unwrap().read_exact_at(&mut byte, 5000).unwrap();
    made.damage(FIRST, 5000, &[!byte[0]]);
    let wrong = made.wrong();
    // Byte 5000 is byte 392 of the block at 4608.
    let told = format!("{}: block at offset 4608: expected generation 1", path.display());
    assert!(wrong.starts_with("volume fsd1: wrong data: ") && wrong.contains(&told), "{wrong}");
    let bytes = format!("first difference at byte 392: expected {:02x}", byte[0]);
    assert!(wrong.contains(&bytes) && wrong.contains(&format!("got {:02x}", !byte[0])), "{wrong}");
    // The same byte does not matter to a run that checks nothing.
    let spec = FilesRunSpec { verify_unit_bytes: None, ..made.spec(reading()) };
    assert!(matches!(made.run(spec).2.outcome, RunOutcome::Completed));
}

#[test]
fn every_kind_of_damage_is_named() {
    let after = |damage: &dyn Fn(&Made)| {
        let made = Made::new(Some(4096));
        damage(&made);
        made.wrong()
    };
    let zeros = after(&|made| made.damage(FIRST, 4096, &[0; 4096]));
    assert!(zeros.contains("offset 4096") && zeros.contains("all zeros"), "{zeros}");
    let moved = after(&|made| {
        let other = fs::read(made.path(OTHER)).unwrap();
        made.damage(FIRST, 0, &other[..4096]);
    });
    assert!(moved.contains("a block of another file") && moved.contains(OTHER), "{moved}");
    let shifted = after(&|made| {
        let own = fs::read(made.path(FIRST)).unwrap();
        made.damage(FIRST, 0, &own[4096..8192]);
    });
    assert!(shifted.contains("belongs at offset 4096"), "{shifted}");
    // The file has 10,000 bytes: its last block is short.
    let tail = after(&|made| made.damage(FIRST, 9_999, &[7]));
    assert!(tail.contains("offset 8192") && tail.contains("at byte 1807"), "{tail}");
}

#[test]
fn an_old_generation_is_a_lost_write() {
    let made = Made::new(Some(4096));
    let old = fs::read(made.path(FIRST)).unwrap();
    let writing = FileWorkSpec { select: FileSelect::Once, ..work(FileOp::Write, 2) };
    let (found, _, _) = made.run(made.spec(writing));
    assert!(found["0 Write"] > 0);
    assert_eq!(made.wrong(), "Completed");
    made.damage(FIRST, 0, &old[..4096]);
    let wrong = made.wrong();
    assert!(wrong.contains("expected generation 2, found: generation 1"), "{wrong}");
}

#[test]
fn a_file_that_became_shorter_is_named_before_the_run() {
    let made = Made::new(Some(4096));
    let file = fs::OpenOptions::new().write(true).open(made.path(FIRST)).unwrap();
    file.set_len(4096).unwrap();
    let error = linerate_load::files::FilesRun::start(made.spec(reading()), &made.written);
    let told = error.unwrap_err().to_string();
    assert!(told.contains(&format!("{FIRST}: 10000 bytes were written, and it has 4096")), "{told}");
}

#[test]
fn what_no_run_wrote_is_not_judged() {
    let made = Made::new(Some(4096));
    made.damage(FIRST, 0, &[7; 100]);
    let another = Made { dir: made.dir, written: WrittenFiles::default(), unit: Some(4096) };
    assert_eq!(another.wrong(), "Completed");
}

#[test]
fn random_writes_are_checked_and_so_are_files_that_were_made_again() {
    let made = Made::new(Some(512));
    let mixed = FileWorkSpec {
        read_percent: Some(50.0),
        random_io: true,
        sizes: vec![(512, 50.0), (4096, 50.0)],
        ..work(FileOp::Read, 3)
    };
    let spec = FilesRunSpec { elapsed_s: Some(0.5), ..made.spec(mixed) };
    let (found, _, summary) = made.run(spec);
    assert!(matches!(summary.outcome, RunOutcome::Completed), "{:?}", summary.outcome);
    assert!(found["0 Read"] > 50 && found["0 Write"] > 50, "{found:?}");
    assert_eq!(made.wrong(), "Completed");
    made.run(made.spec(work(FileOp::Delete, 2)));
    let writing = FileWorkSpec { select: FileSelect::Once, ..work(FileOp::Write, 2) };
    let (found, _, _) = made.run(made.spec(writing));
    assert_eq!(found["0 Create"], 36);
    assert_eq!(made.wrong(), "Completed");
    made.damage(FIRST, 600, &[1; 8]);
    assert!(made.wrong().contains("block at offset 512"));
}

/// All files of a structure, in units.
fn units(dir: &Path, unit: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for one in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if one.file_type().unwrap().is_dir() {
                folders.push(one.path());
            } else {
                found.extend(fs::read(one.path()).unwrap().chunks(unit).map(<[u8]>::to_vec));
            }
        }
    }
    found
}

/// Formats 36 files of 1 MiB.
fn formatted(change: impl FnOnce(&mut FilesRunSpec)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = FileWorkSpec { sizes: vec![(64 << 10, 100.0)], ..work(FileOp::Write, 2) };
    let mut spec = FilesRunSpec { format: Some(NEW), elapsed_s: None, ..run_spec(dir.path(), vec![write]) };
    spec.structures[0].sizes = vec![(1 << 20, 100.0)];
    change(&mut spec);
    counts_after(spec, &WrittenFiles::default());
    dir
}

#[test]
fn files_compress_as_asked() {
    for (ratio, least, most) in [(None, 0, 200), (Some(4.0), 3072, 3200)] {
        let dir = formatted(|spec| spec.compression_ratio = ratio);
        for page in units(dir.path(), 4096) {
            let zeros = page.iter().map(|byte| usize::from(*byte == 0)).sum::<usize>();
            assert!((least..=most).contains(&zeros), "{zeros} zeros of 4096 for {ratio:?}");
        }
    }
}

#[test]
fn a_structure_has_as_many_different_units_as_its_ratio_says() {
    let dedup = DedupSpec { ratio: 2.0, unit_bytes: 4096, sets_percent: 5.0, sets: None };
    let dir = formatted(|spec| spec.dedup = Some(dedup));
    let all = units(dir.path(), 4096);
    let different = all.iter().collect::<HashSet<_>>().len();
    assert_eq!(all.len(), 36 * 256);
    let ratio = all.len() as f64 / different as f64;
    assert!((ratio / 2.0 - 1.0).abs() < 0.03, "{ratio}");
    let plain = units(formatted(|_| ()).path(), 4096);
    assert_eq!(plain.iter().collect::<HashSet<_>>().len(), plain.len());
}
