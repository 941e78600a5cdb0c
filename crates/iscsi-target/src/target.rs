//! One iSCSI target of an array, made from its configuration.

use crate::{
    config::{AluaState, ChapSettings, TargetConfig, VolumeConfig},
    engine::{Engines, ExportRecord},
    volume::{SharedVolume, VolumeError, VolumeId},
};
use linerate_io::Driver;
use linerate_iscsi_proto::{
    chap::{Algorithm, ChapConfig, ChapConfigError, ChapSecret, Credentials, SecretError},
    names::{IscsiName, NameError, NamePattern},
    send_targets::TargetAddress,
};
use linerate_scsi::{AccessState, Inventory, InventoryError, LogicalUnit, TargetPort};
use std::sync::Arc;

/// A target: its initiators, and the volume of each LUN.
#[derive(Debug)]
pub(crate) struct IscsiTarget {
    /// Normalised name.
    pub(crate) name: String,
    pub(crate) alias: Option<String>,
    /// The initiators that may log in; None: all.
    initiators: Option<Vec<NamePattern>>,
    pub(crate) chap: Option<ChapConfig>,
    pub(crate) redirect: Option<String>,
    pub(crate) inventory: Arc<Inventory>,
}

impl IscsiTarget {
    /// A target for which only CHAP decides who may log in.
    pub(crate) fn by_secret(name: String, chap: ChapConfig, inventory: Arc<Inventory>) -> Self {
        Self { name, alias: None, initiators: None, chap: Some(chap), redirect: None, inventory }
    }

    /// The volume behind a LUN number.
    pub(crate) fn volume(&self, lun: u16) -> Option<VolumeId> {
        self.inventory.tag(lun).map(VolumeId::of_tag)
    }

    /// Whether an initiator, by its normalised name, may log in and see the target in discovery.
    pub(crate) fn admits(&self, initiator: &str) -> bool {
        self.initiators.as_ref().is_none_or(|names| names.iter().any(|name| name.matches(initiator)))
    }

    /// Whether the owner knows the initiators of this target: by name, or by CHAP.
    pub(crate) fn knows_initiators(&self) -> bool {
        self.initiators.is_some() || self.chap.is_some()
    }
}

/// The parameters for opening targets and their volumes.
pub(crate) struct Opening<'a, D> {
    /// Name of the array.
    pub(crate) array: &'a str,
    /// The portal groups of all volumes, with these states.
    pub(crate) groups: &'a [(u16, AluaState)],
    pub(crate) driver: &'a mut D,
    pub(crate) engines: Option<&'a Engines>,
    /// The opened volumes so far.
    pub(crate) volumes: Vec<SharedVolume>,
}

impl<D: Driver> Opening<'_, D> {
    /// Opens a target and its volumes.
    pub(crate) fn target(&mut self, config: &TargetConfig) -> Result<IscsiTarget, TargetError> {
        let name = IscsiName::parse(&config.name).map_err(TargetError::Name)?.to_string();
        let initiators = config.initiators.as_deref().map_or(Ok(None), initiators)?;
        let chap = config.chap.as_ref().map(chap).transpose()?;
        if let Some(address) = &config.redirect {
            TargetAddress::parse(address).ok_or_else(|| TargetError::Redirect(address.clone()))?;
        }
        let mut units = Vec::new();
        for volume in &config.volumes {
            if self.engines.is_some_and(|engines| engines.has_deleted(&volume.name)) {
                continue;
            }
            let naa = naa(&[self.array, &name, &volume.name]);
            units.push((volume.lun, self.volume(&name, volume, naa)?));
        }
        let inventory = Inventory::new(units).map_err(TargetError::Luns)?;
        let (alias, redirect) = (config.alias.clone(), config.redirect.clone());
        Ok(IscsiTarget { name, alias, initiators, chap, redirect, inventory })
    }

    /// Exports a volume that was created while the array served, as it was exported then.
    pub(crate) fn made(
        &mut self,
        targets: &[Arc<IscsiTarget>],
        (pool, volume, record): &(String, String, ExportRecord),
    ) -> Result<(), TargetError> {
        let config = record.config(pool, volume);
        let named = |target: &&Arc<IscsiTarget>| record.is_at(&target.name);
        let target = targets.iter().find(named).ok_or_else(|| TargetError::NotThere(volume.clone()))?;
        let naa = record.naa(self.array, &target.name, volume);
        let unit = self.volume(&target.name, &config, naa)?;
        target.inventory.add(config.lun, unit).map_err(TargetError::Luns)
    }

    fn volume(
        &mut self,
        target: &str,
        config: &VolumeConfig,
        naa: [u8; 16],
    ) -> Result<Arc<LogicalUnit>, TargetError> {
        let states = access_states(config, self.groups)?;
        let index = self.volumes.len() as u32;
        let ports = ports(target, self.groups);
        let opened = SharedVolume::open(config, naa, ports, self.driver, self.engines, index);
        let opened = opened.map_err(TargetError::Volume)?;
        opened.unit.set_access(&states);
        let unit = Arc::clone(&opened.unit);
        self.volumes.push(opened);
        Ok(unit)
    }
}

/// The ports of a target with these portal groups.
pub(crate) fn ports(target: &str, groups: &[(u16, AluaState)]) -> Vec<TargetPort> {
    groups.iter().map(|(tag, _)| port(target, *tag)).collect()
}

/// A portal group is one SCSI target port, in a target port group of its own (RFC 7143 section 4.4.3.1).
fn port(target: &str, tag: u16) -> TargetPort {
    TargetPort { relative_id: tag, group: tag, name: format!("{target},t,{tag:#06x}") }
}

