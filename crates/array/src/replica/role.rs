//! Who writes a group's volumes: promote, demote.

use super::{Group, Point, ReplicaError, Role, Store, state::GroupState};

impl<S: Store + 'static> Group<S> {
    /// Makes a replica primary: its volumes become what they were at `point`, or at the newest point there is, and belong
    /// to hosts from then on. What a transfer under way has written is taken back.
    pub async fn promote(&self, point: Option<&str>) -> Result<Point, ReplicaError> {
        let _turn = self.turn.lock().await;
        match self.role() {
            Role::Primary => return self.points().pop().ok_or_else(|| self.no_point()),
            // A promotion that was cut off ends at the point where it began to.
            Role::Promoting { .. } => {}
            Role::Replica => {
                self.close_gates().await;
                let point = self.choose(point)?.name;
                self.update(|state| state.role = Role::Promoting { point }).await?;
            }
        }
        self.finish_promotion().await
    }

    /// Ends a promotion that a crash cut off. Does nothing if there is none.
    pub async fn recover(&self) -> Result<(), ReplicaError> {
        let _turn = self.turn.lock().await;
        if matches!(self.role(), Role::Promoting { .. }) {
            self.finish_promotion().await?;
        }
        Ok(())
    }

    fn choose(&self, point: Option<&str>) -> Result<Point, ReplicaError> {
        let mut points = self.points();
        // A commit that was cut off right after its snapshots has made a point all the same.
        let incoming = self.state().incoming.as_ref().map(|incoming| incoming.point.clone());
        points.extend(incoming.filter(|point| self.has_point(&point.name)));
        let Some(name) = point else {
            return points.pop().ok_or_else(|| self.no_point());
        };
        let unknown = || ReplicaError::UnknownPoint { group: self.name.clone(), point: name.to_owned() };
        points.into_iter().find(|point| point.name == name).ok_or_else(unknown)
    }

    async fn finish_promotion(&self) -> Result<Point, ReplicaError> {
        let Role::Promoting { point } = self.role() else { return Err(self.no_point()) };
        let chosen = self.choose(Some(&point))?;
        for volume in self.volumes() {
            self.store.restore(&volume, &point).await?;
        }
        self.update(|state| {
            keep_incoming(state, &chosen);
            state.role = Role::Primary;
        })
        .await?;
        Ok(chosen)
    }

    /// Makes a primary a replica: hosts lose its volumes, and the other array's next transfer takes back what they wrote
    /// after the last common point.
    pub async fn demote(&self) -> Result<(), ReplicaError> {
        let _turn = self.turn.lock().await;
        match self.role() {
            Role::Replica => return Ok(()),
            Role::Promoting { .. } => return Err(ReplicaError::IsReplica(self.name.clone())),
            Role::Primary => self.stop().await,
        }
        self.update(|state| {
            state.role = Role::Replica;
            state.retire_outgoing();
        })
        .await
    }

    fn no_point(&self) -> ReplicaError {
        ReplicaError::NoPoint(self.name.clone())
    }
}

/// The transfer under way ends; if its point came to be, it stays.
fn keep_incoming(state: &mut GroupState, chosen: &Point) {
    if state.incoming.take().is_some_and(|incoming| incoming.point.name == chosen.name) {
        state.add_point(chosen.clone());
    }
}
