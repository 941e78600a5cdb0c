//! An array for its owner: started from a configuration, monitored, stopped.

pub(crate) mod change;
mod error;
pub(crate) mod opening;

pub use error::ArrayError;

use crate::{
    array::change::{ChangeError, change},
    array::opening::{groups, open_targets},
    config::{ArrayChange, ArrayConfig, ArrayLimits},
    engine::{Deliver, Engines, Exports},
    portals::{ListenOn, Portal},
    shared::{Mailbox, SharedState, WorkerMessage},
    stats::{ArrayStats, PortalStats, SessionStats},
    worker::Worker,
};
use linerate_io::{
    Driver, EpollDriver, OpenDriverError, Wait, WaitMode,
    net::{NetEvent, NetFollower, NetWatch},
    open_driver, system, with_driver,
};
use linerate_storage::controller::{Command, Reply, StorageError, StorageStatus};
use std::{
    io,
    net::{IpAddr, SocketAddr, TcpStream},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

type Socket = TcpStream;

/// Least memory of a worker: there is space for the largest command (8 MiB) beside others.
const MEMORY_PER_WORKER_BYTES_MIN: u64 = 16 << 20;

/// A running array. Stops when dropped.
pub struct Array {
    shared: Arc<SharedState<Socket>>,
    /// They end after the workers, because these may wait for them.
    engines: Option<Engines>,
    threads: Vec<JoinHandle<()>>,
    driver: &'static str,
    /// Follows the host's addresses while it exists.
    network: Option<NetFollower>,
}

/// The full status of an array at one moment.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ArrayReport {
    /// Counters since the start.
    #[serde(flatten)]
    pub stats: ArrayStats,
    /// Its current portals.
    pub by_portal: Vec<PortalStats>,
    /// The current sessions.
    pub by_session: Vec<SessionStats>,
    /// Disks, RAID sets, pools and their volumes; None without disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageStatus>,
}

