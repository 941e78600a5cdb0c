//! Commands of several steps, and volume operations that have come back.

use super::{Connection, inbound::Sink, reply::Asked, tasks::Work};
use crate::{
    engine::{Answer, Operation, Outcome},
    volume::{Medium, VolumeId},
    worker::Core,
};
use linerate_io::{Driver, Handle, Seg};
use linerate_iscsi::{pdu::ScsiCommand, transfer::TargetWrite};
use linerate_scsi::{Input, MediumError, MediumOp, MediumResult, Reply, TaskStep};

/// What became of starting a volume operation.
enum Started {
    /// It is done already.
    Done(Result<MediumResult, MediumError>),
    /// It is under way.
    InFlight,
    /// No I/O buffers are free; here it is back.
    Later(MediumOp),
}

impl Connection {
    /// Drives a task until it waits for something. `command` is given while its data has not been dealt with.
    pub(super) fn drive<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        slot: u32,
        mut input: Input,
        mut command: Option<&ScsiCommand>,
    ) {
        loop {
            let Some(entry) = self.tasks.live(slot) else { return };
            let Work::Steps(steps) = &mut entry.work else { return };
            match steps.task.next(input) {
                TaskStep::DataOut { len_bytes } => {
                    if let Some(command) = command.take() {
                        return self.collect(core, slot, command, len_bytes);
                    }
                    input = Input::DataOut(Vec::new());
                }
                TaskStep::Medium { lun, op } => {
                    let Some(volume) = self.volume_of(lun) else {
                        input = Input::Medium(Err(MediumError::Hardware));
                        continue;
                    };
                    match self.start_operation(core, slot, volume, op) {
                        Started::Done(result) => input = Input::Medium(result),
                        Started::InFlight => return self.drain(core, slot, command),
                        Started::Later(op) => {
                            self.remember(slot, Some((volume, op)));
                            core.waiting.push((self.key.index, slot));
                            return self.drain(core, slot, command);
                        }
                    }
                }
                TaskStep::Wait => {
                    core.waiting.push((self.key.index, slot));
                    return self.drain(core, slot, command);
                }
                TaskStep::Done(reply) => return self.task_is_done(core, slot, reply, command),
                TaskStep::Aborted => {
                    let asked = self.tasks.live(slot).map(|entry| Asked::from(&*entry));
                    if let (Some(asked), Some(mut answers)) = (asked, self.answers()) {
                        answers.forget(asked);
                    }
                    return self.end_task(core, slot);
                }
            }
        }
    }

    /// Begins to collect the data-out that a task asks for.
    fn collect<D: Driver>(&mut self, core: &mut Core<D>, slot: u32, command: &ScsiCommand, wanted: u32) {
        let Some(session) = self.session.as_ref() else { return };
        let wanted = wanted.min(command.expected_len);
        let begun = TargetWrite::begin(command, wanted, &session.params, slot);
        let Some(entry) = self.tasks.live(slot) else { return };
        match begun {
            Ok(write) => {
                entry.write = Some(write);
                if command.data_len > 0 {
                    self.sink = Sink::Task { slot, base: 0 };
                }
                self.go_on_writing(core, slot, command.data_len > 0);
            }
            Err(error) => {
                let asked = Asked::from(&*entry);
                core.counters.check_conditions += 1;
                if let Some(mut answers) = self.answers() {
                    answers.abort_command(asked, error.sense());
                }
                self.end_task(core, slot);
            }
        }
    }

    /// A task that asked for no data: what the initiator sends all the same is taken in and dropped.
    fn drain<D: Driver>(&mut self, core: &mut Core<D>, slot: u32, command: Option<&ScsiCommand>) {
        if let Some(command) = command.filter(|command| command.data_len > 0 || !command.final_pdu) {
            self.collect(core, slot, command, 0);
        }
    }

    fn task_is_done<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        slot: u32,
        mut reply: Reply,
        command: Option<&ScsiCommand>,
    ) {
        let Some(entry) = self.tasks.live(slot) else { return };
        if let Work::Steps(steps) = &entry.work {
            reply.asked_out_bytes = reply.asked_out_bytes.max(steps.task.asked_out_bytes());
        }
        let data_comes =
            command.is_some_and(|command| command.data_len > 0 || (command.write && !command.final_pdu));
        let unfinished = entry.write.as_ref().is_some_and(|write| !write.is_complete());
        if data_comes || unfinished {
            entry.work = Work::Drain(reply);
            return self.drain(core, slot, command);
        }
        let asked = Asked::from(&*entry);
        self.end_task(core, slot);
        self.reply(core, asked, &reply);
    }

    /// Tries a task again that waited: for other commands, or for I/O buffers.
    pub(crate) fn resume_task<D: Driver>(&mut self, core: &mut Core<D>, slot: u32) {
        let Some(entry) = self.tasks.live(slot) else { return };
        let Work::Steps(steps) = &mut entry.work else { return };
        match steps.operation.take() {
            None => self.drive(core, slot, Input::Resume, None),
            Some((volume, op)) => match self.start_operation(core, slot, volume, op) {
                Started::Done(result) => self.drive(core, slot, Input::Medium(result), None),
                Started::InFlight => {}
                Started::Later(op) => {
                    self.remember(slot, Some((volume, op)));
                    core.waiting.push((self.key.index, slot));
                }
            },
        }
        self.flush(core);
    }

    fn volume_of(&self, lun: u16) -> Option<VolumeId> {
        self.session.as_ref()?.device.as_ref()?.target.volume(lun)
    }

    fn remember(&mut self, slot: u32, operation: Option<(VolumeId, MediumOp)>) {
        if let Some(entry) = self.tasks.get_mut(slot)
            && let Work::Steps(steps) = &mut entry.work
        {
            steps.operation = operation;
        }
    }

    fn start_operation<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        slot: u32,
        volume: VolumeId,
        op: MediumOp,
    ) -> Started {
        let medium = match core.media.of(Some(volume)) {
            Some(Medium::Memory(pages)) => return Started::Done(Ok(pages.perform(op))),
            Some(Medium::File(file)) => On::File(file),
            Some(Medium::Managed(volume)) => On::Engine(volume),
            None => return Started::Done(Err(MediumError::Hardware)),
        };
        let tag = self.tag(slot);
        let Some(entry) = self.tasks.get_mut(slot) else { return Started::InFlight };
        let buffered = match &op {
            MediumOp::Read { len_bytes, .. } | MediumOp::Fill { len_bytes, .. } => *len_bytes,
            MediumOp::Write { data, .. } => data.len() as u32,
            _ => 0,
        };
        if buffered > 0 && !matches!(core.pool.take(&mut core.driver, buffered, &mut entry.segs), Ok(true)) {
            return Started::Later(op);
        }
        match &op {
            MediumOp::Write { data, .. } => core.pool.write(&entry.segs, 0, data),
            MediumOp::Fill { pattern, .. } => core.pool.fill(&entry.segs, pattern),
            _ => {}
        }
        match medium {
            On::Engine(volume) => core.ask_engine(volume, operation(&op), &entry.segs, tag),
            On::File(file) => {
                if let Some(result) = start_on_file(&mut core.driver, file, tag, &entry.segs, &op) {
                    return Started::Done(Ok(result));
                }
            }
        }
        entry.operating = true;
        self.operations += 1;
        // The bytes of a write are in I/O buffers now; what is kept says how to read the result.
        let kept = match op {
            MediumOp::Write { offset_bytes, durable, .. } => {
                MediumOp::Write { offset_bytes, data: Vec::new(), durable }
            }
            other => other,
        };
        self.remember(slot, Some((volume, kept)));
        Started::InFlight
    }

    /// A volume operation of a task has come back.
    pub(crate) fn medium_done<D: Driver>(&mut self, core: &mut Core<D>, slot: u32, result: Outcome) {
        self.operations -= 1;
        let Some(entry) = self.tasks.get_mut(slot) else { return };
        entry.operating = false;
        let wanted: usize = entry.segs.iter().map(|seg| seg.len as usize).sum();
        if entry.aborted || self.session.is_none() {
            self.end_write(slot);
            return self.end_task(core, slot);
        }
        match &mut entry.work {
            Work::BufferedRead(extent) => {
                let extent = *extent;
                let failed = result.moved(wanted).err().map(|fault| fault.on_read());
                self.buffered_read_done(core, slot, &extent, failed);
            }
            Work::BufferedWrite(extent) => {
                let extent = *extent;
                match result.moved(wanted) {
                    Ok(()) => self.write_is_done(core, slot, &extent),
                    Err(fault) => self.write_failed(core, slot, fault.on_write()),
                }
            }
            Work::Steps(steps) => {
                let operation = steps.operation.take();
                let result = match (&operation, result) {
                    (_, Outcome(Ok(Answer::Mapped { mapped, len_bytes }))) => {
                        Ok(MediumResult::Mapped { mapped, len_bytes })
                    }
                    (Some((_, MediumOp::Read { .. })), result) => {
                        result.moved(wanted).map_err(|fault| fault.on_read()).map(|()| {
                            let mut data = vec![0; wanted];
                            core.pool.read(&entry.segs, 0, &mut data);
                            MediumResult::Data(data)
                        })
                    }
                    (_, result) => {
                        result.moved(wanted).map_err(|fault| fault.on_write()).map(|()| MediumResult::Done)
                    }
                };
                core.pool.give_back(&mut entry.segs);
                self.drive(core, slot, Input::Medium(result), None);
            }
            Work::MemoryWrite(_) | Work::Drain(_) | Work::Free => {}
        }
        self.resume(core);
    }

    fn buffered_read_done<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        slot: u32,
        extent: &linerate_scsi::Extent,
        error: Option<MediumError>,
    ) {
        let silent = self.end_write(slot);
        let Some(entry) = self.tasks.get_mut(slot) else { return };
        let (asked, lun) = (Asked::from(&*entry), entry.lun);
        let mut segs = std::mem::take(&mut entry.segs);
        let pool = &core.pool;
        let crc = |crc: linerate_iscsi::digest::Crc32c, seg: Seg| {
            let mut crc = crc;
            pool.region(seg).for_each_chunk(seg.offset, u64::from(seg.len), |chunk| crc = crc.update(chunk));
            crc
        };
        let failed = match self.answers() {
            Some(mut answers) if silent => {
                answers.forget(asked);
                None
            }
            Some(mut answers) if error.is_none() => {
                answers.read_buffers(asked, extent, &mut segs, crc);
                answers.session.counters.reads += 1;
                answers.session.counters.read_bytes += u64::from(extent.len_bytes);
                core.counters.reads += 1;
                core.counters.read_bytes += u64::from(extent.len_bytes);
                None
            }
            Some(answers) => {
                let device = answers.session.device.as_ref();
                device.zip(error).map(|(device, error)| device.nexus.medium_failed(lun, error))
            }
            None => None,
        };
        // Whatever was not handed to the answer goes back with the slot; the vector keeps its memory there.
        if let Some(entry) = self.tasks.get_mut(slot) {
            entry.segs = segs;
        }
        self.end_task(core, slot);
        if let Some(reply) = failed {
            self.reply(core, asked, &reply);
        }
    }

    pub(super) fn write_failed<D: Driver>(&mut self, core: &mut Core<D>, slot: u32, error: MediumError) {
        let silent = self.end_write(slot);
        let Some(entry) = self.tasks.get_mut(slot) else { return };
        let (asked, lun) = (Asked::from(&*entry), entry.lun);
        self.end_task(core, slot);
        let Some(mut answers) = self.answers() else { return };
        if silent {
            return answers.forget(asked);
        }
        let device = answers.session.device.as_ref();
        if let Some(reply) = device.map(|device| device.nexus.medium_failed(lun, error)) {
            self.reply(core, asked, &reply);
        }
    }
}

