//! Replication on the engine's thread: exports for a partner, excluded hosts, the connection to a partner.

use super::{Exports, Inbox, VolumeNumber, serve::Served, state::EngineState};
use crate::{
    config::{VolumeConfig, VolumeKind},
    replication_link::{self, ReplicationLink, Wake},
    target::{self, IscsiTarget},
    volume::{VolumeId, unit_of},
};
use futures::{FutureExt, future::LocalBoxFuture};
use linerate_io::{Nanos, Preference, system::unix_time_s};
use linerate_iscsi_proto::chap::{Algorithm, ChapConfig, ChapConfigError, ChapSecret, Credentials};
use linerate_scsi::{Inventory, LogicalUnit, UnitError};
use linerate_storage::{
    Disk,
    controller::{Command, Reply, StorageError},
    replica::{
        Fence, Link, LinkError, ReplicaError,
        service::{Access, Fields, LinkSpec, Login, Service, Surroundings},
    },
};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt::Display,
    rc::{Rc, Weak},
    sync::Arc,
};

/// Prefix of the names of the targets for partners.
const TARGET: &str = "iqn.2026-11.lab.linerate:replication";
/// Interval of the checks whether hosts' operations have ended.
const LOOK_NS: Nanos = 1_000_000;
/// A partner's sessions log in under this name.
const INITIATOR: &str = "iqn.2026-11.lab.linerate:replication";

/// The engine, as replication sees it.
struct Around {
    state: Weak<EngineState>,
    driver: Preference,
    wake: Wake,
    /// By group: target, LUN and number of the exports for its partner.
    shown: Rc<RefCell<BTreeMap<String, Vec<FencedExport>>>>,
}

struct FencedExport {
    target: Arc<IscsiTarget>,
    lun: u16,
    number: VolumeNumber,
}

/// Finds the groups in the pools; hosts are excluded from replicas from then on.
pub(super) async fn open(
    state: Rc<EngineState>,
    driver: Preference,
    inbox: Arc<Inbox>,
) -> Result<(), StorageError> {
    let wake = move || {
        if let Some(wake) = inbox.wake.get() {
            wake();
        }
    };
    let around = Around { state: Rc::downgrade(&state), driver, wake: Arc::new(wake), shown: Rc::default() };
    let pools = state.controller.pools();
    let service = Service::open(state.runtime.clone(), Rc::new(around), pools).await?;
    // Only this thread sets it.
    let _ = state.replication.set(service);
    Ok(())
}

impl EngineState {
    pub(super) async fn replicate(&self, verb: &str, fields: Fields) -> Result<Reply, StorageError> {
        let Some(service) = self.replication.get() else { return Err(StorageError::Gone) };
        Ok(service.manage(verb, fields).await?)
    }

    /// Refuses commands that replication does not permit.
    pub(super) fn check_replication(&self, command: &Command) -> Result<(), StorageError> {
        let (volume, deletes) = match command {
            Command::Delete { volume, .. } => (volume, true),
            Command::Resize { volume, .. } | Command::Restore { volume, .. } => (volume, false),
            _ => return Ok(()),
        };
        // An array without partners.
        let Some(service) = self.replication.get() else { return Ok(()) };
        match service.group_of(volume) {
            Some(group) if deletes => Err(StorageError::Refused(format!(
                "volume \"{volume}\" belongs to replication group \"{}\"; end that first: linerate array forget",
                group.name()
            ))),
            Some(group) if !service.admits_hosts(volume) => Err(StorageError::Refused(format!(
                "volume \"{volume}\" is a replica (group \"{}\"); promote it first",
                group.name()
            ))),
            _ => Ok(()),
        }
    }
}

impl Around {
    /// A target for one transfer, with its own name and secrets: only the array that gets them can log in, and only
    /// this array can authenticate itself.
    fn show_all(&self, group: &str, fences: &[Rc<Fence>]) -> Result<Access, LinkError> {
        let gone = || LinkError::Setup("the array does not serve yet".into());
        let state = self.state.upgrade().ok_or_else(gone)?;
        let exports = state.exports.get().ok_or_else(gone)?;
        let refused = |error: &dyn Display| LinkError::Setup(format!("group {group}: {error}"));
        let login = Login { secret: self.secret(), target_secret: self.secret() };
        let name = format!("{TARGET}.{}", self.secret());
        let inventory = Inventory::new(Vec::new()).map_err(|error| refused(&error))?;
        let chap = chap(&login).map_err(|error| refused(&error))?;
        let target = Arc::new(IscsiTarget::by_secret(name.clone(), chap, inventory));
        for (lun, fence) in (0_u16..).zip(fences) {
            let number = state.add(Served::Fence(Rc::clone(fence))).volume;
            let shown_gate = FencedExport { target: Arc::clone(&target), lun, number };
            // Recorded one by one, so that all exports are withdrawn even if a later one fails.
            self.shown.borrow_mut().entry(group.to_owned()).or_default().push(shown_gate);
            let unit = unit(exports, &name, lun, fence, number).map_err(|error| refused(&error))?;
            target.inventory.add(lun, unit).map_err(|error| refused(&error))?;
        }
        exports.transfers.add(target);
        Ok(Access { target: name, luns: (0..fences.len() as u16).collect(), login })
    }

