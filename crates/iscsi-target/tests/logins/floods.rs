//! Floods of connections and logins: an honest initiator can log in nevertheless, and one that is logged in keeps its
//! rate.

use crate::support::{
    Client, IQN, SIZE_BYTES, array, is_quick,
    logins::{connect_from, status},
    served::Served,
    slow_drivers, wait_for,
};
use linerate_iscsi_proto::pdu::{BHS_BYTES, LoginStatus, Stage};
use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

const HONEST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Logins of the honest initiator during a flood.
const LOGINS: u32 = 20;
const LOGIN_MAX: Duration = Duration::from_secs(1);
/// Reads per second of the existing session.
const READS_PER_S: u32 = 200;
/// Rate of connections that send nothing: at a higher rate the kernel would drop them from its queue.
const IDLE_PER_S: u32 = 4000;
/// Limit of the memory of a connection that has not logged in.
const HALF_OPEN_BYTES_MAX: usize = 48 << 10;

/// Another address for each flood, because the ports of the last one cannot be used for a minute.
fn flooding() -> IpAddr {
    static LAST: AtomicU8 = AtomicU8::new(1);
    Ipv4Addr::new(127, 0, 0, LAST.fetch_add(1, Relaxed) + 1).into()
}

fn started(driver: &str) -> Served {
    let volume = format!(r#"{{"lun": 0, "name": "v0", "size_bytes": {SIZE_BYTES}, "kind": "memory"}}"#);
    Served::start(&format!(
        r#"{{"portals": ["127.0.0.1:0"], "driver": "{driver}", "touch_memory": false,
            "targets": [{{"name": "{IQN}", "volumes": [{volume}]}}]}}"#
    ))
}

/// A background thread that runs until it is stopped.
struct Background<T>(Arc<AtomicBool>, Option<JoinHandle<T>>);

impl<T: Send + 'static> Background<T> {
    fn start(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ends);
        Self(ends, Some(thread::spawn(move || work(&told))))
    }

    fn end(mut self) -> T {
        self.0.store(true, Relaxed);
        self.1.take().unwrap().join().unwrap()
    }
}

/// A session that reads at its rate; returns the share of its reads that were made, and the longest time of one.
fn neighbour(portal: SocketAddr) -> Background<(f64, Duration)> {
    let mut client = Client::login(portal, 250, "");
    client.clear_attention();
    Background::start(move |ends| {
        let (began, mut done, mut longest) = (Instant::now(), 0, Duration::ZERO);
        while !ends.load(Relaxed) {
            let due = began + Duration::from_secs(1) * done / READS_PER_S;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let sent = Instant::now();
            assert_eq!(client.read(0, 4096).len(), 4096);
            longest = longest.max(sent.elapsed());
            done += 1;
        }
        (f64::from(done) / (began.elapsed().as_secs_f64() * f64::from(READS_PER_S)), longest)
    })
}

/// Logs in repeatedly during the flood; returns the longest login.
fn honest_logins(from: IpAddr, portal: SocketAddr) -> Duration {
    let login = |isid: u32| {
        let began = Instant::now();
        let mut client = Client::connect_from(from, portal);
        let text = format!("InitiatorName=iqn.2026-11.lab.linerate:honest\0TargetName={IQN}\0");
        let answer = client.say(isid as u8, Stage::Operational, Some(Stage::FullFeature), &text);
        assert_eq!(status(answer), Some((0, 0)), "login {isid}");
        thread::sleep(Duration::from_millis(50));
        began.elapsed().saturating_sub(Duration::from_millis(50))
    };
    (0..LOGINS).map(login).max().unwrap()
}

/// Runs honest initiators beside a flood, on both drivers: from another address, or from the flood's. `flood` returns
/// the state that keeps it running.
fn beside<F>(what: &str, elsewhere: bool, flood: impl Fn(IpAddr, SocketAddr) -> F, end: impl Fn(F)) {
    let _alone = crate::alone();
    for driver in slow_drivers() {
        let array = started(driver);
        let neighbour = neighbour(array.portal);
        let from = flooding();
        let flood = flood(from, array.portal);
        let longest = honest_logins(if elsewhere { HONEST } else { from }, array.portal);
        let (share, slowest) = neighbour.end();
        eprintln!("{what}, {driver}: login {longest:?}, neighbour {share:.3} of its rate, {slowest:?}");
        assert!(longest < LOGIN_MAX, "{what}, {driver}: a login took {longest:?}");
        assert!(share > 0.9, "{what}, {driver}: the neighbour made {share:.3} of its reads");
        end(flood);
    }
}

