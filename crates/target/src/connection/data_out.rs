//! Data of writes: Data-Out PDUs are judged, payload is placed, R2Ts are sent, and the finished write goes to its volume.

use super::{
    Connection,
    inbound::{DIRECT_MIN_BYTES, Sink},
    reply::Asked,
    tasks::Work,
};
use crate::{engine::Operation, pages::Moved, pool::pieces, volume::Medium, worker::Core};
use linerate_io::{Driver, Seg};
use linerate_iscsi::{
    pdu::{DataOut, R2t, RESERVED_TAG},
    transfer::{TargetWrite, ttt_slot},
};
use linerate_scsi::{Extent, Input, MediumError};

impl Connection {
    /// The header of a Data-Out PDU. Data of tasks that are gone (failed or aborted) is taken in and dropped.
    pub(super) fn data_out<D: Driver>(&mut self, core: &mut Core<D>, pdu: &DataOut) {
        let slot = if pdu.ttt == RESERVED_TAG { self.tasks.find(pdu.itt) } else { Some(ttt_slot(pdu.ttt)) };
        let live = slot.and_then(|slot| Some((slot, self.tasks.live(slot)?)));
        let Some((slot, entry)) = live.filter(|(_, entry)| entry.itt == pdu.itt) else { return };
        let Some(write) = &mut entry.write else { return };
        match write.accept(pdu) {
            Ok(_) if pdu.data_len == 0 => self.go_on_writing(core, slot, false),
            Ok(_) => self.sink = Sink::Task { slot, base: pdu.buffer_offset },
            Err(error) => {
                tracing::debug!(peer = %self.peer, %error, "a write fails");
                core.counters.check_conditions += 1;
                let asked = Asked::from(&*entry);
                self.give_up_write(slot);
                if let Some(mut answers) = self.answers() {
                    answers.abort_command(asked, error.sense());
                }
                self.end_task(core, slot);
            }
        }
    }

