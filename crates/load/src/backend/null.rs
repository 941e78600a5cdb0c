//! The null backend: every I/O is done at once. It measures the generator itself, the ceiling that other results must
//! stay well below.

use super::{Backend, Done, Io, Opened, Reports};
use linerate_io::{Completion, Driver, Nanos};

/// Volumes that are not there. I/Os submitted during `stall` complete at its end, which is how tests see a device hang.
#[derive(Debug, Default)]
pub(crate) struct Null {
    stall: Option<(Nanos, Nanos)>,
    held: Vec<u32>,
}

impl Null {
    /// Volumes that hang from one time to another.
    pub(crate) fn with_stall(stall: Option<(Nanos, Nanos)>) -> Self {
        Self { stall, held: Vec::new() }
    }

    /// A volume of this size.
    pub(crate) fn open(capacity_bytes: u64) -> Opened {
        Opened {
            unit: 0,
            kind: "null",
            capacity_bytes,
            block_bytes: 512,
            max_transfer_bytes: 0,
            session: serde_json::Value::Null,
        }
    }
}

impl<D: Driver> Backend<D> for Null {
    fn submit(&mut self, driver: &mut D, io: &Io, reports: &mut Reports) {
        if let Some((from, to)) = self.stall
            && (from..to).contains(&driver.now())
        {
            self.held.push(io.slot);
            return;
        }
        reports.done.push(Done { slot: io.slot, result: Ok(()) });
    }

    fn flush(&mut self, _: &mut D) {}

    fn complete(
        &mut self,
        _: &mut D,
        completion: Completion<D::Socket>,
        _: &mut Reports,
    ) -> Option<Completion<D::Socket>> {
        Some(completion)
    }

    fn on_time(&mut self, _: &mut D, now: Nanos, reports: &mut Reports) {
        if self.stall.is_some_and(|(_, to)| now >= to) {
            reports.done.extend(self.held.drain(..).map(|slot| Done { slot, result: Ok(()) }));
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        if self.held.is_empty() { None } else { self.stall.map(|(_, to)| to) }
    }

    fn close(&mut self, _: &mut D, _: Nanos) {}
}
