//! The agreement of both sides of the seam: the form of every JSON text, and the limits of RAID levels and drives.
//!
//! The Rust types are the reference. `tests/tidy/test_seam.py` compares the models of Python with these schemas.

use crate::errors::blamed;
use linerate_blame::Blame;
use linerate_fabric::{ChangeSpec, FabricSpec};
use linerate_iscsi_initiator::SessionOptions;
use linerate_iscsi_target::{ArrayChange, ArrayConfig};
use linerate_load::{RunSpec, backup::job::BackupJobSpec, files::FilesRunSpec};
use linerate_smb::SmbOptions;
use linerate_storage::{
    controller::Command,
    disk::modelled::drives::DRIVES,
    raid::{CHUNK_BYTES, RaidLevel},
};
use pyo3::prelude::*;
use schemars::{Schema, schema_for};
use serde_json::json;

/// Makes the schema of one type.
type MakeSchema = fn() -> Schema;

/// Name of a text, and the schema of the type that reads it.
const SCHEMAS: [(&str, MakeSchema); 10] = [
    ("run", || schema_for!(RunSpec)),
    ("backup_job", || schema_for!(BackupJobSpec)),
    ("files_run", || schema_for!(FilesRunSpec)),
    ("session_options", || schema_for!(SessionOptions)),
    ("smb_options", || schema_for!(SmbOptions)),
    ("array", || schema_for!(ArrayConfig)),
    ("array_change", || schema_for!(ArrayChange)),
    ("array_command", || schema_for!(Command)),
    ("fabric", || schema_for!(FabricSpec)),
    ("fabric_change", || schema_for!(ChangeSpec)),
];

/// JSON Schemas of all texts that Python sends, by name.
#[pyfunction]
pub(crate) fn schemas(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let all: serde_json::Map<_, _> =
        SCHEMAS.iter().map(|(name, make)| ((*name).to_owned(), make().to_value())).collect();
    crate::tools::loaded(py, &all)
}

/// Limits that configurations share: names of RAID levels and of modelled drives, sizes of chunks.
#[pyfunction]
pub(crate) fn limits(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let limits = json!({
        "raid_levels": RaidLevel::ALL.map(|level| level.to_string()),
        "parity_levels": RaidLevel::ALL.iter().filter(|level| level.has_parity()).map(RaidLevel::to_string)
            .collect::<Vec<_>>(),
        "chunk_bytes": [CHUNK_BYTES.start(), CHUNK_BYTES.end()],
        "drives": DRIVES.iter().map(|drive| drive.name).collect::<Vec<_>>(),
    });
    crate::tools::loaded(py, &limits)
}

/// Why a RAID set of this many disks and spares cannot have this level; None if it can. `groups` is used for RAID 50
/// and 60.
#[pyfunction]
#[pyo3(signature = (level, disks, groups, spares))]
pub(crate) fn raid_level_fault(
    level: &str,
    disks: usize,
    groups: usize,
    spares: usize,
) -> PyResult<Option<String>> {
    let level: RaidLevel =
        level.parse().map_err(|error| blamed(Blame::User, format!("{error}"), "choose one of the levels"))?;
    Ok(level.check(disks, groups, spares).err().map(|error| error.to_string()))
}
