//! The space of files, and the free space of their file systems.
//!
//! A check may block for as long as a file system does not answer, so a separate thread makes it.

use rustix::fs::{StatVfs, fstatvfs, statvfs};
use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// Unit of `st_blocks`, on every file system (stat(2)).
const STAT_BLOCK_BYTES: u64 = 512;

/// A regular file and its file system, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSpace {
    /// Number of the file system: its files share its free space.
    pub file_system: u64,
    /// The space of the file system that this process may still use.
    pub free_bytes: u64,
    /// The file's length.
    pub size_bytes: u64,
    /// Its allocated space.
    pub allocated_bytes: u64,
}

/// The space of a regular file; None if it is not a regular file.
pub fn file_space(path: &Path) -> io::Result<Option<FileSpace>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Ok(None);
    }
    Ok(Some(FileSpace {
        file_system: metadata.dev(),
        free_bytes: free_of(&statvfs(path)?),
        size_bytes: metadata.len(),
        allocated_bytes: allocated_bytes(&metadata),
    }))
}

/// The free space of the file system of a folder, and its number.
pub fn folder_space(folder: &Path) -> io::Result<(u64, u64)> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Ok((fs::metadata(folder)?.dev(), free_of(&statvfs(folder)?)))
}

/// The allocated space of a regular file.
pub(crate) fn allocated_bytes(metadata: &Metadata) -> u64 {
    metadata.blocks() * STAT_BLOCK_BYTES
}

/// The free space of the file system of an open file.
pub(crate) fn free_bytes(file: &File) -> io::Result<u64> {
    Ok(free_of(&fstatvfs(file)?))
}

/// Why no file of that name may be made, in words.
pub fn absence(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("there is no folder {}", folder.display())
        }
        Err(error) => format!("{}: {error}", folder.display()),
        Ok(true) => format!("{} is empty: is its file system mounted?", folder.display()),
        Ok(false) => format!("there is no file {}", path.display()),
    }
}

fn free_of(found: &StatVfs) -> u64 {
    // A part may be kept for the superuser.
    let blocks = if rustix::process::geteuid().is_root() { found.f_bfree } else { found.f_bavail };
    blocks.saturating_mul(found.f_frsize)
}

/// Checks files repeatedly, in a thread that ends with it.
pub struct SpaceWatch(Arc<Shared>);

struct Shared {
    state: Mutex<WatchedFiles>,
    changed: Condvar,
}

#[derive(Default)]
struct WatchedFiles {
    paths: Vec<PathBuf>,
    latest: BTreeMap<PathBuf, FileSpace>,
    is_over: bool,
}

impl SpaceWatch {
    /// Looks at `paths` now and then every `every`.
    pub fn start(paths: Vec<PathBuf>, every: Duration) -> io::Result<Self> {
        let state = Mutex::new(WatchedFiles { paths, ..WatchedFiles::default() });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let looking = Arc::clone(&shared);
        thread::Builder::new().name("file-space".into()).spawn(move || looking.look(every))?;
        Ok(Self(shared))
    }

    /// Checks these files from now on, the first time soon.
    pub fn set_paths(&self, paths: Vec<PathBuf>) {
        self.0.lock().paths = paths;
        self.0.changed.notify_all();
    }

    /// The last results; files that could not be checked are left out.
    pub fn latest(&self) -> BTreeMap<PathBuf, FileSpace> {
        self.0.lock().latest.clone()
    }
}

impl Shared {
    fn look(&self, every: Duration) {
        loop {
            let paths = self.lock().paths.clone();
            let look = |path: PathBuf| Some((path.clone(), file_space(&path).ok()??));
            let found: BTreeMap<_, _> = paths.into_iter().filter_map(look).collect();
            let mut state = self.lock();
            state.latest = found;
            if state.is_over {
                return;
            }
            // After an early wake it checks once more than necessary.
            let waited = self.changed.wait_timeout(state, every).unwrap_or_else(PoisonError::into_inner);
            if waited.0.is_over {
                return;
            }
        }
    }

    /// No code between lock and unlock can panic, so a poisoned lock still guards valid data.
    fn lock(&self) -> MutexGuard<'_, WatchedFiles> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SpaceWatch {
    /// The drop does not wait for the thread, because a file system may not answer.
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

impl fmt::Debug for SpaceWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpaceWatch").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_sparse_file_has_less_than_its_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let mut file = fs::File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        let before = file_space(&path).unwrap().unwrap();
        assert_eq!((before.size_bytes, before.allocated_bytes), (1 << 20, 0));
        assert_eq!(before.file_system, folder_space(dir.path()).unwrap().0);
        file.write_all(&vec![1; 65_536]).unwrap();
        file.sync_all().unwrap();
        assert!((65_536..1 << 20).contains(&file_space(&path).unwrap().unwrap().allocated_bytes));
        assert_eq!(file_space(dir.path()).unwrap(), None);
    }

    #[test]
    fn a_watch_tells_of_the_files_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("f"), dir.path().join("g"));
        fs::write(&path, [0; 4096]).unwrap();
        let watch = SpaceWatch::start(vec![other.clone()], Duration::from_millis(5)).unwrap();
        watch.set_paths(vec![path.clone(), other]);
        for _ in 0..2000 {
            if watch.latest().keys().eq([&path]) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("never looked at {path:?}: {:?}", watch.latest());
    }
}
