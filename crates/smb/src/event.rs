//! One I/O as the caller asks for it, and what a client reports.

use crate::refusal::SmbRefusal;
use crate::wire::status::Status;
use linerate_blame::Blame;
use linerate_io::{Nanos, Seg};

/// A file of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmbFileId(pub(crate) u32);

impl SmbFileId {
    /// Its position among the client's files, in the order in which they were opened.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The operation of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmbOp {
    /// READ into this segment; None: received and dropped.
    Read(Option<Seg>),
    /// WRITE of this segment, which must not change until the I/O is done.
    Write {
        /// The data.
        from: Seg,
        /// The data are on stable storage when it is done.
        durable: bool,
    },
    /// FLUSH of the file; offset and length are ignored.
    Flush,
    /// `SET_INFO` of the file's length to the offset; the length of the I/O is ignored.
    SetLength,
}

/// One I/O on an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmbIo {
    /// The caller's identifier, returned in [`SmbIoDone`].
    pub slot: u32,
    /// What to do.
    pub op: SmbOp,
    /// First byte.
    pub offset_bytes: u64,
    /// Length in bytes; that of its segment.
    pub len_bytes: u32,
}

/// The end of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmbIoDone {
    /// The caller's identifier.
    pub slot: u32,
    /// Success, or why not.
    pub result: Result<(), SmbIoError>,
}

/// Receives the reports of a client while it handles a completion or the time. `Vec<SmbIoDone>` is the simplest one.
pub trait SmbSink {
    /// An I/O has ended.
    fn done(&mut self, done: SmbIoDone);

    /// Something happened to a file besides I/Os.
    fn event(&mut self, event: SmbEvent) {
        let _ = event;
    }
}

impl SmbSink for Vec<SmbIoDone> {
    fn done(&mut self, done: SmbIoDone) {
        self.push(done);
    }
}

/// Something that happened to a file besides I/Os.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmbEvent {
    /// When, on the driver's clock.
    pub at: Nanos,
    /// The file.
    pub file: SmbFileId,
    /// What.
    pub kind: SmbEventKind,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmbEventKind {
    /// The file cannot be used any more.
    Failed(SmbFailure),
    /// An I/O waited because the server grants too few credits; reported once per file.
    CreditWait {
        /// Credits that the server has granted.
        granted: u32,
    },
    /// A request was not answered in time and is being cancelled.
    Timeout,
    /// The connection was lost; I/Os wait until it is restored.
    ConnectionLost {
        /// Why.
        reason: String,
    },
    /// A channel of the session was lost; the others do its requests.
    ChannelLost {
        /// Why.
        reason: String,
        /// Requests without an answer, which are sent again.
        requests: u32,
        /// Channels that are left.
        left: u16,
    },
    /// The session has a further channel in place of a lost one.
    ChannelRestored {
        /// Channels that there are now.
        channels: u16,
    },
    /// The connection is restored.
    ConnectionRestored {
        /// The time since it was lost.
        after_ns: Nanos,
        /// Requests without an answer, which are sent again.
        requests: u32,
        /// The server kept the file open (durable handle); otherwise it was opened again.
        is_same_handle: bool,
    },
}

/// Why an I/O failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SmbIoError {
    /// The server refused it.
    #[error("{0}")]
    Refused(Status),
    /// One request moved fewer bytes than it asked for.
    #[error("only {moved} bytes moved; has the file become smaller, or is the share full?")]
    Short {
        /// Bytes moved.
        moved: u32,
    },
    /// The server did not answer in time (peer or network).
    #[error("no answer within command_timeout_s; the request was cancelled")]
    Timeout,
    /// The connection was lost, or the file cannot be used any more (peer or network).
    #[error("the connection to the server was lost")]
    Lost,
    /// The file was closed while the I/O waited (us).
    #[error("the file was closed")]
    Closed,
}

impl SmbIoError {
    /// Whose fault.
    pub fn blame(self) -> Blame {
        match self {
            Self::Refused(
                Status::ACCESS_DENIED | Status::MEDIA_WRITE_PROTECTED | Status::NOT_A_DIRECTORY,
            ) => Blame::User,
            Self::Closed => Blame::Us,
            _ => Blame::Peer,
        }
    }

    /// What the server refused, if that has a remedy of its own.
    pub fn refusal(self) -> Option<SmbRefusal> {
        match self {
            Self::Refused(status) => SmbRefusal::of(status),
            _ => None,
        }
    }
}

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SmbFailure {
    /// Whose fault.
    pub blame: Blame,
    /// What happened, and what to do.
    pub message: String,
    /// What the server refused, if that has a remedy of its own.
    pub refusal: Option<SmbRefusal>,
    /// The file does not exist.
    pub is_missing: bool,
    /// Another connection may succeed.
    pub is_temporary: bool,
}

/// A refused I/O; the caller must correct it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SmbSubmitError {
    /// The file is not open.
    #[error("the file is not open")]
    NotReady,
    /// The I/O is empty, or its length is not that of its segment.
    #[error("the I/O is empty, or its length is not that of its segment")]
    Length,
    /// The file was not opened for writing.
    #[error("the file is open for reading only")]
    ReadOnly,
}
