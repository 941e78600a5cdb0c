//! The state that all drivers share: clock, events, connections.

use crate::files::{FileOperation, SimFile};
use crate::link::{Side, SimLink, SimPiece};
use crate::socket::SimSocket;
use crate::wires::{ATTEMPT_NS, Wire};
use crate::{Conditions, Rng};
use linerate_io::{Completion, Handle, Nanos, Outgoing, Part, Region};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How long a silently lost connection lasts before its ends are informed (the kernel gives up).
const SILENCE_NS: Nanos = 120_000_000_000;

/// A simulated network and its clock. Clones share them.
#[derive(Clone)]
pub struct SimNetwork {
    world: Arc<Mutex<World>>,
}

impl SimNetwork {
    /// An empty network at time 1 s (time 0 would hide sums that go below it).
    pub fn new(seed: u64, conditions: Conditions) -> Self {
        let world = World {
            now: 1_000_000_000,
            rng: Rng::new(seed),
            conditions,
            sequence: 0,
            events: BTreeMap::new(),
            links: Vec::new(),
            listeners: BTreeMap::new(),
            wires: BTreeMap::new(),
            stations: Vec::new(),
            files: Vec::new(),
            orphans: Arc::default(),
            next_port: 40_000,
        };
        SimNetwork { world: Arc::new(Mutex::new(world)) }
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.lock().now
    }

    /// Changes the conditions for later events; existing connections keep the time at which they are lost.
    pub fn set_conditions(&self, conditions: Conditions) {
        self.lock().conditions = conditions;
    }

    /// Connections that exist at either end: for tests that search for leaks.
    pub fn connections(&self) -> usize {
        let mut world = self.lock();
        let alive = |link: &mut SimLink| !link.end(Side::Client).closed || !link.end(Side::Server).closed;
        world.links.iter_mut().filter_map(|link| alive(link).then_some(())).count()
    }

    /// Cuts every existing connection; both ends are informed at once.
    pub fn cut_all(&self) {
        let mut world = self.lock();
        for link in 0..world.links.len() {
            world.cut(link, false);
        }
        world.run_due();
    }

