//! I/O memory of one connection: taken within its share, with a queue of waiting tasks, and lent to receives and
//! operations.
//!
//! If a command may not have its I/O buffers now, it waits for them, and parsing continues. So the peer's other
//! messages are handled, and the data of writes with buffers is received. Parsing stops only if data without a buffer
//! follows (immediate and other unsolicited data). If that could last for ever, the command is answered with TASK SET
//! FULL.

use super::{
    Connection,
    inbound::{DIRECT_MIN_BYTES, Direct, Sink},
    tasks::{Buffers, TaskId, TaskWork},
};
use crate::{buffers::pool::pieces, context::WorkerContext, mcs::McsSession, volume::VolumeAccess};
use linerate_io::{Driver, Nanos, Seg};

impl Connection {
    /// Takes I/O buffers for a task. False: it waits for them. `data_follows`: unsolicited data of the task comes next.
    pub(super) fn take_buffers<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        len: u32,
        data_follows: bool,
    ) -> bool {
        let Some(entry) = self.tasks.known(task) else { return false };
        if self.awaiting.is_empty()
            && let Some(chunks) = context.pool.take(&mut context.driver, &mut self.share, len)
        {
            entry.buffers = Buffers::Task(chunks);
            return true;
        }
        entry.buffers = Buffers::Awaited;
        self.awaiting.push_back(task);
        if data_follows {
            self.blocked = Some(task);
        }
        self.queue_up(context);
        false
    }

    /// Whether a wait for buffers before unsolicited data could last for ever. A connection that is not parsed receives
    /// no data of its other writes, and other connections of its session, which may have buffers, may wait for it.
    pub(super) fn must_not_wait<D: Driver>(&self, context: &WorkerContext<D>, len: u32) -> bool {
        let may_take = self.awaiting.is_empty() && context.pool.may_take(&self.share, len);
        let is_waited_for =
            || self.mcs.and_then(|id| context.mcs_sessions.get(id)).is_some_and(McsSession::is_stalled);
        !may_take && (self.tasks.has_unfinished_write() || is_waited_for())
    }

    /// The worker must call when memory is free again.
    fn queue_up<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        if !self.queued {
            self.queued = true;
            context.waiting_for_buffers.push_back(self.key);
        }
    }

    /// The time since which its first task waits for memory.
    pub(crate) fn waiting_for_buffers_since(&self) -> Option<Nanos> {
        self.tasks.since(*self.awaiting.front()?)
    }

    /// Memory may be free again: continues with the waiting tasks, in order.
    pub(crate) fn resume_with_buffers<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        self.queued = false;
        while let Some(&task) = self.awaiting.front() {
            let Some(entry) = self.tasks.live(task) else {
                self.awaiting.pop_front();
                continue;
            };
            let (TaskWork::BufferedRead(extent) | TaskWork::BufferedWrite(extent)) = entry.work else {
                unreachable!("only reads and writes wait for I/O buffers");
            };
            let Some(chunks) = context.pool.take(&mut context.driver, &mut self.share, extent.len_bytes)
            else {
                self.queue_up(context);
                break;
            };
            entry.buffers = Buffers::Task(chunks);
            // From now on the peer must send the data.
            entry.since = context.now;
            let writes = entry.write.is_some();
            self.awaiting.pop_front();
            self.blocked.take_if(|blocked| *blocked == task);
            if writes {
                let data_comes = self.sink == Sink::Task { task, base: 0 };
                self.go_on_writing(context, task, data_comes);
            } else {
                self.start_read(context, task, extent);
            }
        }
        self.resume(context);
    }

    /// A task has ended; it may have waited for memory.
    pub(super) fn leave_queue(&mut self, task: TaskId) {
        if self.awaiting.is_empty() {
            return;
        }
        self.awaiting.retain(|waiting| *waiting != task);
        // Its data is dropped when it arrives, so it needs no buffer.
        self.blocked.take_if(|blocked| *blocked == task);
    }

    /// The destination of the rest of the data segment, if a direct receive is faster; `segs` is filled.
    pub(super) fn direct_target<D: Driver>(
        &mut self,
        context: &WorkerContext<D>,
        segs: &mut Vec<Seg>,
    ) -> Option<Direct> {
        let remaining = self.receiver.direct_remaining();
        // Data without a task is received into the receive buffer.
        let Sink::Task { task, base } = self.sink else { return None };
        if remaining < DIRECT_MIN_BYTES {
            return None;
        }
        let segment_len = linerate_iscsi_proto::pdu::data_len(self.receiver.bhs());
        let at = base + segment_len - remaining;
        let entry = self.tasks.live(task)?;
        let wanted = entry.write.as_ref().map_or(0, |write| write.wanted().saturating_sub(at));
        let len = remaining.min(wanted);
        if len == 0 {
            return None;
        }
        match &entry.work {
            TaskWork::MemoryWrite(extent) => {
                // Its set has failed since the command began.
                let Some(VolumeAccess::Memory(pages)) = context.media.of(entry.volume) else { return None };
                let offset = extent.offset_bytes + u64::from(at);
                segs.extend(pages.parts(offset, u64::from(len)).map(|part| part.seg()));
            }
            TaskWork::BufferedWrite(_) => {
                segs.extend(pieces(entry.segs(), at, len).map(|(seg, start, len)| Seg {
                    offset: seg.offset + u64::from(start),
                    len,
                    ..seg
                }));
            }
            _ => return None,
        }
        let chunks = entry.lend(Buffers::Receive);
        Some(Direct { task, chunks, at, len })
    }

    /// Cancels the part of the current receive that belongs to a task, unless it has just finished.
    pub(super) fn retract<D: Driver>(&mut self, context: &mut WorkerContext<D>, task: TaskId) {
        if let Some(chunks) = self.inbound.retract(self.stream, task, &mut context.driver)
            && let Some(entry) = self.tasks.get_mut(task)
        {
            entry.take_back(chunks);
        }
    }

    /// The same for any task.
    pub(super) fn retract_all<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        if let Some(task) = self.inbound.direct_task() {
            self.retract(context, task);
        }
    }

    /// The I/O memory that it uses.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.share.bytes()
    }

    /// The time since which the peer is stalled: it sends no data of a write, or reads no answers. None: it is not
    /// stalled.
    pub(crate) fn owed_since(&self) -> Option<Nanos> {
        // While parsing waits for memory, the peer owes no data.
        let unsent = if self.blocked.is_some() { None } else { self.tasks.oldest_write() };
        unsent.into_iter().chain(self.outbound.sending_since()).min()
    }
}
