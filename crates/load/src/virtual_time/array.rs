//! The virtual array of an array file: its disks, RAID sets and pools, made by the array's own controller.

use super::virtual_array::{MakeVirtualArray, VirtualArray, VirtualVolume};
use crate::{error::RunError, spec::SpecError};
use linerate_blame::Blame;
use linerate_storage::{
    Runtime,
    controller::{Controller, DiskKind, StorageConfig, StorageError},
};
use serde::Deserialize;
use std::rc::Rc;

/// The part of an array's configuration that virtual time uses.
#[derive(Debug, Deserialize)]
struct ArrayPart {
    #[serde(default)]
    storage: StorageConfig,
    targets: Vec<TargetPart>,
}

#[derive(Debug, Deserialize)]
struct TargetPart {
    #[serde(default)]
    volumes: Vec<VolumePart>,
}

#[derive(Debug, Deserialize)]
struct VolumePart {
    name: String,
    kind: String,
    pool: Option<String>,
    raid_set: Option<String>,
    size_bytes: Option<u64>,
    #[serde(default)]
    sector_bytes: u32,
}

impl VirtualArray {
    /// The volumes of an array's configuration (JSON) on its disks, all of which must be modelled drives.
    pub fn of_array(config_json: &str) -> Result<MakeVirtualArray, RunError> {
        let part: ArrayPart =
            serde_json::from_str(config_json).map_err(|error| SpecError::Json(error.to_string()))?;
        for disk in &part.storage.disks {
            let key = format!("storage.disks.{}", disk.name);
            if disk.kind == DiskKind::File {
                return Err(SpecError::value(&key, "a file takes real time; use kind = \"memory\"").into());
            }
            if disk.model.is_none() {
                let problem = "takes no time; give it a model, such as \"sas_10k_2_5\"";
                return Err(SpecError::value(&key, problem).into());
            }
        }
        let volumes: Vec<_> = part.targets.into_iter().flat_map(|target| target.volumes).collect();
        if let Some(other) = volumes.iter().find(|volume| !["pool", "raid"].contains(&&*volume.kind)) {
            let key = format!("volumes.{}.kind", other.name);
            let problem =
                format!("\"{}\" takes no time; use \"raid\" or \"pool\" on modelled disks", other.kind);
            return Err(SpecError::value(&key, problem).into());
        }
        let storage = part.storage;
        Ok(Box::new(|runtime| Box::pin(made(runtime, storage, volumes))))
    }
}

async fn made(
    runtime: Runtime,
    storage: StorageConfig,
    parts: Vec<VolumePart>,
) -> Result<VirtualArray, RunError> {
    let controller = Controller::open(runtime, None, storage).await.map_err(|error| run_error(&error))?;
    let mut volumes = Vec::new();
    for part in parts {
        let disk = opened(&controller, &part).await.map_err(|error| RunError::Volume {
            volume: part.name.clone(),
            blame: error.blame(),
            message: error.to_string(),
        })?;
        let block_bytes = part.sector_bytes.max(disk.block_bytes());
        volumes.push(VirtualVolume { name: part.name, disk, block_bytes });
    }
    let report = Rc::new(move || serde_json::to_string(&controller.status()).unwrap_or_default());
    Ok(VirtualArray { volumes, report })
}

async fn opened(
    controller: &Controller,
    part: &VolumePart,
) -> Result<Rc<dyn linerate_storage::Disk>, StorageError> {
    if part.kind == "raid" {
        return Ok(controller.raid_volume(part.raid_set.as_deref())?);
    }
    Ok(controller.thin_volume(part.pool.as_deref(), &part.name, part.size_bytes).await?)
}

fn run_error(error: &StorageError) -> RunError {
    match error.blame() {
        Blame::User => SpecError::value("storage", error.to_string()).into(),
        // A run in modelled time has no partner.
        Blame::Peer | Blame::Host => RunError::Host(error.to_string()),
        Blame::Us => RunError::Internal(error.to_string()),
    }
}
