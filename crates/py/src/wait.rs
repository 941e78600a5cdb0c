//! Waiting without holding the interpreter, and with an ear for Ctrl-C.

use crate::errors::blamed;
use linerate_blame::Blame;
use pyo3::prelude::*;
use std::{sync::mpsc, thread, time::Duration};

/// How long a blocking call may go without looking for signals: Ctrl-C waits for half of it on average. A look costs up
/// to 60 us where sleeping is dear (virtual machines), so all of them at most 0.3 % of one CPU.
const SLICE: Duration = Duration::from_millis(20);

/// Runs `work` on a thread of its own while this one looks for signals. After Ctrl-C the thread is left to its own time
/// limits and its result is dropped, which closes all that it opened.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("linerate-call".into())
        .spawn(move || {
            // The caller may be gone after Ctrl-C; then the result is dropped.
            let _ = sender.send(work());
        })
        .map_err(|error| blamed(Blame::Host, format!("no thread: {error}"), "raise the limit on threads"))?;
    // Only this call owns the receiver; the wrapper lets it cross into the detached closure.
    let receiver = std::sync::Mutex::new(receiver);
    loop {
        let answer = py.detach(|| match receiver.lock() {
            Ok(receiver) => receiver.recv_timeout(SLICE),
            Err(_) => Err(mpsc::RecvTimeoutError::Disconnected),
        });
        match answer {
            Ok(value) => return Ok(value),
            Err(mpsc::RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(blamed(Blame::Us, "a call into the data plane died", "please report this"));
            }
        }
    }
}

/// Calls `step` with slices of `timeout` until it gives something or the time is over, looking for signals in between.
pub(crate) fn in_slices<T: Send>(
    py: Python<'_>,
    timeout: Duration,
    mut step: impl FnMut(Duration) -> Option<T> + Send,
) -> PyResult<Option<T>> {
    let mut left = timeout;
    loop {
        let slice = left.min(SLICE);
        if let Some(value) = py.detach(|| step(slice)) {
            return Ok(Some(value));
        }
        py.check_signals()?;
        left -= slice;
        if left.is_zero() {
            return Ok(None);
        }
    }
}
