//! The target's side of a login.

use super::sessions::SessionRequest;
use super::table::{TARGET_LOGIN, TargetEvent, TargetState, next_state};
use super::target_auth::TargetAuth;
use super::{Established, LOGIN_DATA_BYTES_MAX, LOGIN_PDUS_MAX, VERSION};
use crate::chap::ChapConfig;
use crate::keys::{Negotiation, NegotiationError, Offer, Side};
use crate::names::{IscsiName, NameError};
use crate::params::SessionParams;
use crate::pdu::{LoginRequest, LoginResponse, LoginStatus, Stage, StatusNumbers};
use crate::text::{self, Collector, Splitter, TextError, Writer};
use crate::window::CommandWindow;

/// The services of the array for the login.
pub trait TargetHost {
    /// Looks up the target that `initiator` (normalised) requests; `None` requests a discovery session.
    fn find(&mut self, initiator: &str, target: Option<&str>) -> Lookup;
    /// Fills `bytes` with random bytes fit for challenges.
    fn random(&mut self, bytes: &mut [u8]);
    /// The initiator is authenticated and requests its session: call [`super::decide`] and act on it. Returns the
    /// session's handle (not 0), or the reason for a refusal.
    fn admit(&mut self, request: &SessionRequest) -> Result<u16, LoginStatus>;
    /// The session to which a login with this handle would add a connection. Without one the login continues as for a
    /// new session, until [`Self::admit`] refuses it.
    fn session(&mut self, tsih: u16) -> Option<Joined> {
        let _ = tsih;
        None
    }
}

/// A session that a further connection joins, in its current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The values that its first login has negotiated.
    pub params: SessionParams,
    /// Its window of commands.
    pub commands: CommandWindow,
}

/// The result of [`TargetHost::find`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It may log in.
    Accept(Accepted),
    /// The initiator should use this address, `host:port` or `host:port,tag`.
    Redirect {
        /// `TargetAddress`.
        address: String,
        /// For good, or for now.
        permanent: bool,
    },
    /// The initiator may not log in: [`LoginStatus::NOT_FOUND`], [`LoginStatus::FORBIDDEN`], [`LoginStatus::REMOVED`]
    /// or another error.
    Refuse(LoginStatus),
}

/// See [`Lookup::Accept`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The required authentication.
    pub chap: Option<ChapConfig>,
    /// `TargetAlias`.
    pub alias: Option<String>,
    /// `TargetPortalGroupTag`.
    pub portal_group_tag: u16,
}

/// Limits and wishes of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetLoginConfig {
    /// Our offer.
    pub offer: Offer,
    /// Most bytes of text in one request, over all its PDUs.
    pub text_bytes_max: usize,
    /// Commands that the initiator may have outstanding.
    pub commands: u32,
    /// Number of the connection's first status.
    pub first_stat_sn: u32,
}

/// One login on the target's side.
#[derive(Debug)]
pub struct TargetLogin {
    config: TargetLoginConfig,
    state: TargetState,
    stat_sn: u32,
    pdus: u32,
    first: Option<LoginRequest>,
    collector: Collector,
    outbox: Splitter,
    /// The stage that follows once the outbox is empty.
    pending: Option<Stage>,
    who: Option<Who>,
    auth: TargetAuth,
    keys: Option<Negotiation>,
    tsih: u16,
    /// The session to which the connection is added, as it was at the last request.
    joined: Option<Joined>,
}

/// Initiator and target of the login; known after the first request.
#[derive(Debug)]
struct Who {
    initiator_name: String,
    target_name: Option<String>,
    accepted: Accepted,
}

/// The PDU to send, and the next action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetReply {
    /// Its header.
    pub response: LoginResponse,
    /// Its data segment.
    pub data: Vec<u8>,
    /// The action after sending it.
    pub step: TargetStep,
}

/// See [`TargetReply`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetStep {
    /// Wait for the next login request.
    Continue,
    /// The login is done: continue in full feature phase.
    Done(Box<Established>),
    /// The login failed: close the connection once the PDU is sent.
    Close(LoginRefusal),
}

impl TargetLogin {
    /// Waits for the first request.
    pub fn new(config: TargetLoginConfig) -> Self {
        TargetLogin {
            state: TargetState::Start,
            stat_sn: config.first_stat_sn,
            pdus: 0,
            first: None,
            collector: Collector::new(config.text_bytes_max),
            outbox: Splitter::default(),
            pending: None,
            who: None,
            auth: TargetAuth::default(),
            keys: None,
            tsih: 0,
            joined: None,
            config,
        }
    }

