//! Opening: from a worker's part of the plan to a worker that is ready to start.

use super::{
    Flow, IoSlot, Volume, Worker,
    control::Control,
    expected,
    pause::{Pauses, ThinkTime},
    queue::SharedQueues,
    recorder::Recorder,
    upkeep::Upkeep,
};
use crate::{
    backend::{self, BackendKind, Backends, OpenError, OpenedVolume},
    error::RunError,
    facts::{Facts, VolumeFacts},
    payload::{
        Buffers, Payload,
        duplicates::{Duplicates, Pattern},
    },
    plan::{FlowPlan, RunPlan},
    record::{
        message::WorkerMessage,
        tally::{Needs, Tally},
    },
    spec::{MixPartSpec, RunSpec, ShareMode, StreamSpec, TraceSpec, VerifyMode, VolumeSpec},
    stream::{
        Sequence,
        arrival::Arrivals,
        share::Turns,
        trace::{Trace, TraceError},
    },
};
use linerate_blame::Blame;
use linerate_io::{Driver, Nanos, WaitMode, Waiter};
use linerate_iscsi_initiator::Remedy;
use std::{
    collections::{BTreeMap, BinaryHeap},
    ops::Range,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender},
    },
};

/// Changes to a run by tests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hooks {
    /// Null volumes hang during this time, in ns since the start.
    pub(crate) null_stall: Option<(u64, u64)>,
}

/// The input of a worker.
pub(crate) struct WorkerSetup {
    pub(crate) spec: Arc<RunSpec>,
    pub(crate) plan: Arc<RunPlan>,
    pub(crate) control: Arc<Control>,
    pub(crate) index: usize,
    pub(crate) hooks: Hooks,
    /// In virtual time: block sizes of the array's volumes, by name.
    pub(crate) virtual_time: Option<BTreeMap<String, u32>>,
    pub(crate) sender: SyncSender<WorkerMessage>,
    pub(crate) returned: Receiver<Box<Tally>>,
}

impl WorkerSetup {
    /// Whether any of the worker's volumes is a file or block device.
    pub(crate) fn has_files(&self) -> bool {
        self.plan.volumes_of(self.index).any(|volume| {
            backend::kind_of(&self.spec.volumes[volume as usize].url) == Some(BackendKind::File)
        })
    }
}

/// A worker that is ready: its driver, and its opened volumes.
pub(crate) struct ReadyWorker {
    pub(crate) driver: &'static str,
    pub(crate) facts: Facts,
    pub(crate) indices: Vec<u32>,
}

/// A worker that is ready, and the facts of its volumes with their indices.
pub(crate) type Prepared<D> = (Worker<D>, Vec<(u32, VolumeFacts)>);

