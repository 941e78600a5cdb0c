//! Volumes: where a logical unit's bytes are, and how one worker accesses them.

use crate::{
    config::{VolumeConfig, VolumeKind},
    engine::{Engines, OpenedVolume, VolumeNumber},
    memory_volume::MemoryVolume,
};
use linerate_io::{Driver, FileOptions, Handle, Region};
use linerate_scsi::{Identity, LogicalUnit, TargetPort, UnitConfig, UnitError};
use linerate_storage::{controller::StorageError, raid::StripedPages};
use std::{io, path::PathBuf, sync::Arc};

/// A volume as all workers share it.
#[derive(Debug)]
pub(crate) struct SharedVolume {
    pub(crate) unit: Arc<LogicalUnit>,
    backing: Backing,
}

#[derive(Debug)]
enum Backing {
    Memory(Arc<Region>),
    File {
        path: PathBuf,
        options: FileOptions,
    },
    /// By an engine.
    Managed(VolumeNumber),
    /// Its bytes are in memory, for the engine and for workers.
    Striped {
        set: Arc<StripedPages>,
        number: VolumeNumber,
    },
}

/// The volume, and the part that does its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VolumeId {
    /// The worker, through its driver: index into the array's volumes.
    Attached(u32),
    /// An engine.
    Managed(VolumeNumber),
}

/// Volumes, as one worker's driver accesses them.
#[derive(Debug)]
pub(crate) struct Media(Vec<Attached>);

#[derive(Debug)]
enum Attached {
    Memory(MemoryVolume),
    File(Handle),
    /// In memory until the set fails; then through the engine, which reports the failure.
    Striped {
        pages: MemoryVolume,
        number: VolumeNumber,
    },
    /// Not by its driver.
    Elsewhere,
}

/// How the bytes of one command are accessed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VolumeAccess<'a> {
    /// In memory.
    Memory(&'a MemoryVolume),
    /// By operations of the worker's driver.
    File(Handle),
    /// By asking its engine.
    Managed(VolumeNumber),
}

impl VolumeId {
    const MANAGED: u64 = 1 << 32;
    const ENGINE_SHIFT: u32 = 40;

    /// As a unit's tag.
    pub(crate) fn tag(self) -> u64 {
        match self {
            Self::Attached(index) => u64::from(index),
            Self::Managed(VolumeNumber { engine, index }) => {
                Self::MANAGED | u64::from(engine) << Self::ENGINE_SHIFT | u64::from(index)
            }
        }
    }

    /// From a unit's tag.
    pub(crate) fn of_tag(tag: u64) -> Self {
        if tag & Self::MANAGED == 0 {
            return Self::Attached(tag as u32);
        }
        Self::Managed(VolumeNumber { engine: (tag >> Self::ENGINE_SHIFT) as u8, index: tag as u32 })
    }
}

/// The logical unit of a volume. `page_bytes`: the unit of allocation of its pool; 0: none.
pub(crate) fn unit_of(
    config: &VolumeConfig,
    naa: [u8; 16],
    ports: Vec<TargetPort>,
    capacity_blocks: u64,
    id: VolumeId,
    page_bytes: u32,
) -> Result<Arc<LogicalUnit>, UnitError> {
    LogicalUnit::new(UnitConfig {
        identity: Identity {
            vendor: "LINERATE".into(),
            // This tells a load that the volume is lost when the array stops; otherwise the load asks before it
            // overwrites it.
            product: if config.kind == VolumeKind::Memory { "MEMORY VOLUME" } else { "VIRTUAL VOLUME" }
                .into(),
            revision: "0001".into(),
            serial: config.name.clone(),
            naa,
        },
        capacity_blocks,
        block_bytes: config.sector_bytes,
        physical_block_bytes: config.physical_sector_bytes,
        write_cache: config.write_cache,
        read_only: config.read_only,
        thin: config.kind != VolumeKind::Raid,
        unmap_bytes: page_bytes,
        keeps_reservations: config.kind == VolumeKind::Pool,
        tag: id.tag(),
        ports,
    })
}

impl Media {
    /// Attaches volumes to `driver`.
    pub(crate) fn attach<D: Driver>(volumes: &[SharedVolume], driver: &mut D) -> io::Result<Self> {
        volumes.iter().map(|volume| volume.attach(driver)).collect::<Result<_, _>>().map(Self)
    }

    /// How the bytes of a volume are reached.
    pub(crate) fn of(&self, volume: Option<VolumeId>) -> Option<VolumeAccess<'_>> {
        match volume? {
            VolumeId::Attached(index) => match self.0.get(index as usize)? {
                Attached::Memory(pages) => Some(VolumeAccess::Memory(pages)),
                Attached::Striped { pages, .. } if pages.are_served() => Some(VolumeAccess::Memory(pages)),
                Attached::Striped { number, .. } => Some(VolumeAccess::Managed(*number)),
                Attached::File(file) => Some(VolumeAccess::File(*file)),
                Attached::Elsewhere => None,
            },
            VolumeId::Managed(number) => Some(VolumeAccess::Managed(number)),
        }
    }
}

