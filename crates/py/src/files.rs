//! A run of a file system workload for Python: start, fetch intervals, stop, finish.

use crate::{
    errors::{blamed, refused_json, run_error},
    interval::{Interval, Names},
    run::{Summary, gone},
    tools::loaded,
    wait::{in_slices, interruptible},
};
use linerate_blame::Blame;
use linerate_io::blocking::EntryKind;
use linerate_load::files::{self, FilesRunSpec};
use pyo3::prelude::*;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The names in the anchor of a structure of a `FilesRunSpec` (version 1), each with what it is: `file`, `folder` or
/// `other`. None: there is no anchor.
#[pyfunction]
#[pyo3(signature = (spec_json, structure, /))]
pub(crate) fn anchor_names(
    py: Python<'_>,
    spec_json: &str,
    structure: &str,
) -> PyResult<Option<Vec<(String, &'static str)>>> {
    let spec: FilesRunSpec =
        serde_json::from_str(spec_json).map_err(|error| refused_json("files run", &error))?;
    let found = spec.structures.into_iter().find(|one| one.name == structure);
    let unknown = || blamed(Blame::Us, format!("there is no structure {structure}"), "please report this");
    let structure = found.ok_or_else(unknown)?;
    let names = interruptible(py, move || files::anchor_names(&structure))?;
    let word = |(name, kind)| match kind {
        EntryKind::File(_) => (name, "file"),
        EntryKind::Folder => (name, "folder"),
        EntryKind::Other => (name, "other"),
    };
    Ok(names.map_err(|error| run_error(&error))?.map(|names| names.into_iter().map(word).collect()))
}

/// What runs of this process have written into files: a run checks what those before it wrote.
#[pyclass(frozen, module = "linerate._core")]
#[derive(Debug)]
pub(crate) struct WrittenFiles(Arc<files::WrittenFiles>);

#[pymethods]
impl WrittenFiles {
    /// Nothing was written yet.
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }
}

/// A run of a file system workload that is ready to start.
#[pyclass(frozen, module = "linerate._core")]
#[derive(Debug)]
pub(crate) struct PreparedFilesRun {
    run: Mutex<Option<files::PreparedFilesRun>>,
    names: Arc<Names>,
}

/// A run of a file system workload that is going on.
#[pyclass(frozen, module = "linerate._core")]
#[derive(Debug)]
pub(crate) struct FilesRun {
    run: Arc<files::FilesRun>,
    names: Arc<Names>,
}

#[pymethods]
impl FilesRun {
    /// Looks at the structures of a `FilesRunSpec` (version 1) and starts the threads. `written` is what runs before it
    /// wrote, for a run that checks data.
    #[staticmethod]
    #[pyo3(signature = (spec_json, written, /))]
    fn start(py: Python<'_>, spec_json: &str, written: &Bound<'_, WrittenFiles>) -> PyResult<Self> {
        let (spec, names) = parsed(spec_json)?;
        let written = Arc::clone(&written.get().0);
        let run = interruptible(py, move || files::FilesRun::start(spec, &written))?
            .map_err(|error| run_error(&error))?;
        Ok(Self { run: Arc::new(run), names })
    }

    /// Looks at the structures of a `FilesRunSpec` (version 1), so that the threads can start at an instant.
    #[staticmethod]
    #[pyo3(signature = (spec_json, written, /))]
    fn prepare(
        py: Python<'_>,
        spec_json: &str,
        written: &Bound<'_, WrittenFiles>,
    ) -> PyResult<PreparedFilesRun> {
        let (spec, names) = parsed(spec_json)?;
        let written = Arc::clone(&written.get().0);
        let run = interruptible(py, move || files::PreparedFilesRun::new(spec, &written))?
            .map_err(|error| run_error(&error))?;
        Ok(PreparedFilesRun { run: Mutex::new(Some(run)), names })
    }

    /// Threads, and per structure the size of its files.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loaded(py, self.run.facts())
    }

    /// The next interval, or None when the timeout passes or the run has ended (see `finished`).
    #[pyo3(signature = (timeout_s, /))]
    fn next_interval(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<Interval>> {
        let timeout = Duration::try_from_secs_f64(timeout_s).unwrap_or_default();
        let next = in_slices(py, timeout, |slice| {
            // A run that has ended is no reason to wait.
            if self.run.finished() { Some(None) } else { self.run.next_interval(slice).map(Some) }
        })?;
        Ok(next.flatten().map(|measured| Interval::new(measured, Arc::clone(&self.names))))
    }

    /// No further interval will come.
    #[getter]
    fn finished(&self) -> bool {
        self.run.finished()
    }

    /// Lets operations in flight end and starts no more; returns at once.
    fn stop(&self) {
        self.run.stop();
    }

    /// Waits for the end and returns the summary.
    fn finish(&self, py: Python<'_>) -> PyResult<Summary> {
        let run = Arc::clone(&self.run);
        let summary = interruptible(py, move || run.finish())?;
        Summary::new(py, summary, &self.names)
    }
}

#[pymethods]
impl PreparedFilesRun {
    /// The actual settings, as `FilesRun.facts`.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        loaded(py, run.as_ref().ok_or_else(gone)?.facts())
    }

    /// Starts the threads at an instant of `time.monotonic_ns`, once.
    #[pyo3(signature = (monotonic_ns, /))]
    fn start_at(&self, monotonic_ns: u64) -> PyResult<FilesRun> {
        let prepared = self.run.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(gone)?;
        let run = prepared.start_at(monotonic_ns).map_err(|error| run_error(&error))?;
        Ok(FilesRun { run: Arc::new(run), names: Arc::clone(&self.names) })
    }

    /// Logs off again and waits until that is done.
    fn discard(&self, py: Python<'_>) {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(run));
    }
}

fn parsed(spec_json: &str) -> PyResult<(FilesRunSpec, Arc<Names>)> {
    let spec: FilesRunSpec =
        serde_json::from_str(spec_json).map_err(|error| refused_json("files run", &error))?;
    let names = Names {
        streams: spec.streams.iter().map(|stream| stream.name.clone()).collect(),
        volumes: spec.structures.iter().map(|structure| structure.name.clone()).collect(),
    };
    Ok((spec, Arc::new(names)))
}
