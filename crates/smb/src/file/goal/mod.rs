//! What a connection is for, once the share is there: a file, the list of the server's shares, or all names of the share.

mod shares;
mod tree;

pub(super) use shares::ShareListing;
pub(crate) use tree::TreeAnswer;
pub(super) use tree::TreeCalls;

use super::SmbMode;

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SmbGoal {
    /// A file that takes I/O.
    File(SmbMode),
    /// The list of the server's shares.
    Shares,
    /// Files and folders of the share, one request after the other.
    Tree {
        /// Names are changed, or files are written.
        write: bool,
    },
}

impl SmbGoal {
    /// How a file is opened.
    pub(super) fn mode(self) -> SmbMode {
        match self {
            Self::File(mode) => mode,
            Self::Shares => SmbMode::default(),
            Self::Tree { write } => SmbMode { write, create_bytes: None },
        }
    }
}
