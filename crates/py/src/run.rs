//! A run for Python: prepare, start, fetch intervals, stop, finish.

use crate::{
    errors::{blamed, refused_json, run_error},
    interval::{Interval, Names},
    tools::{loaded, loads},
    wait::{in_slices, interruptible},
};
use linerate_blame::Blame;
use linerate_load::{RunOutcome, RunSpec};
use pyo3::prelude::*;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// A running run.
#[pyclass(frozen, module = "linerate._core")]
#[derive(Debug)]
pub(crate) struct Run {
    load: Arc<linerate_load::Run>,
    names: Arc<Names>,
    /// The interval that was returned last.
    given: Mutex<Option<u32>>,
}

/// A run that is ready to start: its volumes are open.
#[pyclass(frozen, module = "linerate._core")]
#[derive(Debug)]
pub(crate) struct PreparedRun {
    run: Mutex<Option<linerate_load::PreparedRun>>,
    names: Arc<Names>,
}

/// The end of a run, and its measurements until then.
#[pyclass(frozen, module = "linerate._core")]
#[derive(Debug)]
pub(crate) struct Summary {
    total: Py<Interval>,
    outcome: RunOutcome,
}

#[pymethods]
impl Run {
    /// Opens every volume of a `RunSpec` (version 1) and starts the load.
    #[staticmethod]
    #[pyo3(signature = (spec_json, /))]
    fn start(py: Python<'_>, spec_json: &str) -> PyResult<Self> {
        let (spec, names) = parsed(spec_json)?;
        let run =
            interruptible(py, || linerate_load::Run::start(spec))?.map_err(|error| run_error(&error))?;
        Ok(Self::new(run, names))
    }

    /// Opens every volume of a `RunSpec` (version 1), so that the load can start at an instant.
    #[staticmethod]
    #[pyo3(signature = (spec_json, /))]
    fn prepare(py: Python<'_>, spec_json: &str) -> PyResult<PreparedRun> {
        let (spec, names) = parsed(spec_json)?;
        let run = interruptible(py, || linerate_load::PreparedRun::new(spec))?
            .map_err(|error| run_error(&error))?;
        Ok(PreparedRun { run: Mutex::new(Some(run)), names })
    }

    /// Runs a `RunSpec` (version 1) in virtual time on the volumes of an array's configuration, `array:NAME` each.
    #[staticmethod]
    #[pyo3(signature = (spec_json, array_json, /))]
    fn in_virtual_time(py: Python<'_>, spec_json: &str, array_json: &str) -> PyResult<Self> {
        let (spec, names) = parsed(spec_json)?;
        let virtual_array =
            linerate_load::VirtualArray::of_array(array_json).map_err(|error| run_error(&error))?;
        let run = interruptible(py, || linerate_load::Run::in_virtual_time(spec, virtual_array))?
            .map_err(|error| run_error(&error))?;
        Ok(Self::new(run, names))
    }

    /// The report of the array of a run in virtual time about its storage, at the end of the interval that was returned
    /// last, or at the start; empty if the run is in real time.
    fn storage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let given = *self.given.lock().unwrap_or_else(PoisonError::into_inner);
        loads(py, self.load.report(given).as_deref().unwrap_or("{}"))
    }

    /// The negotiated and read back settings: driver, workers, CPUs, and per volume its size, session and socket.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loaded(py, self.load.facts())
    }

    /// The next interval, or None when the timeout passes or the run has ended (see `finished`).
    #[pyo3(signature = (timeout_s, /))]
    fn next_interval(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<Interval>> {
        let timeout = Duration::try_from_secs_f64(timeout_s).unwrap_or_default();
        let step = |slice| self.load.next_interval(slice);
        let next = in_slices(py, timeout, step)?;
        if let Some(measured) = &next {
            *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured.index);
        }
        Ok(next.map(|measured| Interval::new(measured, Arc::clone(&self.names))))
    }

    /// No further interval will come.
    #[getter]
    fn finished(&self) -> bool {
        self.load.finished()
    }

    /// Lets I/Os in flight finish and starts no more; returns at once.
    fn stop(&self) {
        self.load.stop();
    }

    /// Waits for the end and returns the summary.
    fn finish(&self, py: Python<'_>) -> PyResult<Summary> {
        let run = Arc::clone(&self.load);
        let summary = interruptible(py, move || run.finish())?;
        Summary::new(py, summary, &self.names)
    }
}

#[pymethods]
impl PreparedRun {
    /// The negotiated and read back settings, as `Run.facts`.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        loaded(py, run.as_ref().ok_or_else(gone)?.facts())
    }

    /// Starts the load at an instant of `time.monotonic_ns`, once.
    #[pyo3(signature = (monotonic_ns, /))]
    fn start_at(&self, monotonic_ns: u64) -> PyResult<Run> {
        let prepared = self.run.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(gone)?;
        let run = prepared.start_at(monotonic_ns).map_err(|error| run_error(&error))?;
        Ok(Run::new(run, Arc::clone(&self.names)))
    }

    /// Closes the volumes again and waits until that is done.
    fn discard(&self, py: Python<'_>) {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| run.map(linerate_load::PreparedRun::discard));
    }
}

#[pymethods]
impl Summary {
    /// The measured time as one interval, warm-up left out.
    #[getter]
    fn total(&self, py: Python<'_>) -> Py<Interval> {
        self.total.clone_ref(py)
    }

    /// `completed`, `stopped` or `failed`.
    #[getter]
    fn outcome(&self) -> &'static str {
        match self.outcome {
            RunOutcome::Completed => "completed",
            RunOutcome::Stopped => "stopped",
            RunOutcome::Failed(_) => "failed",
        }
    }

    /// The error that made the run fail; None if it did not.
    #[getter]
    fn error(&self) -> Option<PyErr> {
        match &self.outcome {
            RunOutcome::Failed(error) => Some(run_error(error)),
            RunOutcome::Completed | RunOutcome::Stopped => None,
        }
    }
}

impl Summary {
    pub(crate) fn new(py: Python<'_>, summary: linerate_load::Summary, names: &Arc<Names>) -> PyResult<Self> {
        let total = Py::new(py, Interval::new(summary.total, Arc::clone(names)))?;
        Ok(Self { total, outcome: summary.outcome })
    }
}

impl Run {
    fn new(run: linerate_load::Run, names: Arc<Names>) -> Self {
        Self { load: Arc::new(run), names, given: Mutex::default() }
    }
}

fn parsed(spec_json: &str) -> PyResult<(RunSpec, Arc<Names>)> {
    let spec: RunSpec = serde_json::from_str(spec_json).map_err(|error| refused_json("run", &error))?;
    let names = Names {
        streams: spec.streams.iter().map(|stream| stream.name.clone()).collect(),
        volumes: spec.volumes.iter().map(|volume| volume.name.clone()).collect(),
    };
    Ok((spec, Arc::new(names)))
}

/// A prepared run is used once.
pub(crate) fn gone() -> PyErr {
    blamed(Blame::Us, "this run was started or discarded before", "please report this")
}
