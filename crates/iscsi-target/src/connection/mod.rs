//! One connection, which usually is one session: bytes in, PDUs judged, answers gathered, bytes out.
//!
//! The flow of one batch: [`Connection::received`] -> `parse` cuts the bytes into PDUs, each of which is acted upon at
//! once (`command.rs`, `data_out.rs`, `control.rs`, `login.rs`) and leaves its answer in the gathering list (`reply.rs`)
//! -> `flush` sends everything that gathered with one operation. While a send is under way, answers go to a second list.
//!
//! What bounds memory: parsing stops while too many bytes of answers have gathered, and goes on when the send is done;
//! nothing is received meanwhile, so TCP slows the peer down. Commands that need I/O buffers which their connection may not
//! take now wait in a queue (`memory.rs`) while parsing goes on.
//!
//! What is different for one of several connections of a session is in `several.rs`.

mod command;
mod control;
mod data_out;
mod inbound;
mod login;
mod management;
mod memory;
mod outbound;
mod reply;
mod session;
mod several;
mod steps;
mod tasks;

use crate::{
    admission::Ticket,
    context::Core,
    memory::budget::{Budget, Share},
    service::ConnectionKey,
};

use inbound::{Direct, Inbound, Sink};
use linerate_io::{Buffer, Driver, Handle, Nanos, Outgoing};
use linerate_iscsi_proto::{
    frame::{Event, FrameError, Receiver},
    login::LOGIN_DATA_BYTES_MAX,
    pdu::RejectReason,
};
use login::{Login, Rest};
use management::Due;
use outbound::Outbound;
pub(crate) use outbound::SpareLists;
use reply::Answers;
use session::Session;
use slab::Slab;
use std::{collections::VecDeque, io, net::SocketAddr};
pub(crate) use tasks::TaskId;
use tasks::Tasks;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Login,
    Full,
    /// Nothing more is read; the connection closes when what gathered has been sent.
    Farewell,
    /// Closed; waiting for operations to come back.
    Closed,
}

/// What a connection lies between, and the tag of its portal group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
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
    /// Tag of the portal group that it came through.
    group: u16,
    phase: Phase,
    /// The session among those that may have several connections (`joint.rs`), if it is one.
    joint: Option<u32>,
    /// Not read until commands on other connections have come: it is not the turn of what was received last.
    stalled: bool,
    /// Logged out alone: its end is not the session's.
    departs: bool,
    /// The status that the initiator said it expects next; kept up to date where several connections need it.
    acknowledged: u32,
    /// The worker that serves the session which this connection wants to join.
    moves_to: Option<usize>,
    /// Earlier sessions of this initiator port that have to be gone before the login is answered.
    waits: u32,
    /// While logging in.
    login: Option<Box<Login>>,
    /// A login that rests, after wrong proofs.
    rest: Option<Box<Rest>>,
    /// From full feature phase until everything has come back.
    session: Option<Box<Session>>,
    receiver: Receiver,
    inbound: Inbound,
    outbound: Outbound,
    sink: Sink,
    tasks: Tasks,
    /// I/O memory that it holds.
    share: Share,
    /// Tasks that wait for I/O memory.
    awaiting: VecDeque<TaskId>,
    /// One of them whose data comes next, for which there is no place yet: nothing more is parsed.
    blocked: Option<TaskId>,
    /// The worker knows that tasks wait.
    queued: bool,
    /// Answers that are held back.
    due: Slab<Due>,
    /// Volume operations in flight.
    operations: u32,
    opened: Nanos,
    heard: Nanos,
    /// A ping that waits for its answer: when it was sent.
    pinged: Option<Nanos>,
}

