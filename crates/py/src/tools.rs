//! One-shot questions, and the way structured answers reach Python.

use crate::errors::blamed;
use linerate_load::Blame;
use pyo3::prelude::*;
use serde::Serialize;

/// Any answer as plain Python objects, by way of JSON: for facts and statistics, never for measurements.
pub(crate) fn loaded<'py>(py: Python<'py>, answer: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(answer).map_err(|error| {
        blamed(Blame::Us, format!("an answer has no JSON form: {error}"), "please report this")
    })?;
    py.import("json")?.call_method1("loads", (text,))
}
