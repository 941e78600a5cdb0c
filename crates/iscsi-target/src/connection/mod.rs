//! One connection, which usually is one session: receives bytes, handles PDUs, collects answers, sends bytes.
//!
//! The flow of one batch: [`Connection::received`] -> `parse` cuts the bytes into PDUs and handles each at once
//! (`command.rs`, `data_out.rs`, `control.rs`, `login.rs`); its answer is added to a gather list (`reply.rs`) ->
//! `flush` sends the whole list with one operation. While a send is in progress, answers go to a second list.
//!
//! Memory is bounded as follows. Parsing stops while the list has too many bytes of answers, and continues when the
//! send is done; nothing is received meanwhile, so TCP slows the peer down. If a connection may not have the I/O
//! buffers of a command now, the command waits in a queue (`buffers.rs`) while parsing continues.
//!
//! `mcs.rs` has the differences for a connection of an MC/S session.

mod buffers;
mod command;
mod control;
mod data_out;
mod inbound;
mod login;
mod management;
mod mcs;
mod outbound;
mod reply;
mod session;
mod steps;
mod tasks;

use crate::buffers::spare_lists::SpareLists;
use crate::{
    admission::Ticket,
    buffers::budget::{Budget, Share},
    connection_key::ConnectionKey,
    context::WorkerContext,
};

use inbound::{Direct, Inbound, Sink};
use linerate_io::{Buffer, Driver, Handle, Nanos, Outgoing};
use linerate_iscsi_proto::{
    frame::{Event, FrameError, Receiver},
    login::LOGIN_DATA_BYTES_MAX,
    pdu::{Header, RejectReason},
};
use login::{Login, LoginDelay};
use management::Due;
use outbound::Outbound;
use reply::Answers;
use session::Session;
use slab::Slab;
use std::{collections::VecDeque, io, net::SocketAddr};
pub(crate) use tasks::TaskId;
use tasks::Tasks;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Login,
    Full,
    /// Nothing more is read; the connection closes when the gather list has been sent.
    Closing,
    /// Closed; waiting for the end of its operations.
    Closed,
}

/// Both ends of a connection, and the tag of its portal group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) group: u16,
    pub(crate) ticket: Ticket,
}

/// See the module text.
pub(crate) struct Connection {
    key: ConnectionKey,
    ticket: Ticket,
    stream: Handle,
    peer: SocketAddr,
    local: SocketAddr,
    /// Tag of its portal group.
    group: u16,
    phase: Phase,
    /// Its session in the worker's table of MC/S sessions, if it is one of these.
    mcs: Option<u32>,
    /// Not read until commands on other connections have arrived: the last received request must wait for its turn.
    stalled: bool,
    /// Logged out alone: its end does not end the session.
    logged_out_alone: bool,
    /// The status that the initiator expects next, by its own report; updated if several connections need it.
    acknowledged: u32,
    /// The worker of the session that this connection joins.
    moves_to: Option<usize>,
    /// Earlier sessions of this initiator port that must end before the login is answered.
    waits: u32,
    /// While logging in.
    login: Option<Box<Login>>,
    /// A login that is delayed, after wrong responses.
    delay: Option<Box<LoginDelay>>,
    /// From full feature phase until all operations have ended.
    session: Option<Box<Session>>,
    receiver: Receiver,
    inbound: Inbound,
    outbound: Outbound,
    sink: Sink,
    tasks: Tasks,
    /// The I/O memory that it uses.
    share: Share,
    /// Tasks that wait for I/O memory.
    awaiting: VecDeque<TaskId>,
    /// A task whose data comes next, and for which there is no buffer yet: nothing more is parsed.
    blocked: Option<TaskId>,
    /// The worker knows that tasks wait.
    queued: bool,
    /// Answers that are held back.
    due: Slab<Due>,
    /// Volume operations in flight.
    operations: u32,
    opened: Nanos,
    heard: Nanos,
    /// The time of a ping that waits for its answer.
    pinged: Option<Nanos>,
}

impl Connection {
    pub(crate) fn new<D: Driver>(
        key: ConnectionKey,
        stream: Handle,
        endpoints: Endpoints,
        context: &WorkerContext<D>,
    ) -> Self {
        let Endpoints { peer, local, group, ticket } = endpoints;
        Self {
            key,
            ticket,
            stream,
            peer,
            local,
            group,
            phase: Phase::Login,
            mcs: None,
            stalled: false,
            logged_out_alone: false,
            acknowledged: 0,
            moves_to: None,
            waits: 0,
            login: Some(Box::new(Login::new(context))),
            delay: None,
            session: None,
            receiver: Receiver::new(LOGIN_DATA_BYTES_MAX),
            inbound: Inbound::new(),
            outbound: Outbound::new(),
            sink: Sink::Discard,
            tasks: Tasks::new(),
            share: Share::default(),
            awaiting: VecDeque::new(),
            blocked: None,
            queued: false,
            due: Slab::new(),
            operations: 0,
            opened: context.now,
            heard: context.now,
            pinged: None,
        }
    }

