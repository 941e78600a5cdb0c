//! Where the files and folders of a structure are: the calls that a thread makes, and waits for. Open this file first.
//!
//! `host.rs`: the operating system of this host. `share.rs`: an SMB share.

mod host;
mod share;

use super::{signal::Signal, spec::StructureSpec};
use crate::error::{RunError, WriteRefusal};
use host::HostFiles;
use linerate_blame::Blame;
use linerate_io::blocking::{BlockingMode, EntryKind};
use linerate_smb::SmbRefusal;
use share::{ShareError, ShareFiles, is_share};
use std::{fmt, io, path::Path, sync::Arc};

/// The calls of one thread. Each returns when it is done.
pub(super) trait FileSystem: fmt::Debug + Send {
    /// Opens a file; a symbolic link is refused.
    fn open(&self, path: &Path, mode: BlockingMode) -> io::Result<Box<dyn OpenedFile>>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Makes one folder; its parent exists.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Makes a folder and its parents, as far as they are missing.
    fn make_folders(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// What a path is; None: nothing is there. A link is not followed.
    fn entry(&self, path: &Path) -> io::Result<Option<EntryKind>>;

    /// The names in a folder, each with what it is.
    fn names(&self, folder: &Path) -> io::Result<Vec<(String, EntryKind)>>;

    /// Whether the file may be read.
    fn may_read(&self, path: &Path) -> io::Result<()>;

    /// Sets the time of the last change, in seconds since 1970.
    fn set_modified(&self, path: &Path, unix_s: i64) -> io::Result<()>;

    /// The session's facts; null: there is none.
    fn session(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// What happened besides operations since the last call.
    fn take_notices(&self) -> Vec<Notice> {
        Vec::new()
    }

    /// Why nothing can be done any more.
    fn failure(&self) -> Option<RunError> {
        None
    }
}

/// Something that happened besides operations.
#[derive(Clone, Debug)]
pub(super) struct Notice {
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) blame: Blame,
}

/// What a thread uses for the files of a structure. `write`: it changes them.
pub(super) fn file_system(
    spec: &StructureSpec,
    write: bool,
    signal: &Arc<Signal>,
) -> Result<Box<dyn FileSystem>, RunError> {
    if is_share(&spec.anchor) {
        return Ok(Box::new(ShareFiles::connect(spec, write, signal)?));
    }
    Ok(Box::new(HostFiles))
}

/// The names in the anchor of a structure, each with what it is; None: there is no anchor.
pub fn anchor_names(spec: &StructureSpec) -> Result<Option<Vec<(String, EntryKind)>>, RunError> {
    let files = file_system(spec, false, &Arc::default())?;
    let anchor = Path::new(&spec.anchor);
    let found = match files.entry(anchor) {
        Ok(None) => return Ok(None),
        Ok(Some(_)) => files.names(anchor),
        Err(error) => Err(error),
    };
    found.map(Some).map_err(|error| refused(spec, format!("{}: {error}", spec.anchor), &error))
}

/// A structure cannot be used.
pub(super) fn refused(spec: &StructureSpec, message: String, error: &io::Error) -> RunError {
    if let Some(refusal) = WriteRefusal::of_call(error.kind()) {
        return RunError::NoWrite { volume: spec.name.clone(), message, refusal };
    }
    let (blame, refusal) = blame_of(error, Blame::Host);
    RunError::of_volume(spec.name.clone(), message, blame, refusal)
}

/// Whose fault it is that a call failed, and what the server of a share refused.
pub(super) fn blame_of(error: &io::Error, otherwise: Blame) -> (Blame, Option<SmbRefusal>) {
    if let Some(refusal) = WriteRefusal::of_call(error.kind()) {
        return (refusal.blame(), None);
    }
    let of_share = error.get_ref().and_then(|inner| inner.downcast_ref::<ShareError>());
    of_share.map_or((otherwise, None), |ShareError(error)| (error.blame(), error.refusal()))
}

/// An open file.
pub(super) trait OpenedFile: fmt::Debug {
    /// Fills the buffer from `offset`. Returns the number of bytes before the end of the file.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of the buffer at `offset`.
    fn write_at(&mut self, buffer: &[u8], offset: u64) -> io::Result<()>;

    /// Closes it.
    fn close(self: Box<Self>) -> io::Result<()>;
}