    /// Payload of a write: `offset` is its place in the segment, whose place in the command's data is `base`.
    pub(super) fn task_payload<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        (slot, base): (u32, u32),
        payload: &[u8],
        offset: u32,
        complete: bool,
    ) {
        let digests = self.digests_data();
        let Some(session) = self.session.as_mut() else { return };
        if digests {
            // Nothing may reach a volume before the digest was found right, which is known when it is complete.
            core.stage(&mut session.staged, payload);
            if complete {
                let staged = std::mem::take(&mut session.staged);
                self.place(core, slot, base, &staged);
                core.keep_staging(staged);
            }
        } else {
            self.place(core, slot, base + offset, payload);
        }
        if complete {
            self.go_on_writing(core, slot, false);
        }
    }

    /// Puts bytes where they belong; what the device does not want is dropped.
    fn place<D: Driver>(&mut self, core: &mut Core<D>, slot: u32, at: u32, bytes: &[u8]) {
        let Some(entry) = self.tasks.get_mut(slot).filter(|entry| !entry.aborted) else { return };
        let wanted = entry.write.as_ref().map_or(0, |write| write.wanted().saturating_sub(at));
        let bytes = &bytes[..bytes.len().min(wanted as usize)];
        if bytes.is_empty() {
            return;
        }
        match &mut entry.work {
            Work::MemoryWrite(extent) => {
                if let Some(Medium::Memory(pages)) = core.media.of(entry.volume) {
                    pages.write(extent.offset_bytes + u64::from(at), bytes);
                }
            }
            Work::BufferedWrite(_) => core.pool.write(&entry.segs, at, bytes),
            Work::Steps(steps) => {
                let at = at as usize;
                if steps.data.len() < at + bytes.len() {
                    steps.data.resize(at + bytes.len(), 0);
                }
                steps.data[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Work::BufferedRead(_) | Work::Drain(_) | Work::Free => {}
        }
    }

    /// Segments that the rest of the data segment can be received into, if that is worth it.
    pub(super) fn direct_target<D: Driver>(&mut self, core: &Core<D>) -> Vec<Seg> {
        let mut direct = self.inbound.direct_list();
        let remaining = self.receiver.direct_remaining();
        let Sink::Task { slot, base } = self.sink else { return direct };
        if remaining < DIRECT_MIN_BYTES || self.digests_data() {
            return direct;
        }
        let segment_len = linerate_iscsi::pdu::data_len(self.receiver.bhs());
        let at = base + segment_len - remaining;
        let Some(entry) = self.tasks.live(slot) else { return direct };
        let wanted = entry.write.as_ref().map_or(0, |write| write.wanted().saturating_sub(at));
        let len = remaining.min(wanted);
        match &entry.work {
            Work::MemoryWrite(extent) => {
                if let Some(Medium::Memory(pages)) = core.media.of(entry.volume) {
                    let offset = extent.offset_bytes + u64::from(at);
                    direct.extend(pages.parts(offset, u64::from(len)).map(|part| part.seg()));
                }
            }
            Work::BufferedWrite(_) => {
                direct.extend(pieces(&entry.segs, at, len).map(|(seg, start, len)| Seg {
                    offset: seg.offset + u64::from(start),
                    len,
                    ..seg
                }));
            }
            _ => {}
        }
        direct
    }

    /// `len` bytes of payload went straight to their place.
    pub(super) fn received_direct(&mut self, len: u32) {
        self.receiver.advance_direct(len, |crc| crc);
    }

    /// After a command or a data segment: asks for more data, or finishes the write. `data_comes`: the segment that
    /// belongs to the PDU has not arrived yet, so nothing can be finished.
    pub(super) fn go_on_writing<D: Driver>(&mut self, core: &mut Core<D>, slot: u32, data_comes: bool) {
        let Some(entry) = self.tasks.live(slot) else { return };
        let Some(write) = &mut entry.write else { return };
        if write.is_complete() && !data_comes {
            return self.data_is_complete(core, slot);
        }
        let (lun, itt) = (linerate_iscsi::pdu::Lun(u64::from_be_bytes(entry.lun)), entry.itt);
        while let Some(entry) = self.tasks.live(slot)
            && let Some(grant) = entry.write.as_mut().and_then(TargetWrite::next_r2t)
        {
            let Some(mut answers) = self.answers() else { return };
            let pdu = R2t {
                lun,
                itt,
                ttt: grant.ttt,
                sn: answers.session.window.peek(),
                r2t_sn: grant.r2t_sn,
                buffer_offset: grant.buffer_offset,
                desired_len: grant.desired_len,
            };
            answers.header(|bhs| pdu.emit(bhs));
        }
    }

    fn data_is_complete<D: Driver>(&mut self, core: &mut Core<D>, slot: u32) {
        let tag = self.tag(slot);
        let Some(entry) = self.tasks.get_mut(slot) else { return };
        match &mut entry.work {
            Work::MemoryWrite(extent) => {
                let extent = *extent;
                match core.media.of(entry.volume) {
                    Some(Medium::Memory(pages)) => {
                        pages.count(Moved::Written, extent.offset_bytes, u64::from(extent.len_bytes));
                        self.write_is_done(core, slot, &extent);
                    }
                    // Its set has failed since the command began.
                    _ => self.write_failed(core, slot, MediumError::Hardware),
                }
            }
            Work::BufferedWrite(extent) if extent.len_bytes == 0 => {
                let extent = *extent;
                self.write_is_done(core, slot, &extent);
            }
            Work::BufferedWrite(extent) => {
                entry.operating = true;
                self.operations += 1;
                let Extent { offset_bytes, durable, .. } = *extent;
                match core.media.of(entry.volume) {
                    Some(Medium::File(file)) => {
                        core.driver.write_at(file, tag, &entry.segs, offset_bytes, durable);
                    }
                    Some(Medium::Managed(volume)) => {
                        let operation = Operation::Write { offset_bytes, durable };
                        core.ask_engine(volume, operation, &entry.segs, tag);
                    }
                    // Its bytes need no buffers.
                    Some(Medium::Memory(_)) | None => {}
                }
            }
            Work::Steps(steps) => {
                let data = std::mem::take(&mut steps.data);
                entry.write = None;
                self.drive(core, slot, Input::DataOut(data), None);
            }
            Work::Drain(reply) => {
                let reply = std::mem::replace(reply, linerate_scsi::Reply::good());
                let asked = Asked::from(&*entry);
                self.end_task(core, slot);
                self.reply(core, asked, &reply);
            }
            Work::BufferedRead(_) | Work::Free => {}
        }
    }

    /// All bytes of a write are on the medium.
    pub(super) fn write_is_done<D: Driver>(&mut self, core: &mut Core<D>, slot: u32, extent: &Extent) {
        let Some(entry) = self.tasks.get_mut(slot) else { return };
        let (asked, r2ts) = (Asked::from(&*entry), entry.write.as_ref().map_or(0, TargetWrite::r2ts));
        let silent = self.end_write(slot);
        if let Some(mut answers) = self.answers() {
            if silent {
                answers.forget(asked);
            } else {
                answers.written(asked, extent, r2ts);
                answers.session.counters.writes += 1;
                answers.session.counters.written_bytes += u64::from(extent.len_bytes);
                core.counters.writes += 1;
                core.counters.written_bytes += u64::from(extent.len_bytes);
            }
        }
        self.end_task(core, slot);
    }

    /// Tells the unit that a write is over. Returns whether it was aborted meanwhile, so that no answer is due.
    pub(super) fn end_write(&mut self, slot: u32) -> bool {
        let Some(device) = self.session.as_ref().and_then(|session| session.device.as_ref()) else {
            return true;
        };
        let Some(entry) = self.tasks.get_mut(slot) else { return true };
        if let Work::MemoryWrite(extent) | Work::BufferedWrite(extent) = &entry.work {
            device.nexus.end_write(entry.lun, extent);
            entry.work = Work::Drain(linerate_scsi::Reply::good());
        }
        entry.aborted || device.nexus.abort_epoch(entry.lun) != entry.epoch
    }

    /// A write will not be finished.
    pub(super) fn give_up_write(&mut self, slot: u32) {
        self.end_write(slot);
    }
}
