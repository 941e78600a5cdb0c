//! The connection to the volumes of a partner array: our own initiator, on its own thread for the time of a copy.
//!
//! - `mod.rs`: [`ReplicationLink`], the engine's end. It puts requests into the inbox of the thread; results return
//!   through the engine's own tasks.
//! - `sender.rs`: the loop of the thread: requests become commands, completions become results.
//! - `inflight.rs`: commands in flight, their memory, and the requests that wait for them.

mod inflight;
mod sender;

use bytes::Bytes;
use futures::{FutureExt, channel::oneshot};
use linerate_io::Preference;
use linerate_iscsi_initiator::{
    Credentials, DigestChoice, LunAddress, PortalAddress, Secret, SessionOptions,
};
use linerate_storage::replica::{
    Link, LinkError, Sending,
    service::{Access, LinkSpec},
};
use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    thread,
};

/// The CHAP names of the two ends; their secrets are made for one transfer.
pub(crate) const USER: &str = "source";
/// See [`USER`].
pub(crate) const TARGET_USER: &str = "copy";

/// Wakes the waiting callers.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// Jobs of the sender.
enum LinkOperation {
    Write {
        volume: usize,
        offset_bytes: u64,
        data: Bytes,
    },
    Discard {
        volume: usize,
        offset_bytes: u64,
        len_bytes: u64,
    },
    /// SYNCHRONIZE CACHE of all volumes.
    Flush,
}

/// A request, and the receiver of its result.
struct LinkRequest {
    operation: LinkOperation,
    reply: oneshot::Sender<Result<(), LinkError>>,
}

/// The queue of jobs for the sender.
#[derive(Default)]
struct Inbox {
    requests: Mutex<RequestQueue>,
    /// Set by the thread once it has a driver.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct RequestQueue {
    list: Vec<LinkRequest>,
    /// Why no more requests are accepted: the link is closed, or the sender has ended.
    closed: Option<LinkError>,
}

/// A [`Link`] to the logical units that a partner exports. Closed when dropped.
pub(crate) struct ReplicationLink {
    inbox: Arc<Inbox>,
}

/// The configuration of the sender.
struct LinkRoute {
    volumes: Vec<LunAddress>,
    options: SessionOptions,
    credentials: Credentials,
    driver: Preference,
}

impl ReplicationLink {
    /// Begins to connect. An invalid configuration is an error here; the first request returns whether the partner
    /// admits us.
    pub(crate) fn connect(
        spec: &LinkSpec,
        access: &Access,
        initiator_name: &str,
        driver: Preference,
        wake: Wake,
    ) -> Result<Self, LinkError> {
        let portal =
            PortalAddress::parse(&spec.portal).map_err(|error| LinkError::Setup(error.to_string()))?;
        let volumes = access.luns.iter().map(|lun| LunAddress {
            portal: portal.clone(),
            target: access.target.clone(),
            lun: *lun,
        });
        // The target proves a secret too: the array at this address must be the one that prepared the transfer.
        let credentials = Credentials {
            user: Some(USER.into()),
            secret: Some(Secret::new(access.login.secret.as_str())),
            mutual_user: Some(TARGET_USER.into()),
            mutual_secret: Some(Secret::new(access.login.target_secret.as_str())),
        };
        let options = options(initiator_name);
        let route = LinkRoute { volumes: volumes.collect(), options, credentials, driver };
        let inbox = Arc::new(Inbox::default());
        let theirs = Arc::clone(&inbox);
        let builder = thread::Builder::new().name("array-partner".into());
        let sender = builder.spawn(move || sender::run(&route, &theirs, &wake));
        sender.map_err(|error| LinkError::Broken(format!("cannot start a thread: {error}")))?;
        Ok(Self { inbox })
    }

    fn send(&self, operation: LinkOperation) -> Sending {
        let (reply, result) = oneshot::channel();
        self.inbox.post(LinkRequest { operation, reply });
        async move { result.await.unwrap_or_else(|_| Err(closed())) }.boxed_local()
    }
}

/// The session options of a copy: digests on the data, and a lost connection is noticed in time.
fn options(initiator_name: &str) -> SessionOptions {
    SessionOptions {
        header_digest: DigestChoice::Offer,
        data_digest: DigestChoice::Offer,
        replacement_timeout_s: 20.0,
        initiator_name: Some(initiator_name.to_owned()),
        ..SessionOptions::default()
    }
}

fn closed() -> LinkError {
    LinkError::Broken("it was closed".into())
}

impl Link for ReplicationLink {
    fn write(&self, volume: usize, offset_bytes: u64, data: Bytes) -> Sending {
        self.send(LinkOperation::Write { volume, offset_bytes, data })
    }

    fn discard(&self, volume: usize, offset_bytes: u64, len_bytes: u64) -> Sending {
        self.send(LinkOperation::Discard { volume, offset_bytes, len_bytes })
    }

    fn flush(&self) -> Sending {
        self.send(LinkOperation::Flush)
    }

    fn close(&self) {
        self.inbox.close(closed());
    }
}

impl Drop for ReplicationLink {
    fn drop(&mut self) {
        self.inbox.close(closed());
    }
}

