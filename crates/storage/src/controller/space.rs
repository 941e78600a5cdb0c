//! The free space of the file systems below sparse disks, and whether it is enough.

use super::{Controller, disks::DiskTable, status::FileSystemStatus};
use crate::amount::size_text;
use linerate_io::{Nanos, space::SpaceWatch};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    path::Path,
    rc::Rc,
    time::Duration,
};

const LOOK_EVERY: Duration = Duration::from_secs(5);
const LOOK_EVERY_NS: Nanos = 5_000_000_000;

/// The files of disks, checked from time to time.
pub(super) struct Spaces {
    watch: SpaceWatch,
    /// Folders whose file systems have been warned of.
    warned: RefCell<BTreeSet<String>>,
}

impl Spaces {
    /// Starts the checks; None if there are no files, or no thread for the checks.
    pub(super) fn watch(disk_table: &DiskTable) -> Option<Self> {
        let paths: Vec<_> = disk_table.kept_in_files().into_iter().map(|(_, path, _)| path).collect();
        if paths.is_empty() {
            return None;
        }
        match SpaceWatch::start(paths, LOOK_EVERY) {
            Ok(watch) => Some(Self { watch, warned: RefCell::default() }),
            Err(error) => {
                tracing::warn!(%error, "the free space of file systems cannot be watched");
                None
            }
        }
    }

    /// Sets the files to check.
    pub(super) fn look_at(&self, disk_table: &DiskTable) {
        self.watch.set_paths(disk_table.kept_in_files().into_iter().map(|(_, path, _)| path).collect());
    }

    fn status(&self, disk_table: &DiskTable) -> Vec<FileSystemStatus> {
        use crate::disk::Disk;
        let latest = self.watch.latest();
        let mut found: BTreeMap<u64, FileSystemStatus> = BTreeMap::new();
        for (name, path, file) in disk_table.kept_in_files() {
            let Some(space) = latest.get(&path).filter(|_| file.is_thin()) else { continue };
            let folder = path.parent().unwrap_or(Path::new(".")).display().to_string();
            let status = found.entry(space.file_system).or_insert(FileSystemStatus {
                folder,
                disks: Vec::new(),
                free_bytes: space.free_bytes,
                unallocated_bytes: 0,
            });
            status.disks.push(name);
            status.unallocated_bytes += space.size_bytes.saturating_sub(space.allocated_bytes);
        }
        found.into_values().collect()
    }

    /// Warns, once each time, of file systems with less free space than their sparse disks may still need.
    fn warn(&self, found: &[FileSystemStatus]) {
        let short = found.iter().filter(|one| one.free_bytes < one.unallocated_bytes);
        let mut warned = self.warned.borrow_mut();
        let mut now = BTreeSet::new();
        for one in short {
            now.insert(one.folder.clone());
            if !warned.contains(&one.folder) {
                let (free, unallocated) = (size_text(one.free_bytes), size_text(one.unallocated_bytes));
                tracing::warn!(
                    event = "space_low",
                    folder = one.folder,
                    disks = one.disks.join(", "),
                    "{free} free, and sparse disks may still need {unallocated}: writes may be refused"
                );
            }
        }
        *warned = now;
    }
}

impl Controller {
    /// The file systems of sparse disks.
    pub(super) fn file_systems(&self) -> Vec<FileSystemStatus> {
        self.spaces.as_ref().map_or_else(Vec::new, |spaces| spaces.status(&self.disk_table))
    }

    /// Checks regularly and warns.
    pub(super) fn watch_spaces(self: &Rc<Self>) {
        if self.spaces.is_none() {
            return;
        }
        let (runtime, controller) = (self.runtime.clone(), Rc::downgrade(self));
        self.runtime.spawn(async move {
            while let Some(controller) = controller.upgrade() {
                if let Some(spaces) = &controller.spaces {
                    spaces.warn(&spaces.status(&controller.disk_table));
                }
                drop(controller);
                runtime.sleep(LOOK_EVERY_NS).await;
            }
        });
    }
}
