//! Copies the changes piece by piece, several pieces at a time, at a limited rate, with durable checkpoints for a
//! restart.

use super::{
    Answer, Commit, Group, Link, LinkError, Point, ReplicaError, Store, state::Cursor, store::ReplicaExtent,
};
use crate::{disk::Disk, runtime::Runtime};
use bytes::BytesMut;
use futures::{StreamExt, TryStreamExt, stream};
use linerate_io::Nanos;
use serde::{Deserialize, Serialize};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

/// Options of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopyOptions {
    /// Limit of the rate; 0: none.
    pub rate_bytes_per_s: u64,
    /// Longest piece that is read and sent at a time.
    pub piece_bytes: u32,
    /// Pieces in progress at a time: with `piece_bytes`, this is the memory that a copy takes.
    pub window: usize,
    /// After so many bytes the position is made durable, at both ends.
    pub checkpoint_bytes: u64,
}

impl Default for CopyOptions {
    fn default() -> Self {
        const MIB: u32 = 1 << 20;
        Self { rate_bytes_per_s: 0, piece_bytes: MIB / 4, window: 8, checkpoint_bytes: u64::from(32 * MIB) }
    }
}

/// The progress of a copy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Progress {
    /// The bytes to copy in this transfer.
    pub total_bytes: u64,
    /// How many of them have reached the partner, in this attempt and in earlier ones that are still valid.
    pub done_bytes: u64,
    /// How many of them this attempt sent.
    pub sent_bytes: u64,
    /// The time that this attempt has taken.
    pub elapsed_s: f64,
    /// Whether it runs.
    pub is_running: bool,
    /// The message for the partner, once all data has arrived.
    pub commit: Option<Commit>,
    /// Why it failed.
    pub error: Option<String>,
}

/// One attempt at a transfer.
pub(super) struct Copying {
    link: Rc<dyn Link>,
    options: CopyOptions,
    began: Nanos,
    ended: Cell<Option<Nanos>>,
    is_stopped: Cell<bool>,
    /// When the next piece may be sent.
    next: Cell<Nanos>,
    total_bytes: Cell<u64>,
    resumed_bytes: Cell<u64>,
    sent_bytes: Cell<u64>,
    commit: RefCell<Option<Commit>>,
    error: RefCell<Option<String>>,
}

/// A piece of a volume's changes.
#[derive(Clone, Copy, Debug)]
struct Piece {
    volume: usize,
    extent: ReplicaExtent,
}

impl Piece {
    /// The position behind it.
    fn end(&self) -> Cursor {
        Cursor { volume: self.volume, offset_bytes: self.extent.offset_bytes + self.extent.len_bytes }
    }
}

impl<S: Store + 'static> Group<S> {
    pub(super) async fn copy_all(&self, answer: &Answer, copying: &Copying) -> Result<(), ReplicaError> {
        let mut views = Vec::new();
        let mut pieces = Vec::new();
        for (volume, answered) in answer.volumes.iter().enumerate() {
            views.push(self.store.view(&answered.name, &answer.point)?);
            let changed = self.store.changed(&answered.name, answered.base.as_deref(), &answer.point).await?;
            // Without a base, the partner's volume is full of zeros.
            let worth = changed.into_iter().filter(|extent| !extent.is_hole || answered.base.is_some());
            pieces.extend(worth.flat_map(|extent| split(volume, extent, copying.options.piece_bytes)));
        }
        let cursor = self.state().outgoing.as_ref().map(|outgoing| outgoing.cursor).unwrap_or_default();
        copying.total_bytes.set(pieces.iter().map(|piece| piece.extent.len_bytes).sum());
        let first = pieces.partition_point(|piece| piece.end() <= cursor);
        copying.resumed_bytes.set(pieces[..first].iter().map(|piece| piece.extent.len_bytes).sum());
        for batch in batches(&pieces[first..], copying.options.checkpoint_bytes) {
            stream::iter(batch)
                .map(|piece| copying.send(&self.runtime, &self.name, &*views[piece.volume], *piece))
                .buffer_unordered(copying.options.window.max(1))
                .try_collect::<()>()
                .await?;
            copying.link.flush().await?;
            let cursor = batch.last().map(Piece::end).unwrap_or_default();
            self.update_outgoing(|outgoing| outgoing.cursor = cursor).await?;
        }
        // Without a piece there was no flush: the data of an earlier attempt was flushed by that attempt.
        Ok(())
    }

    /// The point that is being sent to the partner.
    pub fn outgoing_point(&self) -> Option<Point> {
        self.state().outgoing.as_ref().map(|outgoing| outgoing.point.clone())
    }

    /// The progress of the running or last copy; None if there was none since the start.
    pub fn progress(&self) -> Option<Progress> {
        self.copying.borrow().as_ref().map(|copying| copying.progress(self.runtime.now()))
    }
}

