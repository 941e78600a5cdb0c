//! The SMB client against a server whose answers the input changes: every I/O ends once, and the connection too.

use linerate_io::{Buffer, Completion, Driver, Handle, Outgoing, Region, RegionId, Seg, SocketOptions, Wait};
use linerate_sim::{Conditions, SimDriver, SimNetwork};
use linerate_smb::wire::status::Status;
use linerate_smb::{
    SmbAddress, SmbClient, SmbCredentials, SmbFileId, SmbFileState, SmbIo, SmbIoDone, SmbMode, SmbOp,
    SmbOptions,
};
use std::sync::{Arc, Mutex};

#[path = "../../crates/smb/tests/fake/answers.rs"]
mod answers;

use answers::{Answers, Asked, FILE_BYTES};

const PREFIX_BYTES: usize = 4;
const SLOTS: u32 = 4;
const SLOT_BYTES: u32 = 128 * 1024;
const LENS: [u32; 3] = [4096, 1, 100_000];
/// Turns in which a connection must end whose input has ended.
const TURNS_MAX: u32 = 20_000;
const STATUSES: [Status; 6] = [
    Status::PENDING,
    Status::CANCELLED,
    Status::END_OF_FILE,
    Status::ACCESS_DENIED,
    Status::NETWORK_NAME_DELETED,
    Status::MORE_PROCESSING_REQUIRED,
];

/// The server: it answers each request as the next byte of the input says, and hangs up when the input has ended.
struct Server<'a> {
    driver: SimDriver,
    stream: Option<Handle>,
    answers: Answers,
    input: super::Input<'a>,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    is_sending: bool,
}

impl Server<'_> {
    fn turn(&mut self) {
        let mut completions = Vec::new();
        self.driver.poll(Wait::Forever, &mut completions).expect("polls");
        for completion in completions {
            match completion {
                Completion::Accepted { result: Ok((socket, _)), .. } => {
                    let stream = self.driver.add_stream(socket, &SocketOptions::default()).expect("a stream");
                    self.driver.recv(stream, &[], Buffer::new(65_536));
                    self.stream = Some(stream);
                }
                Completion::Received { stream, result: Ok(count), buffer } if count > 0 => {
                    self.inbox.extend_from_slice(&buffer.as_slice()[..count]);
                    self.driver.recv(stream, &[], buffer);
                }
                Completion::Received { .. } => self.hang_up(),
                Completion::Sent { .. } => self.is_sending = false,
                _ => {}
            }
        }
        while let Some(asked) = self.next_request() {
            self.answer(&asked);
        }
        let Some(stream) = self.stream else { return };
        if !self.is_sending && !self.outbox.is_empty() {
            let mut list = Outgoing::new();
            list.push_bytes(&std::mem::take(&mut self.outbox));
            self.is_sending = true;
            self.driver.send(stream, Box::new(list));
        } else if !self.is_sending && self.input.0.is_empty() {
            self.hang_up();
        }
    }

    fn hang_up(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.driver.close(stream);
        }
    }

    fn next_request(&mut self) -> Option<Asked> {
        let len = u32::from_be_bytes(*self.inbox.first_chunk()?) as usize;
        let message = self.inbox.get(PREFIX_BYTES..PREFIX_BYTES + len)?.to_vec();
        self.inbox.drain(..PREFIX_BYTES + len);
        Some(Asked::of(message).expect("what we send has a header"))
    }

    fn answer(&mut self, asked: &Asked) {
        let good = self.answers.of_step(asked).or_else(|| self.answers.of_file(asked));
        let mut bytes = good.expect("what we ask for is possible");
        match self.input.byte() % 8 {
            0 | 1 => {}
            2 => {
                for _ in 0..=self.input.byte() % 8 {
                    let at = usize::from(self.input.byte()) % bytes.len();
                    bytes[at] = self.input.byte();
                }
            }
            3 => {
                let choice = usize::from(self.input.byte()) % STATUSES.len();
                bytes[PREFIX_BYTES + 8..][..4].copy_from_slice(&STATUSES[choice].0.to_le_bytes());
            }
            4 => {
                let len = usize::from(self.input.byte()).min(bytes.len() - PREFIX_BYTES);
                bytes.truncate(PREFIX_BYTES + len);
                bytes[..PREFIX_BYTES].copy_from_slice(&(len as u32).to_be_bytes());
            }
            5 => {
                let pending = self.answers.pending(asked, self.input.byte().into());
                self.outbox.extend(pending);
            }
            6 => {
                let len = usize::from(self.input.byte());
                bytes = self.input.take(len).to_vec();
            }
            _ => bytes.clear(),
        }
        self.outbox.extend(bytes);
    }
}

