//! Why a file cannot be used any more, in plain words, and whose fault that is.

use crate::address::{SmbAddress, SmbAddressError};
use crate::auth::NtlmError;
use crate::crypto::sealing::SealError;
use crate::event::SmbFailure;
use crate::refusal::SmbRefusal;
use crate::wire::WireError;
use crate::wire::negotiate::NegotiateError;
use crate::wire::rpc::RpcError;
use crate::wire::shares::ShareListError;
use crate::wire::status::Status;
use linerate_blame::Blame;

/// The fault of a call that the user may not make (MS-RPCE 3.3.2.2.1.1: the code of Windows).
const FAULT_ACCESS_DENIED: u32 = 5;

/// Why a connection ended or could not be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum FileLoss {
    /// The host's name cannot be resolved.
    #[error(transparent)]
    Address(#[from] SmbAddressError),
    /// TCP could not connect.
    #[error("cannot connect: {0}; is the server running, and is this its port?")]
    Connect(String),
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The same before it answered anything.
    #[error("the server closed the connection before it answered; does it accept SMB 2.1 or later?")]
    ClosedAtOnce,
    /// The connection broke.
    #[error("the connection to the server broke: {0}")]
    Broken(String),
    /// The server takes no session from this host; it has not seen a user yet.
    #[error("the server takes no connections from this host")]
    HostRefused,
    /// The server has none of the dialects that were offered.
    #[error("the server does not support {0}")]
    NoDialect(Offered),
    /// A message cannot be read.
    #[error("the server broke the protocol: {0}")]
    Wire(WireError),
    /// The negotiation cannot be used.
    #[error("the server broke the protocol: {0}")]
    Negotiate(#[from] NegotiateError),
    /// A remote call cannot be read.
    #[error("the server broke the protocol: {0}")]
    Rpc(RpcError),
    /// An encrypted message cannot be used.
    #[error("the server broke the protocol: {0}")]
    Seal(#[from] SealError),
    /// Another breach of the protocol.
    #[error("the server broke the protocol: {0}")]
    Protocol(&'static str),
    /// The logon cannot continue.
    #[error("{0}; Kerberos is not supported")]
    Ntlm(#[from] NtlmError),
    /// No answer came in time.
    #[error("{0}")]
    Silence(&'static str),
    /// The server grants too few credits for an I/O.
    #[error(
        "the server grants only {granted} credits, and a request needs {needed}; use smaller I/Os, or set smb.max_io"
    )]
    Credits { granted: u32, needed: u16 },
    /// What the user asked for is not possible.
    #[error("{0}")]
    Options(String),
    /// The server refused a step of opening the file.
    #[error("{words}")]
    Refused { blame: Blame, words: String, status: Status },
    /// The connection was lost, and not restored in time.
    #[error(
        "the connection was lost ({reason}) and could not be restored within {timeout_s} s (smb.replacement_timeout_s)"
    )]
    NotRestored { reason: String, timeout_s: f64 },
    /// The server ended session, share or file during I/O.
    #[error("the server ended the session: {0}")]
    Ended(Status),
    /// The server accepts no logon that this client has.
    #[error("the server accepts no logon of user {user} with NTLM ({status}), and Kerberos is not supported")]
    NoNtlm { user: String, status: Status },
    /// The share went away while its file was open.
    #[error("the server closed share {0} while the file was open, and does not offer it any more")]
    ShareClosed(String),
}

/// The dialects that were offered.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Offered {
    /// All that this client has.
    #[error("SMB 2.1 or later; permit it on the server")]
    All,
    /// The one that the user asked for.
    #[error("dialect {0}; choose another with smb.dialect, or leave it out")]
    One(&'static str),
}

impl From<WireError> for FileLoss {
    fn from(error: WireError) -> Self {
        match error {
            WireError::NoSession => Self::HostRefused,
            error => Self::Wire(error),
        }
    }
}

impl FileLoss {
    /// Whether another connection may succeed. `is_retry`: the connection was lost before, so the server may be starting.
    pub(crate) fn is_temporary(&self, is_retry: bool) -> bool {
        match self {
            Self::Connect(_)
            | Self::Closed
            | Self::ClosedAtOnce
            | Self::Broken(_)
            | Self::Silence(_)
            | Self::Ended(_) => true,
            Self::Refused { blame, .. } => is_retry && *blame == Blame::Peer,
            _ => false,
        }
    }

    fn blame(&self) -> Blame {
        match self {
            Self::Address(_)
            | Self::Options(_)
            | Self::NoNtlm { .. }
            | Self::HostRefused
            | Self::NoDialect(Offered::One(_)) => Blame::User,
            Self::Refused { blame, .. } => *blame,
            _ => Blame::Peer,
        }
    }

    /// As a failure of a file.
    pub(crate) fn failure(&self, address: &SmbAddress) -> SmbFailure {
        let status = match self {
            Self::Refused { status, .. } | Self::Ended(status) => *status,
            Self::ShareClosed(_) => Status::NETWORK_NAME_DELETED,
            Self::NoNtlm { .. } => Status::NTLM_BLOCKED,
            _ => Status::SUCCESS,
        };
        SmbFailure {
            blame: self.blame(),
            message: format!("{address}: {self}"),
            refusal: match self {
                Self::HostRefused => Some(SmbRefusal::NoHost),
                Self::NoDialect(_) => Some(SmbRefusal::NoDialect),
                _ => SmbRefusal::of(status),
            },
            is_missing: status == Status::OBJECT_NAME_NOT_FOUND,
            is_temporary: self.is_temporary(true),
        }
    }

    /// The server refused the negotiation.
    pub(super) fn negotiate(status: Status, dialect: Option<&'static str>) -> Self {
        if status == Status::NOT_SUPPORTED {
            return Self::NoDialect(dialect.map_or(Offered::All, Offered::One));
        }
        let words = format!("the server refused to negotiate: {status}");
        Self::Refused { blame: Blame::Peer, words, status }
    }

    /// The server refused the logon. `can_seal`: the connection has encryption; a server that requires it refuses any
    /// other as it refuses a user (MS-SMB2 3.3.5.5).
    pub(super) fn logon(status: Status, user: &str, can_seal: bool) -> Self {
        // A server whose policy forbids NTLM has either answer.
        if matches!(status, Status::NTLM_BLOCKED | Status::NOT_SUPPORTED) {
            return Self::NoNtlm { user: user.to_owned(), status };
        }
        let is_of_credentials = SmbRefusal::of(status).is_some_and(SmbRefusal::is_of_credentials);
        let may_lack_seal =
            !can_seal && matches!(status, Status::ACCESS_DENIED | Status::NETWORK_ACCESS_DENIED);
        let advice = match status {
            _ if may_lack_seal => {
                "; it may require encryption, which this connection does not have: see smb.encryption and smb.dialect"
            }
            Status::LOGON_FAILURE | Status::WRONG_PASSWORD | Status::NO_SUCH_USER => {
                "; correct user, password or domain"
            }
            Status::PASSWORD_EXPIRED | Status::PASSWORD_MUST_CHANGE => "; change it on the server",
            _ if is_of_credentials => "; change that on the server, or use another user",
            _ => "",
        };
        let words = format!("the server refused the logon of user {user}: {status}{advice}");
        let blame = if is_of_credentials || may_lack_seal { Blame::User } else { Blame::Peer };
        Self::Refused { blame, words, status }
    }

    /// The server refused a further channel of the session.
    pub(super) fn channel(status: Status, user: &str, can_seal: bool) -> Self {
        if SmbRefusal::of(status).is_some_and(SmbRefusal::is_of_credentials) {
            return Self::logon(status, user, can_seal);
        }
        let words = format!(
            "the server refused a further channel of the session: {status}; permit more channels there, or use \
             fewer with smb.channels"
        );
        Self::Refused { blame: Blame::Peer, words, status }
    }

    /// The server refused the share. `was_open`: its file was open before the connection was lost. `can_seal`: the
    /// session has encryption; a share that requires it refuses any other as it refuses a user (MS-SMB2 3.3.5.7).
    pub(super) fn tree(status: Status, share: &str, user: &str, was_open: bool, can_seal: bool) -> Self {
        let (blame, words) = match status {
            Status::BAD_NETWORK_NAME if was_open => return Self::ShareClosed(share.to_owned()),
            Status::BAD_NETWORK_NAME => {
                (Blame::User, format!("the server has no share {share}; check its name"))
            }
            Status::ACCESS_DENIED | Status::NETWORK_ACCESS_DENIED => {
                let or_sealed = if can_seal {
                    ""
                } else {
                    ", or the share requires encryption, which this session does not have: see smb.encryption and \
                     smb.dialect"
                };
                let what = format!("user {user} may not use share {share}{or_sealed}");
                (Blame::User, format!("{what}; permit it on the server, or use another user"))
            }
            _ => (Blame::Peer, format!("the server refused share {share}: {status}")),
        };
        Self::Refused { blame, words, status }
    }

    /// The server refused the file. `for_writing`: it was to be opened for writing.
    pub(super) fn create(status: Status, path: &str, user: &str, for_writing: bool) -> Self {
        let (blame, words) = match status {
            Status::OBJECT_NAME_NOT_FOUND => (
                Blame::User,
                format!(
                    "there is no file {path} on the share; check the path, or let --create with --size make it"
                ),
            ),
            Status::OBJECT_PATH_NOT_FOUND => {
                (Blame::User, format!("there is no folder for {path} on the share; check the path"))
            }
            Status::ACCESS_DENIED | Status::MEDIA_WRITE_PROTECTED if for_writing => (
                Blame::User,
                format!(
                    "user {user} may not write {path}: the share or the file is read-only for this user; \
                     permit it on the server, or only read"
                ),
            ),
            Status::ACCESS_DENIED => {
                (Blame::User, format!("user {user} may not read {path}; permit it on the server"))
            }
            Status::SHARING_VIOLATION => {
                (Blame::User, format!("another client has {path} open for itself; close it there"))
            }
            Status::FILE_IS_A_DIRECTORY => (Blame::User, format!("{path} is a folder; name a file in it")),
            Status::OBJECT_NAME_INVALID => {
                (Blame::User, format!("{path} is not a valid file name on the server"))
            }
            _ => (Blame::Peer, format!("the server could not open {path}: {status}")),
        };
        Self::Refused { blame, words, status }
    }

    /// The server refused the pipe of the service that lists shares, or a request over it.
    pub(super) fn pipe(status: Status, user: &str) -> Self {
        let (blame, words) = match status {
            Status::ACCESS_DENIED | Status::NETWORK_ACCESS_DENIED => (Blame::User, may_not_list(user)),
            Status::OBJECT_NAME_NOT_FOUND => {
                (Blame::Peer, "the server has no service that lists its shares (pipe srvsvc)".to_owned())
            }
            _ => (Blame::Peer, format!("the server could not list its shares: {status}")),
        };
        Self::Refused { blame, words, status }
    }

    /// A remote call failed.
    pub(super) fn rpc(error: RpcError, user: &str) -> Self {
        let status = Status::SUCCESS;
        match error {
            RpcError::Fault(FAULT_ACCESS_DENIED) => {
                Self::Refused { blame: Blame::User, words: may_not_list(user), status }
            }
            RpcError::NoInterface | RpcError::Fault(_) => {
                let words = format!("the server could not list its shares: {error}");
                Self::Refused { blame: Blame::Peer, words, status }
            }
            error => Self::Rpc(error),
        }
    }

    /// The list of shares cannot be used.
    pub(super) fn share_list(error: ShareListError, user: &str) -> Self {
        let (blame, words) = match error {
            ShareListError::AccessDenied => (Blame::User, may_not_list(user)),
            ShareListError::Malformed => (Blame::Peer, format!("the server broke the protocol: {error}")),
            ShareListError::Failed(_) => (Blame::Peer, error.to_string()),
        };
        Self::Refused { blame, words, status: Status::SUCCESS }
    }

    /// The server refused to set the file's size, or to read it.
    pub(super) fn size(status: Status, path: &str) -> Self {
        let advice = match status {
            Status::DISK_FULL | Status::QUOTA_EXCEEDED => "; make space there, or use a smaller size",
            _ => "",
        };
        let words = format!("the server could not set the size of {path}: {status}{advice}");
        Self::Refused { blame: Blame::Peer, words, status }
    }
}

fn may_not_list(user: &str) -> String {
    format!("user {user} may not list the shares; permit it on the server, or use another user")
}
