//! SCSI commands: admitted to the window, checked by the unit, and started.

use super::{
    Connection,
    inbound::Sink,
    reply::{Answers, Asked},
    session::in_full_feature,
    steps::ReadData,
    tasks::{Buffers, NewTask, Steps, TaskId, TaskWork},
};
use crate::{
    buffers::operation::{Executor, Origin},
    context::WorkerContext,
    engine::Operation,
    memory_volume::IoDirection,
    volume::{VolumeAccess, VolumeId},
};
use linerate_io::Driver;
use linerate_iscsi_proto::{
    pdu::{RejectReason, ScsiCommand},
    transfer::TargetWrite,
    window::Admission,
};
use linerate_scsi::{Expected, Extent, Input, MediumError, Nexus, Plan, Reply, Status, Task};
use std::sync::Arc;

/// Shorter reads are copied to I/O buffers.
const IN_PLACE_BYTES_MIN: u32 = 64 << 10;

/// A command that was admitted, and its logical unit.
struct Begun {
    nexus: Arc<Nexus>,
    volume: Option<VolumeId>,
    asked: Asked,
    lun: [u8; 8],
}

impl Connection {
    pub(super) fn scsi_command<D: Driver>(&mut self, context: &mut WorkerContext<D>, command: &ScsiCommand) {
        let Some(session) = in_full_feature(&mut self.session) else { return };
        match session.window.admit(command.cmd_sn, command.immediate) {
            Admission::Run => {}
            Admission::Ignore => return,
            Admission::Gap => return self.protocol_error(context, "a gap in CmdSN"),
        }
        let Some(device) = &session.device else {
            return self.reject(context, RejectReason::ProtocolError);
        };
        // Immediate commands are outside the window, so they need their own limit.
        if command.immediate && self.tasks.len() >= 2 * context.limits.commands_per_session as usize {
            return self.reject(context, RejectReason::TooManyImmediate);
        }
        context.counters.commands += 1;
        session.counters.commands += 1;
        let expected = Expected {
            in_bytes: if command.read && !command.write { command.expected_len } else { 0 },
            out_bytes: if command.write { command.expected_len } else { 0 },
        };
        let asked = Asked {
            itt: command.itt,
            immediate: command.immediate,
            expected_in: expected.in_bytes,
            expected_out: expected.out_bytes,
        };
        let lun = command.lun.0.to_be_bytes();
        let volume = command.lun.number().and_then(|number| device.target.volume(number));
        match device.nexus.begin(lun, &command.cdb, expected) {
            Plan::Read(extent) => match context.media.of(volume) {
                Some(VolumeAccess::Memory(pages)) if !session.digests_data() => {
                    pages.count(IoDirection::Read, extent.offset_bytes, u64::from(extent.len_bytes));
                    context.counters.reads += 1;
                    context.counters.read_bytes += u64::from(extent.len_bytes);
                    session.counters.reads += 1;
                    session.counters.read_bytes += u64::from(extent.len_bytes);
                    Answers { peer: self.peer, out: &mut self.outbound, session }
                        .read_memory(asked, &extent, pages);
                }
                Some(_) => {
                    let begun = Begun { nexus: Arc::clone(&device.nexus), volume, asked, lun };
                    self.read_buffered(context, &begun, extent);
                }
                None => {
                    let reply = device.nexus.medium_failed(lun, MediumError::Hardware);
                    self.reply(context, asked, &reply);
                }
            },
            plan => {
                let nexus = Arc::clone(&device.nexus);
                let begun = Begun { nexus, volume, asked, lun };
                self.begin_other(context, command, &begun, plan);
            }
        }
    }

