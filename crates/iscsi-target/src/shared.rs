//! The state that all workers of an array share: targets, sessions, limits, and a mailbox per worker.
//!
//! No command uses it: a worker uses it when a connection arrives, when a session begins or ends, and for messages to
//! another worker.

use crate::connection_key::ConnectionKey;
use crate::{
    admission::{ChapDelays, Connections, Standing, Ticket, Victim},
    completion_guard::CompletionGuard,
    config::{ArrayConfig, ArrayLimits},
    engine::{EngineHandles, FinishedOperation, Transfers},
    portals::PortalTable,
    stats::{ArrayStats, LiveSession, SessionStats, SharedCounters},
    target::IscsiTarget,
    volume::SharedVolume,
};
use linerate_io::{Nanos, net::NetEvent, untouched_bytes};
use linerate_iscsi_proto::{
    login::{Decision, ExistingSession, SessionRequest, decide},
    pdu::LoginStatus,
};
use linerate_scsi::{InitiatorPort, Nexus};
use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// A connection that moves to its worker.
#[derive(Debug)]
pub(crate) struct Arrival<S> {
    pub(crate) socket: S,
    pub(crate) peer: SocketAddr,
    pub(crate) ticket: Ticket,
    /// Tag of its portal group.
    pub(crate) group: u16,
    /// Its received messages that were not handled yet.
    pub(crate) received: Vec<u8>,
}

/// A message from one worker to another.
#[derive(Debug)]
pub(crate) enum WorkerMessage<S> {
    /// Serve this connection.
    Adopt(Arrival<S>),
    /// The host's links or addresses have changed.
    Network(NetEvent),
    /// Close this connection: its session was replaced, or its target was reset.
    Close(ConnectionKey),
    /// Close this connection unless it has logged in: others need its place.
    GiveWay(ConnectionKey),
    /// The CHAP response of this connection may be checked now.
    CheckChap(ConnectionKey),
    /// A session that this connection's login waits for has ended completely.
    Proceed(ConnectionKey),
    /// An answer of this connection need not wait any more.
    Due { connection: ConnectionKey, number: usize },
    /// End the outdated tasks at their units.
    EndOutdated(CompletionGuard),
    /// Request logouts from the initiators, then close everything.
    Stop,
}

/// A worker as others see it.
pub(crate) struct Mailbox<S> {
    messages: Mutex<Vec<WorkerMessage<S>>>,
    /// Requests of this worker that engines have completed.
    answers: Mutex<Vec<FinishedOperation>>,
    wake: Box<dyn Fn() + Send + Sync>,
    /// Connections that it serves, or soon will.
    pub(crate) load: AtomicUsize,
    pub(crate) counters: SharedCounters,
}

impl<S> Mailbox<S> {
    pub(crate) fn new(wake: Box<dyn Fn() + Send + Sync>) -> Self {
        let (load, counters) = (AtomicUsize::new(0), SharedCounters::default());
        Self { messages: Mutex::default(), answers: Mutex::default(), wake, load, counters }
    }

    pub(crate) fn post(&self, message: WorkerMessage<S>) {
        lock(&self.messages).push(message);
        (self.wake)();
    }

    /// Takes answers of an engine out of the list.
    pub(crate) fn answer(&self, answers: &mut Vec<FinishedOperation>) {
        lock(&self.answers).append(answers);
        (self.wake)();
    }

    /// Moves the answers of the engines into an empty list.
    pub(crate) fn collect_answers(&self, into: &mut Vec<FinishedOperation>) {
        std::mem::swap(into, &mut lock(&self.answers));
    }

    /// Moves the messages into `into`.
    pub(crate) fn collect(&self, into: &mut Vec<WorkerMessage<S>>) {
        into.append(&mut lock(&self.messages));
    }
}

struct Session {
    existing: ExistingSession,
    nexus: Option<Arc<Nexus>>,
    /// The worker of its connections.
    worker: usize,
    /// In the order of `existing.cids`.
    members: Vec<Member>,
}

