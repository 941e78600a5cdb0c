//! From a connected socket to full feature phase. The conversation itself is [`InitiatorLogin`]'s.

use super::{Input, LossReason, Notice, Session, Turn};
use crate::address::PortalAddress;
use crate::event::{EventKind, IoSink};
use crate::initiator::SessionFacts;
use linerate_io::{Driver, Nanos};
use linerate_iscsi::frame::Framer;
use linerate_iscsi::login::{Established, InitiatorConfig, InitiatorLogin, InitiatorStep};
use linerate_iscsi::pdu::{BHS_BYTES, LoginRequest, LoginResponse};
use linerate_iscsi::send_targets::TargetAddress;
use linerate_iscsi::window::InitiatorWindow;
use std::io;

/// Redirections that are followed in one attempt.
const REDIRECTS_MAX: u8 = 8;

impl Session {
    /// TCP is connected, or not: starts the login.
    pub(crate) fn connected<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        result: io::Result<()>,
        _turn: &mut Turn<'_, S>,
    ) -> Result<(), LossReason> {
        let portal = self.portal_now();
        result.map_err(|error| LossReason::Connect { portal, error: error.to_string() })?;
        self.step(Input::Connected);
        let Some(link) = &mut self.link else { return Ok(()) };
        self.recovery.local = driver.local_addr(link.stream).ok();
        let mut login = InitiatorLogin::new(InitiatorConfig { isid: self.isid, ..self.config.login.clone() });
        let (request, text) = login.start();
        write_request(&request, &text, &mut link.login_bytes);
        link.login = Some(login);
        Ok(())
    }

    pub(super) fn login_response<S: IoSink>(
        &mut self,
        pdu: &LoginResponse,
        data: &[u8],
        now: Nanos,
        turn: &mut Turn<'_, S>,
    ) -> Result<(), LossReason> {
        let Some(link) = &mut self.link else { return Ok(()) };
        let Some(login) = &mut link.login else {
            return Err(LossReason::Protocol("a login response out of turn"));
        };
        match login.receive(pdu, data, &mut *turn.random)? {
            InitiatorStep::Send(request, text) => {
                write_request(&request, &text, &mut link.login_bytes);
                Ok(())
            }
            InitiatorStep::Done(established) => {
                link.login = None;
                let ends_old = self.ends_old_session(&established);
                if self.recovery.detour.is_some() {
                    return Err(if ends_old { LossReason::Fenced } else { LossReason::OtherGroup });
                }
                if self.config.path.is_some() && ends_old {
                    turn.notices.push((self.id, Notice::Fenced));
                }
                self.established(&established, now, turn);
                Ok(())
            }
            InitiatorStep::Redirected { address, permanent } => {
                let to = TargetAddress::parse(&address);
                let to = to.ok_or(LossReason::Protocol("a redirection to an address that is none"))?;
                Err(LossReason::Redirected { to: PortalAddress { host: to.host, port: to.port }, permanent })
            }
        }
    }

    /// Whether this login has ended the session that was there before: a session is named by initiator, ISID, target and
    /// the group of the target's portals (RFC 7143 4.4.1).
    fn ends_old_session(&self, login: &Established) -> bool {
        self.facts.as_ref().is_none_or(|old| old.portal_group == login.portal_group_tag)
    }

    fn established<S: IoSink>(&mut self, login: &Established, now: Nanos, turn: &mut Turn<'_, S>) {
        let params = login.params;
        if let Some(link) = &mut self.link {
            link.receiver.negotiated(
                params.header_digest,
                params.data_digest,
                params.max_recv_data_segment_length,
            );
            link.framer = Framer { header_digest: params.header_digest, data_digest: params.data_digest };
        }
        self.window = InitiatorWindow::after_login(login);
        self.params = params;
        if let (Some(peer_addr), Some(local_addr)) = (self.recovery.peer, self.recovery.local) {
            self.facts = Some(SessionFacts {
                target: self.config.target_name().to_owned(),
                portal: self.config.portal.to_string(),
                peer_addr,
                local_addr,
                params,
                portal_group: login.portal_group_tag,
                logins: 0,
            });
        }
        self.step(Input::LoggedIn);
        self.restored(now, turn);
    }

    /// Connects to where the target sent us.
    pub(super) fn follow<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        to: &PortalAddress,
        permanent: bool,
        now: Nanos,
        turn: &mut Turn<'_, S>,
    ) -> Result<(), LossReason> {
        self.recovery.redirects += 1;
        if self.recovery.redirects > REDIRECTS_MAX {
            return Err(LossReason::RedirectLoop);
        }
        if permanent {
            self.recovery.moved = Some(to.clone());
        }
        self.tell(turn, now, EventKind::Redirected { to: to.to_string() });
        self.step(Input::Redirected);
        let source = self.source();
        self.connect(driver, to, source)
    }

    /// The address of the connection there is or was, for messages.
    pub(super) fn portal_now(&self) -> String {
        self.recovery.peer.map_or_else(|| self.config.portal.to_string(), |addr| addr.to_string())
    }
}

fn write_request(request: &LoginRequest, text: &[u8], out: &mut Vec<u8>) {
    let mut bhs = [0; BHS_BYTES];
    request.emit(&mut bhs);
    Framer::default().write(&bhs, text, out);
}
