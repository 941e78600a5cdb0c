//! All groups of one array.

use super::{
    Begun, Group, Offer, Pair, ReplicaError, Store,
    group::{KEYS, check_pair, key},
    receiver::check_offer,
    state::{FORMAT, GroupState},
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
    /// Finds the groups in the store. `random` must return numbers that no array has used before.
    pub fn open(
        store: Rc<S>,
        runtime: Runtime,
        random: impl Fn() -> u64 + 'static,
    ) -> Result<Self, ReplicaError> {
        let replicator = Self { store, runtime, random: Rc::new(random), groups: RefCell::default() };
        for key in replicator.store.keys(KEYS)? {
            let name = key.strip_prefix(KEYS).unwrap_or(&key).to_owned();
            let record = replicator.store.get(&key)?.unwrap_or_default();
            let unreadable = |reason: String| ReplicaError::Record { group: name.clone(), reason };
            let state = read_record(&record).map_err(unreadable)?;
            replicator.insert(&name, state);
        }
        Ok(replicator)
    }

    /// The store of the groups' volumes.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Completes promotions that a crash interrupted; call it before hosts are served.
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

    /// The primary group of these volumes: a new one, or the existing one.
    pub async fn primary(
        &self,
        name: &str,
        volumes: &[String],
        pair: &Pair,
    ) -> Result<Rc<Group<S>>, ReplicaError> {
        if let Ok(group) = self.group(name) {
            group.check_pair(pair)?;
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
        let id = format!("{:016x}{:016x}", (self.random)(), (self.random)());
        self.create(name, GroupState::primary(id, pair.clone(), volumes.to_vec())).await
    }

    /// Begins to receive: see [`Group::begin`]. A group that is offered for the first time is created.
    pub async fn begin(&self, offer: &Offer, pair: &Pair) -> Result<Begun, ReplicaError> {
        check_pair(pair)?;
        check_offer(offer, pair)?;
        let group = match self.group(&offer.group) {
            Ok(group) => group,
            Err(_) => self.receive_first(offer, pair).await?,
        };
        group.begin(offer, pair).await
    }

    async fn receive_first(&self, offer: &Offer, pair: &Pair) -> Result<Rc<Group<S>>, ReplicaError> {
        let volumes: Vec<String> = offer.volumes.iter().map(|volume| volume.name.clone()).collect();
        if let Some(volume) = volumes.iter().find(|volume| self.store.volume(volume).is_some()) {
            let (group, volume) = (offer.group.clone(), volume.clone());
            return Err(ReplicaError::NameTaken { group, volume });
        }
        let state = GroupState::replica(offer.id.clone(), pair.clone(), volumes, offer.keep);
        self.create(&offer.group, state).await
    }

    async fn create(&self, name: &str, state: GroupState) -> Result<Rc<Group<S>>, ReplicaError> {
        check_name(name)?;
        check_pair(&state.pair)?;
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

    /// Deletes a group: its volumes stay, its points are deleted. A replica must be promoted first, unless it is
    /// `forced`: then its volumes stay as the last transfer left them.
    pub async fn forget(&self, name: &str, forced: bool) -> Result<(), ReplicaError> {
        let group = self.group(name)?;
        let _turn = group.turn.lock().await;
        if !forced {
            group.must_be_primary()?;
        }
        group.stop().await;
        group.close_gates().await;
        group
            .update(|state| {
                state.points.clear();
                state.outgoing = None;
                state.incoming = None;
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

/// Decodes a record; the error names another version.
fn read_record(record: &[u8]) -> Result<GroupState, String> {
    let value: serde_json::Value = serde_json::from_slice(record).map_err(|error| error.to_string())?;
    let format = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or(1);
    if format != u64::from(FORMAT) {
        return Err(format!("it has format {format}, and this version reads {FORMAT}"));
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Longest name of a group, as of all names on an array.
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
