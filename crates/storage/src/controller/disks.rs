//! An array's disks.

use super::{
    check::{check_disk, check_name, value},
    config::{DiskKind, DiskSpec},
    error::{Noun, StorageError},
    sets::Membership,
    status::{DiskState, DiskStatus},
};
use crate::{
    disk::{
        Disk, DiskStats, FileConfig, FileDisk, MemoryDisk, ModelledDisk, OverlayDisk, SparseDisk,
        TimeoutDisk, modelled::drives,
    },
    host::Files,
    runtime::Runtime,
};
use linerate_io::{Nanos, space};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs, io,
    mem::replace,
    path::{Path, PathBuf},
    rc::Rc,
};

/// All disks, in use or not.
pub(super) struct DiskTable {
    runtime: Runtime,
    files: Option<Files>,
    /// Files are only read, and writes to disks are kept in memory.
    is_looking: bool,
    disks: RefCell<Vec<DiskEntry>>,
    /// Files that this start made.
    made: RefCell<Vec<PathBuf>>,
}

/// A disk of the configuration.
pub(super) struct DiskEntry {
    spec: DiskSpec,
    disk: Option<Rc<dyn Disk>>,
    file: Option<FileDisk>,
    /// Its state and RAID set, where the set does not report them; always there without a disk.
    state: Option<(DiskState, Option<String>)>,
}

impl DiskEntry {
    fn is_in_use(&self) -> bool {
        self.disk.is_none() && matches!(self.state, Some((DiskState::InUse, _)))
    }
}

impl DiskTable {
    /// Opens disks, and makes those in memory. Missing files are left to [`DiskTable::make`], because it is not known
    /// yet whether they may be made.
    pub(super) async fn open(
        runtime: Runtime,
        files: Option<Files>,
        specs: Vec<DiskSpec>,
        is_looking: bool,
    ) -> Result<Self, StorageError> {
        let (disks, made) = (RefCell::default(), RefCell::default());
        let disk_table = Self { runtime, files, is_looking, disks, made };
        for spec in specs {
            let entry = match disk_table.open_one(&spec, false).await {
                Ok((disk, file)) => DiskEntry { spec, disk: Some(disk), file, state: None },
                Err(error) => {
                    let StorageError::Open { error: reason, .. } = &error else { return Err(error) };
                    let Some(state) = absence(reason, is_looking) else { return Err(error) };
                    DiskEntry { spec, disk: None, file: None, state: Some((state, None)) }
                }
            };
            disk_table.disks.borrow_mut().push(entry);
        }
        Ok(disk_table)
    }

    /// Names of disks that are missing or in use.
    pub(super) fn absent(&self) -> Vec<String> {
        let disks = self.disks.borrow();
        disks.iter().filter(|one| one.disk.is_none()).map(|one| one.spec.name.clone()).collect()
    }

    /// Whether a disk is missing or in use.
    pub(super) fn is_absent(&self, name: &str) -> bool {
        let disks = self.disks.borrow();
        disks.iter().any(|entry| entry.spec.name == name && entry.disk.is_none())
    }

    /// Whether an inspection left a disk alone, as an array that serves uses it.
    pub(super) fn is_in_use(&self, name: &str) -> bool {
        let disks = self.disks.borrow();
        disks.iter().any(|entry| entry.spec.name == name && entry.is_in_use())
    }

    /// Why a disk is not there, in words.
    pub(super) fn why_absent(&self, name: &str) -> String {
        let path = self.path_of(name).unwrap_or_default();
        if self.is_in_use(name) {
            return format!("an array that serves uses {path}");
        }
        space::absence(Path::new(&path))
    }

    /// The path of a file disk.
    pub(super) fn path_of(&self, name: &str) -> Option<String> {
        let disks = self.disks.borrow();
        disks.iter().find(|entry| entry.spec.name == name)?.spec.path.clone()
    }

