//! A target in memory: runs plans and tasks to completion as a real target does, one command at a time.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "every test binary uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "test code outside test functions")]

use linerate_scsi::{
    Expected, Identity, InitiatorPort, Input, Inventory, LogicalUnit, MediumError, MediumOp, MediumResult,
    Nexus, Plan, Reply, Residual, Status, TargetPort, Task, TaskStep, UnitConfig,
};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
    sync::Arc,
};

pub const BLOCK: usize = 512;
pub const BLOCKS: u64 = 4096;

/// One volume: bytes, and which blocks are allocated.
pub struct Volume {
    pub bytes: Vec<u8>,
    pub mapped: Vec<bool>,
    block_bytes: usize,
    pub syncs: usize,
    pub durable_writes: usize,
    pub kept: Vec<u8>,
}

impl Volume {
    fn new(config: &UnitConfig) -> Self {
        let block_bytes = config.block_bytes as usize;
        let blocks = config.capacity_blocks as usize;
        let (bytes, mapped) = (vec![0; blocks * block_bytes], vec![false; blocks]);
        Self { bytes, mapped, block_bytes, syncs: 0, durable_writes: 0, kept: Vec::new() }
    }

    fn mark(&mut self, offset: usize, len: usize, mapped: bool) {
        self.mapped[offset / self.block_bytes..(offset + len).div_ceil(self.block_bytes)].fill(mapped);
    }

    pub fn write(&mut self, offset: usize, data: &[u8], durable: bool) {
        self.bytes[offset..offset + data.len()].copy_from_slice(data);
        self.mark(offset, data.len(), true);
        self.durable_writes += usize::from(durable);
    }

    pub fn run(&mut self, op: MediumOp) -> MediumResult {
        match op {
            MediumOp::Read { offset_bytes, len_bytes } => {
                let at = offset_bytes as usize;
                return MediumResult::Data(self.bytes[at..at + len_bytes as usize].to_vec());
            }
            MediumOp::Write { offset_bytes, data, durable } => {
                assert!(!data.is_empty() && data.len().is_multiple_of(self.block_bytes));
                self.write(offset_bytes as usize, &data, durable);
            }
            MediumOp::Fill { offset_bytes, len_bytes, pattern, durable } => {
                assert_eq!(pattern.len(), self.block_bytes);
                let data = pattern.repeat(len_bytes as usize / pattern.len());
                assert_eq!(data.len(), len_bytes as usize);
                self.write(offset_bytes as usize, &data, durable);
            }
            MediumOp::Discard { offset_bytes, len_bytes } => {
                let (at, len) = (offset_bytes as usize, len_bytes as usize);
                self.bytes[at..at + len].fill(0);
                self.mark(at, len, false);
            }
            MediumOp::Sync { .. } => self.syncs += 1,
            MediumOp::Keep { reservations, .. } => self.kept = reservations,
            MediumOp::Mapped { offset_bytes, len_bytes } => return self.mapped_run(offset_bytes, len_bytes),
        }
        MediumResult::Done
    }

    fn mapped_run(&self, offset_bytes: u64, len_bytes: u64) -> MediumResult {
        let first = offset_bytes as usize / self.block_bytes;
        let limit = len_bytes as usize / self.block_bytes;
        let mapped = self.mapped[first];
        let run = self.mapped[first..].iter().take(limit).take_while(|block| **block == mapped).count();
        MediumResult::Mapped { mapped, len_bytes: (run * self.block_bytes) as u64 }
    }
}

pub fn ports() -> Vec<TargetPort> {
    [1, 2]
        .map(|relative_id| TargetPort {
            relative_id,
            group: relative_id,
            name: format!("iqn.2026-11.lab.linerate:demo,t,0x{relative_id:04x}"),
        })
        .into()
}

pub fn config(lun: u8) -> UnitConfig {
    let mut naa = [0; 16];
    (naa[0], naa[15]) = (0x60, lun);
    UnitConfig {
        identity: Identity {
            vendor: "LINERATE".into(),
            product: "VIRTUAL DISK".into(),
            revision: "0001".into(),
            serial: format!("serial-{lun}"),
            naa,
        },
        capacity_blocks: BLOCKS,
        block_bytes: BLOCK as u32,
        physical_block_bytes: 4096,
        write_cache: true,
        read_only: false,
        thin: true,
        unmap_bytes: 0,
        keeps_reservations: false,
        tag: 0,
        ports: ports(),
    }
}