/// Opens a worker's volumes. Returns the worker and the facts of its volumes with their indices.
pub(crate) fn open<D: Driver>(mut driver: D, setup: WorkerSetup) -> Result<Prepared<D>, RunError> {
    let mut backends = Backends::default();
    let opened = open_volumes(&mut backends, &mut driver, &setup)?;
    let mut opening = WorkerBuilder::new(&setup);
    for (index, _, volume) in &opened {
        opening.add_volume(*index, volume)?;
    }
    let queues = SharedQueues::new(&setup.spec, &mut opening.volumes, setup.index);
    let WorkerBuilder { flows, volumes, slot_sizes, facts, ratios, .. } = opening;
    let WorkerSetup { spec, plan, control, index, hooks, virtual_time, sender, returned } = setup;
    let verifies = spec.verify == VerifyMode::On;
    let own = verifies || opened.iter().any(|(_, _, volume)| volume.has_checksums);
    let in_virtual_time = virtual_time.is_some();
    // Virtual time does not pass while a thread polls.
    let wait = if in_virtual_time { WaitMode::Block } else { spec.wait };
    // Zeros take no memory on the disks of a run in virtual time, and there is no compression.
    let payload = if in_virtual_time && !verifies { Payload::Zeros } else { Payload::Random };
    let attach = |region: &_| backends.attach(&mut driver, region);
    let (buffers, places) =
        Buffers::new(attach, &slot_sizes, &ratios, (own, payload), (spec.seed, index as u32)).map_err(
            |error| {
                RunError::Host(format!("no memory for I/O buffers: {error}; lower outstanding or I/O sizes"))
            },
        )?;
    let mut needs = vec![Needs::default(); spec.streams.len()];
    for flow in plan.flows_of(index) {
        needs[flow.stream as usize] = Needs { served: true, open_loop: flow.arrival.is_some() };
    }
    let size = (index, flows.len(), volumes.len());
    let thinks = flows.iter().any(|flow| flow.think.is_some());
    let worker = Worker {
        recorder: Recorder::new(size, needs, control.schedule, in_virtual_time, (sender, returned)),
        has_ends: plan.to_end > 0,
        ready: Vec::with_capacity(volumes.len()),
        // Its next arrival, its beginning and its end.
        timers: BinaryHeap::with_capacity(3 * flows.len()),
        pauses: if thinks { Pauses::new(slot_sizes.len()) } else { Pauses::default() },
        stream_started: vec![0; spec.streams.len()],
        driver,
        spec,
        plan,
        control,
        index,
        hooks,
        backends,
        kinds: opened.iter().map(|(_, kind, _)| *kind).collect(),
        volumes,
        queues,
        flows,
        slots: places.into_iter().map(IoSlot::free).collect(),
        buffers,
        limit: 0.0,
        in_flight: 0,
        backlog: 0,
        end: Nanos::MAX,
        reports: crate::backend::Reports::default(),
        waiter: Waiter::new(wait),
        completions: Vec::new(),
        unpolled: 0,
        unreported: [0; 2],
    };
    Ok((worker, facts))
}

/// Opens all volumes of a worker; LUNs log in in parallel.
fn open_volumes<D: Driver>(
    backends: &mut Backends,
    driver: &mut D,
    setup: &WorkerSetup,
) -> Result<Vec<(u32, BackendKind, OpenedVolume)>, RunError> {
    let volume = |index: u32| &setup.spec.volumes[index as usize];
    let mut started = Vec::new();
    for index in setup.plan.volumes_of(setup.index) {
        let spec = volume(index);
        let is_written =
            |stream: &StreamSpec| stream.read_percent < 100.0 && stream.volumes.contains(&spec.name);
        let writes = setup.spec.streams.iter().any(is_written);
        let opening = backend::VolumeToOpen {
            spec,
            index,
            writes,
            may_create: true,
            array_blocks: setup.virtual_time.as_ref(),
        };
        let (kind, opened) = backends.open(driver, &opening).map_err(|error| failed(spec, error))?;
        started.push((index, kind, opened));
    }
    backends.wait_ready(driver).map_err(|error| RunError::Host(error.message))?;
    let finish = |(index, kind, opened)| {
        let opened = backends.finish_opening(driver, kind, opened);
        Ok((index, kind, opened.map_err(|error| failed(volume(index), error))?))
    };
    started.into_iter().map(finish).collect()
}

/// Builds a worker's volumes and flows.
struct WorkerBuilder<'a> {
    setup: &'a WorkerSetup,
    plans: Vec<FlowPlan>,
    /// Compression ratios in use.
    ratios: Vec<f64>,
    /// Those of streams with duplicates.
    patterns: Vec<Pattern>,
    flows: Vec<Flow>,
    volumes: Vec<Volume>,
    /// Largest read and write of every slot.
    slot_sizes: Vec<(u32, u32)>,
    facts: Vec<(u32, VolumeFacts)>,
}

