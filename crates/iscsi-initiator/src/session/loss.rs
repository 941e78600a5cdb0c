//! Why a connection is lost, and whose fault that is.

use crate::event::{Failure, Remedy};
use crate::options::address::{AddressError, PortalAddress};
use linerate_blame::Blame;
use linerate_iscsi_proto::frame::FrameError;
use linerate_iscsi_proto::login::LoginFailure;
use linerate_iscsi_proto::pdu::{LoginStatus, PduError};
use linerate_iscsi_proto::send_targets::ExchangeError;
use linerate_iscsi_proto::transfer::{DataInError, R2tError};
use linerate_iscsi_proto::window::StatusGap;

/// Why a connection ended or could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LossReason {
    /// The host's name cannot be resolved (user or network).
    #[error(transparent)]
    Address(#[from] AddressError),
    /// This host cannot set the options of the socket (user).
    #[error("cannot make a connection to {portal}: {error}; correct the session's options")]
    Socket { portal: String, error: String },
    /// TCP could not connect (network or peer).
    #[error("cannot connect to {portal}: {error}; is the array running, and is this its portal?")]
    Connect { portal: String, error: String },
    /// The peer closed the connection.
    #[error("{portal} closed the connection")]
    Closed { portal: String },
    /// The connection broke.
    #[error("connection to {portal} broke: {error}")]
    Broken { portal: String, error: String },
    /// The stream cannot be followed (peer or network).
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A PDU cannot be used (peer).
    #[error(transparent)]
    Pdu(#[from] PduError),
    /// A status is missing (peer).
    #[error(transparent)]
    Window(#[from] StatusGap),
    /// Read data out of order or beyond the request (peer).
    #[error(transparent)]
    DataIn(#[from] DataInError),
    /// The target requested write data that is not due (peer).
    #[error(transparent)]
    R2t(#[from] R2tError),
    /// The peer greets or answers in text, as servers of other protocols do (peer).
    #[error("it sent text, as an HTTP or SSH server does")]
    Text,
    /// The peer accepted the connection and gave no login response (peer).
    #[error(
        "{portal} did not answer the login of iSCSI: {what}; is this the address and port of an iSCSI portal \
         (usually port 3260), and is the array up?"
    )]
    NoTarget { portal: String, what: String },
    /// Another breach of the protocol (peer).
    #[error("target broke the protocol: {0}")]
    Protocol(&'static str),
    /// No answer came in time (peer or network).
    #[error("{0}")]
    Silence(&'static str),
    /// No answer to a ping within the time of this key (peer or network).
    #[error("the target did not answer a ping within {0}")]
    NoPing(&'static str),
    /// The login took longer than the time of this key (peer or network).
    #[error("the login was not finished within {0}")]
    NoLogin(&'static str),
    /// The target closed the connection (peer).
    #[error("target announced: {0}")]
    Dismissed(&'static str),
    /// The login failed.
    #[error(transparent)]
    Login(#[from] LoginFailure),
    /// The list of targets cannot be followed (peer).
    #[error(transparent)]
    Targets(#[from] ExchangeError),
    /// The target is at another address: not a loss, but the end of this connection.
    #[error("target moved to {to}")]
    Redirected { to: PortalAddress, permanent: bool },
    /// A response by SHA-256 was refused: not a loss, but the end of this connection. Targets such as tgt take its
    /// number, 7, for SHA-1.
    #[error("the target refused a CHAP response by SHA-256")]
    Sha256Refused,
    /// The session was not restored in time (peer or network).
    #[error("the session did not come back within replacement_timeout_s")]
    NotRestored,
    /// Not a loss: the login through another path's portal has ended the old session.
    #[error("the old session has been ended over another path")]
    Reinstated,
    /// The other path led to another portal group, without the old session.
    #[error("the login over another path reached another portal group")]
    OtherGroup,
    /// The local interface has no link (host).
    #[error("the link of interface {0} is down")]
    LinkDown(String),
    /// The link is up again: an attempt that began before need not time out.
    #[error("the link of interface {0} came up")]
    LinkUp(String),
    /// The LUN behind the path cannot be used.
    #[error("{words}")]
    WrongLun { blame: Blame, words: String },
    /// Redirections that lead nowhere (peer).
    #[error("the target redirects the login again and again")]
    RedirectLoop,
}

impl LossReason {
    /// The same loss of a connection whose peer has sent no login response within `limit_s`: it may be no target.
    pub(super) fn without_login(&self, portal: String, limit_s: f64) -> Option<Self> {
        let what = match self {
            LossReason::Closed { .. } => "it closed the connection".to_owned(),
            LossReason::Broken { error, .. } => format!("the connection broke: {error}"),
            LossReason::Silence(_) => format!("no answer came within {limit_s} s"),
            LossReason::NoLogin(key) => format!("no answer came within {limit_s} s ({key})"),
            LossReason::Text => self.to_string(),
            LossReason::Frame(_) | LossReason::Pdu(_) | LossReason::Protocol(_) => {
                format!("it sent something else than a login response ({self})")
            }
            _ => return None,
        };
        Some(LossReason::NoTarget { portal, what })
    }

    /// Trying again cannot help.
    pub(super) fn is_final(&self) -> bool {
        match self {
            LossReason::Login(failure) => !failure.is_transient(),
            LossReason::RedirectLoop | LossReason::WrongLun { .. } => true,
            _ => false,
        }
    }

    fn blame(&self) -> Blame {
        match self {
            LossReason::WrongLun { blame, .. } => *blame,
            LossReason::LinkDown(_) | LossReason::LinkUp(_) => Blame::Host,
            LossReason::Address(_)
            | LossReason::Socket { .. }
            | LossReason::Login(
                LoginFailure::Refused(LoginStatus { class: 2, .. }) | LoginFailure::NotAuthentic(_),
            ) => Blame::User,
            _ => Blame::Peer,
        }
    }

    /// As a failure of the session to `portal`.
    pub(super) fn failure(&self, portal: &PortalAddress, target: &str) -> Failure {
        let place = if target.is_empty() { portal.to_string() } else { format!("{target} at {portal}") };
        let is_of_credentials = matches!(
            self,
            LossReason::Login(
                LoginFailure::Refused(LoginStatus::AUTHENTICATION_FAILED) | LoginFailure::NotAuthentic(_)
            )
        );
        let remedy = is_of_credentials.then_some(Remedy::Credentials);
        Failure { blame: self.blame(), message: format!("{place}: {self}"), remedy }
    }
}
