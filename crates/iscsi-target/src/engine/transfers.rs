//! Targets that exist for one transfer: for the writes of a partner, with their own name and secrets.

use crate::target::IscsiTarget;
use std::sync::{Arc, Mutex, PoisonError};

/// The targets of the current transfers. Discovery does not list them; an initiator that knows the name and proves the
/// secret may log in.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    targets: Mutex<Vec<Arc<IscsiTarget>>>,
}

impl Transfers {
    /// The target of this name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<IscsiTarget>> {
        self.with(|targets| targets.iter().find(|target| target.name == name).cloned())
    }

    pub(super) fn add(&self, target: Arc<IscsiTarget>) {
        self.with(|targets| targets.push(target));
    }

    /// Removes a target: no initiator can log in to it any more.
    pub(super) fn remove(&self, name: &str) {
        self.with(|targets| targets.retain(|target| target.name != name));
    }

    /// The list is changed in one call, so a poisoned lock still guards a valid one.
    fn with<T>(&self, act: impl FnOnce(&mut Vec<Arc<IscsiTarget>>) -> T) -> T {
        act(&mut self.targets.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
