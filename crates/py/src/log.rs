//! The events of the arrays of this process, for a log.

use crate::errors::{blamed, refused_json};
use linerate_blame::Blame;
use linerate_iscsi_target::log::{self, Level, LogEvent};
use pyo3::prelude::*;
use serde_json::Value;
use std::time::Duration;

/// Longest wait in one call; nothing can interrupt it.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// The events of this process, which wait until they are taken.
#[pyclass(frozen, module = "linerate._core")]
pub(crate) struct Log {
    log: log::Log,
}

#[pymethods]
impl Log {
    /// Collects events of this level and above: error, warning, info or debug.
    #[staticmethod]
    #[pyo3(signature = (level, /))]
    fn open(level: &str) -> PyResult<Self> {
        let level: Level = serde_json::from_value(Value::String(level.to_owned()))
            .map_err(|error| refused_json("log level", &error))?;
        Ok(Self { log: log::Log::open(level) })
    }

    /// Adds an event as JSON.
    #[pyo3(signature = (event_json, /))]
    fn put(&self, event_json: &str) -> PyResult<()> {
        let event: LogEvent =
            serde_json::from_str(event_json).map_err(|error| refused_json("event", &error))?;
        self.log.put(event);
        Ok(())
    }

    /// Events as JSON, the oldest first; waits for the first one, at most 0.2 s.
    #[pyo3(signature = (wait_s, /))]
    fn take(&self, py: Python<'_>, wait_s: f64) -> PyResult<Vec<String>> {
        let wait = Duration::try_from_secs_f64(wait_s).unwrap_or_default().min(WAIT_MAX);
        let events = py.detach(|| self.log.take(wait));
        let json = |event: &LogEvent| serde_json::to_string(event);
        events.iter().map(json).collect::<Result<_, _>>().map_err(|error| {
            blamed(Blame::Us, format!("an event has no JSON form: {error}"), "please report this")
        })
    }
}