/// The message of a worker thread when it is ready.
type Ready = Result<(&'static str, Arc<Mailbox<Socket>>), ArrayError>;

/// The configuration of one worker thread.
struct Seat {
    index: usize,
    cpu: Option<usize>,
    portals: Vec<Portal>,
    /// The addresses of the host, for portals that follow an interface.
    addresses: Vec<(String, IpAddr)>,
    driver: linerate_io::Preference,
    wait: WaitMode,
}

impl Array {
    /// Opens the volumes, starts the workers and listens. When it returns, initiators can log in.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the array takes the configuration over, secrets and all"
    )]
    pub fn start(config: ArrayConfig) -> Result<Self, ArrayError> {
        let portals = Portal::all(&config)?;
        let watch = watch(&portals)?;
        let workers = match config.workers {
            0 => system::allowed_cpus().map_err(ArrayError::Host)?.len(),
            count => count,
        };
        check_memory(&config.limits, workers)?;
        let mut driver = EpollDriver::new().map_err(OpenDriverError::Epoll)?;
        let engines = open_engines(&config, workers)?;
        let (targets, volumes) = open_targets(&config, &mut driver, engines.as_ref())?;
        let handles = engines.as_ref().map(Engines::handles);
        let shared = Arc::new(SharedState::new(&config, workers, targets, volumes, handles));
        drop(driver);
        let addresses = watch.as_ref().map(addresses_of).unwrap_or_default();
        shared.portals().learn_all(addresses.clone());
        let mut array = Self { shared, engines, threads: Vec::new(), driver: "", network: None };
        let mut mailboxes = Vec::new();
        let mut starts = Vec::new();
        for index in 0..workers {
            let cpus = config.cpus.as_deref().unwrap_or(&[]);
            let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
            let mine = |portals: &[Portal]| if index == 0 { portals.to_vec() } else { Vec::new() };
            let (portals, addresses) = (mine(&portals), addresses.clone());
            let seat =
                Seat { index, cpu, portals, addresses, driver: config.driver.into(), wait: config.wait };
            let (started, start) = array.spawn(seat)?;
            let (name, mailbox) = started?;
            array.driver = name;
            mailboxes.push(mailbox);
            starts.push(start);
        }
        if let Some(engines) = &array.engines {
            let targets = array.shared.targets.clone();
            let transfers = Arc::clone(&array.shared.transfers);
            let exports =
                Exports { array: config.name.clone(), groups: groups(&config)?, targets, transfers };
            engines.introduce(&mailboxes.iter().map(deliver).collect::<Vec<_>>(), &exports);
        }
        array.shared.introduce(mailboxes);
        for start in starts {
            let (go, listening) = start;
            // A worker that has ended is detected by its missing answer.
            let _ = go.send(());
            listening.recv().unwrap_or(Err(ArrayError::WorkerDied))?;
        }
        if let Some(watch) = watch {
            array.network = Some(follow(watch, &array.shared)?);
        }
        if let Some(engines) = &array.engines {
            engines.serves(config.touch_memory);
        }
        if config.touch_memory {
            array.shared.volumes.iter().for_each(crate::volume::SharedVolume::touch_memory);
        }
        Ok(array)
    }

    #[expect(clippy::type_complexity, reason = "two channels, used once by the caller above")]
    fn spawn(
        &mut self,
        seat: Seat,
    ) -> Result<(Ready, (mpsc::Sender<()>, mpsc::Receiver<Result<(), ArrayError>>)), ArrayError> {
        let (ready, is_ready) = mpsc::channel();
        let (go, may_go) = mpsc::channel();
        let (listening, is_listening) = mpsc::channel();
        let shared = Arc::clone(&self.shared);
        let builder = thread::Builder::new().name(format!("array-{}", seat.index));
        let thread = builder.spawn(move || match open_driver(seat.driver) {
            Ok(driver) => {
                with_driver!(driver, |driver| serve(driver, &shared, &seat, &ready, &may_go, &listening));
            }
            Err(error) => {
                let _ = ready.send(Err(error.into()));
            }
        });
        self.threads.push(thread.map_err(ArrayError::Host)?);
        Ok((is_ready.recv().unwrap_or(Err(ArrayError::WorkerDied)), (go, is_listening)))
    }

    /// Addresses and ports that the array listens on now, as the kernel chose them.
    pub fn portals(&self) -> Vec<SocketAddr> {
        self.shared.portals().listening().map(|(addr, _)| addr).collect()
    }

    /// Name of the I/O driver in use.
    pub fn driver(&self) -> &'static str {
        self.driver
    }

    /// Counters since the start.
    pub fn stats(&self) -> ArrayStats {
        self.shared.stats()
    }

    /// The full status. It copies a few words per session; connections do not wait for it.
    pub fn report(&self) -> ArrayReport {
        let portal = |(address, group)| PortalStats { address, group };
        let by_portal = self.shared.portals().listening().map(portal).collect();
        let storage = self.engines.as_ref().and_then(|engines| engines.status().ok());
        ArrayReport { stats: self.stats(), by_portal, by_session: self.shared.sessions(), storage }
    }

    /// Executes a management command of the owner. It may take long; I/O continues meanwhile.
    pub fn manage(&self, command: &Command) -> Result<Reply, StorageError> {
        match &self.engines {
            Some(engines) => engines.manage(command),
            None => Err(StorageError::Refused(
                "this array has no disks to manage; describe them in `storage` and start it again".into(),
            )),
        }
    }

    /// Executes a verb of replication, such as `replica_prepare` (see [`linerate_storage::replica::service`]).
    pub fn replicate(&self, verb: &str, fields: Reply) -> Result<Reply, StorageError> {
        match &self.engines {
            Some(engines) => engines.replicate(verb, fields),
            None => Err(StorageError::Refused(
                "this array has no pool to replicate; describe one in `storage` and start it again".into(),
            )),
        }
    }

    /// Changes access states of portal groups while I/O continues; initiators are informed (ASYMMETRIC ACCESS STATE
    /// CHANGED). If anything is wrong, nothing changes.
    pub fn change(&self, wanted: &ArrayChange) -> Result<(), ChangeError> {
        change(&self.shared.targets, wanted)
    }

    /// Requests logouts from the initiators, closes all connections, and returns when everything has ended.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.network = None;
        for mailbox in self.shared.mailboxes() {
            mailbox.post(WorkerMessage::Stop);
        }
        for thread in self.threads.drain(..) {
            // A worker that panicked has written to standard error; nothing else must be ended.
            let _ = thread.join();
        }
        self.engines = None;
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        self.end();
    }
}