    /// The state of the login.
    pub fn state(&self) -> TargetState {
        self.state
    }

    /// The normalised names of the initiator and of its target, once both are known; no target in a discovery session.
    pub fn names(&self) -> Option<(&str, Option<&str>)> {
        self.who.as_ref().map(|who| (who.initiator_name.as_str(), who.target_name.as_deref()))
    }

    /// Accepts a login request and returns the response. After [`TargetStep::Close`] or [`TargetStep::Done`] it must
    /// not be used again.
    pub fn receive(
        &mut self,
        request: &LoginRequest,
        data: &[u8],
        host: &mut impl TargetHost,
    ) -> TargetReply {
        if request.tsih != 0 {
            self.joined = host.session(request.tsih);
        }
        match self.judge(request, data, host) {
            Ok(reply) => reply,
            Err(refusal) => {
                let text = refusal.text();
                let mut response = self.response(request, refusal.status());
                response.data_len = text.len() as u32;
                TargetReply { response, data: text, step: TargetStep::Close(refusal) }
            }
        }
    }

    fn judge(
        &mut self,
        request: &LoginRequest,
        data: &[u8],
        host: &mut impl TargetHost,
    ) -> Result<TargetReply, LoginRefusal> {
        self.check_header(request)?;
        if self.outbox.is_open() {
            if !data.is_empty() || request.cont {
                return Err(LoginRefusal::Protocol("text while the target's own was not finished"));
            }
            return self.send(request, host);
        }
        let Some(text) = self.collector.push(data, request.cont)? else {
            return Ok(self.reply(request, Vec::new(), false));
        };
        let pairs = text::parse(&text)?;
        let mut out = Writer::default();
        if self.who.is_none() {
            self.identify(request, &pairs, host, &mut out)?;
        }
        match request.current {
            Stage::Security => self.security(&pairs, host, &mut out)?,
            _ => self.operational(&pairs, &mut out)?,
        }
        self.pending = if request.transit { self.transition(request)? } else { None };
        self.outbox.load(out.into_bytes());
        self.send(request, host)
    }

    /// Checks the header alone, and against the first one.
    fn check_header(&mut self, request: &LoginRequest) -> Result<(), LoginRefusal> {
        self.pdus += 1;
        if self.pdus > LOGIN_PDUS_MAX {
            return Err(LoginRefusal::Protocol("too many login requests"));
        }
        if let Some(first) = &self.first {
            let same = (first.itt, first.isid, first.tsih, first.cid)
                == (request.itt, request.isid, request.tsih, request.cid);
            // In an existing session its other connections change the number (RFC 7143 section 11.12.8).
            if !same || (request.tsih == 0 && first.cmd_sn != request.cmd_sn) {
                return Err(LoginRefusal::Protocol(
                    "a tag, session, connection or command number that changed",
                ));
            }
        } else {
            if request.version_min > VERSION {
                return Err(LoginRefusal::Version(request.version_min));
            }
            self.first = Some(*request);
        }
        let stage = match self.state {
            TargetState::Operational => Stage::Operational,
            TargetState::Start if self.who.is_none() => {
                self.first.map_or(request.current, |first| first.current)
            }
            _ => Stage::Security,
        };
        if request.current != stage {
            return Err(LoginRefusal::Protocol("a stage that is not the current one"));
        }
        Ok(())
    }

    /// The first request names both sides.
    fn identify(
        &mut self,
        request: &LoginRequest,
        pairs: &[(&str, &str)],
        host: &mut impl TargetHost,
        out: &mut Writer,
    ) -> Result<(), LoginRefusal> {
        let value = |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let discovery = match value("SessionType") {
            None | Some("Normal") => false,
            Some("Discovery") => true,
            Some(_) => return Err(LoginRefusal::SessionType),
        };
        let initiator = value("InitiatorName").ok_or(LoginRefusal::Missing("InitiatorName"))?;
        let initiator_name = IscsiName::parse(initiator)?.to_string();
        let target_name = match value("TargetName") {
            Some(name) if !discovery => Some(IscsiName::parse(name)?.to_string()),
            None if !discovery => return Err(LoginRefusal::Missing("TargetName")),
            _ => None,
        };
        let accepted = match host.find(&initiator_name, target_name.as_deref()) {
            Lookup::Accept(accepted) => accepted,
            Lookup::Redirect { address, permanent } => {
                return Err(LoginRefusal::Redirect { address, permanent });
            }
            Lookup::Refuse(status) => return Err(LoginRefusal::Host(status)),
        };
        self.keys = Some(match &self.joined {
            Some(session) => Negotiation::joining(Side::Target, self.config.offer, &session.params),
            None => Negotiation::new(Side::Target, self.config.offer, discovery),
        });
        self.auth = TargetAuth::new(accepted.chap.clone());
        if !discovery {
            out.push("TargetPortalGroupTag", &accepted.portal_group_tag.to_string());
            if let Some(alias) = &accepted.alias {
                out.push("TargetAlias", alias);
            }
        }
        if request.current == Stage::Operational {
            if accepted.chap.is_some() {
                return Err(LoginRefusal::Authentication("authentication was skipped"));
            }
            self.step(TargetEvent::SkipSecurity)?;
        }
        self.who = Some(Who { initiator_name, target_name, accepted });
        Ok(())
    }

