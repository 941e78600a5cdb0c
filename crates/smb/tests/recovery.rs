//! A connection is lost in the middle of writes: everything is written, and the file is the same one where Samba keeps it.

#![allow(clippy::unwrap_used, reason = "a test's unwrap is an assertion")]

mod fake;
mod peers;

use fake::Fake;
use linerate_io::{Driver, EpollDriver, Nanos, Region, Seg, Wait};
use linerate_smb::wire::negotiate::Dialect;
use linerate_smb::{
    EncryptionChoice, SigningChoice, SmbAddress, SmbClient, SmbCredentials, SmbEvent, SmbEventKind,
    SmbFileId, SmbFileState, SmbIo, SmbIoDone, SmbIoError, SmbMode, SmbOp, SmbOptions, SmbSink,
};
use peers::Samba;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const SLOTS: u32 = 16;
const LEN: u32 = 48 * 1024;
const IOS: u32 = 600;
const SECOND: Nanos = 1_000_000_000;

/// A relay to a server whose connections can be cut.
struct Relay {
    port: u16,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let open = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&open);
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                kept.lock().unwrap().extend([client, server]);
            }
        });
        Self { port: own, open }
    }

    fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[derive(Default)]
struct Seen {
    done: Vec<SmbIoDone>,
    events: Vec<SmbEventKind>,
}

impl SmbSink for Seen {
    fn done(&mut self, done: SmbIoDone) {
        self.done.push(done);
    }

    fn event(&mut self, event: SmbEvent) {
        self.events.push(event.kind);
    }
}

impl Seen {
    /// Of each restored connection, whether the server had kept the file.
    fn kept(&self) -> Vec<bool> {
        let kept = |event: &SmbEventKind| match event {
            SmbEventKind::ConnectionRestored { is_same_handle, .. } => Some(*is_same_handle),
            _ => None,
        };
        self.events.iter().filter_map(kept).collect()
    }
}

/// One open file, and a loop of writes and reads on it.
struct Load {
    driver: EpollDriver,
    client: SmbClient,
    file: SmbFileId,
    region: Arc<Region>,
    seen: Seen,
}

fn options() -> SmbOptions {
    SmbOptions {
        login_timeout_s: 5.0,
        command_timeout_s: 5.0,
        replacement_timeout_s: 20.0,
        ..SmbOptions::default()
    }
}

impl Load {
    fn open(url: &str, options: &SmbOptions, credentials: SmbCredentials, mode: SmbMode) -> Self {
        let mut driver = EpollDriver::new().unwrap();
        let mut client = SmbClient::new();
        let region = Region::anonymous(u64::from(SLOTS * LEN)).unwrap();
        client.attach(&mut driver, &region);
        let address = SmbAddress::parse(url).unwrap();
        let file = client.open(&mut driver, &address, options, credentials, mode).unwrap();
        client.wait_ready(&mut driver).unwrap();
        assert_eq!(*client.state(file), SmbFileState::Ready);
        Self { driver, client, file, region, seen: Seen::default() }
    }

    fn of_samba(port: u16, options: &SmbOptions) -> Self {
        let credentials = SmbCredentials::of_user(Some(Samba::USER), Some(Samba::PASSWORD));
        let mode = SmbMode { write: true, create_bytes: Some(u64::from(IOS * LEN)) };
        Self::open(&format!("smb://127.0.0.1:{port}/share/a.img"), options, credentials, mode)
    }

    fn turn(&mut self) {
        self.client.flush(&mut self.driver);
        let mut completions = Vec::new();
        let until = self.driver.now() + 20_000_000;
        self.driver.poll(Wait::Until(until), &mut completions).unwrap();
        for completion in completions {
            self.client.handle_completion(&mut self.driver, completion, &mut self.seen);
        }
        let now = self.driver.now();
        self.client.on_time(&mut self.driver, now, &mut self.seen);
    }

    fn submit(&mut self, number: u32, slot: u32, write: bool) {
        let id = linerate_io::RegionId::new(0);
        let seg = Seg { region: id, offset: u64::from(slot * LEN), len: LEN };
        let op = if write { SmbOp::Write { from: seg, durable: false } } else { SmbOp::Read(Some(seg)) };
        if write {
            self.region.write(seg.offset, &block(number));
        } else {
            self.region.fill(seg.offset, LEN.into(), &[0xCC]);
        }
        let io = SmbIo { slot, op, offset_bytes: u64::from(number) * u64::from(LEN), len_bytes: LEN };
        self.client.submit(self.file, &io).unwrap();
    }

    /// Writes every block, or reads and compares every block; `disturb` is called after each end with how many there were.
    fn run(&mut self, write: bool, mut disturb: impl FnMut(u32)) {
        let mut numbers = vec![0; SLOTS as usize];
        let (mut started, mut ended) = (0, 0);
        let mut free: Vec<u32> = (0..SLOTS).collect();
        let mut last_at = self.driver.now();
        while ended < IOS {
            while started < IOS
                && let Some(slot) = free.pop()
            {
                numbers[slot as usize] = started;
                self.submit(started, slot, write);
                started += 1;
            }
            self.turn();
            for done in std::mem::take(&mut self.seen.done) {
                assert_eq!(done.result, Ok(()), "I/O {}", numbers[done.slot as usize]);
                if !write {
                    let expected = block(numbers[done.slot as usize]);
                    assert_eq!(self.region.compare(u64::from(done.slot * LEN), &expected), None);
                }
                free.push(done.slot);
                ended += 1;
                last_at = self.driver.now();
                disturb(ended);
            }
            assert!(
                self.driver.now() < last_at + 15 * SECOND,
                "nothing ended for 15 s: {:?}",
                self.seen.events
            );
        }
    }

