//! The replication interface for an array's owner, its partner and its status: verbs in JSON.
//!
//! Each pool has its own groups; the name of a group is unique on the array. `verbs.rs` has the verbs of transfers and
//! their keys, `roles.rs` the verbs that change the primary.

mod roles;
mod verbs;

pub use verbs::{Access, LinkSpec, Login};

use super::{Fence, Group, Link, Offer, Pair, ReplicaError, Replicator, Role};
use crate::{pool::Pool, runtime::Runtime};
use futures::future::LocalBoxFuture;
use serde_json::{Map, Value, json};
use std::{fmt, rc::Rc};

/// A verb's fields, or its reply.
pub type Fields = Map<String, Value>;

/// The services of the array that replication uses.
pub trait Surroundings {
    /// Exports fences to the partner, each under a name (serial number) that no volume had before. Earlier exports of
    /// this group are withdrawn first.
    fn show(
        &self,
        group: &str,
        fences: Vec<Rc<Fence>>,
    ) -> LocalBoxFuture<'static, Result<Access, ReplicaError>>;
    /// Withdraws the exports of a group.
    fn withdraw(&self, group: &str) -> LocalBoxFuture<'static, ()>;
    /// Admits hosts to volumes, or excludes them; when it completes, no operation of a host is in progress in them.
    fn admit(&self, volumes: &[String], hosts: bool) -> LocalBoxFuture<'static, ()>;
    /// Begins to connect to a partner. `volumes` and their sizes are those of the answer.
    fn connect(&self, spec: &LinkSpec, access: &Access) -> Result<Rc<dyn Link>, ReplicaError>;
    /// The time of day: seconds since 1970.
    fn now_s(&self) -> f64;
    /// Random numbers that no array has used before.
    fn random(&self) -> u64;
}

/// Replication on one array.
pub struct Service {
    runtime: Runtime,
    surroundings: Rc<dyn Surroundings>,
    pools: Vec<(String, Replicator<Pool>)>,
}

impl Service {
    /// Finds the groups of all pools, completes promotions that a crash interrupted, and excludes hosts from replicas.
    pub async fn open(
        runtime: Runtime,
        surroundings: Rc<dyn Surroundings>,
        pools: Vec<(String, Pool)>,
    ) -> Result<Rc<Self>, ReplicaError> {
        let mut replicators = Vec::new();
        for (name, pool) in pools {
            let source = Rc::clone(&surroundings);
            let random = move || source.random();
            let replicator = Replicator::open(Rc::new(pool), runtime.clone(), random)?;
            replicator.recover().await?;
            replicators.push((name, replicator));
        }
        let service = Rc::new(Self { runtime, surroundings, pools: replicators });
        for group in service.groups() {
            if group.role() != Role::Primary {
                service.surroundings.admit(&group.volumes(), false).await;
            }
        }
        Ok(service)
    }

    /// Whether hosts may use a volume.
    pub fn admits_hosts(&self, volume: &str) -> bool {
        self.group_of(volume).is_none_or(|group| group.role() == Role::Primary)
    }

    /// Whether there is a group of this name.
    pub fn has_group(&self, name: &str) -> bool {
        self.group(name).is_ok()
    }

    /// The group of a volume. The volume must not be deleted, and while it is a replica only its partner may change it.
    pub fn group_of(&self, volume: &str) -> Option<Rc<Group<Pool>>> {
        self.pools.iter().find_map(|(_, replicator)| replicator.group_of(volume))
    }

    /// The replication status of a volume; null if it has none.
    pub fn status(&self, volume: &str) -> Value {
        self.group_of(volume).map_or(Value::Null, |group| Value::Object(describe(&group)))
    }

