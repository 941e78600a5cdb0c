//! Loss of a path: its I/O is sent over other paths, its old session is ended from there, and a device without paths
//! fails.

use super::path::{Phase, Reinstatement};
use super::state::PathInput;
use super::{Multipath, Path, PathContext};
use crate::event::{EventKind, Failure, IoError, IoSink};
use crate::facts::{DeviceState, PathState, SessionId};
use crate::probe::Problem;
use crate::session::{Loss, LossReason, Via};
use crate::sessions::Sessions;

impl Multipath {
    /// A path's connection is lost.
    pub(super) fn on_lost<S: IoSink>(
        &mut self,
        place: usize,
        input: PathInput,
        loss: &Loss,
        cx: &mut PathContext<'_, S>,
    ) {
        let path = &mut self.paths[place];
        match (&mut path.phase, input) {
            (Phase::Failed(reinstatement), PathInput::Lost) => *reinstatement = reinstatement.after_failure(),
            (_, PathInput::Lost) => {
                path.enter(input, Phase::Failed(Reinstatement::Possible));
            }
            _ => {
                path.enter(input, Phase::Refused);
            }
        }
        path.hold = None;
        path.failover_since = path.failover_since.or((loss.in_flight > 0).then_some(cx.now));
        let announced = path.failure.replace(loss.failure.clone()).is_some();
        cx.sessions[path.session].meter.counters.requeued += u64::from(loss.in_flight);
        let given_up = matches!(self.device.state, DeviceState::Failed(_));
        if !given_up && (!announced || input == PathInput::GaveUp) {
            let (reason, requeued) = (loss.failure.message.clone(), loss.in_flight);
            self.emit_path(place, EventKind::PathFailed { path: place, reason, requeued }, cx);
        }
    }

    /// An I/O that was lost in flight has completed on the path `to`.
    pub(super) fn on_retry_done<S: IoSink>(&mut self, to: usize, order: u64, cx: &mut PathContext<'_, S>) {
        for path in self.requeue.retry_ended(order) {
            if let Some(since) = self.paths[path].failover_since.take() {
                let after_ns = cx.now.saturating_sub(since);
                self.emit_path(path, EventKind::FailoverDone { path, to, after_ns }, cx);
            }
        }
    }

    /// Handles changes of the paths: which ones are usable, what is sent now, and the events for the caller. All events
    /// are handled before this: I/O must not fail over to a path that was lost in the same batch.
    pub(crate) fn settle<S: IoSink>(&mut self, cx: &mut PathContext<'_, S>) {
        self.refresh();
        match (self.usable.is_empty(), self.no_path_since) {
            (false, Some(_)) => {
                self.no_path_since = None;
                if self.rules.fails_over {
                    let waiting = self.requeue.waiting() as u32;
                    self.emit_device(EventKind::PathsBack { waiting }, cx);
                }
            }
            (true, None) if self.device.state == DeviceState::Ready => {
                self.no_path_since = Some(cx.now);
                if self.rules.fails_over {
                    self.emit_device(EventKind::NoPath, cx);
                }
            }
            _ => {}
        }
        self.reinstate_lost_sessions(cx);
        if !self.usable.is_empty() {
            self.send_waiting(cx.sessions);
        }
        self.judge(cx);
    }

    /// Ends the lost sessions of paths by logins over other paths, if the target may still run their commands.
    fn reinstate_lost_sessions<S: IoSink>(&mut self, cx: &mut PathContext<'_, S>) {
        for place in 0..self.paths.len() {
            if matches!(self.paths[place].phase, Phase::Failed(Reinstatement::Possible))
                && self.requeue.may_run_on(place)
                && let Some(other) = self.path_to_reinstate(place, cx.sessions)
            {
                self.reinstate_via(place, other, cx);
            }
        }
    }

