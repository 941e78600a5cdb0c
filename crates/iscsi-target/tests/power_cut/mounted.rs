//! ext4 on a logged disk, in a mount namespace of the test, so that nothing stays mounted however the test ends.

use crate::disk::{IMAGE, Log, LoggedDisk};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// ext4 with blocks of 4 KiB needs 4 MiB for its journal.
const DISK_BYTES: u64 = 12 << 20;
const INSIDE: &str = "LINERATE_TEST_POWER_CUT_INSIDE";

/// True: this process is in a mount namespace of its own, and the caller goes on. False: the test named `test` ran, in
/// another process that is in one, or cannot run here (the reason is printed).
pub(crate) fn enter(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    for (path, why) in [("/dev/fuse", "FUSE"), ("/dev/loop-control", "loop devices")] {
        if let Err(error) = File::open(path) {
            eprintln!("skipped: {path} cannot be opened ({error}); the test needs {why} and root");
            return false;
        }
    }
    for (program, package) in
        [("unshare", "util-linux"), ("mount", "mount"), ("mkfs.ext4", "e2fsprogs"), ("debugfs", "e2fsprogs")]
    {
        if tool(program).arg("-V").output().is_err() {
            eprintln!("skipped: {program} is not installed (Debian: {package})");
            return false;
        }
    }
    let may_mount = tool("unshare").args(["--mount", "true"]).output().unwrap();
    if !may_mount.status.success() {
        eprintln!("skipped: a mount namespace with loop devices needs root");
        return false;
    }
    let inside = tool("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(inside.success(), "{test} failed; its messages are above");
    false
}

/// A program of the system, which may be in a folder for administrators.
pub(crate) fn tool(name: &str) -> Command {
    let mut command = Command::new(name);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

/// Runs a program that must succeed.
pub(crate) fn must(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {said}", output.status);
}

/// A new ext4 on a new logged disk.
pub(crate) struct Mounted {
    disk: LoggedDisk,
    places: TempDir,
}

impl Mounted {
    pub(crate) fn new() -> Self {
        let places = tempfile::tempdir().unwrap();
        let plain = places.path().join("plain");
        File::create(&plain).unwrap().set_len(DISK_BYTES).unwrap();
        // Nothing is left for the background, which would add events.
        let now = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        must(
            tool("mkfs.ext4")
                .args(["-q", "-F", "-b", "4096", "-m", "0", "-J", "size=4", "-E", now])
                .arg(&plain),
        );
        let under = places.path().join("disk");
        let over = places.path().join("files");
        std::fs::create_dir(&under).unwrap();
        std::fs::create_dir(&over).unwrap();
        let disk = LoggedDisk::mount(std::fs::read(&plain).unwrap(), &under).unwrap();
        must(tool("mount").args(["-t", "ext4", "-o", "loop,noatime"]).arg(under.join(IMAGE)).arg(&over));
        Self { disk, places }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.places.path().join("files")
    }

    pub(crate) fn log(&self) -> Log {
        self.disk.log()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Before the disk goes: the last writes of the file system need it.
        must(tool("umount").arg(self.folder()));
    }
}

/// What a file of an ext4 holds after its journal was replayed; None: it has no such file.
pub(crate) fn recovered(image: &[u8], file: &str, scratch: &Path) -> Option<Vec<u8>> {
    let (disk, out) = (scratch.join("disk"), scratch.join("out"));
    std::fs::write(&disk, image).unwrap();
    let replayed = tool("e2fsck").args(["-y", "-E", "journal_only"]).arg(&disk).output().unwrap();
    assert!(
        replayed.status.code().is_some_and(|code| code < 4),
        "the journal cannot be replayed: {replayed:?}"
    );
    let _ = std::fs::remove_file(&out);
    must(tool("debugfs").arg("-R").arg(format!("dump {file} {}", out.display())).arg(&disk));
    std::fs::read(&out).ok()
}
