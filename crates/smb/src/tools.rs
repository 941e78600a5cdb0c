//! A file of a share as a blocking disk, and the list of a server's shares, for tools and tests. They own a driver and wait
//! for all their operations. For load, use [`SmbClient`].

use crate::address::{SmbAddress, SmbAddressError};
use crate::client::SmbClient;
use crate::credentials::SmbCredentials;
use crate::event::{SmbFailure, SmbFileId, SmbIo, SmbIoDone, SmbIoError, SmbOp, SmbSubmitError};
use crate::file::{FileFacts, SmbFileState, SmbMode};
use crate::options::SmbOptions;
use crate::refusal::SmbRefusal;
use crate::wire::WireError;
use crate::wire::shares::ListedShare;
use linerate_blame::Blame;
use linerate_io::{Driver, Nanos, OpenDriverError, Region, RegionId, Seg};
use std::io;
use std::sync::Arc;

/// Time for CLOSE and LOGOFF before the connection is closed.
const CLOSE_NS: Nanos = 2_000_000_000;
/// Time for a FLUSH before them.
const FLUSH_NS: Nanos = 30_000_000_000;
/// Memory for the data, and most bytes in flight.
const BOUNCE_BYTES: u64 = 4 << 20;
const PIECE_BYTES: u32 = 1 << 20;
const FLUSH: SmbIo = SmbIo { slot: 0, op: SmbOp::Flush, offset_bytes: 0, len_bytes: 0 };

/// Logs on and lists the shares of a server, whose address is [`SmbAddress::of_server`].
pub fn list_shares<D: Driver>(
    mut driver: D,
    address: &SmbAddress,
    options: &SmbOptions,
    credentials: SmbCredentials,
) -> Result<Vec<ListedShare>, SmbToolError> {
    let mut client = SmbClient::new();
    let list = client.list_shares(&mut driver, address, options, credentials)?;
    client.wait_ready(&mut driver)?;
    if let SmbFileState::Failed(failure) = client.state(list) {
        return Err(SmbToolError::Failed(failure.clone()));
    }
    let shares = client.shares(list).to_vec();
    client.close(&mut driver, CLOSE_NS, &mut Vec::<SmbIoDone>::new())?;
    Ok(shares)
}

/// An open file.
#[derive(Debug)]
pub struct SmbDisk<D: Driver> {
    driver: D,
    client: SmbClient,
    file: SmbFileId,
    region: Arc<Region>,
    region_id: RegionId,
    /// Bytes were written since the last flush.
    is_dirty: bool,
}

impl<D: Driver> SmbDisk<D> {
    /// Logs on and opens the file.
    pub fn open(
        mut driver: D,
        address: &SmbAddress,
        options: &SmbOptions,
        credentials: SmbCredentials,
        mode: SmbMode,
    ) -> Result<Self, SmbToolError> {
        let mut client = SmbClient::new();
        let region = Region::anonymous(BOUNCE_BYTES)?;
        let region_id = client.attach(&mut driver, &region);
        let file = client.open(&mut driver, address, options, credentials, mode)?;
        client.wait_ready(&mut driver)?;
        if let SmbFileState::Failed(failure) = client.state(file) {
            return Err(SmbToolError::Failed(failure.clone()));
        }
        Ok(Self { driver, client, file, region, region_id, is_dirty: false })
    }

    /// What was negotiated.
    pub fn facts(&self) -> FileFacts {
        self.client.facts(self.file).expect("an open file has its facts")
    }

