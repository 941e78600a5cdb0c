//! One thread's part of an array: a driver, and the connections that it serves.
//!
//! [`Worker::turn`] is one round: poll the driver, handle every completion, check the time limits from time to time. It
//! blocks only in the poll, so a simulator can run a worker with its own driver.

mod listening;
mod mcs;

use crate::connection_key::ConnectionKey;
use crate::{
    array::ArrayError,
    array::change::{ChangeError, change},
    array::opening::open_targets,
    buffers::operation::{InFlight, Origin},
    config::{ArrayChange, ArrayConfig},
    connection::{Connection, Endpoints},
    context::WorkerContext,
    engine::{FinishedOperation, InPlace, OperationError, OperationOutput, OperationResult, Quota},
    portals::Portal,
    shared::{Arrival, Mailbox, SharedState, WorkerMessage},
    stats::{ArrayStats, SessionStats},
};
use linerate_io::{Completion, Driver, Handle, Nanos, SocketOptions, Wait, WaitMode, Waiter};
use listening::Listener;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// How often timeouts are looked at.
const TICK_NS: Nanos = 100_000_000;
/// The pause before tasks that wait for other tasks are tried again: the first one, and the longest one while none of
/// them makes progress.
const RETRY_NS: Nanos = 50_000;
const RETRY_NS_MAX: Nanos = 5_000_000;
/// How long connections wait for memory before stalled connections that use it are checked.
const PRESSED_NS: Nanos = 100_000_000;
/// How long initiators have to log out when the array stops.
const GRACE_NS: Nanos = 500_000_000;
/// Operations that a turn performs on the engines' volumes before their answers are sent. At a queue depth of 32, the
/// initiator works on the first half while the next turn performs the second one. Bytes: what one send gathers at most.
/// With 256 KiB the initiator used a third more CPU time per read (docs/benchmarks.md).
const QUOTA: Quota = Quota { operations: 16, bytes: 2 << 20 };

/// A connection's index in the worker's table.
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

/// See the module text.
pub struct Worker<D: Driver> {
    context: WorkerContext<D>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// By index of a stream's handle: the stream and the index of its connection.
    routes: Vec<Option<(Handle, u32)>>,
    listeners: Vec<Listener>,
    /// Portals that follow their interface.
    following: Vec<Portal>,
    /// Addresses of their interfaces that it cannot listen on yet.
    unserved: Vec<(String, IpAddr)>,
    waiter: Waiter,
    completions: Vec<Completion<D::Socket>>,
    messages: Vec<WorkerMessage<D::Socket>>,
    /// Empty between calls, like `messages`.
    answers: Vec<FinishedOperation>,
    next_tick: Nanos,
    /// The next pause of tasks that wait for others, and the time at which they are tried again.
    retry_ns: Nanos,
    retry_at: Nanos,
    /// The number of returned chunks at the last check of the connections that wait for memory.
    returns_seen: u64,
    /// Set when the array stops: the time at which the remaining connections are closed.
    stopping: Option<Nanos>,
}

impl<D: Driver> Worker<D> {
    /// An array of one worker, on the caller's driver and thread and with the caller's random numbers: for simulators.
    /// Drive it with [`Worker::turn`].
    pub fn alone(
        mut driver: D,
        config: &ArrayConfig,
        random: impl FnMut(&mut [u8]) + Send + 'static,
    ) -> Result<Self, ArrayError> {
        let portals = Portal::all(config)?;
        let (targets, volumes) = open_targets(config, &mut driver, None)?;
        let shared = Arc::new(SharedState::new(config, 1, targets, volumes, None));
        let mut worker =
            Self::new(driver, Arc::clone(&shared), 0, WaitMode::Block).map_err(ArrayError::Host)?;
        worker.context.random = Box::new(random);
        shared.introduce(vec![worker.mailbox()]);
        for portal in portals {
            worker.serve(portal)?;
        }
        Ok(worker)
    }

