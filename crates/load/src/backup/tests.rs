use super::{BackupIo, BackupLoad, BackupOp, BackupSpec, CLUSTER_BYTES};
use std::collections::BTreeMap;

const GIB: u64 = 1 << 30;

fn load(change: impl FnOnce(&mut BackupSpec)) -> BackupLoad {
    let mut spec = BackupSpec::new(8 * GIB, 7);
    change(&mut spec);
    BackupLoad::new(spec).unwrap()
}

fn bytes_of(ios: &[BackupIo], op: BackupOp) -> u64 {
    ios.iter().filter(|io| io.op == op).map(|io| u64::from(io.bytes)).sum()
}

/// The backup that wrote each cluster last.
fn written(into: &mut BTreeMap<u64, u32>, ios: &[BackupIo]) {
    for io in ios.iter().filter(|io| io.op == BackupOp::WriteData) {
        let first = io.offset / CLUSTER_BYTES;
        (first..first + u64::from(io.bytes) / CLUSTER_BYTES).for_each(|cluster| {
            into.insert(cluster, io.backup);
        });
    }
}

#[test]
fn a_new_fixed_image_is_zeros_from_end_to_end() {
    let ios: Vec<_> = load(|spec| spec.image_bytes = 64 * GIB + CLUSTER_BYTES).create().collect();
    let mut at = 0;
    for io in ios.iter().filter(|io| io.op == BackupOp::WriteZeros) {
        assert_eq!(io.offset, at);
        at += u64::from(io.bytes);
    }
    assert_eq!(at, 64 * GIB + CLUSTER_BYTES);
    assert_eq!(ios.last().unwrap().op, BackupOp::FlushImage);
    // One flush per 2 TiB, one at the end.
    let flushes = load(|spec| (spec.image_bytes, spec.transfer_bytes) = (5 << 40, 16 << 20));
    assert_eq!(flushes.create().filter(|io| io.op == BackupOp::FlushImage).count(), 3);
}

#[test]
fn a_full_backup_copies_the_used_share_in_ascending_order() {
    for used_percent in [10.0, 50.0, 90.0] {
        let ios: Vec<_> = load(|spec| spec.used_percent = used_percent).full().collect();
        let share = bytes_of(&ios, BackupOp::WriteData) as f64 / (8 * GIB) as f64 * 100.0;
        assert!((share - used_percent).abs() < 4.0, "{share} % of {used_percent} %");
        let data: Vec<_> = ios.iter().filter(|io| io.op == BackupOp::WriteData).collect();
        assert!(data.windows(2).all(|pair| pair[0].offset + u64::from(pair[0].bytes) <= pair[1].offset));
        assert!(data.iter().all(|io| (1 << 16..=1 << 20).contains(&io.bytes) && io.backup == 1));
    }
}

#[test]
fn a_volume_that_is_full_is_copied_whole() {
    let ios: Vec<_> = load(|spec| spec.used_percent = 100.0).full().collect();
    // One cluster of a thousand holds file system structures.
    assert_eq!(bytes_of(&ios, BackupOp::WriteData), (131_072 - 131) * CLUSTER_BYTES);
}

#[test]
fn every_write_of_data_follows_the_read_of_its_source() {
    for ios in [load(|_| ()).full().collect::<Vec<_>>(), load(|_| ()).incremental(0).collect()] {
        for pair in ios.windows(2).filter(|pair| pair[1].op == BackupOp::WriteData) {
            let read = BackupIo { op: BackupOp::ReadSource, ..pair[1] };
            assert_eq!(pair[0], read);
        }
    }
}

#[test]
fn metadata_is_written_a_hundredth_as_often_and_apart_from_data() {
    let ios: Vec<_> = load(|_| ()).full().collect();
    let count = |op| ios.iter().filter(|io| io.op == op).count();
    assert_eq!(count(BackupOp::WriteMetadata), count(BackupOp::WriteData) / 100);
    let first_data = ios.iter().find(|io| io.op == BackupOp::WriteData).unwrap().offset;
    assert!(
        ios.iter().filter(|io| io.op == BackupOp::WriteMetadata).all(|io| io.offset + 4096 <= first_data)
    );
}

#[test]
fn the_image_is_flushed_after_so_many_bytes_and_at_the_end() {
    let ios: Vec<_> = load(|spec| spec.flush_bytes = 100 << 20).full().collect();
    let mut since = 0;
    for io in &ios {
        match io.op {
            BackupOp::WriteData => since += u64::from(io.bytes),
            BackupOp::FlushImage => since = 0,
            _ => {}
        }
        assert!(since < 101 << 20);
    }
    assert_eq!(since, 0);
}