/// Splits an extent into pieces that end at multiples of `piece_bytes` of the volume.
fn split(volume: usize, extent: ReplicaExtent, piece_bytes: u32) -> impl Iterator<Item = Piece> {
    let piece_bytes = u64::from(piece_bytes.max(4096));
    let end = extent.offset_bytes + extent.len_bytes;
    let mut at = extent.offset_bytes;
    std::iter::from_fn(move || {
        let offset_bytes = at;
        let next = if extent.is_hole { end } else { (at / piece_bytes + 1) * piece_bytes };
        at = next.min(end);
        let extent = ReplicaExtent { offset_bytes, len_bytes: at - offset_bytes, is_hole: extent.is_hole };
        (offset_bytes < end).then_some(Piece { volume, extent })
    })
}

/// Runs of pieces of about `bytes` each.
fn batches(mut pieces: &[Piece], bytes: u64) -> impl Iterator<Item = &[Piece]> {
    std::iter::from_fn(move || {
        let mut sum = 0;
        let fits = |piece: &Piece| {
            let is_room = sum < bytes;
            sum += piece.extent.len_bytes;
            is_room
        };
        let len = pieces.iter().copied().take_while(fits).count().max(1).min(pieces.len());
        let (batch, rest) = pieces.split_at(len);
        pieces = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

impl Copying {
    pub(super) fn new(link: Rc<dyn Link>, options: CopyOptions, now: Nanos) -> Self {
        Self {
            link,
            options,
            began: now,
            ended: Cell::new(None),
            is_stopped: Cell::new(false),
            next: Cell::new(now),
            total_bytes: Cell::new(0),
            resumed_bytes: Cell::new(0),
            sent_bytes: Cell::new(0),
            commit: RefCell::default(),
            error: RefCell::default(),
        }
    }

    async fn send(
        &self,
        runtime: &Runtime,
        group: &str,
        view: &dyn Disk,
        piece: Piece,
    ) -> Result<(), ReplicaError> {
        let ReplicaExtent { offset_bytes, len_bytes, is_hole } = piece.extent;
        if !is_hole {
            self.wait_turn(runtime, len_bytes).await;
        }
        if self.is_stopped.get() {
            return Err(ReplicaError::Stopped(group.to_owned()));
        }
        if is_hole {
            self.link.discard(piece.volume, offset_bytes, len_bytes).await?;
        } else {
            let data = view.read(offset_bytes, BytesMut::zeroed(len_bytes as usize)).await?;
            self.link.write(piece.volume, offset_bytes, data.freeze()).await?;
        }
        self.sent_bytes.set(self.sent_bytes.get() + len_bytes);
        Ok(())
    }

    /// Sleeps until `len_bytes` more may be sent.
    async fn wait_turn(&self, runtime: &Runtime, len_bytes: u64) {
        /// Interval at which it checks whether the copy was stopped.
        const NAP: Nanos = 100_000_000;
        let rate = self.options.rate_bytes_per_s;
        if rate == 0 {
            return;
        }
        let at = self.next.get().max(runtime.now());
        let cost = u128::from(len_bytes) * 1_000_000_000 / u128::from(rate);
        self.next.set(at.saturating_add(cost as Nanos));
        while runtime.now() < at && !self.is_stopped.get() {
            runtime.sleep_until(at.min(runtime.now() + NAP)).await;
        }
    }

    pub(super) fn stop(&self) {
        if self.ended.get().is_none() {
            self.is_stopped.set(true);
            self.link.close();
        }
    }

    pub(super) fn end(&self, result: &Result<Commit, ReplicaError>, now: Nanos) {
        self.ended.set(Some(now));
        *self.commit.borrow_mut() = result.as_ref().ok().cloned();
        *self.error.borrow_mut() = result.as_ref().err().map(ToString::to_string);
        self.link.close();
    }

    /// If an operation failed because the link was closed, the reason is the stop.
    pub(super) fn name_stop(&self, group: &str, error: ReplicaError) -> ReplicaError {
        match error {
            ReplicaError::Link(LinkError::Broken(_)) if self.is_stopped.get() => {
                ReplicaError::Stopped(group.to_owned())
            }
            other => other,
        }
    }

    fn progress(&self, now: Nanos) -> Progress {
        let sent_bytes = self.sent_bytes.get();
        Progress {
            total_bytes: self.total_bytes.get(),
            done_bytes: self.resumed_bytes.get() + sent_bytes,
            sent_bytes,
            elapsed_s: (self.ended.get().unwrap_or(now) - self.began) as f64 / 1e9,
            is_running: self.ended.get().is_none(),
            commit: self.commit.borrow().clone(),
            error: self.error.borrow().clone(),
        }
    }
}
