//! An array for Python: start, look, change, stop.

use crate::{
    errors::{array_error, blamed, refused_json, storage_error},
    tools::loaded,
    wait::interruptible,
};
use linerate_blame::Blame;
use linerate_iscsi_target::{ArrayChange, ArrayConfig};
use linerate_storage::controller::{Command, Reply, inspect};
use pyo3::prelude::*;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An iSCSI array that serves in this process until `stop`.
#[pyclass(frozen, name = "Array", module = "linerate._core")]
pub(crate) struct PyArray {
    running: Mutex<Option<Arc<linerate_iscsi_target::Array>>>,
}

impl PyArray {
    fn running(&self) -> MutexGuard<'_, Option<Arc<linerate_iscsi_target::Array>>> {
        // The option is set or taken as a whole, so a panic elsewhere cannot have left it incomplete.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the array; None once it is stopped. Neither the lock nor the interpreter is held during the call: two
    /// threads that each hold one of them and wait for the other would wait for ever.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&linerate_iscsi_target::Array) -> T + Send,
    ) -> Option<T> {
        py.detach(|| {
            let array = self.running().clone();
            array.map(|array| ask(&array))
        })
    }
}

/// A request to [`PyArray::manage`], by its verb.
enum Order {
    Storage(Command),
    /// A verb of replication with its fields.
    Replication(String, Reply),
}

impl Order {
    fn read(json: &str) -> PyResult<Self> {
        let mut fields: Reply =
            serde_json::from_str(json).map_err(|error| refused_json("command", &error))?;
        let verb = fields.get("verb").and_then(Value::as_str).filter(|verb| verb.starts_with("replica_"));
        if let Some(verb) = verb.map(str::to_owned) {
            fields.remove("verb");
            return Ok(Self::Replication(verb, fields));
        }
        let command = serde_json::from_value(Value::Object(fields));
        command.map(Self::Storage).map_err(|error| refused_json("command", &error))
    }
}

#[pymethods]
impl PyArray {
    /// Opens the volumes of an `ArrayConfig` and listens on its portals.
    #[staticmethod]
    #[pyo3(signature = (config_json, /))]
    fn start(py: Python<'_>, config_json: &str) -> PyResult<Self> {
        let config: ArrayConfig =
            serde_json::from_str(config_json).map_err(|error| refused_json("array", &error))?;
        let array = interruptible(py, || linerate_iscsi_target::Array::start(config))?
            .map_err(|error| array_error(&error))?;
        Ok(Self { running: Mutex::new(Some(Arc::new(array))) })
    }

    /// Inspects the storage of an `ArrayConfig` as a start would find it; changes nothing.
    #[staticmethod]
    #[pyo3(signature = (config_json, /))]
    fn inspect<'py>(py: Python<'py>, config_json: &str) -> PyResult<Bound<'py, PyAny>> {
        let config: ArrayConfig =
            serde_json::from_str(config_json).map_err(|error| refused_json("array", &error))?;
        let found = interruptible(py, move || inspect(config.storage, config.driver.into()))?
            .map_err(|error| storage_error(&error))?;
        loaded(py, &found)
    }

    /// Addresses and ports on which it listens now, as the kernel chose them; none once stopped.
    #[getter]
    fn portals(&self, py: Python<'_>) -> Vec<(String, u16)> {
        let portals = self.ask(py, linerate_iscsi_target::Array::portals).unwrap_or_default();
        portals.iter().map(|portal| (portal.ip().to_string(), portal.port())).collect()
    }

    /// Counters since the start, and the current sessions; empty once stopped.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.ask(py, linerate_iscsi_target::Array::report) {
            Some(report) => loaded(py, &report),
            None => loaded(py, &serde_json::Map::new()),
        }
    }

    /// Applies an `ArrayChange` while the array serves.
    #[pyo3(signature = (change_json, /))]
    fn change(&self, py: Python<'_>, change_json: &str) -> PyResult<()> {
        let change: ArrayChange =
            serde_json::from_str(change_json).map_err(|error| refused_json("array change", &error))?;
        match self.ask(py, |array| array.change(&change)) {
            Some(changed) => changed.map_err(|error| {
                blamed(Blame::User, error.to_string(), "name what the array's configuration names")
            }),
            None => Err(blamed(Blame::User, "the array has been stopped", "start another one")),
        }
    }

    /// Executes a management command on the array's storage; returns its reply as JSON.
    #[pyo3(signature = (command_json, /))]
    fn manage(&self, py: Python<'_>, command_json: &str) -> PyResult<String> {
        let command = Order::read(command_json)?;
        let Some(array) = py.detach(|| self.running().clone()) else {
            return Err(blamed(Blame::User, "the array has been stopped", "start another one"));
        };
        let reply = interruptible(py, move || match command {
            Order::Storage(command) => array.manage(&command),
            Order::Replication(verb, fields) => array.replicate(&verb, fields),
        })?;
        reply.map(|reply| Value::Object(reply).to_string()).map_err(|error| storage_error(&error))
    }

    /// Closes all sessions and waits until nothing is left. A second call does nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let Some(array) = py.detach(|| self.running().take()) else { return Ok(()) };
        // It stops when its last user drops it; nearly always that is here.
        interruptible(py, || drop(array))
    }
}
