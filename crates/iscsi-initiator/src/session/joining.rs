//! The further connections of a session (RFC 7143 section 6.3.1): opened as soon as the first one is logged in.
//!
//! The session counts as logged in when all of them are, so that whoever measures it finds it whole. One that cannot be had
//! is done without, until the session logs in the next time; an event says so. One that is lost later takes the session
//! with it, as error recovery level 0 demands.

use super::link::Link;
use super::login::write_request;
use super::{Context, LossReason, Session, State};
use crate::event::{EventKind, IoSink};
use crate::facts::ConnectionFacts;
use linerate_io::{Driver, Nanos};
use linerate_iscsi_proto::login::{Established, InitiatorConfig, InitiatorLogin, Join};
use linerate_iscsi_proto::window::InitiatorWindow;

/// What a session knows of the connections that it wants beside the first.
#[derive(Debug, Default)]
pub(super) struct Joining {
    /// The target's handle of the session.
    tsih: u16,
    /// They have yet to be opened.
    pub(super) due: bool,
    /// Why there are fewer than wanted.
    missing: Option<String>,
}

impl Session {
    /// The first connection is logged in. Whether further ones follow.
    pub(super) fn wants_more(&mut self, login: &Established) -> bool {
        let wanted = if self.config.is_discovery() { 1 } else { self.config.options.connections };
        let allowed = login.params.max_connections;
        self.joining = Joining { tsih: login.tsih, due: wanted.min(allowed) > 1, missing: None };
        if allowed < wanted {
            self.joining.missing = Some(format!("the target allows {allowed} per session (MaxConnections)"));
        }
        self.joining.due
    }

    /// Opens the further connections.
    pub(super) fn open_further<D: Driver, S: IoSink>(&mut self, driver: &mut D, cx: &mut Context<'_, S>) {
        self.joining.due = false;
        let Some(leading) = self.links.first() else { return };
        let (same, count) =
            (leading.peer, self.config.options.connections.min(leading.params.max_connections));
        let portals = &self.config.connection_portals;
        for cid in 1..count {
            let peer = if portals.is_empty() {
                Ok(same)
            } else {
                portals[usize::from(cid - 1) % portals.len()].resolve()
            };
            let opened = peer.map_err(LossReason::from).and_then(|peer| {
                let source = self.config.options.source_address;
                Ok(Link::new(self.open_stream(driver, peer, source)?, cid, peer, driver.now()))
            });
            match opened {
                Ok(link) => self.links.push(link),
                Err(reason) => self.joining.missing = Some(reason.to_string()),
            }
        }
        self.look_whether_whole(driver.now(), cx);
    }

    /// A further connection stands: asks to join the session.
    pub(super) fn join(&mut self, at: usize) {
        let Some(leading) = self.links.first() else { return };
        let join = Some(Join { tsih: self.joining.tsih, params: leading.params });
        let (isid, cmd_sn) = (self.isid, self.window.immediate());
        let Some(link) = self.links.get_mut(at) else { return };
        let config = InitiatorConfig { isid, cid: link.cid, cmd_sn, join, ..self.config.login.clone() };
        let mut login = InitiatorLogin::new(config);
        let (request, text) = login.start();
        write_request(&request, &text, &mut link.login_bytes);
        link.login = Some(login);
    }

    /// A further connection has joined.
    pub(super) fn joined<S: IoSink>(
        &mut self,
        at: usize,
        login: &Established,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) {
        if let Some(link) = self.links.get_mut(at) {
            link.login = None;
            link.established(login);
            link.last_heard = now;
        }
        self.look_whether_whole(now, cx);
    }

    /// A connection cannot be used any more.
    pub(crate) fn lose_link<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        at: usize,
        reason: &LossReason,
        cx: &mut Context<'_, S>,
    ) {
        let joins = at > 0 && self.links.get(at).is_some_and(|link| !link.is_full());
        if !joins {
            return self.lose(driver, reason, driver.now(), cx);
        }
        driver.close(self.links.remove(at).stream);
        self.joining.missing = Some(reason.to_string());
        self.look_whether_whole(driver.now(), cx);
    }

    /// The time for logging in is over: goes on with the connections there are. False if not even the first is there.
    pub(super) fn do_without_the_rest<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) -> bool {
        if self.state != State::LoggingIn || !self.links.first().is_some_and(Link::is_full) {
            return false;
        }
        for link in self.links.extract_if(.., |link| !link.is_full()) {
            driver.close(link.stream);
            self.joining.missing = Some(format!("{} did not answer within login_timeout_s", link.peer));
        }
        self.look_whether_whole(now, cx);
        true
    }

    /// Begins to work when every connection has joined or failed to.
    fn look_whether_whole<S: IoSink>(&mut self, now: Nanos, cx: &mut Context<'_, S>) {
        if self.state == State::LoggingIn && !self.joining.due && self.links.iter().all(Link::is_full) {
            self.begin_work(now, cx);
        }
    }

    /// Says which connections there are, and how many are missing.
    pub(super) fn emit_connections<S: IoSink>(&mut self, now: Nanos, cx: &mut Context<'_, S>) {
        let facts = |link: &Link| {
            Some(ConnectionFacts { cid: link.cid, peer_addr: link.peer, local_addr: link.local? })
        };
        let connections: Vec<ConnectionFacts> = self.links.iter().filter_map(facts).collect();
        let count = connections.len() as u16;
        if let Some(facts) = &mut self.facts {
            facts.connections = connections;
        }
        if let Some(reason) = self.joining.missing.take() {
            let wanted = self.config.options.connections;
            self.emit(cx, now, EventKind::FewerConnections { wanted, count, reason });
        }
    }

    /// The window of a session that has just begun.
    pub(super) fn begin_window(&mut self, login: &Established) {
        self.window = InitiatorWindow::after_login(login);
        if let Some(link) = self.links.first_mut() {
            link.established(login);
        }
    }
}
