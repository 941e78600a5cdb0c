//! A phase of an image backup for Python: start, fetch intervals, stop, finish.

use crate::{
    errors::{refused_json, run_error},
    interval::{Interval, Names},
    run::Summary,
    tools::loaded,
    wait::{in_slices, interruptible},
};
use linerate_load::backup::job::{self, BackupJobSpec, STREAMS, VOLUMES};
use pyo3::prelude::*;
use std::{sync::Arc, time::Duration};

/// A phase of an image backup that is going on.
#[pyclass(frozen, module = "linerate._core")]
#[derive(Debug)]
pub(crate) struct BackupJob {
    job: Arc<job::BackupJob>,
    names: Arc<Names>,
}

#[pymethods]
impl BackupJob {
    /// Opens the volumes of a `BackupJobSpec` (version 1) and starts the phase.
    #[staticmethod]
    #[pyo3(signature = (spec_json, /))]
    fn start(py: Python<'_>, spec_json: &str) -> PyResult<Self> {
        let spec: BackupJobSpec =
            serde_json::from_str(spec_json).map_err(|error| refused_json("backup job", &error))?;
        let job = interruptible(py, || job::BackupJob::start(spec))?.map_err(|error| run_error(&error))?;
        let names =
            Names { streams: STREAMS.map(str::to_owned).into(), volumes: VOLUMES.map(str::to_owned).into() };
        Ok(Self { job: Arc::new(job), names: Arc::new(names) })
    }

    /// The negotiated and read back settings: driver, and per volume its size, session and socket.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loaded(py, self.job.facts())
    }

    /// Bytes of data that the phase copies, or makes zeros.
    #[getter]
    fn data_bytes(&self) -> u64 {
        self.job.data_bytes()
    }

    /// The next interval, or None when the timeout passes or the job has ended (see `finished`).
    #[pyo3(signature = (timeout_s, /))]
    fn next_interval(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<Interval>> {
        let timeout = Duration::try_from_secs_f64(timeout_s).unwrap_or_default();
        let next = in_slices(py, timeout, |slice| {
            // A job that has ended is no reason to wait.
            if self.job.finished() { Some(None) } else { self.job.next_interval(slice).map(Some) }
        })?;
        Ok(next.flatten().map(|measured| Interval::new(measured, Arc::clone(&self.names))))
    }

    /// No further interval will come.
    #[getter]
    fn finished(&self) -> bool {
        self.job.finished()
    }

    /// Lets I/Os in flight finish and starts no more; returns at once.
    fn stop(&self) {
        self.job.stop();
    }

    /// Waits for the end and returns the summary.
    fn finish(&self, py: Python<'_>) -> PyResult<Summary> {
        let job = Arc::clone(&self.job);
        let summary = interruptible(py, move || job.finish())?;
        Summary::new(py, summary, &self.names)
    }

    /// Waits for the end and returns counters of what is not an I/O of data.
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let job = Arc::clone(&self.job);
        loaded(py, &interruptible(py, move || job.totals())?)
    }
}
