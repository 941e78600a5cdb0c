//! Logins: which ones are admitted, guessing of secrets, and floods of logins.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // a test may wait and may fail loudly

mod access;
mod floods;
mod guessing;
#[path = "../support/mod.rs"]
mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Not a test: the array's process, which ends with its standard input.
#[test]
#[ignore = "only other tests start it"]
fn serve() {
    support::served::serve();
}

/// Tests that measure time run one by one.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
