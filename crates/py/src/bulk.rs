//! Bulk TCP streams for Python: start, look, stop.

use crate::{
    errors::{bulk_error, refused_json},
    tools::loaded,
    wait::interruptible,
};
use pyo3::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One end of a bulk stream until it is stopped.
struct End<T>(Mutex<Option<T>>);

impl<T: Send + 'static> End<T> {
    fn start<S: DeserializeOwned + Send + 'static>(
        py: Python<'_>,
        spec_json: &str,
        start: impl FnOnce(S) -> Result<T, linerate_load::BulkError> + Send + 'static,
    ) -> PyResult<Self> {
        let spec: S = serde_json::from_str(spec_json).map_err(|error| refused_json("bulk stream", &error))?;
        let end = interruptible(py, || start(spec))?.map_err(|error| bulk_error(&error))?;
        Ok(Self(Mutex::new(Some(end))))
    }

    fn running(&self) -> MutexGuard<'_, Option<T>> {
        // The option is set or taken as a whole, so a panic elsewhere cannot have left it incomplete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stats<'py, S: Serialize>(
        &self,
        py: Python<'py>,
        stats: impl FnOnce(&T) -> S,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &*self.running() {
            Some(end) => loaded(py, &stats(end)),
            None => loaded(py, &serde_json::Map::new()),
        }
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let Some(end) = self.running().take() else { return Ok(()) };
        interruptible(py, || drop(end))
    }
}

/// The end of bulk TCP streams that receives bytes and counts them.
#[pyclass(frozen, module = "linerate._core")]
pub(crate) struct BulkSink {
    address: (String, u16),
    end: End<linerate_load::BulkSink>,
}

#[pymethods]
impl BulkSink {
    /// Listens with a `BulkSinkSpec`.
    #[staticmethod]
    #[pyo3(signature = (spec_json, /))]
    fn start(py: Python<'_>, spec_json: &str) -> PyResult<Self> {
        let end = End::start(py, spec_json, linerate_load::BulkSink::start)?;
        let address = end.running().as_ref().map(linerate_load::BulkSink::address);
        let address = address.map(|address| (address.ip().to_string(), address.port())).unwrap_or_default();
        Ok(Self { address, end })
    }

    /// Where it listens, as the kernel chose it.
    #[getter]
    fn address(&self) -> (String, u16) {
        self.address.clone()
    }

    /// Counters since the start; empty once stopped.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.end.stats(py, linerate_load::BulkSink::stats)
    }

    /// Closes its connections. A second call does nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.end.stop(py)
    }
}

/// The end of bulk TCP streams that sends, as fast as possible or at a rate.
#[pyclass(frozen, module = "linerate._core")]
pub(crate) struct BulkSource {
    end: End<linerate_load::BulkSource>,
}

#[pymethods]
impl BulkSource {
    /// Connects to a sink with a `BulkSourceSpec`, and sends.
    #[staticmethod]
    #[pyo3(signature = (spec_json, /))]
    fn start(py: Python<'_>, spec_json: &str) -> PyResult<Self> {
        Ok(Self { end: End::start(py, spec_json, linerate_load::BulkSource::start)? })
    }

    /// Counters since the start, at most 50 ms old; empty once stopped.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.end.stats(py, linerate_load::BulkSource::stats)
    }

    /// Closes its connections. A second call does nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.end.stop(py)
    }
}
