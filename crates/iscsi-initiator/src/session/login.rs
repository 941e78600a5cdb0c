//! From a connected socket to full feature phase. [`InitiatorLogin`] has the protocol.

use super::Session;
use super::connection::Connection;
use super::events::{Context, SessionEvent};
use super::loss::LossReason;
use super::state::Input;
use crate::event::{EventKind, IoSink};
use crate::facts::SessionFacts;
use crate::options::address::PortalAddress;
use linerate_io::{Driver, Nanos};
use linerate_iscsi_proto::chap::Algorithm;
use linerate_iscsi_proto::frame::Framer;
use linerate_iscsi_proto::login::{Established, InitiatorConfig, InitiatorLogin, InitiatorStep};
use linerate_iscsi_proto::pdu::{BHS_BYTES, LoginRequest, LoginResponse};
use linerate_iscsi_proto::send_targets::TargetAddress;
use std::io;

/// Redirections that are followed in one attempt.
const REDIRECTS_MAX: u8 = 8;

impl Session {
    /// TCP is connected, or not: starts the login.
    pub(crate) fn connected<D: Driver>(
        &mut self,
        driver: &mut D,
        at: usize,
        result: io::Result<()>,
    ) -> Result<(), LossReason> {
        let portal = self.portal_now(at);
        result.map_err(|error| LossReason::Connect { portal, error: error.to_string() })?;
        let connection = &mut self.connections[at];
        let local = driver.local_addr(connection.stream);
        let gone = |error: io::Error| LossReason::Broken {
            portal: connection.peer.to_string(),
            error: error.to_string(),
        };
        connection.local = Some(local.map_err(gone)?);
        if at > 0 {
            self.join(at);
            return Ok(());
        }
        self.step(Input::Connected);
        let mut login = InitiatorLogin::new(self.login_config());
        let (request, text) = login.start();
        let connection = &mut self.connections[at];
        write_request(&request, &text, &mut connection.login_bytes);
        connection.login = Some(login);
        Ok(())
    }

    pub(super) fn login_response<S: IoSink>(
        &mut self,
        at: usize,
        pdu: &LoginResponse,
        data: &[u8],
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        let connection = &mut self.connections[at];
        let Some(login) = &mut connection.login else {
            return Err(LossReason::Protocol("a login response out of turn"));
        };
        let received = login.receive(pdu, data, &mut *cx.random);
        if received.is_err() && login.unproved() == Some(Algorithm::Sha256) && at == 0 {
            return Err(LossReason::Sha256Refused);
        }
        match received? {
            InitiatorStep::Send(request, text) => {
                write_request(&request, &text, &mut connection.login_bytes);
                Ok(())
            }
            InitiatorStep::Done(established) if at > 0 => {
                self.joined(at, &established, now, cx);
                Ok(())
            }
            InitiatorStep::Done(established) => {
                connection.login = None;
                let ends_old = self.ends_old_session(&established);
                if self.recovery.via.is_some() {
                    return Err(if ends_old { LossReason::Reinstated } else { LossReason::OtherGroup });
                }
                if ends_old {
                    cx.events.push((self.id, SessionEvent::Reinstated));
                }
                self.established(&established, now, cx);
                Ok(())
            }
            InitiatorStep::Redirected { address, permanent } => {
                let to = TargetAddress::parse(&address);
                let to = to.ok_or(LossReason::Protocol("a redirection to an address that is none"))?;
                Err(LossReason::Redirected { to: PortalAddress { host: to.host, port: to.port }, permanent })
            }
        }
    }

    /// Whether this login has ended the old session: a session is identified by initiator, ISID, target and the group
    /// of the target's portals (RFC 7143 4.4.1).
    fn ends_old_session(&self, login: &Established) -> bool {
        self.facts.as_ref().is_none_or(|old| old.portal_group == login.portal_group_tag)
    }

    fn established<S: IoSink>(&mut self, login: &Established, now: Nanos, cx: &mut Context<'_, S>) {
        self.begin_window(login);
        if let Some(Connection { peer, local: Some(local_addr), .. }) = self.connections.first() {
            self.facts = Some(SessionFacts {
                target: self.config.target_name().to_owned(),
                portal: self.config.portal.to_string(),
                peer_addr: *peer,
                local_addr: *local_addr,
                params: login.params,
                portal_group: login.portal_group_tag,
                logins: 0,
                connections: Vec::new(),
            });
        }
        if !self.wants_further_connections(login) {
            self.begin_work(now, cx);
        }
    }

    /// All connections have joined.
    pub(super) fn begin_work<S: IoSink>(&mut self, now: Nanos, cx: &mut Context<'_, S>) {
        self.step(Input::LoggedIn);
        self.emit_connections(now, cx);
        self.restored(now, cx);
    }

    /// Names, offers and secrets of a login of this session.
    pub(super) fn login_config(&self) -> InitiatorConfig {
        let login = self.config.login.clone();
        let chap = match login.chap {
            Some(chap) if self.recovery.md5_only => Some(chap.only(Algorithm::Md5)),
            chap => chap,
        };
        InitiatorConfig { isid: self.isid, chap, ..login }
    }

    /// Connects once more to the same portal, to log in with MD5.
    pub(super) fn log_in_by_md5<D: Driver>(&mut self, driver: &mut D) -> Result<(), LossReason> {
        self.recovery.md5_only = true;
        self.step(Input::Redirected);
        self.attempt(driver)
    }

    /// Connects to the portal that the target redirects to.
    pub(super) fn follow<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        to: &PortalAddress,
        permanent: bool,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) -> Result<(), LossReason> {
        self.recovery.redirects += 1;
        if self.recovery.redirects > REDIRECTS_MAX {
            return Err(LossReason::RedirectLoop);
        }
        if permanent {
            self.recovery.moved = Some(to.clone());
        }
        self.emit(cx, now, EventKind::Redirected { to: to.to_string() });
        self.step(Input::Redirected);
        let source = self.source();
        self.connect(driver, to, source)
    }

    /// The address of the current or last connection, for messages.
    pub(super) fn portal_now(&self, at: usize) -> String {
        let peer = self.connections.get(at).map(|connection| connection.peer).or(self.recovery.peer);
        peer.map_or_else(|| self.config.portal.to_string(), |addr| addr.to_string())
    }
}

pub(super) fn write_request(request: &LoginRequest, text: &[u8], out: &mut Vec<u8>) {
    let mut bhs = [0; BHS_BYTES];
    request.emit(&mut bhs);
    tracing::trace!(event = "pdu", "sent {request}");
    Framer::default().write(&bhs, text, out);
}
