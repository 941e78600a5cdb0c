//! The logical unit: identity, capacity, and the state that its commands share.

pub(crate) mod access;
mod config;
mod signals;
mod write_exclusion;

pub use config::{Identity, TargetPort, UnitConfig, UnitError};
pub(crate) use signals::Signals;
pub(crate) use write_exclusion::{Claim, Mask, Stripes};

use crate::{
    AccessState,
    copy::CopyResults,
    fast_path,
    reservation::{self, Access, Changes, Reservations},
};
use access::PortGroups;
use linerate_scsi_proto::mode::ModeValues;
use linerate_scsi_proto::sense::code;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// A disk. Shared by all connections of all workers; every method takes `&self`.
#[derive(Debug)]
pub struct LogicalUnit {
    config: UnitConfig,
    capacity_blocks: AtomicU64,
    stripes: Stripes,
    state: Mutex<State>,
}

/// The state that the commands of a unit share. It changes rarely and is behind the unit's mutex. [`State::refresh`]
/// writes the part for plain reads and writes to the fast-path word of every [`Signals`].
#[derive(Debug)]
pub(crate) struct State {
    members: Vec<Member>,
    pub(crate) reservations: Reservations,
    pub(crate) mode: ModeValues,
    /// START STOP UNIT stopped it.
    pub(crate) stopped: bool,
    /// It was taken out of its target.
    pub(crate) retired: bool,
    pub(crate) copies: CopyResults,
    pub(crate) access: PortGroups,
}

/// A logged-in nexus and its pending unit attentions.
#[derive(Debug)]
struct Member {
    signals: Arc<Signals>,
    attentions: VecDeque<u16>,
}

impl LogicalUnit {
    /// A unit in power-on state.
    pub fn new(config: UnitConfig) -> Result<Arc<Self>, UnitError> {
        config.check()?;
        let state = State {
            members: Vec::new(),
            reservations: Reservations::default(),
            mode: config.default_mode(),
            stopped: false,
            retired: false,
            copies: CopyResults::default(),
            access: PortGroups::of(&config),
        };
        Ok(Arc::new(Self {
            capacity_blocks: AtomicU64::new(config.capacity_blocks),
            stripes: Stripes::default(),
            state: Mutex::new(state),
            config,
        }))
    }

    /// The initial configuration. The capacity may have changed since: see [`LogicalUnit::capacity_blocks`].
    pub fn config(&self) -> &UnitConfig {
        &self.config
    }

    /// Capacity in logical blocks.
    pub fn capacity_blocks(&self) -> u64 {
        self.capacity_blocks.load(Ordering::Acquire)
    }

    /// Loads the persistent reservations of [`MediumOp::Keep`](crate::MediumOp::Keep), before the unit is used. Returns
    /// false, and begins without any, if they are damaged.
    pub fn restore_reservations(&self, kept: &[u8]) -> bool {
        let restored = reservation::restored(kept);
        let is_sound = restored.is_some();
        self.change(|state| state.reservations.persistent = restored.unwrap_or_default());
        is_sound
    }

    /// Announces a new capacity: every nexus gets CAPACITY DATA HAS CHANGED.
    ///
    /// The caller extends the volume before this call, or shrinks it after this call when its commands have ended.
    pub fn resize(&self, capacity_blocks: u64) -> Result<(), UnitError> {
        self.config.check_capacity(capacity_blocks)?;
        self.capacity_blocks.store(capacity_blocks, Ordering::Release);
        self.change(|state| state.tell_all_but(None, code::CAPACITY_CHANGED));
        Ok(())
    }

    /// Changes the access states of target port groups, as a storage controller would: every nexus gets ASYMMETRIC
    /// ACCESS STATE CHANGED, once. Commands in progress are completed. Groups that the unit does not have are ignored.
    /// Returns whether anything has changed.
    pub fn set_access(&self, states: &[(u16, AccessState)]) -> bool {
        self.change(|state| {
            let mut changed = false;
            for (tag, wanted) in states {
                if let Some(group) = state.access.get_mut(*tag)
                    && group.state != *wanted
                {
                    (group.state, group.changed) = (*wanted, true);
                    changed = true;
                }
            }
            if changed {
                state.tell_all_but(None, code::ACCESS_STATE_CHANGED);
            }
            changed
        })
    }

