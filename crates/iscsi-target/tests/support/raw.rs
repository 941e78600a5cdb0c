//! An initiator written from RFC 7143 section 11 alone: bytes and a socket, without code of the array.

#![allow(dead_code)] // each test program uses its part

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Bytes of a basic header segment.
pub(crate) const BHS: usize = 48;
/// The reserved tag: no tag.
pub(crate) const NO_TAG: u32 = 0xffff_ffff;

/// Opcodes of requests, and of responses.
pub(crate) const NOP_OUT: u8 = 0x00;
pub(crate) const COMMAND: u8 = 0x01;
pub(crate) const TASK_MANAGEMENT: u8 = 0x02;
pub(crate) const LOGIN: u8 = 0x03;
pub(crate) const DATA_OUT: u8 = 0x05;
pub(crate) const LOGOUT: u8 = 0x06;
pub(crate) const NOP_IN: u8 = 0x20;
pub(crate) const RESPONSE: u8 = 0x21;
pub(crate) const TASK_MANAGEMENT_RESPONSE: u8 = 0x22;
pub(crate) const LOGIN_RESPONSE: u8 = 0x23;
pub(crate) const DATA_IN: u8 = 0x25;
pub(crate) const R2T: u8 = 0x31;

/// Task management functions.
pub(crate) const ABORT_TASK: u8 = 1;
pub(crate) const ABORT_TASK_SET: u8 = 2;
pub(crate) const CLEAR_TASK_SET: u8 = 4;
pub(crate) const LOGICAL_UNIT_RESET: u8 = 5;
pub(crate) const TARGET_WARM_RESET: u8 = 6;

/// A received PDU.
#[derive(Clone, Debug)]
pub(crate) struct Pdu {
    pub(crate) bhs: [u8; BHS],
    pub(crate) data: Vec<u8>,
}

impl Pdu {
    pub(crate) fn opcode(&self) -> u8 {
        self.bhs[0] & 0x3f
    }

    pub(crate) fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.bhs[at..at + 4].try_into().unwrap())
    }

    pub(crate) fn itt(&self) -> u32 {
        self.word(16)
    }

    /// SCSI status of a response, or of a Data-In with the S bit.
    pub(crate) fn status(&self) -> Option<u8> {
        match self.opcode() {
            RESPONSE => Some(self.bhs[3]),
            DATA_IN if self.bhs[1] & 1 != 0 => Some(self.bhs[3]),
            _ => None,
        }
    }
}

/// How a session is logged in.
#[derive(Clone, Debug)]
pub(crate) struct Who<'a> {
    pub(crate) initiator: &'a str,
    pub(crate) target: &'a str,
    pub(crate) isid: u16,
    /// Operational keys, each ended by a zero byte.
    pub(crate) keys: &'a str,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) socket: TcpStream,
    pub(crate) cmd_sn: u32,
    pub(crate) exp_stat_sn: u32,
    pub(crate) itt: u32,
    pub(crate) tsih: u16,
}