    fn begin_other<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        command: &ScsiCommand,
        begun: &Begun,
        plan: Plan,
    ) {
        match plan {
            Plan::Read(_) => {}
            Plan::Write(extent) => {
                let Some(medium) = context.media.of(begun.volume) else {
                    begun.nexus.end_write(begun.lun, &extent);
                    let reply = begun.nexus.medium_failed(begun.lun, MediumError::Hardware);
                    return self.reply_after_data(context, command, begun, reply);
                };
                // No data may reach a volume before its digest was checked.
                let work = match medium {
                    VolumeAccess::Memory(_) if !self.digests_data() => TaskWork::MemoryWrite(extent),
                    _ => TaskWork::BufferedWrite(extent),
                };
                self.begin_write(context, command, begun, extent.len_bytes, work);
            }
            Plan::Reply(reply) => self.reply_after_data(context, command, begun, reply),
            Plan::Task(task) => self.begin_steps(context, command, begun, task),
        }
    }

    /// Answers a command that needs nothing more, after its unsolicited data has arrived.
    fn reply_after_data<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        command: &ScsiCommand,
        begun: &Begun,
        reply: Reply,
    ) {
        if command.data_len == 0 && (command.final_pdu || !command.write) {
            return self.reply(context, begun.asked, &reply);
        }
        self.begin_write(context, command, begun, 0, TaskWork::Drain(reply));
    }

    /// Starts a task that receives data; the device needs the first `wanted` bytes.
    fn begin_write<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        command: &ScsiCommand,
        begun: &Begun,
        wanted: u32,
        work: TaskWork,
    ) {
        let data_follows = command.data_len > 0 || !command.final_pdu;
        if let TaskWork::BufferedWrite(extent) = &work
            && data_follows
            && self.must_not_wait(context, wanted)
        {
            begun.nexus.end_write(begun.lun, extent);
            return self.reply_after_data(context, command, begun, Reply::status(Status::TaskSetFull));
        }
        let Some(session) = in_full_feature(&mut self.session) else { return };
        let slot = self.tasks.next_slot();
        let write = match TargetWrite::begin(command, wanted, &session.params, slot) {
            Ok(write) => write,
            Err(error) => {
                tracing::debug!(event = "write_refused", peer = %self.peer, %error, "a write is refused");
                if let TaskWork::MemoryWrite(extent) | TaskWork::BufferedWrite(extent) = &work {
                    begun.nexus.end_write(begun.lun, extent);
                }
                context.counters.check_conditions += 1;
                if let Some(mut answers) = self.answers() {
                    answers.abort_command(begun.asked, error.sense());
                }
                return;
            }
        };
        let needs_buffers = matches!(work, TaskWork::BufferedWrite(_)) && wanted > 0;
        let task = self.begin_task(context, begun, work, Some(write));
        if command.data_len > 0 {
            self.sink = Sink::Task { task, base: 0 };
        }
        if needs_buffers && !self.take_buffers(context, task, wanted, data_follows) {
            return;
        }
        self.go_on_writing(context, task, command.data_len > 0);
    }

    fn begin_task<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        begun: &Begun,
        work: TaskWork,
        write: Option<TargetWrite>,
    ) -> TaskId {
        context.counters.tasks += 1;
        self.tasks.insert(NewTask {
            itt: begun.asked.itt,
            immediate: begun.asked.immediate,
            lun: begun.lun,
            volume: begun.volume,
            expected_in: begun.asked.expected_in,
            expected_out: begun.asked.expected_out,
            work,
            write,
            epoch: begun.nexus.abort_epoch(begun.lun),
            since: context.now,
        })
    }

    fn read_buffered<D: Driver>(&mut self, context: &mut WorkerContext<D>, begun: &Begun, extent: Extent) {
        if extent.len_bytes == 0 {
            return self.reply(
                context,
                begun.asked,
                &Reply { asked_out_bytes: extent.asked_bytes, ..Reply::good() },
            );
        }
        let task = self.begin_task(context, begun, TaskWork::BufferedRead(extent), None);
        if self.take_buffers(context, task, extent.len_bytes, false) {
            self.start_read(context, task, extent);
        }
    }

    /// Reads into the buffers that the task has.
    pub(super) fn start_read<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        extent: Extent,
    ) {
        let origin = self.origin(task);
        let Some(entry) = self.tasks.known(task) else { return };
        let medium = match context.media.of(entry.volume) {
            Some(VolumeAccess::File(file)) => Executor::File(file),
            Some(VolumeAccess::Managed(volume)) => Executor::Engine(volume),
            Some(VolumeAccess::Memory(pages)) => {
                pages.count(IoDirection::Read, extent.offset_bytes, extent.len_bytes.into());
                return self.buffered_read_done(context, task, &extent, Ok(ReadData::InVolume));
            }
            None => return self.buffered_read_done(context, task, &extent, Err(MediumError::Hardware)),
        };
        let chunks = entry.lend(Buffers::Operation);
        self.operations += 1;
        // A digest is that of bytes that cannot change any more.
        let is_digested = self.session.as_ref().is_none_or(|session| session.digests_data());
        let in_place = extent.len_bytes >= IN_PLACE_BYTES_MIN && !is_digested;
        let operation = Operation::Read { offset_bytes: extent.offset_bytes, in_place };
        context.begin_operation(origin, chunks, medium, operation);
    }

    fn begin_steps<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        command: &ScsiCommand,
        begun: &Begun,
        task: Box<Task>,
    ) {
        let steps = Steps { task, data: Vec::new(), collects: false, operation: None };
        let task = self.begin_task(context, begun, TaskWork::Steps(Box::new(steps)), None);
        self.drive(context, task, Input::Start, Some(command));
    }

    /// Sends the reply of the unit.
    pub(super) fn reply<D: Driver>(&mut self, context: &mut WorkerContext<D>, asked: Asked, reply: &Reply) {
        if reply.status == Status::CheckCondition {
            context.counters.check_conditions += 1;
        }
        if let Some(mut answers) = self.answers() {
            answers.reply(asked, reply);
        }
    }

    /// The origin of a task's volume operation.
    pub(super) fn origin(&self, task: TaskId) -> Origin {
        Origin { connection: self.key, task }
    }

    /// Frees a task's slot.
    pub(super) fn end_task<D: Driver>(&mut self, context: &mut WorkerContext<D>, task: TaskId) {
        self.tasks.remove(task, &mut context.pool, &mut self.share);
        context.counters.tasks -= 1;
    }
}