/// A connection of a session.
struct Member {
    connection: ConnectionKey,
    live: Arc<LiveSession>,
}

/// A session that has ended, while its connections may still have operations on a volume.
struct Fading {
    existing: ExistingSession,
    worker: usize,
    connections: Vec<ConnectionKey>,
    /// The logins that wait for it: worker and connection.
    waiting: Vec<(usize, ConnectionKey)>,
}

#[derive(Default)]
struct Sessions {
    list: Vec<Session>,
    fading: Vec<Fading>,
    /// Connections that were logged out of sessions that continue, and may still have operations on a volume: the
    /// session's handle, and the worker.
    departed: Vec<(u16, usize, ConnectionKey)>,
    last_tsih: u16,
}

/// The shared part of an array. `S` is the driver's socket type.
pub(crate) struct SharedState<S> {
    pub(crate) limits: ArrayLimits,
    /// A worker's part of [`Limits::memory_bytes`].
    pub(crate) memory_per_worker_bytes: u64,
    pub(crate) targets: Vec<Arc<IscsiTarget>>,
    /// Targets that exist for one copy from a partner.
    pub(crate) transfers: Arc<Transfers>,
    pub(crate) volumes: Vec<SharedVolume>,
    /// Receives operations on managed volumes, if there are any.
    pub(crate) engines: Option<EngineHandles>,
    portals: Mutex<PortalTable>,
    mailboxes: OnceLock<Vec<Arc<Mailbox<S>>>>,
    sessions: Mutex<Sessions>,
    connections: Mutex<Connections>,
    chap_delays: Mutex<ChapDelays>,
}

/// A connection that wants a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewConnection {
    pub(crate) worker: usize,
    pub(crate) connection: ConnectionKey,
    /// The initiator's end and ours.
    pub(crate) endpoints: (SocketAddr, SocketAddr),
    pub(crate) now: Nanos,
}

impl<S> SharedState<S> {
    /// `workers`: how many there will be.
    pub(crate) fn new(
        config: &ArrayConfig,
        workers: usize,
        targets: Vec<Arc<IscsiTarget>>,
        volumes: Vec<SharedVolume>,
        engines: Option<EngineHandles>,
    ) -> Self {
        Self {
            limits: config.limits.clone(),
            memory_per_worker_bytes: config.limits.memory_bytes / workers.max(1) as u64,
            targets,
            transfers: Arc::default(),
            volumes,
            engines,
            portals: Mutex::default(),
            mailboxes: OnceLock::new(),
            sessions: Mutex::default(),
            connections: Mutex::new(Connections::new(&config.limits)),
            chap_delays: Mutex::default(),
        }
    }

    /// Sets the workers, once all of them have a driver.
    pub(crate) fn introduce(&self, mailboxes: Vec<Arc<Mailbox<S>>>) {
        // A second introduction cannot happen: workers are made once per array.
        let _ = self.mailboxes.set(mailboxes);
    }

    pub(crate) fn mailboxes(&self) -> &[Arc<Mailbox<S>>] {
        self.mailboxes.get().map_or(&[], Vec::as_slice)
    }

