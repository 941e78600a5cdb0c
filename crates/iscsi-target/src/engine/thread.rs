//! The engine's thread: takes requests, runs tasks, sends answers.

use super::{EngineRequest, Inbox, lock, replica, state::EngineState};
use linerate_io::{Driver, Preference, Wait, WaitMode, open_driver, with_driver};
use linerate_storage::{
    Host,
    controller::{Controller, StorageConfig, StorageError},
};
use std::{
    io,
    rc::Rc,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

/// Whether the storage is open.
type Ready = mpsc::Sender<Result<(), StorageError>>;

/// Starts the thread; returns when the storage is open.
pub(super) fn spawn(
    config: StorageConfig,
    preference: Preference,
    wait: WaitMode,
    inbox: Arc<Inbox>,
) -> Result<JoinHandle<()>, StorageError> {
    let (ready, is_ready) = mpsc::channel();
    let builder = thread::Builder::new().name("array-engine".into());
    let thread = builder.spawn(move || {
        let _closes = Closes(Arc::clone(&inbox));
        match open_driver(preference) {
            Ok(driver) => {
                with_driver!(driver, |driver| run(
                    Host::waiting(driver, wait),
                    preference,
                    config,
                    &inbox,
                    &ready
                ));
            }
            Err(error) => drop(ready.send(Err(StorageError::Host(error.to_string())))),
        }
    });
    let thread = thread.map_err(|error| StorageError::Host(error.to_string()))?;
    is_ready.recv().unwrap_or(Err(StorageError::Gone))?;
    Ok(thread)
}

/// Closes the inbox when the thread ends, in any way, so that no caller waits for an answer.
struct Closes(Arc<Inbox>);

impl Drop for Closes {
    fn drop(&mut self) {
        let mut requests = lock(&self.0.requests);
        requests.closed = true;
        requests.list.clear();
        requests.operations.clear();
    }
}

/// The main function of the thread.
fn run<D: Driver>(
    mut host: Host<D>,
    preference: Preference,
    config: StorageConfig,
    inbox: &Arc<Inbox>,
    ready: &Ready,
) {
    let waker = host.driver().waker();
    // Only this thread sets it.
    let _ = inbox.wake.set(Box::new(move || D::wake(&waker)));
    let (runtime, files) = (host.runtime(), host.files());
    let opening = Controller::open(runtime.clone(), Some(files), config);
    let state = match host.block_on(opening) {
        Ok(Ok(controller)) => Rc::new(EngineState::new(runtime, controller)),
        Ok(Err(error)) => return drop(ready.send(Err(error))),
        Err(error) => return drop(ready.send(Err(StorageError::Host(error.to_string())))),
    };
    let opening = replica::open(Rc::clone(&state), preference, Arc::clone(inbox));
    let opened = host.block_on(opening).map_err(|error| StorageError::Host(error.to_string()));
    let opened = opened.and_then(|opened| opened);
    let is_open = opened.is_ok();
    if ready.send(opened).is_ok()
        && is_open
        && let Err(error) = serve(&mut host, inbox, &state)
    {
        tracing::error!(event = "engine_failed", %error, "the I/O driver failed; the storage engine ends");
    }
    // Remove files that a failed start has made.
    state.controller.abandon();
}

fn serve<D: Driver>(host: &mut Host<D>, inbox: &Inbox, state: &Rc<EngineState>) -> io::Result<()> {
    let (mut requests, mut operations, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let mut stops = false;
    while !stops {
        {
            let mut queue = lock(&inbox.requests);
            std::mem::swap(&mut requests, &mut queue.list);
            std::mem::swap(&mut operations, &mut queue.operations);
        }
        for request in requests.drain(..) {
            stops |= matches!(request, EngineRequest::Stop);
            state.read(request);
        }
        operations.drain(..).for_each(|request| state.serve(request));
        host.turn(Wait::Never, &mut others)?;
        state.outbox.deliver();
        if !stops && lock(&inbox.requests).is_empty() {
            host.turn(Wait::Forever, &mut others)?;
        }
        // The driver only performs file operations of disks, and wakes this thread for requests.
        others.clear();
    }
    let last = Rc::clone(state);
    host.block_on(async move { last.controller.close().await })
}