    /// A worker that serves `service`'s volumes through `driver`.
    pub(crate) fn new(
        driver: D,
        shared: Arc<SharedState<D::Socket>>,
        index: usize,
        wait: WaitMode,
    ) -> io::Result<Self> {
        let context = WorkerContext::new(driver, shared, index)?;
        Ok(Self {
            next_tick: context.now + TICK_NS,
            retry_ns: RETRY_NS,
            retry_at: 0,
            returns_seen: 0,
            context,
            slots: Vec::new(),
            free: Vec::new(),
            routes: Vec::new(),
            listeners: Vec::new(),
            following: Vec::new(),
            unserved: Vec::new(),
            waiter: Waiter::new(wait),
            completions: Vec::new(),
            messages: Vec::new(),
            answers: Vec::new(),
            stopping: None,
        })
    }

    /// Where others leave messages for this worker.
    pub(crate) fn mailbox(&self) -> Arc<Mailbox<D::Socket>> {
        Arc::clone(&self.context.mailbox)
    }

    /// Addresses that it listens on, as the driver chose them.
    pub fn portals(&self) -> Vec<SocketAddr> {
        self.context.shared.portals().listening().map(|(addr, _)| addr).collect()
    }

    /// As [`crate::Array::change`].
    pub fn change(&mut self, wanted: &ArrayChange) -> Result<(), ChangeError> {
        change(&self.context.shared.targets, wanted)
    }

    /// The sessions that are logged in now.
    pub fn sessions(&self) -> Vec<SessionStats> {
        self.context.shared.sessions()
    }

    /// Counters since the start.
    pub fn stats(&self) -> ArrayStats {
        self.context.shared.stats()
    }

    /// The driver, for simulations.
    pub fn driver(&mut self) -> &mut D {
        &mut self.context.driver
    }

    /// Whether the worker was told to stop and everything has ended.
    pub fn is_stopped(&self) -> bool {
        self.stopping.is_some() && self.slots.len() == self.free.len()
    }

    /// One round. `wait` ends early when a timeout is due.
    pub fn turn(&mut self, wait: Wait) -> io::Result<()> {
        let mut until = self.next_tick;
        if !self.context.waiting.is_empty() {
            until = until.min(self.retry_at);
        }
        let wait = match wait {
            // The last turn has left some.
            _ if !self.context.requests.is_empty() => Wait::Never,
            Wait::Never => Wait::Never,
            Wait::Until(time) => Wait::Until(time.min(until)),
            Wait::Forever => Wait::Until(until),
        };
        let mut completions = std::mem::take(&mut self.completions);
        self.waiter.poll(&mut self.context.driver, wait, &mut completions)?;
        self.context.now = self.context.driver.now();
        for completion in completions.drain(..) {
            self.complete(completion);
        }
        self.completions = completions;
        self.end_outdated();
        self.retry_waiting();
        self.resume_waiting_for_buffers();
        if self.context.now >= self.next_tick {
            self.tick();
        }
        self.post_requests();
        self.context.counters.polled_ns = self.waiter.polled_ns();
        self.context.publish();
        Ok(())
    }

    fn complete(&mut self, completion: Completion<D::Socket>) {
        match completion {
            Completion::Received { stream, result, buffer } => {
                self.with_stream(stream, |connection, context| connection.received(context, &result, buffer));
            }
            Completion::Sent { stream, result, outgoing } => {
                self.with_stream(stream, |connection, context| connection.sent(context, &result, outgoing));
            }
            Completion::File { tag, result, .. } => {
                self.operation_done(
                    tag,
                    OperationResult(result.map(OperationOutput::Moved).map_err(OperationError::Host)),
                );
            }
            Completion::Accepted { listener, result: Ok((socket, peer)) } => {
                // Without its portal it was accepted too late: the address is removed.
                let portal = self.listeners.iter().find(|portal| portal.handle == listener);
                if let Some(group) = portal.map(|portal| portal.group) {
                    self.assign_socket(socket, peer, group);
                }
            }
            Completion::Accepted { result: Err(error), .. } => {
                tracing::error!(
                    event = "accept_failed",
                    %error,
                    "cannot accept a connection; raise the limit of open files (ulimit -n)"
                );
                self.context.shared.make_room(self.context.now);
            }
            Completion::Woken => self.read_mail(),
            Completion::Connected { .. } => {}
        }
    }

