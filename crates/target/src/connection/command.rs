//! SCSI commands: admitted to the window, judged by the unit, and started.

use super::{
    Connection,
    inbound::Sink,
    reply::{Answers, Asked},
    tasks::{Entry, Steps, Work},
};
use crate::{
    engine::Operation,
    joint::Joint,
    pages::Moved,
    pool::ChunkPool,
    volume::{Medium, VolumeId},
    worker::Core,
};
use linerate_io::Driver;
use linerate_iscsi::{
    pdu::{RejectReason, ScsiCommand},
    transfer::TargetWrite,
    window::Admission,
};
use linerate_scsi::{Expected, Extent, Input, MediumError, Nexus, Plan, Reply, Status, Task};
use std::sync::Arc;

/// A command that has been admitted, and where it leads.
struct Begun {
    nexus: Arc<Nexus>,
    volume: Option<VolumeId>,
    asked: Asked,
    lun: [u8; 8],
}

impl Connection {
    pub(super) fn scsi_command<D: Driver>(&mut self, core: &mut Core<D>, command: &ScsiCommand) {
        let Some(session) = self.session.as_mut() else { return };
        match session.window.admit(command.cmd_sn, command.immediate) {
            Admission::Run => {}
            Admission::Ignore => return,
            Admission::Gap => return self.protocol_error(core, "a gap in CmdSN"),
        }
        let Some(device) = &session.device else {
            return self.reject(core, RejectReason::ProtocolError);
        };
        // Immediate commands are outside the window, so they need a bound of their own.
        if command.immediate && self.tasks.len() >= 2 * core.limits.commands_per_session as usize {
            return self.reject(core, RejectReason::TooManyImmediate);
        }
        core.counters.commands += 1;
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
            Plan::Read(extent) => match core.media.of(volume) {
                Some(Medium::Memory(pages)) => {
                    pages.count(Moved::Read, extent.offset_bytes, u64::from(extent.len_bytes));
                    core.counters.reads += 1;
                    core.counters.read_bytes += u64::from(extent.len_bytes);
                    session.counters.reads += 1;
                    session.counters.read_bytes += u64::from(extent.len_bytes);
                    Answers { out: &mut self.outbound, session }.read_memory(asked, &extent, pages);
                }
                Some(Medium::File(_) | Medium::Managed(_)) => {
                    let begun = Begun { nexus: Arc::clone(&device.nexus), volume, asked, lun };
                    self.read_buffered(core, &begun, extent);
                }
                None => {
                    let reply = device.nexus.medium_failed(lun, MediumError::Hardware);
                    self.reply(core, asked, &reply);
                }
            },
            plan => {
                let nexus = Arc::clone(&device.nexus);
                let begun = Begun { nexus, volume, asked, lun };
                self.begin_other(core, command, &begun, plan);
            }
        }
    }

    fn begin_other<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        command: &ScsiCommand,
        begun: &Begun,
        plan: Plan,
    ) {
        match plan {
            Plan::Read(_) => {}
            Plan::Write(extent) => {
                let Some(medium) = core.media.of(begun.volume) else {
                    begun.nexus.end_write(begun.lun, &extent);
                    let reply = begun.nexus.medium_failed(begun.lun, MediumError::Hardware);
                    return self.reply_after_data(core, command, begun, reply);
                };
                let work = match medium {
                    Medium::Memory(_) => Work::MemoryWrite(extent),
                    Medium::File(_) | Medium::Managed(_) => Work::BufferedWrite(extent),
                };
                self.begin_write(core, command, begun, extent.len_bytes, work);
            }
            Plan::Reply(reply) => self.reply_after_data(core, command, begun, reply),
            Plan::Task(task) => self.begin_steps(core, command, begun, task),
        }
    }

    /// Answers a command that needs nothing more, once the data that the initiator may send unasked has come.
    fn reply_after_data<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        command: &ScsiCommand,
        begun: &Begun,
        reply: Reply,
    ) {
        if command.data_len == 0 && (command.final_pdu || !command.write) {
            return self.reply(core, begun.asked, &reply);
        }
        self.begin_write(core, command, begun, 0, Work::Drain(reply));
    }

    /// Starts a task that takes in data, of which the device wants the first `wanted` bytes.
    fn begin_write<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        command: &ScsiCommand,
        begun: &Begun,
        wanted: u32,
        work: Work,
    ) {
        if let Work::BufferedWrite(extent) = &work
            && self.must_not_wait(core, wanted)
        {
            begun.nexus.end_write(begun.lun, extent);
            return self.reply_after_data(core, command, begun, Reply::status(Status::TaskSetFull));
        }
        let Some(session) = self.session.as_ref() else { return };
        let slot = self.tasks.next_slot();
        let write = match TargetWrite::begin(command, wanted, &session.params, slot) {
            Ok(write) => write,
            Err(error) => {
                tracing::debug!(peer = %self.peer, %error, "a write is refused");
                if let Work::MemoryWrite(extent) | Work::BufferedWrite(extent) = &work {
                    begun.nexus.end_write(begun.lun, extent);
                }
                core.counters.check_conditions += 1;
                if let Some(mut answers) = self.answers() {
                    answers.abort_command(begun.asked, error.sense());
                }
                return;
            }
        };
        let needs_buffers = matches!(work, Work::BufferedWrite(_)).then_some(wanted);
        let entry = Self::entry(core, begun, work, Some(write));
        self.tasks.insert(entry);
        core.counters.tasks += 1;
        if command.data_len > 0 {
            self.sink = Sink::Task { slot, base: 0 };
        }
        if let Some(wanted) = needs_buffers
            && !self.take_buffers(core, slot, wanted)
        {
            return;
        }
        self.go_on_writing(core, slot, command.data_len > 0);
    }

    fn entry<D: Driver>(core: &Core<D>, begun: &Begun, work: Work, write: Option<TargetWrite>) -> Entry {
        Entry {
            itt: begun.asked.itt,
            immediate: begun.asked.immediate,
            lun: begun.lun,
            volume: begun.volume,
            expected_in: begun.asked.expected_in,
            expected_out: begun.asked.expected_out,
            work,
            write,
            segs: Vec::new(),
            epoch: begun.nexus.abort_epoch(begun.lun),
            since: core.now,
            operating: false,
            aborted: false,
        }
    }

    /// Whether waiting for `len` bytes of I/O buffers could be for ever: a connection that waits parses nothing, so the
    /// data of its writes that hold buffers would never be taken in. Such a command is answered TASK SET FULL.
    ///
    /// So is one whose session has a connection that waits for this one, with buffers perhaps.
    fn must_not_wait<D: Driver>(&self, core: &Core<D>, len: u32) -> bool {
        let is_waited_for = || self.joint.and_then(|id| core.joints.get(id)).is_some_and(Joint::is_stalled);
        !self.may_take(core, len) && (self.tasks.holds_for_peer() || is_waited_for())
    }

    /// Whether I/O buffers may be taken now. Once they run short, a connection that holds its share waits, so that one
    /// slow peer does not stop the others.
    fn may_take<D: Driver>(&self, core: &Core<D>, len: u32) -> bool {
        let has_share = || self.tasks.chunks() + self.outbound.chunks() >= ChunkPool::SHARE_CHUNKS;
        core.pool.has(len) && !(core.pool.is_short() && has_share())
    }

    /// Takes I/O buffers for a task. If none are free, the connection waits for them and parses nothing more.
    fn take_buffers<D: Driver>(&mut self, core: &mut Core<D>, slot: u32, len: u32) -> bool {
        let may_take = self.may_take(core, len);
        let Some(entry) = self.tasks.get_mut(slot) else { return false };
        if may_take && matches!(core.pool.take(&mut core.driver, len, &mut entry.segs), Ok(true)) {
            return true;
        }
        self.starved = Some(slot);
        core.starved.push_back(self.key.index);
        false
    }

    /// I/O buffers may be free again: tries to go on with the command that waits for them.
    pub(crate) fn feed<D: Driver>(&mut self, core: &mut Core<D>) {
        let Some(slot) = self.starved.take() else { return };
        let Some(entry) = self.tasks.live(slot) else { return self.resume(core) };
        let data_comes = self.sink == Sink::Task { slot, base: 0 };
        let (extent, writes) = match entry.work {
            Work::BufferedRead(extent) => (extent, false),
            Work::BufferedWrite(extent) => (extent, true),
            _ => return self.resume(core),
        };
        if self.take_buffers(core, slot, extent.len_bytes) {
            // Nothing was read from the peer meanwhile: its time begins anew.
            self.tasks.entries_mut().for_each(|entry| entry.since = core.now);
            if writes {
                self.go_on_writing(core, slot, data_comes);
            } else {
                self.start_read(core, slot, extent);
            }
        }
        self.resume(core);
    }

    fn read_buffered<D: Driver>(&mut self, core: &mut Core<D>, begun: &Begun, extent: Extent) {
        if extent.len_bytes == 0 {
            return self.reply(
                core,
                begun.asked,
                &Reply { asked_out_bytes: extent.asked_bytes, ..Reply::good() },
            );
        }
        if self.must_not_wait(core, extent.len_bytes) {
            return self.reply(core, begun.asked, &Reply::status(Status::TaskSetFull));
        }
        let slot = self.tasks.insert(Self::entry(core, begun, Work::BufferedRead(extent), None));
        core.counters.tasks += 1;
        if self.take_buffers(core, slot, extent.len_bytes) {
            self.start_read(core, slot, extent);
        }
    }

    fn start_read<D: Driver>(&mut self, core: &mut Core<D>, slot: u32, extent: Extent) {
        let tag = self.tag(slot);
        let Some(entry) = self.tasks.get_mut(slot) else { return };
        entry.operating = true;
        self.operations += 1;
        match core.media.of(entry.volume) {
            Some(Medium::File(file)) => core.driver.read_at(file, tag, &entry.segs, extent.offset_bytes),
            Some(Medium::Managed(volume)) => {
                let operation = Operation::Read { offset_bytes: extent.offset_bytes };
                core.ask_engine(volume, operation, &entry.segs, tag);
            }
            // Its bytes need no buffers.
            Some(Medium::Memory(_)) | None => {}
        }
    }

    fn begin_steps<D: Driver>(
        &mut self,
        core: &mut Core<D>,
        command: &ScsiCommand,
        begun: &Begun,
        task: Box<Task>,
    ) {
        let steps = Steps { task, data: Vec::new(), operation: None };
        let slot = self.tasks.next_slot();
        self.tasks.insert(Self::entry(core, begun, Work::Steps(Box::new(steps)), None));
        core.counters.tasks += 1;
        self.drive(core, slot, Input::Start, Some(command));
    }

    /// Answers with what the unit said.
    pub(super) fn reply<D: Driver>(&mut self, core: &mut Core<D>, asked: Asked, reply: &Reply) {
        if reply.status == Status::CheckCondition {
            core.counters.check_conditions += 1;
        }
        if let Some(mut answers) = self.answers() {
            answers.reply(asked, reply);
        }
    }

    /// What a volume operation of a task is tagged with, so that its completion finds the task.
    pub(super) fn tag(&self, slot: u32) -> u64 {
        u64::from(self.key.index) << 32 | u64::from(slot)
    }

    /// Frees a task's slot.
    pub(super) fn end_task<D: Driver>(&mut self, core: &mut Core<D>, slot: u32) {
        self.tasks.remove(slot, &mut core.pool);
        core.counters.tasks -= 1;
    }
}
