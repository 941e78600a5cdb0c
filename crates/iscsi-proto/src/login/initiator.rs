//! The initiator's side of a login.

use super::table::{INITIATOR_LOGIN, InitiatorEvent, InitiatorState, next_state};
use super::{Established, LOGIN_PDUS_MAX, VERSION};
use crate::chap::{self, Algorithm, ChapConfig};
use crate::keys::{Negotiation, NegotiationError, Offer, Side, number};
use crate::names::IscsiName;
use crate::params::SessionParams;
use crate::pdu::{LoginRequest, LoginResponse, LoginStatus, Stage};
use crate::text::{self, Collector, TextError, Writer};

/// Most bytes of text that a target may send in one response, over all its PDUs.
const TEXT_BYTES_MAX: usize = 65_536;

/// The names, offers and secrets of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitiatorConfig {
    /// Our name.
    pub initiator_name: IscsiName,
    /// The target's name; `None` for a discovery session.
    pub target_name: Option<IscsiName>,
    /// Initiator session ID: unique among our sessions to the target. If it is used again, the login replaces a lost
    /// session.
    pub isid: [u8; 6],
    /// Connection ID.
    pub cid: u16,
    /// Tag of the login.
    pub itt: u32,
    /// Number of the session's first command.
    pub cmd_sn: u32,
    /// Our offer.
    pub offer: Offer,
    /// Our authentication, and whether the target must authenticate.
    pub chap: Option<ChapConfig>,
    /// The session to which the connection is added; `None` starts a new one.
    pub join: Option<Join>,
}

/// A session of ours that a further connection joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The target's handle of it.
    pub tsih: u16,
    /// The values that its first login has negotiated.
    pub params: SessionParams,
}

/// One login on the initiator's side.
#[derive(Debug)]
pub struct InitiatorLogin {
    config: InitiatorConfig,
    state: InitiatorState,
    collector: Collector,
    keys: Negotiation,
    pdus: u32,
    exp_stat_sn: Option<u32>,
    /// Algorithm, identifier and challenge of the authentication that we required.
    demanded: Option<(Algorithm, u8, Vec<u8>)>,
    /// Algorithm of the challenge that we have answered.
    answered: Option<Algorithm>,
    portal_group_tag: Option<u16>,
    proved: bool,
}

/// The next action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitiatorStep {
    /// Send this PDU and wait for the response.
    Send(LoginRequest, Vec<u8>),
    /// The login is done: continue in full feature phase.
    Done(Box<Established>),
    /// The target is at another address: close, connect to `address` (`host[:port][,tag]`) and log in there.
    Redirected {
        /// `TargetAddress`.
        address: String,
        /// For good: remember it.
        permanent: bool,
    },
}

type Pairs<'a> = [(&'a str, &'a str)];

fn value<'a>(pairs: &Pairs<'a>, name: &'static str) -> Option<&'a str> {
    pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
}

fn required<'a>(pairs: &Pairs<'a>, name: &'static str) -> Result<&'a str, LoginFailure> {
    value(pairs, name).ok_or(LoginFailure::Missing(name))
}

impl InitiatorLogin {
    /// A login that has not begun.
    pub fn new(config: InitiatorConfig) -> Self {
        let keys = match &config.join {
            None => Negotiation::new(Side::Initiator, config.offer, config.target_name.is_none()),
            Some(join) => Negotiation::joining(Side::Initiator, config.offer, &join.params),
        };
        InitiatorLogin {
            config,
            state: InitiatorState::Start,
            collector: Collector::new(TEXT_BYTES_MAX),
            keys,
            pdus: 0,
            exp_stat_sn: None,
            demanded: None,
            answered: None,
            portal_group_tag: None,
            proved: false,
        }
    }

    /// The algorithm of the challenge whose answer the target has not accepted yet; `None` without one.
    pub fn unproved(&self) -> Option<Algorithm> {
        self.answered.filter(|_| !self.proved)
    }

    /// The state of the login.
    pub fn state(&self) -> InitiatorState {
        self.state
    }

