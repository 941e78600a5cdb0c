//! One-shot queries, and the conversion of structured answers for Python.

use crate::{
    errors::{blamed, refused_json, run_error, smb_error, tool_error},
    wait::interruptible,
};
use linerate_blame::Blame;
use linerate_io::{AnyDriver, Preference, open_driver, system, with_driver};
use linerate_iscsi_initiator::{Credentials, SessionOptions};
use linerate_load::{RunSpec, VolumeEnds};
use linerate_smb::{ListedShare, SmbAddress, SmbCredentials, SmbOptions, SmbToolError, list_shares};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};
use serde::Serialize;
use serde_json::json;

/// Targets behind `iscsi://[user%secret@]host[:port][/target]`, with portals and LUNs.
#[pyfunction]
#[pyo3(signature = (url, options_json = "{}"))]
pub(crate) fn discover<'py>(py: Python<'py>, url: &str, options_json: &str) -> PyResult<Bound<'py, PyAny>> {
    let options: SessionOptions =
        serde_json::from_str(options_json).map_err(|error| refused_json("session options", &error))?;
    let url = url.to_owned();
    let ask = move || linerate_iscsi_initiator::discover(&url, &options, &Credentials::default());
    let targets = interruptible(py, ask)?.map_err(|error| tool_error(&error))?;
    loaded(py, &targets)
}

/// The shares of the server `smb://host[:port]`, with type and comment.
#[pyfunction]
#[pyo3(signature = (url, user = None, secret = None, options_json = "{}"))]
pub(crate) fn shares<'py>(
    py: Python<'py>,
    url: &str,
    user: Option<&str>,
    secret: Option<&str>,
    options_json: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let options: SmbOptions =
        serde_json::from_str(options_json).map_err(|error| refused_json("SMB options", &error))?;
    let (url, credentials) = (url.to_owned(), SmbCredentials::of_user(user, secret));
    let ask = move || -> Result<Vec<ListedShare>, SmbToolError> {
        let address = SmbAddress::of_server(&url)?;
        with_driver!(open_driver(Preference::Auto)?, |driver| {
            list_shares(driver, &address, &options, credentials)
        })
    };
    let found = interruptible(py, ask)?.map_err(|error| smb_error(&error))?;
    let as_json = |share: &ListedShare| {
        json!({
            "name": share.name,
            "type": share.kind.name(),
            "special": share.is_special,
            "temporary": share.is_temporary,
            "comment": share.comment,
        })
    };
    loaded(py, &found.iter().map(as_json).collect::<Vec<_>>())
}

/// The first and the last 2 MiB of every LUN and every file of a share of a `RunSpec` (version 1).
#[pyfunction]
#[pyo3(signature = (spec_json, /))]
pub(crate) fn volume_ends<'py>(py: Python<'py>, spec_json: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let spec: RunSpec = serde_json::from_str(spec_json).map_err(|error| refused_json("run", &error))?;
    let names: Vec<String> = spec.volumes.iter().map(|volume| volume.name.clone()).collect();
    let found = interruptible(py, move || linerate_load::read_ends(&spec))?;
    let found = found.map_err(|error| run_error(&error))?;
    let as_dict = |ends: VolumeEnds| {
        let dict = PyDict::new(py);
        dict.set_item("volume", &names[ends.volume as usize])?;
        dict.set_item("capacity_bytes", ends.capacity_bytes)?;
        dict.set_item("block_bytes", ends.block_bytes)?;
        dict.set_item("session", loaded(py, &ends.session)?)?;
        dict.set_item("first", PyBytes::new(py, &ends.first))?;
        dict.set_item("last", PyBytes::new(py, &ends.last))?;
        dict.set_item("failure", ends.failure)?;
        Ok(dict)
    };
    found.into_iter().map(as_dict).collect()
}

/// The properties of this host: the usable drivers, allowed CPUs, TSC frequency.
#[pyfunction]
pub(crate) fn host_probe(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let host = |error: std::io::Error| blamed(Blame::Host, error.to_string(), "is /proc there?");
    let usable = |preference| open_driver(preference).map(|driver: AnyDriver| drop(driver)).is_ok();
    let facts = json!({
        "cpus": system::allowed_cpus().map_err(host)?,
        "tsc_hz": py.detach(system::tsc_hz),
        "io_uring": usable(Preference::IoUring),
        "epoll": usable(Preference::Epoll),
    });
    loaded(py, &facts)
}

/// Any answer as plain Python objects, through JSON: for facts and statistics, never for measurements.
pub(crate) fn loaded<'py>(py: Python<'py>, answer: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(answer).map_err(|error| {
        blamed(Blame::Us, format!("an answer has no JSON form: {error}"), "please report this")
    })?;
    loads(py, &text)
}

/// JSON as plain Python objects.
pub(crate) fn loads<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (json,))
}
