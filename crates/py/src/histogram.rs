//! Latency distributions for Python: merge, query, encode.

use crate::errors::histogram_error;
use pyo3::{prelude::*, types::PyBytes};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts of nanoseconds in HDR buckets of three significant digits.
#[pyclass(frozen, module = "linerate._core")]
#[derive(Debug)]
pub(crate) struct Histogram(Mutex<linerate_load::Histogram>);

impl From<linerate_load::Histogram> for Histogram {
    fn from(counts: linerate_load::Histogram) -> Self {
        Self(Mutex::new(counts))
    }
}

impl Histogram {
    fn counts(&self) -> MutexGuard<'_, linerate_load::Histogram> {
        // Counts are complete after every call, so a panic elsewhere cannot have left them incomplete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Histogram {
    #[new]
    fn new() -> Self {
        linerate_load::Histogram::new().into()
    }

    /// From `HdrHistogram` V2 bytes, compressed or not. Raises `UserError` on anything else.
    #[staticmethod]
    #[pyo3(signature = (data, /))]
    fn decode(data: &[u8]) -> PyResult<Self> {
        let counts = linerate_load::Histogram::decode(data).map_err(|error| histogram_error(&error))?;
        Ok(counts.into())
    }

    /// `HdrHistogram` V2, compressed, as a .hlog line has it in base64.
    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.counts().encode())
    }

    /// Adds `count` values.
    #[pyo3(signature = (value_ns, count = 1))]
    fn record(&self, value_ns: u64, count: u64) {
        self.counts().record(value_ns, count);
    }

    /// Adds the counts of `other`.
    #[pyo3(signature = (other, /))]
    fn merge(&self, other: &Bound<'_, Self>) {
        let added = other.get().counts().clone();
        self.counts().merge(&added);
    }

    /// The value that the share `q` (0 to 1) of the counts does not exceed; 0 when empty.
    #[pyo3(signature = (q, /))]
    fn quantile(&self, q: f64) -> u64 {
        self.counts().quantile(q)
    }

    /// Buckets in use, ascending: lowest value, highest value, count.
    fn buckets(&self) -> Vec<(u64, u64, u64)> {
        self.counts().buckets()
    }

    /// Values recorded.
    #[getter]
    fn count(&self) -> u64 {
        self.counts().count()
    }

    /// Smallest value; 0 when empty.
    #[getter]
    fn min(&self) -> u64 {
        self.counts().min()
    }

    /// Largest value; 0 when empty.
    #[getter]
    fn max(&self) -> u64 {
        self.counts().max()
    }

    /// Mean; 0 when empty.
    #[getter]
    fn mean(&self) -> f64 {
        self.counts().mean()
    }
}
