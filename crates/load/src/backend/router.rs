//! The backends of a worker, one row each: their URL schemes, and the dispatch of I/Os and completions.
//!
//! A new protocol needs a file with its [`Backend`] and a row in the table below. The rest of the crate names no protocol.
//! Dispatch is a `match` on one byte: no dynamic call and no allocation per I/O.

use super::{
    Backend, Io, OpenError, OpenedVolume, Reports, VolumeToOpen, file::Files, iscsi::Iscsi, null::Null,
    smb::Smb,
};
use crate::record::tally::NetworkTally;
use linerate_blame::Blame;
use linerate_io::{Completion, Driver, Nanos, Region, RegionId};
use std::sync::Arc;

/// From one row per backend, makes the type of kinds, the table of URL schemes and the dispatch. A row has kind, field
/// and type, whether its volumes are on another host, then its URL schemes, each with the form of such a URL.
macro_rules! backends {
    ($($kind:ident $field:ident: $type:ty, remote $remote:literal { $($scheme:literal: $form:literal),+ })+) => {
        /// Which backend a volume uses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum BackendKind {
            $($kind,)+
        }

        /// URL schemes, with the form of a URL that users write; empty for those that only this program writes.
        const SCHEMES: &[(&str, BackendKind, &str)] = &[$($(($scheme, BackendKind::$kind, $form),)+)+];

        /// Whether the volume is on another host: then its ends can be read only through its backend.
        pub(crate) fn is_remote(url: &str) -> bool {
            match kind_of(url) {
                $(Some(BackendKind::$kind) => $remote,)+
                None => false,
            }
        }

        /// One backend of each kind.
        #[derive(Debug, Default)]
        pub(crate) struct Backends {
            $($field: $type,)+
        }

        impl Backends {
            /// Opens a volume by its URL's scheme, or starts to open it; [`Self::finish_opening`] completes this.
            pub(crate) fn open<D: Driver>(
                &mut self,
                driver: &mut D,
                opening: &VolumeToOpen<'_>,
            ) -> Result<(BackendKind, OpenedVolume), OpenError> {
                let kind = kind_of(&opening.spec.url).ok_or_else(|| unknown_scheme(&opening.spec.url))?;
                let opened = match kind {
                    $(BackendKind::$kind => self.$field.open(driver, opening),)+
                };
                opened.map(|opened| (kind, opened))
            }

            /// Waits until every volume is open or has failed.
            pub(crate) fn wait_ready<D: Driver>(&mut self, driver: &mut D) -> Result<(), OpenError> {
                $(self.$field.wait_ready(driver)?;)+
                Ok(())
            }

            /// The opened volume, after [`Self::wait_ready`] has returned.
            pub(crate) fn finish_opening<D: Driver>(
                &self,
                driver: &D,
                kind: BackendKind,
                opened: OpenedVolume,
            ) -> Result<OpenedVolume, OpenError> {
                match kind {
                    $(BackendKind::$kind => self.$field.finish_opening(driver, opened),)+
                }
            }

            /// Queues an I/O.
            #[inline]
            pub(crate) fn submit<D: Driver>(
                &mut self,
                kind: BackendKind,
                driver: &mut D,
                io: &Io,
                reports: &mut Reports,
            ) {
                match kind {
                    $(BackendKind::$kind => self.$field.submit(driver, io, reports),)+
                }
            }

            /// Queues a flush of a volume's caches.
            pub(crate) fn sync<D: Driver>(
                &mut self,
                kind: BackendKind,
                driver: &mut D,
                (slot, unit): (u32, u32),
                reports: &mut Reports,
            ) {
                match kind {
                    $(BackendKind::$kind => self.$field.sync(driver, slot, unit, reports),)+
                }
            }

            /// Closes a volume without I/Os in flight and opens it again.
            pub(crate) fn reopen<D: Driver>(
                &mut self,
                kind: BackendKind,
                driver: &mut D,
                unit: u32,
            ) -> Result<(), OpenError> {
                match kind {
                    $(BackendKind::$kind => self.$field.reopen(driver, unit),)+
                }
            }

            /// Queues a change of a file's length.
            pub(crate) fn set_length<D: Driver>(
                &mut self,
                kind: BackendKind,
                driver: &mut D,
                (slot, unit): (u32, u32),
                length_bytes: u64,
                reports: &mut Reports,
            ) {
                match kind {
                    $(BackendKind::$kind => {
                        self.$field.set_length(driver, slot, unit, length_bytes, reports);
                    })+
                }
            }

            /// Sends the queues.
            #[inline]
            pub(crate) fn flush<D: Driver>(&mut self, driver: &mut D) {
                $(self.$field.flush(driver);)+
            }

            /// Handles a completion by its backend.
            #[inline]
            pub(crate) fn complete<D: Driver>(
                &mut self,
                driver: &mut D,
                completion: Completion<D::Socket>,
                reports: &mut Reports,
            ) {
                let rest = Some(completion);
                $(let rest = rest.and_then(|completion| self.$field.complete(driver, completion, reports));)+
                // A late completion of a closed file belongs to no backend.
                drop(rest);
            }

            /// Does the work that is due.
            pub(crate) fn on_time<D: Driver>(&mut self, driver: &mut D, now: Nanos, reports: &mut Reports) {
                $(self.$field.on_time(driver, now, reports);)+
            }

            /// When something is due next.
            pub(crate) fn next_deadline<D: Driver>(&self) -> Option<Nanos> {
                [$(Backend::<D>::next_deadline(&self.$field),)+].into_iter().flatten().min()
            }

            /// The network traffic since the last call.
            pub(crate) fn network_since_last<D: Driver>(&mut self, driver: &D) -> NetworkTally {
                let mut network = NetworkTally::default();
                $(self.$field.network_since_last(driver, &mut network);)+
                network
            }

            /// The name of a volume's path by its index.
            pub(crate) fn path_name<D: Driver>(&self, kind: BackendKind, unit: u32, path: usize) -> String {
                match kind {
                    $(BackendKind::$kind => Backend::<D>::path_name(&self.$field, unit, path),)+
                }
            }

            /// Closes every volume, in at most `timeout_ns` per backend.
            pub(crate) fn close<D: Driver>(&mut self, driver: &mut D, timeout_ns: Nanos) {
                $(self.$field.close(driver, timeout_ns);)+
            }
        }
    };
}

