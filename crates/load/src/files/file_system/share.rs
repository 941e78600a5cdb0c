//! Files and folders of an SMB share, without a mount: each thread has a connection with a session of its own.
//!
//! A thread waits for its operations, so one connection for several threads would only make them wait for each other,
//! and servers such as Samba serve a connection in one process. Linerate caches nothing, so `O_DIRECT` has no meaning here.
//!
//! If the connection is lost, the thread connects again and repeats its operation. A folder that is then already there, or
//! a name that is already gone, was made or removed by the request that was lost. Files that were open are opened again
//! when they are used.

use super::{FileSystem, Notice, OpenedFile};
use crate::{
    backend::share_session_json,
    error::RunError,
    files::{signal::Signal, spec::StructureSpec},
    spec::{Secret, options::smb_options_of},
};
use linerate_blame::Blame;
use linerate_io::{
    EpollDriver,
    blocking::{BlockingMode, EntryKind},
    system,
};
use linerate_smb::{
    NameKind, OpenId, SmbAddress, SmbCredentials, SmbIoError, SmbOptions, SmbRefusal, SmbToolError, SmbTree,
    wire::status::Status,
};
use std::{
    fmt, io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// From an attempt to connect to the next one.
const RETRY_NS: u64 = 250_000_000;

/// After so many refusals that only the server's administrator or the user can end, without a block that was moved
/// meanwhile, the run fails.
const REFUSALS_MAX: u32 = 10;

/// See the module text.
#[derive(Debug)]
pub(super) struct ShareFiles {
    session: Arc<Mutex<ShareSession>>,
    /// The anchor as paths begin with it, and the same from the share's root.
    anchor: String,
    folder: String,
}

/// How to log on.
#[derive(Debug)]
struct Access {
    address: SmbAddress,
    options: SmbOptions,
    credentials: SmbCredentials,
    write: bool,
}

#[derive(Debug)]
struct ShareSession {
    structure: String,
    access: Access,
    tree: SmbTree<EpollDriver>,
    /// Connections so far: an open file belongs to one of them.
    number: u32,
    connected_at: u64,
    signal: Arc<Signal>,
    notices: Vec<Notice>,
    /// Since the last block that was moved.
    refusals: u32,
    /// Why it is given up.
    failure: Option<RunError>,
}

/// An open file of a share.
#[derive(Debug)]
struct ShareFile {
    session: Arc<Mutex<ShareSession>>,
    path: String,
    mode: BlockingMode,
    open: OpenId,
    /// Of the connection.
    number: u32,
}

/// Whether a URL is that of a share.
pub(super) fn is_share(anchor: &str) -> bool {
    anchor.starts_with("smb://")
}

impl ShareFiles {
    /// Logs on for the files of a structure.
    pub(super) fn connect(spec: &StructureSpec, write: bool, signal: &Arc<Signal>) -> Result<Self, RunError> {
        let refused = |message: String| RunError::of_volume(spec.name.clone(), message, Blame::User, None);
        let address = SmbAddress::of_folder(&spec.anchor).map_err(|error| refused(error.to_string()))?;
        let options = smb_options_of(&spec.smb).map_err(refused)?;
        if options.channels > 1 {
            let what = "smb.channels: each thread of a file system workload has one connection; leave it out, or \
                        use more threads";
            return Err(refused(what.to_owned()));
        }
        let credentials =
            SmbCredentials::of_user(spec.user.as_deref(), spec.secret.as_ref().map(Secret::reveal));
        let folder = address.path.clone();
        let access = Access { address, options, credentials, write };
        let tree = access.connect().map_err(|error| failed(&spec.name, &error))?;
        let session = ShareSession {
            structure: spec.name.clone(),
            access,
            tree,
            number: 0,
            connected_at: system::now_ns(),
            signal: Arc::clone(signal),
            notices: Vec::new(),
            refusals: 0,
            failure: None,
        };
        let anchor = spec.anchor.trim_end_matches('/').to_owned();
        Ok(Self { session: Arc::new(Mutex::new(session)), anchor, folder })
    }

    /// A path from the share's root.
    fn inner(&self, path: &Path) -> String {
        let path = path.to_string_lossy();
        let below = path.strip_prefix(&self.anchor).unwrap_or(&path);
        let inner = format!("{}{below}", self.folder);
        if self.folder.is_empty() { inner.trim_start_matches('/').to_owned() } else { inner }
    }

    /// Carries out an operation on a path. It gets whether it is repeated.
    fn on<T>(
        &self,
        path: &Path,
        operation: impl Fn(&mut SmbTree<EpollDriver>, &str, bool) -> Result<T, SmbToolError>,
    ) -> io::Result<T> {
        let inner = self.inner(path);
        lock(&self.session).carry_out(|tree, _, again| operation(tree, &inner, again))
    }
}

impl FileSystem for ShareFiles {
    fn open(&self, path: &Path, mode: BlockingMode) -> io::Result<Box<dyn OpenedFile>> {
        let path = self.inner(path);
        let (open, number) = lock(&self.session).carry_out(|tree, number, _| {
            Ok((tree.open_file(&path, mode.write, mode.write && mode.create)?, number))
        })?;
        Ok(Box::new(ShareFile { session: Arc::clone(&self.session), path, mode, open, number }))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.on(path, |tree, path, again| done_before(tree.remove_file(path), again, MISSING))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.on(path, |tree, path, again| done_before(tree.make_folder(path), again, THERE))
    }

    fn make_folders(&self, path: &Path) -> io::Result<()> {
        let inner = self.inner(path);
        let ends = inner.match_indices('/').map(|(at, _)| at).chain([inner.len()]);
        for folder in ends.map(|end| &inner[..end]).filter(|folder| !folder.is_empty()) {
            lock(&self.session).carry_out(|tree, _, _| match tree.entry(folder)? {
                Some(_) => Ok(()),
                // Another client may make it at this moment.
                None => done_before(tree.make_folder(folder), true, THERE),
            })?;
        }
        Ok(())
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.on(path, |tree, path, again| done_before(tree.remove_folder(path), again, MISSING))
    }

    fn entry(&self, path: &Path) -> io::Result<Option<EntryKind>> {
        Ok(self.on(path, |tree, path, _| tree.entry(path))?.map(kind_of))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<(String, EntryKind)>> {
        let found = self.on(folder, |tree, path, _| tree.names(path))?;
        Ok(found.into_iter().map(|(name, kind)| (name, kind_of(kind))).collect())
    }

    fn may_read(&self, path: &Path) -> io::Result<()> {
        self.on(path, |tree, path, _| {
            let open = tree.open_file(path, false, false)?;
            tree.close_file(open)
        })
    }

    fn set_modified(&self, path: &Path, unix_s: i64) -> io::Result<()> {
        self.on(path, |tree, path, _| tree.set_modified(path, unix_s))
    }

    fn session(&self) -> serde_json::Value {
        let session = lock(&self.session);
        share_session_json(&session.access.address, &session.tree.facts(), &session.tree.tcp_info())
    }

    fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut lock(&self.session).notices)
    }

    fn failure(&self) -> Option<RunError> {
        lock(&self.session).failure.clone()
    }
}

