//! A client that writes stamped blocks and notes when each was sent, and since when it must survive.

use crate::support::{Client, write10};
use fastrand::Rng;
use linerate_io::system::now_ns;
use linerate_iscsi_proto::pdu::Response;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

pub(crate) const BLOCK_BYTES: usize = 4096;
const SECTOR_BYTES: usize = 512;
/// So few that most are written many times.
const BLOCKS: u32 = 192;
/// Writes in flight: one alone, a few, and many.
const DEPTHS: [usize; 3] = [1, 4, 32];
/// Writes between two changes of the depth.
const SPELL: usize = 40;

/// Since when a write must survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durable {
    /// Since its own answer.
    Acknowledged,
    /// Since the answer to a SYNCHRONIZE CACHE that was sent later.
    Synchronized,
}

/// A write of one block.
#[derive(Clone, Copy, Debug)]
struct StampedWrite {
    block: u32,
    /// Counts the writes of this block, from 1.
    version: u64,
    sent_ns: u64,
    durable_ns: Option<u64>,
}

/// The client, and all it wrote.
pub(crate) struct Writer {
    client: Client,
    durable: Durable,
    rng: Rng,
    writes: Vec<StampedWrite>,
    versions: BTreeMap<u32, u64>,
}

impl Writer {
    pub(crate) fn new(portal: SocketAddr, durable: Durable, seed: u64) -> Self {
        let mut client = Client::login(portal, 1, "ImmediateData=Yes\0InitialR2T=Yes\0");
        client.clear_attention();
        Self { client, durable, rng: Rng::with_seed(seed), writes: Vec::new(), versions: BTreeMap::new() }
    }

    /// Writes so many blocks, at changing depths.
    pub(crate) fn write(&mut self, count: usize) {
        for spell in 0..count.div_ceil(SPELL) {
            self.spell(DEPTHS[spell % DEPTHS.len()]);
            if self.durable == Durable::Synchronized {
                self.synchronize();
            }
        }
    }

    /// Writes [`SPELL`] blocks with `depth` in flight, no block twice at a time, and waits for all of them.
    fn spell(&mut self, depth: usize) {
        let mut flying: BTreeMap<u32, usize> = BTreeMap::new();
        let mut busy = BTreeSet::new();
        let mut left = SPELL;
        while left > 0 || !flying.is_empty() {
            while left > 0 && flying.len() < depth {
                let block =
                    std::iter::repeat_with(|| self.rng.u32(0..BLOCKS)).find(|block| busy.insert(*block));
                let (tag, index) = self.send(block.unwrap());
                flying.insert(tag, index);
                left -= 1;
            }
            let pdu = self.client.receive().expect("an answer");
            let now = now_ns();
            let Response::Scsi(response) = pdu.response else { panic!("{pdu:?}") };
            assert_eq!(response.status, 0, "{response:?}");
            let write = &mut self.writes[flying.remove(&response.itt).unwrap()];
            busy.remove(&write.block);
            if self.durable == Durable::Acknowledged {
                write.durable_ns = Some(now);
            }
        }
    }

    /// Its task tag, and its index.
    fn send(&mut self, block: u32) -> (u32, usize) {
        let version = self.versions.entry(block).or_default();
        *version += 1;
        let write = StampedWrite { block, version: *version, sent_ns: now_ns(), durable_ns: None };
        let bytes = stamped(block, write.version);
        let lba = block * (BLOCK_BYTES / SECTOR_BYTES) as u32;
        let mut command = self.client.command(write10(lba, bytes.len()), false, true, bytes.len() as u32);
        command.data_len = bytes.len() as u32;
        self.client.send(|bhs| command.emit(bhs), &bytes);
        self.writes.push(write);
        (command.itt, self.writes.len() - 1)
    }

    /// SYNCHRONIZE CACHE (10): all writes answered before it was sent survive since its answer.
    fn synchronize(&mut self) {
        let mut cdb = [0; 16];
        cdb[0] = 0x35;
        let command = self.client.command(cdb, false, false, 0);
        self.client.send(|bhs| command.emit(bhs), &[]);
        assert_eq!(self.client.status(), 0);
        let now = now_ns();
        for write in self.writes.iter_mut().filter(|write| write.durable_ns.is_none()) {
            write.durable_ns = Some(now);
        }
    }

    /// What is wrong with the volume after a power cut at this time: the first sector of each block that holds neither what
    /// had to survive nor something newer that was sent.
    pub(crate) fn wrong(&self, volume: &[u8], cut_ns: u64) -> Vec<String> {
        let newest = |block, is_in: &dyn Fn(&StampedWrite) -> bool| {
            let writes = self.writes.iter().filter(|write| write.block == block && is_in(write));
            writes.map(|write| write.version).max().unwrap_or(0)
        };
        let wrong = |block: u32| {
            let least = newest(block, &|write| write.durable_ns.is_some_and(|at| at < cut_ns));
            let most = newest(block, &|write| write.sent_ns < cut_ns);
            // A file that is missing or short holds nothing there.
            let place = volume.get(block as usize * BLOCK_BYTES..).and_then(|rest| rest.get(..BLOCK_BYTES));
            let bytes = place.unwrap_or(&[0; BLOCK_BYTES]);
            let found = bytes.chunks(SECTOR_BYTES).map(|sector| version_of(block, sector));
            let bad = found.clone().find(|found| !found.is_some_and(|at| (least..=most).contains(&at)));
            bad.map(|found| format!("block {block} holds {found:?}, not {least} to {most}"))
        };
        (0..BLOCKS).filter_map(wrong).collect()
    }
}

/// A block of which each sector says which block it is, and which version.
fn stamped(block: u32, version: u64) -> Vec<u8> {
    let mut sector = vec![block as u8 ^ version as u8; SECTOR_BYTES];
    sector[..8].copy_from_slice(&version.to_be_bytes());
    sector[8..12].copy_from_slice(&block.to_be_bytes());
    sector.repeat(BLOCK_BYTES / SECTOR_BYTES)
}

/// The version that a sector of this block holds; 0: it was never written. None: it holds something else.
fn version_of(block: u32, sector: &[u8]) -> Option<u64> {
    if sector.iter().all(|&byte| byte == 0) {
        return Some(0);
    }
    let version = u64::from_be_bytes(sector[..8].try_into().ok()?);
    (sector == &stamped(block, version)[..SECTOR_BYTES]).then_some(version)
}