/// This many connections that send nothing, and more all the time. Returns when 1,280 exist, or all.
fn idle(count: usize, from: IpAddr, portal: SocketAddr) -> Background<Vec<TcpStream>> {
    let opened = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&opened);
    let flood = Background::start(move |ends| {
        let (began, mut held) = (Instant::now(), Vec::new());
        for number in 0..count as u32 {
            let due = began + Duration::from_secs(1) * number / IDLE_PER_S;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if ends.load(Relaxed) {
                break;
            }
            held.push(connect_from(from, portal).expect("a limit of 20,000 open files: ulimit -n"));
            counted.fetch_add(1, Relaxed);
        }
        held
    });
    while opened.load(Relaxed) < 1280 {
        thread::sleep(Duration::from_millis(1));
    }
    flood
}

/// Waits until all of them exist.
fn all_of(flood: Background<Vec<TcpStream>>) -> Background<Vec<TcpStream>> {
    while !flood.1.as_ref().unwrap().is_finished() {
        thread::sleep(Duration::from_millis(1));
    }
    flood
}

#[test]
fn idle_connections_keep_no_one_from_logging_in() {
    beside("1280 idle connections", true, |from, portal| all_of(idle(1280, from, portal)), drop);
    if is_quick() {
        return;
    }
    beside(
        "10000 idle connections, as they come",
        true,
        |from, portal| idle(10_000, from, portal),
        |flood| {
            drop(flood.end());
        },
    );
    beside("10000 idle connections", true, |from, portal| all_of(idle(10_000, from, portal)), drop);
}

#[test]
fn idle_connections_keep_no_one_at_their_own_address_from_logging_in() {
    let what = "1280 idle connections of the same address";
    beside(what, false, |from, portal| all_of(idle(1280, from, portal)), drop);
}

/// 1,280 connections that each send one byte of a login per second, and are opened again when they are dropped.
fn slow_logins(from: IpAddr, portal: SocketAddr) -> Background<()> {
    Background::start(move |ends| {
        let mut bhs = [0; BHS_BYTES];
        (bhs[0], bhs[1], bhs[7]) = (0x43, 0x87, 200);
        let mut slow: Vec<(TcpStream, usize)> = Vec::new();
        while !ends.load(Relaxed) {
            let began = Instant::now();
            slow.retain_mut(|(socket, at)| {
                *at += 1;
                *at <= BHS_BYTES && socket.write_all(&bhs[*at - 1..*at]).is_ok()
            });
            while slow.len() < 1280 {
                slow.push((connect_from(from, portal).unwrap(), 0));
            }
            thread::sleep(Duration::from_secs(1).saturating_sub(began.elapsed()));
        }
    })
}

#[test]
fn slow_logins_keep_no_one_from_logging_in() {
    beside("slow logins", true, slow_logins, Background::end);
}

/// Complete logins, 1,000 per second as far as this machine can; each is kept, or closed at once. Returns the number.
fn login_flood(from: IpAddr, portal: SocketAddr, held: bool) -> (Background<Vec<TcpStream>>, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let flood = Background::start(move |ends| {
        let (began, mut kept) = (Instant::now(), Vec::new());
        for number in 0_u32.. {
            if ends.load(Relaxed) {
                break;
            }
            let due = began + Duration::from_secs(1) * number / 1000;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let mut client = Client::connect_from(from, portal);
            let text = format!("InitiatorName=iqn.2026-11.lab.linerate:flood{number}\0TargetName={IQN}\0");
            client.say(1, Stage::Operational, Some(Stage::FullFeature), &text);
            counted.fetch_add(1, Relaxed);
            if held {
                kept.push(client.socket);
            }
        }
        kept
    });
    // Kept ones have all sessions that they can get.
    while held && count.load(Relaxed) < 1500 {
        thread::sleep(Duration::from_millis(10));
    }
    (flood, count)
}

#[test]
fn floods_of_complete_logins_keep_no_one_from_logging_in() {
    for held in [false, true] {
        beside(
            &format!("complete logins, held {held}"),
            true,
            |from, portal| (login_flood(from, portal, held), Instant::now()),
            |((flood, count), began)| {
                drop(flood.end());
                let per_s = count.load(Relaxed) as f64 / began.elapsed().as_secs_f64();
                eprintln!("{per_s:.0} logins per second");
                assert!(count.load(Relaxed) > 300, "this is no flood");
            },
        );
    }
}

