//! The sessions of one thread: which ones have data to send, their events, and their next deadlines.

use crate::event::{IoDone, IoSink};
use crate::facts::SessionId;
use crate::session::{Config, Context, LossReason, Random, Returned, Session, SessionEvent};
use crate::task::NewTask;
use linerate_io::{AttachedRegions, Driver, Handle, Nanos};
use std::ops::{Index, IndexMut};

/// The time between two ticks, unless paths need shorter ones.
const TICK_NS: Nanos = 50_000_000;

/// All sessions of an initiator.
pub(crate) struct Sessions {
    list: Vec<Session>,
    /// Sessions that further devices may use.
    shared: Vec<SessionId>,
    /// By the index of a stream's handle: the handle and its session.
    routes: Vec<Option<(Handle, SessionId)>>,
    /// Sessions with data to send or a buffer to receive into.
    dirty: Vec<SessionId>,
    /// Events of sessions that are not handled yet.
    pub(crate) events: Vec<(SessionId, SessionEvent)>,
    /// I/Os that sessions have returned, not handled yet.
    pub(crate) returned: Vec<Returned>,
    pub(crate) regions: AttachedRegions,
    random: Box<Random>,
    /// The random part of every ISID of this initiator.
    isid_random: [u8; 3],
    /// When the next tick is due.
    pub(crate) wake_at: Nanos,
    /// The longest time between two ticks.
    pub(crate) tick_ns: Nanos,
}

impl Sessions {
    pub(crate) fn new(mut random: Box<Random>) -> Self {
        let mut isid_random = [0; 3];
        random(&mut isid_random);
        Self {
            list: Vec::new(),
            shared: Vec::new(),
            routes: Vec::new(),
            dirty: Vec::new(),
            events: Vec::new(),
            returned: Vec::new(),
            regions: AttachedRegions::default(),
            random,
            isid_random,
            wake_at: Nanos::MAX,
            tick_ns: TICK_NS,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = SessionId> + use<> {
        (0..self.list.len() as u32).map(SessionId)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.list.iter_mut()
    }

    /// Starts to log a new session in.
    pub(crate) fn start<D: Driver>(&mut self, driver: &mut D, config: Config) -> SessionId {
        let id = SessionId(self.list.len() as u32);
        let now = driver.now();
        let [a, b, c] = self.isid_random;
        let [hi, lo] = (id.0 as u16).to_be_bytes();
        // RFC 7143 11.12.5: type 10b (random), 24 random bits, 16-bit qualifier.
        let isid = [0x80, a, b, c, hi, lo];
        self.list.push(Session::new(id, config, isid, now));
        self.wake_before(now + self.tick_ns);
        self.with(id, &mut Vec::<IoDone>::new(), |session, cx| session.start(driver, now, cx));
        id
    }

    /// The shared session of this configuration; started if there is none that takes commands.
    pub(crate) fn share<D: Driver>(&mut self, driver: &mut D, config: Config) -> SessionId {
        let fits = |id: &&SessionId| self[**id].config == config && self[**id].state.takes_commands();
        if let Some(&id) = self.shared.iter().find(fits) {
            return id;
        }
        let id = self.start(driver, config);
        self.shared.push(id);
        id
    }

    /// Calls a session with its context.
    #[inline]
    pub(crate) fn with<S: IoSink>(
        &mut self,
        id: SessionId,
        sink: &mut S,
        work: impl FnOnce(&mut Session, &mut Context<'_, S>),
    ) {
        let session = &mut self.list[id.index()];
        let mut cx = Context {
            sink,
            events: &mut self.events,
            returned: &mut self.returned,
            regions: &self.regions,
            random: &mut *self.random,
            wake_at: self.wake_at,
        };
        work(session, &mut cx);
        self.wake_at = cx.wake_at;
        for stream in session.streams() {
            route(&mut self.routes, stream, id);
        }
        self.mark(id);
    }

    /// The current stream with this handle's index, and its session.
    #[inline]
    pub(crate) fn route_of(&self, stream: Handle) -> Option<(Handle, SessionId)> {
        self.routes.get(stream.index() as usize).copied().flatten()
    }

    /// Queues an I/O; false if 65535 commands are in flight on the session.
    #[inline]
    pub(crate) fn enqueue(&mut self, id: SessionId, task: &NewTask) -> bool {
        let queued = self.list[id.index()].enqueue(task).is_some();
        if queued {
            self.mark(id);
        }
        queued
    }

    /// Queues a command of a probe.
    pub(crate) fn enqueue_probe(&mut self, id: SessionId, task: &NewTask) {
        self.list[id.index()].enqueue_probe(task);
        self.mark(id);
    }

    /// Ends a session's connection at the next tick, which is due now.
    pub(crate) fn fail(&mut self, id: SessionId, reason: LossReason) {
        self.list[id.index()].fail(reason);
        self.wake_at = 0;
    }

    /// Has a tick at this time or before.
    pub(crate) fn wake_before(&mut self, at: Nanos) {
        self.wake_at = self.wake_at.min(at);
    }

    #[inline]
    fn mark(&mut self, id: SessionId) {
        let session = &mut self.list[id.index()];
        if !session.dirty {
            session.dirty = true;
            self.dirty.push(id);
        }
    }

    /// Sends everything that is queued, and receives again.
    pub(crate) fn flush<D: Driver>(&mut self, driver: &mut D) {
        if self.dirty.is_empty() {
            return;
        }
        let now = driver.now();
        for id in self.dirty.drain(..) {
            let session = &mut self.list[id.index()];
            session.dirty = false;
            session.flush(driver, &self.regions, now);
        }
    }
}

impl Index<SessionId> for Sessions {
    type Output = Session;

    #[inline]
    fn index(&self, id: SessionId) -> &Session {
        &self.list[id.index()]
    }
}

impl IndexMut<SessionId> for Sessions {
    #[inline]
    fn index_mut(&mut self, id: SessionId) -> &mut Session {
        &mut self.list[id.index()]
    }
}

/// Notes the session of a stream.
#[inline]
fn route(routes: &mut Vec<Option<(Handle, SessionId)>>, stream: Handle, id: SessionId) {
    let index = stream.index() as usize;
    if routes.len() <= index {
        routes.resize(index + 1, None);
    }
    routes[index] = Some((stream, id));
}
