//! The partner's side of a transfer: restores the volumes to the state from which the source starts, lets the source
//! write, and makes a point of the result.

use super::{
    Answer, AnsweredVolume, Commit, Fence, Group, Offer, Pair, Point, ReplicaError, Role, Store,
    state::{Incoming, Token},
};
use crate::disk::Disk;
use std::rc::Rc;

/// A prepared transfer at the partner.
#[derive(Debug)]
pub struct Begun {
    /// For the source.
    pub answer: Answer,
    /// The disks to which the source writes, in the order of the answer. The fences of earlier transfers are closed.
    pub fences: Vec<Rc<Fence>>,
}

impl<S: Store + 'static> Group<S> {
    /// Prepares to receive a point. The writes of a transfer that was not committed are undone, unless this is the same
    /// transfer and its source can continue.
    pub async fn begin(&self, offer: &Offer, pair: &Pair) -> Result<Begun, ReplicaError> {
        let _turn = self.turn.lock().await;
        self.check_pair(pair)?;
        check_offer(offer, pair)?;
        if self.id() != offer.id {
            return Err(ReplicaError::OtherGroup(self.name.clone()));
        }
        match self.role() {
            Role::Replica => {}
            Role::Promoting { .. } => return Err(ReplicaError::Promoting(self.name.clone())),
            Role::Primary => return Err(ReplicaError::IsPrimary(self.name.clone())),
        }
        self.check_members(offer)?;
        self.give_way().await?;
        self.close_gates().await;
        self.finish_commit().await?;
        if self.has_point(&offer.point.name) {
            return Ok(Begun { answer: complete(offer), fences: Vec::new() });
        }
        let incoming = match self.resumable(offer) {
            Some(incoming) => incoming,
            None => self.start_over(offer).await?,
        };
        let fences = self.open_gates(&incoming)?;
        let answer = Answer {
            group: self.name.clone(),
            point: incoming.point.name,
            incarnation: incoming.incarnation.unwrap_or_default(),
            is_complete: false,
            volumes: incoming.volumes,
        };
        Ok(Begun { answer, fences })
    }

    /// The partner is primary: a token that this array still has from before a forced promotion of the partner is void.
    /// Without a token, the volumes are known to be a copy.
    async fn give_way(&self) -> Result<(), ReplicaError> {
        if self.state().token == Token::Absent {
            return Ok(());
        }
        self.update(|state| state.become_role(Role::Replica, Token::Absent)).await
    }

    fn check_members(&self, offer: &Offer) -> Result<(), ReplicaError> {
        let mine = self.volumes();
        let is_same =
            mine.len() == offer.volumes.len() && offer.volumes.iter().zip(&mine).all(|(a, b)| a.name == *b);
        if is_same {
            return Ok(());
        }
        Err(ReplicaError::Membership { group: self.name.clone(), volumes: mine.join(", ") })
    }

    /// The current transfer, if it is this one and the source still has its base.
    fn resumable(&self, offer: &Offer) -> Option<Incoming> {
        let incoming = self.state().incoming.clone()?;
        incoming.incarnation?;
        let is_same = incoming.point.name == offer.point.name
            && incoming.volumes.iter().zip(&offer.volumes).all(|(mine, theirs)| {
                let has_base = mine.base.as_ref().is_none_or(|base| theirs.bases.contains(base));
                let volume = self.store.volume(&mine.name);
                let is_there = volume.is_some_and(|volume| volume.size_bytes() == mine.size_bytes);
                has_base && is_there && mine.size_bytes == theirs.size_bytes
            });
        is_same.then_some(incoming)
    }

    async fn start_over(&self, offer: &Offer) -> Result<Incoming, ReplicaError> {
        let volumes = offer.volumes.iter().map(|offered| {
            let mine = self.points_of(&offered.name);
            let base = offered.bases.iter().rev().find(|base| mine.contains(base)).cloned();
            AnsweredVolume { name: offered.name.clone(), base, size_bytes: offered.size_bytes }
        });
        let mut incoming =
            Incoming { point: offer.point.clone(), volumes: volumes.collect(), incarnation: None };
        // From here until the end of the preparation no earlier attempt is valid.
        self.update(|state| {
            state.incoming = Some(incoming.clone());
            state.keep = offer.keep.max(1);
        })
        .await?;
        for volume in &incoming.volumes {
            self.reset(volume).await?;
        }
        incoming.incarnation = Some((self.random)());
        self.update(|state| state.incoming = Some(incoming.clone())).await?;
        Ok(incoming)
    }

    /// Brings a volume to the state that the answer states.
    async fn reset(&self, answered: &AnsweredVolume) -> Result<(), ReplicaError> {
        let AnsweredVolume { name, base, size_bytes } = answered;
        let Some(volume) = self.store.volume(name) else {
            return Ok(self.store.create_volume(name, *size_bytes).await?);
        };
        if let Some(base) = base {
            self.store.restore(name, base).await?;
        }
        if volume.size_bytes() != *size_bytes {
            self.store.resize(name, *size_bytes).await?;
        }
        if base.is_none() {
            let volume = self.volume(name)?;
            volume.discard(0, *size_bytes).await?;
            volume.flush().await?;
        }
        Ok(())
    }

    fn open_gates(&self, incoming: &Incoming) -> Result<Vec<Rc<Fence>>, ReplicaError> {
        let fences = incoming.volumes.iter().map(|answered| {
            let volume = self.volume(&answered.name)?;
            Ok(Rc::new(Fence::new(volume, self.runtime.clone())))
        });
        let fences: Vec<_> = fences.collect::<Result<_, ReplicaError>>()?;
        self.fences.borrow_mut().clone_from(&fences);
        Ok(fences)
    }

    pub(super) async fn close_gates(&self) {
        let fences = self.fences.take();
        for fence in fences {
            fence.close().await;
        }
    }

    /// All data has arrived: make a point, for all volumes or for none.
    pub async fn commit(&self, commit: &Commit) -> Result<(), ReplicaError> {
        let _turn = self.turn.lock().await;
        if self.has_point(&commit.point) {
            return self.finish_commit().await;
        }
        let incoming = self.state().incoming.clone().filter(|incoming| {
            incoming.point.name == commit.point && incoming.incarnation == Some(commit.incarnation)
        });
        let point = incoming.ok_or_else(|| self.stale(&commit.point))?.point;
        self.close_gates().await;
        let volumes = self.volumes();
        for name in &volumes {
            self.volume(name)?.flush().await?;
        }
        // At this instant the point exists.
        self.store.snapshot(&volumes, &point.name, point.at_s).await?;
        self.finish_commit().await
    }

    /// Records a point whose snapshots exist, and deletes old points.
    async fn finish_commit(&self) -> Result<(), ReplicaError> {
        let incoming = self.state().incoming.clone();
        let Some(incoming) = incoming.filter(|incoming| self.has_point(&incoming.point.name)) else {
            return Ok(());
        };
        self.update(|state| {
            state.add_point(incoming.point);
            state.incoming = None;
        })
        .await?;
        self.prune().await
    }

    /// The point that is being received from the partner.
    pub fn incoming_point(&self) -> Option<Point> {
        self.state().incoming.as_ref().map(|incoming| incoming.point.clone())
    }

    pub(super) fn volume(&self, name: &str) -> Result<Rc<dyn Disk>, ReplicaError> {
        let gone = || ReplicaError::Invalid(format!("group \"{}\": volume \"{name}\" is gone", self.name));
        self.store.volume(name).ok_or_else(gone)
    }
}

/// Refuses an offer that another array made, or that is for another array.
pub(super) fn check_offer(offer: &Offer, pair: &Pair) -> Result<(), ReplicaError> {
    if offer.from == pair.partner && offer.to == pair.here {
        return Ok(());
    }
    let (from, to) = (offer.from.clone(), offer.to.clone());
    Err(ReplicaError::NotMeant { group: offer.group.clone(), from, to })
}

/// The answer when nothing must be copied.
fn complete(offer: &Offer) -> Answer {
    let volumes = offer.volumes.iter().map(|offered| AnsweredVolume {
        name: offered.name.clone(),
        base: Some(offer.point.name.clone()),
        size_bytes: offered.size_bytes,
    });
    Answer {
        group: offer.group.clone(),
        point: offer.point.name.clone(),
        incarnation: 0,
        is_complete: true,
        volumes: volumes.collect(),
    }
}
