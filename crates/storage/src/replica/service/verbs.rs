//! The commands. The caller that drives a transfer sends `replica_prepare`, `replica_copy`, `replica_status` and
//! `replica_confirm` to the source and `replica_begin` and `replica_commit` to the partner; each reply is an input of
//! the next command. `roles.rs` has the verbs about roles.

use super::{Fields, Service, describe, fields};
use crate::{
    pool::Pool,
    replica::{Answer, Commit, CopyOptions, Group, Offer, Pair, ReplicaError, Role},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{fmt, rc::Rc};

/// The partner's target and LUNs, in the order of the answer, and the secrets that both ends prove at login. `Debug`
/// does not show the secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Its iSCSI target, which exists for one transfer.
    pub target: String,
    /// Logical unit numbers.
    pub luns: Vec<u16>,
    /// Mutual CHAP, made for this transfer.
    pub login: Login,
}

/// The CHAP secrets of one transfer.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The secret that the source proves.
    pub secret: String,
    /// The secret that the partner's target proves: it shows that it is the array that has answered.
    pub target_secret: String,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access({}, {:?})", self.target, self.luns)
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

/// How to reach the partner's target.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// `host:port`.
    pub portal: String,
}

/// `replica_prepare`: takes a point, or finds the current one. Reply: the [`Offer`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prepare {
    group: String,
    /// The arrays that exchange the group; checked if it is known.
    pair: Pair,
    /// The group's volumes; optional once the group exists.
    #[serde(default)]
    volumes: Vec<String>,
    #[serde(default = "one")]
    keep: usize,
    /// Excludes hosts before a new point is taken, so that it has all their writes. The next `replica_prepare` without
    /// it, or `replica_stop`, admits them again.
    #[serde(default)]
    last: bool,
}

fn one() -> usize {
    1
}

/// `replica_begin`: the partner prepares. Reply: `answer` ([`Answer`]) and `access` ([`Access`]).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    offer: Offer,
    pair: Pair,
    /// The pool in which a new group's volumes are made; None: the only pool.
    #[serde(default)]
    pool: Option<String>,
}

/// `replica_copy`: begins to copy, in the background; `replica_status` shows the progress. Reply: nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Copy {
    answer: Answer,
    access: Access,
    link: LinkSpec,
    #[serde(default)]
    options: CopyOptions,
}

/// `replica_commit` at the partner. Reply: nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seal {
    commit: Commit,
    pair: Pair,
}

/// `replica_confirm` at the source. Reply: nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Confirm {
    commit: Commit,
}

/// Verbs that name only a group.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    group: String,
}

/// Verbs that a partner may use.
const PARTNER_VERBS: [&str; 4] = ["replica_begin", "replica_commit", "replica_asked", "replica_pass"];

impl Service {
    pub(super) async fn carry_out(&self, verb: &str, mut fields: Fields) -> Result<Fields, ReplicaError> {
        if let Some(name) = fields.remove("partner")
            && !PARTNER_VERBS.contains(&verb)
        {
            return Err(ReplicaError::Invalid(format!("partner {name} may not ask for {verb}")));
        }
        match verb {
            "replica_prepare" => self.prepare(read(fields)?).await,
            "replica_begin" => {
                let Begin { offer, pair, pool } = read(fields)?;
                self.begin(&offer, &pair, pool.as_deref()).await
            }
            "replica_copy" => self.copy(read(fields)?),
            "replica_commit" => {
                let Seal { commit, pair } = read(fields)?;
                let group = self.group(&commit.group)?;
                group.check_pair(&pair)?;
                self.surroundings.withdraw(&commit.group).await;
                done(group.commit(&commit).await)
            }
            "replica_confirm" => {
                let Confirm { commit } = read(fields)?;
                done(self.group(&commit.group)?.confirm(&commit).await)
            }
            "replica_status" => Ok(describe(&*self.named(fields)?)),
            "replica_stop" => {
                let group = self.named(fields)?;
                group.stop().await;
                self.let_in(&group).await;
                Ok(Fields::new())
            }
            other => self.change_roles(other, fields).await,
        }
    }

    pub(super) fn named(&self, fields: Fields) -> Result<Rc<Group<Pool>>, ReplicaError> {
        let Named { group } = read(fields)?;
        self.group(&group)
    }

    async fn prepare(
        &self,
        Prepare { group, pair, volumes, keep, last }: Prepare,
    ) -> Result<Fields, ReplicaError> {
        let group = match self.group(&group) {
            Ok(known) if volumes.is_empty() => known,
            _ => self.replicator(&group, self.pool_of(&volumes))?.primary(&group, &volumes, &pair).await?,
        };
        group.check_pair(&pair)?;
        let _order = group.hosts.lock().await;
        if group.role() == Role::Primary {
            self.surroundings.admit(&group.volumes(), !last).await;
        }
        if last {
            group.abandon().await?;
        }
        write(&group.prepare(self.surroundings.now_s(), keep).await?)
    }

    fn copy(&self, Copy { answer, access, link, options }: Copy) -> Result<Fields, ReplicaError> {
        let group = self.group(&answer.group)?;
        if group.progress().is_some_and(|progress| progress.is_running) {
            return Err(ReplicaError::Busy(answer.group));
        }
        let link = self.surroundings.connect(&link, &access)?;
        // The copy has begun when this verb ends; the progress shows its result.
        drop(self.runtime.start(async move { group.copy(&answer, link, options).await }));
        Ok(Fields::new())
    }
}

pub(super) fn read<T: DeserializeOwned>(fields: Fields) -> Result<T, ReplicaError> {
    serde_json::from_value(Value::Object(fields)).map_err(|error| ReplicaError::Invalid(error.to_string()))
}

pub(super) fn write(value: &impl Serialize) -> Result<Fields, ReplicaError> {
    let value = serde_json::to_value(value).map_err(|error| ReplicaError::Invalid(error.to_string()))?;
    Ok(fields(&value))
}

pub(super) fn done(result: Result<(), ReplicaError>) -> Result<Fields, ReplicaError> {
    result.map(|()| fields(&json!({})))
}
