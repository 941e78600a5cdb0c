//! The simulated network itself: bytes arrive complete and in order, losses are reported, one seed gives one run.
#![allow(clippy::unwrap_used, reason = "tests")]

use linerate_io::{Buffer, Completion, Driver, Handle, Outgoing, Region, Seg, SocketOptions, Wait};
use linerate_sim::{Conditions, Rng, SimDriver, SimNetwork, Wire, for_each_seed};
use std::sync::Arc;

const BYTES: u64 = 10_000;

/// A host that sends a region's bytes to each client, or collects the bytes that it gets.
struct Host {
    driver: SimDriver,
    stream: Option<Handle>,
    received: Vec<u8>,
    ended: Option<bool>,
    sent: bool,
}

impl Host {
    fn new(network: &SimNetwork) -> Self {
        Host { driver: network.driver(), stream: None, received: Vec::new(), ended: None, sent: false }
    }

    fn turn(&mut self, send: Option<&Arc<Region>>) {
        let mut completions = Vec::new();
        self.driver.poll(Wait::Forever, &mut completions).unwrap();
        for completion in completions {
            match completion {
                Completion::Accepted { result, .. } => {
                    let stream =
                        self.driver.add_stream(result.unwrap().0, &SocketOptions::default()).unwrap();
                    self.start(stream, send);
                }
                Completion::Connected { stream, result } => match result {
                    Ok(()) => self.start(stream, send),
                    Err(_) => self.ended = Some(false),
                },
                Completion::Received { stream, result, buffer } => match result {
                    Ok(0) => self.ended = Some(true),
                    Err(_) => self.ended = Some(false),
                    Ok(len) => {
                        self.received.extend_from_slice(&buffer.as_slice()[..len]);
                        self.driver.recv(stream, &[], buffer);
                    }
                },
                Completion::Sent { stream, result, .. } => {
                    self.sent = result.is_ok();
                    self.driver.close(stream);
                }
                _ => {}
            }
        }
    }

    fn start(&mut self, stream: Handle, send: Option<&Arc<Region>>) {
        self.stream = Some(stream);
        let Some(region) = send else {
            return self.driver.recv(stream, &[], Buffer::new(4096));
        };
        let region = self.driver.attach(Arc::clone(region));
        let mut outgoing = Box::new(Outgoing::new());
        outgoing.push_bytes(b"head");
        outgoing.push_seg(Seg { region, offset: 0, len: BYTES as u32 });
        outgoing.push_bytes(b"tail");
        self.driver.send(stream, outgoing);
    }
}

fn pattern() -> (Arc<Region>, Vec<u8>) {
    let region = Region::anonymous(BYTES).unwrap();
    let bytes: Vec<u8> = (0..BYTES).map(|n| (n * 31 % 251) as u8).collect();
    region.write(0, &bytes);
    (region, [b"head", &bytes[..], b"tail"].concat())
}

/// Sends the pattern from one host to the other; returns the received bytes, the result, and the time.
fn run(seed: u64, lossy: bool) -> (Vec<u8>, Option<bool>, u64) {
    let mut conditions = Conditions::random(&mut Rng::new(seed), lossy);
    // Most transfers are shorter than the connection lifetimes that a session needs.
    conditions.life_ns /= 50;
    let network = SimNetwork::new(seed, conditions);
    let (region, _) = pattern();
    let (mut server, mut client) = (Host::new(&network), Host::new(&network));
    let listener = server.driver.listen("127.0.0.1:0".parse().unwrap(), &SocketOptions::default()).unwrap();
    let addr = server.driver.local_addr(listener).unwrap();
    client.driver.connect(addr, &SocketOptions::default()).unwrap();
    while client.ended.is_none() {
        server.turn(Some(&region));
        client.turn(None);
        assert!(network.advance() || client.ended.is_some(), "nothing will ever happen again");
    }
    (client.received, client.ended, network.now())
}

#[test]
fn bytes_arrive_whole_and_in_order() {
    let (_, whole) = pattern();
    for_each_seed(300, |seed| {
        let (received, ended, _) = run(seed, false);
        assert_eq!(ended, Some(true));
        assert!(received == whole, "{} of {} bytes, or wrong ones", received.len(), whole.len());
    });
}

