//! Devices with one session: opening them, and making sure after a new login that they are what they were.

use crate::device::{Device, Route};
use crate::event::{Event, EventKind, Failure, IoSink};
use crate::facts::{DeviceId, DeviceState, SessionId};
use crate::initiator::Initiator;
use crate::session::{Answer, Notice};
use linerate_io::Nanos;

impl Initiator {
    /// Acts on what sessions have reported.
    #[cold]
    pub(crate) fn deliver_notices(&mut self, at: Nanos, sink: &mut impl IoSink) {
        self.take_returned(at);
        let mut devices: Vec<DeviceId> = Vec::new();
        while !self.notices.is_empty() {
            for (session, notice) in std::mem::take(&mut self.notices) {
                if let Some((device, place)) = self.sessions[session.index()].path_of {
                    self.hear_path(device, usize::from(place), notice, at, sink);
                    devices.push(device);
                } else {
                    self.hear_session(session, notice, at, sink);
                }
            }
        }
        // Only when all news is in: paths that were lost together must not be taken for each other's rescue.
        devices.sort_unstable();
        devices.dedup();
        for device in devices {
            self.settle_paths(device, at, sink);
        }
    }

    /// News from a session that is all its devices have.
    fn hear_session(&mut self, session: SessionId, notice: Notice, at: Nanos, sink: &mut impl IoSink) {
        match notice {
            Notice::Ready => {
                for device in self.devices_on(session) {
                    self.ask(device);
                }
            }
            Notice::Restored => self.confirm_devices(session, at, sink),
            Notice::Failed(reason) => {
                self.sessions[session.index()].failure = Some(reason.clone());
                for device in self.devices_on(session) {
                    self.fail_device(device, reason.clone(), at, sink);
                }
            }
            Notice::Answered { device, answer, reply } => {
                self.hear(DeviceId(device), answer, &reply, at, sink);
            }
            Notice::Targets(text) => self.targets.push((session, text)),
            // Only sessions of paths report these.
            Notice::Lost(_)
            | Notice::Fenced
            | Notice::Refused(_)
            | Notice::AccessChanged
            | Notice::HandedBack
            | Notice::DisplacedDone { .. } => {}
        }
    }

    fn devices_on(&self, session: SessionId) -> Vec<DeviceId> {
        let on = |device: &Device| matches!(device.route, Route::One(id) if id == session);
        let ids = self.devices.iter().enumerate().filter(|(_, device)| on(device));
        ids.map(|(index, _)| DeviceId(index as u32)).collect()
    }

    /// Sends a device's next question; false if there is none left.
    pub(crate) fn ask(&mut self, device: DeviceId) -> bool {
        let id = self.session_of(device);
        let Some(task) = self.devices[device.index()].ask(device.0) else { return false };
        self.mark(id);
        self.sessions[id.index()].enqueue(&task).is_some()
    }

    fn hear(&mut self, device: DeviceId, answer: Answer, reply: &[u8], at: Nanos, sink: &mut impl IoSink) {
        if self.devices[device.index()].is_confirming() {
            return self.hear_again(device, answer, reply, at, sink);
        }
        if self.devices[device.index()].state != DeviceState::Opening {
            return;
        }
        let mut result = self.devices[device.index()].hear(answer, reply);
        if result.is_ok() {
            if self.ask(device) {
                return;
            }
            result = self.devices[device.index()].settle();
        }
        match result {
            Ok(()) => {
                self.devices[device.index()].state = DeviceState::Ready;
                self.tell(device, at, EventKind::DeviceReady, sink);
            }
            Err(reason) => self.fail_device(device, reason, at, sink),
        }
    }

    /// After a new login, asks every disk again who it is; until all have answered the session sends no I/O.
    fn confirm_devices(&mut self, session: SessionId, at: Nanos, sink: &mut impl IoSink) {
        for device in self.devices_on(session) {
            if self.devices[device.index()].start_confirming() {
                self.ask_again(device, at, sink);
            }
        }
        self.release(session);
    }

    fn hear_again(
        &mut self,
        device: DeviceId,
        answer: Answer,
        reply: &[u8],
        at: Nanos,
        sink: &mut impl IoSink,
    ) {
        match self.devices[device.index()].hear_again(answer, reply) {
            Ok(()) => self.ask_again(device, at, sink),
            Err(reason) => self.fail_changed(device, reason, at, sink),
        }
        self.release(self.session_of(device));
    }

    /// Sends a device's next question; judges the answers when there is none left.
    fn ask_again(&mut self, device: DeviceId, at: Nanos, sink: &mut impl IoSink) {
        let id = self.session_of(device);
        let from = &mut self.devices[device.index()];
        if let Some(task) = from.ask(device.0) {
            self.mark(id);
            self.sessions[id.index()].enqueue_question(&task);
        } else if let Err(reason) = from.confirm() {
            self.fail_changed(device, reason, at, sink);
        }
    }

    /// Another disk than before must get none of the I/O that was meant for the old one.
    fn fail_changed(&mut self, device: DeviceId, reason: Failure, at: Nanos, sink: &mut impl IoSink) {
        let id = self.session_of(device);
        self.with_session(id, sink, |session, turn| session.fail_device(device, turn));
        self.fail_device(device, reason, at, sink);
    }

    /// Lets a session's I/O go once all of its disks are known to be the old ones.
    fn release(&mut self, session: SessionId) {
        let on = self.devices_on(session);
        if !on.iter().any(|device| self.devices[device.index()].is_confirming()) {
            self.sessions[session.index()].held = false;
            self.mark(session);
        }
    }

    pub(crate) fn fail_device(
        &mut self,
        device: DeviceId,
        reason: Failure,
        at: Nanos,
        sink: &mut impl IoSink,
    ) {
        self.devices[device.index()].state = DeviceState::Failed(reason.clone());
        self.tell(device, at, EventKind::DeviceFailed(reason), sink);
    }

    fn tell(&self, device: DeviceId, at: Nanos, kind: EventKind, sink: &mut impl IoSink) {
        sink.event(Event { at, session: Some(self.session_of(device)), device: Some(device), kind });
    }
}