    /// Reads `into` from `offset_bytes` on.
    pub fn read(&mut self, offset_bytes: u64, into: &mut [u8]) -> Result<(), SmbToolError> {
        let mut offset = offset_bytes;
        for part in into.chunks_mut(BOUNCE_BYTES as usize) {
            self.move_part(offset, part.len() as u32, |seg| SmbOp::Read(Some(seg)))?;
            self.region.read(0, part);
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Writes `from` at `offset_bytes`.
    pub fn write(&mut self, offset_bytes: u64, from: &[u8]) -> Result<(), SmbToolError> {
        self.is_dirty |= !from.is_empty();
        let mut offset = offset_bytes;
        for part in from.chunks(BOUNCE_BYTES as usize) {
            self.region.write(0, part);
            self.move_part(offset, part.len() as u32, |from| SmbOp::Write { from, durable: false })?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Makes everything written durable.
    pub fn flush(&mut self) -> Result<(), SmbToolError> {
        self.run(&[FLUSH])?;
        self.is_dirty = false;
        Ok(())
    }

    /// Makes everything written durable, closes the file, logs off and returns the driver.
    pub fn close(mut self) -> Result<D, SmbToolError> {
        let mut done = Vec::<SmbIoDone>::new();
        let mut timeout_ns = CLOSE_NS;
        if self.is_dirty {
            if let SmbFileState::Failed(failure) = self.client.state(self.file) {
                return Err(SmbToolError::Failed(failure.clone()));
            }
            self.client.submit(self.file, &FLUSH)?;
            timeout_ns += FLUSH_NS;
        }
        self.client.close(&mut self.driver, timeout_ns, &mut done)?;
        match done.iter().find_map(|done| done.result.err()) {
            Some(error) => Err(SmbToolError::Io(error)),
            None => Ok(self.driver),
        }
    }

    /// Moves at most the bounce region's length, in pieces that are in flight together.
    fn move_part(&mut self, offset: u64, len: u32, op: impl Fn(Seg) -> SmbOp) -> Result<(), SmbToolError> {
        let io = |at: u32| {
            let len_bytes = PIECE_BYTES.min(len - at);
            let seg = Seg { region: self.region_id, offset: at.into(), len: len_bytes };
            SmbIo { slot: at, op: op(seg), offset_bytes: offset + u64::from(at), len_bytes }
        };
        let ios: Vec<SmbIo> = (0..len).step_by(PIECE_BYTES as usize).map(io).collect();
        self.run(&ios)
    }

    fn run(&mut self, ios: &[SmbIo]) -> Result<(), SmbToolError> {
        let mut done = Vec::<SmbIoDone>::new();
        for io in ios {
            self.client.submit(self.file, io)?;
        }
        while done.len() < ios.len() {
            self.client.turn(&mut self.driver, Nanos::MAX, &mut done)?;
        }
        match (done.iter().find_map(|done| done.result.err()), self.client.state(self.file)) {
            (None, _) => Ok(()),
            (Some(_), SmbFileState::Failed(failure)) => Err(SmbToolError::Failed(failure.clone())),
            (Some(error), _) => Err(SmbToolError::Io(error)),
        }
    }
}

/// Why a tool failed.
#[derive(Debug, thiserror::Error)]
pub enum SmbToolError {
    /// The address cannot be used (user).
    #[error(transparent)]
    Address(#[from] SmbAddressError),
    /// The file cannot be used.
    #[error(transparent)]
    Failed(#[from] SmbFailure),
    /// An I/O was not taken (user).
    #[error(transparent)]
    Submit(#[from] SmbSubmitError),
    /// An I/O failed.
    #[error(transparent)]
    Io(#[from] SmbIoError),
    /// An answer is malformed (peer).
    #[error("the server broke the protocol: {0}")]
    Answer(#[from] WireError),
    /// This host has no usable driver (host).
    #[error(transparent)]
    Driver(#[from] OpenDriverError),
    /// The operating system refused (host).
    #[error("operating system: {0}")]
    Host(#[from] io::Error),
}

impl SmbToolError {
    /// What the server refused, if that has a remedy of its own.
    pub fn refusal(&self) -> Option<SmbRefusal> {
        match self {
            Self::Failed(failure) => failure.refusal,
            Self::Io(error) => error.refusal(),
            _ => None,
        }
    }

    /// The connection was lost, and another one may be there soon.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Failed(failure) => failure.is_temporary,
            Self::Io(error) => *error == SmbIoError::Lost,
            _ => false,
        }
    }

    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Address(_) | Self::Submit(_) => Blame::User,
            Self::Failed(failure) => failure.blame,
            Self::Io(error) => error.blame(),
            Self::Answer(_) => Blame::Peer,
            Self::Driver(_) | Self::Host(_) => Blame::Host,
        }
    }
}
