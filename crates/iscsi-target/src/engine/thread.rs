//! The engine's thread: takes requests, runs tasks, sends answers.

use super::{Inbox, core::EngineCore, lock};
use linerate_io::{KernelDriver, Preference, WaitMode, Waiter, open_driver, with_driver};
use linerate_storage::controller::{StorageConfig, StorageError};
use std::{
    io,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

/// Whether the storage is open.
type Ready = mpsc::Sender<Result<(), StorageError>>;

/// Starts the thread of the engine of this number; returns when the storage is open.
pub(super) fn spawn(
    number: u8,
    config: StorageConfig,
    preference: Preference,
    wait: WaitMode,
    inbox: Arc<Inbox>,
) -> Result<JoinHandle<()>, StorageError> {
    let (ready, is_ready) = mpsc::channel();
    let builder = thread::Builder::new().name(format!("array-engine-{number}"));
    let thread = builder.spawn(move || {
        let _closes = Closes(Arc::clone(&inbox));
        let setup = EngineSetup { number, config, preference };
        match open_driver(preference) {
            Ok(driver) => {
                with_driver!(driver, |driver| run(driver, Waiter::new(wait), setup, &inbox, &ready));
            }
            Err(error) => drop(ready.send(Err(StorageError::Host(error.to_string())))),
        }
    });
    let thread = thread.map_err(|error| StorageError::Host(error.to_string()))?;
    is_ready.recv().unwrap_or(Err(StorageError::Gone))?;
    Ok(thread)
}

/// What an engine is opened with.
pub(super) struct EngineSetup {
    pub(super) number: u8,
    pub(super) config: StorageConfig,
    /// For connections to partners.
    pub(super) preference: Preference,
}

/// Closes the inbox when the thread ends, in any way, so that no caller waits for an answer.
struct Closes(Arc<Inbox>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.core.clear();
        let mut requests = lock(&self.0.requests);
        requests.closed = true;
        requests.list.clear();
        requests.operations.clear();
    }
}

/// The main function of the thread.
fn run<D: KernelDriver>(
    mut driver: D,
    mut waiter: Waiter,
    setup: EngineSetup,
    inbox: &Arc<Inbox>,
    ready: &Ready,
) {
    let waker = driver.waker();
    // Only this thread sets it.
    let _ = inbox.wake.set(Box::new(move || D::wake(&waker)));
    let now = driver.now();
    inbox.core.fill(|| EngineCore::new(now));
    let opened = inbox.core.own(&mut driver, |core, driver| core.open(driver, &mut waiter, setup, inbox));
    let opened = opened.unwrap_or(Err(StorageError::Gone));
    let is_open = opened.is_ok();
    if ready.send(opened).is_ok()
        && is_open
        && let Err(error) = serve(&mut driver, &mut waiter, inbox)
    {
        tracing::error!(event = "engine_failed", %error, "the I/O driver failed; the storage engine ends");
    }
    inbox.core.own(&mut driver, |core, _| core.abandon());
}

fn serve<D: KernelDriver>(driver: &mut D, waiter: &mut Waiter, inbox: &Inbox) -> io::Result<()> {
    let mut polled = Vec::new();
    let is_broken = || io::Error::other("a worker has failed in the middle of an operation");
    loop {
        let turn = inbox.core.own(driver, |core, driver| core.turn(driver, &mut polled, inbox));
        match turn.ok_or_else(is_broken)?? {
            Some(wait) => waiter.poll(driver, wait, &mut polled)?,
            None => break,
        }
    }
    let closed = inbox.core.own(driver, |core, driver| core.close(driver, waiter));
    closed.ok_or_else(is_broken)?
}
