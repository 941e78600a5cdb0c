//! The connections of a session: usually one, the leading one; with `connections` above 1 as many as the target allows.
//!
//! Commands are numbered per session. All other counters and sizes belong to the connection: statuses, segment lengths,
//! digests, pings. A command's data and its status travel over the connection that carried the command.

use super::tasks::TaskIndex;
use crate::balance::Moves;
use linerate_io::{Buffer, Handle, Nanos, Outgoing, Seg};
use linerate_iscsi_proto::frame::{Framer, Receiver};
use linerate_iscsi_proto::login::{Established, InitiatorLogin, LOGIN_DATA_BYTES_MAX};
use linerate_iscsi_proto::params::SessionParams;
use linerate_iscsi_proto::pdu::{DataInStatus, NopIn, Response};
use linerate_iscsi_proto::transfer::Burst;
use linerate_iscsi_proto::window::ExpectedStatus;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Receive memory of one connection. It fits into a core's second-level cache, and is large enough for data that
/// arrives while a batch is being handled.
const RECEIVE_BYTES: usize = 256 * 1024;

/// The counters of a connection since they were last read. Only successful I/Os count.
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

/// The owner of the data segment that is arriving.
#[derive(Debug, Default)]
pub(super) enum Current {
    /// Nothing.
    #[default]
    Nothing,
    /// Read data of a task, which ends with this PDU if it carries status.
    Read { task: TaskIndex, destination: Destination, status: Option<DataInStatus> },
    /// Collected in the scratch buffer until it is complete.
    Whole(Response),
}

/// Destination of a Data-In PDU's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination {
    Nowhere,
    /// Shown to the caller; `base` is the PDU's offset in the I/O.
    Shown {
        device: u32,
        slot: u32,
        base: u32,
    },
    /// The PDU's part of the caller's segment.
    Segment(Seg),
    /// The task's reply buffer.
    Kept,
}

/// One TCP connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Handle,
    /// Connection ID.
    pub(super) cid: u16,
    /// Its address.
    pub(super) peer: SocketAddr,
    /// Our end, once it is connected.
    pub(super) local: Option<SocketAddr>,
    pub(super) receiver: Receiver,
    pub(super) framer: Framer,
    /// Negotiated values: the session's parameters, and those of the connection.
    pub(super) params: SessionParams,
    pub(super) expected: ExpectedStatus,
    /// None while the driver has it.
    pub(super) buffer: Option<Buffer>,
    /// Bytes that the current receive puts directly into a region.
    pub(super) direct: Option<Seg>,
    /// None while the driver has it.
    pub(super) outgoing: Option<Box<Outgoing>>,
    /// The owner of the data segment that is arriving.
    pub(super) current: Current,
    /// Data of PDUs that are handled as a whole: sense, text, rejected headers.
    pub(super) scratch: Vec<u8>,
    /// Login PDUs to send.
    pub(super) login_bytes: Vec<u8>,
    pub(super) login: Option<InitiatorLogin>,
    /// A login response came: the peer is an iSCSI target.
    pub(super) is_target: bool,
    /// Pings, aborts, text and logout: sent before commands, outside the window.
    pub(super) urgent: VecDeque<TaskIndex>,
    /// Runs of Data-Out that the target requested, with the tag of their task.
    pub(super) bursts: VecDeque<(u32, Burst)>,
    /// Target pings to answer.
    pub(super) pongs: Vec<NopIn>,
    /// Bytes came since the last tick.
    pub(super) heard: bool,
    pub(super) last_heard: Nanos,
    /// A ping of ours is in progress.
    pub(super) pinging: bool,
    /// Commands sent and not answered.
    pub(super) in_flight: u32,
    pub(super) counters: ConnectionCounters,
}

impl Connection {
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
            is_target: false,
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