impl Raw {
    pub(crate) fn connect(addr: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(addr)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self { socket, cmd_sn: 1, exp_stat_sn: 0, itt: 1, tsih: 0 })
    }

    /// A new session.
    pub(crate) fn login(addr: SocketAddr, who: &Who<'_>) -> io::Result<Self> {
        let mut raw = Self::connect(addr)?;
        raw.log_in(who, 0)?;
        Ok(raw)
    }

    /// One more connection of this session, with commands numbered by `self`.
    pub(crate) fn add(&self, addr: SocketAddr, who: &Who<'_>, cid: u16) -> io::Result<Self> {
        let mut raw = Self::connect(addr)?;
        (raw.cmd_sn, raw.itt, raw.tsih) = (self.cmd_sn, u32::from(cid) << 16, self.tsih);
        // The leading connection negotiates operational keys (RFC 7143 section 13).
        raw.log_in(&Who { keys: "", ..who.clone() }, cid)?;
        Ok(raw)
    }

    fn log_in(&mut self, who: &Who<'_>, cid: u16) -> io::Result<()> {
        let text = format!("InitiatorName={}\0TargetName={}\0{}", who.initiator, who.target, who.keys);
        let mut bhs = [0; BHS];
        bhs[0] = 0x40 | LOGIN;
        bhs[1] = 0x87; // transit, from operational negotiation to full feature phase
        bhs[8] = 0x80;
        bhs[12..14].copy_from_slice(&who.isid.to_be_bytes());
        bhs[14..16].copy_from_slice(&self.tsih.to_be_bytes());
        bhs[20..22].copy_from_slice(&cid.to_be_bytes());
        bhs[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        self.send(bhs, text.as_bytes())?;
        let pdu = self.receive()?;
        if pdu.opcode() != LOGIN_RESPONSE || pdu.bhs[36] != 0 {
            return Err(io::Error::other(format!("the login is refused: {:02x?}", &pdu.bhs[36..38])));
        }
        self.tsih = u16::from_be_bytes([pdu.bhs[14], pdu.bhs[15]]);
        self.exp_stat_sn = pdu.word(24).wrapping_add(1);
        Ok(())
    }

    /// Sends a PDU; fills its length in.
    pub(crate) fn send(&mut self, mut bhs: [u8; BHS], data: &[u8]) -> io::Result<()> {
        bhs[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let mut bytes = bhs.to_vec();
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.socket.write_all(&bytes)
    }

    pub(crate) fn receive(&mut self) -> io::Result<Pdu> {
        let mut bhs = [0; BHS];
        self.socket.read_exact(&mut bhs)?;
        let len = u32::from_be_bytes([0, bhs[5], bhs[6], bhs[7]]) as usize;
        let mut data = vec![0; len.next_multiple_of(4)];
        self.socket.read_exact(&mut data)?;
        data.truncate(len);
        let pdu = Pdu { bhs, data };
        // Data-In has a status number only with its S bit; an R2T and an unsolicited ping have none.
        let has_status = match pdu.opcode() {
            DATA_IN => bhs[1] & 1 != 0,
            R2T => false,
            NOP_IN => pdu.itt() != NO_TAG,
            _ => true,
        };
        if has_status {
            self.exp_stat_sn = pdu.word(24).wrapping_add(1);
        }
        Ok(pdu)
    }

    /// Header of a request: its opcode, flags, LUN and a new tag, numbered but not counted.
    pub(crate) fn request(&mut self, opcode: u8, flags: u8, lun: u8) -> [u8; BHS] {
        self.itt += 1;
        let mut bhs = [0; BHS];
        (bhs[0], bhs[1], bhs[9]) = (opcode, flags, lun);
        bhs[16..20].copy_from_slice(&self.itt.to_be_bytes());
        bhs[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        bhs[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
        bhs
    }

    /// Header of a SCSI command, which uses the next number.
    pub(crate) fn command(&mut self, lun: u8, cdb: &[u8], read: u32, write: u32) -> [u8; BHS] {
        let flags = 0x81 | if read > 0 { 0x40 } else { 0 } | if write > 0 { 0x20 } else { 0 };
        let mut bhs = self.request(COMMAND, flags, lun);
        bhs[20..24].copy_from_slice(&read.max(write).to_be_bytes());
        bhs[32..32 + cdb.len()].copy_from_slice(cdb);
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        bhs
    }

    /// Header of a Data-Out that answers an R2T.
    pub(crate) fn data_out(&self, r2t: &Pdu, data_sn: u32, offset: u32, last: bool) -> [u8; BHS] {
        let mut bhs = [0; BHS];
        (bhs[0], bhs[1]) = (DATA_OUT, if last { 0x80 } else { 0 });
        bhs[8..24].copy_from_slice(&r2t.bhs[8..24]);
        bhs[28..32].copy_from_slice(&self.exp_stat_sn.to_be_bytes());
        bhs[36..40].copy_from_slice(&data_sn.to_be_bytes());
        bhs[40..44].copy_from_slice(&offset.to_be_bytes());
        bhs
    }

    /// Header of an immediate task management request.
    pub(crate) fn manage(&mut self, function: u8, lun: u8, referenced_itt: u32) -> [u8; BHS] {
        let mut bhs = self.request(0x40 | TASK_MANAGEMENT, 0x80 | function, lun);
        bhs[20..24].copy_from_slice(&referenced_itt.to_be_bytes());
        bhs
    }

    /// Header of a ping with an answer.
    pub(crate) fn ping(&mut self) -> [u8; BHS] {
        let mut bhs = self.request(0x40 | NOP_OUT, 0x80, 0);
        bhs[20..24].copy_from_slice(&NO_TAG.to_be_bytes());
        bhs
    }

    /// Receives the unit attentions of a new session.
    pub(crate) fn clear_attention(&mut self, lun: u8) -> io::Result<()> {
        for _ in 0..4 {
            let ready = self.command(lun, &[0; 6], 0, 0);
            self.send(ready, &[])?;
            if self.receive()?.status() == Some(0) {
                return Ok(());
            }
        }
        Err(io::Error::other("the unit does not become ready"))
    }

    /// The same if data segments of answers have a digest, which is not checked.
    pub(crate) fn clear_attention_with_digests(&mut self, lun: u8) {
        for _ in 0..2 {
            let ready = self.command(lun, &[0; 6], 0, 0);
            self.send(ready, &[]).unwrap();
            let pdu = self.receive().unwrap();
            let digest_bytes = if pdu.data.is_empty() { 0 } else { 4 };
            self.socket.read_exact(&mut vec![0; digest_bytes]).unwrap();
        }
    }

    /// READ(10), one at a time.
    pub(crate) fn read(&mut self, lun: u8, lba: u32, len: u32) -> io::Result<Vec<u8>> {
        let bhs = self.command(lun, &cdb10(0x28, lba, len), len, 0);
        self.send(bhs, &[])?;
        let mut data = Vec::new();
        loop {
            let pdu = self.receive()?;
            data.extend_from_slice(&pdu.data[..if pdu.opcode() == DATA_IN { pdu.data.len() } else { 0 }]);
            match pdu.status() {
                Some(0) => return Ok(data),
                Some(status) => return Err(io::Error::other(format!("READ ends with status {status:#x}"))),
                None => {}
            }
        }
    }

    /// WRITE(10) with immediate data up to `immediate` and R2Ts for the rest, one at a time.
    pub(crate) fn write(&mut self, lun: u8, lba: u32, data: &[u8], immediate: usize) -> io::Result<()> {
        let bhs = self.command(lun, &cdb10(0x2a, lba, data.len() as u32), 0, data.len() as u32);
        self.send(bhs, &data[..immediate.min(data.len())])?;
        loop {
            let pdu = self.receive()?;
            match (pdu.opcode(), pdu.status()) {
                (_, Some(0)) => return Ok(()),
                (_, Some(status)) => return Err(io::Error::other(format!("WRITE ends with {status:#x}"))),
                (R2T, None) => {
                    let (offset, len) = (pdu.word(40), pdu.word(44));
                    let out = self.data_out(&pdu, 0, offset, true);
                    self.send(out, &data[offset as usize..(offset + len) as usize])?;
                }
                _ => {}
            }
        }
    }
}

/// A ten-byte transfer command of `len` bytes in blocks of 512.
pub(crate) fn cdb10(opcode: u8, lba: u32, len: u32) -> [u8; 10] {
    let mut cdb = [0; 10];
    cdb[0] = opcode;
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[7..9].copy_from_slice(&((len / 512) as u16).to_be_bytes());
    cdb
}
