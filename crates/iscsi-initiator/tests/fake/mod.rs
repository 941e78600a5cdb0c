//! A target for tests: plain sockets, one thread, one script per connection.
//!
//! [`Peer`] supports enough iSCSI and SCSI to be a disk ([`Peer::serve`]); a script takes over for its faults.

#![allow(dead_code, reason = "every test file uses its own part")]

use linerate_iscsi_initiator::SessionOptions;
use linerate_iscsi_proto::frame::Framer;
use linerate_iscsi_proto::params::DigestKind;
use linerate_iscsi_proto::pdu::*;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) const BLOCK: usize = 512;
pub(crate) const BLOCKS: u64 = 2048;
pub(crate) const IQN: &str = "iqn.2026-11.lab.linerate:fake";

/// READ (16) and WRITE (16), SBC-4.
pub(crate) const READ: u8 = 0x88;
pub(crate) const WRITE: u8 = 0x8a;

/// A session that gives up after seconds.
pub(crate) fn options() -> SessionOptions {
    SessionOptions {
        login_timeout_s: 3.0,
        command_timeout_s: 3.0,
        replacement_timeout_s: 5.0,
        ..SessionOptions::default()
    }
}

/// State that scripts and tests share.
pub(crate) type Disk = Arc<Mutex<Vec<u8>>>;

/// The listening side.
pub(crate) struct Fake {
    pub(crate) addr: SocketAddr,
    pub(crate) disk: Disk,
}

/// One connection.
pub(crate) struct Peer {
    stream: TcpStream,
    pub(crate) disk: Disk,
    pub(crate) sn: StatusNumbers,
    pub(crate) logins: Vec<LoginRequest>,
    /// Commands admitted beyond the next expected one.
    pub(crate) window: u32,
    pub(crate) framer: Framer,
    /// READ CAPACITY: number of blocks.
    pub(crate) blocks: u64,
    /// INQUIRY: product.
    pub(crate) product: [u8; 16],
}

impl Fake {
    /// Runs `script` for every connection in turn; `n` counts them from 0. A script that ends closes its connection.
    pub(crate) fn start(script: impl Fn(&mut Peer, usize) -> io::Result<()> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let disk: Disk = Arc::new(Mutex::new(vec![0; BLOCK * BLOCKS as usize]));
        let shared = Arc::clone(&disk);
        std::thread::spawn(move || {
            for n in 0.. {
                let Ok((stream, _)) = listener.accept() else { return };
                let _ = stream.set_nodelay(true);
                let sn = StatusNumbers { stat_sn: 100, exp_cmd_sn: 1, max_cmd_sn: 32 };
                let disk = Arc::clone(&shared);
                let framer = Framer::default();
                let (blocks, product, logins) = (BLOCKS, [b' '; 16], Vec::new());
                let mut peer = Peer { stream, disk, sn, logins, window: 32, framer, blocks, product };
                let _ = script(&mut peer, n);
            }
        });
        Self { addr, disk }
    }

    pub(crate) fn url(&self) -> String {
        format!("iscsi://{}/{IQN}/0", self.addr)
    }
}

impl Peer {
    pub(crate) fn read(&mut self) -> io::Result<(Request, Vec<u8>)> {
        let mut bhs = [0; BHS_BYTES];
        self.stream.read_exact(&mut bhs)?;
        let digest = |kind| if kind == DigestKind::Crc32c { 4 } else { 0 };
        let mut skipped = [0; 4];
        self.stream.read_exact(&mut skipped[..digest(self.framer.header_digest)])?;
        let len = data_len(&bhs) as usize;
        let trailer = if len > 0 { digest(self.framer.data_digest) } else { 0 };
        let mut data = vec![0; len.next_multiple_of(4) + trailer];
        self.stream.read_exact(&mut data)?;
        data.truncate(len);
        let request = Request::parse(&bhs).map_err(io::Error::other)?;
        Ok((request, data))
    }

