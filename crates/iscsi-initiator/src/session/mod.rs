//! A session: one TCP connection or several, logged in under one ISID, and the commands on them.
//!
//! Open this file first. [`Session`] holds the parts; its behaviour is split by topic:
//!
//! - `state.rs`: the states and their transitions, as a table.
//! - `tasks.rs`: what is in flight, by tag.
//! - `link.rs`: one connection; `joining.rs`: those beside the first.
//! - `login.rs`: from a connected socket to full feature phase.
//! - `send.rs`: what is queued becomes one gather list and one send.
//! - `receive.rs`: what arrived becomes finished tasks.
//! - `finish.rs`: status and sense become results, or another try.
//! - `recovery.rs`: loss, waiting, logging in again, timeouts and pings.
//!
//! A session never calls its owner. What its owner must know goes into the [`Context`] as an event or straight to the
//! caller's sink.

mod finish;
mod joining;
mod link;
mod login;
mod receive;
mod recovery;
mod send;
mod state;
pub(crate) mod tasks;

use crate::alua::Access;
use crate::balance::{BalanceOptions, Meter, Selector};
use crate::event::{Blame, Event, EventKind, Failure, IoSink};
use crate::facts::{DeviceId, SessionFacts, SessionId};
use crate::options::address::{AddressError, PortalAddress};
use crate::options::credentials::Credentials;
use crate::options::error::OptionsError;
use crate::options::session::SessionOptions;
use crate::options::{SECOND, nanos};
use crate::request::Regions;
use crate::task::{Answer, NewTask, Owner};
use linerate_io::{Driver, Handle, Nanos, SocketOptions};
use linerate_iscsi_proto::frame::FrameError;
use linerate_iscsi_proto::login::{InitiatorConfig, LoginFailure};
use linerate_iscsi_proto::names::IscsiName;
use linerate_iscsi_proto::pdu::{LoginStatus, PduError, TextRequest};
use linerate_iscsi_proto::send_targets::{ExchangeError, InitiatorText};
use linerate_iscsi_proto::transfer::{DataInError, R2tError};
use linerate_iscsi_proto::window::{InitiatorWindow, StatusGap};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use tasks::{Stage, TaskIndex, TaskTable};

use link::Link;

pub use link::ConnectionCounters;

pub(crate) use recovery::Via;
pub(crate) use state::{Input, State};

/// Receive memory of one connection. Small enough to stay in a core's second-level cache, large enough for what arrives
/// while a batch is being handled.
const RECEIVE_BYTES: usize = 256 * 1024;

/// Longest pause between two login attempts of a device's only session.
const PAUSE_NS_MAX: Nanos = 3 * SECOND;

/// What does not change over a session's life.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) portal: PortalAddress,
    pub(crate) options: SessionOptions,
    /// Names, wishes and secrets; the ISID is the session's.
    pub(crate) login: InitiatorConfig,
    pub(crate) retry: RetryRules,
    /// Where further connections go, in turn; empty: where the first one goes.
    pub(crate) connection_portals: Vec<PortalAddress>,
}

/// What a session does when it has lost its connection. It always hands its I/O back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryRules {
    /// The device may have other paths: I/O that this session's target refuses or aborts is handed back too, and the
    /// session keeps trying from its first login on.
    pub(crate) fails_over: bool,
    /// Longest pause between two login attempts.
    pub(crate) pause_max_ns: Nanos,
    /// Time without a login after which the session is given up; none = never.
    pub(crate) give_up_ns: Option<Nanos>,
    /// `TCP_USER_TIMEOUT`.
    pub(crate) user_timeout_ms: Option<u32>,
}

impl Config {
    /// Checks what the user wrote. Without a target it is a discovery session.
    pub(crate) fn new(
        portal: &PortalAddress,
        target: Option<&str>,
        options: &SessionOptions,
        credentials: &Credentials,
    ) -> Result<Self, OptionsError> {
        options.check()?;
        let name = options.initiator_name.as_deref().unwrap_or(SessionOptions::DEFAULT_INITIATOR_NAME);
        let login = InitiatorConfig {
            initiator_name: IscsiName::parse(name)?,
            target_name: target.map(IscsiName::parse).transpose()?,
            isid: [0; 6],
            cid: 0,
            itt: 0,
            cmd_sn: 1,
            offer: options.offer(),
            chap: credentials.chap()?,
            join: None,
        };
        let retry = RetryRules {
            fails_over: false,
            pause_max_ns: PAUSE_NS_MAX,
            give_up_ns: Some(nanos(options.replacement_timeout_s)),
            user_timeout_ms: None,
        };
        let (portal, connection_portals) = (portal.clone(), options.connection_portals.clone());
        Ok(Self { portal, options: options.clone(), login, retry, connection_portals })
    }

