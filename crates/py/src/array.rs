//! An array for Python: start, look, stop.

use crate::{
    errors::{array_error, refused_json},
    tools::loaded,
    wait::interruptible,
};
use linerate_target::ArrayConfig;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An iSCSI array that serves in this process until `stop`.
#[pyclass(frozen, module = "linerate._core")]
pub(crate) struct Array {
    portals: Vec<(String, u16)>,
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
        let portals = array.portals().iter().map(|portal| (portal.ip().to_string(), portal.port())).collect();
        Ok(Self { portals, running: Mutex::new(Some(array)) })
    }

    /// Addresses and ports that it listens on, as the kernel chose them.
    #[getter]
    fn portals(&self) -> Vec<(String, u16)> {
        self.portals.clone()
    }

    /// Counters since the start; empty once stopped.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &*self.running() {
            Some(array) => loaded(py, &array.stats()),
            None => loaded(py, &serde_json::Map::new()),
        }
    }

    /// Closes all sessions and waits until nothing is left. A second call does nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let Some(array) = self.running().take() else { return Ok(()) };
        interruptible(py, || array.stop())
    }
}