    /// Makes the files of missing disks. If one of them cannot be made, none is.
    pub(super) async fn make(&self, names: &[String]) -> Result<(), StorageError> {
        self.check_room(names)?;
        for name in names {
            let spec =
                self.disks.borrow().iter().find(|one| one.spec.name == *name).map(|one| one.spec.clone());
            let Some(spec) = spec else { continue };
            let (disk, file) = self.open_one(&spec, true).await?;
            self.put(name, DiskEntry { spec, disk: Some(disk), file, state: None });
        }
        Ok(())
    }

    /// Whether the file systems have space for disks that are allocated as a whole.
    pub(super) fn check_room(&self, names: &[String]) -> Result<(), StorageError> {
        let mut needs: BTreeMap<u64, (u64, u64, Vec<String>, PathBuf)> = BTreeMap::new();
        for entry in self.disks.borrow().iter().filter(|one| names.contains(&one.spec.name)) {
            let DiskSpec { name, path: Some(path), size_bytes: Some(size_bytes), sparse: false, .. } =
                &entry.spec
            else {
                continue;
            };
            let folder = Path::new(path).parent().unwrap_or(Path::new("."));
            // If this fails, making the file reports the reason.
            let Ok((number, free_bytes)) = space::folder_space(folder) else { continue };
            let need = needs.entry(number).or_insert((free_bytes, 0, Vec::new(), folder.to_owned()));
            need.1 += size_bytes;
            need.2.push(name.clone());
        }
        let short = needs.into_values().find(|(free_bytes, needed_bytes, ..)| needed_bytes > free_bytes);
        match short {
            Some((free_bytes, needed_bytes, disks, folder)) => {
                let folder = folder.display().to_string();
                Err(StorageError::Room { disks, folder, needed_bytes, free_bytes })
            }
            None => Ok(()),
        }
    }

