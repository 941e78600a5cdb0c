//! What the sessions of paths report, and what follows from it.

use super::access::{port_groups, refusal};
use super::state::PathInput;
use super::{Multipath, Path};
use crate::alua::Access;
use crate::commands::Question;
use crate::device::Route;
use crate::event::{Blame, Event, EventKind, Failure, IoDone, IoError, IoSink};
use crate::facts::{DeviceFacts, DeviceId, DeviceState, PathState};
use crate::initiator::Initiator;
use crate::interview::{self, Interview, Problem, question_task};
use crate::session::{Answer, Detour, LossReason, Notice, Returned};
use crate::task::Owner;
use linerate_io::Nanos;

/// Pause between two looks at a port that is changing its state.
const TRANSITION_POLL_NS: Nanos = 100_000_000;

impl Initiator {
    /// Takes in the I/Os that sessions of paths have handed back.
    pub(crate) fn take_returned(&mut self, now: Nanos) {
        for Returned { session, mut task, in_flight } in self.returned.drain(..) {
            let Some((device, place)) = self.sessions[session.index()].path_of else { continue };
            let Route::Many(all) = &mut self.devices[device.index()].route else { continue };
            if in_flight {
                let place = usize::from(place);
                task.losses = task.losses.saturating_add(1);
                all.paths[place].displaced += 1;
                let dead_at = now + all.times.old_try_ns;
                all.displaced.displace(place, task, dead_at);
            } else {
                all.displaced.wait(task);
            }
            all.disturbed = true;
        }
    }

    /// News from the session of a path.
    #[cold]
    pub(crate) fn hear_path(
        &mut self,
        device: DeviceId,
        place: usize,
        notice: Notice,
        now: Nanos,
        sink: &mut impl IoSink,
    ) {
        match notice {
            Notice::Ready => self.path_logged_in(device, place),
            Notice::Fenced => {
                if let Some(all) = self.multipath_mut(device) {
                    all.displaced.fenced(place);
                }
            }
            Notice::Lost(failure) => self.path_lost(device, place, PathInput::Lost, failure, now, sink),
            Notice::Failed(failure) => {
                self.path_lost(device, place, PathInput::GaveUp, failure, now, sink);
            }
            Notice::Refused(access) => self.set_access(device, place, access, now, sink),
            Notice::AccessChanged => {
                if let Some(all) = self.multipath_mut(device) {
                    all.paths[place].poll_at = now;
                }
                self.poll_path(device, place, now);
            }
            Notice::Answered { answer, reply, .. } => {
                self.path_answered(device, place, answer, &reply, now, sink);
            }
            Notice::DisplacedDone { order } => self.displaced_done(device, place, order, now, sink),
            // `HandedBack` only asks for what follows below; the others are not for sessions of paths.
            Notice::HandedBack | Notice::Restored | Notice::Targets(_) => {}
        }
    }

    fn path_logged_in(&mut self, device: DeviceId, place: usize) {
        let lun = self.devices[device.index()].address.lun;
        let Some(all) = self.multipath_mut(device) else { return };
        let path = &mut all.paths[place];
        path.detoured = false;
        if path.step(PathInput::LoggedIn) {
            path.interview = Some(Interview::new(Question::PATH, lun));
            self.ask_path(device, place);
        }
    }

    /// Sends a path's next question; false if there is none left.
    fn ask_path(&mut self, device: DeviceId, place: usize) -> bool {
        let lun = self.devices[device.index()].lun;
        let Some(all) = self.multipath_mut(device) else { return false };
        let path = &mut all.paths[place];
        let (owner, id) = (Owner::Check { device: device.0 }, path.session);
        let Some(task) = path.interview.as_mut().and_then(|interview| interview.ask(lun, owner)) else {
            return false;
        };
        self.sessions[id.index()].enqueue_question(&task);
        self.mark(id);
        true
    }

    /// Asks for the access states over a path, if it is time for that.
    pub(super) fn poll_path(&mut self, device: DeviceId, place: usize, now: Nanos) {
        let lun = self.devices[device.index()].lun;
        let Some(all) = self.multipath_mut(device) else { return };
        let checker_ns = all.times.checker_ns;
        let path = &mut all.paths[place];
        if !path.state.is_connected() || path.polling || now < path.poll_at {
            return;
        }
        let moving = path.state == PathState::Transitioning;
        path.poll_at = now + if moving { checker_ns.min(TRANSITION_POLL_NS) } else { checker_ns };
        if path.group.is_none() {
            // A LUN that names no group can only be asked whether it takes commands now.
            return self.recheck(device, place);
        }
        path.polling = true;
        let id = path.session;
        let task = question_task(Question::PortGroups, lun, Owner::Check { device: device.0 });
        self.sessions[id.index()].enqueue_question(&task);
        self.mark(id);
    }

