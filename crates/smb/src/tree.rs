//! Files and folders of a share, by calls that return when they are done: for threads that wait for each operation.
//!
//! A [`SmbTree`] is a connection with a session of its own, and several of its files can be open at the same time. Paths
//! count from the share's root, with slashes; the empty one is the root. A lost connection is not restored here: its open
//! files are gone, and only the caller knows which operations may be done again.

use crate::address::SmbAddress;
use crate::client::SmbClient;
use crate::credentials::SmbCredentials;
use crate::event::{SmbFileId, SmbIo, SmbIoDone, SmbIoError, SmbOp};
use crate::file::{FileFacts, SmbFileState, TreeAnswer};
use crate::options::SmbOptions;
use crate::tools::SmbToolError;
use crate::wire::body::OpenId;
use crate::wire::files;
use crate::wire::header::{MessageHeader, SmbCommand};
use crate::wire::names::{self, NameKind, NameUse};
use crate::wire::status::Status;
use linerate_io::{Driver, Nanos, Region, RegionId, Seg, TcpInfo};
use std::fmt;
use std::sync::Arc;

/// Time for LOGOFF before the connection is closed.
const CLOSE_NS: Nanos = 2_000_000_000;
/// Memory for the data, and most bytes of one I/O.
const BOUNCE_BYTES: u64 = 4 << 20;

/// A share. See the module text.
pub struct SmbTree<D: Driver> {
    driver: D,
    client: SmbClient,
    id: SmbFileId,
    region: Arc<Region>,
    region_id: RegionId,
    done: Vec<SmbIoDone>,
}

impl<D: Driver> fmt::Debug for SmbTree<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SmbTree").field(self.client.address(self.id)).finish()
    }
}

impl<D: Driver> SmbTree<D> {
    /// Logs on to the share of an address; its path is for messages only. `write`: the user must have the right to write.
    /// The connection is the only one of its session (`channels` is ignored).
    pub fn open(
        mut driver: D,
        address: &SmbAddress,
        options: &SmbOptions,
        credentials: SmbCredentials,
        write: bool,
    ) -> Result<Self, SmbToolError> {
        let mut client = SmbClient::new();
        let region = Region::anonymous(BOUNCE_BYTES)?;
        let region_id = client.attach(&mut driver, &region);
        // No file is open that could be opened again.
        let options = SmbOptions { replacement_timeout_s: 0.0, ..options.clone() };
        let id = client.connect_tree(&mut driver, address, &options, credentials, write)?;
        client.wait_ready(&mut driver)?;
        if let SmbFileState::Failed(failure) = client.state(id) {
            return Err(SmbToolError::Failed(failure.clone()));
        }
        Ok(Self { driver, client, id, region, region_id, done: Vec::new() })
    }

    /// What was negotiated; it has no file's size.
    pub fn facts(&self) -> FileFacts {
        self.client.facts(self.id).expect("a share that is there has its facts")
    }

    /// The kernel's statistics of the connection.
    pub fn tcp_info(&self) -> TcpInfo {
        self.client.tcp_infos(&self.driver, self.id).next().map(|(_, info)| info).unwrap_or_default()
    }

    /// Opens a file. `create`: it is made if it does not exist.
    pub fn open_file(&mut self, path: &str, write: bool, create: bool) -> Result<OpenId, SmbToolError> {
        Ok(self.open_name(path, NameUse::Data { write, create })?.0)
    }

    /// Closes a file.
    pub fn close_file(&mut self, open: OpenId) -> Result<(), SmbToolError> {
        self.done_well(SmbCommand::Close, |header| files::close_or_flush(header, open))
    }

