//! A connection after its acceptance, before a driver takes it.

use std::sync::{Arc, Mutex, PoisonError};

/// An accepted connection that no driver owns yet. Dropping it closes the connection.
#[derive(Debug)]
pub struct SimSocket {
    pub(crate) link: Option<usize>,
    orphans: Arc<Mutex<Vec<usize>>>,
}

impl SimSocket {
    pub(crate) fn new(link: usize, orphans: Arc<Mutex<Vec<usize>>>) -> Self {
        SimSocket { link: Some(link), orphans }
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            self.orphans.lock().unwrap_or_else(PoisonError::into_inner).push(link);
        }
    }
}
