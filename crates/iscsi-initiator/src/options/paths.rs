//! Settings of a device with several paths. The names are those of the Windows MPIO control panel and of
//! multipath.conf.

use super::address::PortalAddress;
use super::error::OptionsError;
use super::nanos;
use super::session::CONNECTIONS_MAX;
use crate::balance::{BalanceOptions, Policy};
use linerate_io::Nanos;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use std::{borrow::Cow, net::IpAddr};

/// Most paths of one device, its sessions counted one by one.
pub const PATHS_MAX: usize = 256;

/// One path to a LUN: its source, its portal and its priority. An empty list of paths means one path, to the address
/// itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// Its name in events and results; with several sessions they are called `name#1`, `name#2`, and so on.
    pub name: String,
    /// Its portal; None: the portal of the device's address.
    #[serde(default)]
    pub portal: Option<PortalAddress>,
    /// Its local address; None: that of the session options.
    #[serde(default)]
    pub source_address: Option<IpAddr>,
    /// Local interface whose link it depends on; see [`crate::Initiator::link_changed`].
    #[serde(default)]
    pub interface: Option<String>,
    /// Sessions on this path; each counts as a path of its own.
    #[serde(default = "one")]
    pub sessions: u32,
    /// Connections of each session (MC/S); 1 = as many as the session options say.
    #[serde(default = "one_connection")]
    pub connections: u16,
    /// For [`Policy::WeightedPaths`]: the path with the least weight is used.
    #[serde(default)]
    pub weight: u32,
    /// Used only while no other path works.
    #[serde(default)]
    pub standby: bool,
}

fn one() -> u32 {
    1
}

fn one_connection() -> u16 {
    1
}

impl PathSpec {
    /// A path with this name over the device's own portal.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            portal: None,
            source_address: None,
            interface: None,
            sessions: 1,
            connections: 1,
            weight: 0,
            standby: false,
        }
    }
}

/// When a restored path is used again, if its priority is better than that of the paths in use. A path of the same
/// priority is always used at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Failback {
    /// At once.
    #[default]
    Immediate,
    /// When [`crate::Initiator::fail_back`] is called, or when no other path is left.
    Manual,
    /// After this many seconds without another failure of it, or when no other path is left.
    Delayed(f64),
}

impl JsonSchema for Failback {
    fn schema_name() -> Cow<'static, str> {
        "Failback".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "enum": ["immediate", "manual"] }, { "type": "number" }] })
    }
}

impl Failback {
    /// How long a better restored path waits; None: until it is requested.
    pub(crate) fn delay_ns(self) -> Option<Nanos> {
        match self {
            Failback::Immediate => Some(0),
            Failback::Manual => None,
            Failback::Delayed(seconds) => Some(nanos(seconds)),
        }
    }
}

impl<'de> Deserialize<'de> for Failback {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Word {
            Immediate,
            Manual,
        }
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected \"immediate\", \"manual\" or a number of seconds")]
        enum Form {
            Word(Word),
            Seconds(f64),
        }
        Ok(match Form::deserialize(input)? {
            Form::Word(Word::Immediate) => Failback::Immediate,
            Form::Word(Word::Manual) => Failback::Manual,
            Form::Seconds(seconds) => Failback::Delayed(seconds),
        })
    }
}

/// Settings of a device with several paths. Times in seconds.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MultipathOptions {
    /// How an I/O's path is chosen.
    pub policy: Policy,
    /// Round robin moves on after so many I/Os.
    pub ios_per_path: u32,
    /// Round robin moves on after so many bytes; none = it counts I/Os.
    pub bytes_per_path: Option<u64>,
    /// When a better restored path is used again.
    pub failback: Failback,
    /// A path that receives nothing for this time is dead.
    pub path_timeout_s: f64,
    /// Longest pause between two attempts to restore a path, and between two polls of the access state of an unused
    /// path.
    pub checker_interval_s: f64,
    /// How long I/O waits when no path is left; None: for ever, 0: it fails at once.
    pub no_path_queue_s: Option<f64>,
}

impl Default for MultipathOptions {
    fn default() -> Self {
        Self {
            policy: Policy::RoundRobin,
            ios_per_path: 1,
            bytes_per_path: None,
            failback: Failback::Immediate,
            path_timeout_s: 1.0,
            checker_interval_s: 1.0,
            no_path_queue_s: Some(30.0),
        }
    }
}