    /// Reads `into` from `offset_bytes` on.
    pub fn read(&mut self, open: OpenId, offset_bytes: u64, into: &mut [u8]) -> Result<(), SmbToolError> {
        let mut offset = offset_bytes;
        for part in into.chunks_mut(BOUNCE_BYTES as usize) {
            self.move_part(open, offset, part.len() as u32, |seg| SmbOp::Read(Some(seg)))?;
            self.region.read(0, part);
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Writes `from` at `offset_bytes`; `durable`: it is on stable storage afterwards.
    pub fn write(
        &mut self,
        open: OpenId,
        offset_bytes: u64,
        from: &[u8],
        durable: bool,
    ) -> Result<(), SmbToolError> {
        let mut offset = offset_bytes;
        for part in from.chunks(BOUNCE_BYTES as usize) {
            self.region.write(0, part);
            self.move_part(open, offset, part.len() as u32, |from| SmbOp::Write { from, durable })?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// What a path is; None: nothing is there.
    pub fn entry(&mut self, path: &str) -> Result<Option<NameKind>, SmbToolError> {
        const MISSING: [Status; 2] = [Status::OBJECT_NAME_NOT_FOUND, Status::OBJECT_PATH_NOT_FOUND];
        match self.open_name(path, NameUse::Look) {
            Ok((open, kind)) => self.close_file(open).map(|()| Some(kind)),
            Err(SmbToolError::Io(SmbIoError::Refused(status))) if MISSING.contains(&status) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a folder; the one above exists.
    pub fn make_folder(&mut self, path: &str) -> Result<(), SmbToolError> {
        let (open, _) = self.open_name(path, NameUse::MakeFolder)?;
        self.close_file(open)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&mut self, path: &str) -> Result<(), SmbToolError> {
        self.remove(path, NameUse::RemoveFolder)
    }

    /// Removes a file.
    pub fn remove_file(&mut self, path: &str) -> Result<(), SmbToolError> {
        self.remove(path, NameUse::RemoveFile)
    }

    /// Sets the times of the last access and the last change, in seconds since 1970.
    pub fn set_modified(&mut self, path: &str, unix_s: i64) -> Result<(), SmbToolError> {
        let (open, _) = self.open_name(path, NameUse::SetTimes)?;
        let set = self.done_well(SmbCommand::SetInfo, |header| names::set_times(header, open, unix_s));
        self.close_after(open, set)
    }

    /// The names in a folder.
    pub fn names(&mut self, folder: &str) -> Result<Vec<(String, NameKind)>, SmbToolError> {
        let (open, _) = self.open_name(folder, NameUse::List)?;
        let mut found = Vec::new();
        let listed = loop {
            let answer = self.call(SmbCommand::QueryDirectory, |header| names::list(header, open))?;
            match answer.status {
                Status::SUCCESS => names::listed(&answer.message, &mut found)?,
                Status::NO_MORE_FILES | Status::NO_SUCH_FILE => break Ok(found),
                status => break Err(SmbIoError::Refused(status).into()),
            }
        };
        self.close_after(open, listed)
    }

    /// Logs off.
    pub fn close(&mut self) -> Result<(), SmbToolError> {
        Ok(self.client.close(&mut self.driver, CLOSE_NS, &mut self.done)?)
    }

    fn open_name(&mut self, path: &str, purpose: NameUse) -> Result<(OpenId, NameKind), SmbToolError> {
        let answer = self.call(SmbCommand::Create, |header| names::open(header, path, purpose))?;
        Ok(names::opened(success(&answer)?)?)
    }

    fn remove(&mut self, path: &str, purpose: NameUse) -> Result<(), SmbToolError> {
        let (open, _) = self.open_name(path, purpose)?;
        let marked = self.done_well(SmbCommand::SetInfo, |header| names::remove(header, open));
        self.close_after(open, marked)
    }

    /// Closes what was opened for one operation, whose result this is.
    fn close_after<T>(&mut self, open: OpenId, result: Result<T, SmbToolError>) -> Result<T, SmbToolError> {
        let closed = self.close_file(open);
        let value = result?;
        closed.map(|()| value)
    }

    fn done_well(
        &mut self,
        command: SmbCommand,
        make: impl FnOnce(&MessageHeader) -> Vec<u8>,
    ) -> Result<(), SmbToolError> {
        let answer = self.call(command, make)?;
        success(&answer).map(drop)
    }

    /// Sends a request and waits for its answer.
    fn call(
        &mut self,
        command: SmbCommand,
        make: impl FnOnce(&MessageHeader) -> Vec<u8>,
    ) -> Result<TreeAnswer, SmbToolError> {
        self.check()?;
        let now = self.driver.now();
        let tree = self.client.tree(self.id);
        if let Err(loss) = tree.call(command, now, make) {
            return Err(loss.failure(&tree.address).into());
        }
        loop {
            self.client.turn(&mut self.driver, Nanos::MAX, &mut self.done)?;
            if let Some(answer) = self.client.tree(self.id).take_answer() {
                return Ok(answer);
            }
            self.check()?;
        }
    }

    fn move_part(
        &mut self,
        open: OpenId,
        offset_bytes: u64,
        len_bytes: u32,
        op: impl Fn(Seg) -> SmbOp,
    ) -> Result<(), SmbToolError> {
        self.check()?;
        self.done.clear();
        self.client.tree(self.id).use_open(open);
        let seg = Seg { region: self.region_id, offset: 0, len: len_bytes };
        self.client.submit(self.id, &SmbIo { slot: 0, op: op(seg), offset_bytes, len_bytes })?;
        loop {
            self.client.turn(&mut self.driver, Nanos::MAX, &mut self.done)?;
            match self.done.first() {
                Some(SmbIoDone { result: Err(SmbIoError::Lost), .. }) => {
                    self.check()?;
                    return Err(SmbIoError::Lost.into());
                }
                Some(done) => return Ok(done.result?),
                None => {}
            }
        }
    }

    /// The connection is there.
    fn check(&self) -> Result<(), SmbToolError> {
        match self.client.state(self.id) {
            SmbFileState::Failed(failure) => Err(SmbToolError::Failed(failure.clone())),
            SmbFileState::Closed => Err(SmbIoError::Closed.into()),
            _ => Ok(()),
        }
    }
}

/// The message of a request that was done; else what the server refused.
fn success(answer: &TreeAnswer) -> Result<&[u8], SmbToolError> {
    match answer.status {
        Status::SUCCESS => Ok(&answer.message),
        Status::CANCELLED => Err(SmbIoError::Timeout.into()),
        status => Err(SmbIoError::Refused(status).into()),
    }
}
