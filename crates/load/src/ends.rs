//! What the two ends of a run's LUNs hold: partition tables and file systems lie there. Nothing is written.
//!
//! LUNs are opened as the run would open them: same sessions, paths, secrets and time limits.

use crate::{
    backend::{Backend, Done, Io, OpenError, Opened, Reports, iscsi::Iscsi},
    record::Op,
    run::RunError,
    spec::{DriverChoice, RunSpec, VolumeSpec},
    worker::failed,
};
use linerate_io::{
    Driver, Nanos, Preference, Region, RegionId, Seg, Wait, net::netns, open_driver, with_driver,
};
use std::{collections::BTreeMap, path::Path, sync::Arc, thread};

/// How much of each end is read: a VMFS volume says what it is just behind the first MiB.
pub const END_BYTES: u64 = 2 << 20;
/// The longest single read.
const PIECE_BYTES: u64 = 256 << 10;
/// How long all reads may take, and the logouts after them.
const READ_NS: Nanos = 30_000_000_000;
const CLOSE_NS: Nanos = 1_000_000_000;

/// A LUN and what its ends hold.
#[derive(Clone, Debug)]
pub struct VolumeEnds {
    /// The volume's place in the specification.
    pub volume: u32,
    /// Size of the LUN.
    pub capacity_bytes: u64,
    /// Size of its blocks.
    pub block_bytes: u32,
    /// What it says it is: vendor, product, serial and more.
    pub session: serde_json::Value,
    /// Its first 2 MiB, or all of it.
    pub first: Vec<u8>,
    /// Its last 2 MiB, or all of it.
    pub last: Vec<u8>,
    /// Why a part could not be read; zeros stand for it.
    pub failure: Option<String>,
}

/// Reads the ends of every iSCSI volume of a specification. Fails as the run would if a LUN cannot be opened.
pub fn read_ends(spec: &RunSpec) -> Result<Vec<VolumeEnds>, RunError> {
    spec.validate()?;
    let mut by_netns: BTreeMap<Option<&str>, Vec<u32>> = BTreeMap::new();
    for (index, volume) in spec.volumes.iter().enumerate().filter(|(_, one)| one.url.starts_with("iscsi:")) {
        by_netns.entry(volume.netns.as_deref()).or_default().push(index as u32);
    }
    let mut all = Vec::new();
    for (netns, volumes) in by_netns {
        // A thread that has entered a namespace stays in it.
        let read = thread::scope(|scope| scope.spawn(|| read_in(netns, spec, &volumes)).join());
        all.extend(read.map_err(|_| RunError::Internal("reading the ends of the volumes failed".into()))??);
    }
    Ok(all)
}

fn read_in(netns: Option<&str>, spec: &RunSpec, volumes: &[u32]) -> Result<Vec<VolumeEnds>, RunError> {
    let host = |error: &dyn std::fmt::Display| RunError::Host(error.to_string());
    if let Some(path) = netns {
        netns::enter(Path::new(path)).map_err(|error| host(&error))?;
    }
    let preference = match spec.driver {
        DriverChoice::Auto => Preference::Auto,
        DriverChoice::IoUring => Preference::IoUring,
        DriverChoice::Epoll => Preference::Epoll,
    };
    with_driver!(open_driver(preference).map_err(|error| host(&error))?, |driver| {
        Reading::new(driver, volumes.len()).map_err(|error| host(&error))?.read(spec, volumes)
    })
}

/// One read of a piece; its place in the list is its slot.
struct Piece {
    unit: u32,
    /// On the LUN.
    offset: u64,
    seg: Seg,
}

struct Reading<D: Driver> {
    driver: D,
    iscsi: Iscsi,
    region: Arc<Region>,
    region_id: RegionId,
    reports: Reports,
}

impl<D: Driver> Reading<D> {
    fn new(mut driver: D, volumes: usize) -> std::io::Result<Self> {
        let region = Region::anonymous(volumes as u64 * 2 * END_BYTES)?;
        let mut iscsi = Iscsi::default();
        let region_id = iscsi.attach(&mut driver, &region);
        Ok(Self { driver, iscsi, region, region_id, reports: Reports::default() })
    }

