//! The backends of a worker: files, iSCSI LUNs, files of SMB shares, null volumes. Open this file first; `router.rs`
//! has the table of them.
//!
//! A worker has one backend of each kind, and each serves all of the worker's volumes of its kind. So iSCSI volumes can
//! share sessions, and one flush per turn sends everything.
//!
//! The contract: [`Backend::submit`] queues, [`Backend::flush`] sends the queue, completions of the driver go to
//! [`Backend::complete`]; each submitted I/O ends in exactly one [`FinishedIo`]. A backend allocates nothing per I/O.

mod file;
mod iscsi;
mod null;
mod router;
mod smb;
mod tcp;

pub(crate) use router::{BackendKind, Backends, is_remote, kind_of};
pub(crate) use smb::share_session_json;

use crate::{
    error::{RunError, WriteRefusal},
    record::{Op, tally::NetworkTally},
    spec::VolumeSpec,
};
use linerate_blame::Blame;
use linerate_io::{Completion, Driver, Nanos, Seg};
use linerate_iscsi_initiator::{IoError, Remedy, SenseKey, sense_code};
use linerate_smb::{SmbIoError, SmbRefusal};
use std::{collections::BTreeMap, fmt, io};

/// Notices that wait to be reported; more than one turn of a worker can add.
const NOTICES_MAX: usize = 100_000;

/// One I/O for a backend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    /// The worker's name for it.
    pub(crate) slot: u32,
    /// The backend's volume.
    pub(crate) unit: u32,
    pub(crate) op: Op,
    /// Offset on the device, in bytes.
    pub(crate) offset: u64,
    /// The data; its length is the I/O's.
    pub(crate) data: Seg,
    /// The data of a read are checked.
    pub(crate) keep: bool,
    /// A write is on stable storage when it is done.
    pub(crate) durable: bool,
}

/// The end of an I/O.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FinishedIo {
    pub(crate) slot: u32,
    pub(crate) result: Result<(), Failure>,
}

/// Why an I/O failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// A system call failed.
    System(io::ErrorKind, Option<i32>),
    /// Fewer bytes than asked for.
    Short {
        /// Bytes moved.
        moved: u32,
    },
    /// The initiator reported an error.
    Iscsi(IoError),
    /// The SMB client reported an error.
    Smb(SmbIoError),
}

impl Failure {
    /// The volume will not return during this run, or has no space for any write. One that the array protects from
    /// writes can still be read.
    pub(crate) fn is_final(self) -> bool {
        self.write_refusal().is_some_and(|refusal| refusal != WriteRefusal::Protected)
            || self.refusal() == Some(SmbRefusal::NoSpace)
            || matches!(
                self,
                Self::Iscsi(IoError::SessionLost | IoError::DeviceChanged | IoError::Closed)
                    | Self::Smb(SmbIoError::Lost | SmbIoError::Closed)
            )
    }

    /// Why the volume takes no write, if that is the failure and a file of this host or an array says so.
    pub(crate) fn write_refusal(self) -> Option<WriteRefusal> {
        match self {
            Self::System(kind, _) => WriteRefusal::of_call(kind),
            Self::Iscsi(IoError::CheckCondition(sense)) if sense.key == SenseKey::DataProtect => {
                let is_full = sense.code == sense_code::SPACE_ALLOCATION_FAILED;
                Some(if is_full { WriteRefusal::FullArray } else { WriteRefusal::Protected })
            }
            _ => None,
        }
    }

    /// The error of a run that ends with this failure.
    pub(crate) fn ends_run(self, volume: String, message: String) -> RunError {
        match self.write_refusal() {
            Some(refusal) => RunError::NoWrite { volume, message, refusal },
            None => RunError::of_volume(volume, message, self.blame(), self.refusal()),
        }
    }

