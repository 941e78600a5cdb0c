//! Loss and return of a connection, timeouts, pings.
//!
//! # The rule that keeps writes in order
//!
//! A connection that breaks leaves commands behind of which nobody knows whether the target ran them. Reads and writes
//! of blocks can be sent again without harm as long as a write sent again never overwrites a newer one:
//!
//! 1. *The old try must be dead before the new one starts.* The new login carries the old ISID with TSIH 0, so the
//!    target ends the old session and all its tasks before it completes the login (RFC 7143 6.3.5).
//! 2. *Retries go first, in the order of their `CmdSN`.* They stand at the head of the queue.
//! 3. *Nothing overtakes a retry.* A command whose blocks overlap those of an unfinished retry, where one of the two
//!    writes, waits until the retry has ended. The queue is first in, first out, so what stands behind it waits too.
//! 4. *What the caller was told has failed is not sent again.*
//! 5. *The LUN must be the old one.* After a new login every disk is asked again who it is, and no I/O is sent before it
//!    has said so: another one, or one that shrank, gets none of it.
//!
//! Rules 2 to 4 hold for every retry, also for one after BUSY or a unit attention.
//!
//! A session that is one of several paths keeps no commands when it is lost: it hands them back, and the rules of
//! `multipath/displaced.rs` take the place of these.

use super::receive::Current;
use super::tasks::{Stage, Task, TaskIndex};
use super::{Config, Input, LossReason, Notice, PathTimes, SECOND, Session, State, Turn, nanos};
use crate::alua::Access;
use crate::event::{EventKind, IoError, IoSink};
use crate::facts::DeviceId;
use crate::options::address::PortalAddress;
use crate::task::Owner;
use linerate_io::{Driver, Nanos};
use std::net::{IpAddr, SocketAddr};

/// First pause between two login attempts; it doubles up to [`PAUSE_NS_MAX`].
const PAUSE_NS_MIN: Nanos = 100_000_000;
const PAUSE_NS_MAX: Nanos = 3 * SECOND;
/// A command that was in flight at so many losses is suspected to be their cause.
const LOSSES_MAX: u8 = 8;
/// How long a logout may take.
const LOGOUT_NS: Nanos = 5 * SECOND;

/// What a session remembers about its connections.
#[derive(Debug)]
pub(super) struct Recovery {
    /// When connect and login must be done.
    pub(super) login_deadline: Nanos,
    /// Since when there is no session, after a first one.
    lost_since: Option<Nanos>,
    /// When the next attempt is due.
    retry_at: Nanos,
    /// Before which the target wants no attempt.
    not_before: Nanos,
    attempt: u32,
    /// Seconds that the target wants us to wait before we come back.
    pub(super) wait_s: u16,
    /// The caller wants the session closed.
    pub(super) closing: bool,
    /// When a target's request for logout runs out.
    drain_deadline: Nanos,
    /// Where the leading connection goes, or went.
    pub(super) peer: Option<SocketAddr>,
    /// Redirections of this attempt.
    pub(super) redirects: u8,
    /// Where the target has moved for good.
    pub(super) moved: Option<PortalAddress>,
    pub(super) logins: u32,
    /// The attempt under way goes over another path's portal, to end the old session there.
    pub(super) detour: Option<Detour>,
    /// Why the session is to be given up.
    condemned: Option<LossReason>,
    /// The next attempt shall.
    next_detour: Option<Detour>,
}

/// Another path's way to the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Detour {
    pub(crate) portal: PortalAddress,
    pub(crate) source: Option<IpAddr>,
}

impl Recovery {
    pub(super) fn new(config: &Config, now: Nanos) -> Self {
        Self {
            login_deadline: now + nanos(config.options.login_timeout_s),
            lost_since: None,
            retry_at: 0,
            not_before: 0,
            attempt: 0,
            wait_s: 0,
            closing: false,
            drain_deadline: Nanos::MAX,
            peer: None,
            redirects: 0,
            moved: None,
            logins: 0,
            detour: None,
            condemned: None,
            next_detour: None,
        }
    }
}

