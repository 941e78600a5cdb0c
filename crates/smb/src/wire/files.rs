//! Requests about an open file or pipe (MS-SMB2 2.2.13 to 2.2.22, 2.2.31, 2.2.32, 2.2.37 to 2.2.40).

use super::body::{
    CreateRequest, CreateResponse, EmptyBody, FileRequest, IoctlRequest, IoctlResponse, OpenId, OplockBreak,
    QueryInfoRequest, QueryInfoResponse, ReadRequest, ReadResponse, SetInfoRequest, WriteRequest,
    WriteResponse,
};
use super::durable::{DurableContext, OPLOCK_BATCH};
use super::header::MessageHeader;
use super::{HEADER_BYTES, WireError, body_of, message, part, unicode};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

/// Bytes of a READ or WRITE request before the data.
pub const IO_BYTES: usize = HEADER_BYTES + size_of::<ReadRequest>();
/// Bytes of a READ request: its variable part may not be empty.
pub const READ_BYTES: usize = IO_BYTES + 1;
/// Bytes of a READ response before the data.
pub const READ_DATA_AT: usize = HEADER_BYTES + size_of::<ReadResponse>();

pub(super) const READ_DATA: u32 = 0x1;
pub(super) const WRITE_DATA: u32 = 0x2;
pub(super) const READ_ATTRIBUTES: u32 = 0x80;
pub(super) const SYNCHRONIZE: u32 = 0x10_0000;
const SHARE_READ_WRITE: u32 = 0x3;
pub(super) const OPEN: u32 = 1;
pub(super) const OPEN_OR_CREATE: u32 = 3;
pub(super) const NOT_A_FOLDER: u32 = 0x40;
pub(super) const NORMAL: u32 = 0x80;
pub(super) const IMPERSONATION: u32 = 2;
const WRITE_THROUGH: u32 = 1;
const OF_FILE: u8 = 1;
const STANDARD_INFORMATION: u8 = 5;
const STANDARD_INFORMATION_BYTES: u32 = 24;
const END_OF_FILE_INFORMATION: u8 = 20;
const PIPE_TRANSCEIVE: u32 = 0x0011_C017;
const OF_FILE_SYSTEM: u32 = 1;
/// Most bytes that one request takes from a pipe: what one credit pays.
const PIPE_BYTES: u32 = 64 * 1024;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenMode {
    /// For writing too.
    pub write: bool,
    /// Create it if it does not exist.
    pub create: bool,
}

/// A CREATE request; `path` from the share's root, with slashes.
pub fn create(
    header: &MessageHeader,
    path: &str,
    mode: OpenMode,
    durable: Option<DurableContext>,
) -> Vec<u8> {
    let name = unicode::utf16(&path.replace('/', "\\"));
    let context = durable.map(DurableContext::bytes).unwrap_or_default();
    // Contexts begin at a multiple of eight from the header.
    let context_at = (HEADER_BYTES + size_of::<CreateRequest>() + name.len()).next_multiple_of(8);
    let write = if mode.write { WRITE_DATA } else { 0 };
    let body = CreateRequest {
        oplock_level: if durable.is_some() { OPLOCK_BATCH } else { 0 },
        impersonation_level: U32::new(IMPERSONATION),
        desired_access: U32::new(READ_DATA | READ_ATTRIBUTES | SYNCHRONIZE | write),
        file_attributes: U32::new(NORMAL),
        share_access: U32::new(SHARE_READ_WRITE),
        create_disposition: U32::new(if mode.create { OPEN_OR_CREATE } else { OPEN }),
        create_options: U32::new(NOT_A_FOLDER),
        name_offset: U16::new((HEADER_BYTES + size_of::<CreateRequest>()) as u16),
        name_len: U16::new(name.len() as u16),
        contexts_offset: U32::new(if context.is_empty() { 0 } else { context_at as u32 }),
        contexts_len: U32::new(context.len() as u32),
        ..CreateRequest::default()
    };
    let mut bytes = message(header, &body, &name);
    if !context.is_empty() {
        bytes.resize(context_at, 0);
        bytes.extend(context);
    }
    bytes
}

/// The answer to the end of an oplock, with the level that the server leaves.
pub fn give_up_oplock(header: &MessageHeader, file_id: OpenId, level: u8) -> Vec<u8> {
    message(header, &OplockBreak { oplock_level: level, file_id, ..OplockBreak::default() }, &[])
}

/// A CREATE request for a named pipe.
pub fn create_pipe(header: &MessageHeader, pipe: &str) -> Vec<u8> {
    let name = unicode::utf16(pipe);
    let body = CreateRequest {
        impersonation_level: U32::new(IMPERSONATION),
        desired_access: U32::new(READ_DATA | WRITE_DATA | READ_ATTRIBUTES | SYNCHRONIZE),
        share_access: U32::new(SHARE_READ_WRITE),
        create_disposition: U32::new(OPEN),
        name_offset: U16::new((HEADER_BYTES + size_of::<CreateRequest>()) as u16),
        name_len: U16::new(name.len() as u16),
        ..CreateRequest::default()
    };
    message(header, &body, &name)
}

