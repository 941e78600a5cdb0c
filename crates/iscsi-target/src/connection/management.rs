//! Task management: a function ends tasks, on this connection and on others. It is answered when none of these tasks
//! can change a volume any more (RFC 7143 section 4.2.3.3, SAM-5 7).

use super::{Connection, TaskId, reply::Asked, tasks::TaskEntry};
use crate::{
    completion_guard::CompletionGuard,
    context::WorkerContext,
    mcs::{AbortScope, McsRequestKind},
};
use linerate_io::Driver;
use linerate_iscsi_proto::pdu::{
    RejectReason, TaskFunction, TaskManagement, TaskManagementResponse, TaskResult,
};
use linerate_scsi::{Reply, TaskManagement as Function, TaskManagementResponse as Outcome};

/// An answer that waits until tasks have ended.
#[derive(Debug)]
pub(super) enum Due {
    Management {
        itt: u32,
        function: TaskFunction,
        result: TaskResult,
    },
    /// The answer to a command that has ended tasks of others.
    Reply {
        asked: Asked,
        reply: Reply,
    },
}

impl Connection {
    pub(super) fn task_management<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        request: &TaskManagement,
    ) {
        if !self.admit(context, request.cmd_sn, request.immediate) {
            return;
        }
        let held_back = self.due.len() >= context.limits.commands_per_session as usize;
        if held_back || self.has_too_many_mcs_requests(context) {
            return self.reject(context, RejectReason::TooManyImmediate);
        }
        context.counters.task_managements += 1;
        if let Err(refused) = self.manage(context, request) {
            self.answer_management(context, request.function, request.itt, refused);
        }
    }

    /// Executes a function. Its answer follows when the affected tasks have ended; an error is answered at once.
    fn manage<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        request: &TaskManagement,
    ) -> Result<(), TaskResult> {
        let device = self.session.as_ref().and_then(|session| session.device.as_ref());
        let device = device.ok_or(TaskResult::Rejected)?;
        let lun = request.lun.0.to_be_bytes();
        let (function, scope) = match request.function {
            TaskFunction::AbortTask => (Function::AbortTask, AbortScope::One(request.referenced_itt)),
            TaskFunction::AbortTaskSet => (Function::AbortTaskSet, AbortScope::OnLun(lun)),
            TaskFunction::ClearTaskSet => (Function::ClearTaskSet, AbortScope::OnLun(lun)),
            TaskFunction::ClearAca => (Function::ClearAca, AbortScope::OnLun(lun)),
            TaskFunction::LogicalUnitReset => (Function::LogicalUnitReset, AbortScope::OnLun(lun)),
            TaskFunction::TargetWarmReset | TaskFunction::TargetColdReset => {
                (Function::TargetReset, AbortScope::All)
            }
            TaskFunction::TaskReassign => return Err(TaskResult::ReassignNotSupported),
            TaskFunction::Other(_) => return Err(TaskResult::NotSupported),
        };
        match device.nexus.manage(lun, function) {
            Outcome::NoSuchLun => return Err(TaskResult::NoSuchLun),
            Outcome::NotSupported => return Err(TaskResult::NotSupported),
            Outcome::Complete => {}
        }
        let (itt, result) = (request.itt, TaskResult::Complete);
        let due = Due::Management { itt, function: request.function, result };
        if let AbortScope::One(referenced) = scope {
            self.abort_one(context, request, referenced, due);
            return Ok(());
        }
        let (due, guard) = self.guard(context, due);
        self.abort_all(context, scope, &guard);
        if matches!(function, Function::ClearTaskSet | Function::LogicalUnitReset | Function::TargetReset) {
            context.end_outdated_tasks(guard.clone());
        }
        self.request_of_others(context, McsRequestKind::Abort { scope, due, guard });
        Ok(())
    }

    fn abort_one<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        request: &TaskManagement,
        referenced: u32,
        due: Due,
    ) {
        let here = self.tasks.find(referenced);
        let found = here.is_some() || self.abort_early_command(context, request);
        let (due, guard) = self.guard(context, due);
        if let Some(task) = here {
            self.abort(context, task, [&guard]);
        } else if !found {
            self.set_result(due, TaskResult::NoSuchTask);
            self.request_of_others(
                context,
                McsRequestKind::Abort { scope: AbortScope::One(referenced), due, guard },
            );
        }
    }

    /// Delays an answer until the last clone of the guard is dropped. Also returns its number.
    pub(super) fn guard<D: Driver>(
        &mut self,
        context: &WorkerContext<D>,
        due: Due,
    ) -> (usize, CompletionGuard) {
        let number = self.due.insert(due);
        (number, context.guard(self.key, number))
    }

    /// An answer need not wait any more.
    pub(crate) fn answer_due<D: Driver>(&mut self, context: &mut WorkerContext<D>, number: usize) {
        match self.due.try_remove(number) {
            Some(Due::Management { itt, function, result }) => {
                self.answer_management(context, function, itt, result);
            }
            Some(Due::Reply { asked, reply }) => self.reply(context, asked, &reply),
            None => {}
        }
        self.resume(context);
    }

    /// Another connection of the session had the task of a function.
    pub(super) fn task_was_found(&mut self, due: usize) {
        self.set_result(due, TaskResult::Complete);
    }

    fn set_result(&mut self, due: usize, to: TaskResult) {
        if let Some(Due::Management { result, .. }) = self.due.get_mut(due) {
            *result = to;
        }
    }

    fn answer_management<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        function: TaskFunction,
        itt: u32,
        result: TaskResult,
    ) {
        let Some(mut answers) = self.answers() else { return };
        let pdu = TaskManagementResponse { result, itt, sn: answers.status_numbers() };
        answers.header(|bhs| pdu.emit(bhs));
        if function == TaskFunction::TargetColdReset
            && result == TaskResult::Complete
            && let Some(device) = &answers.session.device
        {
            context.shared.close_sessions_of(&device.target.name);
            self.close_when_sent();
        }
    }

    /// Ends tasks without an answer.
    pub(super) fn abort_all<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        scope: AbortScope,
        guard: &CompletionGuard,
    ) {
        self.abort_where(context, std::slice::from_ref(guard), |entry| match scope {
            AbortScope::One(itt) => entry.itt == itt,
            AbortScope::OnLun(lun) => entry.lun == lun,
            AbortScope::All => true,
        });
    }

    /// Ends the tasks that a reset, or another nexus, has ended at their unit.
    pub(crate) fn abort_outdated<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        guards: &[CompletionGuard],
    ) {
        let session = self.session.as_ref();
        let Some(nexus) = session.and_then(|session| Some(session.device.as_ref()?.nexus.clone())) else {
            return;
        };
        if self.abort_where(context, guards, |entry| nexus.abort_epoch(entry.lun) != entry.epoch) {
            self.resume(context);
        }
    }

    /// Ends the tasks that `is_one` selects. Returns whether there were any.
    pub(super) fn abort_where<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        guards: &[CompletionGuard],
        is_one: impl Fn(&TaskEntry) -> bool,
    ) -> bool {
        let mut any = false;
        for task in self.tasks.ids() {
            if self.tasks.get_mut(task).is_some_and(|entry| is_one(entry)) {
                self.abort(context, task, guards);
                any = true;
            }
        }
        any
    }

    /// Ends a task without an answer. A receive for it is cancelled. A task with a volume operation in progress keeps
    /// its slot, and `holds`, until the operation ends.
    pub(super) fn abort<'a, D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        guards: impl IntoIterator<Item = &'a CompletionGuard>,
    ) {
        self.retract(context, task);
        let Some(entry) = self.tasks.known(task) else { return };
        let (asked, was_live) = (Asked::from(&*entry), !entry.aborted);
        if entry.is_busy() {
            entry.guards.extend(guards.into_iter().cloned());
        }
        self.drop_task(context, task);
        if was_live && let Some(mut answers) = self.answers() {
            answers.forget(asked);
        }
    }

    /// The initiator has sent data against the rules: its command fails.
    pub(super) fn fail_transfer<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        task: TaskId,
        sense: (u8, u8),
    ) {
        let Some(entry) = self.tasks.live(task) else { return };
        let asked = Asked::from(&*entry);
        context.counters.check_conditions += 1;
        if let Some(mut answers) = self.answers() {
            answers.abort_command(asked, sense);
        }
        self.drop_task(context, task);
    }

    /// Ends a task that has been answered or needs no answer; if an operation of it is in progress, after that.
    fn drop_task<D: Driver>(&mut self, context: &mut WorkerContext<D>, task: TaskId) {
        let Some(entry) = self.tasks.known(task) else { return };
        if entry.is_busy() {
            entry.aborted = true;
            return;
        }
        self.leave_queue(task);
        self.end_write(task);
        self.end_task(context, task);
    }
}
