//! Logging in: the protocol crate's state machine, fed with this array's targets and sessions.

use super::{
    Connection, Phase,
    inbound::Sink,
    session::{Device, Session},
};
use crate::{
    context::{Core, Random},
    joint::{Joint, Joints},
    service::{ConnectionKey, Service},
};
use linerate_io::Driver;
use linerate_iscsi::{
    frame::Framer,
    keys::Offer,
    login::{
        Accepted, Established, Joined, Lookup, SessionRequest, TargetConfig, TargetHost, TargetLogin,
        TargetStep,
    },
    pdu::{BHS_BYTES, LoginRequest, LoginStatus},
    window::CommandWindow,
};
use std::{net::SocketAddr, sync::Arc};

/// One login.
pub(super) struct Login {
    machine: TargetLogin,
    /// The data segment that is arriving.
    data: Vec<u8>,
}

impl Login {
    pub(super) fn new<D: Driver>(core: &Core<D>) -> Self {
        let limits = &core.limits;
        let offer = Offer {
            max_recv_data_segment_length: limits.max_recv_data_segment_bytes,
            max_burst_length: limits.max_burst_bytes,
            first_burst_length: limits.first_burst_bytes,
            // A lost session needs no time to settle here before its initiator may end it by a new login.
            default_time2wait_s: 0,
            max_connections: limits.connections_per_session,
            ..Offer::default()
        };
        let machine = TargetLogin::new(TargetConfig {
            offer,
            text_bytes_max: limits.text_bytes,
            commands: limits.commands_per_session,
            first_stat_sn: 1,
        });
        Self { machine, data: Vec::new() }
    }
}

/// This array, as the login asks about it.
struct Host<'a, S> {
    service: &'a Service<S>,
    joints: &'a Joints,
    worker: usize,
    key: ConnectionKey,
    /// The initiator's end and ours.
    ends: (SocketAddr, SocketAddr),
    /// Tag of the portal group.
    group: u16,
    /// Earlier sessions that the login has to wait for.
    waits: u32,
    random: &'a mut Random,
}

impl<S> TargetHost for Host<'_, S> {
    fn find(&mut self, _initiator: &str, target: Option<&str>) -> Lookup {
        let portal_group_tag = self.group;
        let Some(name) = target else {
            return Lookup::Accept(Accepted { chap: None, alias: None, portal_group_tag });
        };
        let Some(target) = self.service.target(name) else {
            return Lookup::Refuse(LoginStatus::NOT_FOUND);
        };
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
        let (tsih, waits) = self.service.begin_session(request, self.worker, self.key, self.ends)?;
        self.waits = waits;
        Ok(tsih)
    }

    fn session(&mut self, tsih: u16) -> Option<Joined> {
        let (_, joint) = self.joints.find(tsih)?;
        Some(Joined { params: joint.params, commands: joint.commands() })
    }
}

impl Connection {
    pub(super) fn login_header<D: Driver>(&mut self, core: &mut Core<D>, data_len: u32) {
        self.sink = Sink::Whole;
        if data_len == 0 {
            self.login_pdu(core);
        }
    }

    pub(super) fn login_payload<D: Driver>(&mut self, core: &mut Core<D>, payload: &[u8], complete: bool) {
        if let Some(login) = &mut self.login {
            login.data.extend_from_slice(payload);
        }
        if complete {
            self.login_pdu(core);
        }
    }

    /// A whole login PDU is here.
    fn login_pdu<D: Driver>(&mut self, core: &mut Core<D>) {
        let Ok(request) = LoginRequest::parse(self.receiver.bhs()) else {
            return self.protocol_error(core, "something else than a login request");
        };
        let Some(login) = &mut self.login else { return };
        if request.tsih != 0
            && let Some(worker) = core.service.worker_of(request.tsih)
            && worker != core.index
        {
            self.moves_to = Some(worker);
            return;
        }
        let data = std::mem::take(&mut login.data);
        let mut host = Host {
            service: &*core.service,
            joints: &core.joints,
            worker: core.index,
            key: self.key,
            ends: (self.peer, self.local),
            group: self.group,
            waits: 0,
            random: &mut *core.random,
        };
        let mut reply = login.machine.receive(&request, &data, &mut host);
        self.waits = host.waits;
        let mut bhs = [0; BHS_BYTES];
        reply.response.data_len = reply.data.len() as u32;
        reply.response.emit(&mut bhs);
        let mut pdu = Vec::with_capacity(BHS_BYTES + reply.data.len() + 3);
        Framer::default().write(&bhs, &reply.data, &mut pdu);
        self.outbound.list.push_bytes(&pdu);
        self.outbound.pdus += 1;
        match reply.step {
            TargetStep::Continue => {}
            TargetStep::Done(established) => self.logged_in(core, &established),
            TargetStep::Close(refusal) => {
                tracing::info!(peer = %self.peer, reason = %refusal, "a login is refused");
                core.counters.logins_failed += 1;
                self.say_farewell();
            }
        }
    }

    fn logged_in<D: Driver>(&mut self, core: &mut Core<D>, established: &Established) {
        // A session that was replaced in this instant is gone already, and its connection told to close.
        let Some((nexus, live)) = core.service.session(established.tsih, self.key) else {
            return self.close(core);
        };
        live.begin(core.now);
        self.joint = self.find_joint(core, established);
        if !established.leading && self.joint.is_none() {
            core.service.leave_session(established.tsih, core.index, self.key);
            return self.close(core);
        }
        let target = established.target_name.as_deref().and_then(|name| core.service.target(name));
        let device = nexus.zip(target.map(Arc::clone)).map(|(nexus, target)| Device { nexus, target });
        let params = &established.params;
        self.receiver.negotiated(
            params.header_digest,
            params.data_digest,
            params.max_recv_data_segment_length,
        );
        tracing::info!(
            peer = %self.peer, initiator = established.initiator_name, cid = established.cid, "logged in"
        );
        core.counters.logins += u64::from(established.leading);
        self.acknowledged = established.stat_sn;
        let limits = &core.limits;
        let session = Session::new(established, device, live, limits);
        self.session = Some(Box::new(session));
        self.login = None;
        self.phase = Phase::Full;
        self.begin_turn(&core.joints);
    }

    /// The session among those that may have several connections. Its first connection brings it there.
    fn find_joint<D: Driver>(&self, core: &mut Core<D>, established: &Established) -> Option<u32> {
        let id = if established.leading {
            if established.params.max_connections == 1 || established.is_discovery() {
                return None;
            }
            let commands = CommandWindow::new(established.cmd_sn, core.limits.commands_per_session);
            core.joints.insert(Joint::new(established.tsih, established.params, commands))
        } else {
            core.joints.find(established.tsih)?.0
        };
        core.joints.get_mut(id)?.add(self.key.index, established.cid);
        Some(id)
    }

    /// The login PDU that another worker shall act on, as it was received.
    pub(super) fn take_login_pdu(&mut self) -> Vec<u8> {
        let data = self.login.as_mut().map(|login| std::mem::take(&mut login.data)).unwrap_or_default();
        let mut pdu = Vec::new();
        Framer::default().write(self.receiver.bhs(), &data, &mut pdu);
        pdu
    }
}
