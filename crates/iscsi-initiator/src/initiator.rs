//! The initiator: one thread's sessions and devices, and the order in which they get completions and time.

use crate::balance::PathCounters;
use crate::event::Failure;
use crate::event::{IoError, IoSink};
use crate::facts::{DeviceFacts, DeviceId, DeviceState, SessionFacts, SessionId};
use crate::options::address::LunAddress;
use crate::options::{SECOND, nanos};
use crate::paths::{Multipath, PathContext, PathFacts};
use crate::probe::Problem;
use crate::request::{IoRequest, SubmitError};
use crate::session::{ConnectionCounters, Random, Returned, SessionEvent, State};
use crate::sessions::Sessions;
use crate::task::Owner;
use linerate_blame::Blame;
use linerate_io::net::{NetEvent, NetWatch};
use linerate_io::{Completion, Driver, Nanos, Region, RegionId, TcpInfo, Wait};
use std::sync::Arc;

/// Sessions and devices of one thread. See the crate text. The order of calls:
///
/// 1. [`attach`](Self::attach) regions, [`open`](Self::open) every device, then [`wait_ready`](Self::wait_ready), or
///    poll the driver until each device's [`state`](Self::state) is not `Opening`.
/// 2. [`submit`](Self::submit) I/Os, then [`flush`](Self::flush) once.
/// 3. Poll the driver no longer than [`next_deadline`](Self::next_deadline) allows, hand every completion to
///    [`handle_completion`](Self::handle_completion), call [`on_time`](Self::on_time), submit, flush, and so on.
pub struct Initiator {
    pub(crate) sessions: Sessions,
    pub(crate) devices: Vec<Multipath>,
    /// Reports links that go down or come up.
    links: Option<NetWatch>,
    /// `SendTargets` text of each session that requested it.
    targets: Vec<(SessionId, Vec<u8>)>,
}

impl Initiator {
    /// An initiator without sessions. Random numbers come from the operating system.
    pub fn new() -> Self {
        // Without random numbers no CHAP challenge can be made; this program cannot run on a system without them.
        Self::with_random(Box::new(|bytes| getrandom::fill(bytes).expect("the system gives random bytes")))
    }

    /// An initiator that gets random numbers from `random`: for repeatable simulations.
    pub fn with_random(random: Box<Random>) -> Self {
        Self { sessions: Sessions::new(random), devices: Vec::new(), links: None, targets: Vec::new() }
    }

    /// Attaches a region to `driver`, for segments of reads and writes.
    pub fn attach<D: Driver>(&mut self, driver: &mut D, region: &Arc<Region>) -> RegionId {
        let id = driver.attach(Arc::clone(region));
        self.sessions.regions.insert(id, Arc::clone(region));
        id
    }

    /// Drives `driver` until no device is `Opening`. Use it before the driver has other work: completions of other
    /// streams are dropped. A device that is not open after its time limits for login, command and abort has failed: a
    /// target may accept no command at all and still answer every ping.
    pub fn wait_ready<D: Driver>(&mut self, driver: &mut D, sink: &mut impl IoSink) -> std::io::Result<()> {
        let limit_ns = self.opening().map(|device| self.opening_limit_ns(device)).max().unwrap_or(0);
        let until = driver.now().saturating_add(limit_ns);
        self.drive_while(driver, sink, until, |this| this.opening().next().is_some())?;
        let late: Vec<DeviceId> = self.opening().collect();
        for device in late {
            let words =
                format!("the target did not answer its first commands within {} s", limit_ns / SECOND);
            let failure = self.devices[device.index()].device.failure(&Problem::new(Blame::Peer, words));
            self.with_device(device, driver.now(), sink, |device, cx| device.fail_device(failure, cx));
        }
        Ok(())
    }

