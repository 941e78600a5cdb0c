//! What time brings to the paths of a device.

use super::PathState;
use crate::device::{DeviceId, DeviceState, Route};
use crate::event::{IoError, IoSink};
use crate::initiator::Initiator;
use linerate_io::Nanos;

impl Initiator {
    /// Runs what is due for the devices that have several paths.
    pub(crate) fn look_at_paths(&mut self, now: Nanos, sink: &mut impl IoSink) {
        for index in 0..self.devices.len() {
            let failed = matches!(self.devices[index].state, DeviceState::Failed(_));
            if matches!(self.devices[index].route, Route::Many(_)) && !failed {
                self.look_at_device(DeviceId(index as u32), now, sink);
            }
        }
    }

    fn look_at_device(&mut self, device: DeviceId, now: Nanos, sink: &mut impl IoSink) {
        let Some(all) = self.multipath_mut(device) else { return };
        for path in &mut all.paths {
            if path.held_until.is_some_and(|until| now >= until) {
                path.release();
            }
        }
        let expiry = all.displaced.expire(now).unwrap_or(Nanos::MAX);
        let idle: Vec<usize> = (0..all.paths.len()).filter(|place| needs_a_look(all, *place)).collect();
        let hopeless = all.is_hopeless(now);
        self.wake_at = self.wake_at.min(expiry);
        if hopeless {
            self.fail_waiting(device, IoError::NoPath, sink);
        }
        for place in idle {
            self.poll_path(device, place, now);
        }
        self.settle_paths(device, now, sink);
    }
}

/// A path that carries no I/O hears of a change of its access state only when it asks.
fn needs_a_look(all: &super::Multipath, place: usize) -> bool {
    let path = &all.paths[place];
    let asks = path.group.is_some()
        || matches!(path.state, PathState::Standby | PathState::Unavailable | PathState::Transitioning);
    path.state.is_connected() && !all.uses(place) && asks
}
