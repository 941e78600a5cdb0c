//! How a command ends: status and sense become a result, or another attempt.
//!
//! A target may refuse a command temporarily, which is not an error of the command: BUSY and TASK SET FULL (SAM-5 5.3),
//! a unit attention (a change is reported instead of running the command), a unit that is becoming ready. Such a
//! command is sent again, at once or after a pause, until its command timeout.

use super::Session;
use super::events::{Context, Returned, ReturnedFrom, SessionEvent};
use super::tasks::{Progress, Stage, TaskIndex};
use crate::event::{IoDone, IoError, IoSink};
use crate::facts::DeviceId;
use crate::options::{SECOND, nanos};
use crate::task::{Answer, Owner, Payload};
use linerate_io::Nanos;
use linerate_iscsi_proto::pdu::Residual;
use linerate_scsi_proto::alua::{self, AccessState};
use linerate_scsi_proto::sense::{SenseCode, SenseKey, code};
use linerate_scsi_proto::status::Status;

/// Most unit attentions in a row. Each reports another change, so a larger number is a fault of the target.
const ATTENTIONS_MAX: u8 = 32;
/// First pause after BUSY; it doubles up to a second.
const PAUSE_NS_MIN: Nanos = 2_000_000;

/// The target's answer at the end of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) status: u8,
    pub(super) residual: Residual,
    pub(super) sense: Option<SenseCode>,
}

/// What to do after an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    Failed(IoError),
    /// Send it again at once.
    Again,
    /// Send it again after a pause.
    Later(IoError),
}

/// SAM-5 5.3 and SPC-4 4.5: the outcomes that are more than an error.
fn verdict_of(outcome: &Outcome) -> Verdict {
    match Status::from_code(outcome.status) {
        Some(Status::Good) => Verdict::Good,
        Some(Status::CheckCondition) => {
            // A CHECK CONDITION without readable sense counts as NO SENSE.
            let sense = outcome.sense.unwrap_or_default();
            let error = IoError::CheckCondition(sense);
            match (sense.key, sense.code) {
                // The data is good.
                (SenseKey::RecoveredError, _) => Verdict::Good,
                (SenseKey::NotReady, code::BECOMING_READY | code::ACCESS_STATE_TRANSITION) => {
                    Verdict::Later(error)
                }
                (SenseKey::UnitAttention, _) => Verdict::Again,
                _ => Verdict::Failed(error),
            }
        }
        Some(Status::Busy | Status::TaskSetFull) => Verdict::Later(IoError::Status(outcome.status)),
        _ => Verdict::Failed(IoError::Status(outcome.status)),
    }
}

impl Session {
    /// Ends a task, or sends it again.
    #[inline]
    pub(super) fn finish<S: IoSink>(
        &mut self,
        index: TaskIndex,
        outcome: &Outcome,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) {
        self.no_longer_in_flight(index);
        match verdict_of(outcome) {
            Verdict::Good => match self.short_by(index, outcome) {
                0 => self.finish_good(index, now, cx),
                missing_bytes => self.finish_failed(index, IoError::Short { missing_bytes }, cx),
            },
            Verdict::Failed(error) | Verdict::Later(error) if self.refused_here(index, error, cx) => {}
            Verdict::Failed(error) => self.finish_failed(index, error, cx),
            Verdict::Again => self.try_again(index, outcome, cx),
            Verdict::Later(error) => self.try_later(index, error, now, cx),
        }
    }

    /// A task is not in flight any more: answered, aborted or rejected.
    #[inline]
    pub(super) fn no_longer_in_flight(&mut self, index: TaskIndex) {
        let task = &self.tasks[index];
        if matches!(task.owner, Owner::Io { .. } | Owner::Probe { .. } | Owner::AccessPoll { .. }) {
            self.connections[usize::from(task.connection)].in_flight -= 1;
        }
    }

