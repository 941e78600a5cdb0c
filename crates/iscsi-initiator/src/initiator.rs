//! The arena: one thread's sessions and devices.

use crate::commands::Question;
use crate::device::{Device, Route};
use crate::event::{Blame, Failure, IoDone, IoError, IoSink};
use crate::facts::{DeviceFacts, DeviceId, DeviceState, SessionFacts, SessionId};
use crate::interview::Problem;
use crate::options::address::{LunAddress, PortalAddress};
use crate::options::credentials::Credentials;
use crate::options::error::OptionsError;
use crate::options::session::SessionOptions;
use crate::request::{IoRequest, SubmitError};
use crate::session::{
    Config, ConnectionCounters, Notice, Random, Regions, Returned, SECOND, Session, State, Turn, nanos,
};
use linerate_io::net::NetWatch;
use linerate_io::{Completion, Driver, Handle, Nanos, Region, RegionId, TcpInfo, Wait};
use std::sync::Arc;

/// Whether a device may ride on a session that another device opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// A session of its own.
    Own,
    /// One session per portal, target, credentials and options.
    Shared,
}

/// The time between two looks at timeouts, unless paths need a closer watch.
const TICK_NS: Nanos = 50_000_000;

/// Sessions and devices of one thread. See the crate text for how it is driven:
///
/// 1. [`attach`](Self::attach) regions, [`open`](Self::open) every device, then [`wait_ready`](Self::wait_ready), or
///    poll the driver until each device's [`state`](Self::state) is not `Opening`.
/// 2. [`submit`](Self::submit) I/Os, then [`flush`](Self::flush) once.
/// 3. Poll the driver no longer than [`next_deadline`](Self::next_deadline) allows, hand every completion to
///    [`handle_completion`](Self::handle_completion), call [`on_time`](Self::on_time), submit, flush, and so on.
pub struct Initiator {
    pub(crate) sessions: Vec<Session>,
    /// Sessions that other devices may share.
    shared: Vec<SessionId>,
    pub(crate) devices: Vec<Device>,
    /// By the index of a stream's handle: the handle and its session.
    routes: Vec<Option<(Handle, SessionId)>>,
    /// Sessions with something to send or a buffer to receive into.
    dirty: Vec<SessionId>,
    pub(crate) notices: Vec<(SessionId, Notice)>,
    /// I/Os that paths could not do.
    pub(crate) returned: Vec<Returned>,
    regions: Regions,
    random: Box<Random>,
    /// The random part of every ISID of this initiator.
    isid_random: [u8; 3],
    pub(crate) wake_at: Nanos,
    /// The longest time between two looks at timeouts.
    pub(crate) tick_ns: Nanos,
    /// Tells when links go down and come up.
    pub(crate) links: Option<NetWatch>,
    /// `SendTargets` text per session that asked for it.
    pub(crate) targets: Vec<(SessionId, Vec<u8>)>,
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
            returned: Vec::new(),
            regions: Regions::default(),
            random,
            isid_random,
            wake_at: Nanos::MAX,
            tick_ns: TICK_NS,
            links: None,
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
            self.devices.push(Device::new(address.clone(), Route::One(id), questions));
            if self.sessions[id.index()].is_logged_in() {
                self.ask(device);
            }
            return Ok(device);
        }
        let id = SessionId(self.sessions.len() as u32);
        if sharing == Sharing::Shared {
            self.shared.push(id);
        }
        self.devices.push(Device::new(address.clone(), Route::One(id), questions));
        self.start_session(driver, config, None);
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
        self.start_session(driver, config, None);
        Ok(id)
    }

    pub(crate) fn start_session<D: Driver>(
        &mut self,
        driver: &mut D,
        config: Config,
        path_of: Option<(DeviceId, u16)>,
    ) {
        let id = SessionId(self.sessions.len() as u32);
        let now = driver.now();
        let [a, b, c] = self.isid_random;
        let [hi, lo] = (id.0 as u16).to_be_bytes();
        // RFC 7143 11.12.5: type 10b (random), 24 random bits, 16-bit qualifier.
        let isid = [0x80, a, b, c, hi, lo];
        self.sessions.push(Session::new(id, config, isid, path_of, now));
        self.wake_at = self.wake_at.min(now + self.tick_ns);
        self.with_session(id, &mut Vec::<IoDone>::new(), |session, turn| session.start(driver, now, turn));
    }

    /// Drives `driver` until no device is `Opening`. For the time before the driver has other work: completions that
    /// belong to nobody here are dropped. A device that is not open when its time limits for login, command and abort
    /// have passed has failed: a target may take no command at all and still answer every ping.
    pub fn wait_ready<D: Driver>(&mut self, driver: &mut D, sink: &mut impl IoSink) -> std::io::Result<()> {
        let limit_ns = self.opening().map(|device| self.opening_limit_ns(device)).max().unwrap_or(0);
        let until = driver.now().saturating_add(limit_ns);
        self.drive_while(driver, sink, until, |this| this.opening().next().is_some())?;
        let late: Vec<DeviceId> = self.opening().collect();
        for device in late {
            let words =
                format!("the target did not answer its first commands within {} s", limit_ns / SECOND);
            let problem = Problem::new(Blame::Peer, words);
            let reason = self.devices[device.index()].failure(&problem);
            self.fail_device(device, reason, driver.now(), sink);
        }
        Ok(())
    }

    fn opening(&self) -> impl Iterator<Item = DeviceId> + '_ {
        let all = self.devices.iter().enumerate();
        all.filter(|(_, device)| device.state == DeviceState::Opening).map(|(at, _)| DeviceId(at as u32))
    }

    fn opening_limit_ns(&self, device: DeviceId) -> Nanos {
        let options = &self.sessions[self.session_of(device).index()].config.options;
        nanos(options.login_timeout_s) + nanos(options.command_timeout_s) + nanos(options.ping_timeout_s)
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

    /// The session that a device uses now; with several paths, one of them.
    pub fn session_of(&self, device: DeviceId) -> SessionId {
        match &self.devices[device.index()].route {
            Route::One(id) => *id,
            Route::Many(all) => all.session(),
        }
    }

    /// All sessions.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> + use<> {
        (0..self.sessions.len() as u32).map(SessionId)
    }

    /// What a session negotiated; none before its first login.
    pub fn session_facts(&self, session: SessionId) -> Option<&SessionFacts> {
        self.sessions[session.index()].facts.as_ref()
    }

    /// Hands `take` what each connection of a session has carried since the last call, by connection ID.
    pub fn take_connection_counters(
        &mut self,
        session: SessionId,
        take: impl FnMut(u16, ConnectionCounters),
    ) {
        self.sessions[session.index()].take_connection_counters(take);
    }

    /// The kernel's statistics of a session's connection; of several, the sums of what is counted, and the first one's
    /// times and sizes. None while there is no connection.
    pub fn tcp_info<D: Driver>(&self, driver: &D, session: SessionId) -> Option<TcpInfo> {
        let mut infos =
            self.sessions[session.index()].streams().filter_map(|stream| driver.tcp_info(stream).ok());
        let mut sum = infos.next()?;
        for info in infos {
            sum.retransmits += info.retransmits;
            sum.data_segments_sent += info.data_segments_sent;
            sum.bytes_sent += info.bytes_sent;
            sum.bytes_retransmitted += info.bytes_retransmitted;
            sum.bytes_received += info.bytes_received;
            sum.busy_us += info.busy_us;
            sum.rwnd_limited_us += info.rwnd_limited_us;
            sum.sndbuf_limited_us += info.sndbuf_limited_us;
        }
        Some(sum)
    }

    /// Queues an I/O; it leaves with the next [`flush`](Self::flush). While a session is being restored it takes I/Os
    /// too and sends them afterwards.
    #[inline]
    pub fn submit(&mut self, device: DeviceId, request: &IoRequest) -> Result<(), SubmitError> {
        let from = &mut self.devices[device.index()];
        let mut task = from.task(device.0, request, &self.regions)?;
        let id = match &mut from.route {
            Route::One(id) => *id,
            Route::Many(all) => match all.choose(&self.sessions, &mut task) {
                Some(id) => id,
                None => return self.submit_disturbed(device, &task),
            },
        };
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
        let at = if current == stream { self.sessions[id.index()].link_of(stream) } else { None };
        let Some(at) = at else {
            return (current.generation() < stream.generation()).then_some(completion);
        };
        self.with_session(id, sink, |session, turn| {
            let result = match completion {
                Completion::Connected { result, .. } => session.connected(driver, at, result),
                Completion::Received { result, buffer, .. } => {
                    session.received_from(driver, at, result, buffer, turn)
                }
                Completion::Sent { result, outgoing, .. } => session.sent(at, result, outgoing),
                _ => Ok(()),
            };
            if let Err(reason) = result {
                session.lose_link(driver, at, &reason, turn);
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
        self.wake_at = now + self.tick_ns;
        self.look_at_links(driver, now, sink);
        for id in self.sessions() {
            self.with_session(id, sink, |session, turn| session.on_time(driver, now, turn));
        }
        self.deliver_notices(now, sink);
        self.look_at_paths(now, sink);
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
        for index in 0..self.devices.len() {
            self.fail_waiting(DeviceId(index as u32), IoError::Closed, sink);
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
    pub(crate) fn with_session<S: IoSink>(
        &mut self,
        id: SessionId,
        sink: &mut S,
        work: impl FnOnce(&mut Session, &mut Turn<'_, S>),
    ) {
        let session = &mut self.sessions[id.index()];
        let mut turn = Turn {
            sink,
            notices: &mut self.notices,
            returned: &mut self.returned,
            regions: &self.regions,
            random: &mut *self.random,
            wake_at: self.wake_at,
        };
        work(session, &mut turn);
        self.wake_at = turn.wake_at;
        for stream in session.streams() {
            route(&mut self.routes, stream, id);
        }
        self.mark(id);
    }

    #[inline]
    pub(crate) fn mark(&mut self, id: SessionId) {
        let session = &mut self.sessions[id.index()];
        if !session.dirty {
            session.dirty = true;
            self.dirty.push(id);
        }
    }
}

/// Notes whose stream it is.
#[inline]
fn route(routes: &mut Vec<Option<(Handle, SessionId)>>, stream: Handle, id: SessionId) {
    let index = stream.index() as usize;
    if routes.len() <= index {
        routes.resize(index + 1, None);
    }
    routes[index] = Some((stream, id));
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
