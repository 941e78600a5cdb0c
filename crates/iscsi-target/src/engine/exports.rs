//! Volumes that are created, changed and deleted while the array serves, and their view for initiators.

use super::{ExportRecord, Transfers, VolumeNumber, serve::Served, state::EngineState};
use crate::{
    config::AluaState,
    target::IscsiTarget,
    volume::{VolumeId, unit_of},
};
use linerate_io::{Nanos, system::unix_time_s};
use linerate_scsi::{LogicalUnit, MAX_LUN};
use linerate_storage::{
    Disk,
    controller::{Command, Controller, Export, Kept, Noun, Reply, StorageError, StorageStatus},
    pool::PoolVolume,
};
use std::{rc::Rc, sync::Arc};

/// How long the deletion of a volume waits for writes of initiators in progress.
const DRAIN_NS: Nanos = 10_000_000_000;
const DRAIN_LOOK_NS: Nanos = 1_000_000;
/// How often pools are looked at.
const SPACE_LOOK_NS: Nanos = 1_000_000_000;

/// Where volumes are shown.
#[derive(Clone)]
pub(crate) struct Exports {
    pub(crate) array: String,
    pub(crate) groups: Vec<(u16, AluaState)>,
    pub(crate) targets: Vec<Arc<IscsiTarget>>,
    /// The targets for partners.
    pub(crate) transfers: Arc<Transfers>,
}

/// A volume that initiators see.
struct ExportedUnit {
    target: Arc<IscsiTarget>,
    lun: u16,
    unit: Arc<LogicalUnit>,
    number: VolumeNumber,
}

impl EngineState {
    pub(super) async fn manage(&self, command: Command) -> Result<Reply, StorageError> {
        self.check_replication(&command)?;
        match command {
            Command::CreateVolume { pool, name, size_bytes, export } => {
                let (target, export) = self.choose_lun(&export)?;
                let volume = self.controller.create_volume(pool.as_deref(), &name, size_bytes).await?;
                self.show(&target, &name, volume, export).await
            }
            Command::Clone { volume, snapshot, name, export } => {
                let source = self.find(&volume);
                let beside = source.as_ref().map(|shown| shown.target.name.clone());
                let target = export.target.or(beside);
                let sector_bytes =
                    export.sector_bytes.or(source.map(|shown| shown.unit.config().block_bytes));
                let (target, export) = self.choose_lun(&Export { sector_bytes, target, ..export })?;
                let made = self.controller.clone_volume(&volume, &snapshot, &name).await?;
                self.show(&target, &name, made, export).await
            }
            Command::Resize { volume, size_bytes } => self.resize(&volume, size_bytes).await,
            Command::Delete { volume, with_snapshots } => self.delete(&volume, with_snapshots).await,
            Command::Restore { ref volume, .. } => {
                let name = volume.clone();
                let reply = self.controller.manage(command).await?;
                self.announce_size(&name)?;
                Ok(reply)
            }
            Command::Status {} => Ok(match serde_json::to_value(self.status()) {
                Ok(serde_json::Value::Object(status)) => status,
                _ => Reply::new(),
            }),
            command => self.controller.manage(command).await,
        }
    }

    /// The state of all parts, with their exports.
    pub(super) fn status(&self) -> StorageStatus {
        let mut status = self.controller.status();
        for volume in &mut status.volumes {
            let replica = self.replication.get().map(|service| service.status(&volume.volume.name));
            volume.replica = replica.filter(|status| !status.is_null());
            if let Some(shown) = self.find(&volume.volume.name) {
                (volume.target, volume.lun) = (Some(shown.target.name.clone()), Some(shown.lun));
            }
        }
        status
    }

    /// Settles where a new volume is shown.
    fn choose_lun(&self, export: &Export) -> Result<(Arc<IscsiTarget>, Export), StorageError> {
        let targets = self.exports.get().map_or(&[][..], |exports| &exports.targets[..]);
        let known = || targets.iter().map(|target| target.name.clone()).collect();
        let found = match &export.target {
            Some(name) => targets.iter().find(|target| target.name.eq_ignore_ascii_case(name)),
            None => targets.first(),
        };
        let target = found.ok_or_else(|| match &export.target {
            Some(name) => StorageError::Unknown { noun: Noun::Target, name: name.clone(), known: known() },
            None => StorageError::Unnamed { noun: Noun::Target, known: known() },
        })?;
        let is_free = |lun: &u16| target.inventory.tag(*lun).is_none();
        let lun = match export.lun {
            Some(lun) if lun > MAX_LUN => {
                return Err(StorageError::Refused(format!("`lun` is {lun}; it may be 0 to {MAX_LUN}")));
            }
            Some(lun) => Some(lun).filter(is_free),
            None => (0..=MAX_LUN).find(is_free),
        };
        let lun = lun.ok_or_else(|| {
            StorageError::Refused("that `lun` is in use; leave it out for the lowest that is free".into())
        })?;
        if export.write_cache && !export.power_protected {
            return Err(StorageError::Refused(
                "`write_cache` loses acknowledged writes in a power cut; say `power_protected` if it cannot"
                    .into(),
            ));
        }
        if !matches!(export.sector_bytes.unwrap_or(512), 512 | 4096) {
            return Err(StorageError::Refused("`sector_bytes` is 512 or 4096".into()));
        }
        Ok((
            Arc::clone(target),
            Export { target: Some(target.name.clone()), lun: Some(lun), ..export.clone() },
        ))
    }

