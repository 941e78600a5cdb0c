//! Findings about storage while it is opened or inspected: for the log, or for the caller.

use serde::Serialize;
use std::{cell::RefCell, rc::Rc};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// The owner should act.
    Care,
    /// As it is, the array does not start.
    Refused,
}

/// Something that was noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: `disk d3`, `RAID set r0`.
    pub about: String,
    /// The finding, as a sentence.
    pub text: String,
}

/// Findings so far. Cheap to clone.
#[derive(Clone, Default)]
pub(in super::super) struct Findings(Rc<RefCell<Vec<Finding>>>);

impl Findings {
    /// Adds a note.
    pub(in super::super) fn note(&self, about: impl Into<String>, text: impl Into<String>) {
        self.add(Severity::Note, about.into(), text.into());
    }

    /// A finding that the owner should act on.
    pub(in super::super) fn care(&self, about: impl Into<String>, text: impl Into<String>) {
        self.add(Severity::Care, about.into(), text.into());
    }

    /// Adds a finding that prevents the start of the array.
    pub(in super::super) fn refused(&self, about: impl Into<String>, text: impl Into<String>) {
        self.add(Severity::Refused, about.into(), text.into());
    }

    fn add(&self, severity: Severity, about: String, text: String) {
        self.0.borrow_mut().push(Finding { severity, about, text });
    }

    /// All of them so far.
    pub(in super::super) fn take(&self) -> Vec<Finding> {
        self.0.take()
    }

    /// Writes the findings that matter to the log.
    pub(in super::super) fn log(&self) {
        for Finding { severity, about, text } in self.take() {
            if severity != Severity::Note {
                tracing::warn!(event = "storage_care", about, "{text}");
            }
        }
    }
}