    pub(crate) fn is_discovery(&self) -> bool {
        self.login.target_name.is_none()
    }

    pub(crate) fn target_name(&self) -> &str {
        self.login.target_name.as_ref().map_or("", IscsiName::as_str)
    }
}

/// What a session needs from its owner while it works, and where it leaves what its owner must know.
pub(crate) struct Context<'a, S> {
    pub(crate) sink: &'a mut S,
    pub(crate) events: &'a mut Vec<(SessionId, SessionEvent)>,
    /// I/Os that the session could not do.
    pub(crate) returned: &'a mut Vec<Returned>,
    pub(crate) regions: &'a Regions,
    pub(crate) random: &'a mut Random,
    /// When the owner must give the session time again, at the latest.
    pub(crate) wake_at: Nanos,
}

/// Fills a slice with unpredictable bytes.
pub type Random = dyn FnMut(&mut [u8]) + Send;

/// An I/O that a session could not do.
#[derive(Debug)]
pub(crate) struct Returned {
    pub(crate) session: SessionId,
    pub(crate) task: NewTask,
    pub(crate) progress: ReturnedFrom,
}

/// How far an I/O had come when its session handed it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReturnedFrom {
    /// The target does not have it: it was not sent, or it was refused or aborted.
    Queue,
    /// The target may have it and may still run it.
    Flight,
    /// The same, and its command timeout is over.
    Abort,
}

/// A connection that was lost, or an attempt that failed.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    pub(crate) failure: Failure,
    /// I/Os that were in flight and have been handed back.
    pub(crate) in_flight: u32,
}

/// What a session reports to the paths that use it.
#[derive(Debug)]
pub(crate) enum SessionEvent {
    /// Full feature phase has begun.
    LoggedIn,
    /// The connection is lost, or an attempt to bring it back has failed; the next one follows.
    Lost(Loss),
    /// The session is given up.
    Failed(Loss),
    /// A login has ended the target's part of the lost session.
    Reinstated,
    /// The target's port does not take I/O, and says why.
    AccessRefused(Access),
    /// The access state of the target's port may have changed.
    AccessChanged,
    /// The target has aborted an I/O, which was handed back.
    HandedBack,
    /// The command of a device's probe has ended.
    Probed { device: DeviceId, answer: Answer, reply: Vec<u8> },
    /// A question for a device's access states has ended.
    AccessPolled { device: DeviceId, answer: Answer, reply: Vec<u8> },
    /// An I/O that had been lost in flight before has ended.
    RetryDone { device: DeviceId, order: u64 },
    /// `SendTargets` text is complete.
    Targets(Vec<u8>),
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) config: Config,
    pub(crate) state: State,
    pub(crate) facts: Option<SessionFacts>,
    /// Why it was given up.
    pub(crate) failure: Option<Failure>,
    /// The paths that use it: the device, and the place in its list.
    pub(crate) users: Vec<(DeviceId, u16)>,
    /// What it carries.
    pub(crate) meter: Meter,
    /// Part of every login of this session: the same ISID ends the old session at the target.
    isid: [u8; 6],
    /// The leading connection first.
    links: Vec<Link>,
    /// Which connection the next command takes.
    spread: Selector,
    joining: joining::Joining,
    window: InitiatorWindow,
    pub(crate) tasks: TaskTable,
    /// Commands that wait to be sent, oldest first.
    queue: VecDeque<TaskIndex>,
    /// Commands of probes, which are sent before those of I/Os.
    probes: VecDeque<TaskIndex>,
    recovery: recovery::Recovery,
    /// The `SendTargets` exchange, and the request that asks for the rest of its answer.
    text: Option<InitiatorText>,
    text_next: Option<TextRequest>,
    /// In the owner's list of sessions to flush.
    pub(crate) dirty: bool,
}