    /// Whose fault.
    pub(crate) fn blame(self) -> Blame {
        if let Some(refusal) = self.write_refusal() {
            return refusal.blame();
        }
        match self {
            Self::System(io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied, _) => Blame::User,
            Self::System(io::ErrorKind::OutOfMemory, _) => Blame::Host,
            Self::System(..) | Self::Short { .. } | Self::Iscsi(_) => Blame::Peer,
            Self::Smb(error) => error.blame(),
        }
    }

    /// What the server of a share refused, if that has a remedy of its own.
    pub(crate) fn refusal(self) -> Option<SmbRefusal> {
        match self {
            Self::Smb(error) => error.refusal(),
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(_, Some(code)) => io::Error::from_raw_os_error(*code).fmt(f),
            Self::System(kind, None) => kind.fmt(f),
            Self::Short { moved } => write!(f, "only {moved} bytes moved (the volume has become smaller?)"),
            Self::Iscsi(error) => error.fmt(f),
            Self::Smb(error) => error.fmt(f),
        }
    }
}

/// Something that happened to a volume besides I/Os.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    /// When, on the driver's clock.
    pub(crate) at: Nanos,
    /// The backend that reports it.
    pub(crate) backend: BackendKind,
    /// The backend's volume; None: several.
    pub(crate) unit: Option<u32>,
    /// The path that it concerns, by its index in the volume's list.
    pub(crate) path: Option<usize>,
    /// The event's kind.
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) blame: Blame,
    /// What the server of a share refused.
    pub(crate) refusal: Option<SmbRefusal>,
    /// The volume will not return.
    pub(crate) fatal: bool,
}

/// Reports of backends; reused, so that they allocate nothing after the start.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    pub(crate) done: Vec<FinishedIo>,
    pub(crate) notices: Vec<Notice>,
}

impl Reports {
    /// Adds a notice. Before the start and after the end they are not read, and a target may send many of them.
    fn note(&mut self, notice: Notice) {
        if notice.fatal || self.notices.len() < NOTICES_MAX {
            self.notices.push(notice);
        }
    }
}

/// A volume to open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VolumeToOpen<'a> {
    pub(crate) spec: &'a VolumeSpec,
    /// Its index in the run's specification.
    pub(crate) index: u32,
    /// Some stream writes it.
    pub(crate) writes: bool,
    /// A file that the specification wants to be created may be.
    pub(crate) may_create: bool,
    /// In virtual time: block sizes of the array's volumes in bytes, by name.
    pub(crate) array_blocks: Option<&'a BTreeMap<String, u32>>,
}

/// A volume that was opened.
#[derive(Clone, Debug)]
pub(crate) struct OpenedVolume {
    /// The backend's volume.
    pub(crate) unit: u32,
    /// `iscsi`, `smb`, `file`, `block`, `null` or `array`.
    pub(crate) kind: &'static str,
    pub(crate) capacity_bytes: u64,
    pub(crate) block_bytes: u32,
    /// Largest single transfer; 0 = no limit.
    pub(crate) max_transfer_bytes: u64,
    /// Data digests or signatures are sent with its data, which must be the same until then.
    pub(crate) has_checksums: bool,
    pub(crate) session: serde_json::Value,
}