    /// Bytes of an I/O that did not move. The reply to a probe command may have any length.
    #[inline]
    fn short_by(&self, index: TaskIndex, outcome: &Outcome) -> u32 {
        let task = &self.tasks[index];
        let unread = match (task.payload, task.progress) {
            (Payload::In(_), Progress::Read(read)) => task.len_bytes - read.received(),
            (Payload::Kept, _) => return 0,
            _ => 0,
        };
        unread.max(outcome.missing_bytes())
    }

    #[inline]
    fn finish_good<S: IoSink>(&mut self, index: TaskIndex, now: Nanos, cx: &mut Context<'_, S>) {
        let task = &self.tasks[index];
        let owner = task.owner;
        if let Owner::Io { .. } = owner {
            let service_ns = now.saturating_sub(task.first_sent);
            let moves = task.moves();
            self.meter.done(moves, task.len_bytes, task.queue_bytes, service_ns);
            self.connections[usize::from(task.connection)].counters.count(moves, task.len_bytes);
            self.leave(index, cx);
        }
        self.tasks.remove(index);
        match owner {
            Owner::Io { device, slot } => {
                cx.sink.done(IoDone { device: DeviceId(device), slot, result: Ok(()) });
            }
            Owner::Probe { .. } | Owner::AccessPoll { .. } => {
                let reply = std::mem::take(&mut self.tasks[index].reply);
                self.answer(owner, Answer::Good, reply, cx);
            }
            Owner::Ping | Owner::Abort { .. } | Owner::Text | Owner::Logout => {}
        }
    }

    /// Ends a task with an error.
    #[cold]
    pub(super) fn finish_failed<S: IoSink>(
        &mut self,
        index: TaskIndex,
        error: IoError,
        cx: &mut Context<'_, S>,
    ) {
        let owner = self.tasks[index].owner;
        if let Owner::Io { .. } = owner {
            self.leave(index, cx);
        }
        self.tasks.remove(index);
        match owner {
            Owner::Io { device, slot } => {
                cx.sink.done(IoDone { device: DeviceId(device), slot, result: Err(error) });
            }
            Owner::Probe { .. } | Owner::AccessPoll { .. } => {
                self.answer(owner, Answer::Failed(error), Vec::new(), cx);
            }
            Owner::Ping | Owner::Abort { .. } | Owner::Text | Owner::Logout => {}
        }
    }

    /// Reports the end of a command of the initiator itself.
    #[cold]
    fn answer<S: IoSink>(&self, owner: Owner, answer: Answer, reply: Vec<u8>, cx: &mut Context<'_, S>) {
        let event = match owner {
            Owner::Probe { device } => SessionEvent::Probed { device: DeviceId(device), answer, reply },
            Owner::AccessPoll { device } => {
                SessionEvent::AccessPolled { device: DeviceId(device), answer, reply }
            }
            other => unreachable!("nothing waits for the answer to {other:?}"),
        };
        cx.events.push((self.id, event));
    }

    /// An I/O ends here or is handed back.
    #[inline]
    fn leave<S: IoSink>(&mut self, index: TaskIndex, cx: &mut Context<'_, S>) {
        let task = &self.tasks[index];
        self.meter.end(task.len_bytes);
        if task.requeued
            && let Owner::Io { device, .. } = task.owner
        {
            let event = SessionEvent::RetryDone { device: DeviceId(device), order: task.order };
            cx.events.push((self.id, event));
        }
    }

    /// Returns an I/O.
    #[cold]
    pub(super) fn hand_back<S: IoSink>(
        &mut self,
        index: TaskIndex,
        progress: ReturnedFrom,
        cx: &mut Context<'_, S>,
    ) {
        let task = &self.tasks[index];
        self.meter.end(task.len_bytes);
        cx.returned.push(Returned { session: self.id, task: task.to_new(), progress });
        self.tasks.remove(index);
    }