    /// 128 bits as text.
    fn secret(&self) -> String {
        format!("{:016x}{:016x}", self.random(), self.random())
    }
}

/// Both ends prove their own secret.
fn chap(login: &Login) -> Result<ChapConfig, ChapConfigError> {
    let end = |name: &str, secret: &str| Credentials { name: name.into(), secret: ChapSecret::new(secret) };
    let target = end(replication_link::TARGET_USER, &login.target_secret);
    ChapConfig::new(&[Algorithm::Sha256], end(replication_link::USER, &login.secret), Some(target))
}

/// A fence as initiators see it.
fn unit(
    exports: &Exports,
    target: &str,
    lun: u16,
    fence: &Rc<Fence>,
    number: VolumeNumber,
) -> Result<Arc<LogicalUnit>, UnitError> {
    let serial = format!("{}-{lun}", &target[TARGET.len() + 1..]);
    let sector_bytes = fence.block_bytes();
    let config = VolumeConfig {
        lun,
        name: serial.clone(),
        kind: VolumeKind::Memory,
        path: None,
        pool: None,
        raid_set: None,
        size_bytes: None,
        sector_bytes,
        physical_sector_bytes: sector_bytes,
        read_only: false,
        // SYNCHRONIZE CACHE makes a copy durable, from time to time.
        write_cache: true,
        power_protected: false,
        alua: BTreeMap::new(),
    };
    let naa = target::naa(&[&exports.array, target, &serial]);
    let blocks = fence.size_bytes() / u64::from(sector_bytes);
    let ports = target::ports(target, &exports.groups);
    let unit = unit_of(&config, naa, ports, blocks, VolumeId::Managed(number), 0)?;
    let states: Vec<_> = exports.groups.iter().map(|(tag, state)| (*tag, (*state).into())).collect();
    unit.set_access(&states);
    Ok(unit)
}

impl Surroundings for Around {
    fn show(
        &self,
        group: &str,
        fences: Vec<Rc<Fence>>,
    ) -> LocalBoxFuture<'static, Result<Access, ReplicaError>> {
        let shown = self.show_all(group, &fences).map_err(ReplicaError::Link);
        async move { shown }.boxed_local()
    }

    fn withdraw(&self, group: &str) -> LocalBoxFuture<'static, ()> {
        let (state, fences) = (self.state.upgrade(), self.shown.borrow_mut().remove(group));
        async move {
            // The engine ends.
            let Some(state) = state else { return };
            for FencedExport { target, lun, number } in fences.into_iter().flatten() {
                if let Some(exports) = state.exports.get() {
                    exports.transfers.remove(&target.name);
                }
                state.take_down(&target, lun, number).await;
            }
        }
        .boxed_local()
    }

    fn admit(&self, volumes: &[String], hosts: bool) -> LocalBoxFuture<'static, ()> {
        let (state, volumes) = (self.state.upgrade(), volumes.to_vec());
        async move {
            // The engine ends.
            let Some(state) = state else { return };
            state.bar(&volumes, !hosts);
            if hosts {
                for volume in &volumes {
                    if let Err(error) = state.show_promoted(volume).await {
                        tracing::error!(event = "volume_not_shown", volume, %error, "this volume cannot be shown to hosts");
                    }
                }
                return;
            }
            while volumes.iter().any(|volume| state.is_in_use(volume)) {
                state.runtime.sleep(LOOK_NS).await;
            }
        }
        .boxed_local()
    }

    fn connect(&self, spec: &LinkSpec, access: &Access) -> Result<Rc<dyn Link>, ReplicaError> {
        Ok(Rc::new(ReplicationLink::connect(spec, access, INITIATOR, self.driver, Arc::clone(&self.wake))?))
    }

    fn now_s(&self) -> f64 {
        unix_time_s()
    }

    fn random(&self) -> u64 {
        // Without random numbers two points could have the same name; this program cannot run on a system without them.
        getrandom::u64().expect("the system gives random bytes")
    }
}
