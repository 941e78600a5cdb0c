//! A load on one file whose writes and reads are checked, and a relay whose connections it loses.

#![allow(dead_code, clippy::unwrap_used, reason = "every test file uses its own part")]

use crate::peers::Samba;
use linerate_io::{Driver, EpollDriver, Nanos, Region, Seg, Wait};
use linerate_smb::{
    SmbAddress, SmbClient, SmbCredentials, SmbEvent, SmbEventKind, SmbFileId, SmbFileState, SmbIo, SmbIoDone,
    SmbMode, SmbOp, SmbOptions, SmbSink,
};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const SLOTS: u32 = 16;
const LEN: u32 = 48 * 1024;
pub(crate) const IOS: u32 = 600;
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// A relay to a server whose connections can be cut.
pub(crate) struct Relay {
    pub(crate) port: u16,
    pub(crate) open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    pub(crate) fn to(port: u16) -> Self {
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

    /// Cuts one connection, by the order in which they were made.
    pub(crate) fn cut_one(&self, number: usize) {
        for stream in self.open.lock().unwrap().iter().skip(2 * number).take(2) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Ends the connections as the server sees them. The client's end follows when the server has closed, so that the
    /// server cannot take the next connection for a second one of the same client.
    pub(crate) fn cut_at_the_server(&self) {
        for pair in self.open.lock().unwrap().drain(..).as_slice().chunks_exact(2) {
            let [client, server] = pair else { unreachable!("pairs") };
            let _ = client.shutdown(Shutdown::Read);
            let _ = server.shutdown(Shutdown::Write);
        }
    }

    pub(crate) fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Starts a relay to a server, and returns its port. `change` gets each answer with the number of its connection.
pub(crate) fn relay_answers(port: u16, change: impl Fn(usize, &mut [u8]) + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for number in 0.. {
            let Ok((client, _)) = listener.accept() else { return };
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
            let change = change.clone();
            std::thread::spawn(move || pass_answers(server, client, |answer| change(number, answer)));
        }
    });
    own
}

/// Until one side ends.
fn pass_answers(mut from: TcpStream, mut to: TcpStream, change: impl Fn(&mut [u8])) -> std::io::Result<()> {
    loop {
        let mut len = [0; 4];
        from.read_exact(&mut len)?;
        let mut answer = vec![0; u32::from_be_bytes(len) as usize];
        from.read_exact(&mut answer)?;
        change(&mut answer);
        to.write_all(&len)?;
        to.write_all(&answer)?;
    }
}

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) done: Vec<SmbIoDone>,
    pub(crate) events: Vec<SmbEventKind>,
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
    pub(crate) fn kept(&self) -> Vec<bool> {
        let kept = |event: &SmbEventKind| match event {
            SmbEventKind::ConnectionRestored { is_same_handle, .. } => Some(*is_same_handle),
            _ => None,
        };
        self.events.iter().filter_map(kept).collect()
    }
}

/// One open file, and a loop of writes and reads on it.
pub(crate) struct Load {
    pub(crate) driver: EpollDriver,
    pub(crate) client: SmbClient,
    pub(crate) file: SmbFileId,
    pub(crate) region: Arc<Region>,
    pub(crate) seen: Seen,
}

pub(crate) fn options() -> SmbOptions {
    SmbOptions {
        login_timeout_s: 5.0,
        command_timeout_s: 5.0,
        replacement_timeout_s: 20.0,
        ..SmbOptions::default()
    }
}

impl Load {
    pub(crate) fn open(url: &str, options: &SmbOptions, credentials: SmbCredentials, mode: SmbMode) -> Self {
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

    pub(crate) fn of_samba(port: u16, options: &SmbOptions) -> Self {
        let credentials = SmbCredentials::of_user(Some(Samba::USER), Some(Samba::PASSWORD));
        let mode = SmbMode { write: true, create_bytes: Some(u64::from(IOS * LEN)) };
        Self::open(&format!("smb://127.0.0.1:{port}/share/a.img"), options, credentials, mode)
    }

    pub(crate) fn turn(&mut self) {
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

    pub(crate) fn submit(&mut self, number: u32, slot: u32, write: bool) {
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
    pub(crate) fn run(&mut self, write: bool, mut disturb: impl FnMut(u32)) {
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

    pub(crate) fn close(mut self) -> Seen {
        self.client.close(&mut self.driver, SECOND, &mut self.seen).unwrap();
        self.seen
    }
}

pub(crate) fn block(number: u32) -> Vec<u8> {
    (0..LEN).map(|at| (at / 5) as u8 ^ (number * 37) as u8).collect()
}

pub(crate) fn image() -> Vec<u8> {
    (0..IOS).flat_map(block).collect()
}
