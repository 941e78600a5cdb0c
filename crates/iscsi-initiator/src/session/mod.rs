//! A session: one TCP connection or several, logged in under one ISID, and the commands on them.
//!
//! Open this file first. [`Session`] holds the parts; its behaviour is split by topic:
//!
//! - `state.rs`: the states and their transitions, as a table.
//! - `tasks.rs`: what is in flight, by tag.
//! - `config.rs`: the configuration of a session; `events.rs`: its events; `loss.rs`: why a connection is lost.
//! - `connection.rs`: one connection; `add_connection.rs`: the further ones.
//! - `login.rs`: from a connected socket to full feature phase.
//! - `send.rs`: queued commands become one gather list and one send.
//! - `receive.rs`: received bytes become finished tasks.
//! - `finish.rs`: status and sense become results, or another try.
//! - `recovery.rs`: loss, new logins, timeouts and pings; `retry.rs`: the state that is kept between login attempts.
//!
//! A session never calls its owner. It puts events for its owner into the [`Context`], and reports I/Os to the caller's
//! sink.
//!
//! `at` is the index of a connection in the list. It is looked up for each completion, so the connection exists.

mod add_connection;
mod config;
mod connection;
mod events;
mod finish;
mod login;
mod loss;
mod receive;
mod recovery;
mod retry;
mod send;
mod state;
pub(crate) mod tasks;

use crate::balance::{BalanceOptions, Meter, Selector};
use crate::event::{Event, EventKind, Failure, IoSink};
use crate::facts::{DeviceId, SessionFacts, SessionId};
use crate::options::address::{AddressError, PortalAddress};
use crate::task::{NewTask, Owner};
use connection::Connection;
use linerate_io::net::KnownHost;
use linerate_io::{Driver, Handle, Nanos, SocketOptions};
use linerate_iscsi_proto::pdu::TextRequest;
use linerate_iscsi_proto::send_targets::InitiatorText;
use linerate_iscsi_proto::window::InitiatorWindow;
use retry::{FurtherConnections, Recovery};
use state::Input;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use tasks::{Stage, Task, TaskIndex, TaskTable};

pub(crate) use config::{Config, LimitNames, RetryRules};
pub use connection::ConnectionCounters;
pub use events::Random;
pub(crate) use events::{Context, Loss, Returned, ReturnedFrom, SessionEvent};
pub(crate) use loss::LossReason;
pub(crate) use retry::Via;
pub(crate) use state::State;

/// Targets may redirect to ever new names.
const HOSTS_MAX: usize = 64;

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) config: Config,
    pub(crate) state: State,
    pub(crate) facts: Option<SessionFacts>,
    /// Why it has failed.
    pub(crate) failure: Option<Failure>,
    /// The paths that use it: the device, and the index in its list.
    pub(crate) users: Vec<(DeviceId, u16)>,
    /// Its load and counters.
    pub(crate) meter: Meter,
    /// Part of every login of this session: the same ISID ends the old session at the target.
    isid: [u8; 6],
    /// The leading connection first.
    connections: Vec<Connection>,
    /// Selects the connection of the next command.
    spread: Selector,
    further: FurtherConnections,
    window: InitiatorWindow,
    pub(crate) tasks: TaskTable,
    /// Commands that wait to be sent, oldest first.
    queue: VecDeque<TaskIndex>,
    /// Commands of probes, which are sent before those of I/Os.
    probes: VecDeque<TaskIndex>,
    recovery: Recovery,
    /// The portals that it has connected to, oldest first.
    hosts: Vec<KnownHost>,
    /// The `SendTargets` exchange, and the request that asks for the rest of its answer.
    text: Option<InitiatorText>,
    text_next: Option<TextRequest>,
    /// In the owner's list of sessions to flush.
    pub(crate) dirty: bool,
}

impl Session {
    /// A session that has yet to connect.
    pub(crate) fn new(id: SessionId, config: Config, isid: [u8; 6], now: Nanos) -> Self {
        Self {
            id,
            recovery: Recovery::new(&config, now),
            hosts: Vec::new(),
            spread: Selector::new(&BalanceOptions::new(config.options.connection_policy.into())),
            further: FurtherConnections::default(),
            config,
            state: State::Connecting,
            facts: None,
            failure: None,
            users: Vec::new(),
            meter: Meter::default(),
            isid,
            connections: Vec::new(),
            window: InitiatorWindow::CLOSED,
            tasks: TaskTable::default(),
            queue: VecDeque::new(),
            probes: VecDeque::new(),
            text: None,
            text_next: None,
            dirty: false,
        }
    }

