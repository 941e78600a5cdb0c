//! A minimal initiator: raw sockets, the protocol crate's PDUs, nothing else.

#![allow(dead_code)] // each test program uses its part

pub(crate) mod logins;
pub(crate) mod raw;
pub(crate) mod served;

use linerate_iscsi_proto::{
    digest::digest,
    frame::Framer,
    params::DigestKind,
    pdu::{
        BHS_BYTES, Bhs, DataOut, LoginRequest, LoginResponse, Lun, NopOut, R2t, RESERVED_TAG, Response,
        ScsiCommand, Stage, TaskAttribute, TaskFunction, TaskManagement, TaskResult, TextRequest, data_len,
    },
};
use linerate_iscsi_target::{Array, ArrayConfig, ArrayStats};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::{Duration, Instant},
};

pub(crate) const IQN: &str = "iqn.2026-11.lab.linerate:test";
pub(crate) const SIZE_BYTES: u64 = 64 << 20;

/// Whether parts of tests that take many seconds are left out, as in `make test`: `make test-all` runs them.
pub(crate) fn is_quick() -> bool {
    std::env::var_os("LINERATE_QUICK").is_some()
}

/// The drivers to test where a test takes seconds on each: both, or the usual one.
pub(crate) fn slow_drivers() -> &'static [&'static str] {
    if is_quick() { &["auto"] } else { &["epoll", "auto"] }
}

/// An array with one memory volume; `extra` is added to the configuration.
pub(crate) fn array(extra: &str) -> Array {
    array_of(r#""kind": "memory""#, extra)
}

pub(crate) fn array_of(volume: &str, extra: &str) -> Array {
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0"], {extra} "targets": [{{"name": "{IQN}",
            "volumes": [{{"lun": 0, "name": "v0", "size_bytes": {SIZE_BYTES}, {volume}}}]}}]}}"#
    );
    let config: ArrayConfig = serde_json::from_str(&json).unwrap();
    Array::start(config).unwrap()
}

