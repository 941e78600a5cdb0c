//! The arena: one thread's sessions and devices.

use crate::address::{LunAddress, PortalAddress};
use crate::commands::Question;
use crate::device::{Device, DeviceFacts, DeviceId, DeviceState};
use crate::event::{Event, EventKind, Failure, IoDone, IoSink};
use crate::options::{Credentials, OptionsError, SessionOptions};
use crate::path::{self, Path, PathState};
use crate::request::{IoRequest, SubmitError};
use crate::session::{Answer, Config, Notice, Random, Regions, Session, State, Turn};
use linerate_io::{Completion, Driver, Handle, Nanos, Region, RegionId, TcpInfo, Wait};
use linerate_iscsi::params::SessionParams;
use std::net::SocketAddr;
use std::sync::Arc;

/// Names a session of one [`Initiator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(pub(crate) u32);

impl SessionId {
    /// Sessions are numbered from 0 in the order they were made.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether a device may ride on a session that another device opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// A session of its own.
    Own,
    /// One session per portal, target, credentials and options.
    Shared,
}

/// What a session turned out to be, read back and not assumed.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFacts {
    /// The target's name.
    pub target: String,
    /// The portal that was asked for.
    pub portal: String,
    /// Where the connection really went (redirection may have moved it).
    pub peer_addr: SocketAddr,
    /// Our end.
    pub local_addr: SocketAddr,
    /// The negotiated parameters.
    pub params: SessionParams,
    /// Logins so far; above 1 the session was restored.
    pub logins: u32,
}

/// The longest time between two looks at timeouts.
const TICK_NS: Nanos = 50_000_000;

/// Sessions and devices of one thread. See the crate text for how it is driven:
///
/// 1. [`attach`](Self::attach) regions, [`open`](Self::open) every device, then [`wait_ready`](Self::wait_ready), or
///    poll the driver until each device's [`state`](Self::state) is not `Opening`.
/// 2. [`submit`](Self::submit) I/Os, then [`flush`](Self::flush) once.
/// 3. Poll the driver no longer than [`next_deadline`](Self::next_deadline) allows, hand every completion to
///    [`handle_completion`](Self::handle_completion), call [`on_time`](Self::on_time), submit, flush, and so on.
pub struct Initiator {
    sessions: Vec<Session>,
    /// Sessions that other devices may share.
    shared: Vec<SessionId>,
    devices: Vec<Device>,
    /// By the index of a stream's handle: the handle and its session.
    routes: Vec<Option<(Handle, SessionId)>>,
    /// Sessions with something to send or a buffer to receive into.
    dirty: Vec<SessionId>,
    notices: Vec<(SessionId, Notice)>,
    regions: Regions,
    random: Box<Random>,
    /// The random part of every ISID of this initiator.
    isid_random: [u8; 3],
    wake_at: Nanos,
    /// `SendTargets` text per session that asked for it.
    targets: Vec<(SessionId, Vec<u8>)>,
}

impl Initiator {
    /// An initiator without sessions. Randomness comes from the operating system.
    pub fn new() -> Self {
        // Without randomness no CHAP challenge can be made; a system that has none cannot run this program.
        Self::with_random(Box::new(|bytes| getrandom::fill(bytes).expect("the system gives random bytes")))
    }

    /// An initiator that takes randomness from `random`: for repeatable simulations.
    pub fn with_random(mut random: Box<Random>) -> Self {
        let mut isid_random = [0; 3];
        random(&mut isid_random);
        Self {
            sessions: Vec::new(),
            shared: Vec::new(),
            devices: Vec::new(),
            routes: Vec::new(),
            dirty: Vec::new(),
            notices: Vec::new(),
            regions: Regions::default(),
            random,
            isid_random,
            wake_at: Nanos::MAX,
            targets: Vec::new(),
        }
    }

    /// Attaches a region to `driver`, for segments of reads and writes.
    pub fn attach<D: Driver>(&mut self, driver: &mut D, region: &Arc<Region>) -> RegionId {
        let id = driver.attach(Arc::clone(region));
        self.regions.insert(id, Arc::clone(region));
        id
    }

