//! Other people's servers, when they are installed.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "every test file uses its own part"
)]

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SMBD: &str = "/usr/sbin/smbd";
const PDBEDIT: &str = "/usr/bin/pdbedit";
const SMBCONTROL: &str = "/usr/bin/smbcontrol";
/// As root of a user namespace smbd cannot drop its groups and ends. As any other user it works without rights; the
/// user needs an entry in the passwd file, which this one has everywhere.
const AS_NOBODY: [&str; 3] = ["--user", "--map-user=65534", "--map-group=65534"];
const AS_ROOT_WITH_MOUNTS: [&str; 3] = ["--user", "--map-root-user", "--mount"];

/// A smbd of our own, without root's rights, with three shares of one folder: `share`, `readonly` and `sealed`, which
/// requires encryption.
pub(crate) struct Samba {
    daemon: Child,
    pub(crate) port: u16,
    dir: PathBuf,
    /// The shares are in a file system of their own with this much space.
    space_mib: Option<u32>,
}

impl Samba {
    pub(crate) const USER: &str = "nobody";
    pub(crate) const PASSWORD: &str = "secret-of-the-test";

    /// Starts it with further global settings; None, with a message, if it is not installed.
    pub(crate) fn start(settings: &str) -> Option<Self> {
        Self::start_with(settings, None)
    }

