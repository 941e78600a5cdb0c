//! An array's disks.

use super::{
    check::{check_disk, check_name, value},
    config::{DiskKind, DiskSpec},
    error::{Noun, StorageError},
    sets::Place,
    status::{DiskState, DiskStatus},
};
use crate::{
    disk::{
        Disk, DiskStats, FileConfig, MemoryDisk, ModelledDisk, SparseDisk, TimeoutDisk, modelled::drives,
    },
    host::Files,
    runtime::Runtime,
};
use linerate_io::Nanos;
use std::{cell::RefCell, io, rc::Rc};

/// All disks, in use or not.
pub(super) struct Shelf {
    runtime: Runtime,
    files: Option<Files>,
    disks: RefCell<Vec<(DiskSpec, Rc<dyn Disk>)>>,
}

impl Shelf {
    /// Opens disks, and makes those in memory and the files that are not there.
    pub(super) async fn open(
        runtime: Runtime,
        files: Option<Files>,
        specs: Vec<DiskSpec>,
    ) -> Result<Self, StorageError> {
        let shelf = Self { runtime, files, disks: RefCell::default() };
        for spec in specs {
            let disk = shelf.make(&spec).await?;
            shelf.disks.borrow_mut().push((spec, disk));
        }
        Ok(shelf)
    }

    /// One more disk, which comes while the array serves.
    pub(super) async fn add(&self, spec: DiskSpec) -> Result<Rc<dyn Disk>, StorageError> {
        check_name(&spec.name)?;
        check_disk(&spec)?;
        if spec.count.is_some() {
            return Err(value(
                Noun::Disk,
                &spec.name,
                "count",
                "is left out for a disk that replaces another",
            ));
        }
        let taken = || StorageError::Taken { noun: Noun::Disk, name: spec.name.clone() };
        if self.check(&spec.name).is_ok() {
            return Err(taken());
        }
        let disk = self.make(&spec).await?;
        self.disks.borrow_mut().push((spec, Rc::clone(&disk)));
        Ok(disk)
    }

    /// Lets a disk go.
    pub(super) fn remove(&self, name: &str) {
        self.disks.borrow_mut().retain(|(spec, _)| spec.name != name);
    }

    /// The error of a name that no disk has.
    pub(super) fn check(&self, name: &str) -> Result<(), StorageError> {
        self.disk(name).map(drop)
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

    /// Disks that there are, then members of RAID sets that the configuration does not name: such a set lacks a disk that
    /// took the place of another while an array served, and that nobody has entered.
    pub(super) fn status(&self, places: &[Place]) -> Vec<DiskStatus> {
        let unknown = places.iter().filter(|place| self.check(&place.disk).is_err());
        let lacking = |place: &Place| DiskStatus {
            name: place.disk.clone(),
            model: None,
            state: place.state,
            raid_set: Some(place.set.clone()),
            size_bytes: 0,
            stats: DiskStats::default(),
        };
        let disks = self.disks.borrow();
        let one = |(spec, disk): &(DiskSpec, Rc<dyn Disk>)| {
            let place = places.iter().find(|place| place.disk == spec.name);
            DiskStatus {
                name: spec.name.clone(),
                model: spec.model.clone(),
                state: place.map_or(DiskState::Online, |place| place.state),
                raid_set: place.map(|place| place.set.clone()),
                size_bytes: disk.size_bytes(),
                stats: disk.stats(),
            }
        };
        disks.iter().map(one).chain(unknown.map(lacking)).collect()
    }

    async fn make(&self, spec: &DiskSpec) -> Result<Rc<dyn Disk>, StorageError> {
        let drive = spec.model.as_deref().map(|model| {
            drives::drive(model).ok_or_else(|| {
                let known: Vec<_> = drives::DRIVES.iter().map(|drive| drive.name).collect();
                value(Noun::Disk, &spec.name, "model", &format!("is one of {}", known.join(", ")))
            })
        });
        let drive = drive.transpose()?;
        let disk = bytes_of(&self.runtime, self.files.as_ref(), spec).await?;
        Ok(match drive {
            Some(drive) => Rc::new(ModelledDisk::new(self.runtime.clone(), drive, disk)),
            None => disk,
        })
    }
}

/// A disk as fast as its bytes.
async fn bytes_of(
    runtime: &Runtime,
    files: Option<&Files>,
    spec: &DiskSpec,
) -> Result<Rc<dyn Disk>, StorageError> {
    let (DiskKind::File, Some(path)) = (spec.kind, &spec.path) else {
        let size_bytes = spec.size_bytes.unwrap_or(0);
        // A drive's time hides what looking for zeros takes, and whole drives may stand in a small memory.
        if spec.model.is_some() {
            return Ok(Rc::new(SparseDisk::new(&spec.name, size_bytes, spec.sector_bytes)));
        }
        let fault = |error| StorageError::Memory { name: spec.name.clone(), size_bytes, error };
        return Ok(Rc::new(MemoryDisk::new(&spec.name, size_bytes, spec.sector_bytes).map_err(fault)?));
    };
    let files =
        files.ok_or_else(|| value(Noun::Disk, &spec.name, "kind", "is \"memory\" in virtual time"))?;
    let config = FileConfig {
        name: spec.name.clone(),
        path: path.into(),
        size_bytes: spec.size_bytes,
        block_bytes: spec.sector_bytes,
        direct: true,
    };
    let fault = |error: io::Error| {
        let way_out = match (error.kind(), spec.size_bytes) {
            (io::ErrorKind::NotFound, Some(_)) => "its folder is not there: make it, or change `path`",
            (io::ErrorKind::NotFound, None) => "give a size to have it made, or change `path`",
            (io::ErrorKind::WouldBlock, _) => "another array uses it: stop that one, or change `path`",
            _ => "check `path` and its permissions",
        };
        StorageError::Open { name: spec.name.clone(), path: path.clone(), error, way_out }
    };
    let file = Rc::new(files.open(&config).await.map_err(fault)?);
    // Memory always answers.
    Ok(Rc::new(TimeoutDisk::new(runtime, file, (spec.io_timeout_s * 1e9) as Nanos)))
}
