//! Runs in virtual time: the streams of a run on an array's volumes, without a network, as fast as this machine computes
//! them. Open this file first.
//!
//! Worker, streams and recorder are those of any run. Only the driver ([`driver::VirtualTimeDriver`]) differs: its
//! files are the array's volumes, and its clock is that of the array's tasks. When everything waits, the clock jumps to
//! the next event. A run of twenty minutes over modelled drives takes only the time to compute its I/Os, and two runs
//! of one specification give identical results.
//!
//! The volumes come from a [`VirtualArray`]: that of an array file (`array`), or one that a test makes.
//!
//! Network, initiator, target and the host's CPU are not modelled. Time passes on modelled drives only.

mod array;
mod driver;
mod virtual_array;

pub(crate) use virtual_array::ArrayReports;
pub use virtual_array::{MakeVirtualArray, VirtualArray, VirtualVolume};

use crate::{
    error::RunError,
    facts::{Facts, ThreadFacts},
    spec::{RunSpec, SpecError},
    worker::{self, ReadyWorker, WorkerSetup},
};
use driver::VirtualTimeDriver;
use linerate_io::{Nanos, system};
use linerate_storage::Executor;
use std::sync::{Arc, mpsc::Sender};

/// A specification as it runs in virtual time: by one worker, on the array's volumes only.
pub(crate) fn adapted(mut spec: RunSpec) -> Result<RunSpec, SpecError> {
    for volume in &mut spec.volumes {
        if !volume.url.starts_with("array:") {
            let key = format!("volumes.{}.url", volume.name);
            let problem = "in virtual time, volumes are those of the array file: array:NAME";
            return Err(SpecError::value(&key, problem));
        }
        volume.netns = None;
    }
    (spec.workers, spec.cpus) = (1, None);
    Ok(spec)
}

/// The thread of a run in virtual time: make the array, open its volumes, report, run.
pub(crate) fn work(
    mut setup: WorkerSetup,
    make: MakeVirtualArray,
    reports: &Arc<ArrayReports>,
    ready: &Sender<Result<ReadyWorker, RunError>>,
) {
    let mut executor = Executor::new();
    let runtime = executor.runtime();
    let virtual_array = match executor.run_in_virtual_time(make(runtime.clone())) {
        Some(Ok(virtual_array)) => virtual_array,
        Some(Err(error)) => return drop(ready.send(Err(error))),
        None => return drop(ready.send(Err(RunError::Internal("the array waits for nothing".into())))),
    };
    let blocks = virtual_array.volumes.iter().map(|volume| (volume.name.clone(), volume.block_bytes));
    setup.virtual_time = Some(blocks.collect());
    let (control, report) = (Arc::clone(&setup.control), virtual_array.report);
    let driver = VirtualTimeDriver::new(executor, virtual_array.volumes);
    match worker::open(driver, setup) {
        Err(error) => drop(ready.send(Err(error))),
        Ok((worker, facts)) => {
            let (indices, volumes) = facts.into_iter().unzip();
            let thread = ThreadFacts { thread_id: system::thread_id(), netns: None };
            let facts = Facts { volumes, threads: vec![thread], ..Facts::default() };
            let start = runtime.now();
            reports.put(0, &*report);
            let (watch, ends) = (Arc::clone(reports), report.clone());
            runtime.spawn(virtual_array::watch(runtime.clone(), start, control.schedule, watch, ends));
            let (alive, _ended) = std::sync::mpsc::channel();
            if ready.send(Ok(ReadyWorker { driver: driver::NAME, facts, indices })).is_ok() {
                worker.run(start, alive);
                reports.put(Nanos::MAX, &*report);
            }
        }
    }
}