    /// Exports a new volume, or deletes it if that is not possible.
    async fn show(
        &self,
        target: &Arc<IscsiTarget>,
        name: &str,
        volume: Rc<PoolVolume>,
        export: Export,
    ) -> Result<Reply, StorageError> {
        let opened = self.add(Served::Thin(volume));
        let least = opened.block_bytes;
        let sector_bytes = Some(export.sector_bytes.unwrap_or(least.max(512)));
        let record =
            ExportRecord { deleted: false, made_s: unix_time_s(), export: Export { sector_bytes, ..export } };
        let shown = self.try_show(target, name, &record, (opened.volume, opened.size_bytes, least)).await;
        match shown {
            Ok(lun) => Ok(Reply::from_iter([
                ("volume".to_owned(), name.into()),
                ("target".to_owned(), target.name.clone().into()),
                ("lun".to_owned(), lun.into()),
                ("size_bytes".to_owned(), opened.size_bytes.into()),
            ])),
            Err(error) => {
                self.remove(opened.volume);
                self.controller.delete_volume(name, false).await?;
                Err(error)
            }
        }
    }

    /// Exports a volume that was a replica: at its former place, or as a new one.
    pub(super) async fn show_promoted(&self, name: &str) -> Result<(), StorageError> {
        if self.exports.get().is_none() || self.find(name).is_some() {
            return self.announce_size(name);
        }
        let (target, export) = self.choose_lun(&Export::default())?;
        let opened = self.add(Served::Thin(self.controller.volume(name)?));
        let sector_bytes = Some(opened.block_bytes.max(512));
        let record =
            ExportRecord { deleted: false, made_s: unix_time_s(), export: Export { sector_bytes, ..export } };
        let (number, least) = (opened.volume, opened.block_bytes);
        let shown = self.try_show(&target, name, &record, (number, opened.size_bytes, least)).await;
        if shown.is_err() {
            self.remove(number);
        }
        shown.map(drop)
    }

    async fn try_show(
        &self,
        target: &Arc<IscsiTarget>,
        name: &str,
        record: &ExportRecord,
        (number, size_bytes, least): (VolumeNumber, u64, u32),
    ) -> Result<u16, StorageError> {
        let refused =
            |error: &dyn std::fmt::Display| StorageError::Refused(format!("volume \"{name}\": {error}"));
        let pool = self.controller.pool_name_of(name)?.to_owned();
        let config = record.config(&pool, name);
        if config.sector_bytes < least {
            return Err(refused(&format!("`sector_bytes` is at least {least}, as its disks' are")));
        }
        let Some(exports) = self.exports.get() else { return Err(StorageError::Gone) };
        let (naa, ports) = (
            record.naa(&exports.array, &target.name, name),
            crate::target::ports(&target.name, &exports.groups),
        );
        let blocks = size_bytes / u64::from(config.sector_bytes);
        let page_bytes = self.controller.volume(name)?.page_bytes() as u32;
        let unit = unit_of(&config, naa, ports, blocks, VolumeId::Managed(number), page_bytes);
        let unit = unit.map_err(|error| refused(&error))?;
        let states: Vec<_> = exports.groups.iter().map(|(tag, state)| (*tag, (*state).into())).collect();
        unit.set_access(&states);
        self.controller.keep(Kept::Export, &pool, name, record.bytes()).await?;
        if let Err(error) = target.inventory.add(config.lun, unit) {
            // Another engine has taken the LUN since it was chosen.
            self.controller.keep(Kept::Export, &pool, name, None).await?;
            return Err(refused(&error));
        }
        Ok(config.lun)
    }

    async fn resize(&self, name: &str, size_bytes: u64) -> Result<Reply, StorageError> {
        let shown = self.find(name);
        let sector_bytes = shown.as_ref().map_or(512, |shown| u64::from(shown.unit.config().block_bytes));
        if size_bytes == 0 || !size_bytes.is_multiple_of(sector_bytes) {
            return Err(StorageError::Refused(format!(
                "`size_bytes` is a multiple of {sector_bytes}, and not 0"
            )));
        }
        let blocks = size_bytes / sector_bytes;
        if let Some(shown) = &shown
            && blocks < shown.unit.capacity_blocks()
        {
            // No new operation begins on the volume before it is removed.
            let _ = shown.unit.resize(blocks);
            self.drain(shown).await;
        }
        let resized = self.controller.resize_volume(name, size_bytes).await;
        self.announce_size(name)?;
        resized?;
        Ok(Reply::from_iter([("size_bytes".to_owned(), size_bytes.into())]))
    }

