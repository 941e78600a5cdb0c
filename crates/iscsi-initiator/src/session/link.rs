//! The connections of a session: usually one, the leading one; with `connections` above 1 as many as the target allows.
//!
//! Commands are numbered per session, everything else that is counted or sized belongs to the connection: statuses,
//! segment lengths, digests, pings. A command's data and its status travel over the connection that carried the command.

use super::receive::Current;
use super::tasks::TaskIndex;
use super::{RECEIVE_BYTES, Session};
use crate::balance::Moves;
use linerate_io::{Buffer, Driver, Handle, Nanos, Outgoing, Seg};
use linerate_iscsi_proto::frame::{Framer, Receiver};
use linerate_iscsi_proto::login::{Established, InitiatorLogin, LOGIN_DATA_BYTES_MAX};
use linerate_iscsi_proto::params::SessionParams;
use linerate_iscsi_proto::pdu::NopIn;
use linerate_iscsi_proto::transfer::Burst;
use linerate_iscsi_proto::window::ExpectedStatus;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// What a connection has carried since the counters were last taken. Only I/Os that succeeded count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// I/Os done.
    pub ios: u64,
    /// Bytes of reads.
    pub read_bytes: u64,
    /// Bytes of writes.
    pub write_bytes: u64,
}

impl ConnectionCounters {
    #[inline]
    pub(super) fn count(&mut self, moves: Moves, bytes: u32) {
        match moves {
            Moves::Read => self.read_bytes += u64::from(bytes),
            Moves::Write => self.write_bytes += u64::from(bytes),
            Moves::Nothing => {}
        }
        self.ios += 1;
    }
}

/// One TCP connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) stream: Handle,
    /// Connection ID.
    pub(super) cid: u16,
    /// Where it goes.
    pub(super) peer: SocketAddr,
    /// Our end, once it is connected.
    pub(super) local: Option<SocketAddr>,
    pub(super) receiver: Receiver,
    pub(super) framer: Framer,
    /// What was negotiated: the session's parameters, and those of the connection.
    pub(super) params: SessionParams,
    pub(super) expected: ExpectedStatus,
    /// None while the driver has it.
    pub(super) buffer: Option<Buffer>,
    /// Bytes that the receive under way puts straight into a region.
    pub(super) direct: Option<Seg>,
    /// None while the driver has it.
    pub(super) outgoing: Option<Box<Outgoing>>,
    /// What the data segment that is arriving is for.
    pub(super) current: Current,
    /// Data of PDUs that are handled whole: sense, text, rejected headers.
    pub(super) scratch: Vec<u8>,
    /// Login PDUs to send.
    pub(super) login_bytes: Vec<u8>,
    pub(super) login: Option<InitiatorLogin>,
    /// Pings, aborts, text and logout: sent before commands and outside the window.
    pub(super) urgent: VecDeque<TaskIndex>,
    /// Runs of Data-Out that the target asked for, with the tag of their task.
    pub(super) bursts: VecDeque<(u32, Burst)>,
    /// Target pings to answer.
    pub(super) pongs: Vec<NopIn>,
    /// Bytes came since the last look.
    pub(super) heard: bool,
    pub(super) last_heard: Nanos,
    /// A ping of ours is under way.
    pub(super) pinging: bool,
    /// Commands sent and not answered.
    pub(super) in_flight: u32,
    pub(super) counters: ConnectionCounters,
}

impl Link {
    pub(super) fn new(stream: Handle, cid: u16, peer: SocketAddr, now: Nanos) -> Self {
        Self {
            stream,
            cid,
            peer,
            local: None,
            receiver: Receiver::new(LOGIN_DATA_BYTES_MAX),
            framer: Framer::default(),
            params: SessionParams::default(),
            expected: ExpectedStatus::default(),
            buffer: Some(Buffer::new(RECEIVE_BYTES)),
            direct: None,
            outgoing: Some(Box::default()),
            current: Current::default(),
            scratch: Vec::new(),
            login_bytes: Vec::new(),
            login: None,
            urgent: VecDeque::new(),
            bursts: VecDeque::new(),
            pongs: Vec::new(),
            heard: false,
            last_heard: now,
            pinging: false,
            in_flight: 0,
            counters: ConnectionCounters::default(),
        }
    }

    /// TCP is connected.
    pub(super) fn is_connected(&self) -> bool {
        self.local.is_some()
    }

    /// In full feature phase.
    pub(super) fn is_full(&self) -> bool {
        self.is_connected() && self.login.is_none()
    }

    /// The login is done.
    pub(super) fn established(&mut self, login: &Established) {
        let params = login.params;
        self.receiver.negotiated(
            params.header_digest,
            params.data_digest,
            params.max_recv_data_segment_length,
        );
        self.framer = Framer { header_digest: params.header_digest, data_digest: params.data_digest };
        self.params = params;
        self.expected = ExpectedStatus::after_login(login);
    }
}

impl Session {
    /// The streams of the connections there are, the leading one first.
    pub(crate) fn streams(&self) -> impl Iterator<Item = Handle> {
        self.links.iter().map(|link| link.stream)
    }

    /// The place of a stream's connection.
    #[inline]
    pub(crate) fn link_of(&self, stream: Handle) -> Option<usize> {
        self.links.iter().position(|link| link.stream == stream)
    }

    /// Closes every connection.
    pub(crate) fn hang_up<D: Driver>(&mut self, driver: &mut D) {
        for link in self.links.drain(..) {
            driver.close(link.stream);
        }
    }

    /// Hands `take` what each connection has carried since the last call, by connection ID.
    pub(crate) fn take_connection_counters(&mut self, mut take: impl FnMut(u16, ConnectionCounters)) {
        for link in &mut self.links {
            take(link.cid, std::mem::take(&mut link.counters));
        }
    }
}
