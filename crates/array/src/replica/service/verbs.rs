//! The verbs. Whoever drives a transfer sends `replica_prepare`, `replica_copy`, `replica_status` and `replica_confirm` to
//! the source and `replica_begin` and `replica_commit` to the partner; whatever one of them replies goes into the next.

use super::{Fields, Service, describe, fields};
use crate::{
    pool::Pool,
    replica::{Answer, Commit, CopyOptions, Group, Offer, ReplicaError, Role},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{fmt, rc::Rc};

/// Where the partner shows its volumes, in the order of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Its iSCSI target.
    pub target: String,
    /// Logical unit numbers.
    pub luns: Vec<u16>,
}

/// How to reach the partner's target. `Debug` does not show the secrets.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// `host:port`.
    pub portal: String,
    /// CHAP name and secret; none = the partner asks for none.
    #[serde(default)]
    pub chap_user: Option<String>,
    /// See `chap_user`.
    #[serde(default)]
    pub chap_secret: Option<String>,
}

impl fmt::Debug for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkSpec({}, CHAP {:?})", self.portal, self.chap_user)
    }
}

/// `replica_prepare`: takes a point, or finds the one under way. Reply: the [`Offer`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prepare {
    group: String,
    /// The group's volumes; may be left out once the group is known.
    #[serde(default)]
    volumes: Vec<String>,
    /// The partner's name: the only one that may send the group back.
    #[serde(default)]
    to: Option<String>,
    #[serde(default = "one")]
    keep: usize,
    /// Keeps hosts out before the point is taken, which is a new one then: nothing that hosts wrote is missing in it. The
    /// next `replica_prepare` without it, or `replica_stop`, lets them in again.
    #[serde(default)]
    last: bool,
}

fn one() -> usize {
    1
}

/// `replica_begin`: the partner gets ready. Reply: `answer` ([`Answer`]) and `access` ([`Access`]).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    offer: Offer,
    /// Where a new group's volumes are made; none = the only pool.
    #[serde(default)]
    pool: Option<String>,
}

/// `replica_copy`: begins to copy, in the background; `replica_status` tells how far it is. Reply: nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Copy {
    answer: Answer,
    access: Access,
    link: LinkSpec,
    #[serde(default)]
    options: CopyOptions,
}

/// `replica_commit` at the partner, then `replica_confirm` at the source. Reply: nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seal {
    commit: Commit,
}

/// `replica_promote`: reply is the [`crate::replica::Point`]. A point's name, or none for the newest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Promote {
    group: String,
    #[serde(default)]
    point: Option<String>,
}

/// `replica_status`, `replica_stop`, `replica_demote`, `replica_forget`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    group: String,
}

impl Service {
    pub(super) async fn carry_out(&self, verb: &str, mut fields: Fields) -> Result<Fields, ReplicaError> {
        let partner = fields.remove("partner").and_then(|name| name.as_str().map(str::to_owned));
        match (verb, &partner) {
            ("replica_begin" | "replica_commit", _) | (_, None) => {}
            (_, Some(name)) => {
                return Err(ReplicaError::Invalid(format!("partner \"{name}\" may not ask for {verb}")));
            }
        }
        match verb {
            "replica_prepare" => self.prepare(read(fields)?).await,
            "replica_begin" => {
                let Begin { offer, pool } = read(fields)?;
                self.check_partner(&offer.group, partner.as_deref())?;
                let reply = self.begin(&offer, pool.as_deref()).await?;
                self.group(&offer.group)?.set_partner(partner).await?;
                Ok(reply)
            }
            "replica_copy" => self.copy(read(fields)?),
            "replica_commit" => {
                let Seal { commit } = read(fields)?;
                self.check_partner(&commit.group, partner.as_deref())?;
                self.surroundings.withdraw(&commit.group).await;
                done(self.group(&commit.group)?.commit(&commit).await)
            }
            "replica_confirm" => {
                let Seal { commit } = read(fields)?;
                done(self.group(&commit.group)?.confirm(&commit).await)
            }
            "replica_status" => Ok(describe(&*self.named(fields)?)),
            "replica_stop" => {
                let group = self.named(fields)?;
                group.stop().await;
                if group.role() == Role::Primary {
                    self.surroundings.admit(&group.volumes(), true).await;
                }
                Ok(Fields::new())
            }
            "replica_promote" => self.promote(read(fields)?).await,
            "replica_demote" => {
                let group = self.named(fields)?;
                self.surroundings.admit(&group.volumes(), false).await;
                let result = group.demote().await;
                if group.role() == Role::Primary {
                    self.surroundings.admit(&group.volumes(), true).await;
                }
                done(result)
            }
            "replica_forget" => {
                let Named { group } = read(fields)?;
                done(self.replicator(&group, None)?.forget(&group).await)
            }
            other => Err(ReplicaError::Invalid(format!("there is no verb \"{other}\""))),
        }
    }

    /// A group is one partner's.
    fn check_partner(&self, group: &str, partner: Option<&str>) -> Result<(), ReplicaError> {
        let theirs = self.group(group).ok().and_then(|group| group.partner());
        match (theirs, partner) {
            (Some(theirs), Some(partner)) if theirs != partner => Err(ReplicaError::Invalid(format!(
                "group \"{group}\" is replicated with partner \"{theirs}\", not with \"{partner}\""
            ))),
            _ => Ok(()),
        }
    }

    fn named(&self, fields: Fields) -> Result<Rc<Group<Pool>>, ReplicaError> {
        let Named { group } = read(fields)?;
        self.group(&group)
    }

    async fn prepare(
        &self,
        Prepare { group, volumes, to, keep, last }: Prepare,
    ) -> Result<Fields, ReplicaError> {
        let group = match self.group(&group) {
            Ok(known) if volumes.is_empty() => known,
            _ => self.replicator(&group, self.pool_of(&volumes))?.primary(&group, &volumes).await?,
        };
        group.set_partner(to).await?;
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
        // It has begun when this verb is over; the progress says what becomes of it.
        drop(self.runtime.start(async move { group.copy(&answer, link, options).await }));
        Ok(Fields::new())
    }

    async fn promote(&self, Promote { group, point }: Promote) -> Result<Fields, ReplicaError> {
        let group = self.group(&group)?;
        self.surroundings.withdraw(group.name()).await;
        let point = group.promote(point.as_deref()).await?;
        self.surroundings.admit(&group.volumes(), true).await;
        write(&point)
    }
}

fn read<T: DeserializeOwned>(fields: Fields) -> Result<T, ReplicaError> {
    serde_json::from_value(Value::Object(fields)).map_err(|error| ReplicaError::Invalid(error.to_string()))
}

fn write(value: &impl Serialize) -> Result<Fields, ReplicaError> {
    let value = serde_json::to_value(value).map_err(|error| ReplicaError::Invalid(error.to_string()))?;
    Ok(fields(&value))
}

fn done(result: Result<(), ReplicaError>) -> Result<Fields, ReplicaError> {
    result.map(|()| fields(&json!({})))
}
