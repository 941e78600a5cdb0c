//! Volumes: what a logical unit's bytes lie in, and how one worker reaches them.

use crate::config::{VolumeConfig, VolumeKind};
use linerate_io::{Driver, FileOptions, Handle, Region, RegionId};
use linerate_scsi::{Identity, LogicalUnit, TargetPort, UnitConfig};
use std::{io, path::PathBuf, sync::Arc};

/// A volume as all workers share it.
#[derive(Debug)]
pub(crate) struct Volume {
    pub(crate) unit: Arc<LogicalUnit>,
    backing: Backing,
}

#[derive(Debug)]
enum Backing {
    Memory(Arc<Region>),
    File { path: PathBuf, options: FileOptions },
}

/// A volume as one worker's driver reaches it.
#[derive(Clone, Debug)]
pub(crate) enum Medium {
    Memory { region: Arc<Region>, id: RegionId },
    File(Handle),
}

impl Volume {
    /// Opens or makes the volume. `target` and `ports` say where it will be seen; `driver` is used for a first look at
    /// the file only.
    pub(crate) fn open<D: Driver>(
        config: &VolumeConfig,
        naa: [u8; 16],
        ports: Vec<TargetPort>,
        driver: &mut D,
    ) -> Result<Self, VolumeError> {
        let fault = |reason| VolumeError { volume: config.name.clone(), reason };
        let sector_bytes = u64::from(config.sector_bytes.max(1));
        let (backing, size_bytes) = match config.kind {
            VolumeKind::Memory => Self::memory(config).map_err(fault)?,
            VolumeKind::File => Self::file(config, driver).map_err(fault)?,
            VolumeKind::Pool | VolumeKind::Raid => return Err(fault(Reason::NoStorage)),
        };
        let unit = LogicalUnit::new(UnitConfig {
            identity: Identity {
                vendor: "LINERATE".into(),
                product: "VIRTUAL VOLUME".into(),
                revision: "0001".into(),
                serial: config.name.clone(),
                naa,
            },
            capacity_blocks: size_bytes / sector_bytes,
            block_bytes: config.sector_bytes,
            physical_block_bytes: config.physical_sector_bytes,
            write_cache: config.write_cache,
            read_only: config.read_only,
            thin: true,
            ports,
        });
        Ok(Self { unit: unit.map_err(|error| fault(Reason::Unit(error)))?, backing })
    }

    fn memory(config: &VolumeConfig) -> Result<(Backing, u64), Reason> {
        if config.path.is_some() {
            return Err(Reason::MemoryHasNoPath);
        }
        let size_bytes = config.size_bytes.ok_or(Reason::NoSize)?;
        let region = Region::anonymous(size_bytes).map_err(|error| Reason::Memory(size_bytes, error))?;
        Ok((Backing::Memory(region), size_bytes))
    }

    fn file<D: Driver>(config: &VolumeConfig, driver: &mut D) -> Result<(Backing, u64), Reason> {
        let path = PathBuf::from(config.path.as_ref().ok_or(Reason::NoPath)?);
        let options = FileOptions {
            write: !config.read_only,
            create: config.size_bytes.is_some() && !config.read_only,
            size_bytes: config.size_bytes,
            ..FileOptions::default()
        };
        let fault = |error: io::Error| Reason::File(path.clone(), error);
        let file = driver.open(&path, &options).map_err(fault)?;
        let found_bytes = driver.file_size(file);
        driver.close(file);
        let found_bytes = found_bytes.map_err(fault)?;
        let size_bytes = config
            .size_bytes
            .unwrap_or(found_bytes / u64::from(config.sector_bytes.max(1)) * u64::from(config.sector_bytes));
        if found_bytes < size_bytes || size_bytes == 0 {
            return Err(Reason::TooSmall { path, found_bytes, size_bytes });
        }
        let options = FileOptions { create: false, size_bytes: None, ..options };
        Ok((Backing::File { path, options }, size_bytes))
    }

    /// Makes the volume reachable by `driver`.
    pub(crate) fn attach<D: Driver>(&self, driver: &mut D) -> io::Result<Medium> {
        match &self.backing {
            Backing::Memory(region) => {
                let id = driver.attach(Arc::clone(region));
                Ok(Medium::Memory { region: Arc::clone(region), id })
            }
            Backing::File { path, options } => driver.open(path, options).map(Medium::File),
        }
    }
}

/// A volume cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("volume \"{volume}\": {reason}")]
pub struct VolumeError {
    volume: String,
    reason: Reason,
}

impl VolumeError {
    /// Whether the host failed rather than the configuration.
    pub(crate) fn is_hosts_fault(&self) -> bool {
        matches!(&self.reason, Reason::Memory(..))
    }
}

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("kind \"memory\" has no path; use kind \"file\" or leave `path` out")]
    MemoryHasNoPath,
    #[error("`size_bytes` is missing; a volume of kind \"memory\" needs it")]
    NoSize,
    #[error("`path` is missing; a volume of kind \"file\" needs it")]
    NoPath,
    #[error("the host has no {0} bytes of memory for it ({1}); make it smaller or use kind \"file\"")]
    Memory(u64, #[source] io::Error),
    #[error(
        "cannot open {0:?} ({1}); check `path` and its permissions, or give `size_bytes` to have it made"
    )]
    File(PathBuf, #[source] io::Error),
    #[error(
        "{path:?} holds {found_bytes} bytes, `size_bytes` asks for {size_bytes}; use a larger device or a smaller size"
    )]
    TooSmall { path: PathBuf, found_bytes: u64, size_bytes: u64 },
    #[error("kinds \"pool\" and \"raid\" need `storage`; describe disks and RAID sets there")]
    NoStorage,
    #[error("{0}; change `size_bytes`, `sector_bytes` or `physical_sector_bytes`")]
    Unit(#[source] linerate_scsi::UnitError),
}