    fn path_answered(
        &mut self,
        device: DeviceId,
        place: usize,
        answer: Answer,
        reply: &[u8],
        now: Nanos,
        sink: &mut impl IoSink,
    ) {
        let Some(all) = self.multipath_mut(device) else { return };
        let path = &mut all.paths[place];
        if std::mem::take(&mut path.polling) {
            return match answer {
                Answer::Good => self.set_groups(device, &port_groups(reply), now, sink),
                Answer::Failed(_) => {}
            };
        }
        let Some(interview) = &mut path.interview else { return };
        if let Answer::Failed(IoError::CheckCondition(sense)) = answer
            && let Some(access) = refusal(sense)
        {
            return self.path_checked(device, place, access, now, sink);
        }
        if let Answer::Failed(IoError::Timeout) = answer {
            let (id, reason) = (path.session, LossReason::Silence("the LUN did not say in time who it is"));
            return self.sessions[id.index()].condemn(reason);
        }
        if let Err(problem) = interview.hear(answer, reply) {
            return self.refuse_path(device, place, &problem);
        }
        let access = interview.facts.access();
        let active = matches!(access, Access::Optimized | Access::NonOptimized);
        if !active || !self.ask_path(device, place) {
            self.path_checked(device, place, access, now, sink);
        }
    }

    /// The LUN behind a path has said all it can in this access state.
    fn path_checked(
        &mut self,
        device: DeviceId,
        place: usize,
        access: Access,
        now: Nanos,
        sink: &mut impl IoSink,
    ) {
        let Some(all) = self.multipath_mut(device) else { return };
        let path = &mut all.paths[place];
        let Some(Interview { facts, .. }) = path.interview.take() else { return };
        (path.group, path.tried) = (facts.port_group.filter(|_| facts.tpgs != 0), true);
        path.poll_at = now;
        if matches!(access, Access::Optimized | Access::NonOptimized) {
            path.checked = true;
            if let Err(problem) = self.compare(device, facts) {
                return self.refuse_path(device, place, &problem);
            }
        }
        let Some(all) = self.multipath_mut(device) else { return };
        let in_use = all.best();
        let (policy, delay_ns) = (all.policy, all.failback.delay_ns());
        let path = &mut all.paths[place];
        path.step(PathInput::Access(access));
        path.failure = None;
        if !std::mem::take(&mut path.lost) {
            return;
        }
        let rank = path.standing().rank(policy, place);
        if in_use.is_some() && rank.is_some() && rank < in_use && delay_ns != Some(0) {
            path.held = true;
            path.held_until = delay_ns.map(|delay| now.saturating_add(delay));
        }
        self.tell_path(device, place, now, EventKind::PathRestored { path: place }, sink);
        if !matches!(access, Access::Optimized) {
            let state = self.path_state(device, place);
            self.tell_path(device, place, now, EventKind::PathStateChanged { path: place, state }, sink);
        }
    }

    /// Takes a path's answers for the device's, or holds them against those.
    fn compare(&mut self, device: DeviceId, facts: DeviceFacts) -> Result<(), Problem> {
        let device = &mut self.devices[device.index()];
        interview::check_disk(&facts)?;
        if device.facts.block_bytes == 0 {
            return device.accept(facts).map_err(|failure| Problem::new(failure.blame, failure.message));
        }
        interview::one_disk(&device.facts, &facts).map_err(|words| Problem::new(Blame::Peer, words))
    }

    /// Gives a path up that does not lead to the device's disk.
    fn refuse_path(&mut self, device: DeviceId, place: usize, problem: &Problem) {
        let Some(all) = self.multipath_mut(device) else { return };
        let path = &mut all.paths[place];
        path.checked = false;
        let (id, words) = (path.session, format!("path {}: {}", path.name, problem.words));
        self.sessions[id.index()].condemn(LossReason::WrongLun { blame: problem.blame, words });
        self.wake_at = 0;
    }

