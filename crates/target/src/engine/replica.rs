//! Replication on the engine's thread: what a partner is shown, who is kept out of a volume, the way to a partner.

use super::{Inbox, serve::Served, shop::Shop};
use crate::{
    config::{VolumeConfig, VolumeKind},
    partner::{PartnerLink, Wake},
    target::{self, Target},
    volume::{VolumeId, unit_of},
};
use futures::{FutureExt, future::LocalBoxFuture};
use linerate_array::{
    Disk,
    controller::{Command, Reply, StorageError},
    replica::{
        Gate, Link, LinkError, ReplicaError,
        service::{Access, Fields, LinkSpec, Service, Surroundings},
    },
};
use linerate_io::{Nanos, Preference, system::unix_time_s};
use linerate_scsi::MAX_LUN;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::{Rc, Weak},
    sync::Arc,
};

/// A target with a name that ends so is where partners find what they write; without one, the first target is.
const TARGET_SUFFIX: &str = ":replication";
/// How often it is looked whether hosts' operations have ended.
const LOOK_NS: Nanos = 1_000_000;
/// A partner's sessions log in under this name.
const INITIATOR: &str = "iqn.2026-11.lab.linerate:replication";

/// What replication sees of the engine.
struct Around {
    shop: Weak<Shop>,
    driver: Preference,
    wake: Wake,
    /// By group: target, LUN and number of what its partner writes.
    shown: Rc<RefCell<BTreeMap<String, Vec<Place>>>>,
    /// LUNs are given from the top, and none again before all others: a session that remembers one finds nothing there.
    next_lun: Cell<u16>,
}

struct Place {
    target: Arc<Target>,
    lun: u16,
    number: u32,
}

/// Finds the groups in the pools; hosts are kept out of replicas from then on.
pub(super) async fn open(shop: Rc<Shop>, driver: Preference, inbox: Arc<Inbox>) -> Result<(), StorageError> {
    let wake = move || {
        if let Some(wake) = inbox.wake.get() {
            wake();
        }
    };
    let around = Around {
        shop: Rc::downgrade(&shop),
        driver,
        wake: Arc::new(wake),
        shown: Rc::default(),
        next_lun: Cell::new(MAX_LUN),
    };
    let pools = shop.controller.pools();
    let service = Service::open(shop.runtime.clone(), Rc::new(around), pools).await?;
    // Only this thread sets it.
    let _ = shop.replication.set(service);
    Ok(())
}

impl Shop {
    pub(super) async fn replicate(&self, verb: &str, fields: Fields) -> Result<Reply, StorageError> {
        let Some(service) = self.replication.get() else { return Err(StorageError::Gone) };
        Ok(service.manage(verb, fields).await?)
    }

