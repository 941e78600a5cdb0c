//! Runs on files: real I/O, direct and cached, on both drivers; verification; and every way in which opening fails.

use crate::common::{run, run_well, spec, stream};
use linerate_load::{Blame, Run, RunError, RunOutcome};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::FileExt, path::Path, time::Duration};

fn volume(path: &Path, rest: &Value) -> Value {
    let mut volume = json!({"name": "f", "url": format!("file:{}", path.display()), "outstanding": 8});
    for (key, value) in rest.as_object().into_iter().flatten() {
        volume[key] = value.clone();
    }
    json!([volume])
}

/// A directory on a file system with direct I/O.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn both_drivers_read_and_write_direct_and_cached() {
    let dir = directory();
    for driver in ["io_uring", "epoll"] {
        for direct in [true, false] {
            let path = dir.path().join(format!("{driver}-{direct}"));
            let file = volume(&path, &json!({"create": true, "size_bytes": 1 << 20, "direct": direct}));
            let streams = json!([stream("s", &["f"], &json!({"read_percent": 50}))]);
            let run =
                Run::start(spec(&file, &streams, &json!({"driver": driver, "elapsed_s": 0.2}))).unwrap();
            assert_eq!(run.facts().driver, driver);
            assert_eq!(
                (run.facts().volumes[0].size_bytes, run.facts().volumes[0].kind.as_str()),
                (1 << 20, "file")
            );
            let summary = run.finish();
            assert!(matches!(summary.outcome, RunOutcome::Completed), "{:?}", summary.total.events);
            assert!(summary.total.ios() > 20 && summary.total.errors() == 0);
            assert!(summary.total.outstanding_mean <= 8.5, "{}", summary.total.outstanding_mean);
        }
    }
}

#[test]
fn filling_writes_every_block_with_distinct_data() {
    let dir = directory();
    let path = dir.path().join("fill");
    let file = volume(&path, &json!({"create": true, "size_bytes": (1 << 20) + 512}));
    let sizes = json!({"kind": "mix", "parts": [[65536, 100]]});
    let fill = stream("fill", &["f"], &json!({"read_percent": 0, "stop_at_end": true, "sizes": sizes}));
    let (_, total) = run_well(spec(&file, &json!([fill]), &json!({"elapsed_s": 30})));
    assert_eq!(total.bytes(), (1 << 20) + 512);
    let bytes = fs::read(&path).unwrap();
    let mut pages: Vec<&[u8]> = bytes.chunks(4096).collect();
    assert!(pages.iter().all(|page| page.iter().any(|byte| *byte != 0)));
    pages.sort_unstable();
    pages.dedup();
    assert_eq!(pages.len(), 257);
}

#[test]
fn only_the_chosen_part_is_written() {
    let dir = directory();
    let path = dir.path().join("part");
    fs::write(&path, vec![0; 1 << 20]).unwrap();
    let file = volume(&path, &json!({"first_byte": 65536, "size_bytes": 131_072}));
    run_well(spec(
        &file,
        &json!([stream("s", &["f"], &json!({"read_percent": 0}))]),
        &json!({"elapsed_s": 0.2}),
    ));
    let bytes = fs::read(&path).unwrap();
    assert!(bytes[..65536].iter().chain(&bytes[196_608..]).all(|byte| *byte == 0));
    assert!(bytes[65536..196_608].chunks(4096).all(|page| page.iter().any(|byte| *byte != 0)));
}

#[test]
fn a_size_that_is_no_number_of_blocks_is_rounded_down() {
    let dir = directory();
    let file = volume(&dir.path().join("odd"), &json!({"create": true, "size_bytes": 1_000_001}));
    let (_, total) = run_well(spec(&file, &json!([stream("s", &["f"], &json!({}))]), &json!({})));
    assert!(total.ios() > 0);
    assert_eq!(fs::metadata(dir.path().join("odd")).unwrap().len(), 1_000_001);
}

#[test]
fn verification_passes_on_an_honest_file() {
    let dir = directory();
    for driver in ["io_uring", "epoll"] {
        let path = dir.path().join(driver);
        let file = volume(&path, &json!({"create": true, "size_bytes": 1 << 18, "outstanding": 32}));
        let sizes = json!({"kind": "range", "min_bytes": 512, "max_bytes": 16384, "align_bytes": 512});
        let rest = json!({"read_percent": 50, "sizes": sizes, "align_bytes": 512});
        let order =
            spec(&file, &json!([stream("s", &["f"], &rest)]), &json!({"verify": "on", "driver": driver}));
        let (_, total) = run_well(order);
        assert!(total.ios() > 100);
    }
}