impl Connection {
    pub(crate) fn new<D: Driver>(key: ConnectionKey, stream: Handle, ends: Ends, core: &Core<D>) -> Self {
        let Ends { peer, local, group, ticket } = ends;
        Self {
            key,
            ticket,
            stream,
            peer,
            local,
            group,
            phase: Phase::Login,
            joint: None,
            stalled: false,
            departs: false,
            acknowledged: 0,
            moves_to: None,
            waits: 0,
            login: Some(Box::new(Login::new(core))),
            rest: None,
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
            opened: core.now,
            heard: core.now,
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

    /// Tag of the portal group that it came through.
    pub(crate) fn group(&self) -> u16 {
        self.group
    }

    /// The worker that it has to be brought to.
    pub(crate) fn moves_to(&self) -> Option<usize> {
        self.moves_to
    }

    /// Everything that was received and not acted on, for the worker that goes on with it. Ends this side of it.
    pub(crate) fn take_received(&mut self) -> Vec<u8> {
        let mut received = self.take_login_pdu();
        if let Some((buffer, bytes)) = self.inbound.take() {
            received.extend_from_slice(&buffer.as_slice()[bytes]);
        }
        received
    }

    /// Whether it is closed and every operation has come back.
    pub(crate) fn is_gone(&self) -> bool {
        self.phase == Phase::Closed
            && !self.inbound.is_receiving()
            && !self.outbound.is_sending()
            && self.operations == 0
    }

    /// Begins to receive, after what another worker has received already.
    pub(crate) fn start<D: Driver>(&mut self, core: &mut Core<D>, received: &[u8]) {
        if received.is_empty() {
            return self.receive_more(core);
        }
        self.inbound.begin_with(received);
        self.resume(core);
    }

    /// A receive has finished.
    pub(crate) fn received<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        result: &io::Result<usize>,
        buffer: Buffer,
    ) {
        let count = *result.as_ref().unwrap_or(&0);
        let (direct, placed) = self.inbound.received(buffer, count);
        if let Some(direct) = direct {
            self.end_direct(core, direct, placed);
        }
        if self.phase == Phase::Closed {
            return;
        }
        if count == 0 {
            return self.close(core);
        }
        core.counters.receives += 1;
        core.counters.bytes_received += count as u64;
        self.heard = core.now;
        if self.phase == Phase::Login {
            self.inbound.stay_small();
        }
        self.resume(core);
    }

    /// A send has finished.
    pub(crate) fn sent<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        result: &io::Result<()>,
        outgoing: Box<Outgoing>,
    ) {
        self.outbound.sent(outgoing, core, &mut self.share);
        if result.is_err() {
            return self.close(core);
        }
        self.resume(core);
    }

    /// Parses what has arrived, sends what has gathered, and receives more.
    pub(crate) fn resume<D: Driver>(&mut self, core: &mut Core<D>) {
        self.parse(core);
        self.flush(core);
        self.receive_more(core);
    }

    fn parse<D: Driver>(&mut self, core: &mut Core<D>) {
        let Some((buffer, mut bytes)) = self.inbound.take() else { return };
        while self.may_parse(core) {
            match self.receiver.next(&buffer.as_slice()[bytes.clone()]) {
                Ok(step) => {
                    let input = &buffer.as_slice()[bytes.clone()];
                    bytes.start += step.consumed;
                    match step.event {
                        Event::NeedMore => break,
                        Event::Header { data_len } => self.header(core, data_len),
                        Event::Data { payload, offset, complete } => {
                            self.payload(core, &input[payload], offset, complete);
                        }
                    }
                }
                Err(error) => {
                    self.frame_error(core, &error);
                    break;
                }
            }
        }
        self.inbound.put_back(buffer, bytes);
    }

    fn may_parse<D: Driver>(&self, core: &Core<D>) -> bool {
        self.blocked.is_none()
            && self.waits == 0
            && self.rest.is_none()
            && !self.stalled
            && self.moves_to.is_none()
            && !self.outbound.is_full(core.answers.share_bytes())
            && matches!(self.phase, Phase::Login | Phase::Full)
    }

    fn header<D: Driver>(&mut self, core: &mut Core<D>, data_len: u32) {
        core.counters.pdus_received += 1;
        self.sink = Sink::Discard;
        match self.phase {
            Phase::Login => self.login_header(core, data_len),
            Phase::Full => self.full_header(core, data_len),
            Phase::Farewell | Phase::Closed => {}
        }
    }

    fn frame_error<D: Driver>(&mut self, core: &mut Core<D>, error: &FrameError) {
        if matches!(error, FrameError::DataDigest | FrameError::HeaderDigest) {
            core.counters.digest_errors += 1;
            tracing::warn!(event = "digest_error", peer = %self.peer, "a connection is closed: {error}");
        }
        match error {
            FrameError::DataDigest => {
                self.reject(core, RejectReason::DataDigest);
                self.say_farewell();
            }
            FrameError::HeaderDigest => self.close(core),
            FrameError::TooLong { .. } => self.protocol_error(core, "a data segment beyond the limit"),
        }
    }