impl OpenedFile for ShareFile {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.on(|tree, open| tree.read(open, offset, buffer))?;
        Ok(buffer.len())
    }

    fn write_at(&mut self, buffer: &[u8], offset: u64) -> io::Result<()> {
        let durable = self.mode.durable;
        self.on(|tree, open| tree.write(open, offset, buffer, durable))
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        let (mine, open) = (self.number, self.open);
        lock(&self.session).carry_out(|tree, number, _| {
            // With its connection it was closed too.
            if number == mine { tree.close_file(open) } else { Ok(()) }
        })
    }
}

impl ShareFile {
    /// Carries out an operation on the open file.
    fn on(
        &mut self,
        mut operation: impl FnMut(&mut SmbTree<EpollDriver>, OpenId) -> Result<(), SmbToolError>,
    ) -> io::Result<()> {
        let session = Arc::clone(&self.session);
        let mut session = lock(&session);
        session.carry_out(|tree, number, _| {
            if self.number != number {
                self.open = tree.open_file(&self.path, self.mode.write, false)?;
                self.number = number;
            }
            operation(tree, self.open)
        })?;
        session.refusals = 0;
        Ok(())
    }
}

impl Access {
    fn connect(&self) -> Result<SmbTree<EpollDriver>, SmbToolError> {
        let driver = EpollDriver::new()?;
        SmbTree::open(driver, &self.address, &self.options, self.credentials.clone(), self.write)
    }
}

impl ShareSession {
    /// Carries out an operation, again after a lost connection. It gets the number of the connection, and whether it is
    /// repeated.
    fn carry_out<T>(
        &mut self,
        mut operation: impl FnMut(&mut SmbTree<EpollDriver>, u32, bool) -> Result<T, SmbToolError>,
    ) -> io::Result<T> {
        let mut again = false;
        loop {
            match operation(&mut self.tree, self.number, again) {
                Ok(value) => return Ok(value),
                Err(error) if error.is_lost() && self.failure.is_none() => self.restore(&error)?,
                Err(error) => {
                    self.judge(&error);
                    return Err(io::Error::new(kind_of_error(&error), ShareError(error)));
                }
            }
            again = true;
        }
    }