    fn close(mut self) -> Seen {
        self.client.close(&mut self.driver, SECOND, &mut self.seen).unwrap();
        self.seen
    }
}

fn block(number: u32) -> Vec<u8> {
    (0..LEN).map(|at| (at / 5) as u8 ^ (number * 37) as u8).collect()
}

fn image() -> Vec<u8> {
    (0..IOS).flat_map(block).collect()
}

#[test]
fn connections_cut_in_the_middle_of_writes_lose_nothing_and_samba_keeps_the_file() {
    let Some(samba) = Samba::start("") else { return };
    let relay = Relay::to(samba.port);
    let ways = [
        (SmbOptions { dialect: Some(Dialect::Smb210), ..options() }, "v1"),
        (SmbOptions { dialect: Some(Dialect::Smb302), signing: SigningChoice::On, ..options() }, "v2"),
        (SmbOptions { max_io_bytes: Some(16_384), ..options() }, "v2"),
        (SmbOptions { encryption: EncryptionChoice::On, ..options() }, "v2"),
    ];
    for (way, version) in ways {
        let _ = std::fs::remove_file(samba.path("a.img"));
        let mut load = Load::of_samba(relay.port, &way);
        assert_eq!(load.client.facts(load.file).unwrap().durable, Some(version), "{way:?}");
        load.run(true, |ended| {
            if ended % 150 == 50 {
                relay.cut();
            }
        });
        assert!(std::fs::read(samba.path("a.img")).unwrap() == image(), "{way:?}");
        load.run(false, |ended| {
            if ended == 300 {
                relay.cut();
            }
        });
        let kept = load.close().kept();
        assert!(kept.len() >= 2, "{way:?}: {kept:?}");
        assert!(kept.iter().all(|kept| *kept), "{way:?}: the file was opened again: {kept:?}");
    }
}

#[test]
fn a_server_that_keeps_no_file_gets_it_opened_again() {
    let Some(samba) = Samba::start("durable handles = no") else { return };
    let relay = Relay::to(samba.port);
    for way in [options(), SmbOptions { durable: false, ..options() }] {
        let mut load = Load::of_samba(relay.port, &way);
        assert_eq!(load.client.facts(load.file).unwrap().durable, None);
        load.run(true, |ended| {
            if ended == 200 {
                relay.cut();
            }
        });
        assert!(std::fs::read(samba.path("a.img")).unwrap() == image());
        assert_eq!(load.close().kept(), [false]);
    }
}

#[test]
fn a_server_that_was_killed_and_started_again_loses_nothing() {
    let Some(samba) = Samba::start("") else { return };
    let samba = std::cell::RefCell::new(samba);
    let port = samba.borrow().port;
    let mut load = Load::of_samba(port, &options());
    load.run(true, |ended| {
        if ended == 200 {
            let mut samba = samba.borrow_mut();
            samba.stop();
            samba.start_again();
        }
    });
    load.run(false, |_| ());
    assert!(std::fs::read(samba.borrow().path("a.img")).unwrap() == image());
    assert_eq!(load.close().kept().len(), 1);
}

#[test]
fn a_connection_that_is_not_restored_in_time_ends_the_file_with_its_reason() {
    let is_first = AtomicBool::new(true);
    let fake = Fake::start(move |peer| {
        if is_first.swap(false, Relaxed) {
            peer.log_on()?;
        }
        // After the first request, of the I/O or of the next attempt, the connection ends.
        peer.read().map(|_| ())
    });
    let way = SmbOptions { replacement_timeout_s: 0.6, login_timeout_s: 0.2, ..options() };
    let mode = SmbMode { write: true, create_bytes: None };
    let url = format!("smb://{}/share/file", fake.addr);
    let mut load = Load::open(&url, &way, SmbCredentials::of_user(None, None), mode);
    load.submit(0, 0, true);
    let started_at = load.driver.now();
    while load.seen.done.is_empty() {
        load.turn();
        assert!(load.driver.now() < started_at + 10 * SECOND, "{:?}", load.seen.events);
    }
    assert_eq!(load.seen.done, [SmbIoDone { slot: 0, result: Err(SmbIoError::Lost) }]);
    let SmbFileState::Failed(failure) = load.client.state(load.file) else { panic!("it has not failed") };
    let words = failure.to_string();
    assert!(words.contains("the server closed the connection") || words.contains("broke"), "{words}");
    assert!(words.contains("within 0.6 s (smb.replacement_timeout_s)"), "{words}");
    assert!(load.driver.now() >= started_at + 6 * SECOND / 10, "it gave up early");
}

#[test]
fn another_client_that_opens_the_file_does_not_wait_for_this_one() {
    let Some(samba) = Samba::start("") else { return };
    let mut first = Load::of_samba(samba.port, &options());
    let started_at = first.driver.now();
    let port = samba.port;
    let second = std::thread::spawn(move || Load::of_samba(port, &options()).close());
    while !second.is_finished() {
        first.turn();
        assert!(first.driver.now() < started_at + 4 * SECOND, "the oplock was not given up");
    }
    second.join().unwrap();
    assert_eq!(first.client.facts(first.file).unwrap().durable, None, "it is durable no more");
    first.run(true, |_| ());
    first.close();
}
