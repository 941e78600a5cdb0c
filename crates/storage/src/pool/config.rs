//! The configuration, the status and the errors of a pool.

use crate::{amount::size_text, disk::DiskError};
use serde::Serialize;
use thiserror::Error;

/// Smallest page.
pub const MIN_PAGE_BYTES: u64 = 4 << 10;
/// Largest page.
pub const MAX_PAGE_BYTES: u64 = 64 << 20;
/// Longest name of a volume or snapshot.
pub const MAX_NAME_BYTES: usize = 48;

/// The configuration of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolConfig {
    /// Name in messages.
    pub name: String,
    /// Unit of allocation: a power of two, [`MIN_PAGE_BYTES`] to [`MAX_PAGE_BYTES`]. It cannot be changed later.
    pub page_bytes: u64,
    /// The share of pages in use from which [`PoolStatus::warning`] is set.
    pub warn_at: f64,
    /// Largest sum of the volumes' sizes, as a multiple of the pool's size; None: no limit.
    pub overcommit: Option<f64>,
    /// How many leaves of a deleted snapshot or volume are freed at a time; a leaf is 64 pages. The thread does nothing
    /// else meanwhile.
    pub merge_leaves: usize,
    /// The disk was just made and holds zeros everywhere. Only [`Pool::create`](super::Pool::create) uses this: the first
    /// write to a page of such a disk need not fill the page.
    pub is_disk_zeroed: bool,
}

impl PoolConfig {
    /// Pages of 1 MiB, a warning at 80 %, no limit of overcommitment.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            page_bytes: 1 << 20,
            warn_at: 0.8,
            overcommit: None,
            merge_leaves: 128,
            is_disk_zeroed: false,
        }
    }

    pub(crate) fn check(&self, block_bytes: u32) -> Result<(), PoolError> {
        let is_page = self.page_bytes.is_power_of_two()
            && (MIN_PAGE_BYTES..=MAX_PAGE_BYTES).contains(&self.page_bytes)
            && self.page_bytes.is_multiple_of(u64::from(block_bytes));
        debug_assert!(self.merge_leaves > 0, "a step without a leaf is none");
        if is_page { Ok(()) } else { Err(PoolError::PageBytes(self.page_bytes)) }
    }
}

/// The status of a pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolStatus {
    /// The pool.
    pub name: String,
    /// All pages.
    pub size_bytes: u64,
    /// Pages in use, by volumes and by snapshots.
    pub used_bytes: u64,
    /// The sum of the volumes' sizes.
    pub provisioned_bytes: u64,
    /// Whether the share in use has reached [`PoolConfig::warn_at`].
    pub warning: bool,
    /// Why changes are no longer possible; None: no failure.
    pub failure: Option<String>,
}

/// The status of a volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeStatus {
    /// The volume.
    pub name: String,
    /// Its capacity.
    pub size_bytes: u64,
    /// Pages that it and its snapshots own. Pages that a clone shares are counted for the volume that wrote them.
    pub used_bytes: u64,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<SnapshotStatus>,
}

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnapshotStatus {
    /// Its name, unique in its volume.
    pub name: String,
    /// Time at which it was taken, as the caller gave it: seconds since 1970.
    pub at_s: f64,
    /// The volume's size at that time.
    #[serde(skip)]
    pub size_bytes: u64,
}

/// A range of a volume that is stored, or that reads as zeros because it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub offset_bytes: u64,
    /// Length.
    pub len_bytes: u64,
    /// Whether pages of the pool store it.
    pub is_mapped: bool,
}

/// Why a pool refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PoolError {
    /// There is no pool on the disk: create one.
    #[error("disk \"{0}\" holds no pool")]
    NoPool(String),
    /// The page size is invalid, or differs from the pool on the disk.
    #[error(
        "a page of {}: not a power of two from 4 KiB to 64 MiB, or not what this pool was created with",
        size_text(*.0)
    )]
    PageBytes(u64),
    /// The disk is too small.
    #[error("the disk has {}; a pool needs {} at least", size_text(*disk_bytes), size_text(*needed_bytes))]
    TooSmall {
        /// The size of the disk.
        disk_bytes: u64,
        /// The size that would be enough.
        needed_bytes: u64,
    },
    /// Letters, digits, "-", "_" and ".", at most [`MAX_NAME_BYTES`].
    #[error("\"{0}\" is not a valid name: letters, digits, \"-\", \"_\" and \".\" make one, 48 at most")]
    BadName(String),
    /// Sizes must be whole blocks, and not zero.
    #[error("a size of {0} bytes: not a multiple of the block size, or 0, or beyond what a volume may have")]
    BadSize(u64),
    /// No such volume.
    #[error("there is no volume \"{0}\"")]
    NoVolume(String),
    /// No such snapshot.
    #[error("volume \"{volume}\" has no snapshot \"{snapshot}\"")]
    NoSnapshot {
        /// The volume.
        volume: String,
        /// The missing snapshot.
        snapshot: String,
    },
    /// The name is in use.
    #[error("\"{0}\" exists already")]
    Exists(String),
    /// Delete the snapshots before their volume.
    #[error("volume \"{0}\" has snapshots: delete them first")]
    HasSnapshots(String),
    /// More capacity would be provisioned than the configuration of the pool allows.
    #[error(
        "{} would be provisioned; the limit is {}: add disks, or raise `overcommit`",
        size_text(*provisioned_bytes),
        size_text(*limit_bytes)
    )]
    Overcommitted {
        /// The sum with the requested capacity.
        provisioned_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// A setting is too long.
    #[error("{len_bytes} bytes of settings in one call; at most {max_bytes} fit")]
    SettingsTooLong {
        /// Keys and values.
        len_bytes: usize,
        /// The maximum.
        max_bytes: usize,
    },
    /// The disk below refused the operation, or the pool is full or damaged.
    #[error(transparent)]
    Disk(#[from] DiskError),
}
