//! Why an image cannot be created, opened, read or written, and whose fault it is.

use linerate_blame::Blame;
use std::{fmt, io};
use thiserror::Error;

/// A structure of an image, by its name in MS-VHDX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// 2.2.1.
    FileIdentifier,
    /// 2.2.2.
    Header,
    /// 2.2.3.
    RegionTable,
    /// 2.3.
    Log,
    /// 2.5.
    Bat,
    /// 2.6.1.
    MetadataTable,
    /// 2.6.2.
    MetadataItem,
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FileIdentifier => "file type identifier",
            Self::Header => "header",
            Self::RegionTable => "region table",
            Self::Log => "log",
            Self::Bat => "block allocation table",
            Self::MetadataTable => "metadata table",
            Self::MetadataItem => "metadata item",
        })
    }
}

/// Why an operation on an image failed.
#[derive(Debug, Error)]
pub enum VhdxError {
    /// The file below the image failed.
    #[error("the image's file cannot {action} at byte {offset_bytes}: {source}")]
    File {
        /// What was tried: `read`, `write`, `flush`, `grow`.
        action: &'static str,
        /// Where. For `flush` and `grow`: the length of the file.
        offset_bytes: u64,
        /// The error of the file.
        source: io::Error,
    },
    /// A structure of the image breaks a rule of MS-VHDX.
    #[error(
        "the image is damaged: {structure} at byte {offset_bytes}: {reason}; restore the image from a copy"
    )]
    Damaged {
        /// Which one.
        structure: Structure,
        /// Its first byte, or the byte of the wrong field.
        offset_bytes: u64,
        /// What is wrong.
        reason: String,
    },
    /// The file begins in another way than an image does.
    #[error("this is no VHDX image: the file type identifier at byte 0 is not \"vhdxfile\"")]
    Foreign,
    /// The image is correct, but it needs something that is missing here.
    #[error("the image cannot be used: {structure} at byte {offset_bytes}: {feature}")]
    Unsupported {
        /// Which structure asks for it.
        structure: Structure,
        /// Its first byte, or the byte of the field.
        offset_bytes: u64,
        /// What it asks for, and what to do.
        feature: String,
    },
    /// The options of a new image are wrong.
    #[error("no image of this kind exists: {0}")]
    Options(String),
    /// A read or write outside the virtual disk, or not in whole logical sectors.
    #[error(
        "{len_bytes} bytes at byte {offset_bytes} are outside the disk of {size_bytes} bytes or not whole sectors"
    )]
    OutOfRange {
        /// First byte.
        offset_bytes: u64,
        /// Length.
        len_bytes: u64,
        /// Size of the virtual disk.
        size_bytes: u64,
    },
    /// The image was opened for reading.
    #[error("the image was opened for reading; open it for writing")]
    ReadOnly,
    /// The last writer did not close the image, and replay of its log writes to it.
    #[error("the image was not closed, and its log has to be replayed; open it for writing once")]
    NeedsReplay,
    /// An earlier failure left it unknown what is on stable storage.
    #[error("an earlier flush of the image failed, so it takes no more writes; open the image again")]
    Failed,
}

impl VhdxError {
    /// Whose fault.
    pub fn blame(&self) -> Blame {
        match self {
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => {
                    Blame::User
                }
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::TimedOut => Blame::Peer,
                _ => Blame::Host,
            },
            Self::Damaged { .. }
            | Self::Foreign
            | Self::Unsupported { .. }
            | Self::Options(_)
            | Self::ReadOnly
            | Self::NeedsReplay => Blame::User,
            Self::OutOfRange { .. } => Blame::Us,
            Self::Failed => Blame::Host,
        }
    }

    pub(crate) fn damaged(structure: Structure, offset_bytes: u64, reason: impl Into<String>) -> Self {
        Self::Damaged { structure, offset_bytes, reason: reason.into() }
    }

    pub(crate) fn unsupported(structure: Structure, offset_bytes: u64, feature: impl Into<String>) -> Self {
        Self::Unsupported { structure, offset_bytes, feature: feature.into() }
    }
}