    fn security(
        &mut self,
        pairs: &[(&str, &str)],
        host: &mut impl TargetHost,
        out: &mut Writer,
    ) -> Result<(), LoginRefusal> {
        let mut random = |bytes: &mut [u8]| host.random(bytes);
        let event = self.auth.receive(self.state, pairs, &mut random, out)?;
        self.step(event)
    }

    fn operational(&mut self, pairs: &[(&str, &str)], out: &mut Writer) -> Result<(), LoginRefusal> {
        self.step(TargetEvent::Negotiate)?;
        let Some(keys) = &mut self.keys else {
            return Err(LoginRefusal::Protocol("keys before names"));
        };
        for (name, value) in pairs {
            keys.receive(name, value, out)?;
        }
        keys.propose(out);
        Ok(())
    }

    fn step(&mut self, event: TargetEvent) -> Result<(), LoginRefusal> {
        let next = next_state(TARGET_LOGIN, self.state, event);
        self.state = next.ok_or(LoginRefusal::Protocol("a step out of turn"))?;
        Ok(())
    }

    /// The stage to which the initiator may move; `None` if authentication is still incomplete.
    fn transition(&self, request: &LoginRequest) -> Result<Option<Stage>, LoginRefusal> {
        let event = match request.next {
            Stage::Operational => TargetEvent::ToOperational,
            _ => TargetEvent::ToFullFeature,
        };
        if next_state(TARGET_LOGIN, self.state, event).is_some() {
            return Ok(Some(request.next));
        }
        let proof_due = matches!(self.state, TargetState::Algorithm | TargetState::Response);
        if !proof_due && self.auth.is_required() {
            return Err(LoginRefusal::Authentication("no authentication method was offered"));
        }
        Ok(None)
    }

    /// Sends the next piece of the outbox; after its last piece the login moves on.
    fn send(
        &mut self,
        request: &LoginRequest,
        host: &mut impl TargetHost,
    ) -> Result<TargetReply, LoginRefusal> {
        let (data, cont) = self.outbox.next_piece(LOGIN_DATA_BYTES_MAX);
        let next = if cont || !request.transit { None } else { self.pending.take() };
        let Some(next) = next else {
            return Ok(self.reply(request, data, cont));
        };
        let done = next == Stage::FullFeature;
        if done {
            let session = self.session_request(request)?;
            let joins = self.keys.as_ref().is_some_and(Negotiation::is_joining);
            if joins != self.joined.is_some() {
                // The session began or ended during this login.
                return Err(LoginRefusal::Host(LoginStatus::NO_SUCH_SESSION));
            }
            self.tsih = host.admit(&session).map_err(LoginRefusal::Host)?;
        }
        let event = if done { TargetEvent::ToFullFeature } else { TargetEvent::ToOperational };
        self.step(event)?;
        let mut reply = self.reply(request, data, false);
        reply.response.transit = true;
        reply.response.next = next;
        if done {
            reply.step = TargetStep::Done(Box::new(self.established(request)?));
        }
        Ok(reply)
    }

    fn session_request(&self, request: &LoginRequest) -> Result<SessionRequest, LoginRefusal> {
        let who = self.who.as_ref().ok_or(LoginRefusal::Missing("InitiatorName"))?;
        let keys = self.keys.as_ref().ok_or(LoginRefusal::Missing("InitiatorName"))?;
        Ok(SessionRequest {
            initiator_name: who.initiator_name.clone(),
            target_name: who.target_name.clone(),
            portal_group_tag: who.accepted.portal_group_tag,
            isid: request.isid,
            tsih: request.tsih,
            cid: request.cid,
            max_connections: keys.params().max_connections,
        })
    }