    /// A volume operation has ended.
    fn operation_done(&mut self, tag: u64, outcome: OperationResult) {
        let index = self.context.operations[tag as usize].origin.connection.index;
        self.with_slot(index, |connection, context| {
            end_operation(connection, context, tag, outcome, None);
            connection.resume(context);
        });
    }

    /// Performs the first requests, as far as they need no waiting, and sends their answers. The engines get those
    /// that have to wait.
    fn post_requests(&mut self) {
        let mut quota = QUOTA;
        // An answer may be followed by the next request of its task.
        while !quota.is_used_up() && !self.context.requests.is_empty() {
            let mut answers = std::mem::take(&mut self.answers);
            let WorkerContext { shared, requests, waiting_requests, now, .. } = &mut self.context;
            match &shared.engines {
                Some(engines) => {
                    engines.perform(*now, &mut quota, requests, waiting_requests, &mut answers);
                    if !waiting_requests.is_empty() {
                        engines.send(waiting_requests);
                    }
                }
                None => waiting_requests.extend(requests.drain(..)),
            }
            self.answers = answers;
            self.operations_done();
            // Their engine has ended.
            while let Some(request) = self.context.waiting_requests.pop() {
                self.operation_done(request.tag, OperationResult(Err(OperationError::Gone)));
            }
        }
    }

    /// Passes a new connection to the least loaded worker.
    fn assign_socket(&mut self, socket: D::Socket, peer: SocketAddr, group: u16) {
        if self.stopping.is_some() {
            return;
        }
        let ticket = self.context.shared.admit_connection(peer.ip(), self.context.now);
        self.context.counters.connections_accepted += 1;
        let worker = self.context.shared.least_loaded();
        let arrival = Arrival { socket, peer, ticket, group, received: Vec::new() };
        match self.context.shared.mailboxes().get(worker) {
            Some(mailbox) if worker != self.context.index => mailbox.post(WorkerMessage::Adopt(arrival)),
            _ => self.adopt(arrival),
        }
    }