    fn read(mut self, spec: &RunSpec, volumes: &[u32]) -> Result<Vec<VolumeEnds>, RunError> {
        let opened = self.open(spec, volumes)?;
        let pieces: Vec<Piece> = opened.iter().flat_map(|one| pieces(one, self.region_id)).collect();
        let failures = self.read_pieces(&pieces).map_err(|error| RunError::Host(error.to_string()))?;
        self.iscsi.close(&mut self.driver, CLOSE_NS);
        let ends = |(one, &volume): (&Opened, &u32)| {
            let part = |from: u64, len: u64| {
                let mut bytes = vec![0; len as usize];
                self.region.read(from, &mut bytes);
                bytes
            };
            let (len, place) = (END_BYTES.min(one.capacity_bytes), u64::from(one.unit) * 2 * END_BYTES);
            VolumeEnds {
                volume,
                capacity_bytes: one.capacity_bytes,
                block_bytes: one.block_bytes,
                session: one.session.clone(),
                first: part(place, len),
                last: part(place + END_BYTES, len),
                failure: failures.get(&one.unit).cloned(),
            }
        };
        Ok(opened.iter().zip(volumes).map(ends).collect())
    }

    fn open(&mut self, spec: &RunSpec, volumes: &[u32]) -> Result<Vec<Opened>, RunError> {
        let named = |volume: u32| -> &VolumeSpec { &spec.volumes[volume as usize] };
        for &volume in volumes {
            let unit = self.iscsi.open(&mut self.driver, named(volume), volume);
            unit.map_err(|error| failed(named(volume), error))?;
        }
        let ready = self.iscsi.wait_ready(&mut self.driver);
        ready.map_err(|error: OpenError| RunError::Host(error.message))?;
        let opened = |(unit, &volume): (usize, &u32)| {
            self.iscsi.opened(&self.driver, unit as u32).map_err(|error| failed(named(volume), error))
        };
        volumes.iter().enumerate().map(opened).collect()
    }

    /// Reads what can be read in time. Gives what failed, by unit.
    fn read_pieces(&mut self, pieces: &[Piece]) -> std::io::Result<BTreeMap<u32, String>> {
        let mut left: Vec<bool> = vec![true; pieces.len()];
        let mut failures = BTreeMap::new();
        for (slot, piece) in pieces.iter().enumerate() {
            let (slot, unit) = (slot as u32, piece.unit);
            let io = Io {
                slot,
                unit,
                op: Op::Read,
                offset: piece.offset,
                data: piece.seg,
                keep: true,
                durable: false,
            };
            self.iscsi.submit(&mut self.driver, &io, &mut self.reports);
        }
        let until = self.driver.now() + READ_NS;
        while left.contains(&true) && self.driver.now() < until {
            self.turn(until)?;
            for Done { slot, result } in self.reports.done.drain(..) {
                left[slot as usize] = false;
                if let Err(failure) = result {
                    failures.entry(pieces[slot as usize].unit).or_insert(failure.to_string());
                }
            }
            self.reports.notices.clear();
        }
        for (piece, _) in pieces.iter().zip(left).filter(|(_, left)| *left) {
            let late = format!("no answer within {} s", READ_NS / 1_000_000_000);
            failures.entry(piece.unit).or_insert(late);
        }
        Ok(failures)
    }

    fn turn(&mut self, until: Nanos) -> std::io::Result<()> {
        Backend::<D>::flush(&mut self.iscsi, &mut self.driver);
        if self.reports.done.is_empty() {
            let due = Backend::<D>::next_deadline(&self.iscsi).unwrap_or(until);
            let mut completions = Vec::new();
            self.driver.poll(Wait::Until(due.min(until)), &mut completions)?;
            for completion in completions {
                self.iscsi.complete(&mut self.driver, completion, &mut self.reports);
            }
        }
        let now = self.driver.now();
        self.iscsi.on_time(&mut self.driver, now, &mut self.reports);
        Ok(())
    }
}

/// The reads of both ends of a LUN, each as long as the LUN takes it.
fn pieces(one: &Opened, region: RegionId) -> Vec<Piece> {
    let len = END_BYTES.min(one.capacity_bytes);
    let limit = if one.max_transfer_bytes == 0 { PIECE_BYTES } else { one.max_transfer_bytes };
    let step = PIECE_BYTES.min(limit).max(one.block_bytes.into());
    let place = u64::from(one.unit) * 2 * END_BYTES;
    let mut pieces = Vec::new();
    for (start, to) in [(0, place), (one.capacity_bytes - len, place + END_BYTES)] {
        let mut at = 0;
        while at < len {
            let seg = Seg { region, offset: to + at, len: step.min(len - at) as u32 };
            pieces.push(Piece { unit: one.unit, offset: start + at, seg });
            at += step;
        }
    }
    pieces
}