impl<'a> WorkerBuilder<'a> {
    fn new(setup: &'a WorkerSetup) -> Self {
        Self {
            setup,
            plans: setup.plan.flows_of(setup.index),
            ratios: ratios(&setup.spec.streams),
            patterns: Vec::new(),
            flows: Vec::new(),
            volumes: Vec::new(),
            slot_sizes: Vec::new(),
            facts: Vec::new(),
        }
    }

    fn add_volume(&mut self, index: u32, opened: &OpenedVolume) -> Result<(), RunError> {
        let spec = &self.setup.spec;
        let this = &spec.volumes[index as usize];
        let size_bytes = usable_bytes(this, opened).map_err(|error| failed(this, error))?;
        let first_flow = self.flows.len() as u32;
        let mut largest = (0, 0);
        let mut turns = Vec::new();
        // The plans are in the order of volumes.
        let from = self.plans.partition_point(|flow| flow.volume < index);
        let to = self.plans.partition_point(|flow| flow.volume <= index);
        for at in from..to {
            let flow = self.plans[at];
            self.add_flow(&flow, size_bytes, opened).map_err(|error| failed(this, error))?;
            let stream = &spec.streams[flow.stream as usize];
            if stream.read_percent > 0.0 || stream.read_back {
                largest.0 = largest.0.max(stream.sizes.bounds().1);
            }
            if stream.read_percent < 100.0 {
                let sizes = stream.write_sizes.as_ref().unwrap_or(&stream.sizes);
                largest.1 = largest.1.max(sizes.bounds().1);
            }
            if flow.arrival.is_none() {
                // If shares are not kept, the streams take equal turns.
                turns.push(if spec.shares == ShareMode::Uncontrolled { 1.0 } else { flow.weight });
            }
        }
        let slots = self.add_slots(this, largest);
        let expected = (spec.verify == VerifyMode::On)
            .then(|| expected(size_bytes, opened.block_bytes, spec.seed))
            .transpose()
            .map_err(|error| failed(this, user(error.to_string())))?;
        self.volumes.push(Volume {
            index,
            unit: opened.unit,
            first_byte: this.first_byte,
            durable_writes: this.durable_writes,
            flows: first_flow..self.flows.len() as u32,
            closed: turns.len() as u32,
            free: slots.clone().rev().collect(),
            slots,
            listed: false,
            parked: None,
            expected,
            live: turns.len() as u32,
            turns: Turns::new(turns),
            started: 0,
            dead: false,
            errors_in_a_row: 0,
            upkeep: Upkeep::of(this),
        });
        self.facts.push((index, facts_of(this, opened, size_bytes, self.setup.index)));
        Ok(())
    }

    /// The slots of a volume, with the sizes of its largest read and write. A shared queue has those of its first volume.
    fn add_slots(&mut self, volume: &VolumeSpec, largest: (u32, u32)) -> Range<u32> {
        let queue = |of: &VolumeSpec| of.queue.as_ref().map(|queue| queue.name.clone());
        let all = &self.setup.spec.volumes;
        let is_mate = |other: &&Volume| queue(&all[other.index as usize]) == queue(volume);
        if let Some(first) = self.volumes.iter().find(|other| volume.queue.is_some() && is_mate(other)) {
            for slot in first.slots.clone() {
                let sizes = &mut self.slot_sizes[slot as usize];
                *sizes = (sizes.0.max(largest.0), sizes.1.max(largest.1));
            }
            return 0..0;
        }
        let first_slot = self.slot_sizes.len() as u32;
        self.slot_sizes.extend((0..volume.outstanding).map(|_| largest));
        first_slot..self.slot_sizes.len() as u32
    }