#[test]
fn an_incremental_backup_reads_the_map_and_copies_changed_used_clusters() {
    let load = load(|spec| spec.changed_percent = 20.0);
    let (full, changed): (Vec<_>, Vec<_>) = (load.full().collect(), load.incremental(0).collect());
    // 131072 bits.
    assert_eq!(changed[0], BackupIo { op: BackupOp::ReadMap, offset: 0, bytes: 65_536, backup: 2 });
    let share = bytes_of(&changed, BackupOp::WriteData) as f64 / bytes_of(&full, BackupOp::WriteData) as f64;
    assert!((share - 0.2).abs() < 0.02, "{share}");
    let (mut used, mut clusters) = (BTreeMap::new(), BTreeMap::new());
    written(&mut used, &full);
    written(&mut clusters, &changed);
    assert!(clusters.keys().all(|cluster| used.contains_key(cluster)), "an unused cluster has changed");
    let next: Vec<_> = load.incremental(1).collect();
    assert_ne!(changed.len(), next.len(), "another backup has another map");
}

#[test]
fn changes_come_in_runs_of_the_mean_length() {
    let load = load(|spec| (spec.used_percent, spec.changed_run_clusters) = (100.0, 8));
    let runs: Vec<_> = load.changed(2).collect();
    let mean = runs.iter().map(|run| run.end - run.start).sum::<u64>() as f64 / runs.len() as f64;
    assert!((mean - 8.0).abs() < 0.8, "{mean}");
}

#[test]
fn without_changes_an_incremental_backup_copies_nothing() {
    let ios: Vec<_> = load(|spec| spec.changed_percent = 0.0).incremental(3).collect();
    let ops: Vec<_> = ios.iter().map(|io| io.op).collect();
    assert_eq!(ops, [BackupOp::ReadMap, BackupOp::FlushImage]);
}

#[test]
fn a_restore_names_the_backup_that_wrote_each_cluster_last() {
    let load = load(|spec| spec.changed_percent = 30.0);
    let mut expected = BTreeMap::new();
    written(&mut expected, &load.full().collect::<Vec<_>>());
    for earlier in 0..3 {
        written(&mut expected, &load.incremental(earlier).collect::<Vec<_>>());
    }
    let mut found = BTreeMap::new();
    let ios: Vec<_> = load.restore(3).collect();
    for pair in ios[..ios.len() - 1].chunks(2) {
        let io = pair[0];
        assert_eq!((io.op, pair[1]), (BackupOp::ReadImage, BackupIo { op: BackupOp::WriteTarget, ..io }));
        let first = io.offset / CLUSTER_BYTES;
        for cluster in first..first + u64::from(io.bytes) / CLUSTER_BYTES {
            assert_eq!(found.insert(cluster, io.backup), None, "cluster {cluster} is read twice");
        }
    }
    assert_eq!(found, expected);
    assert_eq!((1..=4).map(|backup| found.values().any(|one| *one == backup)).collect::<Vec<_>>(), [true; 4]);
    assert_eq!(ios.last().unwrap().op, BackupOp::FlushTarget);
}

#[test]
fn the_seed_decides_the_sequence() {
    let of = |seed| load(|spec| spec.seed = seed).full().take(1000).collect::<Vec<_>>();
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn what_does_not_fit_together_is_named() {
    for (change, named) in [
        (
            (|spec| spec.image_bytes = 100) as fn(&mut BackupSpec),
            "backup.image_bytes: must be whole clusters",
        ),
        (|spec| spec.image_bytes = CLUSTER_BYTES, "backup.image_bytes: must be more than one"),
        (|spec| spec.used_percent = 0.0, "backup.used_percent"),
        (|spec| spec.used_percent = f64::NAN, "backup.used_percent"),
        (|spec| spec.changed_percent = 101.0, "backup.changed_percent"),
        (|spec| spec.transfer_bytes = 4096, "backup.transfer_bytes"),
        (|spec| spec.transfer_bytes = 32 << 20, "up to 16 MiB"),
        (|spec| spec.flush_bytes = 0, "backup.flush_bytes"),
    ] {
        let mut spec = BackupSpec::new(GIB, 1);
        change(&mut spec);
        let error = BackupLoad::new(spec).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}
