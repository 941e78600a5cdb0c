//! The first and last bytes of a run's network volumes, where partition tables and file systems are. It only reads.
//!
//! Volumes are opened as the run opens them: with the same sessions, paths, secrets and time limits. Files that the run
//! will create are left out.

use crate::{
    backend::{self, BackendKind, Backends, FinishedIo, Io, OpenedVolume, Reports, VolumeToOpen},
    error::RunError,
    record::Op,
    spec::{DriverChoice, RunSpec, VolumeSpec},
    worker::failed,
};
use linerate_io::{
    Driver, Nanos, Preference, Region, RegionId, Seg, Wait, net::netns, open_driver, with_driver,
};
use std::{collections::BTreeMap, path::Path, sync::Arc, thread};

/// How much of each end is read: the signature of a VMFS volume is just behind the first MiB.
pub const END_BYTES: u64 = 2 << 20;
/// The longest single read.
const PIECE_BYTES: u64 = 256 << 10;
/// How long all reads may take, and the logouts after them.
const READ_NS: Nanos = 30_000_000_000;
const CLOSE_NS: Nanos = 1_000_000_000;

/// A volume and the bytes at its ends.
#[derive(Clone, Debug)]
pub struct VolumeEnds {
    /// The volume's index in the specification.
    pub volume: u32,
    /// Size of the volume.
    pub capacity_bytes: u64,
    /// Size of its blocks.
    pub block_bytes: u32,
    /// The facts that it reports: vendor, product, serial and more.
    pub session: serde_json::Value,
    /// Its first 2 MiB, or all of it.
    pub first: Vec<u8>,
    /// Its last 2 MiB, or all of it.
    pub last: Vec<u8>,
    /// Why a part could not be read; then it is zeros.
    pub failure: Option<String>,
}

