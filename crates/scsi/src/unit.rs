//! The logical unit: identity, capacity, and the state that its commands share.

use crate::{
    AccessState,
    access::Groups,
    copy::CopyResults,
    fast_path,
    itl::Itl,
    reservation::{self, Access, Changes, Reservations},
    write_exclusion::Stripes,
};
use linerate_scsi_proto::mode::ModeValues;
use linerate_scsi_proto::sense::code;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};
use thiserror::Error;

/// Who a unit says it is (INQUIRY, VPD 80 and 83). Text is ASCII and cut or padded to its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// T10 vendor identification, at most 8 characters.
    pub vendor: String,
    /// Product identification, at most 16 characters.
    pub product: String,
    /// Product revision level, at most 4 characters.
    pub revision: String,
    /// Unit serial number.
    pub serial: String,
    /// NAA designator: 16 bytes, the first nibble is 6 (IEEE Registered Extended, all 16 bytes are shown) or
    /// 2, 3 or 5 (the first 8 bytes are shown).
    pub naa: [u8; 16],
}

/// One target port, as VPD 83, VPD 88 and REPORT TARGET PORT GROUPS show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPort {
    /// Relative target port identifier, 1..=65535, unique in the target.
    pub relative_id: u16,
    /// Target port group.
    pub group: u16,
    /// SCSI name string, e.g. `iqn.2026-11.lab.linerate:demo,t,0x0001`.
    pub name: String,
}

/// What a unit is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitConfig {
    /// Names.
    pub identity: Identity,
    /// Capacity in logical blocks, at least 1.
    pub capacity_blocks: u64,
    /// Logical block size: 512 or 4096.
    pub block_bytes: u32,
    /// Physical block size: a power of two, at least the logical block size.
    pub physical_block_bytes: u32,
    /// Initial value of WCE. Off means that every write is durable before GOOD.
    pub write_cache: bool,
    /// Refuse writes with DATA PROTECT.
    pub read_only: bool,
    /// Deallocation is supported (LBPME, UNMAP, WRITE SAME with UNMAP).
    pub thin: bool,
    /// Bytes that are deallocated together, a multiple of the physical block: less of them is only set to zero. 0: a
    /// physical block.
    pub unmap_bytes: u32,
    /// The caller keeps persistent reservations over a power loss ([`MediumOp::Keep`](crate::MediumOp::Keep)).
    pub keeps_reservations: bool,
    /// The caller's own: says which volume it is.
    pub tag: u64,
    /// The target's ports.
    pub ports: Vec<TargetPort>,
}

/// A disk. Shared by all connections of all workers; every method takes `&self`.
#[derive(Debug)]
pub struct LogicalUnit {
    config: UnitConfig,
    capacity_blocks: AtomicU64,
    stripes: Stripes,
    state: Mutex<State>,
}

/// What the commands of a unit share. Changed rarely and behind the unit's mutex; what plain reads and writes
/// need of it is written to the fast-path word of every [`Itl`] by [`State::refresh`].
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
    pub(crate) access: Groups,
}

/// A logged-in nexus and the unit attentions that wait for it.
#[derive(Debug)]
struct Member {
    itl: Weak<Itl>,
    id: u64,
    attentions: VecDeque<u16>,
}

impl LogicalUnit {
    /// A unit in power-on state.
    pub fn new(config: UnitConfig) -> Result<Arc<Self>, UnitError> {
        check_capacity(config.capacity_blocks, config.block_bytes)?;
        if !matches!(config.block_bytes, 512 | 4096) {
            return Err(UnitError::BlockSize(config.block_bytes));
        }
        let physical = config.physical_block_bytes;
        if !physical.is_power_of_two() || physical < config.block_bytes || physical > 1 << 20 {
            return Err(UnitError::PhysicalBlockSize(physical));
        }
        let state = State {
            members: Vec::new(),
            reservations: Reservations::default(),
            mode: default_mode(&config),
            stopped: false,
            retired: false,
            copies: CopyResults::default(),
            access: Groups::of(&config),
        };
        Ok(Arc::new(Self {
            capacity_blocks: AtomicU64::new(config.capacity_blocks),
            stripes: Stripes::default(),
            state: Mutex::new(state),
            config,
        }))
    }

    /// What the unit was made from. The capacity may have changed since: see
    /// [`LogicalUnit::capacity_blocks`].
    pub fn config(&self) -> &UnitConfig {
        &self.config
    }

    /// Capacity in logical blocks.
    pub fn capacity_blocks(&self) -> u64 {
        self.capacity_blocks.load(Ordering::Acquire)
    }

    /// Takes up the persistent reservations of [`MediumOp::Keep`](crate::MediumOp::Keep), before the unit is used.
    /// Returns false, and begins without any, if they are damaged.
    pub fn restore_reservations(&self, kept: &[u8]) -> bool {
        let restored = reservation::restored(kept);
        let is_sound = restored.is_some();
        self.change(|state| state.reservations.persistent = restored.unwrap_or_default());
        is_sound
    }

    /// Announces a new capacity: every nexus gets CAPACITY DATA HAS CHANGED.
    ///
    /// The caller makes the volume larger before this call, or smaller after it once its commands have
    /// drained.
    pub fn resize(&self, capacity_blocks: u64) -> Result<(), UnitError> {
        check_capacity(capacity_blocks, self.config.block_bytes)?;
        self.capacity_blocks.store(capacity_blocks, Ordering::Release);
        self.change(|state| state.tell_all_but(None, code::CAPACITY_CHANGED));
        Ok(())
    }

