//! Logins step by step: from any address, under any name, with CHAP.

use super::{Client, Pdu};
use linerate_iscsi_proto::{
    chap::{Algorithm, ChapSecret, decode, encode_hex},
    pdu::{LoginRequest, Response, Stage},
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::{
    net::{IpAddr, SocketAddr, TcpStream},
    time::Duration,
};

/// Initiator, target and credentials of a login.
#[derive(Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) initiator: &'a str,
    pub(crate) target: &'a str,
    pub(crate) user: &'a str,
    pub(crate) secret: &'a str,
    pub(crate) isid: u8,
}

/// A connection from an address of the loopback.
pub(crate) fn connect_from(local: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    // Not inherited: a test beside this one may be starting its array.
    let stream = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&stream, &SocketAddr::new(local, 0))?;
    connect(&stream, &to)?;
    let stream = TcpStream::from(stream);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    Ok(stream)
}

/// The class and detail of a login response; `None` when the target has closed the connection.
pub(crate) fn status(pdu: Option<Pdu>) -> Option<(u8, u8)> {
    match pdu?.response {
        Response::Login(response) => Some((response.status.class, response.status.detail)),
        other => panic!("{other:?}"),
    }
}

impl Client {
    /// Connects from an address of the loopback without logging in.
    pub(crate) fn connect_from(local: IpAddr, to: SocketAddr) -> Self {
        let mut client = Self::connect(to);
        client.socket = connect_from(local, to).unwrap();
        client
    }

    /// One login request in a stage, which requests the stage `next`; returns its answer, if one arrives.
    pub(crate) fn say(&mut self, isid: u8, stage: Stage, next: Option<Stage>, text: &str) -> Option<Pdu> {
        self.utter(isid, stage, next, text);
        self.receive()
    }

    /// As [`Client::say`], without waiting for the answer.
    pub(crate) fn utter(&mut self, isid: u8, stage: Stage, next: Option<Stage>, text: &str) {
        let request = LoginRequest {
            transit: next.is_some(),
            cont: false,
            current: stage,
            next: next.unwrap_or(Stage::Security),
            version_max: 0,
            version_min: 0,
            isid: [0x80, 0, 0, 0, 0, isid],
            tsih: 0,
            itt: 0,
            cid: 0,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: 0,
            data_len: text.len() as u32,
        };
        self.send(|bhs| request.emit(bhs), text.as_bytes());
    }

    /// Sends all of a CHAP login up to the response; the answer to it is still to be received.
    pub(crate) fn send_proof(&mut self, who: Who<'_>, algorithm: Algorithm) {
        let Who { initiator, target, user, secret, isid } = who;
        let names = format!("InitiatorName={initiator}\0TargetName={target}\0AuthMethod=CHAP\0");
        let agreed = self.say(isid, Stage::Security, None, &names).expect("an answer to the names");
        assert_eq!(status(Some(agreed)), Some((0, 0)));
        let offer = format!("CHAP_A={}\0", algorithm.code());
        let asked = self.say(isid, Stage::Security, None, &offer).expect("a challenge");
        let text = String::from_utf8(asked.data).unwrap();
        let value = |key: &str| text.split('\0').find_map(|pair| pair.strip_prefix(key)).unwrap();
        let challenge = decode(value("CHAP_C=")).unwrap();
        let secret = ChapSecret::new(secret);
        let proof = algorithm.respond(value("CHAP_I=").parse().unwrap(), &secret, &challenge);
        let proof = format!("CHAP_N={user}\0CHAP_R={}\0", encode_hex(&proof));
        self.utter(isid, Stage::Security, Some(Stage::FullFeature), &proof);
    }

    /// Logs in with CHAP; how that ends.
    pub(crate) fn prove(&mut self, who: Who<'_>) -> Option<(u8, u8)> {
        self.send_proof(who, Algorithm::Md5);
        status(self.receive())
    }
}