    /// Moves the clock to the next time at which a driver has something for its owner: a completion, a wake, or the end
    /// of its wait. Events of the network in between are processed. Call it after every driver's owner has acted.
    /// `false` if nothing happened and nothing can ever happen again.
    pub fn advance(&self) -> bool {
        let mut world = self.lock();
        let mut happened = false;
        loop {
            if world.stations.iter().any(|station| station.woken || !station.ready.is_empty()) {
                return true;
            }
            let event = world.events.first_key_value().map(|((at, _), _)| *at);
            let wake = world.stations.iter().filter_map(|station| station.wake_at).min();
            let Some(next) = [event, wake].into_iter().flatten().min() else { return happened };
            happened = true;
            world.now = world.now.max(next);
            let now = world.now;
            world.run_due();
            if wake.is_some_and(|at| at <= now) {
                for station in &mut world.stations {
                    station.wake_at = station.wake_at.filter(|at| *at > now);
                }
                return true;
            }
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        // Report the panic of the other code, not the poisoned lock.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One driver in the network.
#[derive(Default)]
pub(crate) struct Station {
    pub(crate) ready: VecDeque<Completion<SimSocket>>,
    pub(crate) wake_at: Option<Nanos>,
    pub(crate) woken: bool,
    pub(crate) regions: Vec<Arc<Region>>,
}

pub(crate) enum WorldEvent {
    /// A connection attempt reaches the listener's host.
    Attempt { link: usize },
    /// The answer reaches the client.
    Answer { link: usize, refused: bool },
    /// The end may put bytes onto the network.
    Transmit { link: usize, side: Side },
    /// A piece from the other end is delivered to the end.
    Arrive { link: usize, side: Side, piece: SimPiece },
    /// After a silence, kept pieces for the end are delivered.
    Release { link: usize, side: Side },
    /// The end has tried to deliver a piece for the configured time.
    GiveUp { link: usize, side: Side },
    /// The connection is lost.
    Lose { link: usize },
    /// A file operation is done.
    File(FileOperation),
    /// The end learns that it is lost.
    Kill { link: usize, side: Side, error: ErrorKind },
}

/// State of a [`SimNetwork`].
pub(crate) struct World {
    pub(crate) now: Nanos,
    pub(crate) rng: Rng,
    pub(crate) conditions: Conditions,
    sequence: u64,
    events: BTreeMap<(Nanos, u64), WorldEvent>,
    pub(crate) links: Vec<SimLink>,
    pub(crate) listeners: BTreeMap<SocketAddr, (usize, Handle)>,
    /// By the server's address; a missing one has no faults.
    pub(crate) wires: BTreeMap<IpAddr, Wire>,
    pub(crate) stations: Vec<Station>,
    pub(crate) files: Vec<SimFile>,
    /// Accepted connections whose socket was dropped before a driver took it.
    pub(crate) orphans: Arc<Mutex<Vec<usize>>>,
    pub(crate) next_port: u16,
}

impl World {
    pub(crate) fn schedule(&mut self, at: Nanos, event: WorldEvent) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn travel_ns(&mut self) -> Nanos {
        self.conditions.delay_ns + self.rng.range(0, self.conditions.jitter_ns)
    }

    /// Processes every event that is due.
    pub(crate) fn run_due(&mut self) {
        let orphans = std::mem::take(&mut *self.orphans.lock().unwrap_or_else(PoisonError::into_inner));
        for link in orphans {
            self.close(link, Side::Server);
        }
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let event = entry.remove();
            self.happen(event);
        }
    }

    fn happen(&mut self, event: WorldEvent) {
        match event {
            WorldEvent::Attempt { link } => self.attempt(link),
            WorldEvent::Answer { link, refused } => self.answer(link, refused),
            WorldEvent::Transmit { link, side } => self.transmit(link, side),
            WorldEvent::Arrive { link, side, piece } => self.reach(link, side, piece),
            WorldEvent::Release { link, side } => self.release(link, side),
            WorldEvent::GiveUp { link, side } => self.give_up(link, side),
            WorldEvent::Lose { link } => {
                let silent = self.conditions.silent_percent;
                let silent = self.rng.chance(silent);
                self.cut(link, silent);
            }
            WorldEvent::File(operation) => self.finish_file_operation(operation),
            WorldEvent::Kill { link, side, error } => self.kill(link, side, error),
        }
    }

    /// A piece from the other end was delivered.
    pub(crate) fn arrive(&mut self, link: usize, side: Side, piece: SimPiece) {
        let cut = self.links[link].cut;
        let end = self.links[link].end(side);
        match piece {
            SimPiece::Bytes(bytes) => {
                end.in_flight -= bytes.len();
                if !cut && !end.closed && end.dead.is_none() {
                    end.inbox.extend(bytes);
                    self.deliver(link, side);
                } else if !cut {
                    // Data for a closed socket is answered with a reset.
                    let at = self.now + self.travel_ns();
                    self.schedule(
                        at,
                        WorldEvent::Arrive { link, side: side.other(), piece: SimPiece::Reset },
                    );
                }
            }
            SimPiece::Finish if !cut => {
                end.finished = true;
                self.deliver(link, side);
            }
            SimPiece::Finish => {}
            SimPiece::Reset => self.kill(link, side, ErrorKind::ConnectionReset),
        }
    }

    /// Starts a connection; its end at the client belongs to `owner`.
    pub(crate) fn connect(
        &mut self,
        owner: (usize, Handle),
        client: SocketAddr,
        server: SocketAddr,
    ) -> usize {
        let mut link = SimLink::new(client, server);
        link.end(Side::Client).owner = Some(owner);
        self.links.push(link);
        let link = self.links.len() - 1;
        let at = self.now + self.travel_ns();
        self.schedule(at, WorldEvent::Attempt { link });
        link
    }

    fn attempt(&mut self, link: usize) {
        if self.is_silent(link, Side::Server) || self.is_silent(link, Side::Client) {
            let client = self.links[link].end(Side::Client);
            if !client.closed && client.dead.is_none() {
                self.schedule(self.now + ATTEMPT_NS, WorldEvent::Attempt { link });
            }
            return;
        }
        let server = self.links[link].end(Side::Server).addr;
        let refuse = self.conditions.refuse_percent;
        let refused = self.rng.chance(refuse);
        let listener = self.listeners.get(&server).copied().filter(|_| !refused);
        let at = self.now + self.travel_ns();
        self.schedule(at, WorldEvent::Answer { link, refused: listener.is_none() });
        // Refused, or no listener: the answer reports it.
        let Some((station, listener)) = listener else { return };
        let client = self.links[link].end(Side::Client).addr;
        let socket = SimSocket::new(link, Arc::clone(&self.orphans));
        let result = Ok((socket, client));
        self.stations[station].ready.push_back(Completion::Accepted { listener, result });
        if self.conditions.life_ns > 0 {
            let life = self.conditions.life_ns;
            let at = self.now + self.rng.range(0, 2 * life);
            self.schedule(at, WorldEvent::Lose { link });
        }
    }

    fn answer(&mut self, link: usize, refused: bool) {
        let client = self.links[link].end(Side::Client);
        let Some((station, stream)) = client.owner.filter(|_| !client.closed && client.dead.is_none()) else {
            return;
        };
        let result = if refused { Err(ErrorKind::ConnectionRefused.into()) } else { Ok(()) };
        client.connected = true;
        if refused {
            client.dead = Some(ErrorKind::NotConnected);
        }
        self.stations[station].ready.push_back(Completion::Connected { stream, result });
    }

    /// Sends the next piece of an end's send.
    fn transmit(&mut self, link: usize, side: Side) {
        let segment = self.rng.range(1, self.conditions.segment_bytes as u64) as usize;
        let cut = self.links[link].cut;
        let peer = self.links[link].end(side.other());
        let ahead = peer.in_flight + peer.inbox.len();
        let room = self.conditions.window_bytes.saturating_sub(ahead);
        let end = self.links[link].end(side);
        // Nothing to send, or the end was closed.
        let (Some(send), Some((station, stream))) = (&mut end.send, end.owner) else { return };
        if room == 0 && !cut {
            end.stalled = true;
            return;
        }
        let len = segment.min(room.max(1)).min(send.outgoing.len_bytes() - send.sent);
        let bytes = gather(&send.outgoing, send.sent, len, &self.stations[station].regions);
        send.sent += len;
        let done = send.sent == send.outgoing.len_bytes();
        if done && let Some(send) = end.send.take() {
            let sent = Completion::Sent { stream, result: Ok(()), outgoing: send.outgoing };
            self.stations[station].ready.push_back(sent);
        }
        if !cut {
            let occupied = bytes.len() as Nanos * self.conditions.ns_per_byte;
            let travel = self.travel_ns();
            let peer = self.links[link].end(side.other());
            peer.in_flight += bytes.len();
            let at = peer.last_arrival.max(self.now + travel) + occupied;
            peer.last_arrival = at;
            let piece = SimPiece::Bytes(bytes);
            self.schedule(at, WorldEvent::Arrive { link, side: side.other(), piece });
        }
        if !done {
            let pause = self.rng.range(0, 1_000);
            self.schedule(self.now + pause, WorldEvent::Transmit { link, side });
        }
    }

    /// Completes an end's receive if there is a result.
    pub(crate) fn deliver(&mut self, link: usize, side: Side) {
        let short = self.conditions.short_receive_percent;
        let end = self.links[link].end(side);
        // No receive waits, or the end was closed.
        let (Some(mut recv), Some((station, stream))) = (end.recv.take(), end.owner) else { return };
        let result = if end.inbox.is_empty() {
            match end.dead {
                Some(error) => Err(error.into()),
                None if end.finished => Ok(0),
                None => {
                    end.recv = Some(recv);
                    return;
                }
            }
        } else {
            let mut len = end.inbox.len().min(recv.room());
            if self.rng.chance(short) {
                len = self.rng.range(1, len as u64) as usize;
            }
            let (front, back) = end.inbox.as_slices();
            let front = &front[..front.len().min(len)];
            let back = &back[..len - front.len()];
            let done = recv.put(0, front, &self.stations[station].regions);
            recv.put(done, back, &self.stations[station].regions);
            end.inbox.drain(..len);
            Ok(len)
        };
        let received = Completion::Received { stream, result, buffer: recv.buffer };
        self.stations[station].ready.push_back(received);
        let peer = self.links[link].end(side.other());
        if std::mem::take(&mut peer.stalled) {
            self.schedule(self.now, WorldEvent::Transmit { link, side: side.other() });
        }
    }

    /// An end closes: its operations are aborted; the other end is informed after all data was delivered.
    pub(crate) fn close(&mut self, link: usize, side: Side) {
        self.abort(link, side, ErrorKind::ConnectionAborted);
        let end = self.links[link].end(side);
        end.closed = true;
        end.inbox.clear();
        if end.dead.is_some() {
            return;
        }
        let travel = self.travel_ns();
        let at = self.links[link].end(side.other()).last_arrival.max(self.now + travel);
        self.schedule(at, WorldEvent::Arrive { link, side: side.other(), piece: SimPiece::Finish });
    }

    /// Loses a connection: nothing is delivered from now on, and both ends are informed soon, or much later.
    pub(crate) fn cut(&mut self, link: usize, silent: bool) {
        if std::mem::replace(&mut self.links[link].cut, true) {
            return;
        }
        for side in [Side::Client, Side::Server] {
            let after = if silent { SILENCE_NS } else { self.rng.range(0, 5_000_000) };
            let error = if silent { ErrorKind::TimedOut } else { ErrorKind::ConnectionReset };
            self.schedule(self.now + after, WorldEvent::Kill { link, side, error });
            if std::mem::take(&mut self.links[link].end(side).stalled) {
                self.schedule(self.now, WorldEvent::Transmit { link, side });
            }
        }
    }

    /// Informs the end that its connection has failed.
    pub(crate) fn kill(&mut self, link: usize, side: Side, error: ErrorKind) {
        let end = self.links[link].end(side);
        if end.dead.is_some() || end.closed {
            return;
        }
        let connecting = !end.connected;
        end.dead = Some(error);
        end.inbox.clear();
        if connecting && let Some((station, stream)) = end.owner {
            let result = Err(error.into());
            self.stations[station].ready.push_back(Completion::Connected { stream, result });
        }
        self.abort(link, side, error);
    }

    /// Ends the operations of an end.
    fn abort(&mut self, link: usize, side: Side, error: ErrorKind) {
        let end = self.links[link].end(side);
        // The end was closed.
        let Some((station, stream)) = end.owner else { return };
        let ready = &mut self.stations[station].ready;
        if let Some(recv) = end.recv.take() {
            let result = Err(error.into());
            ready.push_back(Completion::Received { stream, result, buffer: recv.buffer });
        }
        if let Some(send) = end.send.take() {
            let result = Err(io::Error::from(error));
            ready.push_back(Completion::Sent { stream, result, outgoing: send.outgoing });
        }
    }
}

/// Bytes `from..from + len` of a gather list, with the current contents of memory.
fn gather(outgoing: &Outgoing, from: usize, len: usize, regions: &[Arc<Region>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    let mut skip = from;
    for part in outgoing.parts() {
        let part_len = match part {
            Part::Bytes(bytes) => bytes.len(),
            Part::Seg(seg) => seg.len as usize,
        };
        if skip >= part_len {
            skip -= part_len;
            continue;
        }
        let take = (part_len - skip).min(len - bytes.len());
        match part {
            Part::Bytes(piece) => bytes.extend_from_slice(&piece[skip..skip + take]),
            Part::Seg(seg) => {
                let at = bytes.len();
                bytes.resize(at + take, 0);
                regions[seg.region.index() as usize].read(seg.offset + skip as u64, &mut bytes[at..]);
            }
        }
        skip = 0;
        if bytes.len() == len {
            break;
        }
    }
    bytes
}
