//! Blocking helpers for tools and tests: discovery, and a LUN as a simple disk.
//!
//! They own a driver and wait for all their operations. For load, use [`Initiator`].

use crate::event::{Event, EventKind, Failure, IoDone, IoError, IoSink, Remedy};
use crate::facts::{DeviceFacts, DeviceId, DeviceState, SessionFacts};
use crate::initiator::Initiator;
use crate::open::Sharing;
use crate::options::address::{AddressError, LunAddress, PortalAddress, Url};
use crate::options::credentials::Credentials;
use crate::options::error::OptionsError;
use crate::options::session::SessionOptions;
use crate::probe_command::ProbeCommand;
use crate::request::{IoOp, IoRequest, ReadInto, SubmitError};
use linerate_blame::Blame;
use linerate_io::{
    Driver, Nanos, OpenDriverError, Preference, Region, RegionId, Seg, open_driver, with_driver,
};
use linerate_iscsi_proto::send_targets::{DiscoveredTarget, DiscoveryError, read_targets};
use serde::Serialize;
use std::io;
use std::sync::Arc;

/// Time for a logout before the connection is closed.
const LOGOUT_NS: Nanos = 2_000_000_000;
/// Memory for the data of a [`Disk`], and the longest single command.
const BOUNCE_BYTES: u64 = 4 << 20;
const PIECE_BYTES: u64 = 256 * 1024;

/// A target behind a portal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TargetInfo {
    /// The target's iSCSI name.
    pub iqn: String,
    /// Its portals as `host:port,tag`; the requested portal if the target named none.
    pub portals: Vec<String>,
    /// Its LUNs.
    pub luns: Vec<LunInfo>,
    /// Why its LUNs could not be listed.
    pub failure: Option<String>,
    /// Whose fault that is.
    pub blame: Option<Blame>,
    /// It refused user name or secret.
    pub wrong_credentials: bool,
}

/// A LUN of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LunInfo {
    /// Its number.
    pub lun: u16,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Logical block in bytes.
    pub block_bytes: u32,
    /// Vendor.
    pub vendor: String,
    /// Product.
    pub product: String,
    /// Unit serial number.
    pub serial: String,
    /// Its own identifier, such as "naa.60014051..."; empty if it has none.
    pub unit_id: String,
    /// Physical block in bytes; None, as below, if the target does not tell.
    pub physical_block_bytes: Option<u32>,
    /// The first logical block that begins a physical one.
    pub lowest_aligned_block: Option<u16>,
    /// Optimal transfer length in bytes.
    pub optimal_io_bytes: Option<u64>,
    /// The write cache is on.
    pub write_cache: Option<bool>,
    /// It is thin provisioned.
    pub thin: Option<bool>,
    /// The used share of the space behind a thin LUN, rounded up.
    pub used_percent: Option<u8>,
    /// It has access states (ALUA).
    pub alua: bool,
    /// Why it could not be looked at.
    pub failure: Option<String>,
    /// Whose fault that is; the user's if it is no disk.
    pub blame: Option<Blame>,
}

/// Lists what is behind a portal, on whichever driver suits this host. `url` is
/// `iscsi://[user%secret@]host[:port][/target]`, or just `host[:port]`. With a target, no other one is logged in to.
pub fn discover(
    url: &str,
    options: &SessionOptions,
    credentials: &Credentials,
) -> Result<Vec<TargetInfo>, ToolError> {
    let mut credentials = credentials.clone();
    let (portal, only) = if url.contains("://") {
        let parsed = Url::parse(url)?;
        if parsed.credentials.user.is_some() {
            credentials = parsed.credentials;
        }
        (parsed.portal, parsed.target)
    } else {
        (PortalAddress::parse(url)?, None)
    };
    with_driver!(open_driver(Preference::Auto)?, |mut driver| {
        discover_with(&mut driver, &portal, only.as_deref(), options, &credentials)
    })
}

/// Lists what is behind a portal: `only` this target, or all.
pub fn discover_with<D: Driver>(
    driver: &mut D,
    portal: &PortalAddress,
    only: Option<&str>,
    options: &SessionOptions,
    credentials: &Credentials,
) -> Result<Vec<TargetInfo>, ToolError> {
    let mut initiator = Initiator::new();
    let targets = send_targets(&mut initiator, driver, portal, options, credentials)?;
    let mut found = Vec::with_capacity(targets.len());
    for target in targets.iter().filter(|target| only.is_none_or(|name| name == target.name)) {
        found.push(look_at_target(&mut initiator, driver, portal, target, options, credentials)?);
    }
    initiator.close(driver, LOGOUT_NS, &mut Vec::<IoDone>::new())?;
    Ok(found)
}

