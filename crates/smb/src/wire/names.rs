//! Requests about names in a share: open, make and remove files and folders, list a folder, change attributes (MS-SMB2
//! 2.2.13, 2.2.33, 2.2.34, 2.2.39; the structures of attributes and lists: MS-FSCC 2.4).

use super::body::{CreateRequest, CreateResponse, OpenId, QueryDirectoryRequest, QueryInfoResponse};
use super::files::{IMPERSONATION, NORMAL, OPEN, OPEN_OR_CREATE, set_information};
use super::files::{NOT_A_FOLDER, READ_ATTRIBUTES, READ_DATA, SYNCHRONIZE, WRITE_DATA};
use super::header::MessageHeader;
use super::{HEADER_BYTES, WireError, body_of, message, part, unicode};
use zerocopy::little_endian::{U16, U32};

const WRITE_ATTRIBUTES: u32 = 0x100;
const DELETE: u32 = 0x1_0000;
const SHARE_ALL: u32 = 0x7;
const CREATE: u32 = 2;
const A_FOLDER: u32 = 0x1;
/// A link is opened itself, not what it leads to.
const OF_A_LINK_ITSELF: u32 = 0x20_0000;
const ATTRIBUTE_FOLDER: u32 = 0x10;
const ATTRIBUTE_LINK: u32 = 0x400;
const DIRECTORY_INFORMATION: u8 = 1;
const BASIC_INFORMATION: u8 = 4;
const DISPOSITION_INFORMATION: u8 = 13;
/// Most bytes of one answer with names: what one credit pays.
const LIST_BYTES: u32 = 64 * 1024;
/// Bytes of an entry of a list before its name.
const ENTRY_BYTES: usize = 64;
/// From 1601 to 1970, in seconds.
const EPOCH_S: i64 = 11_644_473_600;
const TICKS_PER_S: i64 = 10_000_000;

/// What a name is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUse {
    /// The data of a file.
    Data {
        /// They are written too.
        write: bool,
        /// The file is made if it does not exist.
        create: bool,
    },
    /// To know what it is.
    Look,
    /// To change its times.
    SetTimes,
    /// To list a folder.
    List,
    /// To make a folder.
    MakeFolder,
    /// To remove a folder.
    RemoveFolder,
    /// To remove a file.
    RemoveFile,
}

impl NameUse {
    /// Access, disposition and options of the CREATE.
    const fn wire(self) -> (u32, u32, u32) {
        let look = READ_ATTRIBUTES | SYNCHRONIZE;
        match self {
            Self::Data { write, create } => (
                look | READ_DATA | if write { WRITE_DATA } else { 0 },
                if create { OPEN_OR_CREATE } else { OPEN },
                NOT_A_FOLDER,
            ),
            Self::Look => (look, OPEN, OF_A_LINK_ITSELF),
            Self::SetTimes => (look | WRITE_ATTRIBUTES, OPEN, OF_A_LINK_ITSELF),
            Self::List => (look | READ_DATA, OPEN, A_FOLDER),
            Self::MakeFolder => (look, CREATE, A_FOLDER),
            Self::RemoveFolder => (look | DELETE, OPEN, A_FOLDER | OF_A_LINK_ITSELF),
            Self::RemoveFile => (look | DELETE, OPEN, NOT_A_FOLDER | OF_A_LINK_ITSELF),
        }
    }
}

/// What a name is. A link is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A file of so many bytes.
    File(u64),
    /// A folder.
    Folder,
    /// A link to something else.
    Link,
}

impl NameKind {
    const fn of(attributes: u32, size_bytes: u64) -> Self {
        if attributes & ATTRIBUTE_LINK != 0 {
            Self::Link
        } else if attributes & ATTRIBUTE_FOLDER != 0 {
            Self::Folder
        } else {
            Self::File(size_bytes)
        }
    }
}

/// A CREATE request; `path` from the share's root, with slashes; empty: the root.
pub fn open(header: &MessageHeader, path: &str, purpose: NameUse) -> Vec<u8> {
    let name = unicode::utf16(&path.replace('/', "\\"));
    let (access, disposition, options) = purpose.wire();
    let body = CreateRequest {
        impersonation_level: U32::new(IMPERSONATION),
        desired_access: U32::new(access),
        file_attributes: U32::new(NORMAL),
        share_access: U32::new(SHARE_ALL),
        create_disposition: U32::new(disposition),
        create_options: U32::new(options),
        name_offset: U16::new((HEADER_BYTES + size_of::<CreateRequest>()) as u16),
        name_len: U16::new(name.len() as u16),
        ..CreateRequest::default()
    };
    // The variable part may not be empty.
    message(header, &body, if name.is_empty() { &[0, 0] } else { &name })
}

/// What a CREATE opened, and what it is.
pub fn opened(response: &[u8]) -> Result<(OpenId, NameKind), WireError> {
    let body: &CreateResponse = body_of(response)?;
    Ok((body.file_id, NameKind::of(body.file_attributes.get(), body.end_of_file.get())))
}

