//! An array's disks.

use super::{
    config::{DiskKind, DiskSpec},
    error::{Noun, StorageError},
    status::{DiskState, DiskStatus},
};
use crate::{
    disk::{Disk, FileConfig, MemoryDisk},
    host::Files,
};
use std::{cell::RefCell, rc::Rc};

/// All disks, in use or not.
pub(super) struct Shelf {
    files: Files,
    disks: RefCell<Vec<(DiskSpec, Rc<dyn Disk>)>>,
}

impl Shelf {
    /// Opens disks, and makes those in memory and the files that are not there.
    pub(super) async fn open(files: Files, specs: Vec<DiskSpec>) -> Result<Self, StorageError> {
        let mut disks = Vec::new();
        for spec in specs {
            let disk = open(&files, &spec).await?;
            disks.push((spec, disk));
        }
        Ok(Self { files, disks: RefCell::new(disks) })
    }

    /// A disk by its name.
    pub(super) fn disk(&self, name: &str) -> Result<Rc<dyn Disk>, StorageError> {
        let disks = self.disks.borrow();
        let found = disks.iter().find(|(spec, _)| spec.name == name);
        found.map(|(_, disk)| Rc::clone(disk)).ok_or_else(|| StorageError::Unknown {
            noun: Noun::Disk,
            name: name.to_owned(),
            known: disks.iter().map(|(spec, _)| spec.name.clone()).collect(),
        })
    }

    pub(super) fn status(&self) -> Vec<DiskStatus> {
        let disks = self.disks.borrow();
        let one = |(spec, disk): &(DiskSpec, Rc<dyn Disk>)| DiskStatus {
            name: spec.name.clone(),
            model: spec.model.clone(),
            state: DiskState::Online,
            raid_set: None,
            size_bytes: disk.size_bytes(),
            stats: disk.stats(),
        };
        disks.iter().map(one).collect()
    }
}

async fn open(files: &Files, spec: &DiskSpec) -> Result<Rc<dyn Disk>, StorageError> {
    match (spec.kind, &spec.path) {
        (DiskKind::File, Some(path)) => {
            let config = FileConfig {
                name: spec.name.clone(),
                path: path.into(),
                size_bytes: spec.size_bytes,
                block_bytes: spec.sector_bytes,
                direct: true,
            };
            let fault = |error| StorageError::Open { name: spec.name.clone(), path: path.clone(), error };
            Ok(Rc::new(files.open(&config).await.map_err(fault)?))
        }
        _ => {
            let size_bytes = spec.size_bytes.unwrap_or(0);
            let fault = |error| StorageError::Memory { name: spec.name.clone(), size_bytes, error };
            Ok(Rc::new(MemoryDisk::new(&spec.name, size_bytes, spec.sector_bytes).map_err(fault)?))
        }
    }
}