    /// The portals, and the addresses of the host.
    pub(crate) fn portals(&self) -> MutexGuard<'_, PortalTable> {
        lock(&self.portals)
    }

    pub(crate) fn target(&self, name: &str) -> Option<Arc<IscsiTarget>> {
        let configured = self.targets.iter().find(|target| target.name == name);
        configured.cloned().or_else(|| self.transfers.find(name))
    }

    /// The worker with the fewest connections; the new one is counted at once.
    pub(crate) fn least_loaded(&self) -> usize {
        let loads = self.mailboxes().iter().enumerate();
        let least = loads.min_by_key(|(_, mailbox)| mailbox.load.load(Relaxed));
        least.map_or(0, |(index, mailbox)| {
            mailbox.load.fetch_add(1, Relaxed);
            index
        })
    }

    /// Counts a new connection from `peer`; an older one may be dropped for it.
    pub(crate) fn admit_connection(&self, peer: IpAddr, now: Nanos) -> Ticket {
        let (ticket, victim) = self.connections().arrive(peer, now);
        self.send_away(victim);
        ticket
    }

    /// The host has no resources for another connection, so one that has not logged in is dropped.
    pub(crate) fn make_room(&self, now: Nanos) {
        let victim = self.connections().make_room(now);
        self.send_away(victim);
    }

    fn send_away(&self, victim: Option<Victim>) {
        if let Some(Victim(Some((worker, key)))) = victim
            && let Some(mailbox) = self.mailboxes().get(worker)
        {
            mailbox.post(WorkerMessage::GiveWay(key));
        }
    }

    /// Connections by peer.
    pub(crate) fn connections(&self) -> MutexGuard<'_, Connections> {
        lock(&self.connections)
    }

    /// CHAP responses after wrong ones.
    pub(crate) fn chap_delays(&self) -> MutexGuard<'_, ChapDelays> {
        lock(&self.chap_delays)
    }

    /// Tells a connection with a waiting response that it may be checked.
    pub(crate) fn call_next_chap(&self, next: Option<Ticket>) {
        let place = next.and_then(|ticket| self.connections().place(ticket));
        if let Some((worker, key)) = place
            && let Some(mailbox) = self.mailboxes().get(worker)
        {
            mailbox.post(WorkerMessage::CheckChap(key));
        }
    }

    pub(crate) fn connection_ended(&self, worker: usize, ticket: Ticket, now: Nanos) {
        if let Some(mailbox) = self.mailboxes().get(worker) {
            mailbox.load.fetch_sub(1, Relaxed);
        }
        self.connections().ended(ticket, now);
    }

    /// A connection moves from one worker to another.
    pub(crate) fn connection_moves(&self, from: usize, to: usize) {
        for (worker, more) in [(from, false), (to, true)] {
            if let Some(mailbox) = self.mailboxes().get(worker) {
                let load = &mailbox.load;
                if more {
                    load.fetch_add(1, Relaxed)
                } else {
                    load.fetch_sub(1, Relaxed)
                };
            }
        }
    }

    /// The worker of a session, if the session may have several connections.
    pub(crate) fn worker_of(&self, tsih: u16) -> Option<usize> {
        let sessions = lock(&self.sessions);
        let is_it =
            |session: &&Session| session.existing.tsih == tsih && session.existing.max_connections > 1;
        sessions.list.iter().find(is_it).map(|session| session.worker)
    }

    /// Starts a session, replacing the one of the same initiator port (RFC 7143 section 6.3.5), or adds a connection to
    /// one. Returns its handle, and how many earlier sessions of that port must end before the login may be answered:
    /// their operations in progress could otherwise overwrite later writes of the initiator. [`WorkerMessage::Proceed`]
    /// reports each end.
    pub(crate) fn begin_session(
        &self,
        request: &SessionRequest,
        newcomer: NewConnection,
    ) -> Result<(u16, u32), LoginStatus> {
        let NewConnection { worker, connection, endpoints, now } = newcomer;
        let target = request.target_name.as_deref().and_then(|name| self.target(name));
        let is_named = target.as_ref().is_some_and(|target| target.knows_initiators());
        let standing = if is_named { Standing::Named } else { Standing::Stranger };
        let mut sessions = lock(&self.sessions);
        let (fits, sessions_max) = self.connections().room(endpoints.0.ip(), standing, now);
        let existing = sessions.list.iter().map(|session| &session.existing);
        match decide(existing, request, sessions_max) {
            Decision::Refuse(status) => {
                if status == LoginStatus::OUT_OF_RESOURCES {
                    report_limit(request, newcomer, "limits.sessions");
                }
                return Err(status);
            }
            Decision::Join(_) | Decision::New if !fits => {
                report_limit(request, newcomer, "limits.connections_per_peer");
                return Err(LoginStatus::OUT_OF_RESOURCES);
            }
            Decision::Replace(index) => {
                let old = sessions.list.swap_remove(index);
                self.close_connections(&old);
                sessions.fade(old);
            }
            Decision::Join(index) => {
                let session = &mut sessions.list[index];
                if session.worker != worker {
                    // It was another session when the login began, and its connection was moved to this worker.
                    return Err(LoginStatus::NO_SUCH_SESSION);
                }
                session.existing.cids.push(request.cid);
                session.members.push(Member { connection, live: Arc::new(LiveSession::new(endpoints)) });
                return Ok((request.tsih, 0));
            }
            Decision::New => {}
        }
        let waits = sessions.wait_for_same(request, (worker, connection));
        let tsih = free_tsih(&mut sessions).ok_or(LoginStatus::OUT_OF_RESOURCES)?;
        let nexus = target.map(|target| {
            let initiator = InitiatorPort { name: request.initiator_name.clone(), isid: request.isid };
            target.inventory.login(initiator, request.portal_group_tag)
        });
        let existing = ExistingSession::begun_by(request, tsih);
        let members = vec![Member { connection, live: Arc::new(LiveSession::new(endpoints)) }];
        sessions.list.push(Session { existing, nexus, worker, members });
        Ok((tsih, waits))
    }

    /// The nexus of a connection's session (None in a discovery session), and the place for the connection's counters.
    pub(crate) fn session(
        &self,
        tsih: u16,
        connection: ConnectionKey,
    ) -> Option<(Option<Arc<Nexus>>, Arc<LiveSession>)> {
        let sessions = lock(&self.sessions);
        let session = sessions.list.iter().find(|session| session.existing.tsih == tsih)?;
        let member = session.members.iter().find(|member| member.connection == connection)?;
        Some((session.nexus.clone(), Arc::clone(&member.live)))
    }

    /// The current sessions. The lock is held while a few words per session are copied.
    pub(crate) fn sessions(&self) -> Vec<SessionStats> {
        let sessions = lock(&self.sessions);
        let row = |session: &Session| {
            let members = session.members.iter().map(|member| &*member.live);
            SessionStats::of(&session.existing, session.nexus.as_deref(), members)
        };
        sessions.list.iter().filter_map(row).collect()
    }

    /// Ends a session unless it was replaced before.
    pub(crate) fn end_session(&self, tsih: u16) {
        let mut sessions = lock(&self.sessions);
        if let Some(index) = sessions.list.iter().position(|session| session.existing.tsih == tsih) {
            let session = sessions.list.swap_remove(index);
            sessions.fade(session);
        }
    }

    /// A connection was logged out of a session that continues without it.
    pub(crate) fn leave_session(&self, tsih: u16, worker: usize, connection: ConnectionKey) {
        let mut sessions = lock(&self.sessions);
        let sessions = &mut *sessions;
        let Some(session) = sessions.list.iter_mut().find(|session| session.existing.tsih == tsih) else {
            return;
        };
        if let Some(at) = session.members.iter().position(|member| member.connection == connection) {
            session.members.remove(at);
            session.existing.cids.remove(at);
            sessions.departed.push((tsih, worker, connection));
        }
    }

    /// A connection is closed and all of its operations have ended.
    pub(crate) fn connection_gone(&self, worker: usize, connection: ConnectionKey) {
        let mut sessions = lock(&self.sessions);
        sessions.departed.retain(|(_, of, departed)| (*of, *departed) != (worker, connection));
        for fading in sessions.fading.iter_mut().filter(|fading| fading.worker == worker) {
            fading.connections.retain(|fading| *fading != connection);
        }
        for fading in sessions.fading.extract_if(.., |fading| fading.connections.is_empty()) {
            for (worker, waiting) in fading.waiting {
                if let Some(mailbox) = self.mailboxes().get(worker) {
                    mailbox.post(WorkerMessage::Proceed(waiting));
                }
            }
        }
    }

    /// Tells the workers to close every session of a target (target cold reset).
    pub(crate) fn close_sessions_of(&self, target: &str) {
        for session in &lock(&self.sessions).list {
            if session.existing.target_name.as_deref() == Some(target) {
                self.close_connections(session);
            }
        }
    }

    fn close_connections(&self, session: &Session) {
        if let Some(mailbox) = self.mailboxes().get(session.worker) {
            for member in &session.members {
                mailbox.post(WorkerMessage::Close(member.connection));
            }
        }
    }

    pub(crate) fn stats(&self) -> ArrayStats {
        let mut stats = ArrayStats {
            sessions: lock(&self.sessions).list.len() as u64,
            untouched_bytes: untouched_bytes(),
            ..ArrayStats::default()
        };
        for mailbox in self.mailboxes() {
            stats.connections += mailbox.load.load(Relaxed) as u64;
            mailbox.counters.add_to(&mut stats);
        }
        stats
    }
}

