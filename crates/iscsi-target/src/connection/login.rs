//! Login: the state machine of the protocol crate, with this array's targets and sessions.

use super::{
    Connection, Phase,
    inbound::Sink,
    session::{Device, Session},
};
use crate::{
    admission::{ChapAttempt, ChapCheck, ChapIdentity, Peer, Ticket},
    context::{Random, WorkerContext},
    mcs::{McsSession, McsSessions},
    shared::{NewConnection, SharedState},
};
use linerate_io::{Driver, Nanos};
use linerate_iscsi_proto::{
    frame::Framer,
    keys::Offer,
    login::{
        Accepted, Established, Joined, LoginRefusal, Lookup, SessionRequest, TargetHost, TargetLogin,
        TargetLoginConfig, TargetState, TargetStep,
    },
    pdu::{BHS_BYTES, LoginRequest, LoginStatus},
    window::CommandWindow,
};
use std::net::SocketAddr;

/// Longest text of a login, over all its PDUs: the array must store it before the peer is authenticated.
const LOGIN_TEXT_BYTES_MAX: usize = 16 * 1024;

/// One login.
pub(super) struct Login {
    machine: TargetLogin,
    /// The data segment that is arriving.
    data: Vec<u8>,
}

/// Why a login is delayed. Its connection is not read meanwhile.
pub(super) enum LoginDelay {
    /// The CHAP response will be checked later.
    Proof { attempt: ChapAttempt, until: Nanos },
    /// The CHAP response was wrong; the answer is sent later.
    Answer { until: Nanos },
}

impl Login {
    pub(super) fn new<D: Driver>(context: &WorkerContext<D>) -> Self {
        let limits = &context.limits;
        let offer = Offer {
            max_recv_data_segment_length: limits.max_recv_data_segment_bytes,
            max_burst_length: limits.max_burst_bytes,
            first_burst_length: limits.first_burst_bytes,
            // After the loss of a session, its initiator need not wait before a new login ends it.
            default_time2wait_s: 0,
            max_connections: limits.connections_per_session,
            ..Offer::default()
        };
        let machine = TargetLogin::new(TargetLoginConfig {
            offer,
            text_bytes_max: limits.text_bytes.min(LOGIN_TEXT_BYTES_MAX),
            commands: limits.commands_per_session,
            first_stat_sn: 1,
        });
        Self { machine, data: Vec::new() }
    }
}

/// This array, as the login state machine sees it.
struct Host<'a, S> {
    shared: &'a SharedState<S>,
    mcs_sessions: &'a McsSessions,
    newcomer: NewConnection,
    /// Tag of the portal group.
    group: u16,
    /// The number of earlier sessions that the login must wait for.
    waits: u32,
    /// The initiator, and the target that it requests.
    names: Option<(String, Option<String>)>,
    random: &'a mut Random,
}

impl<S> TargetHost for Host<'_, S> {
    fn find(&mut self, initiator: &str, target: Option<&str>) -> Lookup {
        self.names = Some((initiator.to_owned(), target.map(str::to_owned)));
        let portal_group_tag = self.group;
        let Some(name) = target else {
            return Lookup::Accept(Accepted { chap: None, alias: None, portal_group_tag });
        };
        let Some(target) = self.shared.target(name) else {
            return Lookup::Refuse(LoginStatus::NOT_FOUND);
        };
        // Not NOT_FOUND: initiators choose their names themselves, so hiding the target would not protect it. After a
        // typing error in the initiator name, the owner would look for an error in the target name (RFC 7143 section
        // 11.13.5).
        if !target.admits(initiator) {
            return Lookup::Refuse(LoginStatus::FORBIDDEN);
        }
        match &target.redirect {
            Some(address) => Lookup::Redirect { address: address.clone(), permanent: false },
            None => Lookup::Accept(Accepted {
                chap: target.chap.clone(),
                alias: target.alias.clone(),
                portal_group_tag,
            }),
        }
    }

    fn random(&mut self, bytes: &mut [u8]) {
        (self.random)(bytes);
    }

    fn admit(&mut self, request: &SessionRequest) -> Result<u16, LoginStatus> {
        let (tsih, waits) = self.shared.begin_session(request, self.newcomer)?;
        self.waits = waits;
        Ok(tsih)
    }

    fn session(&mut self, tsih: u16) -> Option<Joined> {
        let (_, mcs) = self.mcs_sessions.find(tsih)?;
        Some(Joined { params: mcs.params, commands: mcs.commands() })
    }
}

