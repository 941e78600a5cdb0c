//! Initiators of other projects: libiscsi's tools and qemu-img. Skipped, with a message, if they are not installed.

use crate::support::{IQN, array, array_of};
use std::process::{Command, Output};

/// Prints why a test does not run. If `LINERATE_CI` is set every peer must be installed, and a skip is a failure.
fn skip(reason: &str) {
    assert!(std::env::var_os("LINERATE_CI").is_none(), "{reason}, but LINERATE_CI is set");
    eprintln!("skipped: {reason}");
}

/// Runs a program; `None` if it is not installed.
fn run(program: &str, args: &[&str]) -> Option<Output> {
    match Command::new(program).args(args).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skip(&format!("{program} is not installed"));
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

#[test]
fn iscsi_ls_finds_the_target_and_its_unit() {
    let array = array("");
    let portal = array.portals()[0];
    let Some(output) = run("iscsi-ls", &["-s", &format!("iscsi://{portal}")]) else { return };
    let said = text(&output);
    assert!(said.contains(IQN) && said.contains(&format!("{portal},1")), "{said}");
    assert!(said.contains("Lun:0") && said.contains("DIRECT_ACCESS"), "{said}");
}

#[test]
fn iscsi_inq_reads_who_we_are() {
    let array = array("");
    let url = format!("iscsi://{}/{IQN}/0", array.portals()[0]);
    let Some(output) = run("iscsi-inq", &[&url]) else { return };
    assert!(output.status.success() && text(&output).contains("Vendor:LINERATE"), "{}", text(&output));
    let Some(output) = run("iscsi-inq", &["-e", "1", "-c", "128", &url]) else { return };
    assert!(text(&output).contains("v0"), "the serial number: {}", text(&output));
}

#[test]
fn chap_lets_in_who_knows_the_secret() {
    let chap = r#"{"name": "iqn.2026-11.lab.linerate:chap", "volumes": [{"lun": 0, "name": "c", "size_bytes": 1048576}],
        "chap": {"user": "alice", "secret": "correct-horse-battery"}}"#;
    let json = format!(r#"{{"portals": ["127.0.0.1:0"], "targets": [{chap}]}}"#);
    let array = linerate_iscsi_target::Array::start(serde_json::from_str(&json).unwrap()).unwrap();
    let place = format!("{}/iqn.2026-11.lab.linerate:chap/0", array.portals()[0]);
    let Some(good) = run("iscsi-inq", &[&format!("iscsi://alice%correct-horse-battery@{place}")]) else {
        return;
    };
    assert!(good.status.success(), "{}", text(&good));
    for wrong in ["alice%wrong-horse-battery@", "alice2%correct-horse-battery@", ""] {
        let output = run("iscsi-inq", &[&format!("iscsi://{wrong}{place}")]).unwrap();
        assert!(!output.status.success(), "{wrong}: {}", text(&output));
    }
    crate::support::wait_for(&array, "three failures are counted", |stats| stats.logins_failed == 3);
}

#[test]
fn qemu_img_copies_in_and_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let original: Vec<u8> =
        (0..crate::support::SIZE_BYTES).map(|at| (at / 4096 * 31 + at % 251) as u8).collect();
    std::fs::write(path("in.raw"), &original).unwrap();
    let file = format!(r#""kind": "file", "path": "{}""#, path("volume"));
    for (driver, volume) in [("epoll", r#""kind": "memory""#), ("io_uring", &file)] {
        let Ok(_) = linerate_io::open_driver(driver.parse().unwrap()) else {
            eprintln!("skipped: no {driver} here");
            continue;
        };
        let array = array_of(volume, &format!(r#""driver": "{driver}","#));
        let url = format!("iscsi://{}/{IQN}/0", array.portals()[0]);
        let convert = ["convert", "-n", "-f", "raw", "-O", "raw"];
        let Some(output) = run("qemu-img", &[&convert[..], &[&path("in.raw"), &url]].concat()) else {
            return;
        };
        if text(&output).contains("Unknown protocol") {
            return skip("qemu-img has no iSCSI driver here");
        }
        assert!(output.status.success(), "{}", text(&output));
        let output = run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &path("in.raw"), &url]).unwrap();
        assert!(text(&output).contains("identical"), "{}", text(&output));
    }
    if std::fs::exists(path("volume")).unwrap() {
        assert!(std::fs::read(path("volume")).unwrap() == original, "the file holds what was acknowledged");
    }
}
