//! Failed I/Os, volumes that die and notices of backends as events of the run.

use super::{Worker, recorder::error_message, slot::IoSlot, volume::Volume};
use crate::{
    backend::{BackendKind, Failure, Notice},
    error::RunError,
    record::RunEvent,
    spec::RunSpec,
};
use linerate_blame::Blame;
use linerate_io::{Driver, Nanos};

/// A volume with this many errors and no success between them has failed.
const ERRORS_IN_A_ROW_MAX: u32 = 50;

impl<D: Driver> Worker<D> {
    pub(super) fn io_failed(&mut self, slot: &IoSlot, failure: Failure, now: Nanos) {
        let is_reported = self.recorder.record_error(slot.flow, slot.op);
        let volume = &mut self.volumes[slot.volume as usize];
        if volume.dead {
            return;
        }
        volume.errors_in_a_row += 1;
        let errors_in_a_row = volume.errors_in_a_row;
        let message = if slot.is_flush {
            format!("a flush failed: {failure}")
        } else {
            error_message(slot.op, slot.offset, slot.len, failure)
        };
        if is_reported && !failure.is_final() {
            self.event(Some(slot.volume), "io_error", message.clone(), failure.blame(), now);
        }
        if failure.is_final() || errors_in_a_row >= ERRORS_IN_A_ROW_MAX {
            let message = if failure.write_refusal().is_some() {
                let index = self.volumes[slot.volume as usize].index;
                let url = &self.spec.volumes[index as usize].url;
                format!("{}: {message}", url.trim_start_matches("file:"))
            } else {
                format!("the volume died: {message}")
            };
            let error = failure.ends_run(self.name(slot.volume), message.clone());
            self.volume_died(slot.volume, message, error, now);
        }
    }

    /// Reports it once, and ends the run; later failed I/Os are only counted.
    pub(super) fn volume_died(&mut self, volume: u32, message: String, error: RunError, now: Nanos) {
        if std::mem::replace(&mut self.volumes[volume as usize].dead, true) {
            return;
        }
        self.event(Some(volume), "volume_failed", message, error.blame(), now);
        self.control.fail(error);
    }

    pub(super) fn miscompare(&mut self, volume: u32, message: String, now: Nanos) {
        self.event(Some(volume), "miscompare", message.clone(), Blame::Peer, now);
        self.control.fail(RunError::Miscompare { volume: self.name(volume), message });
    }

    /// Reports a backend's notice; a fatal one ends the run.
    pub(super) fn report(&mut self, notice: &Notice) {
        let of_unit = |unit| {
            let is_it = |at: &usize| self.kinds[*at] == notice.backend && self.volumes[*at].unit == unit;
            (0..self.volumes.len()).find(is_it).map(|at| at as u32)
        };
        let volume = notice.unit.and_then(of_unit);
        match volume {
            Some(volume) if notice.fatal => {
                let message = notice.message.clone();
                let error =
                    RunError::of_volume(self.name(volume), message.clone(), notice.blame, notice.refusal);
                self.volume_died(volume, message, error, notice.at);
            }
            _ => {
                let text = (notice.message.clone(), notice.blame);
                let path = notice.unit.zip(notice.path).map(|(unit, path)| (notice.backend, unit, path));
                self.event_of(volume, path, notice.kind, text, notice.at);
            }
        }
    }

    pub(super) fn event(
        &mut self,
        volume: Option<u32>,
        kind: &'static str,
        message: String,
        blame: Blame,
        now: Nanos,
    ) {
        self.event_of(volume, None, kind, (message, blame), now);
    }

    /// `path` is the backend, its volume and the path's index in the volume's list.
    fn event_of(
        &mut self,
        volume: Option<u32>,
        path: Option<(BackendKind, u32, usize)>,
        kind: &'static str,
        (message, blame): (String, Blame),
        at: Nanos,
    ) {
        let at_s = self.recorder.seconds(at);
        let (backends, spec, volumes) = (&self.backends, &self.spec, &self.volumes);
        self.recorder.event((kind, volume, path.map(|(.., path)| path)), || RunEvent {
            at_s,
            kind: kind.into(),
            volume: volume.map(|volume| name_of(spec, &volumes[volume as usize])).unwrap_or_default(),
            path: path
                .map(|(kind, unit, path)| backends.path_name::<D>(kind, unit, path))
                .unwrap_or_default(),
            message,
            blame,
        });
    }

    pub(super) fn name(&self, volume: u32) -> String {
        name_of(&self.spec, &self.volumes[volume as usize])
    }
}

fn name_of(spec: &RunSpec, volume: &Volume) -> String {
    spec.volumes[volume.index as usize].name.clone()
}