impl SharedVolume {
    /// Opens or creates the volume number `index` of the array. `naa` and `ports` identify it for initiators; `driver`
    /// is used only to check a file.
    pub(crate) fn open<D: Driver>(
        config: &VolumeConfig,
        naa: [u8; 16],
        ports: Vec<TargetPort>,
        driver: &mut D,
        engines: Option<&Engines>,
        index: u32,
    ) -> Result<Self, VolumeError> {
        let fault = |reason| VolumeError { volume: config.name.clone(), reason };
        let sector_bytes = u64::from(config.sector_bytes.max(1));
        let (mut reservations, mut page_bytes) = (None, 0);
        let (backing, size_bytes) = match config.kind {
            VolumeKind::Memory => Self::memory(config).map_err(fault)?,
            VolumeKind::File => Self::file(config, driver).map_err(fault)?,
            VolumeKind::Pool | VolumeKind::Raid => {
                let opened = Self::managed(config, engines).map_err(fault)?;
                (reservations, page_bytes) = (opened.reservations, opened.page_bytes);
                let number = opened.volume;
                let backing = match opened.pages {
                    Some(set) => Backing::Striped { set, number },
                    None => Backing::Managed(number),
                };
                (backing, opened.size_bytes)
            }
        };
        let id = match backing {
            Backing::Managed(number) => VolumeId::Managed(number),
            Backing::Memory(_) | Backing::File { .. } | Backing::Striped { .. } => VolumeId::Attached(index),
        };
        let blocks = size_bytes / sector_bytes;
        let unit = unit_of(config, naa, ports, blocks, id, page_bytes);
        let unit = unit.map_err(|error| fault(Reason::Unit(error)))?;
        if let Some(kept) = reservations
            && !unit.restore_reservations(&kept)
        {
            tracing::error!(
                event = "reservations_not_kept",
                volume = config.name,
                "its persistent reservations are damaged; it begins without"
            );
        }
        Ok(Self { unit, backing })
    }

    /// A volume in memory takes its memory in the background.
    pub(crate) fn touch_memory(&self) {
        if let Backing::Memory(region) = &self.backing {
            region.touch_ahead();
        }
    }

    fn memory(config: &VolumeConfig) -> Result<(Backing, u64), Reason> {
        if config.path.is_some() {
            return Err(Reason::MemoryHasNoPath);
        }
        let size_bytes = config.size_bytes.ok_or(Reason::NoSize)?;
        let region = Region::in_huge_pages(size_bytes).map_err(|error| Reason::Memory(size_bytes, error))?;
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

    fn managed(config: &VolumeConfig, engines: Option<&Engines>) -> Result<OpenedVolume, Reason> {
        if config.path.is_some() {
            return Err(Reason::ManagedHasNoPath);
        }
        if config.write_cache && !config.power_protected {
            return Err(Reason::PowerUnprotected);
        }
        let opened = engines.ok_or(Reason::NoStorage)?.open(config).map_err(Reason::Storage)?;
        if config.sector_bytes < opened.block_bytes {
            return Err(Reason::SmallSector(opened.block_bytes));
        }
        Ok(opened)
    }

    fn attach<D: Driver>(&self, driver: &mut D) -> io::Result<Attached> {
        match &self.backing {
            Backing::Memory(region) => Ok(Attached::Memory(MemoryVolume::whole(region, driver))),
            Backing::Striped { set, number } => {
                let pages = MemoryVolume::striped(set, driver);
                Ok(Attached::Striped { pages, number: *number })
            }
            Backing::File { path, options } => driver.open(path, options).map(Attached::File),
            Backing::Managed(_) => Ok(Attached::Elsewhere),
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
        match &self.reason {
            Reason::Memory(..) => true,
            Reason::Storage(error) => error.blame() != linerate_blame::Blame::User,
            _ => false,
        }
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
    #[error("kinds \"pool\" and \"raid\" have no `path`; their disks have")]
    ManagedHasNoPath,
    #[error(
        "`write_cache` on a RAID set or in a pool loses writes in a power cut; say `power_protected` if it cannot"
    )]
    PowerUnprotected,
    #[error("`sector_bytes` is smaller than the blocks of its disks; make it {0}")]
    SmallSector(u32),
    #[error("{0}")]
    Storage(#[source] StorageError),
    #[error("{0}; change `size_bytes`, `sector_bytes` or `physical_sector_bytes`")]
    Unit(#[source] linerate_scsi::UnitError),
}
