//! The configuration of a session.

use crate::options::address::PortalAddress;
use crate::options::credentials::Credentials;
use crate::options::error::OptionsError;
use crate::options::session::SessionOptions;
use crate::options::{SECOND, nanos};
use linerate_io::Nanos;
use linerate_iscsi_proto::login::InitiatorConfig;
use linerate_iscsi_proto::names::IscsiName;

/// Longest pause between two login attempts of a device's only session.
const PAUSE_NS_MAX: Nanos = 3 * SECOND;

/// Values that do not change during a session's life.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) portal: PortalAddress,
    pub(crate) options: SessionOptions,
    /// Names, offers and secrets; the ISID belongs to the session.
    pub(crate) login: InitiatorConfig,
    pub(crate) retry: RetryRules,
    pub(crate) limits: LimitNames,
    /// Portals of further connections, in turn; empty: the portal of the first one.
    pub(crate) connection_portals: Vec<PortalAddress>,
}

/// What a session does after the loss of its connection. It always returns its I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryRules {
    /// The device may have other paths: I/O that this session's target refuses or aborts is returned too, and the
    /// session keeps trying even before its first login.
    pub(crate) fails_over: bool,
    /// Longest pause between two login attempts.
    pub(crate) pause_max_ns: Nanos,
    /// Time without a login after which the session has failed; None: never.
    pub(crate) give_up_ns: Option<Nanos>,
    /// `TCP_USER_TIMEOUT`.
    pub(crate) user_timeout_ms: Option<u32>,
}

/// The times of a session as messages name them: by the keys with which the user sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitNames {
    /// For the answer to a ping.
    pub(crate) ping: &'static str,
    /// For a login.
    pub(crate) login: &'static str,
}

impl LimitNames {
    /// Those of a session that is no path.
    const OWN: Self = Self { ping: "ping_timeout_s", login: "login_timeout_s" };
}

impl Config {
    /// Checks the user's options. Without a target it is a discovery session.
    pub(crate) fn new(
        portal: &PortalAddress,
        target: Option<&str>,
        options: &SessionOptions,
        credentials: &Credentials,
    ) -> Result<Self, OptionsError> {
        options.check()?;
        let name = options.initiator_name.as_deref().unwrap_or(SessionOptions::DEFAULT_INITIATOR_NAME);
        let login = InitiatorConfig {
            initiator_name: IscsiName::parse(name)?,
            target_name: target.map(IscsiName::parse).transpose()?,
            isid: [0; 6],
            cid: 0,
            itt: 0,
            cmd_sn: 1,
            offer: options.offer(),
            chap: credentials.chap()?,
            join: None,
        };
        let retry = RetryRules {
            fails_over: false,
            pause_max_ns: PAUSE_NS_MAX,
            give_up_ns: Some(nanos(options.replacement_timeout_s)),
            user_timeout_ms: None,
        };
        let (portal, connection_portals) = (portal.clone(), options.connection_portals.clone());
        let limits = LimitNames::OWN;
        Ok(Self { portal, options: options.clone(), login, retry, limits, connection_portals })
    }

    pub(crate) fn is_discovery(&self) -> bool {
        self.login.target_name.is_none()
    }

    pub(crate) fn target_name(&self) -> &str {
        self.login.target_name.as_ref().map_or("", IscsiName::as_str)
    }
}