/// The main function of a worker thread.
fn serve<D: Driver<Socket = Socket>>(
    driver: D,
    shared: &Arc<SharedState<Socket>>,
    seat: &Seat,
    ready: &mpsc::Sender<Ready>,
    may_go: &mpsc::Receiver<()>,
    listening: &mpsc::Sender<Result<(), ArrayError>>,
) {
    let name = driver.name();
    let pinned = seat
        .cpu
        .map_or(Ok(()), |cpu| system::pin_thread(cpu).map_err(|error| ArrayError::Cpu { cpu, error }));
    let worker = pinned.and_then(|()| {
        Worker::new(driver, Arc::clone(shared), seat.index, seat.wait).map_err(ArrayError::Host)
    });
    let mut worker = match worker {
        Ok(worker) => worker,
        Err(error) => return drop(ready.send(Err(error))),
    };
    if ready.send(Ok((name, worker.mailbox()))).is_err() || may_go.recv().is_err() {
        return;
    }
    let listened = seat.portals.iter().try_for_each(|portal| worker.serve(portal.clone())).and_then(|()| {
        seat.addresses.iter().try_for_each(|(interface, address)| worker.address_added(interface, *address))
    });
    let failed = listened.is_err();
    if listening.send(listened).is_err() || failed {
        return;
    }
    while !worker.is_stopped() {
        if let Err(error) = worker.turn(Wait::Forever) {
            tracing::error!(
                event = "worker_failed",
                worker = seat.index,
                %error,
                "the I/O driver failed; this worker ends"
            );
            return;
        }
    }
}

/// Watches the host's addresses. Portals that follow an interface need this; it is useful for all others.
fn watch(portals: &[Portal]) -> Result<Option<NetWatch>, ArrayError> {
    let interfaces = || {
        portals.iter().filter_map(|portal| match &portal.on {
            ListenOn::Interface { name, .. } => Some(name),
            ListenOn::Address(_) => None,
        })
    };
    match NetWatch::open() {
        Ok(watch) => {
            let has = |wanted: &String| watch.links().any(|(name, _)| name == wanted);
            match interfaces().find(|name| !has(name)) {
                Some(name) => Err(ArrayError::NoInterface(name.clone())),
                None => Ok(Some(watch)),
            }
        }
        Err(error) if interfaces().next().is_some() => Err(ArrayError::Watch(error)),
        Err(error) => {
            tracing::warn!(
                event = "network_unwatched",
                %error,
                "cannot watch the host's addresses: sessions of a lost one end by timeout only"
            );
            Ok(None)
        }
    }
}

fn addresses_of(watch: &NetWatch) -> Vec<(String, IpAddr)> {
    watch.addresses().map(|(interface, address)| (interface.to_owned(), address)).collect()
}

/// Passes changes to all workers.
fn follow(watch: NetWatch, shared: &Arc<SharedState<Socket>>) -> Result<NetFollower, ArrayError> {
    let shared = Arc::clone(shared);
    let tell = move |event: io::Result<NetEvent>| match event {
        Ok(event) => {
            shared.portals().learn(&event);
            for mailbox in shared.mailboxes() {
                mailbox.post(WorkerMessage::Network(event.clone()));
            }
        }
        Err(error) => {
            tracing::error!(event = "network_unwatched", %error, "the host's addresses are watched no longer");
        }
    };
    watch.follow(tell).map_err(ArrayError::Host)
}

/// `workers`: how many there will be. More engines than workers would have nothing to do.
fn open_engines(config: &ArrayConfig, workers: usize) -> Result<Option<Engines>, ArrayError> {
    if config.storage.is_empty() {
        return Ok(None);
    }
    // A spinning engine would take the CPU of a spinning worker if they share one.
    let wait = if config.wait == WaitMode::Spin { WaitMode::Auto } else { config.wait };
    let started = Engines::start(&config.storage, workers, config.driver.into(), wait);
    started.map(Some).map_err(ArrayError::Storage)
}

/// The function that passes answers of engines to a worker.
fn deliver(mailbox: &Arc<Mailbox<Socket>>) -> Deliver {
    let mailbox = Arc::clone(mailbox);
    Arc::new(move |answers| mailbox.answer(answers))
}

/// Whether each worker gets enough memory for the largest command beside others.
fn check_memory(limits: &ArrayLimits, workers: usize) -> Result<(), ArrayError> {
    if limits.memory_bytes / (workers.max(1) as u64) < MEMORY_PER_WORKER_BYTES_MIN {
        return Err(ArrayError::Limit { key: "memory_bytes", rule: "at least 16777216 (16 MiB) per worker" });
    }
    Ok(())
}