fn send_targets<D: Driver>(
    initiator: &mut Initiator,
    driver: &mut D,
    portal: &PortalAddress,
    options: &SessionOptions,
    credentials: &Credentials,
) -> Result<Vec<DiscoveredTarget>, ToolError> {
    let session = initiator.start_discovery(driver, portal, options, credentials)?;
    initiator.drive_while(driver, &mut Vec::<IoDone>::new(), Nanos::MAX, |this| {
        !this.has_targets(session) && this.failure(session).is_none()
    })?;
    if let Some(failure) = initiator.failure(session) {
        return Err(ToolError::Failed(failure.clone()));
    }
    Ok(read_targets(&initiator.take_targets(session).unwrap_or_default())?)
}

fn look_at_target<D: Driver>(
    initiator: &mut Initiator,
    driver: &mut D,
    asked: &PortalAddress,
    target: &DiscoveredTarget,
    options: &SessionOptions,
    credentials: &Credentials,
) -> Result<TargetInfo, ToolError> {
    let places: Vec<PortalAddress> = target
        .addresses
        .iter()
        .map(|address| PortalAddress { host: address.host.clone(), port: address.port })
        .collect();
    // The requested portal is known to answer; otherwise use the target's first one.
    let portal = if places.is_empty() || places.contains(asked) { asked } else { &places[0] };
    let mut info = TargetInfo {
        iqn: target.name.clone(),
        portals: target.addresses.iter().map(ToString::to_string).collect(),
        luns: Vec::new(),
        failure: None,
        blame: None,
        wrong_credentials: false,
    };
    if info.portals.is_empty() {
        info.portals.push(asked.to_string());
    }
    let at = |lun| LunAddress { portal: portal.clone(), target: target.name.clone(), lun };
    let all = initiator.ask(driver, &at(0), ProbeCommand::TARGET, options, credentials)?;
    initiator.wait_ready(driver, &mut Vec::<IoDone>::new())?;
    if let DeviceState::Failed(failure) = initiator.state(all) {
        info.failure = Some(failure.message.clone());
        info.blame = Some(failure.blame);
        info.wrong_credentials = failure.remedy == Some(Remedy::Credentials);
        return Ok(info);
    }
    let mut devices = Vec::new();
    for lun in initiator.facts(all).luns.clone() {
        devices.push(initiator.ask(driver, &at(lun), ProbeCommand::LOOK, options, credentials)?);
    }
    initiator.wait_ready(driver, &mut Vec::<IoDone>::new())?;
    info.luns.extend(devices.into_iter().map(|device| lun_info(initiator, device)));
    Ok(info)
}

fn lun_info(initiator: &Initiator, device: DeviceId) -> LunInfo {
    let facts = initiator.facts(device);
    let failure = match initiator.state(device) {
        DeviceState::Failed(failure) => Some(failure),
        DeviceState::Opening | DeviceState::Ready => None,
    };
    let told = facts.lowest_aligned_block;
    let optimal = u64::from(facts.optimal_transfer_blocks) * u64::from(facts.block_bytes);
    LunInfo {
        lun: facts.lun,
        capacity_bytes: facts.capacity_bytes(),
        block_bytes: facts.block_bytes,
        vendor: facts.vendor.clone(),
        product: facts.product.clone(),
        serial: facts.serial.clone(),
        unit_id: facts.unit_id.clone(),
        physical_block_bytes: told.map(|_| facts.physical_block_bytes),
        lowest_aligned_block: told,
        optimal_io_bytes: (optimal > 0).then_some(optimal),
        write_cache: facts.write_cache,
        thin: told.map(|_| facts.thin),
        used_percent: facts.used_percent,
        alua: facts.tpgs != 0,
        failure: failure.map(|failure| failure.message.clone()),
        blame: failure.map(|failure| failure.blame),
    }
}

/// A LUN as a disk that is read and written step by step.
pub struct Disk<D: Driver> {
    driver: D,
    initiator: Initiator,
    device: DeviceId,
    region: Arc<Region>,
    region_id: RegionId,
}

impl<D: Driver> Disk<D> {
    /// Logs in and learns the LUN's facts.
    pub fn open(
        mut driver: D,
        address: &LunAddress,
        options: &SessionOptions,
        credentials: &Credentials,
    ) -> Result<Self, ToolError> {
        let mut initiator = Initiator::new();
        let region = Region::anonymous(BOUNCE_BYTES)?;
        let region_id = initiator.attach(&mut driver, &region);
        let device = initiator.open(&mut driver, address, options, credentials, Sharing::Own)?;
        initiator.wait_ready(&mut driver, &mut Vec::<IoDone>::new())?;
        if let DeviceState::Failed(failure) = initiator.state(device) {
            return Err(ToolError::Failed(failure.clone()));
        }
        Ok(Self { driver, initiator, device, region, region_id })
    }

    /// The facts of the LUN.
    pub fn facts(&self) -> &DeviceFacts {
        self.initiator.facts(self.device)
    }

    /// The negotiated values of the session.
    pub fn session_facts(&self) -> Option<&SessionFacts> {
        self.initiator.session_facts(self.initiator.session_of(self.device))
    }