    /// The peer broke the protocol in a way that cannot be mended.
    fn protocol_error<D: Driver>(&mut self, core: &mut Core<D>, what: &'static str) {
        core.counters.protocol_errors += 1;
        tracing::warn!(event = "protocol_error", peer = %self.peer, "a connection is closed: its peer sent {what}");
        if self.phase == Phase::Full {
            self.reject(core, RejectReason::ProtocolError);
            self.say_farewell();
        } else {
            self.close(core);
        }
    }

    /// Sends what has gathered and then closes.
    fn say_farewell(&mut self) {
        if self.phase != Phase::Closed {
            self.phase = Phase::Farewell;
        }
    }

    /// Sends what has gathered, unless a send is under way.
    fn flush<D: Driver>(&mut self, core: &mut Core<D>) {
        if self.phase == Phase::Closed || self.waits > 0 || self.rest.is_some() {
            return;
        }
        if self.outbound.send(self.stream, core) {
            return;
        }
        if self.phase == Phase::Farewell && !self.outbound.is_sending() {
            self.close(core);
        }
    }

    fn receive_more<D: Driver>(&mut self, core: &mut Core<D>) {
        if self.may_parse(core) && self.inbound.is_drained() {
            let mut segs = std::mem::take(&mut core.segs);
            let direct = self.direct_target(core, &mut segs);
            let (receiver, tasks) = (&self.receiver, &self.tasks);
            let expects_more = || !receiver.at_boundary() || tasks.expects_data();
            self.inbound.receive(self.stream, core, direct, &segs, expects_more);
            segs.clear();
            core.segs = segs;
        }
    }

    /// Ends the connection, and with it its session unless it was logged out alone. Operations in flight come back by
    /// themselves.
    pub(crate) fn close<D: Driver>(&mut self, core: &mut Core<D>) {
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Closed => return,
            Phase::Login => core.counters.logins_failed += 1,
            Phase::Full | Phase::Farewell => {}
        }
        self.moves_to = None;
        self.end_rest(core);
        self.retract_all(core);
        self.awaiting.clear();
        self.blocked = None;
        self.due.clear();
        if let Some(session) = &self.session {
            session.end(&mut self.tasks);
            let tsih = session.tsih();
            self.leave_session(core, tsih);
        }
        core.driver.close(self.stream);
        core.counters.tasks -= self.tasks.clear(&mut core.pool, &mut self.share);
        self.outbound.drop_gathered(&mut core.pool, &mut self.share);
    }

    /// A receive straight into the place of a task is over: the task has its buffers again.
    fn end_direct<D: Driver>(&mut self, core: &mut Core<D>, direct: Direct, placed: u32) {
        let Direct { task, chunks, at, .. } = direct;
        if placed > 0 && self.phase != Phase::Closed {
            self.receiver.advance_direct(placed, |crc| core.pool.digest(chunks.segs(), at, placed, crc));
        }
        let Some(entry) = self.tasks.get_mut(task) else {
            debug_assert!(false, "a task stays until its receive is over");
            return core.pool.give_back(&mut self.share, chunks);
        };
        entry.take_back(chunks);
        if entry.aborted {
            self.end_write(task);
            self.end_task(core, task);
        }
    }

    /// An earlier session that the login waits for has left nothing behind.
    pub(crate) fn proceed<D: Driver>(&mut self, core: &mut Core<D>) {
        self.waits = self.waits.saturating_sub(1);
        self.resume(core);
    }

    /// Borrows memory for answers.
    #[inline]
    pub(crate) fn begin_gathering(&mut self, spare: &mut SpareLists) {
        self.outbound.begin_turn(spare);
    }

    /// Gives it back if it is not in use.
    #[inline]
    pub(crate) fn end_gathering(&mut self, spare: &mut SpareLists, answers: &mut Budget) {
        self.outbound.end_turn(spare, answers);
    }

    /// The answering side of full feature phase.
    fn answers(&mut self) -> Option<Answers<'_>> {
        let session = self.session.as_mut().filter(|_| self.phase == Phase::Full)?;
        Some(Answers { out: &mut self.outbound, session })
    }

    fn digests_data(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.digests_data())
    }
}