    pub(crate) fn key(&self) -> ConnectionKey {
        self.key
    }

    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    pub(crate) fn stream(&self) -> Handle {
        self.stream
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Tag of its portal group.
    pub(crate) fn group(&self) -> u16 {
        self.group
    }

    /// The worker to which it must move.
    pub(crate) fn moves_to(&self) -> Option<usize> {
        self.moves_to
    }

    /// The received bytes that were not handled, for the next worker. Ends the connection on this worker.
    pub(crate) fn take_received(&mut self) -> Vec<u8> {
        let mut received = self.take_login_pdu();
        if let Some((buffer, bytes)) = self.inbound.take() {
            received.extend_from_slice(&buffer.as_slice()[bytes]);
        }
        received
    }

    /// Whether it is closed and every operation has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.phase == Phase::Closed
            && !self.inbound.is_receiving()
            && !self.outbound.is_sending()
            && self.operations == 0
    }

    /// Begins to receive, after bytes that another worker has received.
    pub(crate) fn start<D: Driver>(&mut self, context: &mut WorkerContext<D>, received: &[u8]) {
        if received.is_empty() {
            return self.receive_more(context);
        }
        self.inbound.begin_with(received);
        self.resume(context);
    }

    /// A receive has finished.
    pub(crate) fn received<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        result: &io::Result<usize>,
        buffer: Buffer,
    ) {
        let count = *result.as_ref().unwrap_or(&0);
        let (direct, placed) = self.inbound.received(buffer, count);
        if let Some(direct) = direct {
            self.end_direct(context, direct, placed);
        }
        if self.phase == Phase::Closed {
            return;
        }
        if count == 0 {
            return self.close(context);
        }
        context.counters.receives += 1;
        context.counters.bytes_received += count as u64;
        self.heard = context.now;
        if self.phase == Phase::Login {
            self.inbound.stay_small();
        }
        self.resume(context);
    }

    /// A send has finished.
    pub(crate) fn sent<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        result: &io::Result<()>,
        outgoing: Box<Outgoing>,
    ) {
        self.outbound.sent(outgoing, context, &mut self.share);
        if result.is_err() {
            return self.close(context);
        }
        self.resume(context);
    }

    /// Parses received bytes, sends answers, and receives more.
    pub(crate) fn resume<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        self.parse(context);
        self.flush(context);
        self.receive_more(context);
    }

    fn parse<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        // Nothing has arrived since the last turn.
        let Some((buffer, mut bytes)) = self.inbound.take() else { return };
        while self.may_parse(context) {
            match self.receiver.next(&buffer.as_slice()[bytes.clone()]) {
                Ok(step) => {
                    let input = &buffer.as_slice()[bytes.clone()];
                    bytes.start += step.consumed;
                    match step.event {
                        Event::NeedMore => break,
                        Event::Header { data_len } => self.header(context, data_len),
                        Event::Data { payload, offset, complete } => {
                            self.payload(context, &input[payload], offset, complete);
                        }
                    }
                }
                Err(error) => {
                    self.frame_error(context, &error);
                    break;
                }
            }
        }
        self.inbound.put_back(buffer, bytes);
    }

    fn may_parse<D: Driver>(&self, context: &WorkerContext<D>) -> bool {
        self.blocked.is_none()
            && self.waits == 0
            && self.delay.is_none()
            && !self.stalled
            && self.moves_to.is_none()
            && !self.outbound.is_full(context.answers.share_bytes())
            && matches!(self.phase, Phase::Login | Phase::Full)
    }

    fn header<D: Driver>(&mut self, context: &mut WorkerContext<D>, data_len: u32) {
        context.counters.pdus_received += 1;
        tracing::trace!(event = "pdu", peer = %self.peer, "received {}", Header(self.receiver.bhs()));
        self.sink = Sink::Discard;
        match self.phase {
            Phase::Login => self.login_header(context, data_len),
            Phase::Full => self.full_header(context, data_len),
            Phase::Closing | Phase::Closed => {}
        }
    }

    fn frame_error<D: Driver>(&mut self, context: &mut WorkerContext<D>, error: &FrameError) {
        if matches!(error, FrameError::DataDigest | FrameError::HeaderDigest) {
            context.counters.digest_errors += 1;
            tracing::warn!(event = "digest_error", peer = %self.peer, "a connection is closed: {error}");
        }
        match error {
            FrameError::DataDigest => {
                self.reject(context, RejectReason::DataDigest);
                self.close_when_sent();
            }
            FrameError::HeaderDigest => self.close(context),
            FrameError::TooLong { .. } => self.protocol_error(context, "a data segment beyond the limit"),
        }
    }

    /// The peer broke the protocol, and the connection cannot continue.
    fn protocol_error<D: Driver>(&mut self, context: &mut WorkerContext<D>, what: &'static str) {
        context.counters.protocol_errors += 1;
        tracing::warn!(event = "protocol_error", peer = %self.peer, "a connection is closed: its peer sent {what}");
        if self.phase == Phase::Full {
            self.reject(context, RejectReason::ProtocolError);
            self.close_when_sent();
        } else {
            self.close(context);
        }
    }

    /// Sends the gather list and then closes.
    fn close_when_sent(&mut self) {
        if self.phase != Phase::Closed {
            self.phase = Phase::Closing;
        }
    }

    /// Sends the gather list, unless a send is in progress.
    fn flush<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        if self.phase == Phase::Closed || self.waits > 0 || self.delay.is_some() {
            return;
        }
        if self.outbound.send(self.stream, context) {
            return;
        }
        if self.phase == Phase::Closing && !self.outbound.is_sending() {
            self.close(context);
        }
    }

    fn receive_more<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        if self.may_parse(context) && self.inbound.is_drained() {
            let mut segs = std::mem::take(&mut context.segs);
            let direct = self.direct_target(context, &mut segs);
            let (receiver, tasks) = (&self.receiver, &self.tasks);
            let expects_more = || !receiver.at_boundary() || tasks.expects_data();
            self.inbound.receive(self.stream, context, direct, &segs, expects_more);
            segs.clear();
            context.segs = segs;
        }
    }

    /// Ends the connection, and its session unless the connection was logged out alone. Operations in flight end by
    /// themselves.
    pub(crate) fn close<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Closed => return,
            Phase::Login => context.counters.logins_failed += 1,
            Phase::Full | Phase::Closing => {}
        }
        self.moves_to = None;
        self.end_login_delay(context);
        self.retract_all(context);
        self.awaiting.clear();
        self.blocked = None;
        self.due.clear();
        if let Some(session) = &self.session {
            session.end(&mut self.tasks);
            let tsih = session.tsih();
            self.leave_session(context, tsih);
        }
        context.driver.close(self.stream);
        context.counters.tasks -= self.tasks.clear(&mut context.pool, &mut self.share);
        self.outbound.drop_gathered(&mut context.pool, &mut self.share);
    }

    /// A direct receive for a task has ended: the task has its buffers again.
    fn end_direct<D: Driver>(&mut self, context: &mut WorkerContext<D>, direct: Direct, placed: u32) {
        let Direct { task, chunks, at, .. } = direct;
        if placed > 0 && self.phase != Phase::Closed {
            self.receiver.advance_direct(placed, |crc| context.pool.digest(chunks.segs(), at, placed, crc));
        }
        let Some(entry) = self.tasks.known(task) else {
            return context.pool.give_back(&mut self.share, chunks);
        };
        entry.take_back(chunks);
        if entry.aborted {
            self.end_write(task);
            self.end_task(context, task);
        }
    }

    /// An earlier session that the login waits for has ended completely.
    pub(crate) fn proceed<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        self.waits = self.waits.saturating_sub(1);
        self.resume(context);
    }

    /// Borrows memory for answers.
    #[inline]
    pub(crate) fn begin_gathering(&mut self, spare: &mut SpareLists) {
        self.outbound.begin_turn(spare);
    }

    /// Returns its memory if it is not in use.
    #[inline]
    pub(crate) fn end_gathering(&mut self, spare: &mut SpareLists, answers: &mut Budget) {
        self.outbound.end_turn(spare, answers);
    }

    /// Access to the answers in full feature phase. None once the connection closes: answers are not sent any more
    /// then, which is normal.
    fn answers(&mut self) -> Option<Answers<'_>> {
        let session = self.session.as_mut().filter(|_| self.phase == Phase::Full)?;
        Some(Answers { peer: self.peer, out: &mut self.outbound, session })
    }

    fn digests_data(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.digests_data())
    }
}