impl Session {
    /// Where this session connects to: the portal asked for, unless the target moved for good.
    pub(crate) fn portal(&self) -> PortalAddress {
        self.recovery.moved.clone().unwrap_or_else(|| self.config.portal.clone())
    }

    /// The local address that this attempt starts from.
    pub(super) fn source(&self) -> Option<IpAddr> {
        self.recovery.detour.as_ref().map_or(self.config.options.source_address, |detour| detour.source)
    }

    /// Starts an attempt.
    pub(crate) fn start<D: Driver, S: IoSink>(&mut self, driver: &mut D, now: Nanos, turn: &mut Turn<'_, S>) {
        self.recovery.detour = self.recovery.next_detour.take();
        let portal =
            self.recovery.detour.as_ref().map_or_else(|| self.portal(), |detour| detour.portal.clone());
        let source = self.source();
        if let Err(reason) = self.connect(driver, &portal, source) {
            self.lose(driver, &reason, now, turn);
        }
    }

    /// Full feature phase has begun.
    pub(super) fn restored<S: IoSink>(&mut self, now: Nanos, turn: &mut Turn<'_, S>) {
        self.recovery.logins += 1;
        self.recovery.attempt = 0;
        self.recovery.redirects = 0;
        self.recovery.lost_since = None;
        if let Some(leading) = self.links.first_mut() {
            leading.last_heard = now;
            self.recovery.wait_s = leading.params.default_time2wait_s;
        }
        if let Some(facts) = &mut self.facts {
            facts.logins = self.recovery.logins;
        }
        if self.config.path.is_some() || self.recovery.logins == 1 {
            turn.notices.push((self.id, Notice::Ready));
        } else {
            self.held = true;
            turn.notices.push((self.id, Notice::Restored));
            let retried_commands = self.tasks.retried;
            self.tell(turn, now, EventKind::SessionRestored { retried_commands });
        }
        if self.config.is_discovery() {
            self.enqueue_urgent(0, Owner::Text);
        }
    }