    /// The first request. Call once.
    pub fn start(&mut self) -> (LoginRequest, Vec<u8>) {
        let begun = self.step(InitiatorEvent::Begin);
        debug_assert!(begun.is_ok(), "a login is started once");
        let mut out = Writer::default();
        out.push("InitiatorName", self.config.initiator_name.as_str());
        match &self.config.target_name {
            Some(name) => {
                if self.config.join.is_none() {
                    out.push("SessionType", "Normal");
                }
                out.push("TargetName", name.as_str());
            }
            None => out.push("SessionType", "Discovery"),
        }
        let method = match &self.config.chap {
            None => "None",
            // A target that does not require authentication may skip it, unless it must authenticate itself.
            Some(chap) if chap.target().is_none() => "CHAP,None",
            Some(_) => "CHAP",
        };
        out.push("AuthMethod", method);
        self.request(out, self.config.chap.is_none())
    }

    /// Accepts a login response. `random` fills bytes for a challenge. After an error the connection must be closed.
    pub fn receive(
        &mut self,
        response: &LoginResponse,
        data: &[u8],
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<InitiatorStep, LoginFailure> {
        self.check_header(response)?;
        let text = self.collector.push(data, response.cont)?;
        if response.status.class == 1 {
            return redirected(response.status, &text.unwrap_or_default());
        }
        if response.status != LoginStatus::SUCCESS {
            return Err(LoginFailure::Refused(response.status));
        }
        let Some(text) = text else {
            let (request, data) = self.request(Writer::default(), false);
            return Ok(InitiatorStep::Send(request, data));
        };
        let pairs = text::parse(&text)?;
        if let Some(tag) = value(&pairs, "TargetPortalGroupTag") {
            let tag = number(tag).and_then(|tag| u16::try_from(tag).ok());
            self.portal_group_tag = Some(tag.ok_or(LoginFailure::Protocol("a bad TargetPortalGroupTag"))?);
        }
        match self.state {
            InitiatorState::Operational => self.operational(response, &pairs),
            _ => self.security(response, &pairs, random),
        }
    }

    fn check_header(&mut self, response: &LoginResponse) -> Result<(), LoginFailure> {
        self.pdus += 1;
        if self.pdus > LOGIN_PDUS_MAX {
            return Err(LoginFailure::Protocol("too many login responses"));
        }
        if response.status.class != 0 {
            // tgt's refusal of a CHAP response names no login.
            return Ok(());
        }
        if response.itt != self.config.itt || response.isid != self.config.isid {
            return Err(LoginFailure::Protocol("a response to another login"));
        }
        if response.version_active != VERSION {
            return Err(LoginFailure::Protocol("a protocol version that was not offered"));
        }
        if self.exp_stat_sn.is_some_and(|expected| expected != response.sn.stat_sn) {
            return Err(LoginFailure::Protocol("a StatSN that is not the next one"));
        }
        self.exp_stat_sn = Some(response.sn.stat_sn.wrapping_add(1));
        let stage = match self.state {
            InitiatorState::Operational => Stage::Operational,
            _ => Stage::Security,
        };
        if response.current != stage {
            return Err(LoginFailure::Protocol("a stage that is not the current one"));
        }
        Ok(())
    }

    fn security(
        &mut self,
        response: &LoginResponse,
        pairs: &Pairs<'_>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<InitiatorStep, LoginFailure> {
        let mut out = Writer::default();
        let event = match self.state {
            InitiatorState::Method => self.method(pairs, &mut out)?,
            InitiatorState::Algorithm => self.challenged(pairs, random, &mut out)?,
            InitiatorState::Response => self.proof(pairs)?,
            _ => InitiatorEvent::Talk,
        };
        self.step(event)?;
        if response.transit {
            if response.next != Stage::Operational {
                return Err(LoginFailure::Protocol("a stage that was not asked for"));
            }
            self.step(InitiatorEvent::ToOperational)?;
            self.keys.propose(&mut out);
        }
        // T is set as soon as we have nothing more to send in this stage.
        let transit = !matches!(self.state, InitiatorState::Method | InitiatorState::Algorithm);
        let (request, data) = self.request(out, transit);
        Ok(InitiatorStep::Send(request, data))
    }

    fn method(&self, pairs: &Pairs<'_>, out: &mut Writer) -> Result<InitiatorEvent, LoginFailure> {
        let mutual = self.config.chap.as_ref().is_some_and(|chap| chap.target().is_some());
        match (value(pairs, "AuthMethod"), &self.config.chap) {
            (Some("CHAP"), Some(chap)) => {
                let codes: Vec<String> = chap.algorithms().iter().map(|a| a.code().to_string()).collect();
                out.push("CHAP_A", &codes.join(","));
                Ok(InitiatorEvent::ChapChosen)
            }
            (Some("None"), _) if mutual => Err(LoginFailure::NotAuthentic("it does not authenticate at all")),
            (Some("None"), _) | (None, None) => Ok(InitiatorEvent::NoneChosen),
            (None, Some(_)) => Ok(InitiatorEvent::Talk),
            (Some(_), _) => Err(LoginFailure::Protocol("an authentication method that was not offered")),
        }
    }

    fn challenged(
        &mut self,
        pairs: &Pairs<'_>,
        random: &mut dyn FnMut(&mut [u8]),
        out: &mut Writer,
    ) -> Result<InitiatorEvent, LoginFailure> {
        let Some(config) = &self.config.chap else {
            return Err(LoginFailure::Protocol("a challenge that was not asked for"));
        };
        let algorithm = number(required(pairs, "CHAP_A")?)
            .and_then(Algorithm::from_code)
            .filter(|algorithm| config.algorithms().contains(algorithm))
            .ok_or(LoginFailure::Protocol("a CHAP algorithm that was not offered"))?;
        let identifier = number(required(pairs, "CHAP_I")?)
            .and_then(|id| u8::try_from(id).ok())
            .ok_or(LoginFailure::Protocol("a CHAP_I that is no byte"))?;
        let challenge = chap::decode(required(pairs, "CHAP_C")?)
            .map_err(|_| LoginFailure::Protocol("a CHAP_C that is no binary value"))?;
        out.push("CHAP_N", &config.initiator().name);
        let proof = algorithm.respond(identifier, &config.initiator().secret, &challenge);
        out.push("CHAP_R", &chap::encode_hex(&proof));
        self.answered = Some(algorithm);
        if config.target().is_some() {
            let mut bytes = vec![0; 1 + algorithm.response_len()];
            random(&mut bytes);
            let own = bytes.split_off(1);
            out.push("CHAP_I", &bytes[0].to_string());
            out.push("CHAP_C", &chap::encode_hex(&own));
            self.demanded = Some((algorithm, bytes[0], own));
        }
        Ok(InitiatorEvent::Challenged)
    }

    fn proof(&mut self, pairs: &Pairs<'_>) -> Result<InitiatorEvent, LoginFailure> {
        let target = self.config.chap.as_ref().and_then(ChapConfig::target);
        if let (Some(target), Some((algorithm, identifier, challenge))) = (target, &self.demanded) {
            let missing = LoginFailure::NotAuthentic("it did not answer the challenge");
            let (Some(name), Some(proof)) = (value(pairs, "CHAP_N"), value(pairs, "CHAP_R")) else {
                return Err(missing);
            };
            let proof = chap::decode(proof).map_err(|_| missing)?;
            let right = algorithm.verify(*identifier, &target.secret, challenge, &proof);
            if name != target.name || !right {
                return Err(LoginFailure::NotAuthentic("its name or secret is wrong"));
            }
        }
        self.proved = true;
        Ok(InitiatorEvent::Proved)
    }

    fn operational(
        &mut self,
        response: &LoginResponse,
        pairs: &Pairs<'_>,
    ) -> Result<InitiatorStep, LoginFailure> {
        let mut out = Writer::default();
        for (name, value) in pairs {
            // If both sides skip the security stage, tgt answers it only here.
            if *name == "AuthMethod" && *value == "None" && self.config.chap.is_none() {
                continue;
            }
            self.keys.receive(name, value, &mut out)?;
        }
        if !response.transit {
            self.step(InitiatorEvent::Talk)?;
            let (request, data) = self.request(out, true);
            return Ok(InitiatorStep::Send(request, data));
        }
        if !out.is_empty() {
            return Err(LoginFailure::Protocol("an offer that can no longer be answered"));
        }
        if self.keys.is_waiting() {
            return Err(LoginFailure::Protocol("no answer to some of the offered keys"));
        }
        if response.tsih == 0 {
            return Err(LoginFailure::Protocol("no session handle"));
        }
        if self.config.join.is_some_and(|join| join.tsih != response.tsih) {
            return Err(LoginFailure::Protocol("the handle of another session"));
        }
        self.step(InitiatorEvent::ToFullFeature)?;
        Ok(InitiatorStep::Done(Box::new(Established {
            initiator_name: self.config.initiator_name.to_string(),
            target_name: self.config.target_name.as_ref().map(IscsiName::to_string),
            isid: self.config.isid,
            tsih: response.tsih,
            cid: self.config.cid,
            params: self.keys.params(),
            leading: self.config.join.is_none(),
            cmd_sn: if self.config.join.is_none() { self.config.cmd_sn } else { response.sn.exp_cmd_sn },
            stat_sn: response.sn.stat_sn.wrapping_add(1),
            max_cmd_sn: response.sn.max_cmd_sn,
            user: self.config.chap.as_ref().filter(|_| self.proved).map(|chap| chap.initiator().name.clone()),
            portal_group_tag: self.portal_group_tag,
        })))
    }

    fn step(&mut self, event: InitiatorEvent) -> Result<(), LoginFailure> {
        let next = next_state(INITIATOR_LOGIN, self.state, event);
        self.state = next.ok_or(LoginFailure::Protocol("a step out of turn"))?;
        Ok(())
    }

    fn request(&self, out: Writer, transit: bool) -> (LoginRequest, Vec<u8>) {
        let data = out.into_bytes();
        let (current, next) = match self.state {
            InitiatorState::Operational => (Stage::Operational, Stage::FullFeature),
            _ => (Stage::Security, Stage::Operational),
        };
        let request = LoginRequest {
            transit,
            cont: false,
            current,
            next: if transit { next } else { Stage::Security },
            version_max: VERSION,
            version_min: VERSION,
            isid: self.config.isid,
            tsih: self.config.join.map_or(0, |join| join.tsih),
            itt: self.config.itt,
            cid: self.config.cid,
            cmd_sn: self.config.cmd_sn,
            exp_stat_sn: self.exp_stat_sn.unwrap_or(0),
            data_len: data.len() as u32,
        };
        (request, data)
    }
}

fn redirected(status: LoginStatus, text: &[u8]) -> Result<InitiatorStep, LoginFailure> {
    let pairs = text::parse(text)?;
    let address = required(&pairs, "TargetAddress")?;
    Ok(InitiatorStep::Redirected {
        address: address.to_owned(),
        permanent: status == LoginStatus::MOVED_PERMANENTLY,
    })
}

/// Why a login failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginFailure {
    /// The target refuses (fault: user for class 2, check names and secrets; target for class 3).
    #[error("target refused the login: {}", .0.describe())]
    Refused(LoginStatus),
    /// The target's text is malformed: the peer's fault.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A key cannot be agreed on.
    #[error(transparent)]
    Negotiation(#[from] NegotiationError),
    /// The target broke a rule of the login phase (fault: peer).
    #[error("target sent {0}")]
    Protocol(&'static str),
    /// The target left out a key (fault: peer).
    #[error("target did not send {0}")]
    Missing(&'static str),
    /// The target could not authenticate itself with mutual CHAP: a wrong secret, or a wrong target.
    #[error("target is not who it should be: {0}")]
    NotAuthentic(&'static str),
}

impl LoginFailure {
    /// The same login may succeed later without a changed setting.
    pub fn is_transient(&self) -> bool {
        matches!(self, LoginFailure::Refused(status) if status.class == 3)
    }
}
