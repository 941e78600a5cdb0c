//! A worker does what comes between the I/Os of a volume (`upkeep`).

use super::{Worker, slot::IoSlot, upkeep::Errand, volume::Volume};
use crate::{backend::FinishedIo, error::RunError, record::Op};
use linerate_io::{Driver, Nanos};

impl<D: Driver> Worker<D> {
    /// What comes before the next I/O of a volume.
    pub(super) fn errand(&self, index: u32) -> Errand {
        let volume = &self.volumes[index as usize];
        volume.upkeep.as_ref().map_or(Errand::None, |upkeep| upkeep.next(volume.is_idle()))
    }

    /// Does what comes before the next I/O is drawn. Returns whether one may be. A flush before an I/O of a closed loop
    /// waits until it is known that one follows.
    pub(super) fn keep_up(&mut self, index: u32, now: Nanos) -> bool {
        loop {
            let Volume { closed, flows, .. } = &self.volumes[index as usize];
            let (is_open_loop, flow) = (*closed == 0 && !flows.is_empty(), flows.start);
            match self.errand(index) {
                Errand::Flush if is_open_loop => {
                    self.start_flush(index, flow);
                    if self.volumes[index as usize].free.is_empty() {
                        return false;
                    }
                }
                Errand::None | Errand::Flush => return true,
                Errand::Wait => return false,
                Errand::Reopen => {
                    if !self.reopen(index, now) {
                        return false;
                    }
                }
            }
        }
    }

    /// Starts a flush in a free slot of a volume.
    pub(super) fn start_flush(&mut self, index: u32, flow: u32) {
        let volume = &mut self.volumes[index as usize];
        let Some(slot) = volume.free.pop() else { return };
        if let Some(upkeep) = &mut volume.upkeep {
            upkeep.flush_starts();
        }
        let this = &mut self.slots[slot as usize];
        *this = IoSlot {
            volume: index,
            busy: true,
            is_flush: true,
            flow,
            op: Op::Write,
            submitted: self.driver.now(),
            ..IoSlot::free(this.place)
        };
        self.flows[flow as usize].in_flight += 1;
        self.in_flight += 1;
        let kind = self.kinds[index as usize];
        self.backends.sync(kind, &mut self.driver, (slot, volume.unit), &mut self.reports);
    }

    /// Counts a flush that has ended.
    pub(super) fn settle_flush(&mut self, done: FinishedIo, slot: &IoSlot, now: Nanos) {
        let volume = &mut self.volumes[slot.volume as usize];
        if let Some(upkeep) = &mut volume.upkeep {
            upkeep.flush_ended();
        }
        volume.free.push(done.slot);
        match done.result {
            Ok(()) => self.recorder.flushed(slot.flow, now - slot.submitted),
            Err(failure) => self.io_failed(slot, failure, now),
        }
        self.list(slot.volume);
    }

    /// Closes a volume and opens it again; its streams then begin anew. Returns whether it is open.
    fn reopen(&mut self, index: u32, now: Nanos) -> bool {
        let Volume { unit, flows, upkeep, .. } = &mut self.volumes[index as usize];
        if let Some(upkeep) = upkeep {
            upkeep.reopened();
        }
        for flow in flows.clone() {
            self.flows[flow as usize].sequence.rewind();
        }
        match self.backends.reopen(self.kinds[index as usize], &mut self.driver, *unit) {
            Ok(()) => true,
            Err(error) => {
                let message = format!("the volume could not be opened again: {}", error.message);
                let ending =
                    RunError::of_volume(self.name(index), message.clone(), error.blame, error.refusal);
                self.volume_died(index, message, ending, now);
                false
            }
        }
    }
}