/// A kind of volume. See the module text.
pub(crate) trait Backend<D: Driver> {
    /// Opens a volume, or starts to.
    fn open(&mut self, driver: &mut D, opening: &VolumeToOpen<'_>) -> Result<OpenedVolume, OpenError>;

    /// Waits until every volume is open or has failed. For backends whose [`Self::open`] only starts it.
    fn wait_ready(&mut self, _: &mut D) -> Result<(), OpenError> {
        Ok(())
    }

    /// The opened volume, after [`Self::wait_ready`]. `opened` is the result of [`Self::open`].
    fn finish_opening(&self, _: &D, opened: OpenedVolume) -> Result<OpenedVolume, OpenError> {
        Ok(opened)
    }

    /// Queues an I/O.
    fn submit(&mut self, driver: &mut D, io: &Io, reports: &mut Reports);

    /// Queues a flush of the volume's caches: what was written before is on stable storage when it is done.
    fn sync(&mut self, driver: &mut D, slot: u32, unit: u32, reports: &mut Reports);

    /// Closes a volume without I/Os in flight and opens it again. A LUN has nothing to open: the session to its target
    /// stays, as the host's does when a program closes its disk.
    fn reopen(&mut self, _: &mut D, _unit: u32) -> Result<(), OpenError> {
        Ok(())
    }

    /// Queues a change of a file's length. Only files have one.
    fn set_length(&mut self, _: &mut D, slot: u32, _: u32, _length_bytes: u64, reports: &mut Reports) {
        let result = Err(Failure::System(io::ErrorKind::Unsupported, None));
        reports.done.push(FinishedIo { slot, result });
    }

    /// Sends the queue.
    fn flush(&mut self, _: &mut D) {}

    /// Handles a completion; returns one that belongs to another backend.
    fn complete(
        &mut self,
        driver: &mut D,
        completion: Completion<D::Socket>,
        reports: &mut Reports,
    ) -> Option<Completion<D::Socket>>;

    /// Does the work that is due.
    fn on_time(&mut self, _: &mut D, _: Nanos, _: &mut Reports) {}

    /// When something is due next.
    fn next_deadline(&self) -> Option<Nanos> {
        None
    }

    /// Adds the network traffic since the last call.
    fn network_since_last(&mut self, _: &D, _: &mut NetworkTally) {}

    /// The name of a volume's path by its index; empty if volumes have no paths.
    fn path_name(&self, _: u32, _: usize) -> String {
        String::new()
    }

    /// Closes every volume, in at most `timeout_ns`.
    fn close(&mut self, _: &mut D, _: Nanos) {}
}

/// A volume could not be opened.
#[derive(Clone, Debug)]
pub(crate) struct OpenError {
    pub(crate) message: String,
    pub(crate) blame: Blame,
    /// What can be done about an array that is up.
    pub(crate) remedy: Option<Remedy>,
    /// What the server of a share refused.
    pub(crate) refusal: Option<SmbRefusal>,
    /// It does not exist.
    pub(crate) is_missing: bool,
}

impl OpenError {
    /// An error with its blame.
    pub(crate) fn new(blame: Blame, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { message, blame, remedy: None, refusal: None, is_missing: false }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;
    use linerate_iscsi_initiator::SenseCode;

    #[test]
    fn a_volume_that_takes_no_write_ends_a_run_with_its_own_remedy() {
        let sense = |key, code| Failure::Iscsi(IoError::CheckCondition(SenseCode::new(key, code)));
        let refusal = |failure: Failure| match failure.ends_run("v".into(), "m".into()) {
            RunError::NoWrite { refusal, .. } => Some((refusal, failure.is_final(), failure.blame())),
            _ => None,
        };
        let full = Some((WriteRefusal::FullDisk, true, Blame::Host));
        assert_eq!(refusal(Failure::System(io::ErrorKind::StorageFull, Some(28))), full);
        assert_eq!(refusal(Failure::System(io::ErrorKind::QuotaExceeded, Some(122))), full);
        assert_eq!(
            refusal(sense(SenseKey::DataProtect, sense_code::SPACE_ALLOCATION_FAILED)),
            Some((WriteRefusal::FullArray, true, Blame::Peer))
        );
        assert_eq!(
            refusal(sense(SenseKey::DataProtect, 0x2701)),
            Some((WriteRefusal::Protected, false, Blame::User))
        );
        let medium = sense(SenseKey::MediumError, 0x1100);
        assert_eq!((refusal(medium), medium.is_final(), medium.blame()), (None, false, Blame::Peer));
        assert!(!Failure::System(io::ErrorKind::Other, Some(5)).is_final());
    }
}
