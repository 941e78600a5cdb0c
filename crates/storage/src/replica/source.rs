//! The primary's side of a transfer: take a point, offer it, copy it, and remember that the partner has it.

use super::{
    Answer, Commit, CopyOptions, Group, Link, Offer, OfferedVolume, Point, ReplicaError, Role, Store,
    copy::Copying,
    group::new_point,
    state::{Cursor, GroupState, Outgoing},
};
use std::rc::Rc;

impl<S: Store + 'static> Group<S> {
    /// Takes a point of all volumes at one instant, or finds the one that has not reached the partner yet.
    ///
    /// `at_s` is the time of day in seconds since 1970; the partner must keep `keep` points.
    pub async fn prepare(&self, at_s: f64, keep: usize) -> Result<Offer, ReplicaError> {
        let _turn = self.turn.lock().await;
        self.must_be_primary()?;
        let unfinished = self.state().outgoing.clone();
        let point = match unfinished {
            Some(outgoing) if outgoing.is_taken && self.has_point(&outgoing.point.name) => outgoing.point,
            _ => self.take_point(at_s).await?,
        };
        self.offer(point, keep.max(1))
    }

    /// Discards a point that has not reached the partner: the next one is new.
    pub async fn abandon(&self) -> Result<(), ReplicaError> {
        let _turn = self.turn.lock().await;
        self.must_be_primary()?;
        self.stop().await;
        self.update(GroupState::retire_outgoing).await
    }

    async fn take_point(&self, at_s: f64) -> Result<Point, ReplicaError> {
        self.stop().await;
        let point = Point { name: new_point((self.random)()), at_s };
        let outgoing = Outgoing {
            point: point.clone(),
            is_taken: false,
            incarnation: None,
            cursor: Cursor::default(),
            is_copied: false,
        };
        self.update(|state| state.outgoing = Some(outgoing)).await?;
        let volumes = self.volumes();
        self.store.snapshot(&volumes, &point.name, at_s).await?;
        self.update_outgoing(|outgoing| outgoing.is_taken = true).await?;
        // Delete the remains of an interrupted attempt.
        self.prune().await?;
        Ok(point)
    }

    fn offer(&self, point: Point, keep: usize) -> Result<Offer, ReplicaError> {
        let mut volumes = Vec::new();
        for name in self.volumes() {
            let size_bytes = self.store.view(&name, &point.name)?.size_bytes();
            let mut bases = self.points_of(&name);
            bases.retain(|base| *base != point.name);
            volumes.push(OfferedVolume { name, size_bytes, bases });
        }
        let (group, id) = (self.name.clone(), self.id());
        let super::Pair { here: from, partner: to } = self.pair();
        Ok(Offer { group, id, from, to, point, volumes, keep })
    }

    /// Copies the data that the partner lacks, from the position of the last attempt if that is still valid. Run it as
    /// a task: it must not be dropped before its end, see [`Group::stop`].
    pub async fn copy(
        &self,
        answer: &Answer,
        link: Rc<dyn Link>,
        options: CopyOptions,
    ) -> Result<Commit, ReplicaError> {
        let _copying = self.copy_turn.try_lock().ok_or_else(|| ReplicaError::Busy(self.name.clone()))?;
        let copying = Rc::new(Copying::new(link, options, self.runtime.now()));
        *self.copying.borrow_mut() = Some(Rc::clone(&copying));
        let result = self.copy_under(answer, &copying).await;
        let result = result.map_err(|error| copying.name_stop(&self.name, error)).map(|()| Commit {
            group: self.name.clone(),
            point: answer.point.clone(),
            incarnation: answer.incarnation,
        });
        copying.end(&result, self.runtime.now());
        result
    }

    async fn copy_under(&self, answer: &Answer, copying: &Copying) -> Result<(), ReplicaError> {
        self.must_be_primary()?;
        let outgoing = self.state().outgoing.clone().filter(|outgoing| outgoing.point.name == answer.point);
        let outgoing = outgoing.ok_or_else(|| self.stale(&answer.point))?;
        if outgoing.incarnation != Some(answer.incarnation) {
            // The partner prepared its volumes again: all data that was sent before is gone.
            self.update_outgoing(|outgoing| {
                outgoing.incarnation = Some(answer.incarnation);
                outgoing.cursor = Cursor::default();
                outgoing.is_copied = false;
            })
            .await?;
        }
        if !answer.is_complete {
            self.copy_all(answer, copying).await?;
        }
        self.update_outgoing(|outgoing| outgoing.is_copied = true).await
    }

    /// Stops a copy, and waits until no part of it is in progress on this side.
    pub async fn stop(&self) {
        let copying = self.copying.borrow().clone();
        if let Some(copying) = copying {
            copying.stop();
        }
        drop(self.copy_turn.lock().await);
    }

    /// The partner has the point: later transfers begin from it. The primary does not need the points before it.
    pub async fn confirm(&self, commit: &Commit) -> Result<(), ReplicaError> {
        let _turn = self.turn.lock().await;
        self.must_be_primary()?;
        let is_known = self.state().points.iter().any(|point| point.name == commit.point);
        if !is_known {
            let outgoing = self.state().outgoing.clone();
            let copied = outgoing.filter(|outgoing| {
                let is_same = outgoing.incarnation == Some(commit.incarnation);
                outgoing.point.name == commit.point && outgoing.is_copied && is_same
            });
            let point = copied.ok_or_else(|| self.stale(&commit.point))?.point;
            self.update(|state| {
                state.keep = 1;
                state.add_point(point);
                state.outgoing = None;
            })
            .await?;
        }
        self.prune().await
    }

    pub(super) fn must_be_primary(&self) -> Result<(), ReplicaError> {
        match self.role() {
            Role::Primary => Ok(()),
            Role::Replica | Role::Promoting { .. } => Err(ReplicaError::IsReplica(self.name.clone())),
        }
    }
}