impl MultipathOptions {
    /// The options for the choice of a path.
    pub(crate) fn balance(&self) -> BalanceOptions {
        BalanceOptions {
            policy: self.policy,
            ios_per_path: self.ios_per_path,
            bytes_per_path: self.bytes_per_path,
        }
    }

    /// Refuses settings that do not fit together or do not fit `paths`.
    pub fn check(&self, paths: &[PathSpec]) -> Result<(), OptionsError> {
        let delay = match self.failback {
            Failback::Delayed(seconds) => seconds,
            Failback::Immediate | Failback::Manual => 0.0,
        };
        for (key, seconds, least) in [
            ("path_timeout_s", self.path_timeout_s, 0.05),
            ("checker_interval_s", self.checker_interval_s, 0.05),
            ("no_path_queue_s", self.no_path_queue_s.unwrap_or(0.0), 0.0),
            ("failback", delay, 0.0),
        ] {
            if !(least..=1e6).contains(&seconds) {
                return Err(OptionsError::Time { key, seconds });
            }
        }
        if self.ios_per_path == 0 || self.bytes_per_path == Some(0) {
            return Err(OptionsError::ZeroTurn);
        }
        let sessions = paths.iter().fold(0_usize, |sum, path| sum.saturating_add(path.sessions as usize));
        if sessions > PATHS_MAX {
            return Err(OptionsError::Paths(format!(
                "{sessions} sessions; at most {PATHS_MAX} are possible"
            )));
        }
        for (at, path) in paths.iter().enumerate() {
            let refuse = |problem: &str| Err(OptionsError::Paths(format!("path {:?}: {problem}", path.name)));
            if paths[..at].iter().any(|other| other.name == path.name) {
                return refuse("the name is used twice");
            }
            if path.sessions == 0 {
                return refuse("sessions must be at least 1");
            }
            if !(1..=CONNECTIONS_MAX).contains(&path.connections) {
                return refuse("connections must be between 1 and 64");
            }
            if path.standby && self.policy == Policy::RoundRobin {
                return refuse("round_robin uses every path; choose round_robin_subset for one on standby");
            }
        }
        if !paths.is_empty() && paths.iter().all(|path| path.standby) {
            return Err(OptionsError::Paths("all of them are on standby".to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_as_they_are_written() {
        let text = r#"{ "policy": "least_blocks", "failback": 2.5, "no_path_queue_s": null }"#;
        let options: MultipathOptions = serde_json::from_str(text).unwrap();
        assert_eq!(options.policy, Policy::LeastBlocks);
        assert_eq!((options.failback, options.no_path_queue_s), (Failback::Delayed(2.5), None));
        for (text, failback) in [(r#""immediate""#, Failback::Immediate), (r#""manual""#, Failback::Manual)] {
            assert_eq!(serde_json::from_str::<Failback>(text).unwrap(), failback);
        }
        assert!(serde_json::from_str::<Failback>(r#""later""#).is_err());
        let path: PathSpec = serde_json::from_str(r#"{ "name": "a", "portal": "10.1.0.10:3261" }"#).unwrap();
        assert_eq!(path.portal.map(|portal| portal.port), Some(3261));
        assert!(serde_json::from_str::<PathSpec>(r#"{ "name": "a", "portal": "10.1.0.10:x" }"#).is_err());
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        let refused = |change: &dyn Fn(&mut MultipathOptions, &mut Vec<PathSpec>)| {
            let mut options = MultipathOptions::default();
            let mut paths = vec![PathSpec::named("left"), PathSpec::named("right")];
            options.check(&paths).unwrap();
            change(&mut options, &mut paths);
            options.check(&paths).unwrap_err().to_string()
        };
        assert!(refused(&|_, paths| paths[1].name = "left".into()).contains("\"left\""));
        assert!(refused(&|_, paths| paths[1].connections = 65).contains("between 1 and 64"));
        assert!(refused(&|_, paths| paths[0].sessions = 0).contains("at least 1"));
        assert!(refused(&|_, paths| paths[0].sessions = u32::MAX).contains("at most"));
        assert!(refused(&|_, paths| paths[1].standby = true).contains("round_robin_subset"));
        assert!(refused(&|options, _| options.ios_per_path = 0).contains("ios_per_path"));
        assert!(refused(&|options, _| options.path_timeout_s = f64::NAN).contains("path_timeout_s"));
        assert!(refused(&|options, _| options.failback = Failback::Delayed(-1.0)).contains("failback"));
    }
}
