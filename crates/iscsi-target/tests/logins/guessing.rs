//! An address that guesses CHAP secrets gets few attempts over all its connections; other addresses do not wait for it.

use crate::support::{
    Client, is_quick,
    logins::{Who, status},
};
use linerate_iscsi_proto::{chap::Algorithm, pdu::LoginStatus};
use linerate_iscsi_target::Array;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

const TARGET: &str = "iqn.2026-11.lab.linerate:guarded";
const HOST: &str = "iqn.2026-11.lab.linerate:host";
const HONEST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const GUESSING: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const REFUSED: Option<(u8, u8)> =
    Some((LoginStatus::AUTHENTICATION_FAILED.class, LoginStatus::AUTHENTICATION_FAILED.detail));
/// Much longer than a login takes, and shorter than the first delay.
const AT_ONCE: Duration = Duration::from_millis(400);

fn guarded() -> Array {
    let chap = r#"{"user": "alice", "secret": "correct-horse-battery"}"#;
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0"], "workers": 2, "targets": [{{"name": "{TARGET}", "chap": {chap}}}]}}"#
    );
    Array::start(serde_json::from_str(&json).unwrap()).unwrap()
}

fn who<'a>(initiator: &'a str, secret: &'a str, isid: u8) -> Who<'a> {
    Who { initiator, target: TARGET, user: "alice", secret, isid }
}

fn right(isid: u8) -> Who<'static> {
    who(HOST, "correct-horse-battery", isid)
}

/// Logs in; returns the result and the time.
fn timed(from: IpAddr, portal: SocketAddr, who: Who<'_>) -> (Option<(u8, u8)>, Duration) {
    let began = Instant::now();
    (Client::connect_from(from, portal).prove(who), began.elapsed())
}

/// Waits for an answer during the guessing, but no longer than 4.5 s.
fn answered(client: &Client, ends: &AtomicBool) -> bool {
    client.socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let began = Instant::now();
    while !ends.load(Relaxed) && began.elapsed() < Duration::from_millis(4500) {
        if client.socket.peek(&mut [0]).is_ok() {
            return true;
        }
    }
    false
}

/// Many connections that guess at the same time; their answers are counted.
struct Guessing {
    answers: Arc<AtomicU32>,
    began: Instant,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Guessing {
    /// `name` returns the initiator of each guess.
    fn start(portal: SocketAddr, name: fn(usize) -> String) -> Self {
        let (answers, ends) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let guess = |first: usize| {
            let (answers, ends) = (Arc::clone(&answers), Arc::clone(&ends));
            thread::spawn(move || {
                for number in (first * 1_000_000).. {
                    if ends.load(Relaxed) {
                        return;
                    }
                    let mut client = Client::connect_from(GUESSING, portal);
                    let secret = format!("guess number {number}");
                    client.send_proof(who(&name(number), &secret, 1), Algorithm::Md5);
                    if answered(&client, &ends)
                        && let Some(told) = client.receive()
                    {
                        assert_eq!(status(Some(told)), REFUSED);
                        answers.fetch_add(1, Relaxed);
                    }
                }
            })
        };
        let threads = (0..32).map(guess).collect();
        let guessing = Self { answers, began: Instant::now(), ends, threads };
        while guessing.answers.load(Relaxed) == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        guessing
    }

    /// Guesses per second that were answered.
    fn end(self) -> f64 {
        let elapsed = self.began.elapsed();
        thread::sleep(Duration::from_secs(5).saturating_sub(elapsed));
        let rate = f64::from(self.answers.load(Relaxed)) / self.began.elapsed().as_secs_f64();
        self.ends.store(true, Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        rate
    }
}

#[test]
fn many_connections_guess_no_faster_than_one() {
    let _alone = crate::alone();
    if is_quick() {
        eprintln!("skipped: it takes 10 s; make test-all runs it");
        return;
    }
    for name in [|_| HOST.into(), |number| format!("{HOST}{number}")] as [fn(usize) -> String; 2] {
        let array = guarded();
        let rate = Guessing::start(array.portals()[0], name).end();
        eprintln!("{rate:.2} guesses per second");
        assert!(rate < 3.0, "{rate:.2} guesses per second");
    }
}

#[test]
fn guessing_holds_up_no_one_elsewhere() {
    let _alone = crate::alone();
    let array = guarded();
    let portal = array.portals()[0];
    let guessing = Guessing::start(portal, |_| HOST.into());
    for isid in 0..20 {
        let (told, took) = timed(HONEST, portal, right(isid));
        assert_eq!(told, Some((0, 0)));
        assert!(took < AT_ONCE, "a login under the name that is guessed for took {took:?}");
    }
    let (told, took) = timed(HONEST, portal, who(HOST, "a slip of the pen", 100));
    assert_eq!(told, REFUSED);
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert!(guessing.end() < 3.0);
}

#[test]
fn an_initiator_that_was_here_before_is_not_held_up_by_its_neighbours() {
    let _alone = crate::alone();
    let array = guarded();
    let portal = array.portals()[0];
    assert_eq!(timed(GUESSING, portal, right(1)).0, Some((0, 0)));
    let guessing = Guessing::start(portal, |number| format!("{HOST}{number}"));
    for isid in 2..10 {
        let (told, took) = timed(GUESSING, portal, right(isid));
        assert_eq!(told, Some((0, 0)));
        assert!(took < AT_ONCE, "{took:?}");
    }
    guessing.end();
}

#[test]
fn a_wrong_proof_is_answered_late_and_right_ones_behind_it_still_count() {
    let _alone = crate::alone();
    let array = guarded();
    let portal = array.portals()[0];
    let (told, took) = timed(HONEST, portal, who(HOST, "a slip of the pen", 1));
    assert_eq!(told, REFUSED);
    assert!((Duration::from_millis(500)..Duration::from_secs(2)).contains(&took), "{took:?}");
    // Another wrong response, and 8 right ones sent before it is answered.
    let mut wrong = Client::connect_from(HONEST, portal);
    wrong.send_proof(who(HOST, "a slip of the pen", 1), Algorithm::Sha256);
    thread::sleep(Duration::from_millis(50));
    let mut waiting: Vec<_> = (2..10).map(|isid| (isid, Client::connect_from(HONEST, portal))).collect();
    let began = Instant::now();
    for (isid, client) in &mut waiting {
        client.send_proof(right(*isid), Algorithm::Sha3_256);
    }
    for (_, client) in &mut waiting {
        assert_eq!(status(client.receive()), Some((0, 0)));
    }
    let took = began.elapsed();
    assert!(took > AT_ONCE, "a right proof is judged no sooner than a wrong one: {took:?}");
    assert!(took < Duration::from_secs(3), "all of them have their turn at once: {took:?}");
    assert_eq!(status(wrong.receive()), REFUSED);
}
