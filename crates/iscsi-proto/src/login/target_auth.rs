//! The security stage on the target's side: method, algorithm, challenge, response.

use super::LoginRefusal;
use super::table::{TargetEvent, TargetState};
use crate::chap::{self, Algorithm, ChapConfig};
use crate::keys::{allowed_in_security, number};
use crate::text::{NOT_UNDERSTOOD, REJECT, Writer};

/// The agreed and sent values.
#[derive(Debug, Default)]
pub(super) struct TargetAuth {
    chap: Option<ChapConfig>,
    algorithm: Option<Algorithm>,
    identifier: u8,
    challenge: Vec<u8>,
    proved: bool,
}

/// Keys of CHAP, in the order of the exchange.
const CHAP_KEYS: [&str; 5] = ["CHAP_A", "CHAP_I", "CHAP_C", "CHAP_N", "CHAP_R"];

type Pairs<'a> = [(&'a str, &'a str)];

fn value<'a>(pairs: &Pairs<'a>, name: &str) -> Option<&'a str> {
    pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
}

impl TargetAuth {
    pub(super) fn new(chap: Option<ChapConfig>) -> Self {
        TargetAuth { chap, ..TargetAuth::default() }
    }

    /// A proof is demanded.
    pub(super) fn is_required(&self) -> bool {
        self.chap.is_some()
    }

    /// The user that was proved.
    pub(super) fn user(&self) -> Option<String> {
        self.chap.as_ref().filter(|_| self.proved).map(|chap| chap.initiator().name.clone())
    }

    /// Accepts the pairs of one security request, writes the answers, and returns their meaning.
    pub(super) fn receive(
        &mut self,
        state: TargetState,
        pairs: &Pairs<'_>,
        random: &mut dyn FnMut(&mut [u8]),
        out: &mut Writer,
    ) -> Result<TargetEvent, LoginRefusal> {
        for (index, (key, _)) in pairs.iter().enumerate() {
            if pairs[..index].iter().any(|(earlier, _)| earlier == key) {
                return Err(LoginRefusal::Protocol("a key twice"));
            }
            let security = *key == "AuthMethod" || CHAP_KEYS.contains(key);
            if !security && !allowed_in_security(key) {
                return Err(LoginRefusal::Protocol("an operational key in the security stage"));
            }
            if !security && !crate::keys::KEYS.iter().any(|known| known.name == *key) {
                out.push(key, NOT_UNDERSTOOD);
            }
        }
        match state {
            TargetState::Start => self.method(pairs, out),
            TargetState::Algorithm => self.algorithm(pairs, random, out),
            TargetState::Response => self.proof(pairs, out),
            _ => Ok(TargetEvent::Talk),
        }
    }

    fn method(&mut self, pairs: &Pairs<'_>, out: &mut Writer) -> Result<TargetEvent, LoginRefusal> {
        let wanted = if self.chap.is_some() { "CHAP" } else { "None" };
        let Some(offered) = value(pairs, "AuthMethod") else {
            // A request without a method offers no authentication.
            return Ok(if self.chap.is_some() { TargetEvent::Talk } else { TargetEvent::NoneAgreed });
        };
        if !offered.split(',').any(|method| method == wanted) {
            return Err(LoginRefusal::Authentication("no common authentication method"));
        }
        out.push("AuthMethod", wanted);
        Ok(if self.chap.is_some() { TargetEvent::ChapAgreed } else { TargetEvent::NoneAgreed })
    }

    fn algorithm(
        &mut self,
        pairs: &Pairs<'_>,
        random: &mut dyn FnMut(&mut [u8]),
        out: &mut Writer,
    ) -> Result<TargetEvent, LoginRefusal> {
        let offered = value(pairs, "CHAP_A").ok_or(LoginRefusal::Missing("CHAP_A"))?;
        let ours = self.chap.as_ref().map_or(&[][..], ChapConfig::algorithms);
        // The initiator lists them in its order of preference (RFC 7143 section 12.1.3); the answer is the first
        // supported one (6.2.1). Some initiators list algorithms that they cannot compute.
        let mut listed = offered.split(',').filter_map(|code| number(code).and_then(Algorithm::from_code));
        let Some(algorithm) = listed.find(|algorithm| ours.contains(algorithm)) else {
            out.push("CHAP_A", REJECT);
            return Err(LoginRefusal::Authentication("no common CHAP algorithm"));
        };
        let mut identifier = [0];
        random(&mut identifier);
        self.identifier = identifier[0];
        self.challenge = vec![0; algorithm.response_len()];
        random(&mut self.challenge);
        self.algorithm = Some(algorithm);
        out.push("CHAP_A", &algorithm.code().to_string());
        out.push("CHAP_I", &self.identifier.to_string());
        out.push("CHAP_C", &chap::encode_hex(&self.challenge));
        Ok(TargetEvent::AlgorithmAgreed)
    }

    fn proof(&mut self, pairs: &Pairs<'_>, out: &mut Writer) -> Result<TargetEvent, LoginRefusal> {
        let (Some(config), Some(algorithm)) = (&self.chap, self.algorithm) else {
            return Err(LoginRefusal::Protocol("a CHAP response without a challenge"));
        };
        let name = value(pairs, "CHAP_N").ok_or(LoginRefusal::Missing("CHAP_N"))?;
        let response = value(pairs, "CHAP_R").ok_or(LoginRefusal::Missing("CHAP_R"))?;
        let failed = LoginRefusal::Authentication("the user name or the secret is wrong");
        let response = chap::decode(response).map_err(|_| failed.clone())?;
        // Both are always computed, so the time does not reveal which one was wrong.
        let known = name == config.initiator().name;
        let right = algorithm.verify(self.identifier, &config.initiator().secret, &self.challenge, &response);
        if !known || !right {
            return Err(failed);
        }
        match (value(pairs, "CHAP_I"), value(pairs, "CHAP_C"), config.target()) {
            (None, None, _) => {}
            (Some(identifier), Some(challenge), Some(target)) => {
                let identifier = number(identifier).and_then(|id| u8::try_from(id).ok());
                let identifier = identifier.ok_or(LoginRefusal::Protocol("a CHAP_I that is no byte"))?;
                let challenge = chap::decode(challenge)
                    .map_err(|_| LoginRefusal::Protocol("a CHAP_C that is no binary value"))?;
                if challenge == self.challenge {
                    return Err(LoginRefusal::Authentication("the challenge was reflected"));
                }
                out.push("CHAP_N", &target.name);
                let proof = algorithm.respond(identifier, &target.secret, &challenge);
                out.push("CHAP_R", &chap::encode_hex(&proof));
            }
            (Some(_), Some(_), None) => {
                return Err(LoginRefusal::Authentication("this target has no secret to prove itself with"));
            }
            _ => return Err(LoginRefusal::Protocol("only one of CHAP_I and CHAP_C")),
        }
        self.proved = true;
        Ok(TargetEvent::Proved)
    }
}
