//! Answers that are sent after operations have ended, on any connection.

use std::{fmt, sync::Arc};

/// Delays an answer: it is due when the last clone is dropped. Tasks that a task management function has ended, and
/// messages about them, hold a clone until none of their operations is in progress (SAM-5 7.1: the function is complete
/// when the tasks have ended).
#[derive(Clone, Debug)]
pub(crate) struct CompletionGuard {
    _due: Arc<Due>,
}

/// Calls the function when it is dropped.
struct Due(Box<dyn Fn() + Send + Sync>);

impl CompletionGuard {
    /// `tell` is called once, by the thread that drops the last clone.
    pub(crate) fn new(tell: impl Fn() + Send + Sync + 'static) -> Self {
        Self { _due: Arc::new(Due(Box::new(tell))) }
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl fmt::Debug for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Due")
    }
}

#[cfg(test)]
mod tests {
    use super::CompletionGuard;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    #[test]
    fn the_answer_is_due_once_when_the_last_one_is_gone() {
        let told = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&told);
        let guard = CompletionGuard::new(move || _ = counter.fetch_add(1, Relaxed));
        let more = vec![guard.clone(), guard.clone()];
        drop(guard);
        assert_eq!(told.load(Relaxed), 0);
        drop(more);
        assert_eq!(told.load(Relaxed), 1);
    }
}
