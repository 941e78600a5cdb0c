//! Data of writes: checks Data-Out PDUs, stores payload, sends R2Ts, and passes the finished write to its volume.

use super::{
    Connection,
    inbound::Sink,
    reply::Asked,
    tasks::{Buffers, TaskId, TaskWork},
};
use crate::{
    buffers::operation::Executor,
    buffers::pool::ChunkPool,
    context::WorkerContext,
    engine::Operation,
    memory_volume::{IoDirection, MemoryVolume},
    volume::VolumeAccess,
};
use linerate_io::{Driver, Seg};
use linerate_iscsi_proto::{
    pdu::{DataOut, R2t, RESERVED_TAG},
    transfer::{TargetWrite, ttt_slot},
};
use linerate_scsi::{Extent, Input, MediumError};

impl Connection {
    /// The header of a Data-Out PDU. Data of tasks that have ended (failed or aborted) is received and dropped.
    pub(super) fn data_out<D: Driver>(&mut self, context: &mut WorkerContext<D>, pdu: &DataOut) {
        let named =
            if pdu.ttt == RESERVED_TAG { self.tasks.find(pdu.itt) } else { self.tasks.at(ttt_slot(pdu.ttt)) };
        let live = named.and_then(|task| Some((task, self.tasks.live(task)?)));
        let Some((task, entry)) = live.filter(|(_, entry)| entry.itt == pdu.itt) else { return };
        // A command without data: its bytes are dropped as well.
        let Some(write) = &mut entry.write else { return };
        match write.accept(pdu) {
            Ok(_) if pdu.data_len == 0 => self.go_on_writing(context, task, false),
            Ok(_) => self.sink = Sink::Task { task, base: pdu.buffer_offset },
            Err(error) => {
                tracing::debug!(event = "write_refused", peer = %self.peer, %error, "a write fails");
                self.fail_transfer(context, task, error.sense());
            }
        }
    }

