//! The address of a file on a share: `smb://host[:port]/share/path`.
//!
//! User and password are not part of it: the caller has taken them out of what the user wrote.

use crate::wire::shares::SRVSVC_PIPE;
use linerate_io::net;
use std::fmt;
use std::net::SocketAddr;

/// The port of SMB over TCP.
pub const SMB_PORT: u16 = 445;

/// The share that has the pipes of every server.
const PIPES_SHARE: &str = "IPC$";

/// A file of a share of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmbAddress {
    /// A name, an IPv4 address, or an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The share.
    pub share: String,
    /// The file, from the share's root, with slashes between folders.
    pub path: String,
}

impl SmbAddress {
    /// Parses the URL of a file. Escapes (`%20`) are decoded in share and path.
    pub fn parse(url: &str) -> Result<Self, SmbAddressError> {
        let address = Self::of_folder(url)?;
        if address.path.is_empty() {
            return Err(SmbAddressError::Form(shown(url)));
        }
        Ok(address)
    }

    /// Parses the URL of a folder, which may be the share itself.
    pub fn of_folder(url: &str) -> Result<Self, SmbAddressError> {
        let form = || SmbAddressError::Form(shown(url));
        let place = url.strip_prefix("smb://").filter(|place| !place.contains('@')).ok_or_else(form)?;
        let (server, rest) = place.split_once('/').ok_or_else(form)?;
        let (share, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = server_of(server).ok_or_else(form)?;
        let decode = |text: &str| decoded(text).ok_or_else(|| SmbAddressError::Name(text.to_owned()));
        let (share, path) = (decode(share)?, decode(path)?);
        let is_name = |name: &str| {
            !name.is_empty() && name != "." && name != ".." && !name.contains(['\\', '\0', '\n'])
        };
        if !is_name(&share) || share.contains('/') || share.len() > 255 {
            return Err(SmbAddressError::Name(share));
        }
        if !(path.is_empty() || path.split('/').all(is_name)) || path.len() > 32_000 {
            return Err(SmbAddressError::Name(path));
        }
        Ok(Self { host, port, share, path })
    }

    /// The list of a server's shares, by a URL without share and file. In place of them it has the names of the pipe.
    pub fn of_server(url: &str) -> Result<Self, SmbAddressError> {
        let form = || SmbAddressError::ServerForm(shown(url));
        let server = url.strip_prefix("smb://").filter(|place| !place.contains('@')).ok_or_else(form)?;
        let (host, port) = server_of(server.strip_suffix('/').unwrap_or(server)).ok_or_else(form)?;
        if host.contains('/') {
            return Err(form());
        }
        Ok(Self { host, port, share: PIPES_SHARE.to_owned(), path: SRVSVC_PIPE.to_owned() })
    }

    /// The socket address of the server, by [`net::resolve`], which may block.
    pub fn resolve(&self) -> Result<SocketAddr, SmbAddressError> {
        net::resolve(&self.host, self.port)
            .map_err(|error| SmbAddressError::Resolve { host: self.host.clone(), reason: error.to_string() })
    }

    /// Server and port as users write them.
    pub fn server(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for SmbAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "smb://{}/{}/{}", self.server(), self.share, self.path)
    }
}

fn server_of(text: &str) -> Option<(String, u16)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
    };
    let port = match rest.strip_prefix(':') {
        Some(digits) => digits.parse().ok().filter(|port| *port != 0)?,
        None if rest.is_empty() => SMB_PORT,
        None => return None,
    };
    let is_plain = |letter: char| !letter.is_ascii_whitespace() && !letter.is_control();
    (!host.is_empty() && host.chars().all(is_plain)).then(|| (host.to_owned(), port))
}

/// A text without its escapes; None: an escape is not two hexadecimal digits, or the result is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

/// The URL for output: without a login part.
fn shown(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://***@{place}"),
        _ => url.to_owned(),
    }
}

/// An invalid address; the user must correct it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SmbAddressError {
    /// Not of the form.
    #[error("{0}: expected smb://host[:port]/share/file")]
    Form(String),
    /// Not the address of a server.
    #[error("{0}: expected smb://host[:port]")]
    ServerForm(String),
    /// Not a share, a folder or a file.
    #[error("{0:?} is not the name of a share or a file")]
    Name(String),
    /// The host's name has no address.
    #[error("cannot find the address of {host}: {reason}")]
    Resolve {
        /// The host as written.
        host: String,
        /// The error of the resolver.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_address() {
        let address = SmbAddress::parse("smb://nas/disks/a%20b/test.img").unwrap();
        let parts = (&*address.host, address.port, &*address.share, &*address.path);
        assert_eq!(parts, ("nas", 445, "disks", "a b/test.img"));
        let address = SmbAddress::parse("smb://[::1]:4450/s/f").unwrap();
        assert_eq!((&*address.host, address.port), ("::1", 4450));
        assert_eq!(address.to_string(), "smb://[::1]:4450/s/f");
        for url in ["smb://nas/disks", "smb://nas/disks/"] {
            assert_eq!(SmbAddress::of_folder(url).unwrap().path, "");
        }
        assert_eq!(SmbAddress::of_folder("smb://nas/disks/a/b").unwrap().path, "a/b");
        for url in ["smb://nas", "smb://nas/"] {
            let address = SmbAddress::of_server(url).unwrap();
            assert_eq!(address.to_string(), "smb://nas:445/IPC$/srvsvc");
        }
        for url in ["nas", "smb://", "smb://nas/share", "smb://joe@nas", "smb://nas:x"] {
            assert!(SmbAddress::of_server(url).is_err(), "{url}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_and_no_secret_is_shown() {
        for url in [
            "smb://nas",
            "smb://nas/s",
            "smb:nas/s/f",
            "smb:///s/f",
            "smb://nas//f",
            "smb://nas/s/",
            "smb://nas/s/a//b",
            "smb://nas/s/../f",
            "smb://nas/s/a%zz",
            "smb://nas/s/a%5cb",
            "smb://nas:0/s/f",
        ] {
            assert!(SmbAddress::parse(url).is_err(), "{url}");
        }
        let error = SmbAddress::parse("smb://joe%hunter2@nas/s/f").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
