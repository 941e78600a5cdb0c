//! The events of sessions, for the paths that use them.

use super::path::{Connected, Hold, Phase};
use super::state::PathInput;
use super::{Multipath, PathContext};
use crate::event::{EventKind, IoError, IoSink};
use crate::facts::{DeviceFacts, DeviceState, PathState};
use crate::probe::{self, Problem, probe_task};
use crate::probe_command::ProbeCommand;
use crate::session::{LossReason, SessionEvent};
use crate::task::{Answer, Owner};
use linerate_blame::Blame;
use linerate_io::Nanos;
use linerate_scsi_proto::alua::{self, AccessState, PortGroup};

/// Pause between two polls of a port that is changing its state.
const TRANSITION_POLL_NS: Nanos = 100_000_000;

impl Multipath {
    /// The session of the path at `place` has reported an event. [`Self::settle`] follows after all events.
    #[cold]
    pub(crate) fn on_event<S: IoSink>(
        &mut self,
        place: usize,
        event: &SessionEvent,
        cx: &mut PathContext<'_, S>,
    ) {
        match event {
            SessionEvent::LoggedIn => self.on_logged_in(place, cx),
            SessionEvent::Reinstated => self.requeue.reinstated(place),
            SessionEvent::Lost(loss) => self.on_lost(place, PathInput::Lost, loss, cx),
            SessionEvent::Failed(loss) => self.on_lost(place, PathInput::GaveUp, loss, cx),
            SessionEvent::AccessRefused(access) => self.on_access(place, *access, cx),
            SessionEvent::AccessChanged => self.poll(place, true, cx),
            SessionEvent::Probed { answer, reply, .. } => self.on_probed(place, *answer, reply, cx),
            SessionEvent::AccessPolled { answer, reply, .. } => {
                self.on_access_polled(place, *answer, reply, cx);
            }
            SessionEvent::RetryDone { order, .. } => self.on_retry_done(place, *order, cx),
            // `settle` handles it.
            SessionEvent::HandedBack => {}
            SessionEvent::Targets(_) => unreachable!("a discovery session has no paths"),
        }
    }

    /// The session of the path at `place` is in full feature phase.
    pub(crate) fn on_logged_in<S: IoSink>(&mut self, place: usize, cx: &mut PathContext<'_, S>) {
        let phase = Phase::Checking(Box::new(self.device.probe()));
        if self.paths[place].enter(PathInput::LoggedIn, phase) {
            self.send_probe(place, cx);
        }
    }

    /// Sends a probe's next command; false if there is none left.
    fn send_probe<S: IoSink>(&mut self, place: usize, cx: &mut PathContext<'_, S>) -> bool {
        let path = &mut self.paths[place];
        let Phase::Checking(probe) = &mut path.phase else { unreachable!("a path with a probe is Checking") };
        let Some(task) = probe.next(self.device.lun, Owner::Probe { device: self.id.0 }) else {
            return false;
        };
        cx.sessions.enqueue_probe(path.session, &task);
        true
    }

    /// Requests the access states over a path, if a poll is due or `now`.
    pub(super) fn poll<S: IoSink>(&mut self, place: usize, now: bool, cx: &mut PathContext<'_, S>) {
        let (checker_ns, lun) = (self.rules.checker_ns, self.device.lun);
        let path = &mut self.paths[place];
        // A path without a verified session is not polled.
        let Phase::Connected(connected) = &mut path.phase else { return };
        if now {
            connected.poll_at = cx.now;
        }
        if connected.polling || cx.now < connected.poll_at {
            return;
        }
        let moving = connected.access == AccessState::Transitioning;
        let pause_ns = if moving { checker_ns.min(TRANSITION_POLL_NS) } else { checker_ns };
        connected.poll_at = cx.now.saturating_add(pause_ns);
        if connected.group.is_none() {
            // A LUN without a group can only be probed for whether it accepts commands now.
            return self.recheck(place, cx);
        }
        connected.polling = true;
        let task = probe_task(ProbeCommand::PortGroups, lun, Owner::AccessPoll { device: self.id.0 });
        cx.sessions.enqueue_probe(path.session, &task);
    }

    fn on_access_polled<S: IoSink>(
        &mut self,
        place: usize,
        answer: Answer,
        reply: &[u8],
        cx: &mut PathContext<'_, S>,
    ) {
        if let Phase::Connected(connected) = &mut self.paths[place].phase {
            connected.polling = false;
        }
        if answer == Answer::Good {
            self.set_groups(&alua::parse_groups(reply), cx);
        }
    }

    /// A command of a path's probe has ended.
    fn on_probed<S: IoSink>(
        &mut self,
        place: usize,
        answer: Answer,
        reply: &[u8],
        cx: &mut PathContext<'_, S>,
    ) {
        let fails_over = self.rules.fails_over;
        let path = &mut self.paths[place];
        let Phase::Checking(probe) = &mut path.phase else {
            debug_assert!(false, "a lost connection takes the commands of its probe with it");
            return;
        };
        if fails_over
            && let Answer::Failed(IoError::CheckCondition(sense)) = answer
            && let Some(access) = AccessState::from_refusal(sense)
        {
            return self.finish_probe(place, access, cx);
        }
        if fails_over && answer == Answer::Failed(IoError::Timeout) {
            let reason = LossReason::Silence("the LUN did not identify itself in time");
            return cx.sessions.fail(path.session, reason);
        }
        if let Err(problem) = probe.on_answer(answer, reply) {
            return self.refuse(place, problem, cx);
        }
        let access = probe.facts.access();
        if !access.is_active() || !self.send_probe(place, cx) {
            self.finish_probe(place, access, cx);
        }
    }

