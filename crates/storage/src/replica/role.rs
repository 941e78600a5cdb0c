//! Which array writes a group's volumes: promote, demote, and the token that only one array has.
//!
//! # Never two primaries
//!
//! Without force, an array is primary only with the group's *token*. The token is made with the group, on its first
//! primary. It moves in two steps that the giver records:
//!
//! ```text
//! giver                                   taker
//!    <---- "I would like to be primary" (a claim: a random number) ----
//! give: no longer primary; token offered under this claim
//!    ---- "yours under this claim" ---------------------------------->
//!                                         promote: Promoting { claim }, hosts still wait
//!    <---- claim ------------------------------------------------------
//! pass: token passed under this claim
//!    ---- "it is passed" --------------------------------------------->
//!                                         take: primary
//! ```
//!
//! - Before `pass` the giver may offer the token under another claim or use it itself; the earlier claim is then
//!   refused.
//! - After `pass` the giver does not have it any more. Under the same claim `pass` repeats its answer, because it may
//!   get lost.
//! - A claim is made for one attempt. An array with the same identity that does not know the claim gets nothing.
//!
//! A replica that has a token, or has just passed it, still has the writes of hosts from the time when it was primary.
//! The first copy that it receives removes the token before it changes a volume (`receiver.rs`). So a primary that was
//! demoted by mistake can be promoted again without loss.
//!
//! Force does not remove a token: it makes a second one. The array that is demoted after that loses its own with the
//! first copy that it receives. Until then both arrays may have one. So an array with a token first asks the partner to
//! stand back. It is promoted only if neither role nor token has changed here since it asked (`seen`). If both arrays
//! ask at the same time, neither is promoted.

use super::{
    Group, Pair, Point, ReplicaError, Role, Store,
    state::{GroupState, Token},
};

/// How a replica becomes primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promotion {
    /// With this array's token, if nothing has changed since `seen`; the partner has stood back.
    Held {
        /// See [`Group::changes`].
        seen: u64,
    },
    /// With the partner's token: [`Group::take`] follows, once the partner has passed it.
    Claim {
        /// The claim under which it was offered.
        claim: String,
        /// The partner's newest point, which must exist here.
        point: Option<String>,
    },
    /// Without asking the partner.
    Force,
}