    /// A path's connection is gone.
    fn path_lost(
        &mut self,
        device: DeviceId,
        place: usize,
        input: PathInput,
        failure: Failure,
        now: Nanos,
        sink: &mut impl IoSink,
    ) {
        let Some(all) = self.multipath_mut(device) else { return };
        let path = &mut all.paths[place];
        path.step(input);
        path.release();
        (path.interview, path.polling, path.checked, path.tried) = (None, false, false, true);
        let displaced = std::mem::take(&mut path.displaced);
        // Detours take turns with attempts over the path's own portal: one of the two may answer.
        path.may_detour = !std::mem::take(&mut path.detoured);
        path.failing_over = path.failing_over.or((displaced > 0).then_some(now));
        path.failure = Some(failure.clone());
        let (announced, id) = (std::mem::replace(&mut path.lost, true), path.session);
        self.sessions[id.index()].meter.counters.displaced += u64::from(displaced);
        let given_up = matches!(self.devices[device.index()].state, DeviceState::Failed(_));
        if !given_up && (!announced || input == PathInput::GaveUp) {
            let kind = EventKind::PathFailed { path: place, reason: failure.message, displaced };
            self.tell_path(device, place, now, kind, sink);
        }
    }

    /// Ends the sessions that paths have lost by logins over other paths, where anything is left in them.
    fn fence_paths(&mut self, device: DeviceId, now: Nanos) {
        let Route::Many(all) = &self.devices[device.index()].route else { return };
        let wanting = |place: &usize| {
            let path = &all.paths[*place];
            path.state == PathState::Failed && path.may_detour && all.displaced.needs_fence(*place)
        };
        for place in (0..all.paths.len()).filter(wanting).collect::<Vec<_>>() {
            self.fence(device, place, now);
        }
    }

    fn fence(&mut self, device: DeviceId, place: usize, now: Nanos) {
        let Route::Many(all) = &mut self.devices[device.index()].route else { return };
        let Some(other) = all.fencing_path(place, &self.sessions) else { return };
        let other = &self.sessions[other.index()];
        let Some(peer) = other.facts.as_ref().map(|facts| facts.peer_addr) else { return };
        let detour = Detour { portal: peer.into(), source: other.config.options.source_address };
        let id = all.paths[place].session;
        if self.sessions[id.index()].fence_over(detour, now) {
            (all.paths[place].may_detour, all.paths[place].detoured) = (false, true);
            self.wake_at = self.wake_at.min(now);
        }
    }

    fn displaced_done(
        &mut self,
        device: DeviceId,
        to: usize,
        order: u64,
        now: Nanos,
        sink: &mut impl IoSink,
    ) {
        let Some(all) = self.multipath_mut(device) else { return };
        for path in all.displaced.ended(order) {
            let Some(all) = self.multipath_mut(device) else { return };
            if let Some(since) = all.paths[path].failing_over.take() {
                let after_ns = now.saturating_sub(since);
                self.tell_path(device, path, now, EventKind::FailoverDone { path, to, after_ns }, sink);
            }
        }
    }

    /// The array's word on its groups of ports concerns every path.
    fn set_groups(&mut self, device: DeviceId, groups: &[(u16, Access)], now: Nanos, sink: &mut impl IoSink) {
        let Some(all) = self.multipath(device) else { return };
        let of = |path: &Path| {
            let group = groups.iter().find(|(group, _)| Some(*group) == path.group)?;
            path.state.is_connected().then_some(group.1)
        };
        let changes: Vec<Option<Access>> = all.paths.iter().map(of).collect();
        for (place, access) in changes.into_iter().enumerate() {
            if let Some(access) = access {
                self.set_access(device, place, access, now, sink);
            }
        }
    }

    fn set_access(
        &mut self,
        device: DeviceId,
        place: usize,
        access: Access,
        now: Nanos,
        sink: &mut impl IoSink,
    ) {
        let Some(all) = self.multipath_mut(device) else { return };
        let path = &mut all.paths[place];
        let active = matches!(access, Access::Optimized | Access::NonOptimized);
        if active && !path.checked {
            return self.recheck(device, place);
        }
        if path.step(PathInput::Access(access)) {
            path.poll_at = now + TRANSITION_POLL_NS;
            let state = path.state;
            self.tell_path(device, place, now, EventKind::PathStateChanged { path: place, state }, sink);
        }
    }

    /// Asks a LUN again who it is, before I/O goes to it.
    fn recheck(&mut self, device: DeviceId, place: usize) {
        let lun = self.devices[device.index()].address.lun;
        let Some(all) = self.multipath_mut(device) else { return };
        let path = &mut all.paths[place];
        if path.step(PathInput::Recheck) {
            path.interview = Some(Interview::new(Question::PATH, lun));
            self.ask_path(device, place);
        }
    }

