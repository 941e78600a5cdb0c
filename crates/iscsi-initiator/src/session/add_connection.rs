//! The further connections of a session (RFC 7143 section 6.3.1): opened as soon as the first one is logged in.
//!
//! The session counts as logged in when all of them are, so that a measurement never starts with only some of them. If
//! a connection cannot be made, the session works without it until its next login; an event reports this. The later
//! loss of a connection ends the session, as error recovery level 0 demands.

use super::Session;
use super::connection::Connection;
use super::events::Context;
use super::login::write_request;
use super::loss::LossReason;
use super::retry::FurtherConnections;
use super::state::State;
use crate::event::{EventKind, IoSink};
use crate::facts::ConnectionFacts;
use linerate_io::{Driver, Nanos};
use linerate_iscsi_proto::login::{Established, InitiatorConfig, InitiatorLogin, Join};
use linerate_iscsi_proto::window::InitiatorWindow;

impl Session {
    /// The first connection is logged in. Returns whether further ones follow.
    pub(super) fn wants_further_connections(&mut self, login: &Established) -> bool {
        let wanted = if self.config.is_discovery() { 1 } else { self.config.options.connections };
        let allowed = login.params.max_connections;
        self.further = FurtherConnections { tsih: login.tsih, due: wanted.min(allowed) > 1, missing: None };
        if allowed < wanted {
            self.further.missing = Some(format!("the target allows {allowed} per session (MaxConnections)"));
        }
        self.further.due
    }

    /// Opens the further connections.
    pub(super) fn open_further_connections<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        cx: &mut Context<'_, S>,
    ) {
        self.further.due = false;
        let leading = &self.connections[0];
        let (same, count) =
            (leading.peer, self.config.options.connections.min(leading.params.max_connections));
        let portals = self.config.connection_portals.clone();
        let mut portals = portals.iter().cycle();
        for cid in 1..count {
            let peer = portals.next().map_or(Ok(same), |portal| self.address_of(portal));
            let opened = peer.map_err(LossReason::from).and_then(|peer| {
                let source = self.config.options.source_address;
                Ok(Connection::new(self.open_stream(driver, peer, source)?, cid, peer, driver.now()))
            });
            match opened {
                Ok(connection) => self.connections.push(connection),
                Err(reason) => self.further.missing = Some(reason.to_string()),
            }
        }
        self.begin_when_complete(driver.now(), cx);
    }

    /// A further connection is connected: request to join the session.
    pub(super) fn join(&mut self, at: usize) {
        let leading = &self.connections[0];
        let join = Some(Join { tsih: self.further.tsih, params: leading.params });
        let (login, cmd_sn) = (self.login_config(), self.window.immediate());
        let connection = &mut self.connections[at];
        let config = InitiatorConfig { cid: connection.cid, cmd_sn, join, ..login };
        let mut login = InitiatorLogin::new(config);
        let (request, text) = login.start();
        write_request(&request, &text, &mut connection.login_bytes);
        connection.login = Some(login);
    }

    /// A further connection has joined.
    pub(super) fn joined<S: IoSink>(
        &mut self,
        at: usize,
        login: &Established,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) {
        let connection = &mut self.connections[at];
        connection.login = None;
        connection.established(login);
        connection.last_heard = now;
        self.begin_when_complete(now, cx);
    }

    /// A connection cannot be used any more.
    pub(crate) fn lose_connection<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        at: usize,
        reason: &LossReason,
        cx: &mut Context<'_, S>,
    ) {
        let joins = at > 0 && !self.connections[at].is_full();
        if !joins {
            return self.lose(driver, reason, driver.now(), cx);
        }
        driver.close(self.connections.remove(at).stream);
        self.further.missing = Some(reason.to_string());
        self.begin_when_complete(driver.now(), cx);
    }

    /// The time for the login is over: continues with the connections that exist. False if even the first one is
    /// missing.
    pub(super) fn continue_without_missing<D: Driver, S: IoSink>(
        &mut self,
        driver: &mut D,
        now: Nanos,
        cx: &mut Context<'_, S>,
    ) -> bool {
        if self.state != State::LoggingIn || !self.connections.first().is_some_and(Connection::is_full) {
            return false;
        }
        for connection in self.connections.extract_if(.., |connection| !connection.is_full()) {
            driver.close(connection.stream);
            let limit = self.config.limits.login;
            self.further.missing = Some(format!("{} did not answer within {limit}", connection.peer));
        }
        self.begin_when_complete(now, cx);
        true
    }

    /// Begins to work when every connection has joined or failed.
    fn begin_when_complete<S: IoSink>(&mut self, now: Nanos, cx: &mut Context<'_, S>) {
        if self.state == State::LoggingIn
            && !self.further.due
            && self.connections.iter().all(Connection::is_full)
        {
            self.begin_work(now, cx);
        }
    }

    /// Reports which connections there are, and how many are missing.
    pub(super) fn emit_connections<S: IoSink>(&mut self, now: Nanos, cx: &mut Context<'_, S>) {
        let facts = |connection: &Connection| {
            Some(ConnectionFacts {
                cid: connection.cid,
                peer_addr: connection.peer,
                local_addr: connection.local?,
            })
        };
        let connections: Vec<ConnectionFacts> = self.connections.iter().filter_map(facts).collect();
        let count = connections.len() as u16;
        if let Some(facts) = &mut self.facts {
            facts.connections = connections;
        }
        if let Some(reason) = self.further.missing.take() {
            let wanted = self.config.options.connections;
            self.emit(cx, now, EventKind::FewerConnections { wanted, count, reason });
        }
    }

    /// The window of a session that has just begun.
    pub(super) fn begin_window(&mut self, login: &Established) {
        self.window = InitiatorWindow::after_login(login);
        self.connections[0].established(login);
    }
}
