//! The null backend: every I/O is done at once. It measures the generator itself: other results must be well below this
//! limit.

use super::{Backend, FinishedIo, Io, OpenError, OpenedVolume, Reports, VolumeToOpen};
use linerate_blame::Blame;
use linerate_io::{Completion, Driver, Nanos};

/// Volumes without a device. For tests, I/Os submitted during `stall` complete at its end.
#[derive(Debug, Default)]
pub(crate) struct Null {
    stall: Option<(Nanos, Nanos)>,
    held: Vec<u32>,
}

impl Null {
    /// Volumes that hang during a time.
    pub(crate) fn with_stall(stall: Option<(Nanos, Nanos)>) -> Self {
        Self { stall, held: Vec::new() }
    }
}

impl<D: Driver> Backend<D> for Null {
    fn open(&mut self, _: &mut D, opening: &VolumeToOpen<'_>) -> Result<OpenedVolume, OpenError> {
        let url = &opening.spec.url;
        let size = url.split_once(':').and_then(|(_, size)| size.parse().ok());
        let capacity_bytes = size.ok_or_else(|| {
            OpenError::new(Blame::User, format!("{url}: expected null:SIZE with the size in bytes"))
        })?;
        Ok(OpenedVolume {
            unit: 0,
            kind: "null",
            capacity_bytes,
            block_bytes: 512,
            max_transfer_bytes: 0,
            has_checksums: false,
            session: serde_json::Value::Null,
        })
    }

    fn submit(&mut self, driver: &mut D, io: &Io, reports: &mut Reports) {
        if let Some((from, to)) = self.stall
            && (from..to).contains(&driver.now())
        {
            self.held.push(io.slot);
            return;
        }
        reports.done.push(FinishedIo { slot: io.slot, result: Ok(()) });
    }

    fn sync(&mut self, _: &mut D, slot: u32, _: u32, reports: &mut Reports) {
        reports.done.push(FinishedIo { slot, result: Ok(()) });
    }

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
            reports.done.extend(self.held.drain(..).map(|slot| FinishedIo { slot, result: Ok(()) }));
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        if self.held.is_empty() { None } else { self.stall.map(|(_, to)| to) }
    }
}
