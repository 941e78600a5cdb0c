//! The seam between Rust and Python: `linerate._core`.
//!
//! Specs come in as JSON that Python has validated; columns, histograms and small frozen objects are returned. There is
//! no logic here: a function parses, calls one crate, and converts. Three rules are valid for all of them:
//!
//! - No Python runs on a thread that makes or serves I/O. Python fetches results ([`run::Run::next_interval`]).
//! - A call that may block releases the interpreter and checks for Ctrl-C every 20 ms ([`wait`]).
//! - Every failure becomes a class of `linerate.errors` by whose fault it is ([`errors`]).

mod array;
mod backup;
mod bulk;
mod errors;
mod fabric;
mod files;
mod histogram;
mod interval;
mod log;
mod run;
mod schemas;
mod tools;
mod wait;

use pyo3::prelude::*;

/// The data plane: arrays that serve, runs that make I/O and measure its time, and histograms of the measurements.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::array::PyArray;
    #[pymodule_export]
    use super::backup::BackupJob;
    #[pymodule_export]
    use super::bulk::{BulkSink, BulkSource};
    #[pymodule_export]
    use super::fabric::Fabric;
    #[pymodule_export]
    use super::files::{FilesRun, PreparedFilesRun, WrittenFiles, anchor_names};
    #[pymodule_export]
    use super::histogram::Histogram;
    #[pymodule_export]
    use super::interval::Interval;
    #[pymodule_export]
    use super::log::Log;
    #[pymodule_export]
    use super::run::{PreparedRun, Run, Summary};
    #[pymodule_export]
    use super::schemas::{limits, raid_level_fault, schemas};
    #[pymodule_export]
    use super::tools::{discover, host_probe, shares, volume_ends};
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    /// Package version; all crates share one.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Rust's log lines go to Python's logging; a second initialisation (sub-interpreter) keeps the first.
        let _ = pyo3_log::try_init();
        module.add("__doc__", "The data plane of Linerate.")
    }
}
