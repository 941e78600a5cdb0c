//! Both login machines talking to each other, and the scenarios that the other files use.

use linerate_iscsi_proto::chap::{Algorithm, ChapConfig, ChapSecret, Credentials};
use linerate_iscsi_proto::keys::Offer;
use linerate_iscsi_proto::login::*;
use linerate_iscsi_proto::names::IscsiName;
use linerate_iscsi_proto::pdu::{BHS_BYTES, LoginRequest, LoginResponse, LoginStatus};

pub(crate) const TARGET: &str = "iqn.2026-11.lab.linerate:disk";
pub(crate) const INITIATOR: &str = "iqn.2026-11.lab.linerate:host";

/// An array with one target.
pub(crate) struct Host {
    pub(crate) lookup: Lookup,
    pub(crate) sessions: Vec<ExistingSession>,
    pub(crate) random: u8,
    /// What a login that names a session finds.
    pub(crate) joined: Option<Joined>,
}

impl Default for Host {
    fn default() -> Self {
        Host { lookup: Lookup::Accept(Accepted::default()), sessions: Vec::new(), random: 7, joined: None }
    }
}

impl Host {
    pub(crate) fn with_chap(chap: ChapConfig) -> Self {
        let accepted = Accepted { chap: Some(chap), portal_group_tag: 1, ..Accepted::default() };
        Host { lookup: Lookup::Accept(accepted), ..Host::default() }
    }
}

impl TargetHost for Host {
    fn find(&mut self, initiator: &str, target: Option<&str>) -> Lookup {
        assert_eq!(initiator, INITIATOR);
        match target {
            Some(TARGET) | None => self.lookup.clone(),
            Some(_) => Lookup::Refuse(LoginStatus::NOT_FOUND),
        }
    }

    fn random(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.random = self.random.wrapping_mul(29).wrapping_add(17);
            *byte = self.random;
        }
    }

    fn admit(&mut self, request: &SessionRequest) -> Result<u16, LoginStatus> {
        match decide(&self.sessions, request, 4) {
            Decision::Refuse(status) => return Err(status),
            Decision::Replace(index) => drop(self.sessions.remove(index)),
            Decision::Join(index) => {
                self.sessions[index].cids.push(request.cid);
                return Ok(request.tsih);
            }
            Decision::New => {}
        }
        let tsih = 1 + self.sessions.len() as u16;
        self.sessions.push(ExistingSession::begun_by(request, tsih));
        Ok(tsih)
    }

    fn session(&mut self, tsih: u16) -> Option<Joined> {
        self.joined.filter(|_| self.sessions.iter().any(|session| session.tsih == tsih))
    }
}

pub(crate) fn target_config() -> TargetLoginConfig {
    TargetLoginConfig { offer: Offer::default(), text_bytes_max: 65_536, commands: 32, first_stat_sn: 100 }
}

pub(crate) fn initiator_config() -> InitiatorConfig {
    InitiatorConfig {
        initiator_name: IscsiName::parse(INITIATOR).unwrap(),
        target_name: Some(IscsiName::parse(TARGET).unwrap()),
        isid: [0x80, 0, 0, 1, 2, 3],
        cid: 1,
        itt: 0x1234,
        cmd_sn: 500,
        offer: Offer::default(),
        chap: None,
        join: None,
    }
}

pub(crate) fn credentials(name: &str, secret: &str) -> Credentials {
    Credentials { name: name.into(), secret: ChapSecret::new(secret) }
}

pub(crate) fn one_way(algorithms: &[Algorithm], secret: &str) -> ChapConfig {
    ChapConfig::new(algorithms, credentials("alice", secret), None).unwrap()
}

pub(crate) fn mutual(algorithms: &[Algorithm], target_secret: &str) -> ChapConfig {
    let target = Some(credentials("array", target_secret));
    ChapConfig::new(algorithms, credentials("alice", "alice's secret"), target).unwrap()
}

/// How a login between the two machines ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done { initiator: Box<Established>, target: Box<Established> },
    Redirected { address: String, permanent: bool },
    Failed { initiator: LoginFailure },
}

impl Outcome {
    pub(crate) fn done(self) -> (Established, Established) {
        match self {
            Outcome::Done { initiator, target } => (*initiator, *target),
            other => panic!("the login should have succeeded: {other:?}"),
        }
    }

    pub(crate) fn status(self) -> LoginStatus {
        match self {
            Outcome::Failed { initiator: LoginFailure::Refused(status) } => status,
            other => panic!("the login should have been refused: {other:?}"),
        }
    }
}

/// Runs a login; every header goes over the wire form.
pub(crate) fn run(config: InitiatorConfig, target: TargetLoginConfig, host: &mut Host) -> Outcome {
    let mut initiator = InitiatorLogin::new(config);
    let mut login = TargetLogin::new(target);
    let (mut request, mut data) = initiator.start();
    let mut established = None;
    for _ in 0..100 {
        let mut bhs = [0; BHS_BYTES];
        request.emit(&mut bhs);
        let parsed = LoginRequest::parse(&bhs).unwrap();
        assert_eq!(parsed, request);
        let reply = login.receive(&parsed, &data, host);
        reply.response.emit(&mut bhs);
        let response = LoginResponse::parse(&bhs).unwrap();
        assert_eq!(response, reply.response);
        assert_eq!(response.data_len as usize, reply.data.len());
        match reply.step {
            TargetStep::Continue => {}
            TargetStep::Done(done) => established = Some(done),
            TargetStep::Close(why) => assert_ne!(reply.response.status, LoginStatus::SUCCESS, "{why}"),
        }
        let mut seed = 99_u8;
        let mut random = |bytes: &mut [u8]| {
            for byte in bytes {
                seed = seed.wrapping_mul(31).wrapping_add(5);
                *byte = seed;
            }
        };
        match initiator.receive(&response, &reply.data, &mut random) {
            Ok(InitiatorStep::Send(next, text)) => (request, data) = (next, text),
            Ok(InitiatorStep::Done(done)) => {
                return Outcome::Done { initiator: done, target: established.expect("both sides agree") };
            }
            Ok(InitiatorStep::Redirected { address, permanent }) => {
                return Outcome::Redirected { address, permanent };
            }
            Err(failure) => return Outcome::Failed { initiator: failure },
        }
    }
    panic!("the login does not end");
}