    /// Payload of a write at position `at` of the command's data. With data digests it is stored outside the volume
    /// until it is complete and its digest was checked.
    pub(super) fn task_payload<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        at: u32,
        payload: &[u8],
        complete: bool,
    ) {
        self.place(context, task, at, payload);
        if complete {
            self.go_on_writing(context, task, false);
        }
    }

    /// Stores bytes at their destination; bytes that the device does not need are dropped.
    fn place<D: Driver>(&mut self, context: &mut WorkerContext<D>, task: TaskId, at: u32, bytes: &[u8]) {
        let Some(entry) = self.tasks.live(task) else { return };
        let wanted = entry.write.as_ref().map_or(0, |write| write.wanted().saturating_sub(at));
        let bytes = &bytes[..bytes.len().min(wanted as usize)];
        if bytes.is_empty() {
            return;
        }
        match &mut entry.work {
            TaskWork::MemoryWrite(extent) => {
                if let Some(VolumeAccess::Memory(pages)) = context.media.of(entry.volume) {
                    pages.write(extent.offset_bytes + u64::from(at), bytes);
                }
            }
            TaskWork::BufferedWrite(_) => {
                debug_assert!(
                    matches!(entry.buffers, Buffers::Task(_)),
                    "data comes when there is a place for it"
                );
                context.pool.write(entry.segs(), at, bytes);
            }
            TaskWork::Steps(steps) => {
                let at = at as usize;
                if steps.data.len() < at + bytes.len() {
                    steps.data.resize(at + bytes.len(), 0);
                }
                steps.data[at..at + bytes.len()].copy_from_slice(bytes);
            }
            TaskWork::BufferedRead(_) | TaskWork::Drain(_) | TaskWork::Free => {}
        }
    }

    /// After a command or a data segment: requests more data, or finishes the write. `data_comes`: the data segment of
    /// the PDU has not arrived yet, so nothing can be finished.
    pub(super) fn go_on_writing<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        data_comes: bool,
    ) {
        let Some(entry) = self.tasks.live(task) else { return };
        let Some(write) = &mut entry.write else {
            unreachable!("only a command that receives data goes on writing");
        };
        if write.is_complete() && !data_comes {
            return self.data_is_complete(context, task);
        }
        let (lun, itt) = (linerate_iscsi_proto::pdu::Lun(u64::from_be_bytes(entry.lun)), entry.itt);
        while let Some(entry) = self.tasks.live(task)
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

    fn data_is_complete<D: Driver>(&mut self, context: &mut WorkerContext<D>, task: TaskId) {
        let origin = self.origin(task);
        let Some(entry) = self.tasks.known(task) else { return };
        match &mut entry.work {
            TaskWork::MemoryWrite(extent) => {
                let extent = *extent;
                match context.media.of(entry.volume) {
                    Some(VolumeAccess::Memory(pages)) => {
                        pages.count(IoDirection::Written, extent.offset_bytes, u64::from(extent.len_bytes));
                        self.write_is_done(context, task, &extent);
                    }
                    // Its set has failed since the command began.
                    _ => self.write_failed(context, task, MediumError::Hardware),
                }
            }
            TaskWork::BufferedWrite(extent) if extent.len_bytes == 0 => {
                let extent = *extent;
                self.write_is_done(context, task, &extent);
            }
            TaskWork::BufferedWrite(extent) => {
                let extent = *extent;
                let medium = match context.media.of(entry.volume) {
                    Some(VolumeAccess::File(file)) => Executor::File(file),
                    Some(VolumeAccess::Managed(volume)) => Executor::Engine(volume),
                    Some(VolumeAccess::Memory(pages)) => {
                        copy_in(&context.pool, entry.segs(), pages, &extent);
                        return self.write_is_done(context, task, &extent);
                    }
                    None => return self.write_failed(context, task, MediumError::Hardware),
                };
                let chunks = entry.lend(Buffers::Operation);
                self.operations += 1;
                let Extent { offset_bytes, durable, .. } = extent;
                context.begin_operation(origin, chunks, medium, Operation::Write { offset_bytes, durable });
            }
            TaskWork::Steps(steps) => {
                let data = std::mem::take(&mut steps.data);
                let collects = std::mem::take(&mut steps.collects);
                entry.write = None;
                if collects {
                    self.drive(context, task, Input::DataOut(data), None);
                }
            }
            TaskWork::Drain(reply) => {
                let reply = std::mem::replace(reply, linerate_scsi::Reply::good());
                let asked = Asked::from(&*entry);
                self.end_task(context, task);
                self.reply(context, asked, &reply);
            }
            TaskWork::BufferedRead(_) | TaskWork::Free => unreachable!("a command that receives no data"),
        }
    }

    /// All bytes of a write are on the medium.
    pub(super) fn write_is_done<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        extent: &Extent,
    ) {
        let Some(entry) = self.tasks.known(task) else { return };
        let (asked, r2ts) = (Asked::from(&*entry), entry.write.as_ref().map_or(0, TargetWrite::r2ts));
        let silent = self.end_write(task);
        if let Some(mut answers) = self.answers() {
            if silent {
                answers.forget(asked);
            } else {
                answers.written(asked, extent, r2ts);
                answers.session.counters.writes += 1;
                answers.session.counters.written_bytes += u64::from(extent.len_bytes);
                context.counters.writes += 1;
                context.counters.written_bytes += u64::from(extent.len_bytes);
            }
        }
        self.end_task(context, task);
    }

    /// Reports the end of a write to the unit. Returns whether it was aborted meanwhile, so that no answer is due.
    pub(super) fn end_write(&mut self, task: TaskId) -> bool {
        let Some(device) = self.session.as_ref().and_then(|session| session.device.as_ref()) else {
            return true;
        };
        let Some(entry) = self.tasks.known(task) else { return true };
        debug_assert!(!entry.is_busy(), "a write is over when nothing of it can land any more");
        if let TaskWork::MemoryWrite(extent) | TaskWork::BufferedWrite(extent) = &entry.work {
            device.nexus.end_write(entry.lun, extent);
            entry.work = TaskWork::Drain(linerate_scsi::Reply::good());
        }
        entry.aborted || device.nexus.abort_epoch(entry.lun) != entry.epoch
    }
}

/// Copies a write's bytes from I/O buffers to the memory volume.
fn copy_in(pool: &ChunkPool, segs: &[Seg], pages: &MemoryVolume, extent: &Extent) {
    let mut offset = extent.offset_bytes;
    for &seg in segs {
        let mut from = seg.offset;
        for part in pages.parts(offset, u64::from(seg.len)) {
            pool.region(seg).copy_to(from, part.region, part.offset, part.len);
            from += part.len;
        }
        offset += u64::from(seg.len);
    }
    pages.count(IoDirection::Written, extent.offset_bytes, u64::from(extent.len_bytes));
}