    /// A command that replication does not bear.
    pub(super) fn check_replication(&self, command: &Command) -> Result<(), StorageError> {
        let (volume, deletes) = match command {
            Command::Delete { volume, .. } => (volume, true),
            Command::Resize { volume, .. } | Command::Restore { volume, .. } => (volume, false),
            _ => return Ok(()),
        };
        let Some(service) = self.replication.get() else { return Ok(()) };
        match service.group_of(volume) {
            Some(group) if deletes => Err(StorageError::Refused(format!(
                "volume \"{volume}\" belongs to replication group \"{}\"; end that first (replica_forget)",
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
    fn show_one(&self, shop: &Rc<Shop>, target: &Arc<Target>, gate: &Rc<Gate>) -> Result<Place, LinkError> {
        let refused = |error: &dyn std::fmt::Display| LinkError::Setup(format!("{}: {error}", gate.name()));
        let stage = shop.stage.get().ok_or_else(|| refused(&"the array does not serve yet"))?;
        let lun = self.free_lun(target).ok_or_else(|| refused(&"no logical unit number is free"))?;
        // A name that nothing had before: whoever logs in again after a restart sees that it is something else.
        let serial = format!("{}-{:016x}", gate.name(), self.random());
        let sector_bytes = gate.block_bytes();
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
            // A copy is made durable by SYNCHRONIZE CACHE, now and then.
            write_cache: true,
            power_protected: false,
            alua: BTreeMap::new(),
        };
        let naa = target::naa(&[&stage.array, &target.name, &serial]);
        let ports = target::ports(&target.name, &stage.groups);
        let blocks = gate.size_bytes() / u64::from(sector_bytes);
        let number = shop.add(Served::Gate(Rc::clone(gate))).volume;
        let unit = unit_of(&config, naa, ports, blocks, VolumeId::Managed(number), 0);
        let unit = unit.map_err(|error| refused(&error))?;
        let states: Vec<_> = stage.groups.iter().map(|(tag, state)| (*tag, (*state).into())).collect();
        unit.set_access(&states);
        target.inventory.add(lun, unit).map_err(|error| refused(&error))?;
        Ok(Place { target: Arc::clone(target), lun, number })
    }

    fn free_lun(&self, target: &Target) -> Option<u16> {
        for _ in 0..=MAX_LUN {
            let lun = self.next_lun.get();
            self.next_lun.set(lun.checked_sub(1).unwrap_or(MAX_LUN));
            if target.inventory.tag(lun).is_none() {
                return Some(lun);
            }
        }
        None
    }

    fn show_all(&self, group: &str, gates: Vec<Rc<Gate>>) -> Result<Access, LinkError> {
        let gone = || LinkError::Setup("this array has no target that a partner could write to".into());
        let shop = self.shop.upgrade().ok_or_else(gone)?;
        let stage = shop.stage.get().ok_or_else(gone)?;
        let named = stage.targets.iter().find(|target| target.name.ends_with(TARGET_SUFFIX));
        let target = Arc::clone(named.or(stage.targets.first()).ok_or_else(gone)?);
        let mut luns = Vec::new();
        for gate in gates {
            let place = self.show_one(&shop, &target, &gate)?;
            luns.push(place.lun);
            // Noted one by one, so that what was shown is withdrawn also if the next cannot be.
            self.shown.borrow_mut().entry(group.to_owned()).or_default().push(place);
        }
        Ok(Access { target: target.name.clone(), luns })
    }
}

impl Surroundings for Around {
    fn show(
        &self,
        group: &str,
        gates: Vec<Rc<Gate>>,
    ) -> LocalBoxFuture<'static, Result<Access, ReplicaError>> {
        let shown = self.show_all(group, gates).map_err(ReplicaError::Link);
        async move { shown }.boxed_local()
    }

    fn withdraw(&self, group: &str) -> LocalBoxFuture<'static, ()> {
        let (shop, places) = (self.shop.upgrade(), self.shown.borrow_mut().remove(group));
        async move {
            let Some(shop) = shop else { return };
            for Place { target, lun, number } in places.into_iter().flatten() {
                shop.take_down(&target, lun, number).await;
            }
        }
        .boxed_local()
    }

    fn admit(&self, volumes: &[String], hosts: bool) -> LocalBoxFuture<'static, ()> {
        let (shop, volumes) = (self.shop.upgrade(), volumes.to_vec());
        async move {
            let Some(shop) = shop else { return };
            shop.bar(&volumes, !hosts);
            if hosts {
                for volume in &volumes {
                    if let Err(error) = shop.show_promoted(volume).await {
                        tracing::error!(event = "volume_not_shown", volume, %error, "this volume cannot be shown to hosts");
                    }
                }
                return;
            }
            while volumes.iter().any(|volume| shop.is_in_use(volume)) {
                shop.runtime.sleep(LOOK_NS).await;
            }
        }
        .boxed_local()
    }

    fn connect(&self, spec: &LinkSpec, access: &Access) -> Result<Rc<dyn Link>, ReplicaError> {
        Ok(Rc::new(PartnerLink::connect(spec, access, INITIATOR, self.driver, Arc::clone(&self.wake))?))
    }

    fn now_s(&self) -> f64 {
        unix_time_s()
    }

    fn random(&self) -> u64 {
        // Without randomness two points could have one name; a system that has none cannot run this program.
        getrandom::u64().expect("the system gives random bytes")
    }
}