    /// What follows from a change of any path: which are usable, what is sent now, what the caller must know.
    pub(crate) fn settle_paths(&mut self, device: DeviceId, now: Nanos, sink: &mut impl IoSink) {
        let Some(all) = self.multipath_mut(device) else { return };
        all.refresh();
        let usable = !all.usable.is_empty();
        match (usable, all.no_path_since) {
            (true, Some(_)) => {
                all.no_path_since = None;
                let waiting = all.displaced.waiting() as u32;
                tell_device(device, now, EventKind::PathsBack { waiting }, sink);
            }
            (false, None) if self.devices[device.index()].state == DeviceState::Ready => {
                if let Some(all) = self.multipath_mut(device) {
                    all.no_path_since = Some(now);
                }
                tell_device(device, now, EventKind::NoPath, sink);
            }
            _ => {}
        }
        self.fence_paths(device, now);
        if usable {
            self.send_waiting(device);
        }
        self.judge_device(device, now, sink);
    }

    /// Sends what waited and need not any more.
    fn send_waiting(&mut self, device: DeviceId) {
        let Route::Many(all) = &mut self.devices[device.index()].route else { return };
        let mut from = 0;
        let mut touched = Vec::new();
        while let Some(task) = all.displaced.next(from) {
            from = task.order + 1;
            let id = all.select(&self.sessions, task.len_bytes);
            if self.sessions[id.index()].enqueue(&task).is_none() {
                all.displaced.wait(task);
                break;
            }
            touched.push(id);
        }
        all.disturbed = !all.displaced.is_empty();
        for id in touched {
            self.mark(id);
        }
    }

    /// Decides whether a device is open, or lost for good.
    fn judge_device(&mut self, device: DeviceId, now: Nanos, sink: &mut impl IoSink) {
        let Some(all) = self.multipath(device) else { return };
        let gone = |path: &Path| path.state == PathState::Refused;
        let failed = |path: &Path| gone(path) || path.state == PathState::Failed;
        let failure = || all.paths.iter().find_map(|path| path.failure.clone());
        if !self.is_opening(device) {
            if all.paths.iter().all(gone) && self.devices[device.index()].state == DeviceState::Ready {
                self.lose_device(device, failure(), now, sink);
            }
            return;
        }
        let tried = all.paths.iter().all(|path| path.tried && path.state != PathState::Checking);
        if tried && !all.usable.is_empty() {
            self.devices[device.index()].state = DeviceState::Ready;
            tell_device(device, now, EventKind::DeviceReady, sink);
        } else if tried && (all.paths.iter().all(failed) || now >= all.times.open_until) {
            self.lose_device(device, failure(), now, sink);
        }
    }

    fn lose_device(
        &mut self,
        device: DeviceId,
        failure: Option<Failure>,
        now: Nanos,
        sink: &mut impl IoSink,
    ) {
        let words = "none of its paths is active (ALUA)";
        let failure = failure
            .unwrap_or_else(|| self.devices[device.index()].failure(&Problem::new(Blame::Peer, words)));
        self.devices[device.index()].state = DeviceState::Failed(failure.clone());
        self.fail_waiting(device, IoError::NoPath, sink);
        let Route::Many(all) = &self.devices[device.index()].route else { return };
        for path in &all.paths {
            let words = "the device has been given up".to_owned();
            let reason = LossReason::WrongLun { blame: failure.blame, words };
            self.sessions[path.session.index()].condemn(reason);
        }
        self.wake_at = 0;
        tell_device(device, now, EventKind::DeviceFailed(failure), sink);
    }

    /// Fails the I/Os that wait.
    pub(crate) fn fail_waiting(&mut self, device: DeviceId, error: IoError, sink: &mut impl IoSink) {
        let Some(all) = self.multipath_mut(device) else { return };
        for task in all.displaced.give_up() {
            if let Owner::Io { slot, .. } = task.owner {
                sink.done(IoDone { device, slot, result: Err(error) });
            }
        }
    }

    fn path_state(&self, device: DeviceId, place: usize) -> PathState {
        self.multipath(device).map_or(PathState::Failed, |all: &Multipath| all.paths[place].state)
    }

    fn tell_path(&self, device: DeviceId, place: usize, at: Nanos, kind: EventKind, sink: &mut impl IoSink) {
        let session = self.multipath(device).map(|all| all.paths[place].session);
        sink.event(Event { at, session, device: Some(device), kind });
    }
}

fn tell_device(device: DeviceId, at: Nanos, kind: EventKind, sink: &mut impl IoSink) {
    sink.event(Event { at, session: None, device: Some(device), kind });
}
