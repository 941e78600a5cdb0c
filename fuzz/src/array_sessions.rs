//! An array under several connections of several sessions, which do what the input says: commands, parts of their data,
//! aborts, resets, logouts, noise. Beside them one honest session checks its own volume, and at the end nothing of the
//! others may be left.

use linerate_io::{Buffer, Completion, Driver, Handle, Outgoing, SocketOptions, Wait};
use linerate_iscsi_target::{ArrayConfig, Worker};
use linerate_sim::{Conditions, SimDriver, SimNetwork, SimSocket};
use std::collections::VecDeque;

const BHS: usize = 48;
const CONNECTIONS: usize = 6;
const BLOCKS: u32 = 256;
/// Turns in which the array must come to rest.
const TURNS_MAX: u32 = 20_000;

/// CDBs of every kind of work: plain, of several steps, with and without data, long and short.
const CDBS: [&[u8]; 16] = [
    &[0x2a, 0, 0, 0, 0, 0, 0, 0, 16, 0],
    &[0x2a, 0, 0, 0, 0, 8, 0, 0, 128, 0],
    &[0x28, 0, 0, 0, 0, 0, 0, 0, 64, 0],
    &[0x28, 0, 0, 0, 0, 32, 0, 0, 200, 0],
    &[0x89, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0],
    &[0x2f, 2, 0, 0, 0, 0, 0, 0, 32, 0],
    &[0x2f, 0, 0, 0, 0, 0, 0, 0, 32, 0],
    &[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    &[0x41, 0, 0, 0, 0, 4, 0, 0, 8, 0],
    &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0],
    &[0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0],
    &[0x5f, 5, 1, 0, 0, 0, 0, 0, 24, 0],
    &[0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0],
    &[0xa0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0],
    &[0x12, 0, 0, 0, 255, 0],
    &[0, 0, 0, 0, 0, 0],
];

