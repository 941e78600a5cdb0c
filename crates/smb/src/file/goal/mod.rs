//! What a connection is for, once the share is there: a file, the list of the server's shares, or all names of the share.

mod shares;
mod tree;

pub(super) use shares::ShareListing;

use crate::wire::status::Status;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmbMode {
    /// For writing too.
    pub write: bool,
    /// Create it if it does not exist, and extend a shorter one to this many bytes.
    pub create_bytes: Option<u64>,
}

/// The answer to a request of a tree.
#[derive(Debug)]
pub(crate) struct TreeAnswer {
    pub(crate) status: Status,
    /// The whole message.
    pub(crate) message: Vec<u8>,
}

/// What a connection is for, with what it has of that so far.
#[derive(Debug)]
pub(super) enum GoalProgress {
    File,
    Shares(ShareListing),
    /// The answer to the last request, until the caller takes it.
    Tree(Option<TreeAnswer>),
}

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
    /// Nothing was done for it yet.
    pub(super) fn begin(self) -> GoalProgress {
        match self {
            Self::File(_) => GoalProgress::File,
            Self::Shares => GoalProgress::Shares(ShareListing::default()),
            Self::Tree { .. } => GoalProgress::Tree(None),
        }
    }

    /// How a file is opened.
    pub(super) fn mode(self) -> SmbMode {
        match self {
            Self::File(mode) => mode,
            Self::Shares => SmbMode::default(),
            Self::Tree { write } => SmbMode { write, create_bytes: None },
        }
    }
}
