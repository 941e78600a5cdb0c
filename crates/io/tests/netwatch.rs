//! Links and addresses that are added and removed in a network namespace of the test.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly

use linerate_io::net::{NetEvent, NetWatch, netns};
use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

/// A process that holds a namespace open; it ends with the test.
struct Namespace(Child);

impl Namespace {
    /// None, with a reason on standard error, if the test may not make one.
    fn new() -> Option<Self> {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo ready; exec sleep 60"])
            .stdout(Stdio::piped())
            .spawn()
            .inspect_err(|error| eprintln!("skipped: unshare (util-linux): {error}"))
            .ok()?;
        let mut line = String::new();
        let ready = BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line);
        let namespace = Self(holder);
        if ready.is_err() || line.is_empty() {
            eprintln!("skipped: a network namespace needs root");
            return None;
        }
        Some(namespace)
    }

    fn path(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }

    fn ip(&self, command: &str) {
        let net = format!("--net={}", self.path().display());
        let status = Command::new("nsenter").arg(net).arg("ip").args(command.split(' ')).status().unwrap();
        assert!(status.success(), "ip {command}");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn changes_are_told_in_order() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.ip("link add p0 type veth peer name p1");
    let watch = netns::within(Some(&namespace.path()), NetWatch::open).unwrap();
    assert_eq!(watch.links().filter(|(_, up)| *up).count(), 0);
    let (told, events) = mpsc::channel();
    let follower = watch.follow(move |event| told.send(event.unwrap()).unwrap()).unwrap();
    let expect = |event: NetEvent| {
        assert_eq!(events.recv_timeout(Duration::from_secs(20)).unwrap(), event);
    };
    let p0 = || "p0".to_owned();
    let address = "10.77.0.1".parse().unwrap();
    namespace.ip("address add 10.77.0.1/24 dev p0");
    expect(NetEvent::AddressAdded { interface: p0(), address });
    namespace.ip("link set p0 up");
    namespace.ip("link set p1 up");
    let mut ups: Vec<NetEvent> =
        (0..2).map(|_| events.recv_timeout(Duration::from_secs(20)).unwrap()).collect();
    ups.sort_by_key(|event| format!("{event:?}"));
    assert_eq!(ups, ["p0", "p1"].map(|name| NetEvent::LinkUp { interface: name.into() }));
    // Link-local IPv6 addresses can be used only after duplicate address detection.
    namespace.ip("address del 10.77.0.1/24 dev p0");
    let removed = NetEvent::AddressRemoved { interface: p0(), address };
    let until = Instant::now() + Duration::from_secs(20);
    while events.recv_timeout(until - Instant::now()).unwrap() != removed {}
    namespace.ip("link del p0");
    while events.recv_timeout(until - Instant::now()).unwrap() != (NetEvent::LinkDown { interface: p0() }) {}
    drop(follower);
}

#[test]
fn more_changes_than_the_socket_holds_end_in_the_same_view() {
    let Some(namespace) = Namespace::new() else { return };
    let mut watch = netns::within(Some(&namespace.path()), NetWatch::open).unwrap();
    // No reads meanwhile.
    let batch: String = (0..4000)
        .map(|index| format!("address add 10.{}.{}.1/32 dev lo\n", 100 + index / 250, index % 250))
        .chain(
            (0..4000)
                .filter(|index| index % 2 == 0)
                .map(|index| format!("address del 10.{}.{}.1/32 dev lo\n", 100 + index / 250, index % 250)),
        )
        .collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), batch).unwrap();
    namespace.ip(&format!("-batch {}", file.path().display()));
    let mut there = BTreeSet::new();
    watch
        .take(|event| match event {
            NetEvent::AddressAdded { address, .. } => assert!(there.insert(address), "{address} twice"),
            NetEvent::AddressRemoved { address, .. } => assert!(there.remove(&address), "{address} was gone"),
            _ => {}
        })
        .unwrap();
    assert_eq!(there.len(), 2000);
    let seen: BTreeSet<_> = watch.addresses().map(|(_, address)| address).collect();
    assert_eq!(there, seen);
}
