//! What the queue of a volume does between I/Os: it flushes the volume after a number of writes (fio's `fsync=n`), and
//! opens it again after a number of I/Os (Iometer's transactions per connection).

use super::{Worker, slot::IoSlot, volume::Volume};
use crate::{
    backend::FinishedIo,
    error::RunError,
    record::Op,
    spec::{FlushSpec, VolumeSpec},
};
use linerate_io::{Driver, Nanos};

/// What comes before the next I/O of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// Nothing.
    None,
    /// Until an I/O or a flush completes.
    Wait,
    /// A flush, in the place of an I/O.
    Flush,
    /// The volume is closed and opened again.
    Reopen,
}

/// The flushes and openings of a volume that has any.
#[derive(Debug)]
pub(crate) struct Upkeep {
    flush: Option<FlushSpec>,
    /// Writes since the last flush.
    writes: u32,
    is_flushing: bool,
    reopen_after_ios: Option<u32>,
    /// I/Os since it was opened.
    ios: u32,
}

impl Upkeep {
    /// That of a volume; none for most.
    pub(super) fn of(volume: &VolumeSpec) -> Option<Box<Self>> {
        let (flush, reopen_after_ios) = (volume.flush, volume.reopen_after_ios);
        let has_any = flush.is_some() || reopen_after_ios.is_some();
        has_any.then(|| Box::new(Self { flush, writes: 0, is_flushing: false, reopen_after_ios, ios: 0 }))
    }

    /// `is_idle`: no I/O of the volume is in flight.
    pub(super) fn next(&self, is_idle: bool) -> Errand {
        if let Some(flush) = self.flush {
            if flush.blocks && self.is_flushing {
                return Errand::Wait;
            }
            if self.writes >= flush.after_writes {
                return Errand::Flush;
            }
        }
        match self.reopen_after_ios {
            Some(after) if self.ios >= after => {
                if is_idle {
                    Errand::Reopen
                } else {
                    Errand::Wait
                }
            }
            _ => Errand::None,
        }
    }

    /// An I/O starts.
    pub(super) fn started(&mut self, op: Op) {
        self.ios += u32::from(self.reopen_after_ios.is_some());
        self.writes += u32::from(self.flush.is_some() && op == Op::Write);
    }
}

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
            let volume = &mut self.volumes[index as usize];
            let has_flow = volume.flows.start < volume.flows.end;
            match self.errand(index) {
                Errand::Flush if self.volumes[index as usize].closed == 0 && has_flow => {
                    let flow = self.volumes[index as usize].flows.start;
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
            (upkeep.writes, upkeep.is_flushing) = (0, true);
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
            upkeep.is_flushing = false;
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
            upkeep.ios = 0;
        }
        for flow in flows.clone() {
            self.flows[flow as usize].sequence.rewind();
        }
        match self.backends.reopen(self.kinds[index as usize], &mut self.driver, *unit) {
            Ok(()) => true,
            Err(error) => {
                let message = format!("the volume could not be opened again: {}", error.message);
                let error =
                    RunError::of_volume(self.name(index), message.clone(), error.blame, error.refusal);
                self.volume_died(index, message, error, now);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Errand, Upkeep};
    use crate::{record::Op, spec::VolumeSpec};

    fn upkeep(json: &str) -> Upkeep {
        let text = format!(r#"{{"name": "v", "url": "null:4096", {json}}}"#);
        *Upkeep::of(&serde_json::from_str::<VolumeSpec>(&text).unwrap()).unwrap()
    }

    #[test]
    fn a_volume_is_opened_again_once_its_ios_have_ended() {
        let mut one = upkeep(r#""reopen_after_ios": 2"#);
        one.started(Op::Read);
        assert_eq!(one.next(false), Errand::None);
        one.started(Op::Write);
        assert_eq!((one.next(false), one.next(true)), (Errand::Wait, Errand::Reopen));
        one.ios = 0;
        assert_eq!(one.next(true), Errand::None);
    }

    #[test]
    fn reads_do_not_bring_a_flush_nearer() {
        let mut one = upkeep(r#""flush": {"after_writes": 2}"#);
        for op in [Op::Write, Op::Read, Op::Read] {
            one.started(op);
        }
        assert_eq!(one.next(false), Errand::None);
        one.started(Op::Write);
        assert_eq!(one.next(false), Errand::Flush);
    }

    #[test]
    fn ios_go_on_during_a_flush_that_does_not_block() {
        for (blocks, expected) in
            [(true, [Errand::Wait, Errand::Wait]), (false, [Errand::None, Errand::Flush])]
        {
            let mut one = upkeep(&format!(r#""flush": {{"after_writes": 1, "blocks": {blocks}}}"#));
            one.is_flushing = true;
            let before = one.next(false);
            one.started(Op::Write);
            assert_eq!([before, one.next(false)], expected);
        }
    }
}