/// A target with two LUNs (0 and 1) and as many sessions as a test wants.
#[derive(Clone)]
pub struct Lab {
    pub inventory: Arc<Inventory>,
    pub volumes: Rc<BTreeMap<u16, RefCell<Volume>>>,
    /// The next medium operation fails with this.
    pub fault: Rc<Cell<Option<MediumError>>>,
}

impl Lab {
    pub fn new() -> Self {
        Self::with([config(0), config(1)])
    }

    pub fn with(configs: impl IntoIterator<Item = UnitConfig>) -> Self {
        let (mut units, mut volumes) = (Vec::new(), BTreeMap::new());
        for (lun, config) in (0_u16..).zip(configs) {
            volumes.insert(lun, RefCell::new(Volume::new(&config)));
            units.push((lun, LogicalUnit::new(config).unwrap()));
        }
        let inventory = Inventory::new(units).unwrap();
        Self { inventory, volumes: Rc::new(volumes), fault: Rc::default() }
    }

    /// A session without pending unit attentions.
    pub fn login(&self, name: &str) -> Session {
        let session = self.login_fresh(name, 1);
        for lun in self.volumes.keys() {
            session.on(*lun).expect_attention(0x2900);
        }
        session
    }

    pub fn login_fresh(&self, name: &str, relative_port: u16) -> Session {
        let initiator =
            InitiatorPort { name: format!("iqn.2026-11.test:{name}"), isid: [0x80, 0, 0, 0, 0, 1] };
        Session { lab: self.clone(), nexus: self.inventory.login(initiator, relative_port), lun: 0 }
    }

    pub fn unit(&self, lun: u16) -> Arc<LogicalUnit> {
        self.inventory.unit(lun).unwrap()
    }
}

/// The result of a command, as the initiator sees it.
#[derive(Debug)]
pub struct Outcome {
    pub status: Status,
    pub sense: Vec<u8>,
    pub data: Vec<u8>,
    pub residual: Residual,
}

impl Outcome {
    pub fn good(self) -> Vec<u8> {
        assert_eq!(self.status, Status::Good, "sense {:02x?}", self.sense);
        self.data
    }

    /// Key, and code with qualifier, of fixed format sense data.
    pub fn check(&self) -> (u8, u16) {
        assert_eq!(self.status, Status::CheckCondition);
        assert_eq!(self.sense[0] & 0x7F, 0x70);
        (self.sense[2] & 0x0F, u16::from_be_bytes([self.sense[12], self.sense[13]]))
    }

    pub fn information(&self) -> u32 {
        assert_eq!(self.sense[0], 0xF0, "information is valid");
        u32::from_be_bytes(self.sense[3..7].try_into().unwrap())
    }

    pub fn conflict(&self) {
        assert_eq!(self.status, Status::ReservationConflict);
    }
}

/// One nexus and one LUN.
pub struct Session {
    pub lab: Lab,
    pub nexus: Arc<Nexus>,
    pub lun: u16,
}

impl Session {
    pub fn on(&self, lun: u16) -> Self {
        Self { lab: self.lab.clone(), nexus: self.nexus.clone(), lun }
    }

    pub fn field(&self) -> [u8; 8] {
        [0, self.lun as u8, 0, 0, 0, 0, 0, 0]
    }

    pub fn begin(&self, cdb: &[u8], in_bytes: u32, out_bytes: u32) -> Plan {
        let mut padded = [0; 16];
        padded[..cdb.len()].copy_from_slice(cdb);
        self.nexus.begin(self.field(), &padded, Expected { in_bytes, out_bytes })
    }

    /// A command that reads `in_bytes`.
    pub fn read(&self, cdb: &[u8], in_bytes: u32) -> Outcome {
        self.run(cdb, in_bytes, &[])
    }

    /// A command that sends `out`.
    pub fn write(&self, cdb: &[u8], out: &[u8]) -> Outcome {
        self.run(cdb, 0, out)
    }