    /// Puts target port groups into asymmetric access states, by itself as a storage controller would: every nexus is
    /// told ASYMMETRIC ACCESS STATE CHANGED, once. Commands that have begun are finished. Groups that the unit does not
    /// have are passed over. Returns whether anything is different now.
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

    /// Tells every nexus that the pool behind a thin unit fills up: THIN PROVISIONING SOFT THRESHOLD REACHED.
    pub fn warn_of_space(&self) {
        self.change(|state| state.tell_all_but(None, code::SOFT_THRESHOLD_REACHED));
    }

    /// Whether no write is between its beginning and its end.
    pub fn is_idle(&self) -> bool {
        self.stripes.are_empty()
    }

    /// Refuses all new commands; those that have begun are finished.
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
            state.mode = default_mode(&self.config);
            state.stopped = false;
            state.tell_all_but(None, code::LUN_RESET);
        });
    }

    pub(crate) fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    pub(crate) fn default_mode(&self) -> ModeValues {
        default_mode(&self.config)
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

    pub(crate) fn attach(&self, itl: &Arc<Itl>) {
        self.change(|state| {
            let attentions = VecDeque::from([code::POWER_ON]);
            state.members.push(Member { itl: Arc::downgrade(itl), id: itl.id(), attentions });
        });
    }

    /// `I_T` nexus loss.
    pub(crate) fn detach(&self, nexus: u64) {
        self.change(|state| {
            state.abort(|itl| itl.id() == nexus);
            state.members.retain(|member| member.id != nexus);
            state.reservations.drop_nexus(nexus);
        });
    }
}

impl State {
    /// Recomputes every fast-path word. Called with the mutex held, after any change.
    fn refresh(&self, config: &UnitConfig) {
        for member in &self.members {
            let Some(itl) = member.itl.upgrade() else { continue };
            let conflicts = |access| self.reservations.conflicts(itl.id(), itl.port(), access);
            let no_access = |port| self.access.of_port(config, port).not_ready_code().is_some();
            let mut bits = 0;
            for (on, bit) in [
                (!member.attentions.is_empty(), fast_path::ATTENTION),
                (conflicts(Access::Read), fast_path::NO_READ),
                (conflicts(Access::Write), fast_path::NO_WRITE),
                (self.stopped, fast_path::STOPPED),
                (config.read_only || self.mode.write_protect, fast_path::PROTECTED),
                (!self.mode.write_cache, fast_path::WRITE_THROUGH),
                (no_access(itl.port().relative_port), fast_path::NO_ACCESS),
                (self.retired, fast_path::RETIRED),
            ] {
                bits |= if on { bit } else { 0 };
            }
            itl.set_fast_path(bits);
        }
    }

    /// The oldest unit attention of a nexus.
    pub(crate) fn take_attention(&mut self, nexus: u64) -> Option<u16> {
        self.members.iter_mut().find(|member| member.id == nexus)?.attentions.pop_front()
    }

    /// Establishes a unit attention for every nexus but one.
    pub(crate) fn tell_all_but(&mut self, nexus: Option<u64>, attention: u16) {
        for member in self.members.iter_mut().filter(|member| Some(member.id) != nexus) {
            member.establish(attention);
        }
    }

    /// Tells and aborts whom a reservation action concerns.
    pub(crate) fn announce(&mut self, changes: &Changes) {
        for (port, attention) in &changes.attentions {
            for member in &mut self.members {
                if member.itl.upgrade().is_some_and(|itl| itl.port() == port) {
                    member.establish(*attention);
                }
            }
        }
        self.abort(|itl| changes.aborted.contains(itl.port()));
    }

    /// Aborts the tasks of the nexuses that `whose` picks.
    pub(crate) fn abort(&self, whose: impl Fn(&Itl) -> bool) {
        for itl in self.members.iter().filter_map(|member| member.itl.upgrade()) {
            if whose(&itl) {
                itl.abort_tasks();
            }
        }
    }
}

impl Member {
    /// Queues a unit attention once. A reset makes everything queued before it moot (SAM-5 5.14.4).
    fn establish(&mut self, attention: u16) {
        if attention == code::LUN_RESET {
            self.attentions.clear();
        }
        if !self.attentions.contains(&attention) {
            self.attentions.push_back(attention);
        }
    }
}

fn default_mode(config: &UnitConfig) -> ModeValues {
    ModeValues { write_cache: config.write_cache, descriptor_sense: false, write_protect: false }
}

/// Byte offsets must fit 63 bits, so that offset arithmetic cannot overflow anywhere.
fn check_capacity(blocks: u64, block_bytes: u32) -> Result<(), UnitError> {
    match blocks.checked_mul(u64::from(block_bytes)) {
        Some(1..=0x7FFF_FFFF_FFFF_FFFF) => Ok(()),
        _ => Err(UnitError::Capacity(blocks)),
    }
}

/// A unit that cannot be (fault: user, in the array's configuration).
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UnitError {
    /// No blocks, or more bytes than 63 bits can count.
    #[error("a volume cannot have {0} blocks")]
    Capacity(u64),
    /// Logical block size.
    #[error("logical block size {0} is not supported: use 512 or 4096")]
    BlockSize(u32),
    /// Physical block size.
    #[error(
        "physical block size {0} must be a power of two and at least the logical block size, at most 1 MiB"
    )]
    PhysicalBlockSize(u32),
}