impl Sessions {
    /// A session ends; its workers close its connections.
    fn fade(&mut self, session: Session) {
        if let Some(nexus) = &session.nexus {
            nexus.logout();
        }
        let Session { existing, worker, members, .. } = session;
        if let Some(first) = members.first() {
            tracing::info!(
                event = "session_ended",
                peer = %first.live.peer(),
                initiator = existing.initiator_name,
                target = existing.target_name.as_deref().unwrap_or("discovery"),
                "a session has ended"
            );
        }
        let tsih = existing.tsih;
        let departed =
            self.departed.extract_if(.., |(of, ..)| *of == tsih).map(|(.., connection)| connection);
        let connections = members.iter().map(|member| member.connection).chain(departed).collect();
        self.fading.push(Fading { existing, worker, connections, waiting: Vec::new() });
    }

    /// Makes a login wait for the end of earlier sessions of the same initiator port. Returns how many there are.
    fn wait_for_same(&mut self, request: &SessionRequest, waiting: (usize, ConnectionKey)) -> u32 {
        let same =
            |fading: &&mut Fading| request.target_name.is_some() && fading.existing.is_named_by(request);
        let mut count = 0;
        for fading in self.fading.iter_mut().filter(same) {
            fading.waiting.push(waiting);
            count += 1;
        }
        count
    }
}

