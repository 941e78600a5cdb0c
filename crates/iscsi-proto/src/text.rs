//! `key=value` text of login and text PDUs (RFC 7143 section 6.1): parsing, writing, collecting and splitting.
//!
//! Text is a sequence of `key=value` pairs; each ends with a zero byte. It may be split at any place over several PDUs;
//! all but the last have the C bit. [`Collector`] joins them up to a limit, [`Splitter`] splits them.

/// Longest key name in bytes (RFC 7143 section 6.1).
pub const KEY_BYTES_MAX: usize = 63;

/// Longest value in bytes: a 1024-byte binary value in hexadecimal (RFC 7143 sections 6.1 and 12.1.3).
pub const VALUE_BYTES_MAX: usize = 2 + 2 * 1024;

/// Answer to an unknown key.
pub const NOT_UNDERSTOOD: &str = "NotUnderstood";
/// Answer to a key that has no meaning in this session.
pub const IRRELEVANT: &str = "Irrelevant";
/// Answer to a value that cannot be accepted.
pub const REJECT: &str = "Reject";

/// Parses complete text into pairs, in order. Every rule of the grammar is checked; trailing zero bytes are tolerated.
pub fn parse(text: &[u8]) -> Result<Vec<(&str, &str)>, TextError> {
    let mut pairs = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        let (pair, tail) = (&rest[..end], &rest[end + 1..]);
        rest = tail;
        if !pair.is_empty() {
            pairs.push(parse_pair(pair)?);
        }
    }
    if rest.is_empty() { Ok(pairs) } else { Err(TextError::Unterminated) }
}

fn parse_pair(pair: &[u8]) -> Result<(&str, &str), TextError> {
    let pair = std::str::from_utf8(pair).map_err(|_| TextError::NotUtf8)?;
    let (key, value) = pair.split_once('=').ok_or(TextError::NoEquals)?;
    if key.len() > KEY_BYTES_MAX {
        return Err(TextError::KeyTooLong(key.len()));
    }
    let mut bytes = key.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if !first || !bytes.all(|byte| byte.is_ascii_alphanumeric() || b".-+@_#".contains(&byte)) {
        return Err(TextError::KeyName);
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(TextError::ValueTooLong(value.len()));
    }
    Ok((key, value))
}

/// Text that is being written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Appends a pair. `value` must not contain a zero byte.
    pub fn push(&mut self, key: &str, value: &str) {
        debug_assert!(!key.is_empty() && key.len() <= KEY_BYTES_MAX && !key.contains(['=', '\0']));
        debug_assert!(!value.contains('\0'));
        self.bytes.extend_from_slice(key.as_bytes());
        self.bytes.push(b'=');
        self.bytes.extend_from_slice(value.as_bytes());
        self.bytes.push(0);
    }

    /// Whether there is no pair yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The text.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Joins text that arrives in several PDUs.
#[derive(Clone, Debug)]
pub struct Collector {
    bytes: Vec<u8>,
    limit: usize,
}

impl Collector {
    /// Accepts up to `limit` bytes in all.
    pub fn new(limit: usize) -> Self {
        Collector { bytes: Vec::new(), limit }
    }

    /// Adds one PDU's data; `cont` is its C bit. Returns the whole text once the last piece has arrived.
    pub fn push(&mut self, data: &[u8], cont: bool) -> Result<Option<Vec<u8>>, TextError> {
        // A peer could send empty continuations for ever.
        if cont && data.is_empty() {
            return Err(TextError::EmptyContinuation);
        }
        if self.bytes.len() + data.len() > self.limit {
            return Err(TextError::TooLong { limit: self.limit });
        }
        self.bytes.extend_from_slice(data);
        Ok((!cont).then(|| std::mem::take(&mut self.bytes)))
    }

    /// Discards an incomplete text.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// Cuts text into PDUs.
#[derive(Clone, Debug, Default)]
pub struct Splitter {
    bytes: Vec<u8>,
    sent: usize,
}

impl Splitter {
    /// Starts with `bytes`; the rest of an earlier text is dropped.
    pub fn load(&mut self, bytes: Vec<u8>) {
        *self = Splitter { bytes, sent: 0 };
    }

    /// True while a part of the text has not been returned.
    pub fn is_open(&self) -> bool {
        self.sent < self.bytes.len()
    }

    /// The next piece, of at most `limit` bytes (empty if nothing is left), and its C bit.
    pub fn next_piece(&mut self, limit: u32) -> (Vec<u8>, bool) {
        let end = self.bytes.len().min(self.sent + limit as usize);
        let piece = self.bytes[self.sent..end].to_vec();
        self.sent = end;
        (piece, self.is_open())
    }
}

/// The peer's text breaks the grammar or a limit. A login fails; a text request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The last pair does not end with a zero byte.
    #[error("peer's text does not end with a zero byte")]
    Unterminated,
    /// A pair is not UTF-8.
    #[error("peer's text is not UTF-8")]
    NotUtf8,
    /// A pair has no `=`.
    #[error("peer's text has a pair without '='")]
    NoEquals,
    /// A key has no name or forbidden characters.
    #[error("peer's text has a key with a forbidden name")]
    KeyName,
    /// A key's name is too long.
    #[error("peer's text has a key of {0} bytes, the limit is 63")]
    KeyTooLong(usize),
    /// A value is too long.
    #[error("peer's text has a value of {0} bytes, the limit is 2050")]
    ValueTooLong(usize),
    /// The whole text is too long.
    #[error("peer's text is longer than {limit} bytes")]
    TooLong {
        /// Our limit.
        limit: usize,
    },
    /// C bit on a PDU without data.
    #[error("peer continues a text without sending any of it")]
    EmptyContinuation,
}