impl Session {
    /// A session that has yet to connect.
    pub(crate) fn new(id: SessionId, config: Config, isid: [u8; 6], now: Nanos) -> Self {
        Self {
            id,
            recovery: recovery::Recovery::new(&config, now),
            spread: Selector::new(&BalanceOptions::new(config.options.connection_policy.into())),
            joining: joining::Joining::default(),
            config,
            state: State::Connecting,
            facts: None,
            failure: None,
            users: Vec::new(),
            meter: Meter::default(),
            isid,
            links: Vec::new(),
            window: InitiatorWindow::CLOSED,
            tasks: TaskTable::default(),
            queue: VecDeque::new(),
            probes: VecDeque::new(),
            text: None,
            text_next: None,
            dirty: false,
        }
    }

    /// Takes a command into the queue; none if 65535 are in use.
    #[inline]
    pub(crate) fn enqueue(&mut self, new: &NewTask) -> Option<TaskIndex> {
        let index = self.tasks.insert(new)?;
        if matches!(new.owner, Owner::Io { .. }) {
            self.tasks[index].queue_bytes = self.meter.begin(new.len_bytes);
        }
        self.queue.push_back(index);
        Some(index)
    }

    /// Takes in a probe's command, which goes before the commands that wait.
    pub(crate) fn enqueue_probe(&mut self, new: &NewTask) {
        if let Some(index) = self.tasks.insert(new) {
            self.probes.push_back(index);
        }
    }

    /// Takes a control PDU into the urgent queue of a connection.
    fn enqueue_urgent(&mut self, at: usize, owner: Owner) {
        if let Some(link) = self.links.get_mut(at)
            && let Some(index) = self.tasks.insert(&NewTask::control(owner))
        {
            self.tasks[index].link = at as u8;
            link.urgent.push_back(index);
        }
    }

    /// Moves along the table; false if the input means nothing in this state.
    fn step(&mut self, input: Input) -> bool {
        let Some(next) = self.state.after(input) else { return false };
        tracing::debug!(session = self.id.0, from = ?self.state, ?input, to = ?next);
        self.state = next;
        true
    }

    /// Starts the leading connection, to `portal`.
    pub(crate) fn connect<D: Driver>(
        &mut self,
        driver: &mut D,
        portal: &PortalAddress,
        source: Option<IpAddr>,
    ) -> Result<(), LossReason> {
        let addr = portal.resolve()?;
        let stream = self.open_stream(driver, addr, source)?;
        self.recovery.peer = Some(addr);
        self.links.push(Link::new(stream, 0, addr, driver.now()));
        Ok(())
    }

    /// Starts a TCP connection, with the socket options as the user wants them.
    fn open_stream<D: Driver>(
        &self,
        driver: &mut D,
        addr: SocketAddr,
        source: Option<IpAddr>,
    ) -> Result<Handle, LossReason> {
        let options = &self.config.options;
        let socket = SocketOptions {
            nodelay: options.nodelay,
            send_buffer_bytes: options.send_buffer_bytes,
            recv_buffer_bytes: options.recv_buffer_bytes,
            congestion_control: options.congestion_control.clone(),
            bind: source,
            user_timeout_ms: self.config.retry.user_timeout_ms,
            ..SocketOptions::default()
        };
        let refused = |error: std::io::Error| match error.kind() {
            ErrorKind::AddrNotAvailable | ErrorKind::NotFound | ErrorKind::PermissionDenied => {
                LossReason::Socket { portal: addr.to_string(), error: error.to_string() }
            }
            _ => LossReason::Connect { portal: addr.to_string(), error: error.to_string() },
        };
        driver.connect(addr, &socket).map_err(refused)
    }

    /// Puts an event into the caller's log.
    fn emit<S: IoSink>(&self, cx: &mut Context<'_, S>, at: Nanos, kind: EventKind) {
        cx.sink.event(Event { at, session: Some(self.id), device: None, kind });
    }

    /// In full feature phase.
    pub(crate) fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    fn in_flight(&self) -> bool {
        let sent = |task: &tasks::Task| matches!(task.stage, Stage::Sent | Stage::Aborting);
        self.tasks.iter().any(|(_, task)| sent(task) && !matches!(task.owner, Owner::Ping | Owner::Logout))
    }
}

