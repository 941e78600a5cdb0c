//! The fixed parts of all bodies (MS-SMB2 2.2.3 to 2.2.40), for both sides.

use super::Body;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// From a structure's size, name and fields, makes the type with its wire form.
macro_rules! bodies {
    ($($(#[$doc:meta])* $size:literal $name:ident { $($(#[$about:meta])* $field:ident: $type:ty,)* })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
            #[repr(C)]
            pub struct $name {
                /// Tells the structure apart; set by default.
                pub structure_size: U16,
                $($(#[$about])* pub $field: $type,)*
            }

            impl Body for $name {
                const STRUCTURE_SIZE: u16 = $size;
            }

            impl Default for $name {
                fn default() -> Self {
                    Self { structure_size: U16::new($size), $($field: Default::default(),)* }
                }
            }
        )+
    };
}

/// The `FileId` of an open file.
pub type OpenId = [u8; 16];

bodies! {
    /// NEGOTIATE request (2.2.3).
    36 NegotiateRequest {
        /// Dialects that follow.
        dialect_count: U16,
        /// 1: signing is possible, 2: required.
        security_mode: U16,
        /// Reserved.
        reserved: U16,
        /// What the client can do.
        capabilities: U32,
        /// Names the client.
        client_guid: [u8; 16],
        /// Where the contexts start.
        context_offset: U32,
        /// Contexts that follow.
        context_count: U16,
        /// Reserved.
        reserved2: U16,
    }
    /// NEGOTIATE response (2.2.4).
    65 NegotiateResponse {
        /// 1: signing is possible, 2: required.
        security_mode: U16,
        /// The dialect.
        dialect: U16,
        /// Contexts that follow.
        context_count: U16,
        /// Names the server.
        server_guid: [u8; 16],
        /// What the server can do.
        capabilities: U32,
        /// Most bytes of an information buffer.
        max_transact_bytes: U32,
        /// Most bytes of a READ.
        max_read_bytes: U32,
        /// Most bytes of a WRITE.
        max_write_bytes: U32,
        /// The server's time.
        system_time: U64,
        /// Reserved.
        start_time: U64,
        /// Where the security token is.
        token_offset: U16,
        /// Bytes of the security token.
        token_len: U16,
        /// Where the contexts start.
        context_offset: U32,
    }
    /// `SESSION_SETUP` request (2.2.5).
    25 SessionSetupRequest {
        /// Flags.
        flags: u8,
        /// 1: signing is possible, 2: required.
        security_mode: u8,
        /// What the client can do.
        capabilities: U32,
        /// Reserved.
        channel: U32,
        /// Where the security token is.
        token_offset: U16,
        /// Bytes of the security token.
        token_len: U16,
        /// A session that this one replaces.
        previous_session_id: U64,
    }
    /// `SESSION_SETUP` response (2.2.6).
    9 SessionSetupResponse {
        /// 1: guest, 2: anonymous, 4: encrypt.
        flags: U16,
        /// Where the security token is.
        token_offset: U16,
        /// Bytes of the security token.
        token_len: U16,
    }
    /// `TREE_CONNECT` request (2.2.9).
    9 TreeConnectRequest {
        /// Flags.
        flags: U16,
        /// Where the path is.
        path_offset: U16,
        /// Bytes of the path.
        path_len: U16,
    }
    /// `TREE_CONNECT` response (2.2.10).
    16 TreeConnectResponse {
        /// 1: disk.
        share_type: u8,
        /// Reserved.
        reserved: u8,
        /// Properties of the share.
        share_flags: U32,
        /// More of them.
        capabilities: U32,
        /// Access that the user has.
        maximal_access: U32,
    }
    /// CREATE request (2.2.13).
    57 CreateRequest {
        /// Reserved.
        security_flags: u8,
        /// 0: none.
        oplock_level: u8,
        /// 2: impersonation.
        impersonation_level: U32,
        /// Reserved.
        create_flags: U64,
        /// Reserved.
        reserved: U64,
        /// Access that is asked for.
        desired_access: U32,
        /// Attributes of a new file.
        file_attributes: U32,
        /// What others may do meanwhile.
        share_access: U32,
        /// Open, create or both.
        create_disposition: U32,
        /// Options.
        create_options: U32,
        /// Where the name is.
        name_offset: U16,
        /// Bytes of the name.
        name_len: U16,
        /// Where the contexts are.
        contexts_offset: U32,
        /// Bytes of the contexts.
        contexts_len: U32,
    }
    /// CREATE response (2.2.14).
    89 CreateResponse {
        /// The oplock that was granted.
        oplock_level: u8,
        /// Flags.
        flags: u8,
        /// 1: opened, 2: created.
        create_action: U32,
        /// Creation, last access, last write and change.
        times: [U64; 4],
        /// Bytes of disk space.
        allocation_bytes: U64,
        /// The file's size.
        end_of_file: U64,
        /// Attributes.
        file_attributes: U32,
        /// Reserved.
        reserved: U32,
        /// The open file.
        file_id: OpenId,
        /// Where the contexts are.
        contexts_offset: U32,
        /// Bytes of the contexts.
        contexts_len: U32,
    }
    /// CLOSE request (2.2.15) and FLUSH request (2.2.17).
    24 FileRequest {
        /// Flags.
        flags: U16,
        /// Reserved.
        reserved: U32,
        /// The open file.
        file_id: OpenId,
    }
    /// READ request (2.2.19).
    49 ReadRequest {
        /// Where the data shall be in the response.
        padding: u8,
        /// Flags.
        flags: u8,
        /// Bytes to read.
        length: U32,
        /// First byte.
        offset: U64,
        /// The open file.
        file_id: OpenId,
        /// Fewest bytes that are a success.
        minimum_count: U32,
        /// Reserved.
        channel: U32,
        /// Reserved.
        remaining: U32,
        /// Reserved.
        channel_offset: U16,
        /// Reserved.
        channel_len: U16,
    }
    /// READ response (2.2.20).
    17 ReadResponse {
        /// Where the data are.
        data_offset: u8,
        /// Reserved.
        reserved: u8,
        /// Bytes of data.
        data_len: U32,
        /// Reserved.
        remaining: U32,
        /// Reserved.
        flags: U32,
    }
    /// WRITE request (2.2.21).
    49 WriteRequest {
        /// Where the data are.
        data_offset: U16,
        /// Bytes of data.
        length: U32,
        /// First byte.
        offset: U64,
        /// The open file.
        file_id: OpenId,
        /// Reserved.
        channel: U32,
        /// Reserved.
        remaining: U32,
        /// Reserved.
        channel_offset: U16,
        /// Reserved.
        channel_len: U16,
        /// 1: on stable storage before the response.
        flags: U32,
    }
    /// WRITE response (2.2.22).
    17 WriteResponse {
        /// Reserved.
        reserved: U16,
        /// Bytes written.
        count: U32,
        /// Reserved.
        remaining: U32,
        /// Reserved.
        channel_offset: U16,
        /// Reserved.
        channel_len: U16,
    }
    /// IOCTL request (2.2.31).
    57 IoctlRequest {
        /// Reserved.
        reserved: U16,
        /// What is asked for.
        control_code: U32,
        /// The open file; all ones: none.
        file_id: OpenId,
        /// Where the input is.
        input_offset: U32,
        /// Bytes of it.
        input_len: U32,
        /// Most bytes of input in the answer.
        max_input_len: U32,
        /// Where the output is.
        output_offset: U32,
        /// Bytes of it.
        output_len: U32,
        /// Most bytes of output in the answer.
        max_output_len: U32,
        /// 1: a control code of the file system.
        flags: U32,
        /// Reserved.
        reserved2: U32,
    }
    /// IOCTL response (2.2.32).
    49 IoctlResponse {
        /// Reserved.
        reserved: U16,
        /// What was asked for.
        control_code: U32,
        /// The open file.
        file_id: OpenId,
        /// Where the input is.
        input_offset: U32,
        /// Bytes of it.
        input_len: U32,
        /// Where the output is.
        output_offset: U32,
        /// Bytes of it.
        output_len: U32,
        /// Reserved.
        flags: U32,
        /// Reserved.
        reserved2: U32,
    }
    /// `QUERY_INFO` request (2.2.37).
    41 QueryInfoRequest {
        /// 1: of the file.
        info_type: u8,
        /// Which information.
        info_class: u8,
        /// Most bytes of the answer.
        output_len: U32,
        /// Reserved.
        input_offset: U16,
        /// Reserved.
        reserved: U16,
        /// Reserved.
        input_len: U32,
        /// Reserved.
        additional: U32,
        /// Flags.
        flags: U32,
        /// The open file.
        file_id: OpenId,
    }
    /// `QUERY_INFO` response (2.2.38) and `QUERY_DIRECTORY` response (2.2.34).
    9 QueryInfoResponse {
        /// Where the information is.
        output_offset: U16,
        /// Bytes of it.
        output_len: U32,
    }
    /// `QUERY_DIRECTORY` request (2.2.33).
    33 QueryDirectoryRequest {
        /// Which information.
        info_class: u8,
        /// Flags.
        flags: u8,
        /// Reserved.
        file_index: U32,
        /// The open folder.
        file_id: OpenId,
        /// Where the pattern of the names is.
        name_offset: U16,
        /// Bytes of it.
        name_len: U16,
        /// Most bytes of the answer.
        output_len: U32,
    }
    /// `SET_INFO` request (2.2.39).
    33 SetInfoRequest {
        /// 1: of the file.
        info_type: u8,
        /// Which information.
        info_class: u8,
        /// Bytes of it.
        buffer_len: U32,
        /// Where it is.
        buffer_offset: U16,
        /// Reserved.
        reserved: U16,
        /// Reserved.
        additional: U32,
        /// The open file.
        file_id: OpenId,
    }
    /// ECHO, LOGOFF and CANCEL, in both directions (2.2.7, 2.2.28, 2.2.30).
    4 EmptyBody {
        /// Reserved.
        reserved: U16,
    }
    /// `OPLOCK_BREAK`, in both directions (2.2.23.1, 2.2.24.1, 2.2.25.1).
    24 OplockBreak {
        /// The level that is left.
        oplock_level: u8,
        /// Reserved.
        reserved: u8,
        /// Reserved.
        reserved2: U32,
        /// The open file.
        file_id: OpenId,
    }
    /// CLOSE response (2.2.16).
    60 CloseResponse {
        /// Flags.
        flags: U16,
        /// Reserved.
        reserved: U32,
        /// Times, sizes and attributes, if they were asked for.
        attributes: [U32; 13],
    }
    /// The body of a response with an error (2.2.2).
    9 ErrorResponse {
        /// Contexts that follow.
        context_count: u8,
        /// Reserved.
        reserved: u8,
        /// Bytes that follow.
        byte_count: U32,
    }
}
