//! What a server refuses for a reason that its administrator or the user can remove.

use crate::wire::status::Status;

/// A refusal with a remedy of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmbRefusal {
    /// The share, or the user's quota on it, is full.
    NoSpace,
    /// The user may not do this.
    NoAccess,
    /// The server has no share of that name.
    NoShare,
    /// The server closed the share, or the file, while it was open.
    ShareClosed,
    /// User name or password are wrong.
    WrongLogon,
    /// The server accepts no logon with NTLM.
    NoNtlm,
    /// The server takes no connections from this host.
    NoHost,
    /// The server has none of the dialects that were offered.
    NoDialect,
    /// The account or its password is not valid now: locked, disabled, expired, not permitted here.
    Account,
}

impl SmbRefusal {
    /// The refusal that a status is, if it is one.
    pub(crate) fn of(status: Status) -> Option<Self> {
        Some(match status {
            Status::DISK_FULL | Status::QUOTA_EXCEEDED => Self::NoSpace,
            Status::ACCESS_DENIED | Status::NETWORK_ACCESS_DENIED | Status::MEDIA_WRITE_PROTECTED => {
                Self::NoAccess
            }
            Status::BAD_NETWORK_NAME => Self::NoShare,
            Status::NETWORK_NAME_DELETED | Status::FILE_CLOSED => Self::ShareClosed,
            Status::LOGON_FAILURE | Status::WRONG_PASSWORD | Status::NO_SUCH_USER => Self::WrongLogon,
            Status::NTLM_BLOCKED => Self::NoNtlm,
            Status::ACCOUNT_LOCKED_OUT
            | Status::ACCOUNT_DISABLED
            | Status::PASSWORD_EXPIRED
            | Status::PASSWORD_MUST_CHANGE
            | Status::ACCOUNT_RESTRICTION
            | Status::INVALID_LOGON_HOURS
            | Status::LOGON_TYPE_NOT_GRANTED => Self::Account,
            _ => return None,
        })
    }

    /// It is about the user's name, password or account, which only the logon has.
    pub(crate) fn is_of_credentials(self) -> bool {
        matches!(self, Self::WrongLogon | Self::Account)
    }
}