impl Connection {
    pub(super) fn login_header<D: Driver>(&mut self, context: &mut WorkerContext<D>, data_len: u32) {
        self.sink = Sink::Whole;
        if data_len == 0 {
            self.login_pdu(context);
        }
    }

    pub(super) fn login_payload<D: Driver>(
        &mut self,
        context: &mut WorkerContext<D>,
        payload: &[u8],
        complete: bool,
    ) {
        if let Some(login) = &mut self.login {
            login.data.extend_from_slice(payload);
        }
        if complete {
            self.login_pdu(context);
        }
    }

    /// A whole login PDU is here.
    fn login_pdu<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        let Ok(request) = LoginRequest::parse(self.receiver.bhs()) else {
            return self.protocol_error(context, "something else than a login request");
        };
        let Some(login) = &mut self.login else {
            unreachable!("a connection logs in once");
        };
        if request.tsih != 0
            && let Some(worker) = context.shared.worker_of(request.tsih)
            && worker != context.index
        {
            self.moves_to = Some(worker);
            return;
        }
        let attempt = attempt_of(&login.machine, self.peer, self.ticket, context);
        if let Some(attempt) = &attempt
            && let ChapCheck::Later(until) = context.shared.chap_delays().ask(attempt, context.now)
        {
            self.delay = Some(Box::new(LoginDelay::Proof { attempt: attempt.clone(), until }));
            return;
        }
        let data = std::mem::take(&mut login.data);
        let newcomer = NewConnection {
            worker: context.index,
            connection: self.key,
            endpoints: (self.peer, self.local),
            now: context.now,
        };
        let mut host = Host {
            shared: &*context.shared,
            mcs_sessions: &context.mcs_sessions,
            newcomer,
            group: self.group,
            waits: 0,
            names: None,
            random: &mut *context.random,
        };
        let mut reply = login.machine.receive(&request, &data, &mut host);
        self.waits = host.waits;
        let names = host.names;
        if let Some(attempt) = attempt {
            let still_due = login.machine.state() == TargetState::Response;
            self.delay = judged(&attempt, &reply.step, still_due, context);
        }
        let mut bhs = [0; BHS_BYTES];
        reply.response.data_len = reply.data.len() as u32;
        reply.response.emit(&mut bhs);
        tracing::trace!(event = "pdu", peer = %self.peer, "sent {}", reply.response);
        let mut pdu = Vec::with_capacity(BHS_BYTES + reply.data.len() + 3);
        Framer::default().write(&bhs, &reply.data, &mut pdu);
        self.outbound.list.push_bytes(&pdu);
        self.outbound.pdus += 1;
        match reply.step {
            TargetStep::Continue => {}
            TargetStep::Done(established) => self.logged_in(context, &established),
            TargetStep::Close(refusal) => {
                self.report_refusal(&refusal, names.as_ref());
                context.counters.logins_failed += 1;
                self.close_when_sent();
            }
        }
    }

    /// Continues a login after its delay.
    pub(crate) fn check_login_delay<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        let is_over = |delay: &LoginDelay| match delay {
            LoginDelay::Proof { until, .. } | LoginDelay::Answer { until } => context.now >= *until,
        };
        match self.delay.take_if(|delay| is_over(delay)).as_deref() {
            None => return,
            Some(LoginDelay::Proof { .. }) => self.login_pdu(context),
            Some(LoginDelay::Answer { .. }) => {}
        }
        self.resume(context);
    }

    /// The connection closes: responses that wait behind its own may be checked.
    pub(super) fn end_login_delay<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        if let Some(LoginDelay::Proof { attempt, .. }) = self.delay.take().as_deref() {
            let next = context.shared.chap_delays().leave(attempt);
            context.shared.call_next_chap(next);
        }
    }

    /// Others need the place of a connection that has not logged in.
    pub(crate) fn give_way<D: Driver>(&mut self, context: &mut WorkerContext<D>) {
        if self.session.is_none() {
            context.counters.connections_refused += 1;
            tracing::warn!(
                event = "half_open_dropped",
                peer = %self.peer,
                "a connection that had not logged in made way for a newer one \
                 (limits.half_open_per_peer, limits.half_open_connections)"
            );
            self.close(context);
        }
    }

    /// `names` are known if the refused request contained them.
    fn report_refusal(&self, refusal: &LoginRefusal, names: Option<&(String, Option<String>)>) {
        let status = refusal.status();
        if status == LoginStatus::OUT_OF_RESOURCES {
            return; // reported by the limit
        }
        let known = || self.login.as_ref().and_then(|login| login.machine.names());
        let (initiator, target) = match names {
            Some((initiator, target)) => (initiator.as_str(), target.as_deref()),
            None => known().unwrap_or(("unknown", None)),
        };
        tracing::warn!(
            event = if self.delay.is_some() { "chap_failed" } else { "login_refused" },
            peer = %self.peer,
            initiator,
            target = target.unwrap_or("discovery"),
            status = format!("0x{:02x}{:02x}", status.class, status.detail),
            "a login is refused: {refusal}"
        );
    }

    fn logged_in<D: Driver>(&mut self, context: &mut WorkerContext<D>, established: &Established) {
        // A session that was replaced at this moment has ended, and its connection was told to close.
        let Some((nexus, live)) = context.shared.session(established.tsih, self.key) else {
            return self.close(context);
        };
        live.begin(context.now);
        self.mcs = self.find_joint(context, established);
        if !established.leading && self.mcs.is_none() {
            context.shared.leave_session(established.tsih, context.index, self.key);
            return self.close(context);
        }
        let target = established.target_name.as_deref().and_then(|name| context.shared.target(name));
        let device = nexus.zip(target).map(|(nexus, target)| Device { nexus, target });
        let params = &established.params;
        self.receiver.negotiated(
            params.header_digest,
            params.data_digest,
            params.max_recv_data_segment_length,
        );
        tracing::info!(
            event = "logged_in",
            peer = %self.peer,
            portal = %self.local,
            initiator = established.initiator_name,
            target = established.target_name.as_deref().unwrap_or("discovery"),
            cid = established.cid,
            "an initiator has logged in"
        );
        context.counters.logins += u64::from(established.leading);
        context.shared.connections().logged_in(self.ticket, self.peer.ip(), context.now);
        self.acknowledged = established.stat_sn;
        let limits = &context.limits;
        let session = Session::new(established, device, live, limits);
        self.session = Some(Box::new(session));
        self.login = None;
        self.phase = Phase::Full;
        self.begin_turn(&context.mcs_sessions);
    }

    /// The session, if it may have several connections. Its first connection adds it.
    fn find_joint<D: Driver>(
        &self,
        context: &mut WorkerContext<D>,
        established: &Established,
    ) -> Option<u32> {
        let id = if established.leading {
            if established.params.max_connections == 1 || established.is_discovery() {
                return None;
            }
            let commands = CommandWindow::new(established.cmd_sn, context.limits.commands_per_session);
            context.mcs_sessions.insert(McsSession::new(established.tsih, established.params, commands))
        } else {
            context.mcs_sessions.find(established.tsih)?.0
        };
        context.mcs_sessions.get_mut(id)?.add(self.key.index, established.cid);
        Some(id)
    }

    /// The login PDU for another worker, as it was received.
    pub(super) fn take_login_pdu(&mut self) -> Vec<u8> {
        let data = self.login.as_mut().map(|login| std::mem::take(&mut login.data)).unwrap_or_default();
        let mut pdu = Vec::new();
        Framer::default().write(self.receiver.bhs(), &data, &mut pdu);
        pdu
    }
}