#[test]
fn the_oldest_connection_that_has_not_logged_in_goes_first() {
    let array = array(r#""limits": {"half_open_per_peer": 10},"#);
    let mut flood: Vec<_> = (0..50).map(|_| Client::connect(array.portals()[0])).collect();
    wait_for(&array, "forty are dropped", |stats| stats.connections_refused == 40 && stats.connections == 10);
    let text = format!("InitiatorName=iqn.2026-11.lab.linerate:host\0TargetName={IQN}\0");
    for client in &mut flood[40..] {
        assert_eq!(status(Some(client.log_in(client.cmd_sn as u8, &text))), Some((0, 0)));
        client.cmd_sn += 1;
    }
    assert!(flood[39].receive().is_none(), "an older one is gone");
}

#[test]
fn the_address_with_the_most_connections_gives_first() {
    let array = array(r#""limits": {"half_open_connections": 20},"#);
    let portal = array.portals()[0];
    let mut patient = Client::connect_from(HONEST, portal);
    let from = flooding();
    let flood: Vec<_> = (0..200).map(|_| connect_from(from, portal).unwrap()).collect();
    wait_for(&array, "most are dropped", |stats| stats.connections_refused == 181 && stats.connections == 20);
    let text = format!("InitiatorName=iqn.2026-11.lab.linerate:host\0TargetName={IQN}\0");
    assert_eq!(status(Some(patient.log_in(1, &text))), Some((0, 0)), "the oldest of all, of another address");
    drop(flood);
}

#[test]
fn one_address_cannot_take_all_sessions() {
    let array = array(r#""limits": {"connections_per_peer": 10},"#);
    let portal = array.portals()[0];
    let full = (LoginStatus::OUT_OF_RESOURCES.class, LoginStatus::OUT_OF_RESOURCES.detail);
    let login = |from: IpAddr, name: &str| {
        let mut client = Client::connect_from(from, portal);
        let text = format!("InitiatorName=iqn.2026-11.lab.linerate:{name}\0TargetName={IQN}\0");
        let answer = client.say(1, Stage::Operational, Some(Stage::FullFeature), &text);
        (status(answer).unwrap(), client)
    };
    let flooding = flooding();
    let held: Vec<_> = (0..10).map(|number| login(flooding, &format!("flood{number}"))).collect();
    assert!(held.iter().all(|(status, _)| *status == (0, 0)));
    assert_eq!(login(flooding, "flood10").0, full);
    assert_eq!(login(flooding, "flood3").0, (0, 0), "one that replaces its own session needs no room");
    assert_eq!(login(HONEST, "honest").0, (0, 0));
}

#[test]
fn known_initiators_log_in_when_all_sessions_are_taken() {
    let target = |name: &str, initiators: &str| {
        format!(r#"{{"name": "iqn.2026-11.lab.linerate:{name}", "initiators": ["{initiators}"]}}"#)
    };
    // A list that names all initiators does not make one known.
    let (ours, open) = (target("ours", "iqn.2026-11.lab.linerate:*"), target("open", "*"));
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0"], "limits": {{"sessions": 16, "connections_per_peer": 16}},
            "targets": [{ours}, {open}, {{"name": "{IQN}"}}]}}"#
    );
    let array = linerate_iscsi_target::Array::start(serde_json::from_str(&json).unwrap()).unwrap();
    let portal = array.portals()[0];
    let login = |from: IpAddr, target: &str, isid: u8| {
        let mut client = Client::connect_from(from, portal);
        let text = format!("InitiatorName=iqn.2026-11.lab.linerate:host\0TargetName={target}\0");
        let answer = client.say(isid, Stage::Operational, Some(Stage::FullFeature), &text);
        (status(answer).unwrap(), client)
    };
    let full = (LoginStatus::OUT_OF_RESOURCES.class, LoginStatus::OUT_OF_RESOURCES.detail);
    let flooding = flooding();
    let flood: Vec<_> = (0..17).map(|isid| login(flooding, IQN, isid)).collect();
    assert_eq!((flood[15].0, flood[16].0), ((0, 0), full));
    for target in [IQN, "iqn.2026-11.lab.linerate:open"] {
        assert_eq!(login(HONEST, target, 100).0, full, "a stranger to {target}");
    }
    let ours = "iqn.2026-11.lab.linerate:ours";
    let known: Vec<_> = (0..3).map(|isid| login(HONEST, ours, isid)).collect();
    assert_eq!(
        [known[0].0, known[1].0, known[2].0],
        [(0, 0), (0, 0), full],
        "an eighth more than for anyone"
    );
}

#[test]
fn a_connection_that_has_not_logged_in_is_small() {
    let _alone = crate::alone();
    for driver in slow_drivers() {
        // Nothing is sent; and as much of a login as is accepted without an end.
        let mut bhs = [0; BHS_BYTES];
        (bhs[0], bhs[1]) = (0x43, 0x40);
        bhs[5..8].copy_from_slice(&[0, 0x1f, 0xff]);
        let whole = [&bhs[..], &[b'x'; 8192]].concat();
        for (what, sent) in [("idle", &[][..]), ("talking", &whole[..8192])] {
            let array = started(driver);
            let begin = |_| {
                let mut socket = connect_from(HONEST, array.portal).unwrap();
                socket.write_all(sent).unwrap();
                socket
            };
            let Some(bytes) = array.bytes_per_connection(400, begin) else { return };
            eprintln!("{what}, {driver}: {bytes} bytes");
            assert!(bytes < HALF_OPEN_BYTES_MAX, "{what}, {driver}: {bytes} bytes");
        }
    }
}