    /// Whether the port of this path refused an I/O, and not the LUN; then another path does the I/O.
    #[cold]
    fn refused_here<S: IoSink>(&mut self, index: TaskIndex, error: IoError, cx: &mut Context<'_, S>) -> bool {
        // Every other error is the LUN's.
        let IoError::CheckCondition(sense) = error else { return false };
        let Some(refusal) = AccessState::from_refusal(sense) else { return false };
        let is_io = matches!(self.tasks[index].owner, Owner::Io { .. });
        if !self.config.retry.fails_over || !is_io {
            return false;
        }
        self.hand_back(index, ReturnedFrom::Queue, cx);
        cx.events.push((self.id, SessionEvent::AccessRefused(refusal)));
        true
    }

    #[cold]
    fn try_again<S: IoSink>(&mut self, index: TaskIndex, outcome: &Outcome, cx: &mut Context<'_, S>) {
        if self.config.retry.fails_over && outcome.sense == Some(alua::STATE_CHANGED) {
            cx.events.push((self.id, SessionEvent::AccessChanged));
        }
        let task = &mut self.tasks[index];
        task.refusals = task.refusals.saturating_add(1);
        if task.refusals > ATTENTIONS_MAX {
            let error = IoError::CheckCondition(outcome.sense.unwrap_or_default());
            return self.finish_failed(index, error, cx);
        }
        self.requeue(index);
    }

    #[cold]
    fn try_later<S: IoSink>(
        &mut self,
        index: TaskIndex,
        error: IoError,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) {
        let timeout = nanos(self.config.options.command_timeout_s);
        let task = &mut self.tasks[index];
        let pause = (PAUSE_NS_MIN << task.refusals.min(16)).min(SECOND);
        if now + pause >= task.first_sent + timeout {
            return self.finish_failed(index, error, cx);
        }
        task.refusals = task.refusals.saturating_add(1);
        task.stage = Stage::BackedOff;
        task.due = now + pause;
        cx.wake_at = cx.wake_at.min(task.due);
        self.tasks.mark_retried(index);
    }

    /// Puts a task that was sent before at the head of the queue.
    pub(super) fn requeue(&mut self, index: TaskIndex) {
        self.tasks[index].stage = Stage::Queued;
        self.tasks.mark_retried(index);
        match self.tasks[index].owner {
            Owner::Probe { .. } | Owner::AccessPoll { .. } => self.probes.push_front(index),
            _ => self.queue.push_front(index),
        }
    }

    /// Nothing overtakes a command that is sent again; see `recovery.rs`.
    #[cold]
    pub(super) fn must_wait(&self, index: TaskIndex) -> bool {
        let footprint = self.tasks[index].footprint;
        let lun = self.tasks[index].lun;
        self.tasks.iter().any(|(other, task)| {
            other != index
                && task.retried
                && matches!(task.stage, Stage::Sent | Stage::BackedOff | Stage::Aborting)
                && task.lun == lun
                && task.footprint.conflicts(&footprint)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: SenseKey, code: u16) -> Verdict {
        let sense = Some(SenseCode::new(key, code));
        verdict_of(&Outcome { status: 2, residual: Residual::None, sense })
    }

    #[test]
    fn temporary_refusals_and_errors_are_different() {
        assert_eq!(check(SenseKey::UnitAttention, code::POWER_ON), Verdict::Again);
        assert!(matches!(check(SenseKey::NotReady, code::BECOMING_READY), Verdict::Later(_)));
        assert!(matches!(check(SenseKey::NotReady, code::MEDIUM_NOT_PRESENT), Verdict::Failed(_)));
        assert_eq!(check(SenseKey::RecoveredError, code::NONE), Verdict::Good);
        assert!(matches!(
            check(SenseKey::MediumError, code::UNRECOVERED_READ),
            Verdict::Failed(IoError::CheckCondition(_))
        ));
        for status in [0x08, 0x28] {
            let outcome = Outcome { status, residual: Residual::None, sense: None };
            assert_eq!(verdict_of(&outcome), Verdict::Later(IoError::Status(status)));
        }
        let conflict = Outcome { status: 0x18, residual: Residual::None, sense: None };
        assert_eq!(verdict_of(&conflict), Verdict::Failed(IoError::Status(0x18)));
    }
}
