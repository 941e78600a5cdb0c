//! What time brings to the paths of a device.

use crate::device::Route;
use crate::event::{IoError, IoSink};
use crate::facts::{DeviceId, DeviceState, PathState};
use crate::initiator::Initiator;
use linerate_io::net::{NetEvent, NetWatch};
use linerate_io::{Driver, Nanos};

impl Initiator {
    /// Follows the links of the local interfaces from now on: paths that name an interface fail with its link, and are
    /// tried again when it is back. `watch` belongs to the network namespace that the sessions leave from.
    pub fn watch_links(&mut self, watch: NetWatch) {
        self.links = Some(watch);
    }

    /// Acts on what the kernel has told of links since the last look.
    pub(crate) fn look_at_links<D: Driver>(&mut self, driver: &mut D, now: Nanos, sink: &mut impl IoSink) {
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