impl<S: Store + 'static> Group<S> {
    /// How often role or token have changed on this array.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// The state of the token, as far as this array knows: held, offered, passed or absent.
    pub fn token(&self) -> &'static str {
        match self.state().token {
            Token::Held => "held",
            Token::Offered(_) => "offered",
            Token::Passed(_) => "passed",
            Token::Absent => "absent",
        }
    }

    /// Whether this array has the token, so that the partner only has to stand back.
    pub fn has_token(&self) -> bool {
        matches!(self.state().token, Token::Held | Token::Offered(_))
    }

    /// Makes a replica primary, at once or by [`Group::take`]. Its volumes are restored to the chosen point, and the
    /// writes of a current transfer are undone. Volumes that no transfer has changed since hosts wrote them stay as
    /// they are. Returns the newest common point.
    pub async fn promote(&self, how: Promotion) -> Result<Option<Point>, ReplicaError> {
        let _turn = self.turn.lock().await;
        match (self.role(), how) {
            (Role::Primary, _) => Ok(self.points().pop()),
            (Role::Promoting { point, .. }, Promotion::Force) => {
                // The owner may have deleted it.
                let wanted = self.has_point(&point).then_some(point);
                self.promote_to(wanted.as_deref()).await.map(Some)
            }
            (Role::Promoting { .. }, _) => Err(ReplicaError::Promoting(self.name.clone())),
            (Role::Replica, Promotion::Force) if self.state().token == Token::Absent => {
                self.promote_to(None).await.map(Some)
            }
            (Role::Replica, Promotion::Force) => self.promote_untouched().await,
            (Role::Replica, Promotion::Held { seen }) => {
                if seen != self.changes() {
                    return Err(ReplicaError::Changed(self.name.clone()));
                }
                if !self.has_token() {
                    return Err(ReplicaError::NoToken(self.name.clone()));
                }
                self.promote_untouched().await
            }
            (Role::Replica, Promotion::Claim { claim, point }) => {
                self.close_gates().await;
                let chosen = self.choose(point.as_deref())?;
                let role = Role::Promoting { point: chosen.name.clone(), claim: Some(claim) };
                // A passed token is on neither array until it is taken.
                self.update(|state| state.become_role(role, Token::Absent)).await?;
                Ok(Some(chosen))
            }
        }
    }

    async fn promote_to(&self, point: Option<&str>) -> Result<Point, ReplicaError> {
        self.close_gates().await;
        let point = self.choose(point)?.name;
        let role = Role::Promoting { point, claim: None };
        self.update(|state| state.become_role(role, Token::Held)).await?;
        self.finish_promotion().await
    }

    async fn promote_untouched(&self) -> Result<Option<Point>, ReplicaError> {
        self.update(|state| state.become_role(Role::Primary, Token::Held)).await?;
        Ok(self.points().pop())
    }

    /// The partner has passed the token under this claim: this array is primary.
    pub async fn take(&self, claim: &str) -> Result<Point, ReplicaError> {
        let _turn = self.turn.lock().await;
        match self.role() {
            Role::Promoting { point, claim: Some(mine) } if mine == claim => {
                let role = Role::Promoting { point, claim: None };
                self.update(|state| state.become_role(role, Token::Held)).await?;
                self.finish_promotion().await
            }
            // It was taken before, and the answer was lost.
            Role::Promoting { claim: None, .. } => self.finish_promotion().await,
            _ => Err(ReplicaError::Changed(self.name.clone())),
        }
    }

    /// The partner has refused this claim: this array stays a replica.
    pub async fn drop_claim(&self, claim: &str) -> Result<(), ReplicaError> {
        let _turn = self.turn.lock().await;
        match self.role() {
            Role::Promoting { claim: Some(mine), .. } if mine == claim => self.become_replica().await,
            _ => Ok(()),
        }
    }

    /// The partner wants to be primary with its own token: earlier promotions on this array are cancelled.
    pub async fn stand_back(&self) -> Result<(), ReplicaError> {
        let _turn = self.turn.lock().await;
        match self.role() {
            Role::Primary => Err(ReplicaError::IsPrimary(self.name.clone())),
            Role::Promoting { .. } => Err(ReplicaError::Promoting(self.name.clone())),
            Role::Replica => self.update(|state| state.changes += 1).await,
        }
    }

    /// Offers the token to the partner under a claim; this makes a primary a replica. Returns the newest point that
    /// both arrays have. Error: there is no token here.
    pub async fn give(&self, claim: &str) -> Result<Option<Point>, ReplicaError> {
        let _turn = self.turn.lock().await;
        if matches!(self.role(), Role::Promoting { .. }) {
            return Err(ReplicaError::Promoting(self.name.clone()));
        }
        let token = self.state().token.clone();
        match token {
            Token::Held | Token::Offered(_) => {}
            Token::Passed(_) | Token::Absent => return Err(ReplicaError::NoToken(self.name.clone())),
        }
        if self.role() == Role::Primary {
            self.stop().await;
        }
        self.update(|state| {
            state.become_role(Role::Replica, Token::Offered(claim.to_owned()));
            state.retire_outgoing();
        })
        .await?;
        Ok(self.points().pop())
    }

    /// The partner takes the token that it was offered; returns whether it may. May be repeated.
    pub async fn pass(&self, claim: &str) -> Result<bool, ReplicaError> {
        let _turn = self.turn.lock().await;
        let token = self.state().token.clone();
        match token {
            Token::Passed(known) => Ok(known == claim),
            Token::Offered(known) if known == claim => {
                self.update(|state| state.become_role(Role::Replica, Token::Passed(known))).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Completes a promotion that a crash interrupted, unless the partner must be asked. Does nothing if there is none.
    pub async fn recover(&self) -> Result<(), ReplicaError> {
        let _turn = self.turn.lock().await;
        match self.role() {
            // Without its point it waits for the owner, and the array serves everything else.
            Role::Promoting { claim: None, point } if self.has_point(&point) => {
                self.finish_promotion().await.map(drop)
            }
            _ => Ok(()),
        }
    }

    fn choose(&self, point: Option<&str>) -> Result<Point, ReplicaError> {
        let mut points = self.points();
        // A commit that was interrupted directly after its snapshots has made a point nevertheless.
        let incoming = self.state().incoming.as_ref().map(|incoming| incoming.point.clone());
        points.extend(incoming.filter(|point| self.has_point(&point.name)));
        let Some(name) = point else {
            return points.pop().ok_or_else(|| self.no_point());
        };
        let unknown = || ReplicaError::UnknownPoint { group: self.name.clone(), point: name.to_owned() };
        points.into_iter().find(|point| point.name == name).ok_or_else(unknown)
    }

    async fn finish_promotion(&self) -> Result<Point, ReplicaError> {
        let Role::Promoting { point, .. } = self.role() else { return Err(self.no_point()) };
        let chosen = self.choose(Some(&point))?;
        for volume in self.volumes() {
            self.store.restore(&volume, &point).await?;
        }
        self.update(|state| {
            keep_incoming(state, &chosen);
            state.become_role(Role::Primary, Token::Held);
        })
        .await?;
        Ok(chosen)
    }

    /// Makes a primary a replica: hosts lose access, and the next transfer of the other array undoes their writes since
    /// the last common point. Also cancels a promotion that waits for the partner.
    pub async fn demote(&self) -> Result<(), ReplicaError> {
        let _turn = self.turn.lock().await;
        match self.role() {
            Role::Replica => Ok(()),
            Role::Promoting { claim: Some(_), .. } => self.become_replica().await,
            Role::Promoting { claim: None, .. } => Err(ReplicaError::Promoting(self.name.clone())),
            Role::Primary => {
                self.stop().await;
                self.update(|state| {
                    state.become_role(Role::Replica, Token::Held);
                    state.retire_outgoing();
                })
                .await
            }
        }
    }

    async fn become_replica(&self) -> Result<(), ReplicaError> {
        self.update(|state| state.become_role(Role::Replica, Token::Absent)).await
    }

    /// Changes the pair of arrays of the group: one of them has a new identity, or is a new array.
    pub async fn rejoin(&self, pair: Pair) -> Result<(), ReplicaError> {
        let _turn = self.turn.lock().await;
        super::group::check_pair(&pair)?;
        self.stop().await;
        self.close_gates().await;
        self.update(|state| state.pair = pair).await
    }

    fn no_point(&self) -> ReplicaError {
        ReplicaError::NoPoint(self.name.clone())
    }
}

/// Ends the current transfer; if its point was made, it stays.
fn keep_incoming(state: &mut GroupState, chosen: &Point) {
    if state.incoming.take().is_some_and(|incoming| incoming.point.name == chosen.name) {
        state.add_point(chosen.clone());
    }
}