fn report_limit(request: &SessionRequest, newcomer: NewConnection, limit: &str) {
    tracing::warn!(
        event = "limit_reached",
        peer = %newcomer.endpoints.0,
        initiator = request.initiator_name,
        target = request.target_name.as_deref().unwrap_or("discovery"),
        limit,
        "a login is refused: {limit} is reached"
    );
}

/// Session handles count up and skip 0 and those in use.
fn free_tsih(sessions: &mut Sessions) -> Option<u16> {
    for _ in 0..=u16::MAX {
        sessions.last_tsih = sessions.last_tsih.wrapping_add(1);
        let tsih = sessions.last_tsih;
        if tsih != 0 && sessions.list.iter().all(|session| session.existing.tsih != tsih) {
            return Some(tsih);
        }
    }
    None
}

/// A poisoned lock means that a worker panicked between two complete changes; the data is valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Arc, Mailbox, Relaxed, SharedState};

    #[test]
    fn new_connections_go_to_the_least_loaded_worker() {
        let config = serde_json::from_str(r#"{"targets": []}"#).unwrap();
        let shared = SharedState::<()>::new(&config, 1, Vec::new(), Vec::new(), None);
        shared.introduce((0..3).map(|_| Arc::new(Mailbox::new(Box::new(|| ())))).collect());
        let loads =
            || shared.mailboxes().iter().map(|mailbox| mailbox.load.load(Relaxed)).collect::<Vec<_>>();
        let peer = "192.0.2.1".parse().unwrap();
        for _ in 0..9 {
            shared.admit_connection(peer, 0);
            shared.least_loaded();
        }
        assert_eq!(loads(), [3, 3, 3]);
        shared.connection_ended(1, 1, 0);
        shared.connection_ended(1, 2, 0);
        assert_eq!((shared.least_loaded(), shared.least_loaded()), (1, 1));
        assert_eq!(loads(), [3, 3, 3]);
    }
}