/// Reads the ends of every network volume of a specification, except of files that do not exist and that the run creates.
/// Fails as the run does if a volume cannot be opened.
pub fn read_ends(spec: &RunSpec) -> Result<Vec<VolumeEnds>, RunError> {
    spec.validate()?;
    let mut by_netns: BTreeMap<Option<&str>, Vec<u32>> = BTreeMap::new();
    for (index, volume) in spec.volumes.iter().enumerate().filter(|(_, one)| backend::is_remote(&one.url)) {
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

/// A volume that was opened, with its index in the specification.
type Indexed = (u32, (BackendKind, OpenedVolume));

/// One read of a piece; its index in the list is its slot.
struct EndRead {
    /// Index of the volume in the list of opened ones.
    volume: usize,
    /// On the volume.
    offset: u64,
    seg: Seg,
}

struct Reading<D: Driver> {
    driver: D,
    backends: Backends,
    region: Arc<Region>,
    region_id: RegionId,
    reports: Reports,
}

impl<D: Driver> Reading<D> {
    fn new(mut driver: D, volumes: usize) -> std::io::Result<Self> {
        let region = Region::anonymous(volumes as u64 * 2 * END_BYTES)?;
        let mut backends = Backends::default();
        let region_id = backends.attach(&mut driver, &region);
        Ok(Self { driver, backends, region, region_id, reports: Reports::default() })
    }

    fn read(mut self, spec: &RunSpec, volumes: &[u32]) -> Result<Vec<VolumeEnds>, RunError> {
        let (volumes, opened): (Vec<u32>, Vec<_>) = self.open(spec, volumes)?.into_iter().unzip();
        let of = |(at, (_, one)): (usize, &(BackendKind, OpenedVolume))| pieces(at, one, self.region_id);
        let pieces: Vec<EndRead> = opened.iter().enumerate().flat_map(of).collect();
        let failures =
            self.read_pieces(&opened, &pieces).map_err(|error| RunError::Host(error.to_string()))?;
        self.backends.close(&mut self.driver, CLOSE_NS);
        let ends = |(at, (_, one)): (usize, &(BackendKind, OpenedVolume))| {
            let part = |from: u64, len: u64| {
                let mut bytes = vec![0; len as usize];
                self.region.read(from, &mut bytes);
                bytes
            };
            let (len, place) = (END_BYTES.min(one.capacity_bytes), at as u64 * 2 * END_BYTES);
            VolumeEnds {
                volume: volumes[at],
                capacity_bytes: one.capacity_bytes,
                block_bytes: one.block_bytes,
                session: one.session.clone(),
                first: part(place, len),
                last: part(place + END_BYTES, len),
                failure: failures.get(&at).cloned(),
            }
        };
        Ok(opened.iter().enumerate().map(ends).collect())
    }

    fn open(&mut self, spec: &RunSpec, volumes: &[u32]) -> Result<Vec<Indexed>, RunError> {
        let named = |volume: u32| -> &VolumeSpec { &spec.volumes[volume as usize] };
        let mut started = Vec::new();
        for &index in volumes {
            let opening = VolumeToOpen {
                spec: named(index),
                index,
                writes: false,
                may_create: false,
                array_blocks: None,
            };
            let opened = self.backends.open(&mut self.driver, &opening);
            started.push(opened.map_err(|error| failed(named(index), error))?);
        }
        self.backends.wait_ready(&mut self.driver).map_err(|error| RunError::Host(error.message))?;
        let mut all = Vec::new();
        for ((kind, opened), &volume) in started.into_iter().zip(volumes) {
            match self.backends.finish_opening(&self.driver, kind, opened) {
                Ok(opened) => all.push((volume, (kind, opened))),
                Err(error) if error.is_missing && named(volume).create => {}
                Err(error) => return Err(failed(named(volume), error)),
            }
        }
        Ok(all)
    }

    /// Reads for at most `READ_NS`. Returns failures, by index of the volume.
    fn read_pieces(
        &mut self,
        opened: &[(BackendKind, OpenedVolume)],
        pieces: &[EndRead],
    ) -> std::io::Result<BTreeMap<usize, String>> {
        let mut left: Vec<bool> = vec![true; pieces.len()];
        let mut failures = BTreeMap::new();
        for (slot, piece) in pieces.iter().enumerate() {
            let (kind, volume) = &opened[piece.volume];
            let io = Io {
                slot: slot as u32,
                unit: volume.unit,
                op: Op::Read,
                offset: piece.offset,
                data: piece.seg,
                keep: true,
                durable: false,
            };
            self.backends.submit(*kind, &mut self.driver, &io, &mut self.reports);
        }
        let until = self.driver.now() + READ_NS;
        while left.contains(&true) && self.driver.now() < until {
            self.turn(until)?;
            for FinishedIo { slot, result } in self.reports.done.drain(..) {
                left[slot as usize] = false;
                if let Err(failure) = result {
                    failures.entry(pieces[slot as usize].volume).or_insert(failure.to_string());
                }
            }
            self.reports.notices.clear();
        }
        for (piece, _) in pieces.iter().zip(left).filter(|(_, left)| *left) {
            let late = format!("no answer within {} s", READ_NS / 1_000_000_000);
            failures.entry(piece.volume).or_insert(late);
        }
        Ok(failures)
    }

    fn turn(&mut self, until: Nanos) -> std::io::Result<()> {
        self.backends.flush(&mut self.driver);
        if self.reports.done.is_empty() {
            let due = self.backends.next_deadline::<D>().unwrap_or(until);
            let mut completions = Vec::new();
            self.driver.poll(Wait::Until(due.min(until)), &mut completions)?;
            for completion in completions {
                self.backends.complete(&mut self.driver, completion, &mut self.reports);
            }
        }
        let now = self.driver.now();
        self.backends.on_time(&mut self.driver, now, &mut self.reports);
        Ok(())
    }
}

/// The reads of both ends of a volume, each as long as the volume takes it.
fn pieces(at: usize, one: &OpenedVolume, region: RegionId) -> Vec<EndRead> {
    let len = END_BYTES.min(one.capacity_bytes);
    let limit = if one.max_transfer_bytes == 0 { PIECE_BYTES } else { one.max_transfer_bytes };
    let step = PIECE_BYTES.min(limit).max(one.block_bytes.into());
    let place = at as u64 * 2 * END_BYTES;
    let mut pieces = Vec::new();
    for (start, to) in [(0, place), (one.capacity_bytes - len, place + END_BYTES)] {
        let mut done = 0;
        while done < len {
            let seg = Seg { region, offset: to + done, len: step.min(len - done) as u32 };
            pieces.push(EndRead { volume: at, offset: start + done, seg });
            done += step;
        }
    }
    pieces
}
