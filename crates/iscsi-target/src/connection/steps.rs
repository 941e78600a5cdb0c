//! Commands of several steps, and the ends of volume operations.

use super::{
    Connection,
    inbound::Sink,
    management::Due,
    reply::Asked,
    session::in_full_feature,
    tasks::{Buffers, TaskId, TaskWork},
};
use crate::{
    buffers::operation::Executor,
    buffers::pool::Chunks,
    context::WorkerContext,
    engine::{InPlace, Operation, OperationOutput, OperationResult},
    memory_volume::MemoryVolume,
    volume::{VolumeAccess, VolumeId},
};
use linerate_io::Driver;
use linerate_iscsi_proto::{pdu::ScsiCommand, transfer::TargetWrite};
use linerate_scsi::{Input, MediumError, MediumOp, MediumResult, Reply, Status, TaskStep};

/// The result of starting a volume operation.
enum Started {
    /// It has ended already.
    Done(Result<MediumResult, MediumError>),
    /// It is in progress.
    InFlight,
    /// No I/O buffers may be taken now; the operation is returned.
    Later(MediumOp),
}

/// Where the bytes of a read are.
#[derive(Debug)]
pub(super) enum ReadData {
    InBuffers,
    /// In the memory of disks.
    OnDisks(InPlace),
    /// A volume in memory. Other commands may write to it before they are sent: only a copy matches its digest.
    InVolume,
}

/// What a read that is done is sent from.
enum Source<'a> {
    Buffers,
    Disks(InPlace),
    Volume(&'a MemoryVolume),
}