#[test]
fn verification_finds_a_planted_corruption() {
    let dir = directory();
    let path = dir.path().join("corrupt");
    let file = volume(&path, &json!({"create": true, "size_bytes": 1 << 17}));
    let streams = json!([stream("s", &["f"], &json!({"read_percent": 50}))]);
    let rest = json!({"verify": "on", "elapsed_s": 30, "interval_s": 1});
    let run = Run::start(spec(&file, &streams, &rest)).unwrap();
    assert!(run.next_interval(Duration::from_millis(200)).is_none());
    let vandal = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for round in 0..2000 {
        vandal.write_all_at(&[0xBD; 4], 4096 * (round % 32) + 100).unwrap();
        if run.finished() || run.next_interval(Duration::from_millis(1)).is_some() {
            break;
        }
    }
    let summary = run.finish();
    let RunOutcome::Failed(error @ RunError::Miscompare { .. }) = &summary.outcome else {
        panic!("{:?}", summary.outcome);
    };
    let text = error.to_string();
    assert!(text.contains("volume f: wrong data: block at offset") && text.contains("bd bd bd bd"), "{text}");
    assert_eq!(error.blame(), Blame::Peer);
    assert!(summary.total.events.iter().any(|event| event.kind == "miscompare" && event.volume == "f"));
}

#[test]
fn what_cannot_be_opened_is_explained() {
    let dir = directory();
    let small = dir.path().join("small");
    fs::write(&small, vec![0; 5000]).unwrap();
    let missing = dir.path().join("missing");
    let half = json!({"sizes": {"kind": "mix", "parts": [[1000, 100]]}});
    let (below, circle, socket) = (small.join("file"), dir.path().join("circle"), dir.path().join("socket"));
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let long = dir.path().join("x".repeat(300));
    for (file, streams, expected) in [
        (volume(&missing, &json!({})), json!({}), "check the path"),
        (
            volume(&missing.join("f"), &json!({"create": true, "size_bytes": 8192})),
            json!({}),
            "make it first",
        ),
        (volume(dir.path(), &json!({})), json!({}), "is a directory"),
        (volume(&below, &json!({})), json!({}), "a part of this path is a file"),
        (volume(&circle, &json!({})), json!({}), "correct the path"),
        (volume(&long, &json!({})), json!({}), "correct the path"),
        (volume(&socket, &json!({})), json!({}), "is neither a file nor a block device"),
        (volume(&small, &json!({"size_bytes": 8192})), json!({}), "too few"),
        (volume(&small, &json!({"first_byte": 8192})), json!({}), "too few"),
        (volume(&small, &json!({"first_byte": 100})), json!({}), "not a multiple of the block size"),
        (volume(&small, &json!({})), json!({"cursors": 2}), "too small"),
        (volume(&small, &json!({})), half, "blocks have 512 bytes"),
        (volume(&small, &json!({})), json!({"align_bytes": 100}), "align_bytes 100"),
    ] {
        let order = spec(&file, &json!([stream("s", &["f"], &streams)]), &json!({}));
        let error = Run::start(order).unwrap_err();
        assert!(error.to_string().contains(expected), "{error} does not say {expected}");
        assert_eq!(error.blame(), Blame::User, "{error}");
    }
}

#[test]
fn a_file_that_shrinks_ends_the_run_and_is_told() {
    let dir = directory();
    let path = dir.path().join("shrinks");
    fs::write(&path, vec![1; 1 << 20]).unwrap();
    let file = volume(&path, &json!({"direct": false}));
    let order = spec(&file, &json!([stream("s", &["f"], &json!({}))]), &json!({"elapsed_s": 30}));
    let started = Run::start(order).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    let summary = started.finish();
    let RunOutcome::Failed(error) = summary.outcome else { panic!("{:?}", summary.outcome) };
    assert!(error.to_string().contains("only 0 bytes moved"), "{error}");
    assert!(summary.total.errors() >= 50);
    let told = summary.total.events.iter().filter(|event| event.kind == "io_error").count();
    assert!((1..=10).contains(&told), "{told} of the errors were told one by one");
    let (_, other) = run(spec(
        &json!([crate::common::null_volume("f", 1)]),
        &json!([stream("s", &["f"], &json!({}))]),
        &json!({}),
    ));
    assert!(matches!(other.outcome, RunOutcome::Completed));
}

/// A missing device must not fill this host's memory with a file of its name, by any link to it.
#[test]
fn no_file_is_made_in_dev() {
    let dir = directory();
    let missing = std::path::Path::new("/dev/linerate-no-such-device");
    let (link, folder) = (dir.path().join("link"), dir.path().join("folder"));
    std::os::unix::fs::symlink(missing, &link).unwrap();
    std::os::unix::fs::symlink("/dev", &folder).unwrap();
    let second = dir.path().join("second");
    std::os::unix::fs::symlink("link", &second).unwrap();
    let below = std::path::PathBuf::from("/dev/shm/linerate-no-such-file");
    for path in [missing.to_owned(), link, folder.join("linerate-no-such-device"), second, below] {
        let file = volume(&path, &json!({"create": true, "size_bytes": 1 << 20}));
        let order = spec(&file, &json!([stream("s", &["f"], &json!({}))]), &json!({}));
        let error = Run::start(order).unwrap_err();
        let made = fs::remove_file(path.canonicalize().unwrap_or(missing.to_owned()));
        assert!(made.is_err(), "{} was made", path.display());
        assert!(error.to_string().contains("no file is made in /dev"), "{error}");
        assert_eq!(error.blame(), Blame::User, "{error}");
    }
}
