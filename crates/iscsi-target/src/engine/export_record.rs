//! The export of a volume that was created while the array served: a record in the volume's pool.

use crate::{
    config::{VolumeConfig, VolumeKind},
    target,
};
use bytes::Bytes;
use linerate_storage::controller::Export;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The export of a volume that the configuration does not name, or its deletion. It is stored in the volume's pool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExportRecord {
    /// The configuration names it, but it was deleted.
    #[serde(default)]
    pub(super) deleted: bool,
    /// The time of its creation: distinguishes it from an earlier volume of its name.
    pub(super) made_s: f64,
    #[serde(flatten)]
    pub(super) export: Export,
}

impl ExportRecord {
    /// As if the configuration named the volume.
    pub(crate) fn config(&self, pool: &str, volume: &str) -> VolumeConfig {
        let sector_bytes = self.export.sector_bytes.unwrap_or(512);
        VolumeConfig {
            lun: self.export.lun.unwrap_or(0),
            name: volume.to_owned(),
            kind: VolumeKind::Pool,
            path: None,
            pool: Some(pool.to_owned()),
            raid_set: None,
            size_bytes: None,
            sector_bytes,
            physical_sector_bytes: self.export.physical_sector_bytes.unwrap_or(sector_bytes),
            read_only: self.export.read_only,
            write_cache: self.export.write_cache,
            power_protected: self.export.power_protected,
            alua: BTreeMap::new(),
        }
    }

    pub(crate) fn naa(&self, array: &str, target: &str, volume: &str) -> [u8; 16] {
        target::naa(&[array, target, volume, &self.made_s.to_string()])
    }

    /// Whether it is shown by this target.
    pub(crate) fn is_at(&self, target: &str) -> bool {
        self.export.target.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(target))
    }

    pub(super) fn bytes(&self) -> Option<Bytes> {
        serde_json::to_vec(self).ok().map(Bytes::from)
    }
}