    /// Another path through whose portal a login can end the lost session of the path at `place`.
    fn path_to_reinstate(&self, place: usize, sessions: &Sessions) -> Option<SessionId> {
        let group = |path: &Path| sessions[path.session].facts.as_ref()?.portal_group;
        let wanted = group(&self.paths[place])?;
        let fits = |path: &&Path| path.state().is_connected() && group(path) == Some(wanted);
        self.paths.iter().find(fits).map(|path| path.session)
    }

    fn reinstate_via<S: IoSink>(&mut self, place: usize, other: SessionId, cx: &mut PathContext<'_, S>) {
        let other = &cx.sessions[other];
        // The other session was lost in the same turn: there is no other portal.
        let Some(peer) = other.facts.as_ref().map(|facts| facts.peer_addr) else { return };
        let via = Via { portal: peer.into(), source: other.config.options.source_address };
        let path = &mut self.paths[place];
        if cx.sessions[path.session].reinstate_via(via, cx.now) {
            path.phase = Phase::Failed(Reinstatement::UnderWay);
            cx.sessions.wake_before(cx.now);
        }
    }

    /// Decides whether a device is open, or lost for good.
    fn judge<S: IoSink>(&mut self, cx: &mut PathContext<'_, S>) {
        let all = |test: fn(PathState) -> bool| self.paths.iter().all(|path| test(path.state()));
        let gone = all(|state| state == PathState::Refused);
        match self.device.state {
            DeviceState::Ready if gone => self.lose_last_path(cx),
            DeviceState::Opening => {
                let tried = all(|state| !matches!(state, PathState::Connecting | PathState::Checking));
                let failed = all(|state| matches!(state, PathState::Failed | PathState::Refused));
                let late = self.rules.open_until.is_some_and(|until| failed || cx.now >= until);
                if tried && !self.usable.is_empty() {
                    self.device.state = DeviceState::Ready;
                    self.emit_device(EventKind::DeviceReady, cx);
                } else if gone || (tried && late) {
                    self.lose_last_path(cx);
                }
            }
            DeviceState::Ready | DeviceState::Failed(_) => {}
        }
    }

    fn lose_last_path<S: IoSink>(&mut self, cx: &mut PathContext<'_, S>) {
        let failure = self
            .paths
            .iter()
            .find_map(|path| path.failure.clone())
            .unwrap_or_else(|| self.device.failure(&Problem::of_access(self.inactive_words())));
        self.lose(failure, self.rules.gone_error(), cx);
    }

    /// Which access states the array reports for the paths, none of which is active.
    fn inactive_words(&self) -> String {
        let words = |path: &Path| format!("{} ({})", path.name, path.state().word());
        match &self.paths[..] {
            [only] => format!("its only path is not active (ALUA): {}", words(only)),
            all => {
                let each: Vec<String> = all.iter().map(words).collect();
                format!("none of its paths is active (ALUA): {}", each.join(", "))
            }
        }
    }

    /// Fails the device.
    pub(super) fn lose<S: IoSink>(&mut self, failure: Failure, error: IoError, cx: &mut PathContext<'_, S>) {
        self.fail_waiting(error, cx.sink);
        if self.rules.fails_over {
            for path in &self.paths {
                let words = "the device has been given up".to_owned();
                cx.sessions.fail(path.session, LossReason::WrongLun { blame: failure.blame, words });
            }
        }
        self.fail_device(failure, cx);
    }

    /// The device accepts no I/O any more.
    pub(crate) fn fail_device<S: IoSink>(&mut self, failure: Failure, cx: &mut PathContext<'_, S>) {
        self.device.state = DeviceState::Failed(failure.clone());
        self.emit_device(EventKind::DeviceFailed(failure), cx);
    }
}

impl Reinstatement {
    /// What the next attempt may do after a failed one.
    fn after_failure(self) -> Self {
        match self {
            Reinstatement::UnderWay => Reinstatement::NotNow,
            Reinstatement::Possible | Reinstatement::NotNow => Reinstatement::Possible,
        }
    }
}