    /// Adds a command to the queue; None if 65535 are in use.
    #[inline]
    pub(crate) fn enqueue(&mut self, new: &NewTask) -> Option<TaskIndex> {
        let index = self.tasks.insert(new)?;
        if matches!(new.owner, Owner::Io { .. }) {
            self.tasks[index].queue_bytes = self.meter.begin(new.len_bytes);
        }
        self.queue.push_back(index);
        Some(index)
    }

    /// Adds a probe's command, which is sent before the waiting commands.
    pub(crate) fn enqueue_probe(&mut self, new: &NewTask) {
        if let Some(index) = self.tasks.insert(new) {
            self.probes.push_back(index);
        }
    }

    /// Adds a control PDU to the urgent queue of a connection.
    fn enqueue_urgent(&mut self, at: usize, owner: Owner) {
        if let Some(index) = self.tasks.insert(&NewTask::control(owner)) {
            self.tasks[index].connection = at as u8;
            self.connections[at].urgent.push_back(index);
        }
    }

    /// Changes the state by the table; false if there is no such transition.
    fn step(&mut self, input: Input) -> bool {
        let Some(next) = self.state.after(input) else { return false };
        tracing::debug!(session = self.id.0, from = ?self.state, ?input, to = ?next);
        self.state = next;
        true
    }

    /// Starts the leading connection, to `portal`.
    pub(crate) fn connect<D: Driver>(
        &mut self,
        driver: &mut D,
        portal: &PortalAddress,
        source: Option<IpAddr>,
    ) -> Result<(), LossReason> {
        let addr = self.address_of(portal)?;
        let stream = self.open_stream(driver, addr, source)?;
        self.recovery.peer = Some(addr);
        self.connections.push(Connection::new(stream, 0, addr, driver.now()));
        Ok(())
    }

    /// The address of a portal. Only the first connection to it waits for a name server.
    fn address_of(&mut self, portal: &PortalAddress) -> Result<SocketAddr, AddressError> {
        if let Some(known) = self.hosts.iter_mut().find(|known| known.is(&portal.host, portal.port)) {
            return Ok(known.next_address());
        }
        let known = portal.find()?;
        let addr = known.address();
        if self.hosts.len() == HOSTS_MAX {
            self.hosts.remove(0);
        }
        self.hosts.push(known);
        Ok(addr)
    }

    /// Starts a TCP connection, with the user's socket options.
    fn open_stream<D: Driver>(
        &self,
        driver: &mut D,
        addr: SocketAddr,
        source: Option<IpAddr>,
    ) -> Result<Handle, LossReason> {
        let options = &self.config.options;
        let socket = SocketOptions {
            nodelay: options.nodelay,
            send_buffer_bytes: options.send_buffer_bytes,
            recv_buffer_bytes: options.recv_buffer_bytes,
            congestion_control: options.congestion_control.clone(),
            bind: source,
            user_timeout_ms: self.config.retry.user_timeout_ms,
            ..SocketOptions::default()
        };
        let refused = |error: std::io::Error| match error.kind() {
            ErrorKind::AddrNotAvailable | ErrorKind::NotFound | ErrorKind::PermissionDenied => {
                LossReason::Socket { portal: addr.to_string(), error: error.to_string() }
            }
            _ => LossReason::Connect { portal: addr.to_string(), error: error.to_string() },
        };
        driver.connect(addr, &socket).map_err(refused)
    }

    /// Reports an event for the caller's log.
    fn emit<S: IoSink>(&self, cx: &mut Context<'_, S>, at: Nanos, kind: EventKind) {
        cx.sink.event(Event { at, session: Some(self.id), device: None, kind });
    }

    /// The streams of the connections there are, the leading one first.
    pub(crate) fn streams(&self) -> impl Iterator<Item = Handle> {
        self.connections.iter().map(|connection| connection.stream)
    }

    /// The index of a stream's connection.
    #[inline]
    pub(crate) fn connection_of(&self, stream: Handle) -> Option<usize> {
        self.connections.iter().position(|connection| connection.stream == stream)
    }

    /// Closes every connection.
    pub(crate) fn hang_up<D: Driver>(&mut self, driver: &mut D) {
        for connection in self.connections.drain(..) {
            driver.close(connection.stream);
        }
    }

    /// Passes to `take` the counters of each connection since the last call, by connection ID.
    pub(crate) fn take_connection_counters(&mut self, mut take: impl FnMut(u16, ConnectionCounters)) {
        for connection in &mut self.connections {
            take(connection.cid, std::mem::take(&mut connection.counters));
        }
    }

    /// In full feature phase.
    pub(crate) fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    fn in_flight(&self) -> bool {
        let sent = |task: &Task| matches!(task.stage, Stage::Sent | Stage::Aborting);
        self.tasks.iter().any(|(_, task)| sent(task) && !matches!(task.owner, Owner::Ping | Owner::Logout))
    }
}
