//! VHDX images (MS-VHDX 8.0): the virtual disks of Hyper-V, fixed and dynamic, on anything that can be read and written
//! at an offset: a file, a share, a LUN.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use linerate_vhdx::{CreateOptions, GuidSource, VhdxImage};
//!
//! let file = std::fs::File::options().read(true).write(true).create(true).truncate(false).open("backup.vhdx")?;
//! let mut image = VhdxImage::create(file, &CreateOptions::dynamic(2 << 40), GuidSource::random())?;
//! image.write(4096, &[1; 512])?;
//! image.flush()?;
//! image.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! - [`VhdxImage`] (`image`): create, open, read, write, flush, close. A caller that has several I/Os in flight asks
//!   for places in the file instead ([`VhdxImage::extent`], [`VhdxImage::allocate_extent`]).
//! - [`ImageFile`] (`file.rs`): what the image is stored on.
//! - `format`, `bat.rs`, `log`: the structures of an image. `docs/vhdx.md` draws them.
//! - [`TracedFile`] (`trace.rs`): which calls to the file the disk's reads and writes become.
//! - `extents.rs`: no two structures overlap. `geometry.rs`: sizes of disk, blocks and sectors.
//!
//! Differencing images are refused: their contents need a parent.

mod bat;
mod error;
mod extents;
mod file;
mod format;
mod geometry;
mod guid;
mod image;
mod log;
mod trace;
mod wire;

pub use error::{Structure, VhdxError};
pub use file::ImageFile;
pub use guid::{Guid, GuidSource};
pub use image::{CreateOptions, FileExtent, NewImage, OpenMode, Preallocation, VhdxImage};
pub use linerate_blame::Blame;
pub use trace::{FileCall, TracedFile};
