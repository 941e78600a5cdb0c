//! Work that is due at a tick.

use super::path::{Hold, Phase};
use super::{Multipath, PathContext};
use crate::event::{IoError, IoSink};
use crate::facts::{DeviceState, PathState};
use linerate_io::Nanos;

impl Multipath {
    /// Does the work that is due.
    pub(crate) fn on_tick<S: IoSink>(&mut self, cx: &mut PathContext<'_, S>) {
        if matches!(self.device.state, DeviceState::Failed(_)) {
            return;
        }
        for path in &mut self.paths {
            path.hold = path.hold.filter(|hold| !matches!(hold, Hold::Until(until) if cx.now >= *until));
        }
        if let Some(expiry) = self.requeue.expire(cx.now) {
            cx.sessions.wake_before(expiry);
        }
        if self.is_hopeless(cx.now) {
            self.fail_waiting(IoError::NoPath, cx.sink);
        }
        for place in 0..self.paths.len() {
            if self.must_poll(place) {
                self.poll(place, false, cx);
            }
        }
        self.settle(cx);
    }

    /// I/O has waited for a path for the longest permitted time.
    fn is_hopeless(&self, now: Nanos) -> bool {
        let limit = self.no_path_since.zip(self.rules.no_path_ns);
        limit.is_some_and(|(since, wait)| now >= since.saturating_add(wait))
    }

    /// A path without I/O notices a change of its access state only by a poll.
    fn must_poll(&self, place: usize) -> bool {
        let path = &self.paths[place];
        // Its probe reads the state.
        let Phase::Connected(connected) = &path.phase else { return false };
        let inactive =
            matches!(path.state(), PathState::Standby | PathState::Unavailable | PathState::Transitioning);
        (connected.group.is_some() || inactive) && !self.uses(place)
    }
}
