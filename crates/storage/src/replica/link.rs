//! The way to the partner's volumes.

use bytes::Bytes;
use futures::future::LocalBoxFuture;
use thiserror::Error;

/// Volumes of the partner that receive a copy, numbered as in the [`Answer`](super::Answer).
///
/// An operation begins when it is called. One that failed may have happened, wholly or in part, or may still happen until
/// the partner begins anew. A link belongs to one beginning of a transfer at the partner: when the partner has begun anew
/// or has been started anew, all operations of older links fail, for what they wrote and did not flush may be lost.
pub trait Link {
    /// Writes `data` at `offset_bytes`. Not durable before the next [`Link::flush`].
    fn write(&self, volume: usize, offset_bytes: u64, data: Bytes) -> Sending;
    /// Makes a range read as zeros.
    fn discard(&self, volume: usize, offset_bytes: u64, len_bytes: u64) -> Sending;
    /// Completes when all that completed before, on all volumes, survives a power cut at the partner.
    fn flush(&self) -> Sending;
    /// Aborts: operations under way fail soon.
    fn close(&self);
}

/// An operation on its way.
pub type Sending = LocalBoxFuture<'static, Result<(), LinkError>>;

/// Why something did not reach the partner.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LinkError {
    /// No connection, or it broke.
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
