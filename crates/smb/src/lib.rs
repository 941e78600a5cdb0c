//! An SMB 2 and 3 client on a completion-based driver: files of shares as volumes.
//!
//! # What is here
//!
//! [`SmbClient`] is one thread's set of open files. It owns no thread and no clock: the thread that owns the driver
//! passes completions to it and asks it to flush. The layers, top down:
//!
//! - [`SmbClient`]: routes completions and time to the files.
//! - `channels`: a file with the connections of its session, over which its requests are dealt.
//! - `file`: one file on one connection, with a session and a tree of its own: logon, credits, requests in flight, data.
//! - `auth`: the logon, `NTLMv2` in SPNEGO. `crypto`: derived keys, signatures, encryption.
//! - [`wire`]: messages as bytes (MS-SMB2 section 2).
//! - `tree`: files and folders of a share by blocking calls, for file system workloads.
//! - `tools`: a file as a blocking disk, and the list of shares, for tools and tests.
//!
//! # The path of one read
//!
//! [`SmbClient::submit`] queues it. [`SmbClient::flush`] gives every queued request its number and its credits, appends
//! the requests to the gather list of the connection and passes the list to the driver in *one* send. Received data are
//! parsed in the receive buffer; the data of a read go to the caller's segment or nowhere. The response frees the
//! credits and becomes an [`SmbIoDone`]. Nothing on this path allocates, locks or hashes. Signatures are computed over
//! the data where they are; encryption copies the data once.
//!
//! # What it does not do
//!
//! It has an oplock only because durable handles need one, and gives it up when the server asks. It caches nothing. There
//! are no leases, and there is no Kerberos.

mod address;
mod auth;
mod channels;
mod client;
mod credentials;
mod crypto;
mod event;
mod file;
mod options;
mod refusal;
mod tools;
mod tree;
pub mod wire;

pub use address::{SMB_PORT, SmbAddress, SmbAddressError};
pub use client::SmbClient;
pub use credentials::{Password, SmbCredentials};
pub use event::{
    SmbEvent, SmbEventKind, SmbFailure, SmbFileId, SmbIo, SmbIoDone, SmbIoError, SmbOp, SmbSink,
    SmbSubmitError,
};
pub use file::{FileFacts, SmbFileState, SmbMode};
pub use linerate_blame::Blame;
pub use options::{EncryptionChoice, SigningChoice, SmbOptions, SmbOptionsError};
pub use refusal::SmbRefusal;
pub use tools::{SmbDisk, SmbToolError, list_shares};
pub use tree::SmbTree;
pub use wire::body::OpenId;
pub use wire::names::NameKind;
pub use wire::shares::{ListedShare, ShareKind};