/// The client, and the I/Os that it has.
struct Load {
    driver: SimDriver,
    client: SmbClient,
    file: SmbFileId,
    region: RegionId,
    busy: [bool; SLOTS as usize],
    submitted: u32,
}

impl Load {
    fn turn(&mut self) {
        if *self.client.state(self.file) == SmbFileState::Ready {
            self.submit();
        }
        self.client.flush(&mut self.driver);
        let until = self.client.next_deadline().map_or(Wait::Forever, Wait::Until);
        let (mut completions, mut done) = (Vec::new(), Vec::<SmbIoDone>::new());
        self.driver.poll(until, &mut completions).expect("polls");
        for completion in completions {
            self.client.handle_completion(&mut self.driver, completion, &mut done);
        }
        let now = self.driver.now();
        self.client.on_time(&mut self.driver, now, &mut done);
        for io in done {
            assert!(std::mem::take(&mut self.busy[io.slot as usize]), "an I/O ended twice");
        }
    }

    fn submit(&mut self) {
        let most_bytes = self.client.facts(self.file).expect("an open file has facts").max_io_bytes;
        for slot in 0..SLOTS {
            let len_bytes = LENS[self.submitted as usize % LENS.len()].min(most_bytes);
            if self.busy[slot as usize] || len_bytes == 0 {
                continue;
            }
            let seg = Seg { region: self.region, offset: u64::from(slot * SLOT_BYTES), len: len_bytes };
            let op = match self.submitted % 5 {
                0 | 1 => SmbOp::Read(Some(seg)),
                2 => SmbOp::Read(None),
                3 => SmbOp::Write { from: seg, durable: self.submitted.is_multiple_of(2) },
                _ => SmbOp::Flush,
            };
            let io = SmbIo { slot, op, offset_bytes: u64::from(slot) * 65_536, len_bytes };
            self.client.submit(self.file, &io).expect("the file is ready");
            self.busy[slot as usize] = true;
            self.submitted += 1;
        }
    }
}

/// See the file's text.
pub fn smb_answers(data: &[u8]) {
    let network = SimNetwork::new(1, Conditions::calm());
    let mut driver = network.driver();
    let portal = "127.0.0.1:445".parse().expect("an address");
    driver.listen(portal, &SocketOptions::default()).expect("a listener");
    let mut server = Server {
        driver,
        stream: None,
        answers: Answers::new(Arc::new(Mutex::new(vec![0; FILE_BYTES]))),
        input: super::Input(data),
        inbox: Vec::new(),
        outbox: Vec::new(),
        is_sending: false,
    };
    let mut driver = network.driver();
    let mut client = SmbClient::new();
    let memory = Region::anonymous(u64::from(SLOTS * SLOT_BYTES)).expect("memory");
    let region = client.attach(&mut driver, &memory);
    let address = SmbAddress::parse("smb://127.0.0.1:445/share/file").expect("an address");
    let mode = SmbMode { write: true, create_bytes: Some(FILE_BYTES as u64) };
    let credentials = SmbCredentials::of_user(Some("user"), Some("password"));
    let options = SmbOptions { replacement_timeout_s: 0.0, ..SmbOptions::default() };
    let file = client.open(&mut driver, &address, &options, credentials, mode).expect("opens");
    let mut load = Load { driver, client, file, region, busy: [false; SLOTS as usize], submitted: 0 };
    for _ in 0..TURNS_MAX {
        load.turn();
        server.turn();
        if matches!(load.client.state(file), SmbFileState::Failed(_)) {
            assert_eq!(load.busy, [false; SLOTS as usize], "an I/O of a lost file has not ended");
            return;
        }
        network.advance();
    }
    panic!("the connection has no end");
}