/// Where an operation that takes its time is done.
enum On {
    File(Handle),
    Engine(u32),
}

/// An operation as the engine is asked for it. The bytes are in I/O buffers.
fn operation(op: &MediumOp) -> Operation {
    match *op {
        MediumOp::Keep { number, ref reservations } => {
            Operation::Keep { number, reservations: reservations.clone() }
        }
        MediumOp::Read { offset_bytes, .. } => Operation::Read { offset_bytes },
        MediumOp::Write { offset_bytes, durable, .. } | MediumOp::Fill { offset_bytes, durable, .. } => {
            Operation::Write { offset_bytes, durable }
        }
        MediumOp::Discard { offset_bytes, len_bytes } => Operation::Discard { offset_bytes, len_bytes },
        MediumOp::Sync { .. } => Operation::Sync,
        MediumOp::Mapped { offset_bytes, len_bytes } => Operation::Mapped { offset_bytes, len_bytes },
    }
}

/// Starts an operation on a file, unless its result is known at once.
fn start_on_file<D: Driver>(
    driver: &mut D,
    file: Handle,
    tag: u64,
    segs: &[Seg],
    op: &MediumOp,
) -> Option<MediumResult> {
    match *op {
        MediumOp::Read { offset_bytes, .. } => driver.read_at(file, tag, segs, offset_bytes),
        MediumOp::Write { offset_bytes, durable, .. } | MediumOp::Fill { offset_bytes, durable, .. } => {
            driver.write_at(file, tag, segs, offset_bytes, durable);
        }
        MediumOp::Discard { offset_bytes, len_bytes } => driver.discard(file, tag, offset_bytes, len_bytes),
        MediumOp::Sync { .. } => driver.sync(file, tag),
        MediumOp::Mapped { len_bytes, .. } => return Some(MediumResult::Mapped { mapped: true, len_bytes }),
        // A volume in a file keeps none, and says so.
        MediumOp::Keep { .. } => return Some(MediumResult::Done),
    }
    None
}