    /// Starts to open a LUN: session (new or shared), login, facts. Nothing is waited for.
    pub fn open<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &LunAddress,
        options: &SessionOptions,
        credentials: &Credentials,
        sharing: Sharing,
    ) -> Result<DeviceId, OptionsError> {
        self.open_device(driver, address, options, credentials, sharing, Question::DISK)
    }

    /// Starts to ask a target for its LUNs; they end up in the facts.
    pub(crate) fn open_target<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &LunAddress,
        options: &SessionOptions,
        credentials: &Credentials,
    ) -> Result<DeviceId, OptionsError> {
        self.open_device(driver, address, options, credentials, Sharing::Shared, Question::TARGET)
    }

    fn open_device<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &LunAddress,
        options: &SessionOptions,
        credentials: &Credentials,
        sharing: Sharing,
        questions: &'static [Question],
    ) -> Result<DeviceId, OptionsError> {
        let config = Config::new(&address.portal, Some(&address.target), options, credentials)?;
        let device = DeviceId(self.devices.len() as u32);
        let usable = |id: &&SessionId| {
            let session = &self.sessions[id.index()];
            session.config == config && session.state.takes_commands()
        };
        if sharing == Sharing::Shared
            && let Some(&id) = self.shared.iter().find(usable)
        {
            self.devices.push(Device::new(address.clone(), Path::new(id), questions));
            if self.sessions[id.index()].is_logged_in() {
                self.ask(device);
            }
            return Ok(device);
        }
        let id = SessionId(self.sessions.len() as u32);
        if sharing == Sharing::Shared {
            self.shared.push(id);
        }
        self.devices.push(Device::new(address.clone(), Path::new(id), questions));
        self.start_session(driver, config);
        Ok(device)
    }

    /// Starts a discovery session; its text is taken with [`take_targets`](Self::take_targets).
    pub(crate) fn start_discovery<D: Driver>(
        &mut self,
        driver: &mut D,
        portal: &PortalAddress,
        options: &SessionOptions,
        credentials: &Credentials,
    ) -> Result<SessionId, OptionsError> {
        let config = Config::new(portal, None, options, credentials)?;
        let id = SessionId(self.sessions.len() as u32);
        self.start_session(driver, config);
        Ok(id)
    }

    fn start_session<D: Driver>(&mut self, driver: &mut D, config: Config) {
        let id = SessionId(self.sessions.len() as u32);
        let now = driver.now();
        let [a, b, c] = self.isid_random;
        let [hi, lo] = (id.0 as u16).to_be_bytes();
        // RFC 7143 11.12.5: type 10b (random), 24 random bits, 16-bit qualifier.
        let isid = [0x80, a, b, c, hi, lo];
        self.sessions.push(Session::new(id, config, isid, now));
        self.wake_at = self.wake_at.min(now + TICK_NS);
        self.with_session(id, &mut Vec::<IoDone>::new(), |session, turn| session.start(driver, now, turn));
    }

    /// Drives `driver` until no device is `Opening`. For the time before the driver has other work: completions that
    /// belong to nobody here are dropped.
    pub fn wait_ready<D: Driver>(&mut self, driver: &mut D, sink: &mut impl IoSink) -> std::io::Result<()> {
        self.drive_while(driver, sink, Nanos::MAX, |this| {
            this.devices.iter().any(|device| device.state == DeviceState::Opening)
        })
    }

    /// Drives `driver` while `busy` holds and `until` has not come.
    pub(crate) fn drive_while<D: Driver>(
        &mut self,
        driver: &mut D,
        sink: &mut impl IoSink,
        until: Nanos,
        busy: impl Fn(&Self) -> bool,
    ) -> std::io::Result<()> {
        self.deliver_notices(driver.now(), sink);
        while busy(self) && driver.now() < until {
            self.step(driver, until, sink)?;
        }
        Ok(())
    }

    /// One turn of a loop that has nothing else to do: flush, wait until something comes or `until`, handle it.
    pub(crate) fn step<D: Driver>(
        &mut self,
        driver: &mut D,
        until: Nanos,
        sink: &mut impl IoSink,
    ) -> std::io::Result<()> {
        let mut completions = Vec::new();
        self.flush(driver);
        let deadline = self.wake_at.min(until);
        driver.poll(
            if deadline == Nanos::MAX { Wait::Forever } else { Wait::Until(deadline) },
            &mut completions,
        )?;
        for completion in completions {
            self.handle_completion(driver, completion, sink);
        }
        self.on_time(driver, driver.now(), sink);
        Ok(())
    }

    /// Whether a device takes I/O.
    pub fn state(&self, device: DeviceId) -> &DeviceState {
        &self.devices[device.index()].state
    }

    /// What the LUN said about itself; zeros until it is ready.
    pub fn facts(&self, device: DeviceId) -> &DeviceFacts {
        &self.devices[device.index()].facts
    }

    /// The address that a device was opened with.
    pub fn address(&self, device: DeviceId) -> &LunAddress {
        &self.devices[device.index()].address
    }

    /// The session that a device uses now.
    pub fn session_of(&self, device: DeviceId) -> SessionId {
        let paths = &self.devices[device.index()].paths;
        path::choose(paths).unwrap_or(paths[0].session)
    }

    /// All sessions.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> + use<> {
        (0..self.sessions.len() as u32).map(SessionId)
    }

    /// What a session negotiated; none before its first login.
    pub fn session_facts(&self, session: SessionId) -> Option<&SessionFacts> {
        self.sessions[session.index()].facts.as_ref()
    }

    /// The kernel's statistics of a session's connection; none while it has no connection.
    pub fn tcp_info<D: Driver>(&self, driver: &D, session: SessionId) -> Option<TcpInfo> {
        driver.tcp_info(self.sessions[session.index()].stream()?).ok()
    }

    /// Queues an I/O; it leaves with the next [`flush`](Self::flush). While a session is being restored it takes I/Os
    /// too and sends them afterwards.
    #[inline]
    pub fn submit(&mut self, device: DeviceId, request: &IoRequest) -> Result<(), SubmitError> {
        let from = &self.devices[device.index()];
        let task = from.task(device.0, request, &self.regions)?;
        let id = path::choose(&from.paths).ok_or(SubmitError::NotReady)?;
        self.sessions[id.index()].enqueue(&task).ok_or(SubmitError::Full)?;
        self.mark(id);
        Ok(())
    }

    /// Sends everything queued, one send per session, and receives again where the last buffer has been used up.
    pub fn flush<D: Driver>(&mut self, driver: &mut D) {
        if self.dirty.is_empty() {
            return;
        }
        let now = driver.now();
        for id in self.dirty.drain(..) {
            let session = &mut self.sessions[id.index()];
            session.dirty = false;
            session.flush(driver, &self.regions, now);
        }
    }

    /// Handles a completion of one of this initiator's streams; hands back one that is not its own.
    pub fn handle_completion<D: Driver>(
        &mut self,
        driver: &mut D,
        completion: Completion<D::Socket>,
        sink: &mut impl IoSink,
    ) -> Option<Completion<D::Socket>> {
        let stream = match &completion {
            Completion::Connected { stream, .. }
            | Completion::Received { stream, .. }
            | Completion::Sent { stream, .. } => *stream,
            _ => return Some(completion),
        };
        let Some(Some((current, id))) = self.routes.get(stream.index() as usize).copied() else {
            return Some(completion);
        };
        // What comes from a stream that was closed here only brings memory back.
        if current != stream || self.sessions[id.index()].stream() != Some(stream) {
            return (current.generation() < stream.generation()).then_some(completion);
        }
        self.with_session(id, sink, |session, turn| {
            let result = match completion {
                Completion::Connected { result, .. } => session.connected(driver, result, turn),
                Completion::Received { result, buffer, .. } => {
                    session.received_from(driver, result, buffer, turn)
                }
                Completion::Sent { result, outgoing, .. } => session.sent(result, outgoing),
                _ => Ok(()),
            };
            if let Err(reason) = result {
                session.lose(driver, &reason, driver.now(), turn);
            }
        });
        if !self.notices.is_empty() {
            self.deliver_notices(driver.now(), sink);
        }
        None
    }

    /// Runs what is due: login and command timeouts, pings, new login attempts. Cheap when nothing is due.
    pub fn on_time<D: Driver>(&mut self, driver: &mut D, now: Nanos, sink: &mut impl IoSink) {
        if now < self.wake_at {
            return;
        }
        self.wake_at = now + TICK_NS;
        for id in self.sessions() {
            self.with_session(id, sink, |session, turn| session.on_time(driver, now, turn));
        }
        self.deliver_notices(now, sink);
    }

    /// When [`on_time`](Self::on_time) has something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        (self.wake_at != Nanos::MAX).then_some(self.wake_at)
    }

    /// Logs out every session and waits at most `timeout_ns`; I/Os still in flight end as [`crate::IoError::Closed`].
    pub fn close<D: Driver>(
        &mut self,
        driver: &mut D,
        timeout_ns: Nanos,
        sink: &mut impl IoSink,
    ) -> std::io::Result<()> {
        for id in self.sessions() {
            self.with_session(id, sink, |session, turn| session.close(driver, turn));
        }
        let until = driver.now() + timeout_ns;
        let result = self.drive_while(driver, sink, until, |this| {
            this.sessions.iter().any(|session| session.state == State::LoggingOut)
        });
        for session in &mut self.sessions {
            session.hang_up(driver);
        }
        result
    }

    /// The `SendTargets` text of a discovery session is complete.
    pub(crate) fn has_targets(&self, session: SessionId) -> bool {
        self.targets.iter().any(|(id, _)| *id == session)
    }

    /// `SendTargets` text of a discovery session, once it is complete.
    pub(crate) fn take_targets(&mut self, session: SessionId) -> Option<Vec<u8>> {
        let at = self.targets.iter().position(|(id, _)| *id == session)?;
        Some(self.targets.swap_remove(at).1)
    }

    /// Why a session was given up.
    pub(crate) fn failure(&self, session: SessionId) -> Option<&Failure> {
        self.sessions[session.index()].failure.as_ref()
    }

    #[inline]
    fn with_session<S: IoSink>(
        &mut self,
        id: SessionId,
        sink: &mut S,
        work: impl FnOnce(&mut Session, &mut Turn<'_, S>),
    ) {
        let session = &mut self.sessions[id.index()];
        let mut turn = Turn {
            sink,
            notices: &mut self.notices,
            regions: &self.regions,
            random: &mut *self.random,
            wake_at: self.wake_at,
        };
        work(session, &mut turn);
        self.wake_at = turn.wake_at;
        if let Some(stream) = session.stream() {
            self.route(stream, id);
        }
        self.mark(id);
    }

    #[inline]
    fn route(&mut self, stream: Handle, id: SessionId) {
        let index = stream.index() as usize;
        if self.routes.len() <= index {
            self.routes.resize(index + 1, None);
        }
        self.routes[index] = Some((stream, id));
    }

    #[inline]
    fn mark(&mut self, id: SessionId) {
        let session = &mut self.sessions[id.index()];
        if !session.dirty {
            session.dirty = true;
            self.dirty.push(id);
        }
    }

    #[cold]
    fn deliver_notices(&mut self, at: Nanos, sink: &mut impl IoSink) {
        while let Some((session, notice)) = self.notices.pop() {
            match notice {
                Notice::Ready => {
                    for device in self.devices_on(session) {
                        self.ask(device);
                    }
                }
                Notice::Restored => self.confirm_devices(session, at, sink),
                Notice::Failed(reason) => {
                    self.sessions[session.index()].failure = Some(reason.clone());
                    for device in self.devices_on(session) {
                        self.fail_device(device, reason.clone(), at, sink);
                    }
                }
                Notice::Answered { device, answer, reply } => {
                    self.hear(DeviceId(device), answer, &reply, at, sink);
                }
                Notice::Targets(text) => self.targets.push((session, text)),
            }
        }
    }

    fn devices_on(&self, session: SessionId) -> Vec<DeviceId> {
        let on = |device: &Device| device.paths.iter().any(|path| path.session == session);
        let ids = self.devices.iter().enumerate().filter(|(_, device)| on(device));
        ids.map(|(index, _)| DeviceId(index as u32)).collect()
    }

    /// Sends a device's next question; false if there is none left.
    fn ask(&mut self, device: DeviceId) -> bool {
        let from = &mut self.devices[device.index()];
        let (Some(task), Some(id)) = (from.ask(device.0), path::choose(&from.paths)) else { return false };
        self.mark(id);
        self.sessions[id.index()].enqueue(&task).is_some()
    }

    fn hear(&mut self, device: DeviceId, answer: Answer, reply: &[u8], at: Nanos, sink: &mut impl IoSink) {
        if self.devices[device.index()].is_confirming() {
            return self.hear_again(device, answer, reply, at, sink);
        }
        if self.devices[device.index()].state != DeviceState::Opening {
            return;
        }
        let mut result = self.devices[device.index()].hear(answer, reply);
        if result.is_ok() {
            if self.ask(device) {
                return;
            }
            result = self.devices[device.index()].settle();
        }
        match result {
            Ok(()) => {
                self.devices[device.index()].state = DeviceState::Ready;
                self.tell(device, at, EventKind::DeviceReady, sink);
            }
            Err(reason) => self.fail_device(device, reason, at, sink),
        }
    }

    /// After a new login, asks every disk again who it is; until all have answered the session sends no I/O.
    fn confirm_devices(&mut self, session: SessionId, at: Nanos, sink: &mut impl IoSink) {
        for device in self.devices_on(session) {
            if self.devices[device.index()].start_confirming() {
                self.ask_again(device, at, sink);
            }
        }
        self.release(session);
    }

    fn hear_again(
        &mut self,
        device: DeviceId,
        answer: Answer,
        reply: &[u8],
        at: Nanos,
        sink: &mut impl IoSink,
    ) {
        match self.devices[device.index()].hear_again(answer, reply) {
            Ok(()) => self.ask_again(device, at, sink),
            Err(reason) => self.fail_changed(device, reason, at, sink),
        }
        self.release(self.session_of(device));
    }

    /// Sends a device's next question; judges the answers when there is none left.
    fn ask_again(&mut self, device: DeviceId, at: Nanos, sink: &mut impl IoSink) {
        let id = self.session_of(device);
        let from = &mut self.devices[device.index()];
        if let Some(task) = from.ask(device.0) {
            self.mark(id);
            self.sessions[id.index()].enqueue_question(&task);
        } else if let Err(reason) = from.confirm() {
            self.fail_changed(device, reason, at, sink);
        }
    }

    /// Another disk than before must get none of the I/O that was meant for the old one.
    fn fail_changed(&mut self, device: DeviceId, reason: Failure, at: Nanos, sink: &mut impl IoSink) {
        let id = self.session_of(device);
        self.with_session(id, sink, |session, turn| session.fail_device(device, turn));
        self.fail_device(device, reason, at, sink);
    }

    /// Lets a session's I/O go once all of its disks are known to be the old ones.
    fn release(&mut self, session: SessionId) {
        let on = self.devices_on(session);
        if !on.iter().any(|device| self.devices[device.index()].is_confirming()) {
            self.sessions[session.index()].held = false;
            self.mark(session);
        }
    }

    fn fail_device(&mut self, device: DeviceId, reason: Failure, at: Nanos, sink: &mut impl IoSink) {
        let failed = &mut self.devices[device.index()];
        failed.paths.iter_mut().for_each(|path| path.state = PathState::Failed);
        failed.state = DeviceState::Failed(reason.clone());
        self.tell(device, at, EventKind::DeviceFailed(reason), sink);
    }

    fn tell(&self, device: DeviceId, at: Nanos, kind: EventKind, sink: &mut impl IoSink) {
        sink.event(Event { at, session: Some(self.session_of(device)), device: Some(device), kind });
    }
}

impl Default for Initiator {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Initiator({} sessions, {} devices)", self.sessions.len(), self.devices.len())
    }
}
