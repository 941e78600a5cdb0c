//! iSCSI names (RFC 7143 section 4.2.7): `iqn.`, `eui.` and `naa.` forms, checked and normalised.
//!
//! Names are compared byte by byte after normalisation, which for the ASCII names accepted here means lower case
//! (RFC 3722). Names outside ASCII are refused rather than compared wrongly.

use std::fmt;

/// Longest name in bytes (RFC 7143 section 4.2.7.1).
pub const NAME_BYTES_MAX: usize = 223;

/// A valid name in its normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IscsiName(String);

impl IscsiName {
    /// Checks and normalises a name.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        let name = normalised(name)?;
        match name.split_at_checked(4) {
            Some(("iqn.", rest)) => check_iqn(rest)?,
            Some(("eui.", rest)) => check_hex(rest, &[16])?,
            Some(("naa.", rest)) => check_hex(rest, &[16, 32])?,
            _ => return Err(NameError::Type),
        }
        Ok(IscsiName(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IscsiName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A pattern of permitted names: one name, or with a `*` at the end all names with this prefix. Normalised like names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePattern {
    /// This name.
    Exactly(IscsiName),
    /// Every name with this prefix.
    Beginning(String),
}

impl NamePattern {
    /// Checks and normalises a pattern.
    pub fn parse(pattern: &str) -> Result<Self, NameError> {
        let Some(beginning) = pattern.strip_suffix('*') else {
            return IscsiName::parse(pattern).map(Self::Exactly);
        };
        let beginning = normalised(beginning)?;
        let types = ["iqn.", "eui.", "naa."];
        let is_one = types.iter().any(|name| name.starts_with(&beginning) || beginning.starts_with(name));
        if is_one { Ok(Self::Beginning(beginning)) } else { Err(NameError::Type) }
    }

    /// Whether a normalised name is meant.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exactly(exactly) => exactly.as_str() == name,
            Self::Beginning(beginning) => name.starts_with(beginning.as_str()),
        }
    }
}

/// A name or the beginning of one in lower case, if it has allowed characters only.
fn normalised(name: &str) -> Result<String, NameError> {
    if name.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong(name.len()));
    }
    let name = name.to_ascii_lowercase();
    let allowed = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.:".contains(*c);
    match name.chars().find(|c| !allowed(c)) {
        Some(wrong) => Err(NameError::Character(wrong)),
        None => Ok(name),
    }
}

/// `yyyy-mm.` and a reversed domain, optionally `:` and anything.
fn check_iqn(rest: &str) -> Result<(), NameError> {
    let bytes = rest.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let month = rest.get(5..7).and_then(|month| month.parse::<u8>().ok());
    let date = digits(0..4) && bytes.get(4) == Some(&b'-') && digits(5..7) && bytes.get(7) == Some(&b'.');
    if !date || !month.is_some_and(|month| (1..=12).contains(&month)) {
        return Err(NameError::Date);
    }
    let authority = rest[8..].split(':').next().unwrap_or_default();
    let label = |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
    if authority.split('.').all(label) { Ok(()) } else { Err(NameError::Authority) }
}

fn check_hex(rest: &str, lengths: &[usize]) -> Result<(), NameError> {
    let valid = lengths.contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    if valid { Ok(()) } else { Err(NameError::Hex) }
}

/// Why a string is not an iSCSI name (fault: its author, that is the user's configuration or the peer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Longer than 223 bytes.
    #[error("an iSCSI name has at most 223 bytes, this one has {0}")]
    TooLong(usize),
    /// A character outside a-z, 0-9, dash, dot and colon.
    #[error("an iSCSI name has letters, digits, '-', '.' and ':', not {0:?}")]
    Character(char),
    /// Another beginning.
    #[error("an iSCSI name starts with 'iqn.', 'eui.' or 'naa.'")]
    Type,
    /// The date of an `iqn.` name.
    #[error("an iqn name goes on with a date and a dot, as in 'iqn.2026-11.'")]
    Date,
    /// The naming authority of an `iqn.` name.
    #[error("an iqn name has a reversed domain name after its date, as in 'iqn.2026-11.lab.linerate'")]
    Authority,
    /// The digits of an `eui.` or `naa.` name.
    #[error("an eui name has 16 hexadecimal digits, a naa name 16 or 32")]
    Hex,
}