    /// Executes a verb that begins with `replica_`. It runs to its end even if its caller stops waiting. `partner` in
    /// `fields` says that this partner asks, not the owner, and `pair` names the two arrays: a partner may receive and
    /// commit, and take its own token.
    pub fn manage(
        self: &Rc<Self>,
        verb: &str,
        fields: Fields,
    ) -> LocalBoxFuture<'static, Result<Fields, ReplicaError>> {
        let (service, verb) = (Rc::clone(self), verb.to_owned());
        self.runtime.start(async move { service.carry_out(&verb, fields).await })
    }

    fn groups(&self) -> Vec<Rc<Group<Pool>>> {
        self.pools.iter().flat_map(|(_, replicator)| replicator.groups()).collect()
    }

    fn group(&self, name: &str) -> Result<Rc<Group<Pool>>, ReplicaError> {
        let unknown = || ReplicaError::UnknownGroup(name.to_owned());
        self.groups().into_iter().find(|group| group.name() == name).ok_or_else(unknown)
    }

    /// The pool for a group: its current one, else the named one, else the only one.
    fn replicator(&self, group: &str, pool: Option<&str>) -> Result<&Replicator<Pool>, ReplicaError> {
        let holds = |replicator: &Replicator<Pool>| replicator.group(group).is_ok();
        if let Some((_, replicator)) = self.pools.iter().find(|(_, replicator)| holds(replicator)) {
            return Ok(replicator);
        }
        let names = || self.pools.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        match (pool, &self.pools[..]) {
            (None, [(_, only)]) => Ok(only),
            (None, _) => {
                Err(ReplicaError::Invalid(format!("say which pool is to hold it; there are: {}", names())))
            }
            (Some(pool), all) => {
                let found = all.iter().find(|(name, _)| name == pool).map(|(_, replicator)| replicator);
                let unknown = || format!("there is no pool \"{pool}\" here; there are: {}", names());
                found.ok_or_else(|| ReplicaError::Invalid(unknown()))
            }
        }
    }

    /// The pool of these volumes.
    fn pool_of(&self, volumes: &[String]) -> Option<&str> {
        use super::Store;
        let holds = |replicator: &Replicator<Pool>| {
            volumes.iter().all(|volume| Store::volume(replicator.store(), volume).is_some())
        };
        self.pools.iter().find(|(_, replicator)| holds(replicator)).map(|(name, _)| name.as_str())
    }

    async fn begin(&self, offer: &Offer, pair: &Pair, pool: Option<&str>) -> Result<Fields, ReplicaError> {
        let replicator = self.replicator(&offer.group, pool)?;
        self.check_names(offer)?;
        let begun = replicator.begin(offer, pair).await?;
        // This closes the fences of earlier exports.
        self.surroundings.withdraw(&offer.group).await;
        let group = self.group(&offer.group)?;
        let order = group.hosts.lock().await;
        if group.role() != Role::Primary {
            self.surroundings.admit(&group.volumes(), false).await;
        }
        drop(order);
        let access = if begun.answer.is_complete {
            Access::default()
        } else {
            self.surroundings.show(&offer.group, begun.fences).await?
        };
        Ok(fields(&json!({ "answer": begun.answer, "access": access })))
    }
}

impl Service {
    /// The volumes of a new group must be new, in every pool.
    fn check_names(&self, offer: &Offer) -> Result<(), ReplicaError> {
        use super::Store;
        if self.group(&offer.group).is_ok() {
            return Ok(());
        }
        for volume in &offer.volumes {
            if self
                .pools
                .iter()
                .any(|(_, replicator)| Store::volume(replicator.store(), &volume.name).is_some())
            {
                let (group, volume) = (offer.group.clone(), volume.name.clone());
                return Err(ReplicaError::NameTaken { group, volume });
            }
        }
        Ok(())
    }
}

/// The status of a group.
fn describe(group: &Group<Pool>) -> Fields {
    let (role, claim) = match group.role() {
        Role::Primary => ("primary", None),
        Role::Replica => ("replica", None),
        Role::Promoting { claim, .. } => ("promoting", claim),
    };
    fields(&json!({
        "group": group.name(),
        "role": role,
        "claim": claim,
        "id": group.id(),
        "pair": group.pair(),
        "token": group.token(),
        "changes": group.changes(),
        "volumes": group.volumes(),
        "points": group.points(),
        "outgoing": group.outgoing_point(),
        "incoming": group.incoming_point(),
        "progress": group.progress(),
    }))
}

/// A JSON object's fields.
fn fields(value: &Value) -> Fields {
    value.as_object().cloned().unwrap_or_default()
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("pools", &self.pools).finish_non_exhaustive()
    }
}