    /// The LUN behind a path has answered all commands that this access state permits.
    fn finish_probe<S: IoSink>(&mut self, place: usize, access: AccessState, cx: &mut PathContext<'_, S>) {
        let Phase::Checking(probe) = &mut self.paths[place].phase else {
            unreachable!("a path with a probe is Checking")
        };
        let facts = std::mem::take(&mut probe.facts);
        let group = facts.port_group.filter(|_| facts.tpgs != 0);
        let verified = access.is_active();
        if verified && let Err(problem) = self.compare(facts) {
            return self.refuse(place, problem, cx);
        }
        let in_use = self.best();
        let (policy, delay_ns) = (self.rules.policy, self.rules.failback.delay_ns());
        let path = &mut self.paths[place];
        let connected = Connected { access, verified, group, polling: false, poll_at: cx.now };
        path.enter(PathInput::Access(access), Phase::Connected(connected));
        if path.failure.take().is_none() {
            return;
        }
        let priority = path.rating().priority(policy, place);
        if in_use.is_some() && priority.is_some() && priority < in_use && delay_ns != Some(0) {
            path.hold =
                Some(delay_ns.map_or(Hold::UntilAsked, |delay| Hold::Until(cx.now.saturating_add(delay))));
        }
        self.emit_path(place, EventKind::PathRestored { path: place }, cx);
        if access != AccessState::ActiveOptimized {
            self.emit_access(place, cx);
        }
    }

    /// The first facts become those of the device; later ones are compared with them.
    fn compare(&mut self, facts: DeviceFacts) -> Result<(), Problem> {
        if self.device.facts.block_bytes == 0 {
            return self.device.accept(facts);
        }
        let known = &self.device.facts;
        let result = if self.rules.fails_over {
            probe::check_disk(&facts)?;
            probe::one_disk(known, &facts)
        } else {
            probe::same_disk(known, &facts)
        };
        result.map_err(|words| Problem::new(Blame::Peer, words))
    }

    /// Refuses a path that does not lead to the device's disk.
    fn refuse<S: IoSink>(&mut self, place: usize, problem: Problem, cx: &mut PathContext<'_, S>) {
        let path = &mut self.paths[place];
        if self.rules.fails_over {
            let words = format!("path {}: {}", path.name, problem.words);
            return cx.sessions.fail(path.session, LossReason::WrongLun { blame: problem.blame, words });
        }
        // Other devices may use the session, so only this path ends.
        path.enter(PathInput::GaveUp, Phase::Refused);
        let (problem, error) = if self.device.state == DeviceState::Ready {
            let words = format!("after a new login {}", problem.words);
            (Problem::new(Blame::Peer, words), IoError::DeviceChanged)
        } else {
            (problem, self.rules.gone_error())
        };
        let failure = self.device.failure(&problem);
        self.lose(failure, error, cx);
    }

    /// The access states of the target port groups apply to every path.
    fn set_groups<S: IoSink>(&mut self, groups: &[PortGroup], cx: &mut PathContext<'_, S>) {
        let of = |path: &super::Path| {
            // A path that is not connected reads its state when it is probed.
            let Phase::Connected(connected) = &path.phase else { return None };
            groups.iter().find(|group| Some(group.tag) == connected.group).map(|group| group.state)
        };
        let changes: Vec<Option<AccessState>> = self.paths.iter().map(of).collect();
        for (place, access) in changes.into_iter().enumerate() {
            if let Some(access) = access {
                self.on_access(place, access, cx);
            }
        }
    }

    /// The access state of a path's port. The probe reads the state of a path that is being checked.
    fn on_access<S: IoSink>(&mut self, place: usize, access: AccessState, cx: &mut PathContext<'_, S>) {
        let path = &mut self.paths[place];
        // The same: its probe reads the state.
        let Phase::Connected(connected) = &mut path.phase else { return };
        if access.is_active() && !connected.verified {
            return self.recheck(place, cx);
        }
        if access != connected.access {
            tracing::debug!(path = path.name, from = ?connected.access, to = ?access);
            connected.access = access;
            connected.poll_at = cx.now + TRANSITION_POLL_NS;
            self.emit_access(place, cx);
        }
    }

    /// Probes a LUN again before I/O goes to it.
    fn recheck<S: IoSink>(&mut self, place: usize, cx: &mut PathContext<'_, S>) {
        let phase = Phase::Checking(Box::new(self.device.probe()));
        if self.paths[place].enter(PathInput::Recheck, phase) {
            self.send_probe(place, cx);
        }
    }

    fn emit_access<S: IoSink>(&self, place: usize, cx: &mut PathContext<'_, S>) {
        let state: PathState = self.paths[place].state();
        self.emit_path(place, EventKind::PathStateChanged { path: place, state }, cx);
    }
}