    fn add_flow(&mut self, plan: &FlowPlan, size_bytes: u64, opened: &OpenedVolume) -> Result<(), OpenError> {
        let spec = &self.setup.spec;
        let stream = &spec.streams[plan.stream as usize];
        check_blocks(stream, opened)?;
        let name = (spec.seed, plan.stream, plan.volume);
        let sequence = Sequence::new(stream, name, size_bytes, opened.block_bytes)
            .map_err(|error| user(format!("stream {}: {error}", stream.name)))?;
        let sequence = match &stream.trace {
            Some(trace) => sequence.replaying(read_trace(stream, trace, size_bytes, opened)?),
            None => sequence,
        };
        let ratio = self.ratios.iter().position(|ratio| ratio.total_cmp(&ratio_of(stream)).is_eq());
        let duplicates = self.duplicates(stream, &spec.volumes[plan.volume as usize].name, size_bytes)?;
        self.flows.push(Flow {
            stream: plan.stream,
            volume: self.volumes.len() as u32,
            sequence,
            arrivals: None,
            priority: plan.priority,
            timed: false,
            stops_at_end: stream.stops(),
            at_end: false,
            in_flight: 0,
            backlog: 0,
            ratio: ratio.unwrap_or(0) as u32,
            duplicates,
            think: stream.think_time.map(|think| ThinkTime {
                pause_ns: (think.pause_s * 1e9) as Nanos,
                after_ios: think.after_ios,
            }),
            is_waiting: false,
            ends: Nanos::MAX,
        });
        Ok(())
    }

    /// What makes the duplicates in the data of a stream, if it has any.
    fn duplicates(
        &mut self,
        stream: &StreamSpec,
        volume: &str,
        size_bytes: u64,
    ) -> Result<Option<Box<Duplicates>>, OpenError> {
        let Some(dedup) = stream.dedup else { return Ok(None) };
        let (unit, ratio, seed) = (dedup.unit_bytes.into(), ratio_of(stream), self.setup.spec.seed);
        let known = self.patterns.iter().find(|pattern| pattern.is_of(unit, ratio)).cloned();
        let pattern = known.unwrap_or_else(|| {
            self.patterns.push(Pattern::new(unit, ratio));
            self.patterns[self.patterns.len() - 1].clone()
        });
        let made = Duplicates::new(dedup, pattern, size_bytes, (seed, volume));
        made.map(|made| Some(Box::new(made)))
            .map_err(|error| user(format!("stream {}: {error}", stream.name)))
    }
}

impl<D: Driver> Worker<D> {
    /// Fixes all arrivals of the run, because its start is known now.
    pub(super) fn fix_arrivals(&mut self, start: Nanos) {
        for (flow, plan) in self.flows.iter_mut().zip(self.plan.flows_of(self.index)) {
            let name = (self.spec.seed, plan.stream, plan.volume);
            let begins = start + self.spec.streams[plan.stream as usize].start_ns();
            let drawn =
                |(process, rate_iops, phase)| Arrivals::of_flow(process, rate_iops, phase, begins, name);
            flow.arrivals = match flow.sequence.trace() {
                Some(trace) => Some(Arrivals::of_trace(trace, start)),
                None => plan.arrival.map(drawn),
            };
        }
        self.backends.stall_null(self.hooks.null_stall.map(|(from, to)| (start + from, start + to)));
    }
}

/// The trace of a stream, placed on an opened volume.
fn read_trace(
    stream: &StreamSpec,
    spec: &TraceSpec,
    size_bytes: u64,
    opened: &OpenedVolume,
) -> Result<Trace, OpenError> {
    let writes = stream.write_sizes.as_ref().unwrap_or(&stream.sizes);
    let largest = (stream.sizes.bounds().1, writes.bounds().1);
    Trace::read(spec, size_bytes, opened.block_bytes, largest).map_err(|error| {
        let blame = match error {
            TraceError::Unreadable(..) => Blame::Host,
            TraceError::Damaged(..) => Blame::Us,
            TraceError::TooLong { .. } => Blame::User,
        };
        OpenError::new(blame, format!("stream {}: {error}", stream.name))
    })
}

fn user(message: String) -> OpenError {
    OpenError::new(Blame::User, message)
}