fn config() -> ArrayConfig {
    let volume = |lun: u8, name: &str, kind: &str| {
        format!(r#"{{"lun": {lun}, "name": "{name}", "size_bytes": {}, {kind}}}"#, BLOCKS * 512)
    };
    let json = format!(
        r#"{{"portals": ["127.0.0.1:3260"], "limits": {{"commands_per_session": 8, "memory_bytes": 33554432}},
            "targets": [{{"name": "iqn.2026-11.lab:evil", "volumes": [{}, {}]}},
                        {{"name": "iqn.2026-11.lab:honest", "volumes": [{}]}}]}}"#,
        volume(0, "e0", r#""kind": "memory""#),
        volume(1, "e1", r#""kind": "file", "path": "/e1""#),
        volume(0, "h0", r#""kind": "file", "path": "/h0""#),
    );
    serde_json::from_str(&json).expect("valid")
}

/// One connection.
#[derive(Default)]
struct Connection {
    stream: Option<Handle>,
    sending: bool,
    outbox: VecDeque<u8>,
    inbox: Vec<u8>,
    received: VecDeque<[u8; BHS]>,
    closed: bool,
    cmd_sn: u32,
    tsih: u16,
    last_itt: u32,
    r2t: Option<[u8; BHS]>,
    /// Bytes that were announced and not sent.
    owed: u32,
}

fn word(bhs: &[u8; BHS], at: usize) -> u32 {
    u32::from_be_bytes([bhs[at], bhs[at + 1], bhs[at + 2], bhs[at + 3]])
}

impl Connection {
    fn queue(&mut self, mut bhs: [u8; BHS], announced: u32, data: &[u8]) {
        bhs[5..8].copy_from_slice(&announced.to_be_bytes()[1..]);
        self.outbox.extend(bhs);
        self.outbox.extend(data);
        self.owed = announced.next_multiple_of(4).saturating_sub(data.len() as u32);
    }

    fn pay(&mut self, len: u32) {
        let len = len.min(self.owed);
        self.outbox.extend(std::iter::repeat_n(0xEE, len as usize));
        self.owed -= len;
    }

    fn request(&mut self, opcode: u8, flags: u8, lun: u8) -> [u8; BHS] {
        self.last_itt += 1;
        let mut bhs = [0; BHS];
        (bhs[0], bhs[1], bhs[9]) = (opcode, flags, lun);
        bhs[16..20].copy_from_slice(&self.last_itt.to_be_bytes());
        bhs[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        bhs
    }

    fn log_in(&mut self, isid: u8, tsih: u16, cid: u8, text: &str) {
        let mut bhs = self.request(0x43, 0x87, 0);
        (bhs[8], bhs[13], bhs[21]) = (0x80, isid, cid);
        bhs[14..16].copy_from_slice(&tsih.to_be_bytes());
        let mut data = text.as_bytes().to_vec();
        data.resize(data.len().next_multiple_of(4), 0);
        self.queue(bhs, text.len() as u32, &data);
        self.owed = 0;
    }

    fn command(&mut self, lun: u8, cdb: &[u8], flags: u8, expected: u32) -> [u8; BHS] {
        let mut bhs = self.request(0x01, flags, lun);
        bhs[20..24].copy_from_slice(&expected.to_be_bytes());
        bhs[32..32 + cdb.len()].copy_from_slice(cdb);
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        bhs
    }

    /// Takes PDUs off what was received, as far as they are whole.
    fn parse(&mut self) {
        while let Some(bhs) = self.inbox.first_chunk::<BHS>().copied() {
            let len = BHS + (word(&bhs, 4) & 0x00ff_ffff).next_multiple_of(4) as usize;
            if self.inbox.len() < len {
                return;
            }
            self.inbox.drain(..len);
            match bhs[0] & 0x3f {
                0x23 => self.tsih = u16::from_be_bytes([bhs[14], bhs[15]]),
                0x31 => self.r2t = Some(bhs),
                _ => {}
            }
            self.received.push_back(bhs);
            self.received.truncate(64);
        }
    }
}

/// A host with connections.
struct Host {
    driver: SimDriver,
    connections: Vec<Connection>,
}

impl Host {
    fn new(network: &SimNetwork, connections: usize) -> Self {
        let connections =
            (0..connections).map(|_| Connection { cmd_sn: 1, ..Connection::default() }).collect();
        Self { driver: network.driver(), connections }
    }

    fn connect(&mut self, at: usize) {
        self.close(at);
        let addr = "127.0.0.1:3260".parse().expect("an address");
        let stream = self.driver.connect(addr, &SocketOptions::default()).expect("a stream");
        // Nothing is sent before the connection is up.
        self.connections[at] =
            Connection { stream: Some(stream), sending: true, cmd_sn: 1, ..Connection::default() };
    }

    fn close(&mut self, at: usize) {
        if let Some(stream) = std::mem::take(&mut self.connections[at]).stream {
            self.driver.close(stream);
        }
    }

    fn turn(&mut self) {
        let mut completions = Vec::new();
        self.driver.poll(Wait::Forever, &mut completions).expect("polls");
        for completion in completions {
            self.complete(completion);
        }
        for connection in &mut self.connections {
            let Some(stream) = connection.stream else { continue };
            if !connection.sending && !connection.closed && !connection.outbox.is_empty() {
                let bytes: Vec<u8> = connection.outbox.drain(..).collect();
                connection.sending = true;
                let mut list = Outgoing::new();
                list.push_bytes(&bytes);
                self.driver.send(stream, Box::new(list));
            }
        }
    }

    fn complete(&mut self, completion: Completion<SimSocket>) {
        let (Completion::Connected { stream, .. }
        | Completion::Received { stream, .. }
        | Completion::Sent { stream, .. }) = completion
        else {
            return;
        };
        let Some(connection) = self.connections.iter_mut().find(|one| one.stream == Some(stream)) else {
            return;
        };
        match completion {
            Completion::Connected { result, .. } => {
                (connection.sending, connection.closed) = (false, result.is_err());
                if result.is_ok() {
                    self.driver.recv(stream, &[], Buffer::new(65_536));
                }
            }
            Completion::Received { result, buffer, .. } => match result {
                Ok(count) if count > 0 => {
                    connection.inbox.extend_from_slice(&buffer.as_slice()[..count]);
                    connection.parse();
                    self.driver.recv(stream, &[], buffer);
                }
                _ => connection.closed = true,
            },
            Completion::Sent { .. } => connection.sending = false,
            _ => {}
        }
    }
}

/// The array, those who do what the input says, and the honest one.
struct Scene {
    network: SimNetwork,
    worker: Worker<SimDriver>,
    evil: Host,
    honest: Host,
    /// What the honest one does: 0 logs in, then writes (odd) and reads (even).
    step: u32,
    waits: bool,
}

impl Scene {
    fn new() -> Self {
        let network = SimNetwork::new(1, Conditions::calm());
        let worker = Worker::alone(network.driver(), &config(), |bytes| bytes.fill(0x5a)).expect("an array");
        let (evil, mut honest) = (Host::new(&network, CONNECTIONS), Host::new(&network, 1));
        honest.connect(0);
        Self { network, worker, evil, honest, step: 0, waits: false }
    }

    /// Two sessions, the first of two connections, whose unit attentions have been taken.
    fn begin(&mut self) {
        let names = "InitiatorName=iqn.2026-11.lab:e\0TargetName=iqn.2026-11.lab:evil\0";
        for (at, keys) in [(0, "MaxConnections=4\0"), (2, "InitialR2T=No\0")] {
            self.evil.connect(at);
            self.turns(4);
            self.evil.connections[at].log_in(at as u8, 0, 0, &format!("{names}{keys}"));
            self.turns(4);
            for lun in [0, 1, 0, 1] {
                let bhs = self.evil.connections[at].command(lun, &[0; 6], 0x81, 0);
                self.evil.connections[at].queue(bhs, 0, &[]);
                self.turns(4);
            }
        }
        self.evil.connect(1);
        self.turns(4);
        let (tsih, cmd_sn) = (self.evil.connections[0].tsih, self.evil.connections[0].cmd_sn);
        let second = &mut self.evil.connections[1];
        (second.cmd_sn, second.last_itt) = (cmd_sn, 1000);
        second.log_in(0, tsih, 1, names);
        self.turns(4);
        assert_eq!(self.worker.stats().connections, 4, "all are in");
    }

    fn turns(&mut self, count: u32) {
        for _ in 0..count {
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.worker.turn(Wait::Forever).expect("turns");
        self.worker.turn(Wait::Forever).expect("turns");
        self.evil.turn();
        self.behave();
        self.honest.turn();
        self.network.advance();
    }

    /// The honest one goes on: it writes a block that tells its number and reads it back.
    fn behave(&mut self) {
        let connection = &mut self.honest.connections[0];
        assert!(!connection.closed, "the honest session is closed");
        let fill = |step: u32| (step / 2 % 251) as u8;
        let block = |step: u32| (step / 2 % BLOCKS) as u8;
        while let Some(bhs) = connection.received.pop_front() {
            match bhs[0] & 0x3f {
                0x23 => assert_eq!(bhs[36], 0, "the honest login is refused"),
                0x21 | 0x25 if bhs[3] == 2 => self.step = self.step.saturating_sub(1),
                0x21 | 0x25 => assert_eq!(bhs[3], 0, "an honest command fails"),
                _ => continue,
            }
            (self.waits, self.step) = (false, self.step + 1);
        }
        if self.waits {
            return;
        }
        self.waits = true;
        match self.step {
            0 => connection.log_in(
                9,
                0,
                0,
                "InitiatorName=iqn.2026-11.lab:h\0TargetName=iqn.2026-11.lab:honest\0",
            ),
            step if step % 2 == 1 => {
                let cdb = [0x2a, 0, 0, 0, 0, block(step), 0, 0, 1, 0];
                let bhs = connection.command(0, &cdb, 0xa1, 512);
                connection.queue(bhs, 512, &[fill(step); 512]);
            }
            step => {
                // VERIFY compares on the array, so what comes back is one status.
                let cdb = [0x2f, 2, 0, 0, 0, block(step - 1), 0, 0, 1, 0];
                let bhs = connection.command(0, &cdb, 0xa1, 512);
                connection.queue(bhs, 512, &[fill(step - 1); 512]);
            }
        }
    }

    /// Everything that the input began is over, and the honest one gets on.
    fn settle(&mut self) {
        for at in 0..CONNECTIONS {
            self.evil.close(at);
        }
        let until = self.step + 4;
        for _ in 0..TURNS_MAX {
            self.turn();
            let stats = self.worker.stats();
            if self.step >= until && stats.sessions == 1 && stats.tasks <= 1 {
                break;
            }
        }
        let stats = self.worker.stats();
        assert!(self.step >= until, "the honest session is not served");
        assert!(stats.tasks <= 1 && stats.pool_bytes <= 65_536, "{stats:?}: something is left");
        assert_eq!(stats.sessions, 1);
    }
}

/// See the file's text.
pub fn array_sessions(data: &[u8]) {
    let mut scene = Scene::new();
    scene.begin();
    let mut input = super::Input(data);
    let mut actions = 0;
    while !input.0.is_empty() && actions < 200 {
        actions += 1;
        let (what, who) = (input.byte(), usize::from(input.byte()) % CONNECTIONS);
        act(&mut scene, &mut input, what % 16, who);
        scene.turns(u32::from(what >> 6) * 4);
    }
    scene.settle();
}

fn act(scene: &mut Scene, input: &mut super::Input<'_>, what: u8, who: usize) {
    let other = &scene.evil.connections[usize::from(input.byte()) % CONNECTIONS];
    let (other_tsih, other_itt, other_sn) = (other.tsih, other.last_itt, other.cmd_sn);
    let connection = &mut scene.evil.connections[who];
    match what {
        0 => scene.evil.connect(who),
        1 | 2 => {
            let names = "InitiatorName=iqn.2026-11.lab:e\0TargetName=iqn.2026-11.lab:evil\0";
            let choice = input.byte();
            let keys = ["MaxConnections=4\0", "MaxConnections=4\0InitialR2T=No\0", "DataDigest=CRC32C\0"];
            let (tsih, keys) = if what == 1 { (0, keys[usize::from(choice) % 3]) } else { (other_tsih, "") };
            if what == 2 {
                (connection.cmd_sn, connection.last_itt) = (other_sn, other_itt + 1000);
            }
            connection.log_in(choice >> 6, tsih, who as u8, &format!("{names}{keys}"));
        }
        3..=5 => {
            let (cdb, flags) = (CDBS[usize::from(input.byte()) % CDBS.len()], input.byte());
            let (expected, immediate) = (u32::from(input.byte()) * 512, u32::from(input.byte()) * 64);
            let sent = usize::from(input.byte()) * 64;
            let bhs = connection.command(flags & 1, cdb, flags & 0xe0 | 1, expected);
            let data = vec![0x11; sent.min(immediate as usize)];
            connection.queue(bhs, immediate, &data);
        }
        6 | 7 => {
            let (flags, len, sent) = (input.byte() & 0x80, u32::from(input.byte()) * 64, input.byte());
            let Some(r2t) = connection.r2t else { return };
            let mut bhs = [0; BHS];
            (bhs[0], bhs[1]) = (0x05, flags);
            bhs[8..24].copy_from_slice(&r2t[8..24]);
            bhs[40..44].copy_from_slice(&r2t[40..44]);
            let len = if what == 6 { word(&r2t, 44) } else { len };
            connection.queue(bhs, len, &vec![0x22; usize::from(sent).min(len as usize)]);
        }
        8 => connection.pay(u32::from(input.byte()) * 512 + 1),
        9 | 10 => {
            let function = if what == 9 { 1 } else { input.byte() % 9 };
            let mut bhs = connection.request(0x42, 0x80 | function, input.byte() & 1);
            bhs[20..24].copy_from_slice(&other_itt.to_be_bytes());
            bhs[32..36].copy_from_slice(&other_sn.wrapping_sub(1).to_be_bytes());
            connection.queue(bhs, 0, &[]);
        }
        11 => {
            let len = usize::from(input.byte());
            connection.outbox.extend(input.take(len));
        }
        12 => {
            let mut bhs = connection.request(0x46, 0x80 | (input.byte() % 3), 0);
            bhs[21] = input.byte() % CONNECTIONS as u8;
            connection.queue(bhs, 0, &[]);
        }
        13 => scene.evil.close(who),
        // One session numbers its commands over all its connections.
        14 => connection.cmd_sn = other_sn.wrapping_add(u32::from(input.byte() % 3)),
        _ => {
            let mut bhs = connection.request(0x40, 0x80, 0);
            bhs[20..24].copy_from_slice(&u32::MAX.to_be_bytes());
            let len = u32::from(input.byte());
            connection.queue(bhs, len, &vec![0x33; len.next_multiple_of(4) as usize]);
        }
    }
}