/// The volumes of two arrays: one in memory, one in a file of `directory`.
pub(crate) fn memory_and_file(directory: &Path) -> [String; 2] {
    let path = directory.join("volume").display().to_string();
    [r#""kind": "memory""#.to_owned(), format!(r#""kind": "file", "path": "{path}""#)]
}

/// Waits until the array's counters satisfy `until`.
pub(crate) fn wait_for(array: &Array, what: &str, mut until: impl FnMut(&ArrayStats) -> bool) -> ArrayStats {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let stats = array.stats();
        if until(&stats) {
            return stats;
        }
        assert!(Instant::now() < deadline, "{what}: {stats:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A received PDU.
#[derive(Debug)]
pub(crate) struct Pdu {
    pub(crate) response: Response,
    pub(crate) data: Vec<u8>,
}

/// One connection.
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    pub(crate) cmd_sn: u32,
    pub(crate) exp_stat_sn: u32,
    /// The LUN of its commands.
    pub(crate) lun: u8,
    next_itt: u32,
    /// The target's handle of the session.
    pub(crate) tsih: u16,
    /// Digests of the session, for sent and received PDUs.
    pub(crate) framer: Framer,
}

impl Client {
    /// Connects without logging in.
    pub(crate) fn connect(addr: SocketAddr) -> Self {
        let socket = TcpStream::connect(addr).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { socket, cmd_sn: 1, exp_stat_sn: 0, lun: 0, next_itt: 1, tsih: 0, framer: Framer::default() }
    }

    /// Logs in to the test target with the operational keys `keys`.
    pub(crate) fn login(addr: SocketAddr, isid: u8, keys: &str) -> Self {
        let mut client = Self::connect(addr);
        let text = format!("InitiatorName=iqn.2026-11.lab.linerate:host\0TargetName={IQN}\0{keys}");
        let pdu = client.log_in(isid, &text);
        let Response::Login(response) = pdu.response else { panic!("{pdu:?}") };
        assert_eq!(response.status.class, 0, "{response:?}");
        assert_eq!(response.next, Stage::FullFeature);
        client.exp_stat_sn = response.sn.stat_sn.wrapping_add(1);
        client.tsih = response.tsih;
        client
    }

    /// Adds a connection to the session of `self`; the caller checks the status.
    pub(crate) fn add(&self, addr: SocketAddr, isid: u8, cid: u16, keys: &str) -> (Self, LoginResponse) {
        let mut client = Self::connect(addr);
        (client.cmd_sn, client.next_itt, client.tsih) = (self.cmd_sn, 1000 * u32::from(cid), self.tsih);
        let text = format!("InitiatorName=iqn.2026-11.lab.linerate:host\0TargetName={IQN}\0{keys}");
        let pdu = client.log_in_as(isid, cid, &text);
        let Response::Login(response) = pdu.response else { panic!("{pdu:?}") };
        client.exp_stat_sn = response.sn.stat_sn.wrapping_add(1);
        (client, response)
    }

    pub(crate) fn log_in(&mut self, isid: u8, text: &str) -> Pdu {
        self.log_in_as(isid, 0, text)
    }

    fn log_in_as(&mut self, isid: u8, cid: u16, text: &str) -> Pdu {
        let request = LoginRequest {
            transit: true,
            cont: false,
            current: Stage::Operational,
            next: Stage::FullFeature,
            version_max: 0,
            version_min: 0,
            isid: [0x80, 0, 0, 0, 0, isid],
            tsih: self.tsih,
            itt: 0,
            cid,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: 0,
            data_len: text.len() as u32,
        };
        self.send(|bhs| request.emit(bhs), text.as_bytes());
        self.receive().expect("a login response")
    }

    pub(crate) fn send(&mut self, emit: impl FnOnce(&mut Bhs), data: &[u8]) {
        let mut bhs = [0; BHS_BYTES];
        emit(&mut bhs);
        let mut bytes = Vec::new();
        self.framer.write(&bhs, data, &mut bytes);
        self.socket.write_all(&bytes).unwrap();
    }

    /// Turns both digests on; `login` must have negotiated them.
    pub(crate) fn use_digests(&mut self) {
        self.framer = Framer { header_digest: DigestKind::Crc32c, data_digest: DigestKind::Crc32c };
    }

    fn check_digest(&mut self, bytes: &[u8]) {
        let mut sent = [0; 4];
        self.socket.read_exact(&mut sent).unwrap();
        assert_eq!(sent, digest(bytes), "a wrong digest");
    }

    /// The next PDU; `None` when the target has closed the connection.
    pub(crate) fn receive(&mut self) -> Option<Pdu> {
        let mut bhs = [0; BHS_BYTES];
        self.socket.read_exact(&mut bhs).ok()?;
        if self.framer.header_digest == DigestKind::Crc32c {
            self.check_digest(&bhs);
        }
        let mut data = vec![0; data_len(&bhs).next_multiple_of(4) as usize];
        self.socket.read_exact(&mut data).ok()?;
        if self.framer.data_digest == DigestKind::Crc32c && !data.is_empty() {
            self.check_digest(&data);
        }
        data.truncate(data_len(&bhs) as usize);
        Some(Pdu { response: Response::parse(&bhs).unwrap(), data })
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// The next PDU of a session with data digests, whose data is skipped.
    pub(crate) fn receive_with_digest(&mut self) -> Option<Response> {
        let mut bhs = [0; BHS_BYTES];
        self.socket.read_exact(&mut bhs).ok()?;
        let len = data_len(&bhs);
        let mut data = vec![0; if len == 0 { 0 } else { len.next_multiple_of(4) as usize + 4 }];
        self.socket.read_exact(&mut data).ok()?;
        Response::parse(&bhs).ok()
    }

    pub(crate) fn itt(&mut self) -> u32 {
        self.next_itt += 1;
        self.next_itt
    }

    /// A command of the session, numbered.
    pub(crate) fn command(
        &mut self,
        cdb: [u8; 16],
        read: bool,
        write: bool,
        expected_len: u32,
    ) -> ScsiCommand {
        let command = ScsiCommand {
            immediate: false,
            final_pdu: true,
            read,
            write,
            attribute: TaskAttribute::Simple,
            lun: Lun(u64::from(self.lun) << 48),
            itt: self.itt(),
            expected_len,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            cdb,
            ahs_len: 0,
            data_len: 0,
        };
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        command
    }

    /// Receives the unit attention of the new nexus, so that tests get answers of their own commands only.
    pub(crate) fn clear_attention(&mut self) {
        for _ in 0..4 {
            let ready = self.command([0; 16], false, false, 0);
            self.send(|bhs| ready.emit(bhs), &[]);
            if self.status() == 0 {
                return;
            }
        }
        panic!("the unit does not become ready");
    }

    /// Sense key and code that TEST UNIT READY returns; None: it is ready.
    pub(crate) fn attention(&mut self) -> Option<(u8, u16)> {
        let ready = self.command([0; 16], false, false, 0);
        self.send(|bhs| ready.emit(bhs), &[]);
        let pdu = self.receive().expect("a SCSI response");
        // Two bytes of length, then fixed format sense data.
        let sense = pdu.data.get(2..)?;
        Some((sense[2] & 0x0F, u16::from_be_bytes([sense[12], sense[13]])))
    }

    /// PERSISTENT RESERVE OUT, REGISTER AND IGNORE EXISTING KEY with APTPL.
    pub(crate) fn register_to_keep(&mut self, key: u64) {
        let mut list = [0; 24];
        list[8..16].copy_from_slice(&key.to_be_bytes());
        list[20] = 1;
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[8]) = (0x5F, 6, 24);
        let mut command = self.command(cdb, false, true, 24);
        command.data_len = 24;
        self.send(|bhs| command.emit(bhs), &list);
        assert_eq!(self.status(), 0);
    }

    /// PERSISTENT RESERVE IN, READ KEYS.
    pub(crate) fn reservation_keys(&mut self) -> Vec<u64> {
        let mut cdb = [0; 16];
        (cdb[0], cdb[8]) = (0x5E, 255);
        let command = self.command(cdb, true, false, 255);
        self.send(|bhs| command.emit(bhs), &[]);
        let data = self.receive().expect("data").data;
        data[8..].chunks_exact(8).map(|key| u64::from_be_bytes(key.try_into().unwrap())).collect()
    }

    /// The status of the next SCSI response.
    pub(crate) fn status(&mut self) -> u8 {
        match self.receive().expect("a SCSI response").response {
            Response::Scsi(response) => response.status,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn write(&mut self, lba: u32, bytes: &[u8]) {
        let mut command = self.command(write10(lba, bytes.len()), false, true, bytes.len() as u32);
        command.data_len = bytes.len() as u32;
        self.send(|bhs| command.emit(bhs), bytes);
        assert_eq!(self.status(), 0);
    }

    pub(crate) fn read(&mut self, lba: u32, len: usize) -> Vec<u8> {
        let command = self.command(read10(lba, len), true, false, len as u32);
        self.send(|bhs| command.emit(bhs), &[]);
        let mut data = Vec::new();
        while data.len() < len {
            let pdu = self.receive().expect("data");
            assert!(matches!(pdu.response, Response::DataIn(_)), "{pdu:?}");
            data.extend_from_slice(&pdu.data);
        }
        data
    }

    /// A write of any length, with its data sent as the target requests it.
    pub(crate) fn write_as_asked(&mut self, lba: u32, bytes: &[u8], segment_len: u32) {
        let command = self.command(write10(lba, bytes.len()), false, true, bytes.len() as u32);
        self.send(|bhs| command.emit(bhs), &[]);
        loop {
            let pdu = self.receive().expect("an R2T or the end");
            match pdu.response {
                Response::R2t(r2t) => self.answer_r2t(&r2t, bytes, segment_len),
                Response::Scsi(response) => return assert_eq!(response.status, 0, "{pdu:?}"),
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn answer_r2t(&mut self, r2t: &R2t, bytes: &[u8], segment_len: u32) {
        let (mut at, end, mut data_sn) = (r2t.buffer_offset, r2t.buffer_offset + r2t.desired_len, 0);
        while at < end {
            let len = segment_len.min(end - at);
            let piece = self.data_out(r2t.itt, r2t.ttt, data_sn, at, len, at + len == end);
            self.send(|bhs| piece.emit(bhs), &bytes[at as usize..(at + len) as usize]);
            (at, data_sn) = (at + len, data_sn + 1);
        }
    }

    /// A task management request and its result.
    pub(crate) fn manage(&mut self, function: TaskFunction, referenced_itt: u32) -> TaskResult {
        let request = self.management(function, referenced_itt);
        self.send(|bhs| request.emit(bhs), &[]);
        match self.receive().expect("a task management response").response {
            Response::TaskManagement(response) => response.result,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn management(&mut self, function: TaskFunction, referenced_itt: u32) -> TaskManagement {
        TaskManagement {
            immediate: true,
            function,
            lun: Lun(0),
            itt: self.itt(),
            referenced_itt,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            ref_cmd_sn: 0,
            exp_data_sn: 0,
        }
    }

    /// Opens a discovery session and requests everything.
    pub(crate) fn discover(addr: SocketAddr) -> String {
        Self::discover_as(addr, "iqn.2026-11.lab.linerate:host", "All")
    }

    /// Opens a discovery session of an initiator and requests `wanted`.
    pub(crate) fn discover_as(addr: SocketAddr, initiator: &str, wanted: &str) -> String {
        let mut client = Self::connect(addr);
        let pdu = client.log_in(1, &format!("InitiatorName={initiator}\0SessionType=Discovery\0"));
        assert!(matches!(pdu.response, Response::Login(response) if response.status.class == 0), "{pdu:?}");
        client.send_targets(wanted)
    }

    /// Requests `wanted` in a discovery session.
    pub(crate) fn send_targets(&mut self, wanted: &str) -> String {
        let question = format!("SendTargets={wanted}\0").into_bytes();
        let request = TextRequest {
            immediate: true,
            final_pdu: true,
            cont: false,
            lun: Lun(0),
            itt: 3,
            ttt: RESERVED_TAG,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: 0,
            data_len: question.len() as u32,
        };
        self.send(|bhs| request.emit(bhs), &question);
        String::from_utf8(self.receive().expect("a text response").data).unwrap()
    }

    pub(crate) fn send_ping(&mut self, data: &[u8]) {
        let request = NopOut {
            immediate: true,
            lun: Lun(0),
            itt: self.itt(),
            ttt: RESERVED_TAG,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            data_len: data.len() as u32,
        };
        self.send(|bhs| request.emit(bhs), data);
    }

    pub(crate) fn ping(&mut self, data: &[u8]) -> Pdu {
        self.send_ping(data);
        self.receive().expect("a NOP-In")
    }

    pub(crate) fn data_out(
        &self,
        itt: u32,
        ttt: u32,
        data_sn: u32,
        offset: u32,
        len: u32,
        last: bool,
    ) -> DataOut {
        DataOut {
            final_pdu: last,
            lun: Lun(0),
            itt,
            ttt,
            exp_stat_sn: self.exp_stat_sn,
            data_sn,
            buffer_offset: offset,
            data_len: len,
        }
    }
}

pub(crate) fn read10(lba: u32, len: usize) -> [u8; 16] {
    transfer10(0x28, lba, len)
}

pub(crate) fn write10(lba: u32, len: usize) -> [u8; 16] {
    transfer10(0x2a, lba, len)
}

fn transfer10(opcode: u8, lba: u32, len: usize) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[7..9].copy_from_slice(&((len / 512) as u16).to_be_bytes());
    cdb
}
