//! The array of a run in virtual time, and its reports during the run.

use crate::{error::RunError, schedule::RunSchedule};
use futures::future::LocalBoxFuture;
use linerate_io::Nanos;
use linerate_storage::{Disk, Runtime};
use std::{
    collections::BTreeMap,
    fmt,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
};

/// An array's volumes, and its report.
pub struct VirtualArray {
    /// The volumes.
    pub volumes: Vec<VirtualVolume>,
    /// The array's status as JSON; its counters only grow.
    pub report: Rc<dyn Fn() -> String>,
}

/// A volume that streams can use as `array:NAME`.
#[derive(Clone)]
pub struct VirtualVolume {
    /// Its name.
    pub name: String,
    /// Its contents.
    pub disk: Rc<dyn Disk>,
    /// Its logical block size: that of the disk, or larger.
    pub block_bytes: u32,
}

/// Makes the virtual array, on the run's own thread and clock. It ends before the run begins.
pub type MakeVirtualArray =
    Box<dyn FnOnce(Runtime) -> LocalBoxFuture<'static, Result<VirtualArray, RunError>> + Send>;

impl fmt::Debug for VirtualVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualVolume").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for VirtualArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.volumes.iter().map(|volume| &volume.name).collect();
        f.debug_struct("VirtualArray").field("volumes", &names).finish_non_exhaustive()
    }
}

/// The reports of the virtual array: at the start, at the end of every interval, at the end of the run.
#[derive(Debug, Default)]
pub(crate) struct ArrayReports(Mutex<BTreeMap<Nanos, String>>);

impl ArrayReports {
    /// Keeps the report of an instant since the start.
    pub(super) fn put(&self, at: Nanos, report: &dyn Fn() -> String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(at, report());
    }

    /// The report of an instant since the start or the next one after it; of a run that ended before, its last one.
    /// Earlier ones are dropped.
    pub(crate) fn take(&self, at: Nanos) -> Option<String> {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let later = reports.split_off(&at);
        let last = reports.pop_last();
        *reports = if later.is_empty() { last.into_iter().collect() } else { later };
        reports.first_key_value().map(|(_, report)| report.clone())
    }
}

/// Reports at the end of every interval.
pub(super) async fn watch(
    runtime: Runtime,
    start: Nanos,
    schedule: RunSchedule,
    reports: Arc<ArrayReports>,
    report: Rc<dyn Fn() -> String>,
) {
    for index in 0.. {
        let cut = schedule.cut(index);
        runtime.sleep_until(start + cut).await;
        reports.put(cut, &*report);
        if cut >= schedule.end() {
            break;
        }
    }
}