/// An IOCTL request that writes into a pipe and reads the answer (MS-FSCC 2.3.50).
pub fn transceive(header: &MessageHeader, file_id: OpenId, input: &[u8]) -> Vec<u8> {
    let body = IoctlRequest {
        control_code: U32::new(PIPE_TRANSCEIVE),
        file_id,
        input_offset: U32::new((HEADER_BYTES + size_of::<IoctlRequest>()) as u32),
        input_len: U32::new(input.len() as u32),
        max_output_len: U32::new(PIPE_BYTES),
        flags: U32::new(OF_FILE_SYSTEM),
        ..IoctlRequest::default()
    };
    message(header, &body, input)
}

/// The bytes that an answer to [`transceive`] has from the pipe.
pub fn transceived(response: &[u8]) -> Result<&[u8], WireError> {
    let body: &IoctlResponse = body_of(response)?;
    part(response, body.output_offset.get(), body.output_len.get())
}

/// A READ request for more bytes of a pipe.
pub fn read_pipe(header: &MessageHeader, file_id: OpenId) -> Vec<u8> {
    let mut bytes = vec![0; READ_BYTES];
    read(&mut bytes, header, file_id, 0, PIPE_BYTES);
    bytes
}

/// The bytes that an answer to [`read_pipe`] has.
pub fn pipe_read(response: &[u8]) -> Result<&[u8], WireError> {
    let (offset, len) = read_data(response)?;
    part(response, offset, len)
}

/// An open file, and its size in bytes.
pub fn opened(response: &[u8]) -> Result<(OpenId, u64), WireError> {
    let body: &CreateResponse = body_of(response)?;
    Ok((body.file_id, body.end_of_file.get()))
}

/// A CLOSE or FLUSH request.
pub fn close_or_flush(header: &MessageHeader, file_id: OpenId) -> Vec<u8> {
    message(header, &FileRequest { file_id, ..FileRequest::default() }, &[])
}

/// An ECHO, CANCEL or LOGOFF request.
pub fn empty(header: &MessageHeader) -> Vec<u8> {
    message(header, &EmptyBody::default(), &[])
}

/// A `SET_INFO` request that sets the file's size.
pub fn set_size(header: &MessageHeader, file_id: OpenId, size_bytes: u64) -> Vec<u8> {
    set_information(header, file_id, END_OF_FILE_INFORMATION, &size_bytes.to_le_bytes())
}

/// A `SET_INFO` request about a file or folder.
pub(super) fn set_information(
    header: &MessageHeader,
    file_id: OpenId,
    class: u8,
    information: &[u8],
) -> Vec<u8> {
    let body = SetInfoRequest {
        info_type: OF_FILE,
        info_class: class,
        buffer_len: U32::new(information.len() as u32),
        buffer_offset: U16::new((HEADER_BYTES + size_of::<SetInfoRequest>()) as u16),
        file_id,
        ..SetInfoRequest::default()
    };
    message(header, &body, information)
}

/// A `QUERY_INFO` request for the file's size.
pub fn query_size(header: &MessageHeader, file_id: OpenId) -> Vec<u8> {
    let body = QueryInfoRequest {
        info_type: OF_FILE,
        info_class: STANDARD_INFORMATION,
        output_len: U32::new(STANDARD_INFORMATION_BYTES),
        file_id,
        ..QueryInfoRequest::default()
    };
    message(header, &body, &[])
}

/// The file's size in bytes, from the response to [`query_size`].
pub fn queried_size(response: &[u8]) -> Result<u64, WireError> {
    let body: &QueryInfoResponse = body_of(response)?;
    let information = part(response, body.output_offset.get().into(), body.output_len.get())?;
    let size = information.get(8..16).and_then(|bytes| bytes.first_chunk());
    size.map(|bytes| u64::from_le_bytes(*bytes)).ok_or(WireError::TooShort)
}

/// Writes a READ request.
#[inline]
pub fn read(into: &mut [u8], header: &MessageHeader, file_id: OpenId, offset: u64, len: u32) {
    let body = ReadRequest {
        padding: READ_DATA_AT as u8,
        length: U32::new(len),
        offset: U64::new(offset),
        file_id,
        ..ReadRequest::default()
    };
    into[..HEADER_BYTES].copy_from_slice(header.as_bytes());
    into[HEADER_BYTES..IO_BYTES].copy_from_slice(body.as_bytes());
}

/// Writes a WRITE request up to its data. Durable data are on stable storage before the response.
#[inline]
pub fn write(into: &mut [u8], header: &MessageHeader, file_id: OpenId, offset: u64, len: u32, durable: bool) {
    let body = WriteRequest {
        data_offset: U16::new(IO_BYTES as u16),
        length: U32::new(len),
        offset: U64::new(offset),
        file_id,
        flags: U32::new(if durable { WRITE_THROUGH } else { 0 }),
        ..WriteRequest::default()
    };
    into[..HEADER_BYTES].copy_from_slice(header.as_bytes());
    into[HEADER_BYTES..IO_BYTES].copy_from_slice(body.as_bytes());
}

/// Where the data of a READ response are, from its head: the offset in the message, and the length.
#[inline]
pub fn read_data(head: &[u8]) -> Result<(u32, u32), WireError> {
    let body: &ReadResponse = body_of(head)?;
    Ok((body.data_offset.into(), body.data_len.get()))
}

/// Bytes that a WRITE response confirms.
#[inline]
pub fn written(head: &[u8]) -> Result<u32, WireError> {
    let body: &WriteResponse = body_of(head)?;
    Ok(body.count.get())
}