/// Why a connection ended or never came to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LossReason {
    /// The host's name has no address (user or network).
    #[error(transparent)]
    Address(#[from] AddressError),
    /// This host cannot give the socket what the options want (user).
    #[error("cannot make a connection to {portal}: {error}; correct the session's options")]
    Socket { portal: String, error: String },
    /// TCP could not connect (network or peer).
    #[error("cannot connect to {portal}: {error}; is the array running, and is this its portal?")]
    Connect { portal: String, error: String },
    /// The peer closed the connection.
    #[error("{portal} closed the connection")]
    Closed { portal: String },
    /// The connection broke.
    #[error("connection to {portal} broke: {error}")]
    Broken { portal: String, error: String },
    /// The stream cannot be followed (peer or network).
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A PDU cannot be used (peer).
    #[error(transparent)]
    Pdu(#[from] PduError),
    /// A status is missing (peer).
    #[error(transparent)]
    Window(#[from] StatusGap),
    /// Read data out of order or beyond the request (peer).
    #[error(transparent)]
    DataIn(#[from] DataInError),
    /// Write data asked for that is not due (peer).
    #[error(transparent)]
    R2t(#[from] R2tError),
    /// Another breach of the protocol (peer).
    #[error("target broke the protocol: {0}")]
    Protocol(&'static str),
    /// Nothing came in time (peer or network).
    #[error("{0}")]
    Silence(&'static str),
    /// The target said goodbye (peer).
    #[error("target announced: {0}")]
    Dismissed(&'static str),
    /// The login failed.
    #[error(transparent)]
    Login(#[from] LoginFailure),
    /// The list of targets cannot be followed (peer).
    #[error(transparent)]
    Text(#[from] ExchangeError),
    /// The target is elsewhere: no loss, but the end of this connection.
    #[error("target moved to {to}")]
    Redirected { to: PortalAddress, permanent: bool },
    /// The session was not restored in time (peer or network).
    #[error("the session did not come back within replacement_timeout_s")]
    NotRestored,
    /// No loss: the login over another path's portal has done what it was for.
    #[error("the old session has been ended over another path")]
    Reinstated,
    /// The way over another path led to another portal group, where the old session is not.
    #[error("the login over another path reached another portal group")]
    OtherGroup,
    /// The local interface has no link (host).
    #[error("the link of interface {0} is down")]
    LinkDown(String),
    /// The link has come up: an attempt that began before need not run out.
    #[error("the link of interface {0} came up")]
    LinkUp(String),
    /// The LUN behind the path cannot be used.
    #[error("{words}")]
    WrongLun { blame: Blame, words: String },
    /// Redirections that lead nowhere (peer).
    #[error("the target redirects the login again and again")]
    RedirectLoop,
}

impl LossReason {
    /// Trying again cannot help.
    fn is_final(&self) -> bool {
        match self {
            LossReason::Login(failure) => !failure.is_transient(),
            LossReason::RedirectLoop | LossReason::WrongLun { .. } => true,
            _ => false,
        }
    }

    fn blame(&self) -> Blame {
        match self {
            LossReason::WrongLun { blame, .. } => *blame,
            LossReason::LinkDown(_) | LossReason::LinkUp(_) => Blame::Host,
            LossReason::Address(_)
            | LossReason::Socket { .. }
            | LossReason::Login(
                LoginFailure::Refused(LoginStatus { class: 2, .. }) | LoginFailure::NotAuthentic(_),
            ) => Blame::User,
            _ => Blame::Peer,
        }
    }

    /// As a failure of the session to `portal`.
    fn failure(&self, portal: &PortalAddress, target: &str) -> Failure {
        let place = if target.is_empty() { portal.to_string() } else { format!("{target} at {portal}") };
        let wrong_credentials = matches!(
            self,
            LossReason::Login(
                LoginFailure::Refused(LoginStatus::AUTHENTICATION_FAILED) | LoginFailure::NotAuthentic(_)
            )
        );
        Failure { blame: self.blame(), message: format!("{place}: {self}"), wrong_credentials }
    }
}
