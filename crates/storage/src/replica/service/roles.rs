//! The verbs about roles. The lab plane controls a promotion. After the partner has agreed, it sends `replica_promote`
//! here, `replica_pass` to the partner, `replica_take` here. `replica/role.rs` explains why.

use super::{
    Fields, Service, fields,
    verbs::{done, read, write},
};
use crate::{
    pool::Pool,
    replica::{Group, Pair, Promotion, ReplicaError, Role},
};
use serde::Deserialize;
use serde_json::json;
use std::rc::Rc;

/// `replica_promote`. Reply: the [`crate::replica::Point`] to which the volumes are restored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Promote {
    group: String,
    /// Without asking the partner.
    #[serde(default)]
    force: bool,
    /// Without a claim: `changes` of the status before the partner was asked.
    #[serde(default)]
    seen: u64,
    /// The claim under which the partner has offered its token; None: use this array's token.
    #[serde(default)]
    claim: Option<String>,
    /// With a claim: the partner's newest point.
    #[serde(default)]
    point: Option<String>,
}

/// `replica_give`, `replica_take`, `replica_drop`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claimed {
    group: String,
    claim: String,
}

/// `replica_asked`, which only checks that the group belongs to the partner, and `replica_pass`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    group: String,
    /// The group's random name.
    id: String,
    pair: Pair,
    #[serde(default)]
    claim: String,
}

/// `replica_forget`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forget {
    group: String,
    /// Also a replica whose volumes may hold an incomplete transfer.
    #[serde(default)]
    force: bool,
}

/// `replica_rejoin`: changes the pair of arrays.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rejoin {
    group: String,
    pair: Pair,
}

impl Service {
    pub(super) async fn change_roles(&self, verb: &str, fields: Fields) -> Result<Fields, ReplicaError> {
        match verb {
            "replica_promote" => self.promote(read(fields)?).await,
            "replica_take" => {
                let Claimed { group, claim } = read(fields)?;
                let group = self.group(&group)?;
                let _order = group.hosts.lock().await;
                let taken = group.take(&claim).await;
                self.let_in(&group).await;
                write(&taken?)
            }
            "replica_drop" => {
                let Claimed { group, claim } = read(fields)?;
                done(self.group(&group)?.drop_claim(&claim).await)
            }
            "replica_asked" => self.check_asked(read(fields)?).map(|_| Fields::new()),
            "replica_give" => self.give(read(fields)?).await,
            "replica_stand_back" => done(self.named(fields)?.stand_back().await),
            "replica_pass" => {
                let asked: Asked = read(fields)?;
                let claim = asked.claim.clone();
                let passed = self.check_asked(asked)?.pass(&claim).await?;
                write(&json!({ "passed": passed }))
            }
            "replica_demote" => {
                let group = self.named(fields)?;
                let _order = group.hosts.lock().await;
                self.surroundings.admit(&group.volumes(), false).await;
                let result = group.demote().await;
                self.let_in(&group).await;
                done(result)
            }
            "replica_forget" => {
                let Forget { group: name, force } = read(fields)?;
                let group = self.group(&name)?;
                let _order = group.hosts.lock().await;
                self.surroundings.withdraw(&name).await;
                self.replicator(&name, None)?.forget(&name, force).await?;
                self.surroundings.admit(&group.volumes(), true).await;
                Ok(Fields::new())
            }
            "replica_rejoin" => {
                let Rejoin { group, pair } = read(fields)?;
                done(self.group(&group)?.rejoin(pair).await)
            }
            other => Err(ReplicaError::Invalid(format!("there is no verb \"{other}\""))),
        }
    }

    /// Admits hosts if this array is primary.
    pub(super) async fn let_in(&self, group: &Group<Pool>) {
        if group.role() == Role::Primary {
            self.surroundings.admit(&group.volumes(), true).await;
        }
    }

    /// The group that a partner names, if it belongs to that partner.
    fn check_asked(&self, Asked { group, id, pair, .. }: Asked) -> Result<Rc<Group<Pool>>, ReplicaError> {
        let group = self.group(&group)?;
        group.check_pair(&pair)?;
        if group.id() == id { Ok(group) } else { Err(ReplicaError::OtherGroup(group.name().to_owned())) }
    }

    async fn give(&self, Claimed { group, claim }: Claimed) -> Result<Fields, ReplicaError> {
        let group = self.group(&group)?;
        let _order = group.hosts.lock().await;
        self.surroundings.admit(&group.volumes(), false).await;
        let given = group.give(&claim).await;
        self.let_in(&group).await;
        Ok(fields(&json!({ "point": given?.map(|point| point.name) })))
    }

    async fn promote(
        &self,
        Promote { group, force, seen, claim, point }: Promote,
    ) -> Result<Fields, ReplicaError> {
        let group = self.group(&group)?;
        let _order = group.hosts.lock().await;
        let how = match claim {
            _ if force => Promotion::Force,
            Some(claim) => Promotion::Claim { claim, point },
            None => Promotion::Held { seen },
        };
        let chosen = group.promote(how).await?;
        self.surroundings.withdraw(group.name()).await;
        self.let_in(&group).await;
        write(&chosen)
    }
}
