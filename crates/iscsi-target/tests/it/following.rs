//! Portals follow the addresses of the host, here of a network namespace of the test.

use crate::support::{Client, IQN, SIZE_BYTES, wait_for};
use linerate_io::net::netns;
use linerate_iscsi_target::Array;
use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// A process that holds a namespace open, with a pair of interfaces in it; it ends with the test.
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
        for command in
            ["link set lo up", "link add p0 type veth peer name p1", "link set p0 up", "link set p1 up"]
        {
            namespace.ip(command);
        }
        Some(namespace)
    }

    fn ip(&self, command: &str) {
        let net = format!("--net={}", self.path().display());
        let status = Command::new("nsenter").arg(net).arg("ip").args(command.split(' ')).status().unwrap();
        assert!(status.success(), "ip {command}");
    }

    fn path(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }

    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        netns::within(Some(&self.path()), || Ok(work())).unwrap()
    }

    fn array(&self, portals: &str) -> Array {
        let json = format!(
            r#"{{"portals": [{portals}], "targets": [{{"name": "{IQN}",
                "volumes": [{{"lun": 0, "name": "v0", "size_bytes": {SIZE_BYTES}}}]}}]}}"#
        );
        self.within(|| Array::start(serde_json::from_str(&json).unwrap()).unwrap())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn listens_on(array: &Array, expected: &[&str]) {
    wait_for(array, "the portals follow", |_| {
        let mut portals: Vec<String> = array.portals().iter().map(SocketAddr::to_string).collect();
        portals.sort();
        portals == expected
    });
}

#[test]
fn an_interface_portal_serves_addresses_that_come_and_ends_sessions_of_those_that_go() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.ip("address add 10.77.0.1/24 dev p0");
    let array = namespace.array(r#"{"interface": "p0", "group": 4}, "127.0.0.1:3260""#);
    let mut stays = namespace.within(|| Client::login("10.77.0.1:3260".parse().unwrap(), 1, ""));
    namespace.ip("address add 10.77.0.2/24 dev p0");
    listens_on(&array, &["10.77.0.1:3260", "10.77.0.2:3260", "127.0.0.1:3260"]);
    let mut goes = namespace.within(|| Client::login("10.77.0.2:3260".parse().unwrap(), 2, ""));
    goes.clear_attention();
    let told = namespace.within(|| Client::discover("10.77.0.2:3260".parse().unwrap()));
    assert!(told.contains("TargetAddress=10.77.0.2:3260,4\0"), "{told}");
    // The initiator receives nothing, so the array's own counters show the end.
    namespace.ip("address del 10.77.0.2/24 dev p0");
    listens_on(&array, &["10.77.0.1:3260", "127.0.0.1:3260"]);
    let left = |array: &Array| {
        array.report().by_session.iter().map(|row| row.portal.to_string()).collect::<Vec<_>>()
    };
    wait_for(&array, "one session is left", |_| left(&array) == ["10.77.0.1:3260"]);
    stays.clear_attention();
    let told = namespace.within(|| Client::discover("10.77.0.1:3260".parse().unwrap()));
    assert!(!told.contains("10.77.0.2"), "{told}");
    // The address is added again.
    namespace.ip("address add 10.77.0.2/24 dev p0");
    listens_on(&array, &["10.77.0.1:3260", "10.77.0.2:3260", "127.0.0.1:3260"]);
    namespace.within(|| Client::login("10.77.0.2:3260".parse().unwrap(), 2, "")).clear_attention();
    namespace.ip("link del p0");
    listens_on(&array, &["127.0.0.1:3260"]);
    wait_for(&array, "no session is left", |stats| stats.sessions == 0);
}

#[test]
fn a_portal_with_an_address_is_told_only_while_the_host_has_it() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.ip("address add 10.77.0.1/24 dev p0");
    let array = namespace.array(r#""10.77.0.1:3260", "0.0.0.0:3261""#);
    let mut client = namespace.within(|| Client::login("10.77.0.1:3260".parse().unwrap(), 1, ""));
    client.clear_attention();
    namespace.ip("address add 10.77.1.1/24 dev p1");
    wait_for(&array, "the wildcard has two addresses", |_| {
        let told = namespace.within(|| Client::discover("10.77.1.1:3261".parse().unwrap()));
        told.contains("=10.77.0.1:3261,1") && told.contains("=10.77.1.1:3261,1")
    });
    namespace.ip("address del 10.77.0.1/24 dev p0");
    listens_on(&array, &["0.0.0.0:3261"]);
    wait_for(&array, "its session has ended", |stats| stats.sessions == 0);
    let told = namespace.within(|| Client::discover("10.77.1.1:3261".parse().unwrap()));
    assert!(!told.contains("10.77.0.1"), "{told}");
    namespace.ip("address add 10.77.0.1/24 dev p0");
    listens_on(&array, &["0.0.0.0:3261", "10.77.0.1:3260"]);
    namespace.within(|| Client::login("10.77.0.1:3260".parse().unwrap(), 1, "")).clear_attention();
}

#[test]
fn an_address_that_is_in_use_is_served_when_it_is_free() {
    let Some(namespace) = Namespace::new() else { return };
    let array = namespace.array(r#"{"interface": "p0"}, "127.0.0.1:3260""#);
    namespace.ip("address add 10.77.0.2/24 dev p1");
    let other = namespace.within(|| TcpListener::bind("10.77.0.2:3260").unwrap());
    namespace.ip("address add 10.77.0.2/32 dev p0");
    std::thread::sleep(Duration::from_millis(500));
    listens_on(&array, &["127.0.0.1:3260"]);
    drop(other);
    listens_on(&array, &["10.77.0.2:3260", "127.0.0.1:3260"]);
    namespace.within(|| Client::login("10.77.0.2:3260".parse().unwrap(), 2, "")).clear_attention();
}
