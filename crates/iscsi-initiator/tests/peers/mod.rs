//! Other people's targets, when they are installed.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A tgtd of our own with one target, LUN 1 backed by a file.
pub(crate) struct Tgt {
    daemon: Child,
    port: u16,
    control: u16,
    dir: PathBuf,
}

impl Tgt {
    /// Size of the LUN in bytes.
    pub(crate) const BYTES: u64 = 16 << 20;

    /// Starts it; None, with a message, if tgt is not installed.
    pub(crate) fn start() -> Option<Self> {
        if !["/usr/sbin/tgtd", "/usr/sbin/tgtadm"].iter().all(|file| std::path::Path::new(file).exists()) {
            skip("tgtd and tgtadm (package tgt) are not installed");
            return None;
        }
        // A port that was free a moment ago; tgt's control "port" is a number below 32768 in a socket's name.
        let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let control = port % 32_768;
        let dir = std::env::temp_dir().join(format!("linerate-tgt-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&dir).ok()?;
        let daemon = Command::new("/usr/sbin/tgtd")
            .args(["-f", "-C", &control.to_string(), "--iscsi", &format!("portal=127.0.0.1:{port}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("tgtd starts");
        let tgt = Self { daemon, port, control, dir };
        tgt.set_up();
        Some(tgt)
    }

    fn set_up(&self) {
        let file = self.dir.join("lun1");
        let backing = std::fs::File::create(&file).expect("backing file");
        backing.set_len(Self::BYTES).expect("backing file");
        let iqn = Self::IQN;
        let path = file.to_string_lossy().into_owned();
        self.admin(&["--op", "new", "--mode", "target", "--tid", "1", "-T", iqn]);
        self.admin(&["--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", &path]);
        for digest in ["HeaderDigest", "DataDigest"] {
            self.admin(&[
                "--op",
                "update",
                "--mode",
                "target",
                "--tid",
                "1",
                "-n",
                digest,
                "-v",
                "CRC32C,None",
            ]);
        }
        self.admin(&["--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"]);
        let connected = (0..100).any(|_| TcpStream::connect(("127.0.0.1", self.port)).is_ok());
        assert!(connected, "tgtd listens on port {}", self.port);
    }

    /// Runs tgtadm repeatedly while the daemon starts.
    pub(crate) fn admin(&self, args: &[&str]) {
        let control = self.control.to_string();
        let run = || {
            let mut command = Command::new("/usr/sbin/tgtadm");
            command.args(["-C", &control, "--lld", "iscsi"]).args(args).stderr(Stdio::null()).status()
        };
        let worked = (0..200).any(|_| {
            let good = run().is_ok_and(|status| status.success());
            if !good {
                let _ = Command::new("sleep").arg("0.05").status();
            }
            good
        });
        assert!(worked, "tgtadm {args:?}");
    }

    pub(crate) const IQN: &str = "iqn.2026-11.lab.linerate:tgt";

    pub(crate) fn portal(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        format!("iscsi://{}/{}/1", self.portal(), Self::IQN)
    }
}

impl Drop for Tgt {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Prints why a test does not run. If `LINERATE_CI` is set every peer must be installed, and a skip is a failure.
pub(crate) fn skip(reason: &str) {
    assert!(std::env::var_os("LINERATE_CI").is_none(), "{reason}, but LINERATE_CI is set");
    eprintln!("skipped: {reason}");
}