/// The run's error for a volume that could not be opened.
pub(crate) fn failed(volume: &VolumeSpec, error: OpenError) -> RunError {
    let (volume, message) = (volume.name.clone(), error.message);
    match error.remedy {
        Some(Remedy::Credentials) => RunError::Credentials { volume, message },
        Some(Remedy::AccessState) => RunError::NotActive { volume, message },
        None => RunError::of_volume(volume, message, error.blame, error.refusal),
    }
}

/// Bytes of the device that the run uses.
fn usable_bytes(volume: &VolumeSpec, opened: &OpenedVolume) -> Result<u64, OpenError> {
    let block = u64::from(opened.block_bytes);
    let (first, capacity) = (volume.first_byte, opened.capacity_bytes);
    if first % block != 0 {
        return Err(user(format!("first_byte {first} is not a multiple of the block size ({block} bytes)")));
    }
    let rest = capacity.saturating_sub(first) / block * block;
    let wanted = volume.size_bytes.map_or(rest, |size| size / block * block);
    if rest == 0 || wanted > rest {
        let longer = if matches!(opened.kind, "file" | "smb") { "; --create lengthens the file" } else { "" };
        return Err(user(format!(
            "the volume has {}, too few for the {} that the workload uses from byte {first} on; use less of it: \
             --size, or size in the workload file{longer}",
            bytes_text(capacity),
            bytes_text(volume.size_bytes.unwrap_or(1).max(block)),
        )));
    }
    Ok(wanted)
}

/// A size in the largest unit that it is a multiple of.
fn bytes_text(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.iter().find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    unit.map_or_else(|| format!("{bytes} bytes"), |(unit, shift)| format!("{} {unit}", bytes >> shift))
}

/// A stream's sizes must suit the volume's blocks.
fn check_blocks(stream: &StreamSpec, opened: &OpenedVolume) -> Result<(), OpenError> {
    let block = opened.block_bytes;
    if !stream.granularity().is_multiple_of(block) {
        let size = stream.granularity();
        return Err(user(format!(
            "stream {}: its I/O sizes are multiples of {size} bytes, but the volume's blocks have {block} bytes",
            stream.name
        )));
    }
    let of_block = u64::from(block);
    // What follows other I/Os needs no grid of its own.
    let needs_grid =
        |part: &MixPartSpec| part.random_percent > 0.0 || !of_block.is_multiple_of(part.align_bytes);
    let mut grids = stream.mix.iter().filter(|part| needs_grid(part)).map(|part| part.align_bytes);
    let grid = stream.align_bytes.into_iter().chain(&mut grids).find(|align| !align.is_multiple_of(of_block));
    if let Some(align) = grid {
        return Err(user(format!(
            "stream {}: align_bytes {align} is not a multiple of the volume's blocks ({block} bytes)",
            stream.name
        )));
    }
    let largest = u64::from(stream.largest_io_bytes());
    if opened.max_transfer_bytes > 0 && largest > opened.max_transfer_bytes {
        return Err(user(format!(
            "stream {}: I/Os of {largest} bytes are larger than the volume takes at once ({} bytes)",
            stream.name, opened.max_transfer_bytes
        )));
    }
    Ok(())
}

fn ratio_of(stream: &StreamSpec) -> f64 {
    stream.compression_ratio.unwrap_or(1.0)
}

/// The compression ratios in use.
fn ratios(streams: &[StreamSpec]) -> Vec<f64> {
    let mut ratios: Vec<f64> = streams.iter().map(ratio_of).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.dedup();
    ratios
}

fn facts_of(volume: &VolumeSpec, opened: &OpenedVolume, size_bytes: u64, worker: usize) -> VolumeFacts {
    VolumeFacts {
        name: volume.name.clone(),
        kind: opened.kind.into(),
        worker,
        size_bytes,
        capacity_bytes: opened.capacity_bytes,
        block_bytes: opened.block_bytes,
        session: opened.session.clone(),
    }
}
