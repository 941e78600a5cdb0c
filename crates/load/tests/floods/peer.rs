//! A target made of bytes, by the layouts of RFC 7143: it accepts every login, is a disk, and then does what a test
//! needs.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

pub(crate) const IQN: &str = "iqn.2026-11.lab.linerate:flood";
const BLOCK_BYTES: usize = 512;
const BLOCKS: u64 = 8192;
const BHS_BYTES: usize = 48;
const UNUSED_TAG: [u8; 4] = [0xff; 4];
const CHECK_CONDITION: u8 = 2;

/// A basic header segment, 48 bytes.
pub(crate) type Bhs = [u8; BHS_BYTES];

/// One connection, after its login.
pub(crate) struct Peer {
    stream: TcpStream,
    stat_sn: u32,
    exp_cmd_sn: u32,
    /// Commands that the target accepts in advance; 0 = none.
    pub(crate) window: u32,
}

/// Listens, and runs `script` on a thread of its own for every connection that has logged in.
pub(crate) fn listen(window: u32, script: fn(&mut Peer) -> io::Result<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let _ = stream.set_nodelay(true);
            std::thread::spawn(move || {
                let mut peer = Peer { stream, stat_sn: 1, exp_cmd_sn: 1, window };
                // An initiator that leaves ends its script.
                let _ = peer.log_in().and_then(|()| script(&mut peer));
            });
        }
    });
    addr
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

impl Peer {
    /// The next request: header and data segment.
    pub(crate) fn read(&mut self) -> io::Result<(Bhs, Vec<u8>)> {
        let mut bhs = [0; BHS_BYTES];
        self.stream.read_exact(&mut bhs)?;
        let len = number(&bhs[5..8]) as usize;
        let mut data = vec![0; len.next_multiple_of(4)];
        self.stream.read_exact(&mut data)?;
        data.truncate(len);
        Ok((bhs, data))
    }

    /// The connection, for a thread that reads while this one writes.
    pub(crate) fn stream(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(crate) fn send(&mut self, mut bhs: Bhs, data: &[u8]) -> io::Result<()> {
        bhs[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let mut bytes = bhs.to_vec();
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.send_raw(&bytes)
    }

    /// A header with opcode, flags, task tag and sequence numbers; `counts`: it uses a `StatSN`.
    pub(crate) fn header(&mut self, opcode: u8, flags: u8, itt: &[u8], counts: bool) -> Bhs {
        let mut bhs = [0; BHS_BYTES];
        (bhs[0], bhs[1]) = (opcode, flags);
        bhs[16..20].copy_from_slice(itt);
        bhs[24..28].copy_from_slice(&self.stat_sn.to_be_bytes());
        bhs[28..32].copy_from_slice(&self.exp_cmd_sn.to_be_bytes());
        bhs[32..36].copy_from_slice(&(self.exp_cmd_sn + self.window).wrapping_sub(1).to_be_bytes());
        self.stat_sn = self.stat_sn.wrapping_add(u32::from(counts));
        bhs
    }

    /// Accepts every offer, without authentication.
    fn log_in(&mut self) -> io::Result<()> {
        loop {
            let (request, text) = self.read()?;
            self.exp_cmd_sn = number(&request[24..28]) as u32;
            let mut reply = self.header(0x23, request[1], &request[16..20], true);
            reply[8..14].copy_from_slice(&request[8..14]);
            let (is_security, next) = (request[1] & 0x0c == 0, request[1] & 3);
            if next == 3 {
                reply[14..16].copy_from_slice(&7_u16.to_be_bytes());
            }
            let agreed: &[u8] =
                if is_security { b"AuthMethod=None\0TargetPortalGroupTag=1\0" } else { &text };
            self.send(reply, agreed)?;
            if request[1] & 0x80 != 0 && next == 3 {
                return Ok(());
            }
        }
    }

    /// Answers requests as a disk until `is_enough` of the number of reads so far.
    pub(crate) fn serve(&mut self, is_enough: impl Fn(u32) -> bool) -> io::Result<()> {
        let mut reads = 0;
        while !is_enough(reads) {
            let (request, _) = self.read()?;
            reads += u32::from(request[0] & 0x3f == 1 && request[32] == 0x88);
            self.answer(&request)?;
        }
        Ok(())
    }

    pub(crate) fn answer(&mut self, request: &Bhs) -> io::Result<()> {
        let itt = &request[16..20];
        match request[0] & 0x3f {
            0 if itt != UNUSED_TAG => {
                let mut pong = self.header(0x20, 0x80, itt, true);
                pong[20..24].copy_from_slice(&UNUSED_TAG);
                self.send(pong, &[])
            }
            1 => {
                self.exp_cmd_sn += 1;
                self.command(request)
            }
            6 => {
                let bye = self.header(0x26, 0x80, itt, true);
                self.send(bye, &[])
            }
            _ => Ok(()),
        }
    }

    fn command(&mut self, request: &Bhs) -> io::Result<()> {
        let (itt, cdb) = (&request[16..20], &request[32..48]);
        match cdb[0] {
            0x00 => {
                let good = self.header(0x21, 0x80, itt, true);
                self.send(good, &[])
            }
            0x12 if cdb[1] == 0 => {
                let mut inquiry = [b' '; 36];
                inquiry[..5].copy_from_slice(&[0, 0, 6, 2, 31]);
                self.data_in(request, &inquiry)
            }
            0x9e => {
                let mut capacity = [0; 32];
                capacity[..8].copy_from_slice(&(BLOCKS - 1).to_be_bytes());
                capacity[8..12].copy_from_slice(&(BLOCK_BYTES as u32).to_be_bytes());
                self.data_in(request, &capacity)
            }
            0x88 => self.data_in(request, &vec![0; number(&cdb[10..14]) as usize * BLOCK_BYTES]),
            _ => {
                let mut refusal = self.header(0x21, 0x80, itt, true);
                refusal[3] = CHECK_CONDITION;
                self.send(refusal, &[0, 18, 0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0])
            }
        }
    }

    /// All data of a read in one PDU, with status.
    fn data_in(&mut self, request: &Bhs, bytes: &[u8]) -> io::Result<()> {
        let expected = number(&request[20..24]) as usize;
        let bytes = &bytes[..bytes.len().min(expected)];
        let underflow = if bytes.len() < expected { 0x02 } else { 0 };
        let mut reply = self.header(0x25, 0x81 | underflow, &request[16..20], true);
        reply[20..24].copy_from_slice(&UNUSED_TAG);
        reply[44..48].copy_from_slice(&((expected - bytes.len()) as u32).to_be_bytes());
        self.send(reply, bytes)
    }
}