    /// Both digests from here on.
    pub(crate) fn use_digests(&mut self) {
        self.framer = Framer { header_digest: DigestKind::Crc32c, data_digest: DigestKind::Crc32c };
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(crate) fn send(&mut self, response: &Response, data: &[u8]) -> io::Result<()> {
        let mut bhs = [0; BHS_BYTES];
        response.emit(&mut bhs);
        let mut out = Vec::new();
        self.framer.write(&bhs, data, &mut out);
        self.stream.write_all(&out)
    }

    /// Numbers for a response that carries status.
    pub(crate) fn status(&mut self) -> StatusNumbers {
        self.sn.max_cmd_sn = self.sn.exp_cmd_sn.wrapping_add(self.window).wrapping_sub(1);
        let sn = self.sn;
        self.sn.stat_sn += 1;
        sn
    }

    pub(crate) fn login_reply(
        &mut self,
        request: &LoginRequest,
        status: LoginStatus,
        text: &str,
    ) -> io::Result<()> {
        let sn = self.status();
        let good = status == LoginStatus::SUCCESS;
        let reply = LoginResponse {
            transit: good && request.transit,
            cont: false,
            current: request.current,
            next: if good { request.next } else { Stage::Security },
            version_max: 0,
            version_active: 0,
            isid: request.isid,
            tsih: if request.next == Stage::FullFeature { 7 } else { 0 },
            itt: request.itt,
            sn,
            status,
            data_len: text.len() as u32,
        };
        self.send(&Response::Login(reply), text.as_bytes())
    }

    /// Accepts every offer.
    pub(crate) fn login(&mut self) -> io::Result<()> {
        self.login_with(std::borrow::ToOwned::to_owned)
    }

    /// Agrees to `answer(offer)` for every `key=value` offered.
    pub(crate) fn login_with(&mut self, answer: impl Fn(&str) -> String) -> io::Result<()> {
        loop {
            let (request, text) = self.read()?;
            let Request::Login(login) = request else { return Err(io::Error::other("not a login")) };
            self.logins.push(login);
            self.sn.exp_cmd_sn = login.cmd_sn;
            if login.current == Stage::Security {
                self.login_reply(&login, LoginStatus::SUCCESS, "AuthMethod=None\0TargetPortalGroupTag=1\0")?;
                continue;
            }
            let text = String::from_utf8_lossy(&text).into_owned();
            let reply: String = text.split_terminator('\0').map(|pair| answer(pair) + "\0").collect();
            self.login_reply(&login, LoginStatus::SUCCESS, &reply)?;
            return Ok(());
        }
    }

    /// A good disk until the connection ends.
    pub(crate) fn serve(&mut self) -> io::Result<()> {
        loop {
            let (request, data) = self.read()?;
            self.answer(&request, &data)?;
        }
    }

    /// Answers until `mine` returns that a request is for the script.
    pub(crate) fn serve_until(&mut self, mine: impl Fn(&Request) -> bool) -> io::Result<(Request, Vec<u8>)> {
        loop {
            let (request, data) = self.read()?;
            if mine(&request) {
                if let Request::ScsiCommand(command) = &request {
                    self.admit(command);
                }
                return Ok((request, data));
            }
            self.answer(&request, &data)?;
        }
    }

    pub(crate) fn admit(&mut self, command: &ScsiCommand) {
        assert_eq!(command.cmd_sn, self.sn.exp_cmd_sn, "commands come without holes");
        self.sn.exp_cmd_sn += 1;
    }

    pub(crate) fn answer(&mut self, request: &Request, data: &[u8]) -> io::Result<()> {
        match request {
            Request::ScsiCommand(command) => {
                self.admit(command);
                self.command(command, data)
            }
            Request::NopOut(ping) if ping.itt != RESERVED_TAG => {
                let sn = self.status();
                let pong = NopIn { lun: Lun(0), itt: ping.itt, ttt: RESERVED_TAG, sn, data_len: 0 };
                self.send(&Response::NopIn(pong), &[])
            }
            Request::Logout(logout) => {
                let sn = self.status();
                let result = LogoutResult::Closed;
                let reply = LogoutResponse { result, itt: logout.itt, sn, time2wait_s: 0, time2retain_s: 0 };
                self.send(&Response::Logout(reply), &[])?;
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            _ => Ok(()),
        }
    }

    /// Executes a SCSI command; writes carry all their data immediately.
    pub(crate) fn command(&mut self, command: &ScsiCommand, data: &[u8]) -> io::Result<()> {
        let cdb = &command.cdb;
        let (block, blocks) = range(cdb);
        match cdb[0] {
            0x00 | 0x35 => self.good(command.itt),
            0x12 if cdb[1] == 0 => {
                let mut reply = [b' '; 36];
                reply[..5].copy_from_slice(&[0, 0, 6, 2, 31]);
                reply[16..32].copy_from_slice(&self.product);
                self.data_in(command, &reply)
            }
            0x9e => {
                let mut reply = [0; 32];
                reply[..8].copy_from_slice(&(self.blocks - 1).to_be_bytes());
                reply[8..12].copy_from_slice(&(BLOCK as u32).to_be_bytes());
                self.data_in(command, &reply)
            }
            0x88 => {
                let at = block * BLOCK;
                let bytes = self.disk.lock().unwrap()[at..at + blocks * BLOCK].to_vec();
                self.data_in(command, &bytes)
            }
            0x8a => {
                let at = block * BLOCK;
                self.disk.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
                self.good(command.itt)
            }
            _ => {
                self.check(command.itt, &[0, 18, 0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0, 0, 0])
            }
        }
    }

    pub(crate) fn good(&mut self, itt: u32) -> io::Result<()> {
        self.ended(itt, 0, &[])
    }

    /// CHECK CONDITION with this data segment, length bytes included.
    pub(crate) fn check(&mut self, itt: u32, data: &[u8]) -> io::Result<()> {
        self.ended(itt, 2, data)
    }

    pub(crate) fn ended(&mut self, itt: u32, status: u8, data: &[u8]) -> io::Result<()> {
        let sn = self.status();
        let residual = Residual::None;
        let data_len = data.len() as u32;
        let reply = ScsiResponse { response: 0, status, itt, sn, exp_data_sn: 0, residual, data_len };
        self.send(&Response::Scsi(reply), data)
    }

    /// All data in one PDU with status.
    pub(crate) fn data_in(&mut self, command: &ScsiCommand, bytes: &[u8]) -> io::Result<()> {
        let bytes = &bytes[..bytes.len().min(command.expected_len as usize)];
        let residual = Residual::of(command.expected_len, bytes.len() as u64);
        let pdu = self.last_data(command.itt, 0, 0, bytes.len() as u32, residual);
        self.send(&Response::DataIn(pdu), bytes)
    }

    /// A last Data-In PDU with GOOD status.
    pub(crate) fn last_data(
        &mut self,
        itt: u32,
        data_sn: u32,
        offset: u32,
        len: u32,
        residual: Residual,
    ) -> DataIn {
        DataIn {
            final_pdu: true,
            acknowledge: false,
            status: Some(DataInStatus { status: 0, residual }),
            lun: Lun(0),
            itt,
            ttt: RESERVED_TAG,
            sn: self.status(),
            data_sn,
            buffer_offset: offset,
            data_len: len,
        }
    }
}

/// First block and number of blocks of READ (16) or WRITE (16).
pub(crate) fn range(cdb: &[u8; 16]) -> (usize, usize) {
    let number = |bytes: &[u8]| bytes.iter().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte));
    (number(&cdb[4..10]), number(&cdb[10..14]))
}

/// True for a command with this operation code.
pub(crate) fn is(opcode: u8) -> impl Fn(&Request) -> bool {
    move |request| matches!(request, Request::ScsiCommand(command) if command.cdb[0] == opcode)
}

/// The SCSI command behind a request.
pub(crate) fn scsi(request: &Request) -> ScsiCommand {
    match request {
        Request::ScsiCommand(command) => *command,
        other => panic!("not a SCSI command: {other:?}"),
    }
}
