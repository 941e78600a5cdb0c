//! A thread that moves bytes: started in its namespace, stopped by its owner.

use super::BulkError;
use linerate_io::{Driver, EpollDriver, net::netns};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
};

/// The owner's handle of the thread.
pub(super) struct Mover {
    over: Arc<AtomicBool>,
    waker: <EpollDriver as Driver>::Waker,
    thread: Option<JoinHandle<()>>,
}

/// Reports whether the thread could open its sockets.
pub(super) struct StartReport<T> {
    sender: Sender<Result<(T, <EpollDriver as Driver>::Waker), BulkError>>,
    waker: <EpollDriver as Driver>::Waker,
    over: Arc<AtomicBool>,
}

impl<T> StartReport<T> {
    /// Answers the owner. Returns the stop flag; None if opening failed.
    pub(super) fn answer(self, opened: Result<T, BulkError>) -> Option<Arc<AtomicBool>> {
        let good = opened.is_ok();
        let sent = self.sender.send(opened.map(|value| (value, self.waker)));
        (good && sent.is_ok()).then_some(self.over)
    }
}

impl Mover {
    /// Starts the thread in a namespace; returns what it opened.
    pub(super) fn start<T: Send + 'static>(
        name: &str,
        namespace: Option<String>,
        body: impl FnOnce(EpollDriver, StartReport<T>) + Send + 'static,
    ) -> Result<(Self, T), BulkError> {
        let over = Arc::new(AtomicBool::new(false));
        let (sender, answer) = mpsc::channel();
        let shared = Arc::clone(&over);
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            let entered = namespace.map_or(Ok(()), |path| netns::enter(Path::new(&path)));
            let driver = entered.map_err(BulkError::Netns).and_then(|()| {
                EpollDriver::new().map_err(|error| BulkError::Host(format!("no epoll: {error}")))
            });
            match driver {
                Ok(driver) => {
                    let report = StartReport { sender, waker: driver.waker(), over: shared };
                    body(driver, report);
                }
                Err(error) => {
                    let _ = sender.send(Err(error));
                }
            }
        });
        let thread = thread.map_err(|error| BulkError::Host(format!("cannot start a thread: {error}")))?;
        let (value, waker) = answer.recv().map_err(|_| BulkError::Host("a thread died".into()))??;
        Ok((Self { over, waker, thread: Some(thread) }, value))
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        EpollDriver::wake(&self.waker);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed; there is no caller for it any more.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Mover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mover").field("over", &self.over).finish_non_exhaustive()
    }
}
