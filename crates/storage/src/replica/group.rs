//! A group of volumes that are copied as of one instant: the parts that both sides share.

use super::{
    Fence, Pair, Point, ReplicaError, Role, Store,
    copy::Copying,
    state::{GroupState, Incoming, Outgoing},
};
use crate::runtime::Runtime;
use futures::lock::Mutex;
use std::{
    cell::{Ref, RefCell},
    fmt,
    rc::Rc,
};

/// One group on one array, primary or replica.
///
/// The steps ([`Group::prepare`] and so on) run one at a time. Each may be repeated, and a crash may interrupt each:
/// the next one reads the progress from the store.
pub struct Group<S> {
    pub(super) name: String,
    pub(super) store: Rc<S>,
    pub(super) runtime: Runtime,
    /// Source of unique names.
    pub(super) random: Rc<dyn Fn() -> u64>,
    /// The record in the table. Only [`Group::update`] changes it.
    state: RefCell<GroupState>,
    saving: Mutex<()>,
    /// Each step holds it.
    pub(super) turn: Mutex<()>,
    /// Held while hosts are admitted or excluded together with a change of role.
    pub(super) hosts: Mutex<()>,
    /// Held during a copy.
    pub(super) copy_turn: Mutex<()>,
    pub(super) copying: RefCell<Option<Rc<Copying>>>,
    pub(super) fences: RefCell<Vec<Rc<Fence>>>,
}

impl<S: Store + 'static> Group<S> {
    pub(super) fn new(
        name: &str,
        store: &Rc<S>,
        runtime: &Runtime,
        random: &Rc<dyn Fn() -> u64>,
        state: GroupState,
    ) -> Self {
        Self {
            name: name.to_owned(),
            store: Rc::clone(store),
            runtime: runtime.clone(),
            random: Rc::clone(random),
            state: RefCell::new(state),
            saving: Mutex::default(),
            turn: Mutex::default(),
            hosts: Mutex::default(),
            copy_turn: Mutex::default(),
            copying: RefCell::default(),
            fences: RefCell::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which side writes its volumes.
    pub fn role(&self) -> Role {
        self.state.borrow().role.clone()
    }

    /// Its volumes.
    pub fn volumes(&self) -> Vec<String> {
        self.state.borrow().volumes.clone()
    }

    /// Its random id, made with the group, the same on both arrays.
    pub fn id(&self) -> String {
        self.state.borrow().id.clone()
    }

    /// The arrays that exchange it.
    pub fn pair(&self) -> Pair {
        self.state.borrow().pair.clone()
    }

    /// Refuses other arrays than the two of the group.
    pub fn check_pair(&self, pair: &Pair) -> Result<(), ReplicaError> {
        check_pair(pair)?;
        let known = self.pair();
        let group = self.name.clone();
        if known.here != pair.here {
            return Err(ReplicaError::Renamed { group, known: known.here, now: pair.here.clone() });
        }
        if known.partner != pair.partner {
            return Err(ReplicaError::OtherPartner {
                group,
                known: known.partner,
                now: pair.partner.clone(),
            });
        }
        Ok(())
    }

    /// Points that both arrays have had and that still exist here, oldest first.
    pub fn points(&self) -> Vec<Point> {
        let state = self.state.borrow();
        state.points.iter().filter(|point| self.has_point(&point.name)).cloned().collect()
    }

    pub(super) fn state(&self) -> Ref<'_, GroupState> {
        self.state.borrow()
    }

    /// Changes the record. The change is in force once it is in the table; a failure before that undoes it.
    pub(super) async fn update(&self, change: impl FnOnce(&mut GroupState)) -> Result<(), ReplicaError> {
        let _order = self.saving.lock().await;
        let mut state = self.state.borrow().clone();
        change(&mut state);
        let record = serde_json::to_vec(&state).map_err(|error| self.unreadable(&error))?;
        self.store.put(&key(&self.name), Some(record)).await?;
        *self.state.borrow_mut() = state;
        Ok(())
    }

    pub(super) async fn update_outgoing(
        &self,
        change: impl FnOnce(&mut Outgoing),
    ) -> Result<(), ReplicaError> {
        self.update(|state| {
            if let Some(outgoing) = &mut state.outgoing {
                change(outgoing);
            }
        })
        .await
    }

    fn unreadable(&self, error: &serde_json::Error) -> ReplicaError {
        ReplicaError::Record { group: self.name.clone(), reason: error.to_string() }
    }

    /// All volumes have the point.
    pub(super) fn has_point(&self, point: &str) -> bool {
        let state = self.state.borrow();
        state.volumes.iter().all(|volume| self.has_snapshot(volume, point))
    }

    pub(super) fn has_snapshot(&self, volume: &str, point: &str) -> bool {
        self.store.snapshots(volume).iter().any(|name| name == point)
    }

    /// A volume's points, oldest first.
    pub(super) fn points_of(&self, volume: &str) -> Vec<String> {
        let mut names = self.store.snapshots(volume);
        names.retain(|name| is_point(name));
        names
    }

    /// Deletes points that are no longer needed.
    pub(super) async fn prune(&self) -> Result<(), ReplicaError> {
        let (volumes, needed) = {
            let state = self.state.borrow();
            let mut needed: Vec<String> = state.points.iter().map(|point| point.name.clone()).collect();
            needed.extend(state.outgoing.as_ref().map(|outgoing| outgoing.point.name.clone()));
            needed.extend(state.incoming.as_ref().into_iter().flat_map(names));
            (state.volumes.clone(), needed)
        };
        for volume in volumes {
            for point in self.points_of(&volume).into_iter().filter(|point| !needed.contains(point)) {
                self.store.delete_snapshot(&volume, &point).await?;
            }
        }
        Ok(())
    }

    pub(super) fn stale(&self, point: &str) -> ReplicaError {
        ReplicaError::Stale { group: self.name.clone(), point: point.to_owned() }
    }
}

/// The points that an incoming transfer needs.
fn names(incoming: &Incoming) -> impl Iterator<Item = String> {
    let bases = incoming.volumes.iter().filter_map(|volume| volume.base.clone());
    bases.chain([incoming.point.name.clone()])
}

/// Refuses a partner that is this array itself.
pub(super) fn check_pair(pair: &Pair) -> Result<(), ReplicaError> {
    if pair.here == pair.partner {
        return Err(ReplicaError::Itself(pair.here.clone()));
    }
    Ok(())
}

/// Prefix of the keys of all groups in the store's table.
pub(super) const KEYS: &str = "replica/";

pub(super) fn key(group: &str) -> String {
    format!("{KEYS}{group}")
}

/// Prefix of the names of points.
const POINT: &str = "replica-";

/// A name for a new point.
pub(super) fn new_point(random: u64) -> String {
    format!("{POINT}{random:016x}")
}

/// Whether a snapshot is a point, by its name.
fn is_point(snapshot: &str) -> bool {
    snapshot.strip_prefix(POINT).is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

impl<S> fmt::Debug for Group<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("name", &self.name).field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{is_point, new_point};

    #[test]
    fn points_are_told_from_snapshots_that_owners_take() {
        let point = new_point(7);
        assert_eq!(point, "replica-0000000000000007");
        assert!(is_point(&point));
        assert!(!is_point("replica-yesterday") && !is_point("replica-0123456789ABCDEF"));
    }
}
