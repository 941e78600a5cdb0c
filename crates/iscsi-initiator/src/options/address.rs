//! The address of a LUN: portal, target name, LUN.
//!
//! The text form is that of libiscsi, so that a URL can be used with several tools:
//! `iscsi://[user[%secret]@]host[:port][/iqn[/lun]]`. IPv6 addresses are in brackets.

use super::credentials::{Credentials, Secret};
use linerate_io::net::KnownHost;
use linerate_iscsi_proto::send_targets::DEFAULT_PORT;
use std::fmt;
use std::net::SocketAddr;

/// Host and port of a portal; the host may be a name. The text form is that of [`PortalAddress::parse`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String")]
pub struct PortalAddress {
    /// A name, an IPv4 address, or an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// One LUN of one target behind one portal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LunAddress {
    /// Where to connect.
    pub portal: PortalAddress,
    /// The target's iSCSI name.
    pub target: String,
    /// The LUN as a flat number (0..=16383).
    pub lun: u16,
}

/// A URL, with all parts from a portal to a LUN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Where to connect.
    pub portal: PortalAddress,
    /// The target's iSCSI name, when the URL has one.
    pub target: Option<String>,
    /// The LUN, when the URL has one.
    pub lun: Option<u16>,
    /// User and secret, when the URL has them.
    pub credentials: Credentials,
}

impl PortalAddress {
    /// Parses `host`, `host:port`, `[v6]`, `[v6]:port`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let bad = || AddressError::Portal(text.to_owned());
        let (host, rest) = match text.strip_prefix('[') {
            Some(inner) => inner.split_once(']').ok_or_else(bad)?,
            None => match text.find(':') {
                // A bare IPv6 address has several colons and no port.
                Some(at) if text[at + 1..].contains(':') => (text, ""),
                Some(at) => text.split_at(at),
                None => (text, ""),
            },
        };
        let port = match rest.strip_prefix(':') {
            Some(digits) => digits.parse().ok().filter(|port| *port != 0).ok_or_else(bad)?,
            None if rest.is_empty() => DEFAULT_PORT,
            None => return Err(bad()),
        };
        let plain = |c: char| !c.is_ascii_whitespace() && !c.is_control() && c != '/' && c != '@';
        if host.is_empty() || !host.chars().all(plain) {
            return Err(bad());
        }
        Ok(Self { host: host.to_owned(), port })
    }

    /// Finds the socket address of this portal, which may block.
    pub fn find(&self) -> Result<KnownHost, AddressError> {
        KnownHost::find(&self.host, self.port)
            .map_err(|error| AddressError::Resolve { portal: self.to_string(), reason: error.to_string() })
    }
}

impl TryFrom<String> for PortalAddress {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        Self::parse(&text)
    }
}

impl From<SocketAddr> for PortalAddress {
    fn from(addr: SocketAddr) -> Self {
        Self { host: addr.ip().to_string(), port: addr.port() }
    }
}

impl fmt::Display for PortalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl LunAddress {
    /// Parses a URL that names a LUN.
    pub fn parse(url: &str) -> Result<(Self, Credentials), AddressError> {
        let parsed = Url::parse(url)?;
        match (parsed.target, parsed.lun) {
            (Some(target), Some(lun)) => {
                Ok((Self { portal: parsed.portal, target, lun }, parsed.credentials))
            }
            _ => Err(AddressError::Incomplete(shown(url))),
        }
    }
}

impl fmt::Display for LunAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "iscsi://{}/{}/{}", self.portal, self.target, self.lun)
    }
}

impl Url {
    /// Parses `iscsi://[user[%secret]@]host[:port][/iqn[/lun]]`.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let body = url.strip_prefix("iscsi://").ok_or_else(|| AddressError::Scheme(shown(url)))?;
        // The secret may hold any character, so the host starts after the last '@' before the path.
        let (login, place) = match body.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, body),
        };
        let mut parts = place.splitn(3, '/');
        let portal = PortalAddress::parse(parts.next().unwrap_or_default())?;
        let target = parts.next().filter(|name| !name.is_empty()).map(str::to_owned);
        let lun = match parts.next() {
            None | Some("") => None,
            Some(text) => Some(
                text.parse()
                    .ok()
                    .filter(|lun| *lun < 1 << 14)
                    .ok_or_else(|| AddressError::Lun(text.to_owned()))?,
            ),
        };
        Ok(Self { portal, target, lun, credentials: login.map(credentials).unwrap_or_default() })
    }
}

fn credentials(login: &str) -> Credentials {
    let (user, secret) = match login.split_once('%') {
        Some((user, secret)) => (user, Some(Secret::new(secret))),
        None => (login, None),
    };
    Credentials { user: Some(user.to_owned()), secret, ..Credentials::default() }
}

/// The URL for output: without the login part.
fn shown(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://***@{place}"),
        _ => url.to_owned(),
    }
}

/// An invalid address; the user must correct it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Not an iSCSI URL.
    #[error("{0}: expected iscsi://[user%secret@]host[:port]/target-name/lun")]
    Scheme(String),
    /// A URL without target name or LUN where both are needed.
    #[error("{0}: the target name or the LUN is missing; expected iscsi://host[:port]/target-name/lun")]
    Incomplete(String),
    /// Host or port is not usable.
    #[error("{0:?} is not a portal; expected host, host:port or [ipv6]:port")]
    Portal(String),
    /// The LUN is not a number below 16384.
    #[error("{0:?} is not a LUN; expected a number from 0 to 16383")]
    Lun(String),
    /// The host's name has no address.
    #[error("cannot find the address of {portal}: {reason}")]
    Resolve {
        /// The portal as written.
        portal: String,
        /// The error of the resolver.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portals_in_every_written_form() {
        for (text, host, port) in [
            ("10.0.0.1", "10.0.0.1", 3260),
            ("san:860", "san", 860),
            ("[::1]", "::1", 3260),
            ("[fe80::1]:3261", "fe80::1", 3261),
            ("::1", "::1", 3260),
        ] {
            assert_eq!(PortalAddress::parse(text), Ok(PortalAddress { host: host.into(), port }), "{text}");
        }
        for text in ["", ":3260", "h:0", "h:65536", "h:x", "[::1", "[::1]x", "a b", "a\n"] {
            assert!(PortalAddress::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn url_parts_and_secret_with_odd_characters() {
        let url = Url::parse("iscsi://joe%p@ss%w/rd@[::1]:99/iqn.2026-11.lab:x/7").unwrap();
        assert_eq!(url.portal, PortalAddress { host: "::1".into(), port: 99 });
        assert_eq!(url.target.as_deref(), Some("iqn.2026-11.lab:x"));
        assert_eq!(url.lun, Some(7));
        assert_eq!(url.credentials.user.as_deref(), Some("joe"));
        assert_eq!(url.credentials.secret.as_ref().map(Secret::reveal), Some(&b"p@ss%w/rd"[..]));
    }

    #[test]
    fn a_secret_is_never_shown() {
        let url = Url::parse("iscsi://joe%hunter2@h/iqn.2026-11.lab:x/0").unwrap();
        assert!(!format!("{url:?}").contains("hunter2"));
        let error = LunAddress::parse("iscsi://joe%hunter2@h/iqn.2026-11.lab:x").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        let error = Url::parse("http://joe%hunter2@h/").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn luns_out_of_range_are_refused() {
        for lun in ["16384", "-1", "x", "1/2"] {
            assert!(Url::parse(&format!("iscsi://h/iqn.2026-11.lab:x/{lun}")).is_err(), "{lun}");
        }
    }
}