    pub fn run(&self, cdb: &[u8], in_bytes: u32, out: &[u8]) -> Outcome {
        let (reply, moved_in) = match self.begin(cdb, in_bytes, out.len() as u32) {
            Plan::Reply(reply) => (reply, None),
            Plan::Read(extent) => {
                let volume = self.lab.volumes[&self.lun].borrow();
                let at = extent.offset_bytes as usize;
                let data = volume.bytes[at..at + extent.len_bytes as usize].to_vec();
                (Reply::data(data), Some(extent.asked_bytes))
            }
            Plan::Write(extent) => {
                let data = &out[..extent.len_bytes as usize];
                let mut volume = self.lab.volumes[&self.lun].borrow_mut();
                volume.write(extent.offset_bytes as usize, data, extent.durable);
                self.nexus.end_write(self.field(), &extent);
                (Reply { asked_out_bytes: extent.asked_bytes, ..Reply::good() }, None)
            }
            Plan::Task(mut task) => (self.drive(&mut task, out), None),
        };
        outcome(reply, in_bytes, out.len() as u32, moved_in)
    }

    /// Runs a task to its reply. An endless wait is a failure.
    fn drive(&self, task: &mut Task, out: &[u8]) -> Reply {
        let mut input = Input::Start;
        loop {
            match self.advance(task, input, out) {
                Ok(next) => input = next,
                Err(reply) => return reply,
            }
        }
    }

    /// One step of a task; its reply comes back as the error.
    pub fn advance(&self, task: &mut Task, input: Input, out: &[u8]) -> Result<Input, Reply> {
        match task.next(input) {
            TaskStep::DataOut { len_bytes } => Ok(Input::DataOut(out[..len_bytes as usize].to_vec())),
            TaskStep::Medium { lun, op } => Ok(Input::Medium(match self.lab.fault.take() {
                Some(error) => Err(error),
                None => Ok(self.lab.volumes[&lun].borrow_mut().run(op)),
            })),
            TaskStep::Done(reply) => Err(reply),
            TaskStep::Wait => panic!("the task waits for somebody else"),
            TaskStep::Aborted => panic!("the task was aborted"),
        }
    }

    pub fn ready(&self) -> Outcome {
        self.read(&[0; 6], 0)
    }

    pub fn expect_attention(&self, code: u16) {
        assert_eq!(self.ready().check(), (6, code));
        self.ready().good();
    }

    pub fn write_10(&self, lba: u32, data: &[u8]) -> Outcome {
        let blocks = (data.len() / BLOCK) as u16;
        self.write(&cdb_10(0x2A, 0, lba, blocks), data)
    }

    pub fn read_10(&self, lba: u32, blocks: u16) -> Outcome {
        self.read(&cdb_10(0x28, 0, lba, blocks), u32::from(blocks) * BLOCK as u32)
    }
}

fn outcome(reply: Reply, in_bytes: u32, out_bytes: u32, moved_in: Option<u32>) -> Outcome {
    let asked_in = moved_in.unwrap_or(reply.data_in.len() as u32);
    let residual = if out_bytes > 0 || reply.asked_out_bytes > 0 {
        Residual::of(out_bytes, reply.asked_out_bytes)
    } else {
        Residual::of(in_bytes, asked_in)
    };
    let mut data = reply.data_in;
    data.truncate(in_bytes as usize);
    Outcome { status: reply.status, sense: reply.sense, data, residual }
}

pub fn cdb_10(opcode: u8, flags: u8, lba: u32, blocks: u16) -> [u8; 10] {
    let mut cdb = [0; 10];
    (cdb[0], cdb[1]) = (opcode, flags);
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

pub fn cdb_12(opcode: u8, flags: u8, lba: u32, blocks: u32) -> [u8; 12] {
    let mut cdb = [0; 12];
    (cdb[0], cdb[1]) = (opcode, flags);
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[6..10].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

pub fn cdb_16(opcode: u8, flags: u8, lba: u64, blocks: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (opcode, flags);
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// COMPARE AND WRITE.
pub fn caw(lba: u64, blocks: u8) -> [u8; 16] {
    let mut cdb = cdb_16(0x89, 0, lba, 0);
    cdb[13] = blocks;
    cdb
}

pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}