    /// Starts it with a shared folder in memory that has only this much space. Its files are not visible here.
    pub(crate) fn start_small(space_mib: u32) -> Option<Self> {
        let mut probe = Command::new("unshare");
        probe.args(AS_ROOT_WITH_MOUNTS).args(["mount", "-t", "tmpfs", "tmpfs", "/tmp"]);
        if !probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            skip("no mount namespace for a share of limited space (unshare and mount)");
            return None;
        }
        Self::start_with("", Some(space_mib))
    }

    fn start_with(settings: &str, space_mib: Option<u32>) -> Option<Self> {
        if ![SMBD, PDBEDIT].iter().all(|file| Path::new(file).exists()) {
            skip("smbd and pdbedit (package samba) are not installed");
            return None;
        }
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let dir = std::env::temp_dir().join(format!("linerate-smbd-{}-{port}", std::process::id()));
        for name in ["", "private", "lock", "state", "cache", "pid", "ncalrpc", "share"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(dir.join("smb.conf"), configuration(&dir, port, settings)).unwrap();
        if !add_user(&dir) {
            skip("no user namespace for smbd (unshare of package util-linux)");
            return None;
        }
        let daemon = serve(&dir, space_mib);
        let samba = Self { daemon, port, dir, space_mib };
        samba.wait_until_it_listens();
        Some(samba)
    }

    fn wait_until_it_listens(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < until, "smbd listens on port {}: {}", self.port, self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn url(&self, share: &str, path: &str) -> String {
        format!("smb://127.0.0.1:{}/{share}/{path}", self.port)
    }

    /// A file of the shared folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join("share").join(name)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.clone()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Changes the account, as pdbedit does.
    pub(crate) fn edit_user(&self, options: &[&str]) {
        run(pdbedit(&self.dir).args(["-r", "-u", Self::USER]).args(options));
    }

    /// Locks every account after this many wrong passwords.
    pub(crate) fn lock_accounts_after(&self, attempts: u32) {
        run(pdbedit(&self.dir).args(["-P", "bad lockout attempt", "-C", &attempts.to_string()]));
    }

    /// Closes a share for all clients that use it.
    pub(crate) fn close_share(&self, share: &str) {
        let mut command = Command::new("unshare");
        command.args(AS_NOBODY).args([SMBCONTROL, "-s"]).arg(self.dir.join("smb.conf"));
        run(command.args(["smbd", "close-share", share]));
    }

    /// Runs one command of smbclient on the share, with further options; None, with a message, if it is not installed.
    pub(crate) fn smbclient(&self, command: &str, options: &[&str]) -> Option<Output> {
        if !Path::new("/usr/bin/smbclient").exists() {
            skip("smbclient (package smbclient) is not installed");
            return None;
        }
        let login = format!("{}%{}", Self::USER, Self::PASSWORD);
        let port = self.port.to_string();
        let conf = self.dir.join("smb.conf");
        let mut client = Command::new("/usr/bin/smbclient");
        client.args(["//127.0.0.1/share", "-p", &port, "-U", &login, "-c", command, "-s"]).arg(conf);
        client.args(options);
        Some(client.current_dir(&self.dir).output().unwrap())
    }

    /// Ends it, as a crash of the server would for its clients.
    pub(crate) fn stop(&mut self) {
        // Its processes for connections end with it only after this signal.
        let pid = self.daemon.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.daemon.wait();
        self.end_helpers();
    }

    /// Ends samba-dcerpcd and what it started: smbd starts it in a session of its own when a client lists the shares.
    fn end_helpers(&self) {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let helpers = helpers_of(&self.dir);
            if helpers.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "these helpers of smbd do not end: {helpers:?}");
            let _ = Command::new("kill").arg("-KILL").args(helpers).stderr(Stdio::null()).status();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Its process, which is also its process group.
    pub(crate) fn id(&self) -> u32 {
        self.daemon.id()
    }

    /// Kills all its processes.
    pub(crate) fn kill(&mut self) {
        kill_group(self.id());
        let _ = self.daemon.wait();
        self.wait_while(|_| true);
        self.end_helpers();
    }

    pub(crate) fn start_if_killed(&mut self) {
        if self.daemon.try_wait().unwrap().is_some() {
            self.start_again();
        }
    }

    /// Waits until it has ended the process of every connection, and with it what the client had asked for.
    pub(crate) fn wait_until_connections_ended(&self) {
        // Its helpers are called smbd-notifyd and the like.
        self.wait_while(|process| {
            process.pid != self.id() && process.name.starts_with("smbd") && !process.name.starts_with("smbd-")
        });
    }

    fn wait_while(&self, is_meant: impl Fn(&Process) -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while processes_of_group(self.id()).iter().any(&is_meant) {
            assert!(Instant::now() < until, "smbd does not end a process: {}", self.log());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn start_again(&mut self) {
        // A helper of the old server that still ends has its listening socket, and would reset connections.
        self.wait_while(|_| true);
        self.daemon = serve(&self.dir, self.space_mib);
        self.wait_until_it_listens();
    }
}

impl Drop for Samba {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn configuration(dir: &Path, port: u16, settings: &str) -> String {
    let dir = dir.display();
    format!(
        "[global]
server role = standalone server
private dir = {dir}/private
lock directory = {dir}/lock
state directory = {dir}/state
cache directory = {dir}/cache
pid directory = {dir}/pid
ncalrpc dir = {dir}/ncalrpc
passdb backend = tdbsam:{dir}/private/passdb.tdb
log file = {dir}/log
smb ports = {port}
interfaces = 127.0.0.1
bind interfaces only = yes
disable netbios = yes
disable spoolss = yes
load printers = no
printing = bsd
printcap name = /dev/null
{settings}
[share]
path = {dir}/share
read only = no
[readonly]
path = {dir}/share
read only = yes
[sealed]
path = {dir}/share
read only = no
smb encrypt = required
"
    )
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn pdbedit(dir: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(AS_NOBODY).args([PDBEDIT, "-s"]).arg(dir.join("smb.conf"));
    command
}

fn add_user(dir: &Path) -> bool {
    let mut command = pdbedit(dir);
    command.args(["-a", "-t", "-u", Samba::USER]).stdin(Stdio::piped()).stdout(Stdio::null());
    let Ok(mut child) = command.stderr(Stdio::null()).spawn() else { return false };
    let words = format!("{0}\n{0}\n", Samba::PASSWORD);
    let written = child.stdin.take().unwrap().write_all(words.as_bytes());
    written.is_ok() && child.wait().is_ok_and(|status| status.success())
}

fn serve(dir: &Path, space_mib: Option<u32>) -> Child {
    let mut command = Command::new("unshare");
    if let Some(mib) = space_mib {
        let mount = format!("mount -t tmpfs -o size={mib}m tmpfs \"$0\"/share && exec unshare \"$@\"");
        command.args(AS_ROOT_WITH_MOUNTS).args(["sh", "-c", &mount]).arg(dir);
    }
    command
        .args(AS_NOBODY)
        .args([SMBD, "--foreground", "--no-process-group", "-s"])
        .arg(dir.join("smb.conf"));
    // When it ends, it ends its whole process group.
    command.process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("unshare starts")
}

/// Kills a process group.
pub(crate) fn kill_group(group: u32) {
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status();
}

struct Process {
    pid: u32,
    name: String,
}

/// The processes of a group that run.
fn processes_of_group(group: u32) -> Vec<Process> {
    let of_group = all_processes().filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let (state, own_group) = (fields.next()?, fields.nth(1)?.parse::<u32>().ok()?);
        (own_group == group && state != "Z").then(|| Process { pid, name: name.to_owned() })
    });
    of_group.collect()
}

/// The processes that smbd started for the configuration in a folder, by the option that it gives them.
pub(crate) fn helpers_of(dir: &Path) -> Vec<String> {
    let option = format!("--configfile={}", dir.join("smb.conf").display());
    let is_one = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).any(|word| word == option.as_bytes())
    };
    all_processes().filter(is_one).map(|pid| pid.to_string()).collect()
}

fn all_processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Prints why a test does not run. If `LINERATE_CI` is set every peer must be installed, and a skip is a failure.
pub(crate) fn skip(reason: &str) {
    assert!(std::env::var_os("LINERATE_CI").is_none(), "{reason}, but LINERATE_CI is set");
    eprintln!("skipped: {reason}");
}