    /// Reports the new size of a volume to initiators, if it changed.
    pub(super) fn announce_size(&self, name: &str) -> Result<(), StorageError> {
        // Not exported.
        let Some(shown) = self.find(name) else { return Ok(()) };
        let blocks = self.controller.volume(name)?.size_bytes() / u64::from(shown.unit.config().block_bytes);
        if blocks == shown.unit.capacity_blocks() {
            return Ok(());
        }
        shown.unit.resize(blocks).map_err(|error| StorageError::Refused(error.to_string()))
    }

    async fn delete(&self, name: &str, with_snapshots: bool) -> Result<Reply, StorageError> {
        self.controller.check_delete(name, with_snapshots)?;
        let pool = self.controller.pool_name_of(name)?.to_owned();
        let is_recorded = is_recorded(&self.controller, name);
        let shown = self.find(name);
        let mut is_idle = true;
        if let Some(shown) = &shown {
            shown.target.inventory.retire(shown.lun);
            is_idle = self.drain(shown).await;
            self.remove(shown.number);
        }
        self.controller.delete_volume(name, with_snapshots).await?;
        // Otherwise the next start would create the volume of the configuration again, empty.
        let gone = ExportRecord { deleted: true, made_s: unix_time_s(), export: Export::default() };
        let record = if is_recorded { None } else { gone.bytes() };
        self.controller.keep(Kept::Export, &pool, name, record).await?;
        self.controller.keep(Kept::Reservations, &pool, name, None).await?;
        if let Some(shown) = shown.filter(|_| is_idle) {
            shown.target.inventory.forget(shown.lun);
        }
        Ok(Reply::new())
    }

    /// Removes an export that is not a volume of its own: the one for a partner's writes.
    pub(super) async fn take_down(&self, target: &Arc<IscsiTarget>, lun: u16, number: VolumeNumber) {
        // Already taken out.
        let Some(unit) = target.inventory.retire(lun) else { return };
        let shown = ExportedUnit { target: Arc::clone(target), lun, unit, number };
        let is_idle = self.drain(&shown).await;
        self.remove(number);
        if is_idle {
            target.inventory.forget(lun);
        }
    }

    /// Waits for the operations in progress on a volume. False: an initiator does not send the rest of a write.
    async fn drain(&self, shown: &ExportedUnit) -> bool {
        let until = self.runtime.now() + DRAIN_NS;
        while !shown.unit.is_idle() || self.under_way(shown.number) > 0 {
            if self.runtime.now() >= until {
                return false;
            }
            self.runtime.sleep(DRAIN_LOOK_NS).await;
        }
        true
    }

    /// Where a pool's volume is shown.
    fn find(&self, name: &str) -> Option<ExportedUnit> {
        self.exports.get()?.targets.iter().find_map(|target| {
            let units = target.inventory.units().into_iter();
            let mut found = units.filter_map(|(lun, unit)| match VolumeId::of_tag(unit.config().tag) {
                VolumeId::Managed(number)
                    if number.engine == self.number
                        && unit.config().identity.serial == name
                        && unit.config().thin =>
                {
                    Some(ExportedUnit { target: Arc::clone(target), lun, unit, number })
                }
                _ => None,
            });
            found.next()
        })
    }

    /// Warns the initiators of a pool's volumes when the pool fills up.
    pub(super) fn watch_space(self: &Rc<Self>) {
        let state = Rc::downgrade(self);
        let runtime = self.runtime.clone();
        self.runtime.spawn(async move {
            let mut warned: Vec<String> = Vec::new();
            while let Some(state) = state.upgrade() {
                warned = state.warn(&warned);
                drop(state);
                runtime.sleep(SPACE_LOOK_NS).await;
            }
        });
    }

    /// Sends warnings for new pools; returns all pools with a warning.
    fn warn(&self, warned: &[String]) -> Vec<String> {
        let pools = self.controller.warnings();
        for pool in pools.iter().filter(|pool| !warned.contains(pool)) {
            for volume in self.controller.volumes_of(pool) {
                if let Some(shown) = self.find(&volume) {
                    shown.unit.warn_of_space();
                }
            }
        }
        pools
    }
}

/// Whether a volume was created while the array served.
fn is_recorded(controller: &Controller, name: &str) -> bool {
    controller.all_kept(Kept::Export).iter().any(|(_, volume, _)| volume == name)
}
