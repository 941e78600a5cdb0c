//! Waiting without holding the interpreter, with checks for Ctrl-C.

use crate::errors::blamed;
use linerate_blame::Blame;
use pyo3::prelude::*;
use std::{sync::mpsc, thread, time::Duration};

/// How long a blocking call may run without checking for signals: Ctrl-C waits for half of it on average. A check costs
/// up to 60 us on virtual machines, where a sleep is expensive, so all of them take at most 0.3 % of one CPU.
const SLICE: Duration = Duration::from_millis(20);

/// Runs `work` on another thread while this one checks for signals. After Ctrl-C that thread ends by its own time
/// limits and its result is dropped, which closes all that it opened.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("linerate-call".into())
        .spawn(move || {
            // After Ctrl-C the caller may have returned; then the result is dropped.
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

/// Calls `step` with slices of `timeout` until it returns a result or the time is over, and checks for signals in
/// between.
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