    /// Removes the files that were made: the array does not serve, and they are empty.
    pub(super) fn remove_made(&self) {
        for path in self.made.take() {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "this new file is of no use, and cannot be removed");
            }
        }
    }

    /// From now on the new files may hold data.
    pub(super) fn keep_made(&self) {
        self.made.take();
    }

    /// Adds a disk that is to replace another one, while the array serves. It may have the name of that one if that one
    /// is missing, whose entry is returned then.
    pub(super) async fn add(
        &self,
        spec: DiskSpec,
        replaced: &str,
    ) -> Result<(Rc<dyn Disk>, Option<DiskEntry>), StorageError> {
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
        let is_back = spec.name == replaced && self.is_absent(replaced);
        if !is_back && self.check(&spec.name).is_ok() {
            return Err(taken());
        }
        let (disk, file) = self.open_one(&spec, true).await?;
        let entry = DiskEntry { spec, disk: Some(Rc::clone(&disk)), file, state: None };
        let name = entry.spec.name.clone();
        Ok((disk, self.put(&name, entry)))
    }

    /// Forgets the disk that was replaced.
    pub(super) fn keep(&self, name: &str, replaced: &str) {
        self.keep_made();
        if name != replaced {
            self.disks.borrow_mut().retain(|entry| entry.spec.name != replaced);
        }
    }

    /// Forgets a disk that replaces no other one, and removes a file that was made for it. `missing`: the entry that
    /// had its name before.
    pub(super) fn undo(&self, name: &str, missing: Option<DiskEntry>) {
        self.remove_made();
        match missing {
            Some(entry) => drop(self.put(name, entry)),
            None => self.disks.borrow_mut().retain(|entry| entry.spec.name != name),
        }
    }

    /// Puts an entry in the place of the one of a name, which it returns, or at the end.
    fn put(&self, name: &str, entry: DiskEntry) -> Option<DiskEntry> {
        let mut disks = self.disks.borrow_mut();
        if let Some(place) = disks.iter_mut().find(|one| one.spec.name == name) {
            return Some(replace(place, entry));
        }
        disks.push(entry);
        None
    }

    /// The error for an unknown name.
    pub(super) fn check(&self, name: &str) -> Result<(), StorageError> {
        let disks = self.disks.borrow();
        if disks.iter().any(|entry| entry.spec.name == name) {
            return Ok(());
        }
        let known = disks.iter().map(|entry| entry.spec.name.clone()).collect();
        Err(StorageError::Unknown { noun: Noun::Disk, name: name.to_owned(), known })
    }

    /// A disk by its name; None: it is missing.
    pub(super) fn disk(&self, name: &str) -> Result<Option<Rc<dyn Disk>>, StorageError> {
        self.check(name)?;
        let disks = self.disks.borrow();
        Ok(disks.iter().find(|entry| entry.spec.name == name).and_then(|entry| entry.disk.clone()))
    }

    /// Memory disks take their memory in the background.
    pub(super) fn touch_memory(&self) {
        for pages in self.disks.borrow().iter().filter_map(|entry| entry.disk.as_ref()?.pages()) {
            pages.region().touch_ahead();
        }
    }

    /// The file of an older disk, without its model and its timeout.
    pub(super) fn old_file(&self, name: &str) -> Option<FileDisk> {
        let disks = self.disks.borrow();
        let found = disks.iter().find(|entry| entry.spec.name == name)?;
        found.file.clone().filter(|file| !file.is_new())
    }

    /// Records that a RAID set works without one of its configured disks.
    pub(super) fn leave_out(&self, name: &str, set: &str) {
        if let Some(entry) = self.disks.borrow_mut().iter_mut().find(|one| one.spec.name == name) {
            let state = match entry.state {
                Some((state, _)) if entry.disk.is_none() => state,
                _ => DiskState::Out,
            };
            entry.state = Some((state, Some(set.to_owned())));
        }
    }

    /// The file disks: path, whether space may run out, and state.
    pub(super) fn kept_in_files(&self) -> Vec<(String, PathBuf, FileDisk)> {
        let disks = self.disks.borrow();
        let file = |entry: &DiskEntry| {
            let path = PathBuf::from(entry.spec.path.as_ref()?);
            Some((entry.spec.name.clone(), path, entry.file.clone()?))
        };
        disks.iter().filter_map(file).collect()
    }

    /// Existing disks, then members of RAID sets that are not in the configuration. Such a member took the place of
    /// another disk while an array served, and the array file does not list it.
    pub(super) fn status(&self, places: &[Membership]) -> Vec<DiskStatus> {
        let disks = self.disks.borrow();
        let one = |entry: &DiskEntry| {
            let place = places.iter().find(|place| place.disk == entry.spec.name);
            let (state, set) = match (place, &entry.state) {
                (Some(place), _) if entry.disk.is_some() => (place.state, Some(place.set.clone())),
                (Some(place), Some((state, _))) => (*state, Some(place.set.clone())),
                (Some(place), None) => (DiskState::Missing, Some(place.set.clone())),
                (None, Some((state, set))) => (*state, set.clone()),
                (None, None) => (DiskState::Online, None),
            };
            DiskStatus {
                model: entry.spec.model.clone(),
                path: entry.spec.path.clone(),
                state,
                raid_set: set,
                size_bytes: entry.disk.as_ref().map_or(0, |disk| disk.size_bytes()),
                sparse: entry.file.as_ref().is_some_and(Disk::is_thin),
                lacks_space: entry.file.as_ref().is_some_and(FileDisk::lacks_space),
                stats: entry.disk.as_ref().map_or_else(DiskStats::default, |disk| disk.stats()),
                name: entry.spec.name.clone(),
            }
        };
        let is_known = |place: &&Membership| disks.iter().any(|entry| entry.spec.name == place.disk);
        let lacking = |place: &Membership| DiskStatus {
            name: place.disk.clone(),
            model: None,
            path: None,
            state: place.state,
            raid_set: Some(place.set.clone()),
            size_bytes: 0,
            sparse: false,
            lacks_space: false,
            stats: DiskStats::default(),
        };
        let unknown = places.iter().filter(|place| !is_known(place));
        disks.iter().map(one).chain(unknown.map(lacking)).collect()
    }

    async fn open_one(
        &self,
        spec: &DiskSpec,
        may_make: bool,
    ) -> Result<(Rc<dyn Disk>, Option<FileDisk>), StorageError> {
        let drive = spec.model.as_deref().map(|model| {
            drives::drive(model).ok_or_else(|| {
                let known: Vec<_> = drives::DRIVES.iter().map(|drive| drive.name).collect();
                value(Noun::Disk, &spec.name, "model", &format!("is one of {}", known.join(", ")))
            })
        });
        let drive = drive.transpose()?;
        let (disk, file): (Rc<dyn Disk>, _) = match spec.kind {
            DiskKind::File => {
                let file = self.open_file(spec, may_make).await?;
                let disk: Rc<dyn Disk> = if self.is_looking {
                    Rc::new(OverlayDisk::new(Rc::new(file.clone())))
                } else {
                    // Memory disks always answer.
                    let timeout = (spec.io_timeout_s * 1e9) as Nanos;
                    Rc::new(TimeoutDisk::new(&self.runtime, Rc::new(file.clone()), timeout))
                };
                (disk, Some(file))
            }
            DiskKind::Memory => (memory_of(spec)?, None),
        };
        Ok(match drive {
            Some(drive) if !self.is_looking => {
                (Rc::new(ModelledDisk::new(self.runtime.clone(), drive, disk)), file)
            }
            _ => (disk, file),
        })
    }

    async fn open_file(&self, spec: &DiskSpec, may_make: bool) -> Result<FileDisk, StorageError> {
        let files = self.files.as_ref();
        let files =
            files.ok_or_else(|| value(Noun::Disk, &spec.name, "kind", "is \"memory\" in virtual time"))?;
        let path = spec.path.clone().unwrap_or_default();
        let config = FileConfig {
            name: spec.name.clone(),
            path: path.clone().into(),
            size_bytes: spec.size_bytes.filter(|_| may_make),
            block_bytes: spec.sector_bytes,
            direct: true,
            thin: spec.sparse,
            read_only: self.is_looking,
        };
        let fault = |error: io::Error| {
            let way_out = match error.kind() {
                io::ErrorKind::NotFound if may_make => "its folder is not there: make it, or change `path`",
                io::ErrorKind::NotFound => "give a size to have it made, or change `path`",
                io::ErrorKind::WouldBlock => "another array uses it: stop that one, or change `path`",
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space, make it smaller, or say `sparse`: then it takes space as it is written"
                }
                _ => "check `path` and its permissions",
            };
            StorageError::Open { name: spec.name.clone(), path, error, way_out }
        };
        let file = files.open(&config).await.map_err(fault)?;
        if file.is_new() {
            self.made.borrow_mut().push(config.path);
        }
        Ok(file)
    }
}

/// The state of a disk whose file is missing, or in use while it is only inspected; None: the error is another one.
fn absence(error: &io::Error, is_looking: bool) -> Option<DiskState> {
    match error.kind() {
        io::ErrorKind::NotFound => Some(DiskState::Missing),
        io::ErrorKind::WouldBlock if is_looking => Some(DiskState::InUse),
        _ => None,
    }
}

/// A disk in memory.
fn memory_of(spec: &DiskSpec) -> Result<Rc<dyn Disk>, StorageError> {
    let size_bytes = spec.size_bytes.unwrap_or(0);
    // The time of a modelled drive hides the search for zeros, and a large drive may be in a small memory.
    if spec.model.is_some() {
        return Ok(Rc::new(SparseDisk::new(&spec.name, size_bytes, spec.sector_bytes)));
    }
    let fault = |error| StorageError::Memory { name: spec.name.clone(), size_bytes, error };
    Ok(Rc::new(MemoryDisk::new(&spec.name, size_bytes, spec.sector_bytes).map_err(fault)?))
}