    /// Reads `into` from `offset_bytes` on; both are multiples of the block.
    pub fn read(&mut self, offset_bytes: u64, into: &mut [u8]) -> Result<(), ToolError> {
        let region = Arc::clone(&self.region);
        let mut offset = offset_bytes;
        for part in into.chunks_mut(BOUNCE_BYTES as usize) {
            self.move_part(offset, part.len() as u64, |seg| IoOp::Read(ReadInto::Segment(seg)))?;
            region.read(0, part);
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Writes `from` at `offset_bytes`; both are multiples of the block.
    pub fn write(&mut self, offset_bytes: u64, from: &[u8]) -> Result<(), ToolError> {
        let region = Arc::clone(&self.region);
        let mut offset = offset_bytes;
        for part in from.chunks(BOUNCE_BYTES as usize) {
            region.write(0, part);
            self.move_part(offset, part.len() as u64, IoOp::Write)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Makes everything written durable.
    pub fn sync(&mut self) -> Result<(), ToolError> {
        self.run(&[IoRequest { slot: 0, op: IoOp::Sync, offset_bytes: 0, len_bytes: 0 }])
    }

    /// Deallocates a range.
    pub fn discard(&mut self, offset_bytes: u64, len_bytes: u32) -> Result<(), ToolError> {
        self.run(&[IoRequest { slot: 0, op: IoOp::Discard, offset_bytes, len_bytes }])
    }

    /// Logs out and returns the driver.
    pub fn close(mut self) -> Result<D, ToolError> {
        self.initiator.close(&mut self.driver, LOGOUT_NS, &mut Vec::<IoDone>::new())?;
        Ok(self.driver)
    }

    /// Moves at most the bounce region's length, in pieces that are in flight together.
    fn move_part(&mut self, offset: u64, len: u64, op: impl Fn(Seg) -> IoOp) -> Result<(), ToolError> {
        let facts = self.facts();
        let limit = u64::from(facts.max_transfer_blocks) * u64::from(facts.block_bytes);
        let piece = if limit == 0 { PIECE_BYTES } else { PIECE_BYTES.min(limit) };
        let mut requests = Vec::new();
        let mut at = 0;
        while at < len {
            let part = piece.min(len - at) as u32;
            let seg = Seg { region: self.region_id, offset: at, len: part };
            let slot = requests.len() as u32;
            requests.push(IoRequest { slot, op: op(seg), offset_bytes: offset + at, len_bytes: part });
            at += u64::from(part);
        }
        self.run(&requests)
    }

    fn run(&mut self, requests: &[IoRequest]) -> Result<(), ToolError> {
        let mut heard = Heard::default();
        for request in requests {
            self.initiator.submit(self.device, request)?;
        }
        while heard.done < requests.len() {
            self.initiator.step(&mut self.driver, Nanos::MAX, &mut heard)?;
        }
        match heard.error {
            None => Ok(()),
            Some(error) => Err(ToolError::Io { error, losses: heard.losses.join("; ") }),
        }
    }
}

/// What a disk collects while it waits: how many I/Os ended, the first error, and why connections were lost.
#[derive(Default)]
struct Heard {
    done: usize,
    error: Option<IoError>,
    losses: Vec<String>,
}

impl IoSink for Heard {
    fn done(&mut self, done: IoDone) {
        self.done += 1;
        self.error = self.error.or(done.result.err());
    }

    fn event(&mut self, event: Event) {
        if let EventKind::SessionLost(reason) = event.kind {
            self.losses.push(reason);
        }
    }
}

/// Why a tool failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The address cannot be used (user).
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The options cannot be used (user).
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Session or LUN cannot be used, with the reason and its cause.
    #[error(transparent)]
    Failed(Failure),
    /// The list of targets is malformed (peer).
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// An I/O was not taken (user).
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// An I/O failed (peer).
    #[error("{error}{separator}{losses}", separator = if losses.is_empty() { "" } else { "; " })]
    Io {
        /// The error of the first I/O that failed.
        error: IoError,
        /// Why connections were lost meanwhile.
        losses: String,
    },
    /// No driver (host).
    #[error(transparent)]
    Driver(#[from] OpenDriverError),
    /// The operating system refused (host).
    #[error("operating system: {0}")]
    Host(#[from] io::Error),
}

impl ToolError {
    /// The target refused user name or secret.
    pub fn is_wrong_credentials(&self) -> bool {
        matches!(self, ToolError::Failed(failure) if failure.remedy == Some(Remedy::Credentials))
    }

    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            ToolError::Address(_) | ToolError::Options(_) | ToolError::Submit(_) => Blame::User,
            ToolError::Failed(failure) => failure.blame,
            ToolError::Discovery(_) | ToolError::Io { .. } => Blame::Peer,
            ToolError::Driver(_) | ToolError::Host(_) => Blame::Host,
        }
    }
}
