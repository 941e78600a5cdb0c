//! What the engine's thread and the workers use in turn: tasks, storage, volumes.
//!
//! The thread is inside whenever it runs, and leaves while it sleeps. Meanwhile a worker may come in and do an operation
//! that needs no waiting: that saves two switches between threads. Such an operation begins between two runs of the
//! tasks, as if the thread had done it there.

use super::{
    EngineRequest, FinishedOperation, Inbox, OperationRequest, OperationResult, Quota, lock, replica,
    state::EngineState, thread::EngineSetup,
};
use linerate_io::{Completion, Driver, Nanos, Wait, Waiter};
use linerate_storage::{
    controller::{Controller, StorageError},
    host::Tasks,
};
use std::{collections::VecDeque, io, rc::Rc, sync::Arc};

/// How much a worker performs in one visit. Other workers wait for its end.
const VISIT: Quota = Quota { operations: 8, bytes: 32 << 10 };

/// See the module text.
pub(super) struct EngineCore {
    tasks: Tasks,
    /// Known once the storage is open.
    state: Option<Rc<EngineState>>,
    /// Empty between calls, like `operations`.
    requests: Vec<EngineRequest>,
    operations: Vec<OperationRequest>,
    stops: bool,
}

impl EngineCore {
    pub(super) fn new(now: Nanos) -> Self {
        let (requests, operations) = (Vec::new(), Vec::new());
        Self { tasks: Tasks::new(now), state: None, requests, operations, stops: false }
    }

    /// Opens the storage.
    pub(super) fn open<D: Driver>(
        &mut self,
        driver: &mut D,
        waiter: &mut Waiter,
        EngineSetup { number, config, preference }: EngineSetup,
        inbox: &Arc<Inbox>,
    ) -> Result<(), StorageError> {
        let host = |error: io::Error| StorageError::Host(error.to_string());
        // The driver only performs file operations of disks here.
        let mut others = Vec::new();
        let (runtime, files) = (self.tasks.runtime(), self.tasks.files());
        let opening = Controller::open(runtime.clone(), Some(files), config);
        let controller = self.tasks.block_on(driver, waiter, &mut others, opening).map_err(host)??;
        let state = Rc::clone(self.state.insert(Rc::new(EngineState::new(number, runtime, controller))));
        let opening = replica::open(state, preference, Arc::clone(inbox));
        self.tasks.block_on(driver, waiter, &mut others, opening).map_err(host)?
    }

    /// One round of the thread: passes completions on, takes requests, runs tasks, sends answers. Returns how the driver
    /// may wait; None: the thread was told to stop.
    pub(super) fn turn<D: Driver>(
        &mut self,
        driver: &mut D,
        polled: &mut Vec<Completion<D::Socket>>,
        inbox: &Inbox,
    ) -> io::Result<Option<Wait>> {
        let Some(state) = &self.state else { unreachable!("the storage is open when the engine serves") };
        let now = driver.now();
        for completion in polled.drain(..) {
            // Other completions say that this thread was woken for requests.
            self.tasks.complete(completion, now);
        }
        {
            let mut queue = lock(&inbox.requests);
            std::mem::swap(&mut self.requests, &mut queue.list);
            std::mem::swap(&mut self.operations, &mut queue.operations);
        }
        for request in self.requests.drain(..) {
            self.stops |= matches!(request, EngineRequest::Stop);
            state.read(request);
        }
        self.operations.drain(..).for_each(|request| state.serve(request));
        self.tasks.run(driver)?;
        state.outbox.deliver();
        Ok((!self.stops).then(|| {
            let is_idle = lock(&inbox.requests).is_empty();
            if is_idle { self.tasks.until(Wait::Forever) } else { Wait::Never }
        }))
    }

    /// Performs the first requests of a worker whose clock says `now`, up to the first of another engine, and appends
    /// their answers to `finished`. Those that must wait, so that the thread must perform them, are moved to `waiting`. It
    /// ends early for the sake of other workers. Returns whether the thread has work now that it did not know of when it
    /// began to sleep.
    pub(super) fn perform(
        &self,
        now: Nanos,
        quota: &mut Quota,
        requests: &mut VecDeque<OperationRequest>,
        waiting: &mut Vec<OperationRequest>,
        finished: &mut Vec<FinishedOperation>,
    ) -> bool {
        let Some(state) = &self.state else {
            waiting.extend(requests.pop_front());
            return false;
        };
        self.tasks.advance(now);
        let mut visit = VISIT;
        let is_mine = |request: &OperationRequest| request.volume.engine == state.number;
        while !quota.is_used_up()
            && !visit.is_used_up()
            && requests.front().is_some_and(is_mine)
            && let Some(mut request) = requests.pop_front()
        {
            // Its bytes are on their way from memory while this request is performed.
            requests.front().filter(|next| is_mine(next)).inspect(|next| state.prefetch(next));
            let output = state.serve_nowait(&mut request);
            let Some(output) = output else {
                waiting.push(request);
                continue;
            };
            let OperationRequest { memory, in_place, tag, .. } = request;
            let done = FinishedOperation { tag, outcome: OperationResult(Ok(output)), memory, in_place };
            quota.take(&done);
            visit.take(&done);
            finished.push(done);
        }
        self.tasks.has_news()
    }

    /// Makes everything durable.
    pub(super) fn close<D: Driver>(&mut self, driver: &mut D, waiter: &mut Waiter) -> io::Result<()> {
        let Some(state) = self.state.clone() else { return Ok(()) };
        self.tasks.block_on(driver, waiter, &mut Vec::new(), async move { state.controller.close().await })
    }

    /// Removes files that a failed start has made.
    pub(super) fn abandon(&self) {
        if let Some(state) = &self.state {
            state.controller.abandon();
        }
    }
}
