//! The connection to the partner's volumes.

use bytes::Bytes;
use futures::future::LocalBoxFuture;
use thiserror::Error;

/// Volumes of the partner that receive a copy, numbered as in the [`Answer`](super::Answer).
///
/// An operation begins when it is called. A failed operation may have been done, completely or in part, or may still be
/// done until the partner begins again. A link belongs to one begin of a transfer at the partner. When the partner has
/// begun again or was restarted, all operations of older links fail, because writes that were not flushed may be lost.
pub trait Link {
    /// Writes `data` at `offset_bytes`. Not durable before the next [`Link::flush`].
    fn write(&self, volume: usize, offset_bytes: u64, data: Bytes) -> Sending;
    /// Makes a range read as zeros.
    fn discard(&self, volume: usize, offset_bytes: u64, len_bytes: u64) -> Sending;
    /// Makes all completed operations, on all volumes, survive a power cut at the partner.
    fn flush(&self) -> Sending;
    /// Aborts: operations in progress fail soon.
    fn close(&self);
}

/// An operation in progress.
pub type Sending = LocalBoxFuture<'static, Result<(), LinkError>>;

/// Why an operation did not reach the partner.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LinkError {
    /// There is no connection, or it broke.
    #[error(
        "the link to the partner broke: {0}; replication goes on from where it was when it is started again"
    )]
    Broken(String),
    /// The partner refused: another copy has begun, it was promoted, it is full.
    #[error("the partner refused: {0}")]
    Refused(String),
    /// The user's mistake: wrong address, secret or target.
    #[error("{0}")]
    Setup(String),
}
