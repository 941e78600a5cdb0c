//! One iSCSI target of an array, made from its configuration.

use crate::{
    config::{AluaState, ChapSettings, TargetConfig, VolumeConfig},
    engine::Engine,
    volume::{Volume, VolumeError, VolumeId},
};
use linerate_io::Driver;
use linerate_iscsi::{
    chap::{Algorithm, ChapConfig, ChapConfigError, Credentials, Secret},
    names::{IscsiName, NameError},
    send_targets::TargetAddress,
};
use linerate_scsi::{AccessState, Inventory, InventoryError, TargetPort};
use std::sync::Arc;

/// A target: who may log in, and which volume is behind which LUN.
#[derive(Debug)]
pub(crate) struct Target {
    /// Normalised name.
    pub(crate) name: String,
    pub(crate) alias: Option<String>,
    pub(crate) chap: Option<ChapConfig>,
    pub(crate) redirect: Option<String>,
    pub(crate) inventory: Arc<Inventory>,
    /// By LUN number.
    volumes: Vec<Option<VolumeId>>,
}

impl Target {
    /// Makes a target, seen through `groups` in these states, and appends its volumes to the array's.
    pub(crate) fn open<D: Driver>(
        config: &TargetConfig,
        array_name: &str,
        groups: &[(u16, AluaState)],
        driver: &mut D,
        engine: Option<&Engine>,
        volumes: &mut Vec<Volume>,
    ) -> Result<Self, TargetError> {
        let name = IscsiName::parse(&config.name).map_err(TargetError::Name)?.to_string();
        let chap = config.chap.as_ref().map(chap).transpose()?;
        if let Some(address) = &config.redirect {
            TargetAddress::parse(address).ok_or_else(|| TargetError::Redirect(address.clone()))?;
        }
        let mut by_lun = Vec::new();
        let mut units = Vec::new();
        for volume in &config.volumes {
            let states = access_states(volume, groups)?;
            let naa = naa(&[array_name, &name, &volume.name]);
            let ports = groups.iter().map(|(tag, _)| port(&name, *tag)).collect();
            let opened = Volume::open(volume, naa, ports, driver, engine).map_err(TargetError::Volume)?;
            opened.unit.set_access(&states);
            units.push((volume.lun, Arc::clone(&opened.unit)));
            if by_lun.len() <= usize::from(volume.lun) {
                by_lun.resize(usize::from(volume.lun) + 1, None);
            }
            by_lun[usize::from(volume.lun)] = Some(opened.id(volumes.len() as u32));
            volumes.push(opened);
        }
        let inventory = Inventory::new(units).map_err(TargetError::Luns)?;
        let (alias, redirect) = (config.alias.clone(), config.redirect.clone());
        Ok(Self { name, alias, chap, redirect, inventory, volumes: by_lun })
    }

    /// The volume behind a LUN number.
    pub(crate) fn volume(&self, lun: u16) -> Option<VolumeId> {
        self.volumes.get(usize::from(lun)).copied().flatten()
    }
}

/// A portal group is one SCSI target port, in a target port group of its own (RFC 7143 section 4.4.3.1).
fn port(target: &str, tag: u16) -> TargetPort {
    TargetPort { relative_id: tag, group: tag, name: format!("{target},t,{tag:#06x}") }
}

/// The states in which a volume begins.
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

fn chap(settings: &ChapSettings) -> Result<ChapConfig, TargetError> {
    let algorithm = |name: &String| match name.as_str() {
        "md5" => Ok(Algorithm::Md5),
        "sha256" => Ok(Algorithm::Sha256),
        _ => Err(TargetError::Algorithm(name.clone())),
    };
    let algorithms = settings.algorithms.iter().map(algorithm).collect::<Result<Vec<_>, _>>()?;
    let credentials = |name: &String, secret: &String| Credentials {
        name: name.clone(),
        secret: Secret::new(secret.clone().into_bytes()),
    };
    let mutual = match (&settings.mutual_user, &settings.mutual_secret) {
        (Some(user), Some(secret)) => Some(credentials(user, secret)),
        (None, None) => None,
        _ => return Err(TargetError::HalfMutual),
    };
    let initiator = credentials(&settings.user, &settings.secret);
    ChapConfig::new(&algorithms, initiator, mutual).map_err(TargetError::Chap)
}

/// A stable identifier from names: NAA 6 (IEEE Registered Extended) with a 64-bit FNV-1a hash per half, so that a volume
/// keeps its identity over restarts.
fn naa(names: &[&str]) -> [u8; 16] {
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

/// A target cannot be served: the configuration's fault, except for some volume errors.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// `name` is no iSCSI name.
    #[error("{0}; change `name`")]
    Name(#[source] NameError),
    /// `chap.algorithms` has an unknown name.
    #[error("there is no CHAP algorithm \"{0}\"; `chap.algorithms` takes \"sha256\" and \"md5\"")]
    Algorithm(String),
    /// Only one of the two mutual keys is there.
    #[error("mutual CHAP needs both `chap.mutual_user` and `chap.mutual_secret`")]
    HalfMutual,
    /// The CHAP settings do not fit together.
    #[error("{0}; change `chap`")]
    Chap(#[source] ChapConfigError),
    /// `redirect` is no address.
    #[error("`redirect` is \"{0}\", which is not host:port")]
    Redirect(String),
    /// A volume has an access state in a portal group that there is not.
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