impl Inbox {
    /// Adds a request; if the link is closed, its caller gets the reason.
    fn post(&self, request: LinkRequest) {
        {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(why) = &requests.closed {
                // The caller may have stopped waiting.
                let _ = request.reply.send(Err(why.clone()));
                return;
            }
            requests.list.push(request);
        }
        self.wake();
    }

    /// Accepts no more requests; the first reason counts.
    fn close(&self, why: LinkError) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).closed.get_or_insert(why);
        self.wake();
    }

    fn wake(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    /// The requests, and whether there will be more.
    fn take(&self) -> (Vec<LinkRequest>, bool) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut requests.list), requests.closed.is_some())
    }
}

impl fmt::Debug for ReplicationLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplicationLink")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, ArrayConfig};
    use futures::executor::block_on;
    use linerate_io::EpollDriver;
    use linerate_iscsi_initiator::Disk;
    use linerate_storage::replica::service::Login;
    use serde_json::json;

    const TARGET: &str = "iqn.2026-11.lab.linerate:replication";
    const SECRET: &str = "a secret of partners";
    const TARGET_SECRET: &str = "another secret of partners";

    fn partner() -> Array {
        let config = json!({
            "portals": ["127.0.0.1:0"],
            "targets": [{
                "name": TARGET,
                "chap": {"user": USER, "secret": SECRET, "mutual_user": TARGET_USER, "mutual_secret": TARGET_SECRET},
                "volumes": [
                    {"lun": 16383, "name": "a", "size_bytes": 4 << 20},
                    {"lun": 16382, "name": "b", "size_bytes": 4 << 20}
                ]
            }]
        });
        let config: ArrayConfig = serde_json::from_value(config).unwrap();
        Array::start(config).unwrap()
    }

    fn link(array: &Array, secret: &str, target_secret: &str) -> ReplicationLink {
        let spec = LinkSpec { portal: array.portals()[0].to_string() };
        let login = Login { secret: secret.into(), target_secret: target_secret.into() };
        let access = Access { target: TARGET.into(), luns: vec![16_383, 16_382], login };
        let wake: Wake = Arc::new(|| {});
        ReplicationLink::connect(&spec, &access, "iqn.2026-11.lab.linerate:source", Preference::Auto, wake)
            .unwrap()
    }

    #[test]
    fn what_is_sent_lies_on_the_partners_volumes() {
        let array = partner();
        let link = link(&array, SECRET, TARGET_SECRET);
        // Longer than a slot, and more parts than there are slots.
        let long = Bytes::from((0..700 * 1024).map(|at| (at / 512) as u8).collect::<Vec<_>>());
        let mut sent = vec![link.write(1, 4096, long.clone())];
        sent.extend((0..100).map(|at| link.write(0, at * 512, Bytes::from(vec![at as u8 + 1; 512]))));
        for sending in sent {
            block_on(sending).unwrap();
        }
        block_on(link.discard(0, 0, 4096)).unwrap();
        block_on(link.flush()).unwrap();
        link.close();
        assert!(matches!(block_on(link.flush()), Err(LinkError::Broken(_))), "a closed link does nothing");
        let portal = PortalAddress::parse(&array.portals()[0].to_string()).unwrap();
        let credentials = Credentials {
            user: Some(USER.into()),
            secret: Some(Secret::new(SECRET)),
            ..Credentials::default()
        };
        let read = |lun, offset_bytes, len: usize| {
            let address = LunAddress { portal: portal.clone(), target: TARGET.into(), lun };
            let driver = EpollDriver::new().unwrap();
            let mut disk = Disk::open(driver, &address, &SessionOptions::default(), &credentials).unwrap();
            let mut bytes = vec![0; len];
            disk.read(offset_bytes, &mut bytes).unwrap();
            bytes
        };
        assert!(read(16_382, 4096, long.len()) == long, "the long write");
        let short = read(16_383, 0, 100 * 512);
        let expected = |at: usize| if at < 4096 { 0 } else { (at / 512) as u8 + 1 };
        assert!(short.iter().enumerate().all(|(at, byte)| *byte == expected(at)), "short writes and a hole");
    }

    #[test]
    fn nothing_is_written_unless_both_ends_prove_their_secret() {
        let array = partner();
        for (ours, theirs) in [("not the secret at all", TARGET_SECRET), (SECRET, "not what it proves")] {
            let link = link(&array, ours, theirs);
            let refused = block_on(link.write(0, 0, Bytes::from(vec![1; 512])));
            assert!(matches!(refused, Err(LinkError::Setup(_))), "{refused:?}");
        }
        let written: u64 = array.report().by_session.iter().map(|session| session.writes).sum();
        assert_eq!((written, array.stats().writes), (0, 0));
    }

    #[test]
    fn a_partner_that_goes_away_breaks_the_link() {
        let array = partner();
        let link = link(&array, SECRET, TARGET_SECRET);
        block_on(link.flush()).unwrap();
        let waiting = link.write(0, 0, Bytes::from(vec![1; 512]));
        block_on(waiting).unwrap();
        drop(array);
        link.close();
        assert!(block_on(link.flush()).is_err());
    }
}
