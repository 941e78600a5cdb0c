//! Loss and return of a connection, timeouts, pings.
//!
//! A session that loses its connection keeps no commands: it returns its I/Os, and `paths/requeue.rs` decides what is
//! sent again, where and when. The session only tries to log in again, under its old ISID with TSIH 0. So the target
//! ends the old session and all its tasks first (RFC 7143 6.3.5).
//!
//! # Commands that are sent again on the same session
//!
//! BUSY, TASK SET FULL and unit attentions need another attempt on the working connection:
//!
//! 1. *Retries go first.* They are put at the head of the queue.
//! 2. *Nothing overtakes a retry.* A command whose blocks overlap those of an unfinished retry, where one of the two
//!    writes, waits until the retry has ended. The queue is first in, first out, so later commands wait too.

use super::Session;
use super::connection::Current;
use super::events::{Context, Loss, ReturnedFrom, SessionEvent};
use super::loss::LossReason;
use super::retry::Via;
use super::state::{Input, State};
use super::tasks::{Stage, TaskIndex};
use crate::event::{EventKind, Failure, IoError, IoSink};
use crate::options::address::PortalAddress;
use crate::options::{SECOND, nanos};
use crate::task::Owner;
use linerate_io::{Driver, Nanos};
use linerate_scsi_proto::alua::AccessState;
use std::net::IpAddr;

/// First pause between two login attempts; it doubles up to `RetryRules::pause_max_ns`.
const PAUSE_NS_MIN: Nanos = 100_000_000;
/// How long a logout may take.
const LOGOUT_NS: Nanos = 5 * SECOND;

impl Session {
    /// The portal of this session: the requested one, unless the target moved permanently.
    pub(crate) fn portal(&self) -> PortalAddress {
        self.recovery.moved.clone().unwrap_or_else(|| self.config.portal.clone())
    }

    /// The local address that this attempt starts from.
    pub(super) fn source(&self) -> Option<IpAddr> {
        self.recovery.via.as_ref().map_or(self.config.options.source_address, |via| via.source)
    }

    /// Connects for the current attempt.
    pub(super) fn attempt<D: Driver>(&mut self, driver: &mut D) -> Result<(), LossReason> {
        let portal = self.recovery.via.as_ref().map_or_else(|| self.portal(), |via| via.portal.clone());
        let source = self.source();
        self.connect(driver, &portal, source)
    }

