//! All groups of one array.

use super::{
    Begun, Group, Offer, ReplicaError, Role, Store,
    group::{KEYS, key},
    state::GroupState,
};
use crate::runtime::Runtime;
use std::{cell::RefCell, collections::BTreeMap, fmt, rc::Rc};

/// The replication groups of one store.
pub struct Replicator<S> {
    store: Rc<S>,
    runtime: Runtime,
    random: Rc<dyn Fn() -> u64>,
    groups: RefCell<BTreeMap<String, Rc<Group<S>>>>,
}

impl<S: Store + 'static> Replicator<S> {
    /// Finds the groups in the store. `random` must give numbers that no array has given before.
    pub fn open(
        store: Rc<S>,
        runtime: Runtime,
        random: impl Fn() -> u64 + 'static,
    ) -> Result<Self, ReplicaError> {
        let replicator = Self { store, runtime, random: Rc::new(random), groups: RefCell::default() };
        for key in replicator.store.keys(KEYS)? {
            let name = key.strip_prefix(KEYS).unwrap_or(&key).to_owned();
            let record = replicator.store.get(&key)?.unwrap_or_default();
            let unreadable = |error: serde_json::Error| ReplicaError::Record {
                group: name.clone(),
                reason: error.to_string(),
            };
            let state = serde_json::from_slice(&record).map_err(unreadable)?;
            replicator.insert(&name, state);
        }
        Ok(replicator)
    }

    /// What the groups' volumes are in.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Ends promotions that a crash cut off; do it before hosts are served.
    pub async fn recover(&self) -> Result<(), ReplicaError> {
        for group in self.groups() {
            group.recover().await?;
        }
        Ok(())
    }

    /// All groups, by name.
    pub fn groups(&self) -> Vec<Rc<Group<S>>> {
        self.groups.borrow().values().cloned().collect()
    }

    /// One group.
    pub fn group(&self, name: &str) -> Result<Rc<Group<S>>, ReplicaError> {
        let unknown = || ReplicaError::UnknownGroup(name.to_owned());
        self.groups.borrow().get(name).cloned().ok_or_else(unknown)
    }

    /// The group that a volume belongs to.
    pub fn group_of(&self, volume: &str) -> Option<Rc<Group<S>>> {
        self.groups().into_iter().find(|group| group.volumes().iter().any(|name| name == volume))
    }

    /// The primary group of these volumes: a new one, or the one that there is.
    pub async fn primary(&self, name: &str, volumes: &[String]) -> Result<Rc<Group<S>>, ReplicaError> {
        if let Ok(group) = self.group(name) {
            let mine = group.volumes();
            if mine != volumes {
                return Err(ReplicaError::Membership { group: name.into(), volumes: mine.join(", ") });
            }
            return Ok(group);
        }
        for volume in volumes {
            if self.store.volume(volume).is_none() {
                return Err(ReplicaError::Invalid(format!("there is no volume \"{volume}\" to replicate")));
            }
        }
        self.create(name, GroupState::new(Role::Primary, volumes.to_vec(), 1)).await
    }

    /// Begins to receive: see [`Group::begin`]. A group that is offered for the first time is made.
    pub async fn begin(&self, offer: &Offer) -> Result<Begun, ReplicaError> {
        let group = match self.group(&offer.group) {
            Ok(group) => group,
            Err(_) => self.receive_first(offer).await?,
        };
        group.begin(offer).await
    }

    async fn receive_first(&self, offer: &Offer) -> Result<Rc<Group<S>>, ReplicaError> {
        let volumes: Vec<String> = offer.volumes.iter().map(|volume| volume.name.clone()).collect();
        if let Some(volume) = volumes.iter().find(|volume| self.store.volume(volume).is_some()) {
            let (group, volume) = (offer.group.clone(), volume.clone());
            return Err(ReplicaError::NameTaken { group, volume });
        }
        self.create(&offer.group, GroupState::new(Role::Replica, volumes, offer.keep)).await
    }

    async fn create(&self, name: &str, state: GroupState) -> Result<Rc<Group<S>>, ReplicaError> {
        check_name(name)?;
        check_volumes(&state.volumes)?;
        for volume in &state.volumes {
            if let Some(other) = self.group_of(volume) {
                let other = other.name();
                let message = format!("volume \"{volume}\" belongs to replication group \"{other}\" already");
                return Err(ReplicaError::Invalid(message));
            }
        }
        let group = self.insert(name, state);
        if let Err(error) = group.update(|_| {}).await {
            self.groups.borrow_mut().remove(name);
            return Err(error);
        }
        Ok(group)
    }

    /// Forgets a group: its volumes stay, its points go. A replica has to be promoted first.
    pub async fn forget(&self, name: &str) -> Result<(), ReplicaError> {
        let group = self.group(name)?;
        let _turn = group.turn.lock().await;
        group.must_be_primary()?;
        group.stop().await;
        group
            .update(|state| {
                state.points.clear();
                state.outgoing = None;
            })
            .await?;
        group.prune().await?;
        self.store.put(&key(name), None).await?;
        self.groups.borrow_mut().remove(name);
        Ok(())
    }

    fn insert(&self, name: &str, state: GroupState) -> Rc<Group<S>> {
        let group = Rc::new(Group::new(name, &self.store, &self.runtime, &self.random, state));
        self.groups.borrow_mut().insert(name.to_owned(), Rc::clone(&group));
        group
    }
}

/// Longest name of a group, as of everything on an array.
const NAME_CHARS_MAX: usize = 48;

fn check_name(name: &str) -> Result<(), ReplicaError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(ReplicaError::Invalid(format!(
        "\"{name}\" cannot name a replication group; use up to {NAME_CHARS_MAX} letters, digits, '-', '_' and '.'"
    )))
}

fn check_volumes(volumes: &[String]) -> Result<(), ReplicaError> {
    let has_twice = volumes.iter().enumerate().any(|(at, volume)| volumes[..at].contains(volume));
    if volumes.is_empty() || has_twice {
        return Err(ReplicaError::Invalid("a replication group needs one or more volumes, each once".into()));
    }
    Ok(())
}

impl<S> fmt::Debug for Replicator<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replicator").field("groups", &self.groups).finish_non_exhaustive()
    }
}