/// The initial access states of a volume.
fn access_states(
    volume: &VolumeConfig,
    groups: &[(u16, AluaState)],
) -> Result<Vec<(u16, AccessState)>, TargetError> {
    if let Some(tag) = volume.alua.keys().find(|tag| !groups.iter().any(|(known, _)| known == *tag)) {
        return Err(TargetError::UnknownGroup { volume: volume.name.clone(), tag: *tag });
    }
    let state = |(tag, state): &(u16, AluaState)| (*tag, (*volume.alua.get(tag).unwrap_or(state)).into());
    Ok(groups.iter().map(state).collect())
}

/// None: all initiators.
fn initiators(names: &[String]) -> Result<Option<Vec<NamePattern>>, TargetError> {
    if names.is_empty() {
        return Err(TargetError::NoInitiators);
    }
    let parse = |name: &String| {
        NamePattern::parse(name).map_err(|error| TargetError::Initiator { name: name.clone(), error })
    };
    let patterns: Vec<NamePattern> = names.iter().map(parse).collect::<Result<_, _>>()?;
    let is_everyone = |pattern: &NamePattern| *pattern == NamePattern::Beginning(String::new());
    Ok((!patterns.iter().any(is_everyone)).then_some(patterns))
}

fn chap(settings: &ChapSettings) -> Result<ChapConfig, TargetError> {
    let algorithm =
        |name: &String| Algorithm::from_name(name).ok_or_else(|| TargetError::Algorithm(name.clone()));
    let algorithms = settings.algorithms.iter().map(algorithm).collect::<Result<Vec<_>, _>>()?;
    let credentials = |name: &String, secret: &String| Credentials {
        name: name.clone(),
        secret: ChapSecret::new(secret.clone().into_bytes()),
    };
    let mutual = match (&settings.mutual_user, &settings.mutual_secret) {
        (Some(user), Some(secret)) => Some(credentials(user, secret)),
        (None, None) => None,
        _ => return Err(TargetError::HalfMutual),
    };
    let initiator = credentials(&settings.user, &settings.secret);
    let sides = [("chap.secret", Some(&initiator)), ("chap.mutual_secret", mutual.as_ref())];
    for (key, side) in sides {
        let judged = side.map_or(Ok(()), |side| side.secret.check());
        judged.map_err(|error| TargetError::Secret { key, error })?;
    }
    ChapConfig::new(&algorithms, initiator, mutual).map_err(TargetError::Chap)
}

/// A stable identifier from names: NAA 6 (IEEE Registered Extended) with a 64-bit FNV-1a hash per half, so that a volume
/// keeps its identity over restarts.
pub(crate) fn naa(names: &[&str]) -> [u8; 16] {
    let hash = |seed: u64| {
        let bytes = names.iter().flat_map(|name| name.bytes().chain([0]));
        bytes.fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    let mut naa = [0; 16];
    naa[..8].copy_from_slice(&hash(0xcbf2_9ce4_8422_2325).to_be_bytes());
    naa[8..].copy_from_slice(&hash(0x8422_2325_cbf2_9ce4).to_be_bytes());
    naa[0] = 0x60 | (naa[0] & 0x0f);
    naa
}

/// A target cannot be served: the configuration is wrong, except for some volume errors.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// `name` is not an iSCSI name.
    #[error("{0}; change `name`")]
    Name(#[source] NameError),
    /// `initiators` has an invalid name.
    #[error("`initiators` has \"{name}\": {error}; a `*` may end a name")]
    Initiator {
        /// As configured.
        name: String,
        /// Why not.
        error: NameError,
    },
    /// `initiators` is empty.
    #[error("`initiators` is empty, so that no one could log in; leave it out to let everyone in")]
    NoInitiators,
    /// A weak secret.
    #[error("`{key}`: {error}")]
    Secret {
        /// Its key.
        key: &'static str,
        /// Why not.
        error: SecretError,
    },
    /// `chap.algorithms` has an unknown name.
    #[error(
        "there is no CHAP algorithm \"{0}\"; `chap.algorithms` takes \"sha3-256\", \"sha256\", \"sha1\" and \"md5\""
    )]
    Algorithm(String),
    /// One of the two mutual keys is missing.
    #[error("mutual CHAP needs both `chap.mutual_user` and `chap.mutual_secret`")]
    HalfMutual,
    /// The CHAP settings do not fit together.
    #[error("{0}; change `chap`")]
    Chap(#[source] ChapConfigError),
    /// `redirect` is not an address.
    #[error("`redirect` is \"{0}\", which is not host:port")]
    Redirect(String),
    /// A volume has an access state for a portal group that does not exist.
    #[error(
        "volume \"{volume}\": `alua` names portal group {tag}, which no portal is in; change it, or add a portal"
    )]
    UnknownGroup {
        /// Its name.
        volume: String,
        /// The group's tag.
        tag: u16,
    },
    /// The LUNs do not fit together.
    #[error("{0}; change `lun`")]
    Luns(#[source] InventoryError),
    /// A volume was created for a target that the configuration does not name any more.
    #[error("volume \"{0}\" was made for a target that is not there; name the target again")]
    NotThere(String),
    /// One of its volumes.
    #[error(transparent)]
    Volume(VolumeError),
}

#[cfg(test)]
mod tests {
    use super::naa;

    #[test]
    fn identifiers_are_stable_and_differ() {
        let id = naa(&["array", "iqn.2026-11.lab.linerate:a", "v1"]);
        assert_eq!(id[0] >> 4, 6);
        assert_eq!(id, naa(&["array", "iqn.2026-11.lab.linerate:a", "v1"]));
        assert_ne!(id, naa(&["array", "iqn.2026-11.lab.linerate:a", "v2"]));
        assert_ne!(naa(&["a", "b"]), naa(&["ab", ""]));
    }
}