    /// Starts an attempt.
    pub(crate) fn start<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) {
        self.recovery.via = self.recovery.next_via.take();
        if let Err(reason) = self.attempt(driver) {
            self.lose(driver, &reason, now, cx);
        }
    }

    /// Full feature phase has begun.
    pub(super) fn restored<S: IoSink>(&mut self, now: Nanos, cx: &mut Context<'_, S>) {
        self.recovery.logins += 1;
        self.recovery.attempt = 0;
        self.recovery.redirects = 0;
        self.recovery.lost_since = None;
        let leading = &mut self.connections[0];
        leading.last_heard = now;
        self.recovery.wait_s = leading.params.default_time2wait_s;
        if let Some(facts) = &mut self.facts {
            facts.logins = self.recovery.logins;
        }
        cx.events.push((self.id, SessionEvent::LoggedIn));
        let retried_commands = std::mem::take(&mut self.recovery.lost_commands);
        if self.recovery.logins > 1 && !self.config.retry.fails_over {
            self.emit(cx, now, EventKind::SessionRestored { retried_commands });
        }
        if self.config.is_discovery() {
            self.enqueue_urgent(0, Owner::Text);
        }
    }

    /// Ends the connection, returns the I/O, and tries again if that can help.
    #[cold]
    pub(crate) fn lose<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        reason: &LossReason,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) {
        let doubt = self.connections.first().filter(|leading| leading.is_connected() && !leading.is_target);
        let doubt = doubt.map(|leading| leading.peer.to_string());
        let limit_s = self.config.options.login_timeout_s;
        let reason =
            &doubt.and_then(|peer| reason.without_login(peer, limit_s)).unwrap_or_else(|| reason.clone());
        self.hang_up(driver);
        let next_attempt = match reason {
            LossReason::Redirected { to, permanent } => Some(self.follow(driver, to, *permanent, now, cx)),
            LossReason::Sha256Refused => Some(self.log_in_by_md5(driver)),
            _ => None,
        };
        match next_attempt {
            Some(Ok(())) => return,
            Some(Err(reason)) => return self.lose(driver, &reason, now, cx),
            None => {}
        }
        if self.recovery.closing {
            self.state = State::Closed;
            return self.fail_all(IoError::Closed, cx);
        }
        let loss = self.hand_back_all(reason, cx);
        let rules = self.config.retry;
        let first_login_failed = self.recovery.logins == 0 && !rules.fails_over;
        let hopeless = reason.is_final() || first_login_failed || self.config.is_discovery();
        if hopeless || !self.step(Input::Lost) {
            return self.give_up(loss, now, cx);
        }
        if self.recovery.lost_since.is_none() {
            self.recovery.lost_since = Some(now);
            if !rules.fails_over {
                self.emit(cx, now, EventKind::SessionLost(reason.to_string()));
            }
        }
        let event = match reason {
            LossReason::Reinstated => SessionEvent::Reinstated,
            _ => SessionEvent::Lost(loss),
        };
        cx.events.push((self.id, event));
        self.pause(now, cx);
    }

    /// Sets the time of the next attempt.
    fn pause<S: IoSink>(&mut self, now: Nanos, cx: &mut Context<'_, S>) {
        if self.recovery.attempt == 0 {
            // DefaultTime2Wait holds for a login that ends the old session too (RFC 7143 13.15).
            self.recovery.not_before = now + Nanos::from(self.recovery.wait_s) * SECOND;
        }
        let pause = (PAUSE_NS_MIN << self.recovery.attempt.min(10)).min(self.config.retry.pause_max_ns);
        // Sessions that were lost together must not log in at the same instant.
        let spread = u64::from(self.id.0 % 16) * PAUSE_NS_MIN / 16;
        self.recovery.retry_at = (now + pause).max(self.recovery.not_before) + spread;
        self.recovery.attempt += 1;
        cx.wake_at = cx.wake_at.min(self.recovery.retry_at);
    }

    /// Returns every I/O, and clears the state of the connection.
    fn hand_back_all<S: IoSink>(&mut self, reason: &LossReason, cx: &mut Context<'_, S>) -> Loss {
        self.queue.clear();
        self.probes.clear();
        self.text = None;
        self.text_next = None;
        let mut in_flight = 0;
        let all: Vec<TaskIndex> = self.tasks.iter().map(|(index, _)| index).collect();
        for index in all {
            let task = &self.tasks[index];
            if !matches!(task.owner, Owner::Io { .. }) {
                self.tasks.remove(index);
                continue;
            }
            let progress = match task.stage {
                Stage::Sent => ReturnedFrom::Flight,
                Stage::Aborting => ReturnedFrom::Abort,
                Stage::Queued | Stage::BackedOff | Stage::Free => ReturnedFrom::Queue,
            };
            in_flight += u32::from(progress != ReturnedFrom::Queue);
            self.recovery.lost_commands += u32::from(progress == ReturnedFrom::Flight);
            self.hand_back(index, progress, cx);
        }
        Loss { failure: self.failure_of(reason), in_flight }
    }

    fn failure_of(&self, reason: &LossReason) -> Failure {
        reason.failure(&self.config.portal, self.config.target_name())
    }

    /// Makes the next attempt as soon as the target permits it, through another path's portal, to end the old session.
    /// False while an attempt is in progress.
    pub(crate) fn reinstate_via(&mut self, via: Via, now: Nanos) -> bool {
        if self.state != State::Waiting {
            return false;
        }
        self.recovery.next_via = Some(via);
        self.recovery.retry_at = now.max(self.recovery.not_before);
        true
    }

    /// The link of this path's interface went down, or is back.
    pub(crate) fn link_changed<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        interface: &str,
        up: bool,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) {
        match (up, self.state) {
            (true, State::Waiting) => {
                self.recovery.retry_at = now.max(self.recovery.not_before);
                cx.wake_at = now;
            }
            // The first packets of this attempt were lost with the link; TCP would repeat them too late.
            (true, State::Connecting | State::LoggingIn) if self.recovery.via.is_none() => {
                self.lose(driver, &LossReason::LinkUp(interface.to_owned()), now, cx);
                self.recovery.retry_at = now.max(self.recovery.not_before);
                cx.wake_at = now;
            }
            (false, State::Ready | State::Draining) => {
                self.lose(driver, &LossReason::LinkDown(interface.to_owned()), now, cx);
            }
            _ => {}
        }
    }

    /// Ends the connection for this reason at the next tick.
    pub(crate) fn fail(&mut self, reason: LossReason) {
        self.recovery.failing = Some(reason);
    }

    /// Ends the session for good.
    #[cold]
    fn give_up<S: IoSink>(&mut self, loss: Loss, now: Nanos, cx: &mut Context<'_, S>) {
        self.step(Input::GaveUp);
        if !self.config.retry.fails_over {
            self.emit(cx, now, EventKind::SessionFailed(loss.failure.clone()));
        }
        cx.events.push((self.id, SessionEvent::Failed(loss)));
    }

    fn fail_all<S: IoSink>(&mut self, error: IoError, cx: &mut Context<'_, S>) {
        self.queue.clear();
        self.probes.clear();
        for connection in &mut self.connections {
            connection.urgent.clear();
            // The rest of a read's data may still arrive: it has no owner any more.
            connection.current = Current::Nothing;
        }
        let all: Vec<TaskIndex> = self.tasks.iter().map(|(index, _)| index).collect();
        for index in all {
            self.finish_failed(index, error, cx);
        }
    }

    /// The target requests a logout within `limit_s` seconds.
    pub(super) fn logout_asked<S: IoSink>(&mut self, now: Nanos, limit_s: u16, cx: &mut Context<'_, S>) {
        if !self.step(Input::LogoutAsked) {
            return;
        }
        // Half of the time is for I/O in flight, the rest for the logout itself.
        self.recovery.drain_deadline = now + Nanos::from(limit_s) * SECOND / 2;
        if self.config.retry.fails_over {
            // Other paths need not wait for that.
            for index in std::mem::take(&mut self.queue) {
                self.hand_back(index, ReturnedFrom::Queue, cx);
            }
            cx.events.push((self.id, SessionEvent::AccessRefused(AccessState::Transitioning)));
        }
    }

    /// Logs the session out, and fails its I/Os.
    pub(crate) fn close<D: Driver, S: IoSink>(&mut self, driver: &mut D, cx: &mut Context<'_, S>) {
        if !self.step(Input::CloseAsked) {
            self.recovery.closing = true;
            return;
        }
        self.recovery.closing = true;
        self.fail_all(IoError::Closed, cx);
        if self.state == State::LoggingOut {
            self.enqueue_urgent(0, Owner::Logout);
        } else {
            self.hang_up(driver);
        }
    }

    /// Does the work that is due. Called every few tens of milliseconds.
    pub(crate) fn on_time<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) {
        for connection in &mut self.connections {
            if std::mem::take(&mut connection.heard) {
                connection.last_heard = now;
            }
        }
        if let Some(reason) = self.recovery.failing.take() {
            return self.lose(driver, &reason, now, cx);
        }
        let late = now >= self.recovery.login_deadline && !self.continue_without_missing(driver, now, cx);
        let verdict = match self.state {
            State::Connecting | State::LoggingIn if late => {
                Err(LossReason::NoLogin(self.config.limits.login))
            }
            State::Waiting => return self.retry_when_due(driver, now, cx),
            State::Ready | State::Draining | State::LoggingOut => self.check_tasks(now, cx),
            _ => Ok(()),
        };
        if let Err(reason) = verdict {
            self.lose(driver, &reason, now, cx);
        }
    }

    fn retry_when_due<D: Driver, S: IoSink>(&mut self, driver: &mut D, now: Nanos, cx: &mut Context<'_, S>) {
        let since = self.recovery.lost_since.unwrap_or(now);
        if self.config.retry.give_up_ns.is_some_and(|limit_ns| now >= since + limit_ns) {
            let failure = self.failure_of(&LossReason::NotRestored);
            return self.give_up(Loss { failure, in_flight: 0 }, now, cx);
        }
        if now < self.recovery.retry_at {
            cx.wake_at = cx.wake_at.min(self.recovery.retry_at);
            return;
        }
        self.step(Input::Due);
        self.recovery.login_deadline = now + nanos(self.config.options.login_timeout_s);
        self.recovery.redirects = 0;
        self.start(driver, now, cx);
    }

    fn check_tasks<S: IoSink>(&mut self, now: Nanos, cx: &mut Context<'_, S>) -> Result<(), LossReason> {
        let options = &self.config.options;
        let (command_ns, ping_ns) = (nanos(options.command_timeout_s), nanos(options.ping_timeout_s));
        let interval_ns = nanos(options.ping_interval_s);
        let connections = &self.connections;
        let silent_ns = |at: usize| now.saturating_sub(connections[at].last_heard);
        let mut due: Vec<TaskIndex> = Vec::new();
        let mut late: Vec<TaskIndex> = Vec::new();
        for (index, task) in self.tasks.iter() {
            let age = now.saturating_sub(task.first_sent);
            match (task.owner, task.stage) {
                (_, Stage::BackedOff) if now >= task.due => due.push(index),
                (_, Stage::BackedOff) => cx.wake_at = cx.wake_at.min(task.due),
                // Any byte shows that the target works; its answer may be behind a long queue.
                (Owner::Ping, Stage::Sent) if age.min(silent_ns(usize::from(task.connection))) >= ping_ns => {
                    return Err(LossReason::NoPing(self.config.limits.ping));
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
                (Owner::Io { .. } | Owner::Probe { .. } | Owner::AccessPoll { .. }, Stage::Sent)
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
            self.emit(cx, now, EventKind::CommandTimeout);
            let itt = self.tasks.itt(index);
            // Over the connection that carried the command (RFC 7143 section 11.5.1).
            self.enqueue_urgent(usize::from(self.tasks[index].connection), Owner::Abort { itt });
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

    /// Pings over every connection that has been silent for a while.
    fn ping_the_silent(&mut self, now: Nanos, interval_ns: Nanos) {
        for at in 0..self.connections.len() {
            let connection = &mut self.connections[at];
            if !connection.pinging && now.saturating_sub(connection.last_heard) >= interval_ns {
                connection.pinging = true;
                self.enqueue_urgent(at, Owner::Ping);
            }
        }
    }
}