    /// Informs every nexus that the pool of a thin unit fills up: THIN PROVISIONING SOFT THRESHOLD REACHED.
    pub fn warn_of_space(&self) {
        self.change(|state| state.tell_all_but(None, code::SOFT_THRESHOLD_REACHED));
    }

    /// Whether no write is in progress.
    pub fn is_idle(&self) -> bool {
        self.stripes.are_empty()
    }

    /// Refuses all new commands; commands in progress are completed.
    pub(crate) fn retire(&self) {
        self.change(|state| state.retired = true);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.lock().retired
    }

    pub(crate) fn tell_luns_changed(&self) {
        self.change(|state| state.tell_all_but(None, code::REPORTED_LUNS_CHANGED));
    }

    /// LOGICAL UNIT RESET (SAM-5 6.3.3): aborts every task, drops the SCSI-2 reservation, restores mode
    /// pages, starts.
    pub fn reset(&self) {
        self.change(|state| {
            state.abort(|_| true);
            state.reservations.scsi2 = None;
            state.mode = self.config.default_mode();
            state.stopped = false;
            state.tell_all_but(None, code::LUN_RESET);
        });
    }

    pub(crate) fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    pub(crate) fn default_mode(&self) -> ModeValues {
        self.config.default_mode()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and updates every fast-path word before the lock is released.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        state.refresh(&self.config);
        result
    }

    pub(crate) fn attach(&self, signals: Arc<Signals>) {
        self.change(|state| {
            let attentions = VecDeque::from([code::POWER_ON]);
            state.members.push(Member { signals, attentions });
        });
    }

    /// `I_T` nexus loss.
    pub(crate) fn detach(&self, nexus: u64) {
        self.change(|state| {
            state.abort(|signals| signals.nexus_id() == nexus);
            state.members.retain(|member| member.signals.nexus_id() != nexus);
            state.reservations.drop_nexus(nexus);
        });
    }
}

impl State {
    /// Recomputes every fast-path word. Called with the mutex held, after any change.
    fn refresh(&self, config: &UnitConfig) {
        for member in &self.members {
            let (id, port) = (member.signals.nexus_id(), member.signals.port());
            let conflicts = |access| self.reservations.conflicts(id, port, access);
            let no_access = |port| self.access.of_port(config, port).not_ready_code().is_some();
            let mut bits = 0;
            for (on, bit) in [
                (!member.attentions.is_empty(), fast_path::ATTENTION),
                (conflicts(Access::Read), fast_path::NO_READ),
                (conflicts(Access::Write), fast_path::NO_WRITE),
                (self.stopped, fast_path::STOPPED),
                (config.read_only || self.mode.write_protect, fast_path::PROTECTED),
                (!self.mode.write_cache, fast_path::WRITE_THROUGH),
                (no_access(port.relative_port), fast_path::NO_ACCESS),
                (self.retired, fast_path::RETIRED),
            ] {
                bits |= if on { bit } else { 0 };
            }
            member.signals.set_fast_path(bits);
        }
    }

    /// The oldest unit attention of a nexus.
    pub(crate) fn take_attention(&mut self, nexus: u64) -> Option<u16> {
        self.members.iter_mut().find(|member| member.signals.nexus_id() == nexus)?.attentions.pop_front()
    }

    /// Establishes a unit attention for every nexus except one.
    pub(crate) fn tell_all_but(&mut self, nexus: Option<u64>, attention: u16) {
        for member in self.members.iter_mut().filter(|member| Some(member.signals.nexus_id()) != nexus) {
            member.establish(attention);
        }
    }

    /// Informs and aborts the nexuses that a reservation action affects.
    pub(crate) fn announce(&mut self, changes: &Changes) {
        for (port, attention) in &changes.attentions {
            for member in &mut self.members {
                if member.signals.port() == port {
                    member.establish(*attention);
                }
            }
        }
        self.abort(|signals| changes.aborted.contains(signals.port()));
    }

    /// Aborts the tasks of the nexuses that `whose` selects.
    pub(crate) fn abort(&self, whose: impl Fn(&Signals) -> bool) {
        for member in self.members.iter().filter(|member| whose(&member.signals)) {
            member.signals.abort_tasks();
        }
    }
}

impl Member {
    /// Queues a unit attention once. A reset replaces all earlier ones (SAM-5 5.14.4).
    fn establish(&mut self, attention: u16) {
        if attention == code::LUN_RESET {
            self.attentions.clear();
        }
        if !self.attentions.contains(&attention) {
            self.attentions.push_back(attention);
        }
    }
}
