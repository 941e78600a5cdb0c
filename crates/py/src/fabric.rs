//! A fabric for Python: start, look, change, stop.

use crate::{
    errors::{blamed, fabric_error},
    tools::loaded,
    wait::interruptible,
};
use linerate_blame::Blame;
use linerate_fabric::{ChangeSpec, FabricError, FabricSpec, FabricStats};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A network of TAP interfaces, NICs, links and switches that carries packets in this process until `stop`.
#[pyclass(frozen, module = "linerate._core")]
pub(crate) struct Fabric {
    running: Arc<Mutex<Option<linerate_fabric::Fabric>>>,
}

type Running<'a> = MutexGuard<'a, Option<linerate_fabric::Fabric>>;

impl Fabric {
    /// Calls the fabric's thread without holding the interpreter.
    fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&linerate_fabric::Fabric) -> Result<T, FabricError> + Send + 'static,
    ) -> PyResult<T> {
        let running = Arc::clone(&self.running);
        let answer = interruptible(py, move || lock(&running).as_ref().map(question))?;
        answer
            .ok_or_else(|| blamed(Blame::User, "the fabric has been stopped", "start another one"))?
            .map_err(|error| fabric_error(&error))
    }
}

/// The option is set or taken as a whole, so a panic elsewhere cannot have left it incomplete.
fn lock(running: &Mutex<Option<linerate_fabric::Fabric>>) -> Running<'_> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Fabric {
    /// Makes the TAPs of a `FabricSpec` and carries packets between them from now on.
    #[staticmethod]
    #[pyo3(signature = (spec_json, /))]
    fn start(py: Python<'_>, spec_json: &str) -> PyResult<Self> {
        let spec = FabricSpec::from_json(spec_json).map_err(|error| fabric_error(&error.into()))?;
        let fabric = interruptible(py, move || linerate_fabric::Fabric::start(&spec))?
            .map_err(|error| fabric_error(&error))?;
        Ok(Self { running: Arc::new(Mutex::new(Some(fabric))) })
    }

    /// Counters since the start.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats: FabricStats = self.ask(py, linerate_fabric::Fabric::stats)?;
        loaded(py, &stats)
    }

    /// Applies a `ChangeSpec` while packets flow. Returns the time at which it took effect, in nanoseconds of the
    /// monotonic clock.
    #[pyo3(signature = (change_json, /))]
    fn change(&self, py: Python<'_>, change_json: &str) -> PyResult<u64> {
        let change = ChangeSpec::from_json(change_json).map_err(|error| fabric_error(&error.into()))?;
        self.ask(py, move |fabric| fabric.change(change))
    }

    /// Ends it and removes its TAPs. A second call does nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let running = Arc::clone(&self.running);
        let stopped = interruptible(py, move || lock(&running).take().map(linerate_fabric::Fabric::stop))?;
        stopped.unwrap_or(Ok(())).map_err(|error| fabric_error(&error))
    }
}