    /// Whether an error ends the run: a breach of the protocol does at once, a refusal if it lasts.
    fn judge(&mut self, error: &SmbToolError) {
        let is_final = matches!(error, SmbToolError::Failed(_) | SmbToolError::Answer(_));
        self.refusals += u32::from(error.refusal().is_some());
        if (is_final || self.refusals >= REFUSALS_MAX) && self.failure.is_none() {
            // The message of a failure has the address already.
            let place = if is_final { String::new() } else { format!("{}: ", self.access.address) };
            let (what, blame) = (format!("{place}{error}"), error.blame());
            self.failure = Some(RunError::of_volume(self.structure.clone(), what, blame, error.refusal()));
        }
    }

    /// Connects again.
    fn restore(&mut self, lost: &SmbToolError) -> io::Result<()> {
        let lost_at = system::now_ns();
        self.note("session_lost", lost.to_string());
        let limit_s = self.access.options.replacement_timeout_s;
        let until = lost_at + (limit_s * 1e9) as u64;
        // A server may drop each connection as soon as it is there.
        let mut next_at = lost_at.max(self.connected_at + RETRY_NS);
        loop {
            let now = system::now_ns();
            let is_over = self.signal.wait(next_at.saturating_sub(now).min(RETRY_NS));
            if is_over || now >= until {
                let what = format!("the connection was lost ({lost}) and not restored within {limit_s} s");
                if !is_over {
                    let what = format!("{what} (smb.replacement_timeout_s)");
                    self.failure = Some(RunError::of_volume(self.structure.clone(), what, Blame::Peer, None));
                }
                return Err(io::Error::other(what));
            }
            match self.access.connect() {
                Ok(tree) => {
                    self.tree = tree;
                    self.number += 1;
                    self.connected_at = system::now_ns();
                    let after_ms = self.connected_at.saturating_sub(lost_at) as f64 / 1e6;
                    self.note("session_back", format!("logged on again after {after_ms:.1} ms"));
                    return Ok(());
                }
                Err(error) if error.is_lost() => next_at = system::now_ns() + RETRY_NS,
                Err(error) => {
                    self.failure = Some(failed(&self.structure, &error));
                    return Err(io::Error::other(ShareError(error)));
                }
            }
        }
    }

    fn note(&mut self, kind: &'static str, message: String) {
        self.notices.push(Notice { kind, message, blame: Blame::Peer });
    }
}

impl Drop for ShareSession {
    fn drop(&mut self) {
        // Without a LOGOFF the server ends the session with the connection.
        let _ = self.tree.close();
    }
}

/// What a repeated operation finds if its lost request was carried out.
const THERE: Status = Status::OBJECT_NAME_COLLISION;
const MISSING: Status = Status::OBJECT_NAME_NOT_FOUND;

fn done_before(result: Result<(), SmbToolError>, again: bool, sign: Status) -> Result<(), SmbToolError> {
    match result {
        Err(SmbToolError::Io(SmbIoError::Refused(status))) if again && status == sign => Ok(()),
        result => result,
    }
}

/// What hosts that share a structure tell each other by their changes.
fn kind_of_error(error: &SmbToolError) -> io::ErrorKind {
    match error {
        SmbToolError::Io(SmbIoError::Refused(THERE)) => io::ErrorKind::AlreadyExists,
        SmbToolError::Io(SmbIoError::Refused(MISSING)) => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    }
}

fn kind_of(kind: NameKind) -> EntryKind {
    match kind {
        NameKind::File(bytes) => EntryKind::File(bytes),
        NameKind::Folder => EntryKind::Folder,
        NameKind::Link => EntryKind::Other,
    }
}

fn failed(structure: &str, error: &SmbToolError) -> RunError {
    RunError::of_volume(structure.to_owned(), error.to_string(), error.blame(), error.refusal())
}

fn lock(session: &Mutex<ShareSession>) -> MutexGuard<'_, ShareSession> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An operation that failed, with the way out.
#[derive(Debug)]
pub(super) struct ShareError(pub(super) SmbToolError);

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way_out = match (&self.0, self.0.refusal()) {
            (SmbToolError::Io(_), Some(SmbRefusal::NoSpace)) => {
                "; make room there, or use a smaller structure"
            }
            (SmbToolError::Io(_), Some(SmbRefusal::NoAccess)) => {
                "; permit it on the server: permissions of the share and of its folder are two things"
            }
            _ => "",
        };
        write!(f, "{}{way_out}", self.0)
    }
}

impl std::error::Error for ShareError {}
