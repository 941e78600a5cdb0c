//! The steps of opening and closing a file, and the values that they need. A `QUERY_INFO` behind a CREATE or a
//! `SET_INFO` is in one message with it, and so is a CLOSE with the FLUSH that waits, if there are credits for both.
//!
//! | step | request in flight | next |
//! | --- | --- | --- |
//! | Connecting | - (TCP) | Negotiating |
//! | Negotiating | NEGOTIATE | Challenged |
//! | Challenged | SESSION_SETUP with the first token | LoggingOn |
//! | LoggingOn | SESSION_SETUP with the answer | TreeConnecting; of a further channel: Validating, or Open |
//! | TreeConnecting | TREE_CONNECT | Validating, or Creating, or CreatingPipe; of a tree: Open |
//! | Validating | IOCTL | Creating, or CreatingPipe; of a further channel or a tree: Open |
//! | Creating | CREATE | Extending, or Open; of a file that is claimed back: Sizing |
//! | Extending | SET_INFO | Sizing |
//! | Sizing | QUERY_INFO | Open |
//! | CreatingPipe | CREATE of a pipe | Binding |
//! | Binding | IOCTL with the bind PDU | Listing |
//! | Listing | IOCTL with the call | Fetching, or Open |
//! | Fetching | READ of the pipe | Fetching, or Open |
//! | Open | I/O; of a tree: any request of the caller | Closing; of a tree: LoggingOff |
//! | Closing | CLOSE | LoggingOff |
//! | LoggingOff | LOGOFF | the end |

use crate::auth::Logon;
use crate::credentials::SmbCredentials;
use crate::crypto::keys::{PreauthHash, SessionKeys};
use crate::options::{SigningChoice, SmbOptions};
use crate::wire::body::OpenId;
use crate::wire::header::SmbCommand;
use crate::wire::negotiate::{Dialect, SmbOffer};

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SmbStep {
    Connecting,
    Negotiating,
    Challenged,
    LoggingOn,
    TreeConnecting,
    Validating,
    Creating,
    Extending,
    Sizing,
    CreatingPipe,
    Binding,
    Listing,
    Fetching,
    Open,
    Closing,
    LoggingOff,
}

impl SmbStep {
    /// The command whose answer it waits for.
    pub(super) fn command(self) -> Option<SmbCommand> {
        Some(match self {
            Self::Connecting | Self::Open => return None,
            Self::Negotiating => SmbCommand::Negotiate,
            Self::Challenged | Self::LoggingOn => SmbCommand::SessionSetup,
            Self::TreeConnecting => SmbCommand::TreeConnect,
            Self::Validating | Self::Binding | Self::Listing => SmbCommand::Ioctl,
            Self::Creating | Self::CreatingPipe => SmbCommand::Create,
            Self::Extending => SmbCommand::SetInfo,
            Self::Sizing => SmbCommand::QueryInfo,
            Self::Fetching => SmbCommand::Read,
            Self::Closing => SmbCommand::Close,
            Self::LoggingOff => SmbCommand::Logoff,
        })
    }
}

/// Values that are needed until the file is open.
#[derive(Debug)]
pub(super) struct FileOpening {
    pub(super) offer: SmbOffer,
    pub(super) logon: Logon,
    pub(super) preauth: PreauthHash,
}

impl FileOpening {
    pub(super) fn new(options: &SmbOptions, credentials: SmbCredentials, host: &str) -> Self {
        let offer = SmbOffer {
            dialects: options.dialects(),
            ciphers: options.encryption.ciphers(),
            signing_required: options.signing == SigningChoice::On,
            multi_channel: options.channels > 1,
            client_guid: random(),
            salt: random(),
        };
        Self { offer, logon: Logon::new(credentials, host, random()), preauth: PreauthHash::default() }
    }
}

/// What a further channel takes from its session (MS-SMB2 3.2.5.3.3, 4.8).
#[derive(Clone, Debug)]
pub(super) struct ChannelBinding {
    pub(super) session_id: u64,
    pub(super) keys: SessionKeys,
    pub(super) dialect: Dialect,
    pub(super) client_guid: [u8; 16],
    pub(super) tree_id: u32,
    pub(super) file_id: OpenId,
    pub(super) seals: bool,
    /// Of the channel in its session; none is used twice.
    pub(super) number: u32,
}

pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without the system's random numbers nothing secret can be made, so there is no session.
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    bytes
}