/// The CHAP attempt of the next request, if one is due.
fn attempt_of<D: Driver>(
    machine: &TargetLogin,
    peer: SocketAddr,
    ticket: Ticket,
    context: &WorkerContext<D>,
) -> Option<ChapAttempt> {
    let (initiator, target) = machine.names().filter(|_| machine.state() == TargetState::Response)?;
    let (initiator, target) = (initiator.to_owned(), target.unwrap_or_default().to_owned());
    let identity = ChapIdentity { peer: Peer::of(peer.ip()), initiator, target };
    Some(context.shared.chap_delays().attempt(identity, ticket))
}

/// Handles the result of a check: a wrong response is answered late, and other waiting ones continue.
fn judged<D: Driver>(
    attempt: &ChapAttempt,
    step: &TargetStep,
    still_due: bool,
    context: &WorkerContext<D>,
) -> Option<Box<LoginDelay>> {
    let shared = &context.shared;
    let next = match step {
        TargetStep::Close(LoginRefusal::Authentication(_)) => {
            let until = shared.chap_delays().failed(attempt, context.now);
            return Some(Box::new(LoginDelay::Answer { until }));
        }
        TargetStep::Continue | TargetStep::Done(_) if !still_due => shared.chap_delays().succeeded(attempt),
        _ => shared.chap_delays().leave(attempt),
    };
    shared.call_next_chap(next);
    None
}
