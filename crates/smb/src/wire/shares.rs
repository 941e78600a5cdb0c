//! The list of a server's shares: `NetrShareEnum` of the service srvsvc, at level 1 (MS-SRVS 3.1.4.8, 2.2.4.23), encoded
//! as NDR (C706 chapter 14).

use super::rpc::Syntax;
use super::unicode;

/// The name of the service's pipe.
pub const SRVSVC_PIPE: &str = "srvsvc";
/// The interface of the service.
pub const SRVSVC: Syntax = Syntax {
    uuid: [0xC8, 0x4F, 0x32, 0x4B, 0x70, 0x16, 0xD3, 0x01, 0x12, 0x78, 0x5A, 0x47, 0xBF, 0x6E, 0xE1, 0x88],
    version: 3,
};
/// The number of `NetrShareEnum`.
pub const SHARE_ENUM: u16 = 15;

const LEVEL: u32 = 1;
/// Any value but zero is a pointer to something that follows.
const POINTER: u32 = 0x2_0000;
const ALL: u32 = u32::MAX;
/// Bytes of a share at level 1 without its texts.
const ENTRY_BYTES: usize = 12;
const SPECIAL: u32 = 0x8000_0000;
const TEMPORARY: u32 = 0x4000_0000;
const ERROR_ACCESS_DENIED: u32 = 5;

/// What a share offers (MS-SRVS 2.2.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareKind {
    /// Folders and files.
    Disk,
    /// A printer.
    Printer,
    /// A communication device.
    Device,
    /// Named pipes.
    Pipe,
    /// Another number.
    Other(u32),
}

impl ShareKind {
    fn of(number: u32) -> Self {
        match number {
            0 => Self::Disk,
            1 => Self::Printer,
            2 => Self::Device,
            3 => Self::Pipe,
            other => Self::Other(other),
        }
    }

    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Printer => "printer",
            Self::Device => "device",
            Self::Pipe => "pipe",
            Self::Other(_) => "other",
        }
    }
}

/// A share of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedShare {
    /// Its name. Control characters are replaced, as in the comment.
    pub name: String,
    /// What it offers.
    pub kind: ShareKind,
    /// For administrators, or for programs.
    pub is_special: bool,
    /// It ends with the server's process.
    pub is_temporary: bool,
    /// The administrator's comment.
    pub comment: String,
}

/// The arguments of `NetrShareEnum`: all shares of `host`, as the user wrote it.
pub fn share_enum(host: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut push = |value: u32| out.extend(value.to_le_bytes());
    push(POINTER);
    let name = unicode::utf16(&format!("\\\\{host}\0"));
    let units = (name.len() / 2) as u32;
    [units, 0, units].into_iter().for_each(&mut push);
    out.extend(name);
    out.resize(out.len().next_multiple_of(4), 0);
    let mut push = |value: u32| out.extend(value.to_le_bytes());
    // The level, twice; an empty container; no limit of the length; no handle to resume with.
    [LEVEL, LEVEL, POINTER, 0, 0, ALL, 0].into_iter().for_each(&mut push);
    out
}

/// The shares, from the result of `NetrShareEnum`.
pub fn shares(result: &[u8]) -> Result<Vec<ListedShare>, ShareListError> {
    let mut input = Ndr { bytes: result, at: 0 };
    if input.u32()? != LEVEL || input.u32()? != LEVEL {
        return Err(ShareListError::Malformed);
    }
    let mut found = Vec::new();
    if input.u32()? != 0 {
        let count = input.u32()?;
        if input.u32()? != 0 {
            found = entries(&mut input, count)?;
        } else if count != 0 {
            return Err(ShareListError::Malformed);
        }
    }
    let _total = input.u32()?;
    if input.u32()? != 0 {
        let _resume_handle = input.u32()?;
    }
    match input.u32()? {
        0 => Ok(found),
        ERROR_ACCESS_DENIED => Err(ShareListError::AccessDenied),
        code => Err(ShareListError::Failed(code)),
    }
}

/// An array of entries, then the texts of each in turn.
fn entries(input: &mut Ndr<'_>, count: u32) -> Result<Vec<ListedShare>, ShareListError> {
    let fits = (count as usize).checked_mul(ENTRY_BYTES).is_some_and(|bytes| bytes <= input.left());
    if input.u32()? != count || !fits {
        return Err(ShareListError::Malformed);
    }
    let fixed: Vec<[u32; 3]> = (0..count)
        .map(|_| Ok([input.u32()?, input.u32()?, input.u32()?]))
        .collect::<Result<_, ShareListError>>()?;
    let mut text = |pointer: u32| if pointer == 0 { Ok(String::new()) } else { input.text() };
    fixed
        .into_iter()
        .map(|[name, kind, comment]| {
            Ok(ListedShare {
                name: text(name)?,
                kind: ShareKind::of(kind & !(SPECIAL | TEMPORARY)),
                is_special: kind & SPECIAL != 0,
                is_temporary: kind & TEMPORARY != 0,
                comment: text(comment)?,
            })
        })
        .collect()
}

/// Takes encoded values off their bytes.
struct Ndr<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Ndr<'_> {
    fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    fn u32(&mut self) -> Result<u32, ShareListError> {
        let start = self.at.next_multiple_of(4);
        let four = self.bytes.get(start..).and_then(|rest| rest.first_chunk());
        self.at = start + 4;
        four.map(|four| u32::from_le_bytes(*four)).ok_or(ShareListError::Malformed)
    }

    /// A text with its end mark: most units, the first unit's offset, units.
    fn text(&mut self) -> Result<String, ShareListError> {
        let (most, offset, units) = (self.u32()?, self.u32()?, self.u32()?);
        let len = (units as usize).checked_mul(2).filter(|len| *len <= self.left());
        let len = len.filter(|_| offset == 0 && units <= most).ok_or(ShareListError::Malformed)?;
        let bytes = &self.bytes[self.at..self.at + len];
        self.at += len;
        let text = unicode::text(bytes);
        let shown = text.trim_end_matches('\0').chars();
        Ok(shown.map(|one| if one.is_control() { char::REPLACEMENT_CHARACTER } else { one }).collect())
    }
}

/// The list cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareListError {
    /// It is not encoded as the standard says (peer).
    #[error("a malformed list of shares")]
    Malformed,
    /// The user may not see it (user).
    #[error("access to the list of shares denied")]
    AccessDenied,
    /// Another error of the server (peer).
    #[error("the server could not list its shares: error {0} of Windows")]
    Failed(u32),
}