    /// Ends the connection. Tries again if that can help, and keeps the commands for then.
    #[cold]
    pub(crate) fn lose<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        reason: &LossReason,
        now: Nanos,
        turn: &mut Turn<'_, S>,
    ) {
        self.hang_up(driver);
        if let LossReason::Redirected { to, permanent } = reason {
            if let Err(reason) = self.follow(driver, to, *permanent, now, turn) {
                self.lose(driver, &reason, now, turn);
            }
            return;
        }
        if self.recovery.closing {
            self.state = State::Closed;
            return self.fail_all(IoError::Closed, turn);
        }
        if let Some(times) = self.config.path {
            return self.lose_path(times, reason, now, turn);
        }
        self.collect_unanswered(turn);
        let hopeless = reason.is_final() || self.recovery.logins == 0 || self.config.is_discovery();
        if hopeless || !self.step(Input::Lost) {
            return self.give_up(reason, now, turn);
        }
        if self.recovery.lost_since.is_none() {
            self.recovery.lost_since = Some(now);
            self.tell(turn, now, EventKind::SessionLost(reason.to_string()));
        }
        self.pause(PAUSE_NS_MAX, now, turn);
    }

    /// Sets the time of the next attempt.
    fn pause<S: IoSink>(&mut self, most: Nanos, now: Nanos, turn: &mut Turn<'_, S>) {
        if self.recovery.attempt == 0 {
            // DefaultTime2Wait holds for a login that ends the old session too (RFC 7143 13.15).
            self.recovery.not_before = now + Nanos::from(self.recovery.wait_s) * SECOND;
        }
        let pause = (PAUSE_NS_MIN << self.recovery.attempt.min(10)).min(most);
        // Sessions that were lost together do not come back in the same instant.
        let spread = u64::from(self.id.0 % 16) * PAUSE_NS_MIN / 16;
        self.recovery.retry_at = (now + pause).max(self.recovery.not_before) + spread;
        self.recovery.attempt += 1;
        turn.wake_at = turn.wake_at.min(self.recovery.retry_at);
    }

    /// The connection of one of several paths is lost: its I/O goes elsewhere, and it comes back when it can.
    #[cold]
    fn lose_path<S: IoSink>(
        &mut self,
        times: PathTimes,
        reason: &LossReason,
        now: Nanos,
        turn: &mut Turn<'_, S>,
    ) {
        self.hand_back_all(turn);
        if reason.is_final() || !self.step(Input::Lost) {
            self.step(Input::GaveUp);
            let failure = reason.failure(&self.config.portal, self.config.target_name());
            turn.notices.push((self.id, Notice::Failed(failure)));
            return;
        }
        let news = match reason {
            LossReason::Fenced => Notice::Fenced,
            reason => Notice::Lost(reason.failure(&self.config.portal, self.config.target_name())),
        };
        turn.notices.push((self.id, news));
        self.pause(times.pause_max_ns, now, turn);
    }

    /// Hands back every I/O, and forgets what belongs to the connection.
    fn hand_back_all<S: IoSink>(&mut self, turn: &mut Turn<'_, S>) {
        self.forget_connection();
        self.queue.clear();
        let all: Vec<(TaskIndex, bool, Stage)> = self
            .tasks
            .iter()
            .map(|(index, task)| (index, matches!(task.owner, Owner::Io { .. }), task.stage))
            .collect();
        for (index, is_io, stage) in all {
            if is_io {
                self.hand_back(index, matches!(stage, Stage::Sent | Stage::Aborting), turn);
            } else {
                self.tasks.remove(index);
            }
        }
    }

    fn forget_connection(&mut self) {
        self.questions.clear();
        self.text = None;
        self.text_next = None;
    }

    /// Makes the next attempt, as soon as the target lets us, one that ends the old session over another path. False
    /// while an attempt is under way.
    pub(crate) fn fence_over(&mut self, detour: Detour, now: Nanos) -> bool {
        if self.state != State::Waiting {
            return false;
        }
        self.recovery.next_detour = Some(detour);
        self.recovery.retry_at = now.max(self.recovery.not_before);
        true
    }

    /// The link of this path's interface has gone, or is back.
    pub(crate) fn link_changed<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        interface: &str,
        up: bool,
        now: Nanos,
        turn: &mut Turn<'_, S>,
    ) {
        match (up, self.state) {
            (true, State::Waiting) => {
                self.recovery.retry_at = now.max(self.recovery.not_before);
                turn.wake_at = now;
            }
            // The first packets of this attempt were lost with the link; TCP would repeat them too late.
            (true, State::Connecting | State::LoggingIn) if self.recovery.detour.is_none() => {
                self.lose(driver, &LossReason::LinkUp(interface.to_owned()), now, turn);
                self.recovery.retry_at = now.max(self.recovery.not_before);
                turn.wake_at = now;
            }
            (false, State::Ready | State::Draining) => {
                self.lose(driver, &LossReason::LinkDown(interface.to_owned()), now, turn);
            }
            _ => {}
        }
    }

    /// The LUN behind this path cannot be used: ends the connection with the next look at the time.
    pub(crate) fn condemn(&mut self, reason: LossReason) {
        self.recovery.condemned = Some(reason);
    }

    /// Ends the session for good.
    #[cold]
    pub(super) fn give_up<S: IoSink>(&mut self, reason: &LossReason, now: Nanos, turn: &mut Turn<'_, S>) {
        self.step(Input::GaveUp);
        let failure = reason.failure(&self.config.portal, self.config.target_name());
        self.tell(turn, now, EventKind::SessionFailed(failure.clone()));
        turn.notices.push((self.id, Notice::Failed(failure)));
        self.fail_all(IoError::SessionLost, turn);
    }

    /// Puts what was in flight back to the head of the queue, oldest first; forgets what belongs to the connection.
    fn collect_unanswered<S: IoSink>(&mut self, turn: &mut Turn<'_, S>) {
        self.forget_connection();
        let next = self.window.immediate();
        let mut again: Vec<(u32, TaskIndex)> = Vec::new();
        let mut ended: Vec<(TaskIndex, Option<IoError>)> = Vec::new();
        for (index, task) in self.tasks.iter() {
            match (task.owner, task.stage) {
                (Owner::Io { .. } | Owner::Script { .. }, Stage::Sent) if task.refusals < LOSSES_MAX => {
                    // Distance to the next number: the oldest is the smallest in wrapping arithmetic.
                    again.push((task.cmd_sn.wrapping_sub(next), index));
                }
                (Owner::Io { .. } | Owner::Script { .. }, Stage::Sent) => {
                    ended.push((index, Some(IoError::SessionLost)));
                }
                (Owner::Io { .. } | Owner::Script { .. }, Stage::Aborting) => {
                    ended.push((index, Some(IoError::Timeout)));
                }
                (Owner::Io { .. } | Owner::Script { .. }, _) => {}
                _ => ended.push((index, None)),
            }
        }
        for (index, error) in ended {
            match error {
                Some(error) => self.finish_failed(index, error, turn),
                None => self.tasks.remove(index),
            }
        }
        again.sort_unstable();
        for &(_, index) in again.iter().rev() {
            let task = &mut self.tasks[index];
            task.refusals += 1;
            task.first_sent = 0;
            self.requeue(index);
        }
    }

    /// Ends every I/O of a device that is not what it was.
    #[cold]
    pub(crate) fn fail_device<S: IoSink>(&mut self, device: DeviceId, turn: &mut Turn<'_, S>) {
        let its = |task: &Task| matches!(task.owner, Owner::Io { device: of, .. } if of == device.0);
        self.queue.retain(|index| !its(&self.tasks[*index]));
        let all: Vec<TaskIndex> =
            self.tasks.iter().filter(|(_, task)| its(task)).map(|(index, _)| index).collect();
        for index in all {
            self.finish_failed(index, IoError::DeviceChanged, turn);
        }
    }

    fn fail_all<S: IoSink>(&mut self, error: IoError, turn: &mut Turn<'_, S>) {
        self.queue.clear();
        self.questions.clear();
        for link in &mut self.links {
            link.urgent.clear();
            // The rest of a read's data may still be arriving: it belongs to nobody now.
            link.current = Current::Nothing;
        }
        let all: Vec<TaskIndex> = self.tasks.iter().map(|(index, _)| index).collect();
        for index in all {
            self.finish_failed(index, error, turn);
        }
    }

    /// The target wants us to log out within `limit_s` seconds.
    pub(super) fn logout_asked<S: IoSink>(&mut self, now: Nanos, limit_s: u16, turn: &mut Turn<'_, S>) {
        if !self.step(Input::LogoutAsked) {
            return;
        }
        // Half of the time for what is in flight, the rest for the logout itself.
        self.recovery.drain_deadline = now + Nanos::from(limit_s) * SECOND / 2;
        if self.config.path.is_some() {
            // Other paths need not wait for that.
            for index in std::mem::take(&mut self.queue) {
                self.hand_back(index, false, turn);
            }
            turn.notices.push((self.id, Notice::Refused(Access::Transitioning)));
        }
    }

    /// The caller wants the session closed.
    pub(crate) fn close<D: Driver, S: IoSink>(&mut self, driver: &mut D, turn: &mut Turn<'_, S>) {
        if !self.step(Input::CloseAsked) {
            self.recovery.closing = true;
            return;
        }
        self.recovery.closing = true;
        self.fail_all(IoError::Closed, turn);
        if self.state == State::LoggingOut {
            self.enqueue_urgent(0, Owner::Logout);
        } else {
            self.hang_up(driver);
        }
    }

    /// Runs what is due. Called every few tens of milliseconds.
    pub(crate) fn on_time<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        now: Nanos,
        turn: &mut Turn<'_, S>,
    ) {
        for link in &mut self.links {
            if std::mem::take(&mut link.heard) {
                link.last_heard = now;
            }
        }
        if let Some(reason) = self.recovery.condemned.take() {
            return self.lose(driver, &reason, now, turn);
        }
        let late = now >= self.recovery.login_deadline && !self.do_without_the_rest(driver, now, turn);
        let verdict = match self.state {
            State::Connecting | State::LoggingIn if late => {
                Err(LossReason::Silence("the login was not finished within login_timeout_s"))
            }
            State::Waiting => return self.wait_on(driver, now, turn),
            State::Ready | State::Draining | State::LoggingOut => self.look_at_tasks(now, turn),
            _ => Ok(()),
        };
        if let Err(reason) = verdict {
            self.lose(driver, &reason, now, turn);
        }
    }

    fn wait_on<D: Driver, S: IoSink>(&mut self, driver: &mut D, now: Nanos, turn: &mut Turn<'_, S>) {
        let since = self.recovery.lost_since.unwrap_or(now);
        if self.config.path.is_none() && now >= since + nanos(self.config.options.replacement_timeout_s) {
            let reason = LossReason::Silence("the session did not come back within replacement_timeout_s");
            return self.give_up(&reason, now, turn);
        }
        if now < self.recovery.retry_at {
            turn.wake_at = turn.wake_at.min(self.recovery.retry_at);
            return;
        }
        self.step(Input::Due);
        self.recovery.login_deadline = now + nanos(self.config.options.login_timeout_s);
        self.recovery.redirects = 0;
        self.start(driver, now, turn);
    }

    fn look_at_tasks<S: IoSink>(&mut self, now: Nanos, turn: &mut Turn<'_, S>) -> Result<(), LossReason> {
        let options = &self.config.options;
        let (command_ns, ping_ns) = (nanos(options.command_timeout_s), nanos(options.ping_timeout_s));
        let interval_ns = nanos(options.ping_interval_s);
        let links = &self.links;
        let silent_ns = |at: usize| links.get(at).map_or(0, |link| now.saturating_sub(link.last_heard));
        let mut due: Vec<TaskIndex> = Vec::new();
        let mut late: Vec<TaskIndex> = Vec::new();
        for (index, task) in self.tasks.iter() {
            let age = now.saturating_sub(task.first_sent);
            match (task.owner, task.stage) {
                (_, Stage::BackedOff) if now >= task.due => due.push(index),
                (_, Stage::BackedOff) => turn.wake_at = turn.wake_at.min(task.due),
                // Whatever is heard shows that the target lives; its answer may stand behind a long queue.
                (Owner::Ping, Stage::Sent) if age.min(silent_ns(usize::from(task.link))) >= ping_ns => {
                    return Err(LossReason::Silence(
                        "the target did not answer a ping within ping_timeout_s",
                    ));
                }
                (Owner::Abort { .. }, Stage::Sent) if age >= ping_ns => {
                    return Err(LossReason::Silence("a command timed out and its abort was not answered"));
                }
                (Owner::Logout, Stage::Sent) if age >= LOGOUT_NS => {
                    return Err(LossReason::Silence("the logout was not answered"));
                }
                (Owner::Text, Stage::Sent) if age >= command_ns => {
                    return Err(LossReason::Silence("the target did not send its list of targets"));
                }
                (Owner::Io { .. } | Owner::Script { .. } | Owner::Check { .. }, Stage::Sent)
                    if age >= command_ns =>
                {
                    late.push(index);
                }
                _ => {}
            }
        }
        for index in due.into_iter().rev() {
            self.requeue(index);
        }
        for index in late {
            self.tasks[index].stage = Stage::Aborting;
            self.tell(turn, now, EventKind::CommandTimeout);
            let itt = self.tasks.itt(index);
            // Over the connection that the command went over (RFC 7143 section 11.5.1).
            self.enqueue_urgent(usize::from(self.tasks[index].link), Owner::Abort { itt });
        }
        if self.state == State::Draining && (!self.in_flight() || now >= self.recovery.drain_deadline) {
            self.step(Input::Drained);
            self.enqueue_urgent(0, Owner::Logout);
        }
        if interval_ns > 0 && self.state == State::Ready {
            self.ping_the_silent(now, interval_ns);
        }
        Ok(())
    }

    /// Pings over every connection that nothing has come over for a while.
    fn ping_the_silent(&mut self, now: Nanos, interval_ns: Nanos) {
        for at in 0..self.links.len() {
            let link = &mut self.links[at];
            if !link.pinging && now.saturating_sub(link.last_heard) >= interval_ns {
                link.pinging = true;
                self.enqueue_urgent(at, Owner::Ping);
            }
        }
    }
}