    fn adopt(&mut self, arrival: Arrival<D::Socket>) {
        let Arrival { socket, peer, ticket, group, received } = arrival;
        let added = self.context.driver.add_stream(socket, &SocketOptions::default());
        let local = added.and_then(|stream| Ok((stream, self.context.driver.local_addr(stream)?)));
        let (stream, local) = match local {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%peer, %error, "a connection was gone before it could be served");
                return self.context.shared.connection_ended(self.context.index, ticket, self.context.now);
            }
        };
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        let key = ConnectionKey { index, generation: slot.generation };
        let endpoints = Endpoints { peer, local, group, ticket };
        slot.connection = Some(Box::new(Connection::new(key, stream, endpoints, &self.context)));
        let route = stream.index() as usize;
        if self.routes.len() <= route {
            self.routes.resize(route + 1, None);
        }
        self.routes[route] = Some((stream, index));
        let stays = self.context.shared.connections().placed(ticket, self.context.index, key);
        self.with_slot(index, |connection, context| {
            if stays { connection.start(context, &received) } else { connection.give_way(context) }
        });
    }

    fn with_stream(&mut self, stream: Handle, act: impl FnOnce(&mut Connection, &mut WorkerContext<D>)) {
        let route = self.routes.get(stream.index() as usize).copied().flatten();
        let slot = match route {
            Some((handle, slot)) if handle == stream => Some(slot),
            // Late completions of a closed stream whose index was reused.
            _ => self
                .slots
                .iter()
                .position(|slot| {
                    slot.connection.as_ref().is_some_and(|connection| connection.stream() == stream)
                })
                .map(|slot| slot as u32),
        };
        if let Some(slot) = slot {
            self.with_slot(slot, act);
        }
    }

    fn with_connection(
        &mut self,
        key: ConnectionKey,
        act: impl FnOnce(&mut Connection, &mut WorkerContext<D>),
    ) {
        self.with_slot(key.index, |connection, context| {
            if connection.key() == key {
                act(connection, context);
            }
        });
    }

    fn with_slot(&mut self, index: u32, act: impl FnOnce(&mut Connection, &mut WorkerContext<D>)) {
        self.act_on(index, act);
        if self.context.mcs_sessions.is_unsettled() {
            self.settle();
        }
    }

    /// Calls a connection with its session's command window.
    fn act_on(&mut self, index: u32, act: impl FnOnce(&mut Connection, &mut WorkerContext<D>)) {
        let Some(slot) = self.slots.get_mut(index as usize) else {
            unreachable!("slots are never removed");
        };
        // It was closed after the event was made: late completions and timers name closed connections.
        let Some(connection) = &mut slot.connection else { return };
        connection.begin_turn(&self.context.mcs_sessions);
        connection.begin_gathering(&mut self.context.spare_lists);
        act(connection, &mut self.context);
        connection.end_turn(&mut self.context.mcs_sessions);
        connection.end_gathering(&mut self.context.spare_lists, &mut self.context.answers);
        if let Some(worker) = connection.moves_to() {
            return self.hand_over(index, worker);
        }
        if connection.is_gone() {
            let (ticket, key) = (connection.ticket(), connection.key());
            slot.connection = None;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(index);
            self.context.shared.connection_gone(self.context.index, key);
            self.context.shared.connection_ended(self.context.index, ticket, self.context.now);
        }
    }

    fn read_mail(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.context.mailbox.collect(&mut messages);
        for message in messages.drain(..) {
            match message {
                WorkerMessage::Adopt(arrival) => self.adopt(arrival),
                WorkerMessage::Network(event) => self.follow(&event),
                WorkerMessage::Proceed(key) => self.with_connection(key, Connection::proceed),
                WorkerMessage::Close(key) => self.with_connection(key, Connection::close),
                WorkerMessage::GiveWay(key) => self.with_connection(key, Connection::give_way),
                WorkerMessage::CheckChap(key) => self.with_connection(key, Connection::check_login_delay),
                WorkerMessage::Due { connection, number } => {
                    self.with_connection(connection, |connection, context| {
                        connection.answer_due(context, number);
                    });
                }
                WorkerMessage::EndOutdated(guard) => self.context.outdated.push(guard),
                WorkerMessage::Stop => self.stop(),
            }
        }
        self.messages = messages;
        self.context.mailbox.collect_answers(&mut self.answers);
        self.operations_done();
    }

    /// Passes the answers of the engines on. A connection sends those that follow each other together.
    fn operations_done(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        let mut rest = answers.drain(..).peekable();
        while let Some(first) = rest.next() {
            let index = self.context.operations[first.tag as usize].origin.connection.index;
            self.with_slot(index, |connection, context| {
                let mut next = Some(first);
                while let Some(FinishedOperation { tag, outcome, memory, in_place }) = next {
                    context.spare_parts.keep(memory);
                    end_operation(connection, context, tag, outcome, in_place);
                    next = rest.next_if(|answer| {
                        context.operations[answer.tag as usize].origin.connection.index == index
                    });
                }
                connection.resume(context);
            });
        }
        drop(rest);
        self.answers = answers;
    }

    /// Stops listening and requests logouts; [`Worker::is_stopped`] reports the end.
    pub fn stop(&mut self) {
        for listener in std::mem::take(&mut self.listeners) {
            self.context.driver.close(listener.handle);
        }
        self.stopping = Some(self.context.now + GRACE_NS);
        for index in 0..self.slots.len() as u32 {
            self.with_slot(index, |connection, context| connection.ask_to_log_out(context, GRACE_NS));
        }
    }

    /// Ends the outdated tasks at their units.
    fn end_outdated(&mut self) {
        if self.context.outdated.is_empty() {
            return;
        }
        let guards = std::mem::take(&mut self.context.outdated);
        for index in 0..self.slots.len() as u32 {
            self.with_slot(index, |connection, context| connection.abort_outdated(context, &guards));
        }
    }

    /// Tries tasks again that waited for other commands.
    fn retry_waiting(&mut self) {
        if self.context.waiting.is_empty() || self.context.now < self.retry_at {
            return;
        }
        let waiting = std::mem::take(&mut self.context.waiting);
        let before = waiting.len();
        for Origin { connection, task } in waiting {
            self.with_connection(connection, |connection, context| connection.resume_task(context, task));
        }
        let gets_on = self.context.waiting.len() < before;
        self.retry_ns = if gets_on { RETRY_NS } else { (self.retry_ns * 2).min(RETRY_NS_MAX) };
        self.retry_at = self.context.now + self.retry_ns;
    }

    /// Continues connections that wait for memory, in turn, if some was returned.
    fn resume_waiting_for_buffers(&mut self) {
        if self.context.waiting_for_buffers.is_empty() || self.returns_seen == self.context.pool.returns() {
            return;
        }
        self.returns_seen = self.context.pool.returns();
        for _ in 0..self.context.waiting_for_buffers.len() {
            let Some(key) = self.context.waiting_for_buffers.pop_front() else {
                unreachable!("the loop counts the waiting connections, and each turn adds at the end");
            };
            self.with_connection(key, Connection::resume_with_buffers);
        }
    }

    /// If connections have waited for memory for a while: drops the stalled connection that uses most of it, if it has
    /// been stalled for longer than permitted in this case.
    fn relieve(&mut self) {
        let Self { context, slots, .. } = self;
        let connection = |key: &ConnectionKey| slots.get(key.index as usize)?.connection.as_ref();
        let waiting_for_buffers_since = context
            .waiting_for_buffers
            .iter()
            .filter_map(|key| connection(key)?.waiting_for_buffers_since())
            .min();
        if waiting_for_buffers_since.is_none_or(|since| context.now < since + PRESSED_NS) {
            return;
        }
        let limit_ns = (context.limits.pressed_stall_timeout_s * 1e9) as Nanos;
        let hoarders = (0..).zip(slots).filter_map(|(index, slot)| {
            let connection = slot.connection.as_ref()?;
            let stalled = connection.owed_since().is_some_and(|since| context.now >= since + limit_ns);
            (stalled && connection.held_bytes() > 0).then(|| (connection.held_bytes(), index))
        });
        // Every connection that uses memory makes progress.
        let Some((held_bytes, index)) = hoarders.max() else { return };
        self.context.counters.timeouts += 1;
        self.with_slot(index, |connection, context| {
            tracing::warn!(
                event = "connection_dropped",
                peer = %connection.peer(),
                held_bytes,
                "closing a connection: it holds I/O memory that others wait for, and its peer does not go on"
            );
            connection.close(context);
        });
    }

    fn tick(&mut self) {
        self.next_tick = self.context.now + TICK_NS;
        self.look_for_gaps();
        self.serve_again();
        self.relieve();
        self.context.disk_regions.tidy(&mut self.context.driver);
        // The host may have memory again.
        self.returns_seen = u64::MAX;
        let over = self.stopping.is_some_and(|time| self.context.now >= time);
        for index in 0..self.slots.len() as u32 {
            self.with_slot(index, |connection, context| {
                if over {
                    connection.close(context);
                } else {
                    connection.check_time(context);
                }
            });
        }
    }
}

/// Passes an operation that has ended to its connection.
fn end_operation<D: Driver>(
    connection: &mut Connection,
    context: &mut WorkerContext<D>,
    tag: u64,
    outcome: OperationResult,
    in_place: Option<InPlace>,
) {
    if outcome.0.is_err() {
        context.counters.medium_errors += 1;
    }
    let InFlight { origin, chunks } = context.operations.remove(tag as usize);
    connection.medium_done(context, origin.task, chunks, outcome, in_place);
}