    fn established(&mut self, request: &LoginRequest) -> Result<Established, LoginRefusal> {
        let who = self.who.take().ok_or(LoginRefusal::Missing("InitiatorName"))?;
        let keys = self.keys.take().ok_or(LoginRefusal::Missing("InitiatorName"))?;
        Ok(Established {
            initiator_name: who.initiator_name,
            portal_group_tag: who.target_name.is_some().then_some(who.accepted.portal_group_tag),
            target_name: who.target_name,
            isid: request.isid,
            tsih: self.tsih,
            cid: request.cid,
            params: keys.params(),
            leading: request.tsih == 0,
            cmd_sn: self.commands(request).exp_cmd_sn(),
            stat_sn: self.stat_sn,
            max_cmd_sn: self.commands(request).max_cmd_sn(),
            user: self.auth.user(),
        })
    }

    /// The window of the new session, or of the joined one.
    fn commands(&self, request: &LoginRequest) -> CommandWindow {
        let new = || CommandWindow::new(request.cmd_sn, self.config.commands);
        self.joined.map_or_else(new, |session| session.commands)
    }

    fn reply(&mut self, request: &LoginRequest, data: Vec<u8>, cont: bool) -> TargetReply {
        let mut response = self.response(request, LoginStatus::SUCCESS);
        response.cont = cont;
        response.data_len = data.len() as u32;
        TargetReply { response, data, step: TargetStep::Continue }
    }

    fn response(&mut self, request: &LoginRequest, status: LoginStatus) -> LoginResponse {
        let commands = self.commands(request);
        let sn = StatusNumbers {
            stat_sn: self.stat_sn,
            exp_cmd_sn: commands.exp_cmd_sn(),
            max_cmd_sn: commands.max_cmd_sn(),
        };
        self.stat_sn = self.stat_sn.wrapping_add(1);
        LoginResponse {
            transit: false,
            cont: false,
            current: request.current,
            next: Stage::Security,
            version_max: VERSION,
            version_active: VERSION,
            isid: request.isid,
            tsih: if self.tsih == 0 { request.tsih } else { self.tsih },
            itt: request.itt,
            sn,
            status,
            data_len: 0,
        }
    }
}

/// Why the target ends a login. All except `Host` and `Redirect` are the initiator's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginRefusal {
    /// Its text is malformed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A name is malformed.
    #[error("initiator sent a bad name: {0}")]
    Name(#[from] NameError),
    /// A key cannot be agreed on.
    #[error(transparent)]
    Negotiation(#[from] NegotiationError),
    /// It broke a rule of the login phase.
    #[error("initiator sent {0}")]
    Protocol(&'static str),
    /// It does not support version 0.
    #[error("initiator speaks protocol versions from {0}, this target speaks 0")]
    Version(u8),
    /// It left out a key.
    #[error("initiator did not send {0}")]
    Missing(&'static str),
    /// Neither `Normal` nor `Discovery`.
    #[error("initiator asked for an unknown session type")]
    SessionType,
    /// It did not prove itself.
    #[error("authentication failed: {0}")]
    Authentication(&'static str),
    /// It is sent elsewhere.
    #[error("initiator was redirected to {address}")]
    Redirect {
        /// Where to.
        address: String,
        /// For good.
        permanent: bool,
    },
    /// The array refuses.
    #[error("{}", .0.describe())]
    Host(LoginStatus),
}

impl LoginRefusal {
    /// The status for the initiator.
    pub fn status(&self) -> LoginStatus {
        match self {
            LoginRefusal::Text(_)
            | LoginRefusal::Name(_)
            | LoginRefusal::Negotiation(_)
            | LoginRefusal::Protocol(_) => LoginStatus::INITIATOR_ERROR,
            LoginRefusal::Version(_) => LoginStatus::UNSUPPORTED_VERSION,
            LoginRefusal::Missing(_) => LoginStatus::MISSING_PARAMETER,
            LoginRefusal::SessionType => LoginStatus::SESSION_TYPE_NOT_SUPPORTED,
            LoginRefusal::Authentication(_) => LoginStatus::AUTHENTICATION_FAILED,
            LoginRefusal::Redirect { permanent: true, .. } => LoginStatus::MOVED_PERMANENTLY,
            LoginRefusal::Redirect { permanent: false, .. } => LoginStatus::MOVED_TEMPORARILY,
            LoginRefusal::Host(status) => *status,
        }
    }

    fn text(&self) -> Vec<u8> {
        let mut out = Writer::default();
        if let LoginRefusal::Redirect { address, .. } = self {
            out.push("TargetAddress", address);
        }
        out.into_bytes()
    }
}