backends! {
    File files: Files, remote false { "file": "file:/path", "array": "" }
    Iscsi iscsi: Iscsi, remote true { "iscsi": "iscsi://..." }
    Smb smb: Smb, remote true { "smb": "smb://..." }
    Null null: Null, remote false { "null": "null:SIZE" }
}

impl Backends {
    /// Makes a region usable in I/Os of every backend. The initiator attaches it to the driver, because it also reads the
    /// region for data digests; so does the SMB client for signatures.
    pub(crate) fn attach<D: Driver>(&mut self, driver: &mut D, region: &Arc<Region>) -> RegionId {
        let id = self.iscsi.attach(driver, region);
        self.smb.add_region(id, Arc::clone(region));
        id
    }

    /// For tests: null volumes hang during a time.
    pub(crate) fn stall_null(&mut self, stall: Option<(Nanos, Nanos)>) {
        self.null = Null::with_stall(stall);
    }
}

/// The backend of a URL; none if its scheme is unknown.
pub(crate) fn kind_of(url: &str) -> Option<BackendKind> {
    let (scheme, _) = url.split_once(':')?;
    SCHEMES.iter().find(|(known, ..)| *known == scheme).map(|(_, kind, _)| *kind)
}

fn unknown_scheme(url: &str) -> OpenError {
    let forms: Vec<&str> = SCHEMES.iter().map(|(.., form)| *form).filter(|form| !form.is_empty()).collect();
    OpenError::new(Blame::User, format!("{url}: expected {}", forms.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_opened_by_its_scheme() {
        assert_eq!(kind_of("iscsi://10.0.0.1/iqn.2026-11.lab:a/0"), Some(BackendKind::Iscsi));
        assert_eq!(kind_of("file:/tmp/a"), Some(BackendKind::File));
        assert_eq!(kind_of("array:v1"), Some(BackendKind::File));
        assert_eq!(kind_of("null:4096"), Some(BackendKind::Null));
        assert_eq!(kind_of("smb://server/share/file"), Some(BackendKind::Smb));
        assert_eq!((kind_of("nfs://server/share"), kind_of("/dev/sdb")), (None, None));
        let message = unknown_scheme("nfs:x").message;
        assert_eq!(message, "nfs:x: expected file:/path or iscsi://... or smb://... or null:SIZE");
    }
}