/// A `SET_INFO` request: the file or folder is removed when it is closed.
pub fn remove(header: &MessageHeader, file_id: OpenId) -> Vec<u8> {
    set_information(header, file_id, DISPOSITION_INFORMATION, &[1])
}

/// A `SET_INFO` request that sets the times of the last access and the last write, in seconds since 1970.
pub fn set_times(header: &MessageHeader, file_id: OpenId, unix_s: i64) -> Vec<u8> {
    let ticks = unix_s.saturating_add(EPOCH_S).saturating_mul(TICKS_PER_S);
    // Creation, last access, last write, change, attributes and padding. Zeros change nothing.
    let information = [0, ticks, ticks, 0, 0].map(i64::to_le_bytes).concat();
    set_information(header, file_id, BASIC_INFORMATION, &information)
}

/// A `QUERY_DIRECTORY` request for the next names of an open folder.
pub fn list(header: &MessageHeader, file_id: OpenId) -> Vec<u8> {
    let pattern = unicode::utf16("*");
    let body = QueryDirectoryRequest {
        info_class: DIRECTORY_INFORMATION,
        file_id,
        name_offset: U16::new((HEADER_BYTES + size_of::<QueryDirectoryRequest>()) as u16),
        name_len: U16::new(pattern.len() as u16),
        output_len: U32::new(LIST_BYTES),
        ..QueryDirectoryRequest::default()
    };
    message(header, &body, &pattern)
}

/// Adds the names that an answer to [`list`] has, without the folder itself and the one above.
pub fn listed(response: &[u8], names: &mut Vec<(String, NameKind)>) -> Result<(), WireError> {
    // Its structure is that of QUERY_INFO.
    let body: &QueryInfoResponse = body_of(response)?;
    let mut rest = part(response, body.output_offset.get().into(), body.output_len.get())?;
    loop {
        let entry = rest.first_chunk::<ENTRY_BYTES>().ok_or(WireError::TooShort)?;
        let u32_at = |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
        let size_bytes = u64::from(u32_at(40)) | u64::from(u32_at(44)) << 32;
        let name = unicode::text(part(rest, ENTRY_BYTES as u32, u32_at(60))?);
        if name != "." && name != ".." {
            names.push((name, NameKind::of(u32_at(56), size_bytes)));
        }
        match u32_at(0) as usize {
            0 => return Ok(()),
            // Every entry is at least this long, so the loop ends.
            next if next >= ENTRY_BYTES => rest = rest.get(next..).ok_or(WireError::Range)?,
            _ => return Err(WireError::Range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer(output: &[u8]) -> Vec<u8> {
        let body = QueryInfoResponse {
            output_offset: U16::new((HEADER_BYTES + size_of::<QueryInfoResponse>()) as u16),
            output_len: U32::new(output.len() as u32),
            ..QueryInfoResponse::default()
        };
        message(&MessageHeader::default(), &body, output)
    }

    fn entry(name: &str, attributes: u32, size_bytes: u64, is_last: bool) -> Vec<u8> {
        let name = unicode::utf16(name);
        let mut bytes = vec![0; ENTRY_BYTES];
        bytes[40..48].copy_from_slice(&size_bytes.to_le_bytes());
        bytes[56..60].copy_from_slice(&attributes.to_le_bytes());
        bytes[60..64].copy_from_slice(&(name.len() as u32).to_le_bytes());
        bytes.extend(name);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let next = if is_last { 0 } else { bytes.len() as u32 };
        bytes[..4].copy_from_slice(&next.to_le_bytes());
        bytes
    }

    #[test]
    fn names_have_kind_and_size_and_the_folder_itself_is_none_of_them() {
        let all = [
            entry(".", ATTRIBUTE_FOLDER, 0, false),
            entry("..", ATTRIBUTE_FOLDER, 0, false),
            entry("a", ATTRIBUTE_FOLDER, 0, false),
            entry("link", ATTRIBUTE_LINK | ATTRIBUTE_FOLDER, 0, false),
            entry("file", NORMAL, 5 << 32, true),
        ];
        let mut names = Vec::new();
        listed(&answer(&all.concat()), &mut names).unwrap();
        let kinds = [("a", NameKind::Folder), ("link", NameKind::Link), ("file", NameKind::File(5 << 32))];
        assert_eq!(names, kinds.map(|(name, kind)| (name.to_owned(), kind)));
    }

    #[test]
    fn the_time_of_1970_is_that_of_windows() {
        let request = set_times(&MessageHeader::default(), [0; 16], 0);
        let ticks = 116_444_736_000_000_000_i64.to_le_bytes();
        assert_eq!(request[request.len() - 32..request.len() - 16], [ticks, ticks].concat());
    }

    proptest! {
        #[test]
        fn no_list_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = listed(&answer(&bytes), &mut Vec::new());
        }
    }
}