#[test]
fn a_lost_connection_gives_a_prefix_and_is_told() {
    let (_, whole) = pattern();
    let (mut lost, mut kept) = (0, 0);
    let is_full = for_each_seed(300, |seed| {
        let (received, ended, _) = run(seed, true);
        assert!(whole.starts_with(&received));
        match ended {
            Some(true) => kept += 1,
            _ => lost += 1,
        }
    });
    if is_full {
        assert!(lost > 20 && kept > 20, "{lost} lost, {kept} kept");
    }
}

#[test]
fn one_seed_gives_one_run() {
    for_each_seed(50, |seed| assert_eq!(run(seed, true), run(seed, true)));
}

#[test]
fn closing_hands_buffers_back_and_tells_the_other_end() {
    let network = SimNetwork::new(1, Conditions::calm());
    let (mut server, mut client) = (network.driver(), network.driver());
    let options = SocketOptions::default();
    let listener = server.listen("127.0.0.1:3260".parse().unwrap(), &options).unwrap();
    assert!(server.listen("127.0.0.1:3260".parse().unwrap(), &options).is_err());
    let stream = client.connect(server.local_addr(listener).unwrap(), &options).unwrap();
    let (mut done, mut accepted) = (Vec::new(), Vec::new());
    while !matches!(done.last(), Some(Completion::Connected { .. })) {
        assert!(network.advance());
        server.poll(Wait::Never, &mut accepted).unwrap();
        client.poll(Wait::Never, &mut done).unwrap();
    }
    client.recv(stream, &[], Buffer::new(64));
    client.close(stream);
    done.clear();
    client.poll(Wait::Never, &mut done).unwrap();
    assert!(matches!(&done[..], [Completion::Received { result: Err(_), buffer, .. }] if buffer.len() == 64));
    assert_eq!((accepted.len(), network.connections()), (1, 1));
    accepted.clear();
    assert!(network.advance(), "the close travels");
    assert_eq!(network.connections(), 0, "the socket that was not accepted is closed too");
}

#[test]
fn wakers_and_deadlines_move_the_clock() {
    let network = SimNetwork::new(1, Conditions::calm());
    let mut driver = network.driver();
    let mut done = Vec::new();
    driver.poll(Wait::Forever, &mut done).unwrap();
    assert!(!network.advance(), "nothing to wait for");
    let until = network.now() + 500;
    driver.poll(Wait::Until(until), &mut done).unwrap();
    assert!(network.advance());
    assert_eq!(network.now(), until);
    SimDriver::wake(&driver.waker());
    driver.poll(Wait::Forever, &mut done).unwrap();
    assert!(matches!(&done[..], [Completion::Woken]));
}

/// Data that a sender has sent is delivered after a silence, even if it has closed meanwhile, unless its kernel was
/// configured to give up before.
#[test]
fn a_silence_keeps_what_was_sent_until_somebody_gives_up() {
    let (region, whole) = pattern();
    let addr = "127.0.0.1:3260".parse().unwrap();
    for (silence_ms, direction) in [(900, "both"), (900, "to_client"), (5000, "both")] {
        let network = SimNetwork::new(7, Conditions { segment_bytes: 500, ..Conditions::calm() });
        let (mut server, mut client) = (Host::new(&network), Host::new(&network));
        server.driver.listen(addr, &SocketOptions::default()).unwrap();
        let options = SocketOptions { user_timeout_ms: Some(1000), ..SocketOptions::default() };
        client.driver.connect(addr, &options).unwrap();
        // The client sends: as the initiator does.
        while client.stream.is_none() {
            server.turn(None);
            client.turn(Some(&region));
            assert!(network.advance());
        }
        let wire =
            if direction == "both" { Wire::SILENT } else { Wire { to_server: true, to_client: false } };
        network.set_wire(addr.ip(), wire);
        let until = network.now() + silence_ms * 1_000_000;
        while network.now() < until {
            server.turn(None);
            client.turn(Some(&region));
            // No other event may be due before the silence is over.
            let mut nothing = Vec::new();
            client.driver.poll(Wait::Until(until), &mut nothing).unwrap();
            assert!(network.advance());
        }
        assert!(client.sent, "the kernel took it, silence or not");
        let got = server.received.len();
        assert!(direction != "both" || got < whole.len());
        network.set_wire(addr.ip(), Wire::WHOLE);
        while network.advance() {
            server.turn(None);
        }
        assert!(whole.starts_with(&server.received));
        let gave_up = silence_ms > 1000;
        assert_eq!(server.received.len() == whole.len(), !gave_up, "{silence_ms} ms, {direction}");
    }
}