impl Connection {
    /// Runs a task until it must wait. `command` is given until its data has been handled.
    pub(super) fn drive<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        mut input: Input,
        mut command: Option<&ScsiCommand>,
    ) {
        loop {
            let Some(entry) = self.tasks.live(task) else { return };
            let TaskWork::Steps(steps) = &mut entry.work else {
                unreachable!("only a command of several steps is driven");
            };
            match steps.task.next(input) {
                TaskStep::DataOut { len_bytes } => {
                    if let Some(command) = command.take() {
                        steps.collects = true;
                        return self.collect(context, task, command, len_bytes);
                    }
                    input = Input::DataOut(Vec::new());
                }
                TaskStep::Medium { lun, op } => {
                    let Some(volume) = self.volume_of(lun) else {
                        input = Input::Medium(Err(MediumError::Hardware));
                        continue;
                    };
                    match self.start_operation(context, task, volume, op) {
                        Started::Done(result) => input = Input::Medium(result),
                        Started::InFlight => return self.drain(context, task, command),
                        Started::Later(op) => {
                            self.remember(task, Some((volume, op)));
                            context.wait_for_others(self.origin(task));
                            return self.drain(context, task, command);
                        }
                    }
                }
                TaskStep::Wait => {
                    context.wait_for_others(self.origin(task));
                    return self.drain(context, task, command);
                }
                TaskStep::Done(reply) => return self.task_is_done(context, task, reply, command),
                TaskStep::Aborted => {
                    let asked = self.tasks.live(task).map(|entry| Asked::from(&*entry));
                    if let (Some(asked), Some(mut answers)) = (asked, self.answers()) {
                        answers.forget(asked);
                    }
                    return self.end_task(context, task);
                }
            }
        }
    }

    /// Begins to collect the data-out that a task requires.
    fn collect<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        command: &ScsiCommand,
        wanted: u32,
    ) {
        let Some(session) = in_full_feature(&mut self.session) else { return };
        let wanted = wanted.min(command.expected_len);
        let Some(charge) = context.pool.charge(&mut self.share, wanted) else {
            return self.refuse_data(context, task, command);
        };
        let begun = TargetWrite::begin(command, wanted, &session.params, task.slot);
        let Some(entry) = self.tasks.live(task) else {
            return context.pool.discharge(&mut self.share, charge);
        };
        context.pool.discharge(&mut self.share, std::mem::replace(&mut entry.charge, charge));
        match begun {
            Ok(write) => {
                entry.write = Some(write);
                if command.data_len > 0 {
                    self.sink = Sink::Task { task, base: 0 };
                }
                self.go_on_writing(context, task, command.data_len > 0);
            }
            Err(error) => self.fail_transfer(context, task, error.sense()),
        }
    }

    /// There is no memory for a task's data: the task ends when its unsolicited data has arrived.
    fn refuse_data<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        command: &ScsiCommand,
    ) {
        self.task_is_done(context, task, Reply::status(Status::TaskSetFull), Some(command));
    }

    /// A task that requires no data: data that the initiator sends nevertheless is received and dropped.
    fn drain<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        command: Option<&ScsiCommand>,
    ) {
        if let Some(command) = command.filter(|command| command.data_len > 0 || !command.final_pdu) {
            self.collect(context, task, command, 0);
        }
    }

    fn task_is_done<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        mut reply: Reply,
        command: Option<&ScsiCommand>,
    ) {
        let Some(entry) = self.tasks.live(task) else { return };
        if let TaskWork::Steps(steps) = &entry.work {
            reply.asked_out_bytes = reply.asked_out_bytes.max(steps.task.asked_out_bytes());
        }
        let data_comes =
            command.is_some_and(|command| command.data_len > 0 || (command.write && !command.final_pdu));
        let unfinished = entry.write.as_ref().is_some_and(|write| !write.is_complete());
        if data_comes || unfinished {
            entry.work = TaskWork::Drain(reply);
            return self.drain(context, task, command);
        }
        let asked = Asked::from(&*entry);
        self.end_task(context, task);
        if reply.ended_tasks {
            let (_, guard) = self.guard(context, Due::Reply { asked, reply });
            return context.end_outdated_tasks(guard);
        }
        self.reply(context, asked, &reply);
    }

    /// Tries a task again that waited for other commands or for I/O buffers.
    pub(crate) fn resume_task<D: Driver>(&mut self, context: &mut WorkerContext<D>, task: TaskId) {
        let Some(entry) = self.tasks.live(task) else { return };
        let TaskWork::Steps(steps) = &mut entry.work else {
            unreachable!("only a command of several steps waits to be resumed");
        };
        match steps.operation.take() {
            None => self.drive(context, task, Input::Resume, None),
            Some((volume, op)) => match self.start_operation(context, task, volume, op) {
                Started::Done(result) => self.drive(context, task, Input::Medium(result), None),
                Started::InFlight => {}
                Started::Later(op) => {
                    self.remember(task, Some((volume, op)));
                    context.wait_for_others(self.origin(task));
                }
            },
        }
        self.flush(context);
    }

    fn volume_of(&self, lun: u16) -> Option<VolumeId> {
        self.session.as_ref()?.device.as_ref()?.target.volume(lun)
    }

    fn remember(&mut self, task: TaskId, operation: Option<(VolumeId, MediumOp)>) {
        if let Some(entry) = self.tasks.get_mut(task)
            && let TaskWork::Steps(steps) = &mut entry.work
        {
            steps.operation = operation;
        }
    }

    fn start_operation<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        volume: VolumeId,
        op: MediumOp,
    ) -> Started {
        let medium = match context.media.of(Some(volume)) {
            Some(VolumeAccess::Memory(pages)) => return Started::Done(Ok(pages.perform(op))),
            Some(VolumeAccess::File(file)) => match known_of_file(&op) {
                Some(result) => return Started::Done(Ok(result)),
                None => Executor::File(file),
            },
            Some(VolumeAccess::Managed(volume)) => Executor::Engine(volume),
            None => return Started::Done(Err(MediumError::Hardware)),
        };
        let buffered = match &op {
            MediumOp::Read { len_bytes, .. } | MediumOp::Fill { len_bytes, .. } => *len_bytes,
            MediumOp::Write { data, .. } => data.len() as u32,
            _ => 0,
        };
        let chunks = match buffered {
            0 => Chunks::NONE,
            len => match context.pool.take(&mut context.driver, &mut self.share, len) {
                Some(chunks) => chunks,
                None => return Started::Later(op),
            },
        };
        match &op {
            MediumOp::Write { data, .. } => context.pool.write(chunks.segs(), 0, data),
            MediumOp::Fill { pattern, .. } => context.pool.fill(chunks.segs(), pattern),
            _ => {}
        }
        let origin = self.origin(task);
        let Some(entry) = self.tasks.known(task) else {
            context.pool.give_back(&mut self.share, chunks);
            return Started::InFlight;
        };
        let none = entry.lend(Buffers::Operation);
        debug_assert!(none.is_empty(), "a step has no buffers before its operation");
        self.operations += 1;
        context.begin_operation(origin, chunks, medium, operation_of(&op));
        // The bytes of a write are in I/O buffers now; the kept part says how to read the result.
        let kept = match op {
            MediumOp::Write { offset_bytes, durable, .. } => {
                MediumOp::Write { offset_bytes, data: Vec::new(), durable }
            }
            other => other,
        };
        self.remember(task, Some((volume, kept)));
        Started::InFlight
    }

    /// A volume operation of a task has ended and returns its buffers. When it has passed on all that have ended, the
    /// caller calls [`Connection::resume`].
    pub(crate) fn medium_done<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        chunks: Chunks,
        result: OperationResult,
        in_place: Option<InPlace>,
    ) {
        self.operations -= 1;
        let wanted = chunks.len_bytes();
        let Some(entry) = self.tasks.known(task) else {
            return context.pool.give_back(&mut self.share, chunks);
        };
        entry.take_back(chunks);
        if entry.aborted || self.session.is_none() {
            self.end_write(task);
            return self.end_task(context, task);
        }
        match &mut entry.work {
            TaskWork::BufferedRead(extent) => {
                let extent = *extent;
                let read = result.moved(wanted).map_err(|fault| fault.on_read());
                let read = read.map(|()| match in_place {
                    Some(in_place) if !in_place.parts.is_empty() => ReadData::OnDisks(in_place),
                    unused => {
                        if let Some(list) = unused {
                            context.spare_parts.keep(list.parts);
                        }
                        ReadData::InBuffers
                    }
                });
                self.buffered_read_done(context, task, &extent, read);
            }
            TaskWork::BufferedWrite(extent) => {
                let extent = *extent;
                match result.moved(wanted) {
                    Ok(()) => self.write_is_done(context, task, &extent),
                    Err(fault) => self.write_failed(context, task, fault.on_write()),
                }
            }
            TaskWork::Steps(steps) => {
                let operation = steps.operation.take();
                let result = match (&operation, result) {
                    (_, OperationResult(Ok(OperationOutput::Mapped { mapped, len_bytes }))) => {
                        Ok(MediumResult::Mapped { mapped, len_bytes })
                    }
                    (Some((_, MediumOp::Read { .. })), result) => {
                        result.moved(wanted).map_err(|fault| fault.on_read()).map(|()| {
                            let mut data = vec![0; wanted];
                            context.pool.read(entry.segs(), 0, &mut data);
                            MediumResult::Data(data)
                        })
                    }
                    (_, result) => {
                        result.moved(wanted).map_err(|fault| fault.on_write()).map(|()| MediumResult::Done)
                    }
                };
                let chunks = std::mem::replace(&mut entry.buffers, Buffers::NONE);
                if let Buffers::Task(chunks) = chunks {
                    context.pool.give_back(&mut self.share, chunks);
                }
                self.drive(context, task, Input::Medium(result), None);
            }
            TaskWork::MemoryWrite(_) | TaskWork::Drain(_) | TaskWork::Free => {}
        }
    }

    /// The bytes of a read are there, or it has failed.
    pub(super) fn buffered_read_done<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        extent: &linerate_scsi::Extent,
        read: Result<ReadData, MediumError>,
    ) {
        let silent = self.end_write(task);
        let Some(entry) = self.tasks.known(task) else { return };
        let (asked, lun) = (Asked::from(&*entry), entry.lun);
        let source = match (read, context.media.of(entry.volume)) {
            (Ok(ReadData::InBuffers), _) => Ok(Source::Buffers),
            (Ok(ReadData::OnDisks(in_place)), _) => Ok(Source::Disks(in_place)),
            (Ok(ReadData::InVolume), Some(VolumeAccess::Memory(pages))) => Ok(Source::Volume(pages)),
            // Its set has failed since the command began.
            (Ok(ReadData::InVolume), _) => Err(MediumError::Hardware),
            (Err(error), _) => Err(error),
        };
        if let (Err(error), false) = (&source, silent) {
            let session = self.session.as_ref();
            let device = session.and_then(|session| session.device.as_ref());
            let reply = device.map(|device| device.nexus.medium_failed(lun, *error));
            self.end_task(context, task);
            return reply.iter().for_each(|reply| self.reply(context, asked, reply));
        }
        let buffers = std::mem::replace(&mut entry.buffers, Buffers::NONE);
        if let Buffers::Task(chunks) = buffers {
            match (self.answers(), source) {
                (Some(mut answers), Ok(source)) if !silent => {
                    answers.session.counters.reads += 1;
                    answers.session.counters.read_bytes += u64::from(extent.len_bytes);
                    context.counters.reads += 1;
                    context.counters.read_bytes += u64::from(extent.len_bytes);
                    match source {
                        Source::Buffers => answers.read_buffers(asked, extent, chunks, &mut context.pool),
                        Source::Disks(in_place) => {
                            answers.read_in_place(asked, extent, in_place, context);
                            context.pool.give_back(&mut self.share, chunks);
                        }
                        Source::Volume(pages) => {
                            answers.read_copied(asked, extent, pages, chunks, &mut context.pool);
                        }
                    }
                }
                (answers, _) => {
                    if let Some(mut answers) = answers {
                        answers.forget(asked);
                    }
                    context.pool.give_back(&mut self.share, chunks);
                }
            }
        }
        self.end_task(context, task);
    }

    pub(super) fn write_failed<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        error: MediumError,
    ) {
        let silent = self.end_write(task);
        let Some(entry) = self.tasks.known(task) else { return };
        let (asked, lun) = (Asked::from(&*entry), entry.lun);
        self.end_task(context, task);
        let Some(mut answers) = self.answers() else { return };
        if silent {
            return answers.forget(asked);
        }
        let device = answers.session.device.as_ref();
        if let Some(reply) = device.map(|device| device.nexus.medium_failed(lun, error)) {
            self.reply(context, asked, &reply);
        }
    }
}

/// The operation as a request. The bytes are in I/O buffers.
fn operation_of(op: &MediumOp) -> Operation {
    match *op {
        MediumOp::Keep { number, ref reservations } => {
            Operation::Keep { number, reservations: reservations.clone() }
        }
        MediumOp::Read { offset_bytes, .. } => Operation::Read { offset_bytes, in_place: false },
        MediumOp::Write { offset_bytes, durable, .. } | MediumOp::Fill { offset_bytes, durable, .. } => {
            Operation::Write { offset_bytes, durable }
        }
        MediumOp::Discard { offset_bytes, len_bytes } => Operation::Discard { offset_bytes, len_bytes },
        MediumOp::Sync { .. } => Operation::Sync,
        MediumOp::Mapped { offset_bytes, len_bytes } => Operation::Mapped { offset_bytes, len_bytes },
    }
}

/// The result of an operation on a volume in a file, if it is known without I/O.
fn known_of_file(op: &MediumOp) -> Option<MediumResult> {
    match *op {
        MediumOp::Mapped { len_bytes, .. } => Some(MediumResult::Mapped { mapped: true, len_bytes }),
        // It keeps no reservations, and reports this.
        MediumOp::Keep { .. } => Some(MediumResult::Done),
        _ => None,
    }
}
