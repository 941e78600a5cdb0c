//! The options of a volume's sessions and paths, as the initiator and the SMB client take them.

use super::VolumeSpec;
use linerate_iscsi_initiator::{MultipathOptions, OptionsError, PathSpec, SessionOptions};
use linerate_smb::SmbOptions;

/// The paths of a volume and how they are used; no paths = one, by the URL. An error names the part that is wrong.
pub(crate) fn multipath_options(
    spec: &VolumeSpec,
) -> Result<(Vec<PathSpec>, MultipathOptions), (&'static str, String)> {
    let path = |table: &crate::spec::PathOptions| {
        serde_json::from_value(serde_json::Value::Object(table.clone())).map_err(|error| error.to_string())
    };
    let paths: Vec<PathSpec> =
        spec.paths.iter().map(path).collect::<Result<_, _>>().map_err(|error| ("paths", error))?;
    let options: MultipathOptions = serde_json::from_value(serde_json::Value::Object(spec.multipath.clone()))
        .map_err(|error| ("multipath", error.to_string()))?;
    options.check(&paths).map_err(|error| match error {
        OptionsError::Paths(problem) => ("paths", problem),
        other => ("multipath", other.to_string()),
    })?;
    Ok((paths, options))
}

/// The session options of a volume.
pub(crate) fn session_options(spec: &VolumeSpec) -> Result<SessionOptions, String> {
    let options: SessionOptions = serde_json::from_value(serde_json::Value::Object(spec.iscsi.clone()))
        .map_err(|error| error.to_string())?;
    options.check().map_err(|error| error.to_string())?;
    Ok(options)
}

/// The options of a volume's SMB session.
pub(crate) fn smb_options(spec: &VolumeSpec) -> Result<SmbOptions, String> {
    smb_options_of(&spec.smb)
}

/// Options of an SMB session.
pub(crate) fn smb_options_of(given: &super::SmbOptions) -> Result<SmbOptions, String> {
    let options: SmbOptions = serde_json::from_value(serde_json::Value::Object(given.clone()))
        .map_err(|error| error.to_string())?;
    options.check().map_err(|error| error.to_string())?;
    Ok(options)
}