    fn opening(&self) -> impl Iterator<Item = DeviceId> + '_ {
        let all = self.devices.iter().enumerate();
        all.filter(|(_, paths)| paths.device.state == DeviceState::Opening).map(|(at, _)| DeviceId(at as u32))
    }

    fn opening_limit_ns(&self, device: DeviceId) -> Nanos {
        let options = &self.sessions[self.session_of(device)].config.options;
        nanos(options.login_timeout_s) + nanos(options.command_timeout_s) + nanos(options.ping_timeout_s)
    }

    /// Drives `driver` while `busy` is true, until `until` at most.
    pub(crate) fn drive_while<D: Driver>(
        &mut self,
        driver: &mut D,
        sink: &mut impl IoSink,
        until: Nanos,
        busy: impl Fn(&Self) -> bool,
    ) -> std::io::Result<()> {
        self.deliver_events(driver.now(), sink);
        while busy(self) && driver.now() < until {
            self.step(driver, until, sink)?;
        }
        Ok(())
    }

    /// One turn of a loop without other work: flush, wait for a completion or `until`, handle it.
    pub(crate) fn step<D: Driver>(
        &mut self,
        driver: &mut D,
        until: Nanos,
        sink: &mut impl IoSink,
    ) -> std::io::Result<()> {
        let mut completions = Vec::new();
        self.flush(driver);
        let deadline = self.sessions.wake_at.min(until);
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
        &self.devices[device.index()].device.state
    }

    /// The facts that the LUN reported; zeros until it is ready.
    pub fn facts(&self, device: DeviceId) -> &DeviceFacts {
        &self.devices[device.index()].device.facts
    }

    /// The address that a device was opened with.
    pub fn address(&self, device: DeviceId) -> &LunAddress {
        &self.devices[device.index()].device.address
    }

    /// The session that a device uses now; with several paths, one of them.
    pub fn session_of(&self, device: DeviceId) -> SessionId {
        self.devices[device.index()].session()
    }

    /// All sessions.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> + use<> {
        self.sessions.ids()
    }

    /// What a session negotiated; none before its first login.
    pub fn session_facts(&self, session: SessionId) -> Option<&SessionFacts> {
        self.sessions[session].facts.as_ref()
    }

    /// Passes to `take` the counters of each connection of a session since the last call, by connection ID.
    pub fn take_connection_counters(
        &mut self,
        session: SessionId,
        take: impl FnMut(u16, ConnectionCounters),
    ) {
        self.sessions[session].take_connection_counters(take);
    }

    /// The kernel's statistics of a session's connection. With several connections: the sums of counters, and the times
    /// and sizes of the first one. None while there is no connection.
    pub fn tcp_info<D: Driver>(&self, driver: &D, session: SessionId) -> Option<TcpInfo> {
        let mut infos = self.sessions[session].streams().filter_map(|stream| driver.tcp_info(stream).ok());
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
        self.devices[device.index()].submit(request, &mut self.sessions)
    }

    /// Sends everything that is queued, one send per session, and receives again if the last buffer is used up.
    pub fn flush<D: Driver>(&mut self, driver: &mut D) {
        self.sessions.flush(driver);
    }

    /// Handles a completion of one of this initiator's streams; returns one of another stream.
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
        let Some((current, id)) = self.sessions.route_of(stream) else { return Some(completion) };
        // A completion of a stream that was closed here only returns memory.
        let at = if current == stream { self.sessions[id].connection_of(stream) } else { None };
        let Some(at) = at else {
            return (current.generation() < stream.generation()).then_some(completion);
        };
        self.sessions.with(id, sink, |session, cx| {
            let result = match completion {
                Completion::Connected { result, .. } => session.connected(driver, at, result),
                Completion::Received { result, buffer, .. } => {
                    session.received_from(driver, at, result, buffer, cx)
                }
                Completion::Sent { result, outgoing, .. } => session.sent(at, result, outgoing),
                _ => Ok(()),
            };
            if let Err(reason) = result {
                session.lose_connection(driver, at, &reason, cx);
            }
        });
        if !self.sessions.events.is_empty() {
            self.deliver_events(driver.now(), sink);
        }
        None
    }

    /// Runs what is due: login and command timeouts, pings, new login attempts. Cheap when nothing is due.
    pub fn on_time<D: Driver>(&mut self, driver: &mut D, now: Nanos, sink: &mut impl IoSink) {
        if now < self.sessions.wake_at {
            return;
        }
        self.sessions.wake_at = now + self.sessions.tick_ns;
        self.follow_links(driver, now, sink);
        for id in self.sessions.ids() {
            self.sessions.with(id, sink, |session, cx| session.on_time(driver, now, cx));
        }
        self.deliver_events(now, sink);
        for index in 0..self.devices.len() {
            self.with_device(DeviceId(index as u32), now, sink, Multipath::on_tick);
        }
    }

    /// When [`on_time`](Self::on_time) has something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        (self.sessions.wake_at != Nanos::MAX).then_some(self.sessions.wake_at)
    }

    /// Logs out every session and waits at most `timeout_ns`; I/Os still in flight end as [`crate::IoError::Closed`].
    pub fn close<D: Driver>(
        &mut self,
        driver: &mut D,
        timeout_ns: Nanos,
        sink: &mut impl IoSink,
    ) -> std::io::Result<()> {
        for id in self.sessions.ids() {
            self.sessions.with(id, sink, |session, cx| session.close(driver, cx));
        }
        for device in &mut self.devices {
            device.fail_waiting(IoError::Closed, sink);
        }
        let until = driver.now() + timeout_ns;
        let result = self.drive_while(driver, sink, until, |this| {
            this.sessions.iter().any(|session| session.state == State::LoggingOut)
        });
        for session in self.sessions.iter_mut() {
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
        self.sessions[session].failure.as_ref()
    }

    /// The paths of a device, in the order of its list; empty if it was opened without paths.
    pub fn path_facts(&self, device: DeviceId) -> impl Iterator<Item = PathFacts<'_>> {
        self.devices[device.index()].listed(&self.sessions)
    }

    /// Passes to `take` the counters of each path of a device since the last call, by its index in the list.
    pub fn take_path_counters(&mut self, device: DeviceId, take: impl FnMut(usize, PathCounters)) {
        self.devices[device.index()].take_counters(&mut self.sessions, take);
    }

    /// Uses the restored better paths of a device again: for [`crate::Failback::Manual`].
    pub fn fail_back(&mut self, device: DeviceId, now: Nanos, sink: &mut impl IoSink) {
        self.with_device(device, now, sink, Multipath::fail_back);
    }

    /// The link of a local interface went down or came up: paths that depend on it fail at once, or are tried at once.
    pub fn link_changed<D: Driver>(
        &mut self,
        driver: &mut D,
        interface: &str,
        up: bool,
        now: Nanos,
        sink: &mut impl IoSink,
    ) {
        let concerned: Vec<SessionId> =
            self.devices.iter().flat_map(|device| device.sessions_on(interface)).collect();
        for id in concerned {
            self.sessions.with(id, sink, |session, cx| session.link_changed(driver, interface, up, now, cx));
        }
        self.deliver_events(now, sink);
    }

    /// Watches the links of the local interfaces from now on: paths that name an interface fail with its link, and are
    /// tried again when it is back. `watch` belongs to the network namespace of the sessions.
    pub fn watch_links(&mut self, watch: NetWatch) {
        self.links = Some(watch);
    }

    /// Handles the link changes that the kernel has reported since the last tick.
    fn follow_links<D: Driver>(&mut self, driver: &mut D, now: Nanos, sink: &mut impl IoSink) {
        // No path names an interface.
        let Some(watch) = &mut self.links else { return };
        let mut changes: Vec<(String, bool)> = Vec::new();
        let result = watch.take(|event| match event {
            NetEvent::LinkUp { interface } => changes.push((interface, true)),
            NetEvent::LinkDown { interface } => changes.push((interface, false)),
            NetEvent::AddressAdded { .. } | NetEvent::AddressRemoved { .. } => {}
        });
        if let Err(error) = result {
            tracing::warn!(%error, "cannot watch links any more: paths without a link are found by timeout only");
            self.links = None;
        }
        for (interface, up) in changes {
            self.link_changed(driver, &interface, up, now, sink);
        }
    }

    /// Passes returned I/Os and events of sessions to the devices.
    #[cold]
    fn deliver_events(&mut self, now: Nanos, sink: &mut impl IoSink) {
        for Returned { session, task, progress } in std::mem::take(&mut self.sessions.returned) {
            let Owner::Io { device, .. } = task.owner else { unreachable!("only I/Os are handed back") };
            self.with_device(DeviceId(device), now, sink, |device, cx| {
                device.take_returned(session, task, progress, cx);
            });
        }
        let mut changed: Vec<DeviceId> = Vec::new();
        while !self.sessions.events.is_empty() {
            for (session, event) in std::mem::take(&mut self.sessions.events) {
                self.deliver(session, event, now, sink, &mut changed);
            }
        }
        // After all events: I/O must not fail over to a path that was lost in the same batch.
        changed.sort_unstable();
        changed.dedup();
        for device in changed {
            self.with_device(device, now, sink, Multipath::settle);
        }
    }

    /// Passes an event to its devices, and records them.
    fn deliver(
        &mut self,
        session: SessionId,
        event: SessionEvent,
        now: Nanos,
        sink: &mut impl IoSink,
        changed: &mut Vec<DeviceId>,
    ) {
        let only = match &event {
            SessionEvent::Probed { device, .. }
            | SessionEvent::AccessPolled { device, .. }
            | SessionEvent::RetryDone { device, .. } => Some(*device),
            _ => None,
        };
        match event {
            SessionEvent::Targets(text) => return self.targets.push((session, text)),
            SessionEvent::Failed(ref loss) => self.sessions[session].failure = Some(loss.failure.clone()),
            _ => {}
        }
        for at in 0..self.sessions[session].users.len() {
            let (device, place) = self.sessions[session].users[at];
            if only.is_none_or(|only| only == device) {
                changed.push(device);
                self.with_device(device, now, sink, |device, cx| {
                    device.on_event(usize::from(place), &event, cx);
                });
            }
        }
    }

    /// Calls a device with access to the sessions.
    pub(crate) fn with_device<S: IoSink>(
        &mut self,
        device: DeviceId,
        now: Nanos,
        sink: &mut S,
        work: impl FnOnce(&mut Multipath, &mut PathContext<'_, S>),
    ) {
        let mut cx = PathContext { sessions: &mut self.sessions, now, sink };
        work(&mut self.devices[device.index()], &mut cx);
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
