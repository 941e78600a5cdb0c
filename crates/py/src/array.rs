//! An array for Python: start, look, change, stop.

use crate::{
    errors::{array_error, blamed, refused_json},
    tools::loaded,
    wait::interruptible,
};
use linerate_load::Blame;
use linerate_target::{ArrayChange, ArrayConfig};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An iSCSI array that serves in this process until `stop`.
#[pyclass(frozen, module = "linerate._core")]
pub(crate) struct Array {
    running: Mutex<Option<linerate_target::Array>>,
}

impl Array {
    fn running(&self) -> MutexGuard<'_, Option<linerate_target::Array>> {
        // The option is either there or taken, so a panic elsewhere cannot have left it torn.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Array {
    /// Opens the volumes of an `ArrayConfig` and listens on its portals.
    #[staticmethod]
    #[pyo3(signature = (config_json, /))]
    fn start(py: Python<'_>, config_json: &str) -> PyResult<Self> {
        let config: ArrayConfig =
            serde_json::from_str(config_json).map_err(|error| refused_json("array", &error))?;
        let array = interruptible(py, || linerate_target::Array::start(config))?
            .map_err(|error| array_error(&error))?;
        Ok(Self { running: Mutex::new(Some(array)) })
    }

    /// Addresses and ports that it listens on now, as the kernel chose them; none once stopped.
    #[getter]
    fn portals(&self) -> Vec<(String, u16)> {
        let portals = self.running().as_ref().map(linerate_target::Array::portals).unwrap_or_default();
        portals.iter().map(|portal| (portal.ip().to_string(), portal.port())).collect()
    }

    /// Counters since the start, and who is connected where now; empty once stopped.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &*self.running() {
            Some(array) => loaded(py, &array.report()),
            None => loaded(py, &serde_json::Map::new()),
        }
    }

    /// Changes what an `ArrayChange` names while the array serves.
    #[pyo3(signature = (change_json, /))]
    fn change(&self, change_json: &str) -> PyResult<()> {
        let change: ArrayChange =
            serde_json::from_str(change_json).map_err(|error| refused_json("array change", &error))?;
        match &*self.running() {
            Some(array) => array.change(&change).map_err(|error| {
                blamed(Blame::User, error.to_string(), "name what the array's configuration names")
            }),
            None => Err(blamed(Blame::User, "the array has been stopped", "start another one")),
        }
    }

    /// Closes all sessions and waits until nothing is left. A second call does nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let Some(array) = self.running().take() else { return Ok(()) };
        interruptible(py, || array.stop())
    }
}
