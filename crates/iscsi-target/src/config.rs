//! The configuration of an array, as read from JSON.
//!
//! Unknown keys are refused. Sizes are in bytes, times in seconds; 0 means "no limit" where the text says so.
//! [`crate::Array::start`] checks whether the parts fit together; its errors name the key and the solution.

use linerate_io::{Preference, WaitMode};
use linerate_iscsi_proto::chap::Algorithm;
use linerate_scsi::AccessState;
use linerate_storage::controller::StorageConfig;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// An array: its portals, threads, limits and targets.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayConfig {
    /// Name in messages, and the seed of the volumes' identifiers.
    #[serde(default = "default_name")]
    pub name: String,
    /// Where to listen.
    #[serde(default = "default_portals")]
    pub portals: Vec<PortalConfig>,
    /// Settings of portal groups that differ from the default.
    #[serde(default)]
    pub portal_groups: Vec<PortalGroupConfig>,
    /// Threads that serve connections; 0 = one per allowed CPU.
    #[serde(default = "one")]
    pub workers: usize,
    /// CPUs to pin the workers to, in turn; `null` = not pinned.
    #[serde(default)]
    pub cpus: Option<Vec<usize>>,
    /// Which I/O driver to use.
    #[serde(default)]
    pub driver: DriverName,
    /// How workers wait.
    #[serde(default)]
    pub wait: WaitMode,
    /// Touch the memory of volumes and disks in huge pages ahead of their first use; see
    /// [`linerate_io::Region::touch_ahead`].
    #[serde(default = "yes")]
    pub touch_memory: bool,
    /// Limits for peers.
    #[serde(default)]
    pub limits: ArrayLimits,
    /// Disks, RAID sets and pools, for volumes of kind "raid" and "pool".
    #[serde(default)]
    pub storage: StorageConfig,
    /// The targets.
    pub targets: Vec<TargetConfig>,
}

/// A network portal. In JSON a string, which is the address, or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortalConfig {
    /// Address with port (IPv6 as `[::1]:3260`); port 0 = any.
    pub address: Option<String>,
    /// Instead of an address: every address of this interface, also later ones.
    pub interface: Option<String>,
    /// Port on the interface's addresses.
    pub port: u16,
    /// Tag of its portal group (1 to 65535): one SCSI target port, in a target port group of the same number.
    pub group: u16,
}

/// The object form of [`PortalConfig`].
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PortalObject {
    address: Option<String>,
    interface: Option<String>,
    #[serde(default = "default_port")]
    port: u16,
    #[serde(default = "default_group")]
    group: u16,
}

impl JsonSchema for PortalConfig {
    fn schema_name() -> Cow<'static, str> {
        "PortalConfig".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let object = generator.subschema_for::<PortalObject>();
        json_schema!({ "anyOf": [{ "type": "string" }, object] })
    }
}

impl<'de> Deserialize<'de> for PortalConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = PortalConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address with a port, or an object with `address` or `interface`")
            }

            fn visit_str<E>(self, address: &str) -> Result<PortalConfig, E> {
                Ok(PortalConfig::at(address))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<PortalConfig, M::Error> {
                let object = PortalObject::deserialize(MapAccessDeserializer::new(map))?;
                let PortalObject { address, interface, port, group } = object;
                Ok(PortalConfig { address, interface, port, group })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl PortalConfig {
    fn at(address: &str) -> Self {
        let (port, group) = (default_port(), default_group());
        Self { address: Some(address.into()), interface: None, port, group }
    }
}

/// The settings of one portal group.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct PortalGroupConfig {
    /// Its tag.
    pub tag: u16,
    /// The access state for all volumes without an own one.
    #[serde(default)]
    pub alua: AluaState,
}

/// Asymmetric access state of a port group (SPC-4 5.15.2).
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AluaState {
    /// The best path.
    #[default]
    ActiveOptimized,
    /// Works; another is better.
    ActiveNonOptimized,
    /// No access to the medium; ready for a failover.
    Standby,
    /// No access to the medium.
    Unavailable,
    /// Between two states.
    Transitioning,
}

impl From<AluaState> for AccessState {
    fn from(state: AluaState) -> Self {
        match state {
            AluaState::ActiveOptimized => Self::ActiveOptimized,
            AluaState::ActiveNonOptimized => Self::ActiveNonOptimized,
            AluaState::Standby => Self::Standby,
            AluaState::Unavailable => Self::Unavailable,
            AluaState::Transitioning => Self::Transitioning,
        }
    }
}

/// A change of a running array, see [`crate::Array::change`].
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayChange {
    /// New states of portal groups; a later entry overrides an earlier one.
    pub alua: Vec<AluaChange>,
}

/// See [`ArrayChange::alua`].
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AluaChange {
    /// Tag of the portal group.
    pub group: u16,
    /// Its state from now on.
    pub state: AluaState,
    /// For the volumes of this target only.
    #[serde(default)]
    pub target: Option<String>,
    /// For the volumes of this name only.
    #[serde(default)]
    pub volume: Option<String>,
}

/// See [`ArrayConfig::driver`].
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum DriverName {
    /// The better one for this system.
    #[default]
    Auto,
    /// `io_uring` or an error.
    IoUring,
    /// epoll.
    Epoll,
}

impl From<DriverName> for Preference {
    fn from(name: DriverName) -> Self {
        match name {
            DriverName::Auto => Self::Auto,
            DriverName::IoUring => Self::IoUring,
            DriverName::Epoll => Self::Epoll,
        }
    }
}

/// Limits for peers.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct ArrayLimits {
    /// Sessions over all targets.
    pub sessions: usize,
    /// Connections of sessions from one address; 0 = no limit.
    pub connections_per_peer: usize,
    /// Connections that have not logged in; above it, the oldest of the address with the most is dropped.
    pub half_open_connections: usize,
    /// Those from one address; above it, its oldest is dropped.
    pub half_open_per_peer: usize,
    /// From accept to full feature phase.
    pub login_timeout_s: f64,
    /// A session that is silent for this long is closed; 0 = never.
    pub idle_timeout_s: f64,
    /// A silent initiator is pinged this often; 0 = never.
    pub nop_interval_s: f64,
    /// A ping that is unanswered for this long closes the session.
    pub nop_timeout_s: f64,
    /// If a peer is stalled for this long, it loses its session: it does not send all data of a write, or does not read
    /// answers. Others may wait for its memory, so this is more than 0.
    pub stall_timeout_s: f64,
    /// The same while others wait for memory that it uses. More than 0.
    pub pressed_stall_timeout_s: f64,
    /// Memory for the I/O buffers and answers of all sessions together, at least 16 MiB per worker. One session may use
    /// up to a fifth of it; the free memory is shared.
    pub memory_bytes: u64,
    /// Commands that a session may have outstanding, over all its connections.
    pub commands_per_session: u32,
    /// Connections that a session may have (`MaxConnections`); 1 = every session has one.
    pub connections_per_session: u16,
    /// Largest data segment that the target accepts.
    pub max_recv_data_segment_bytes: u32,
    /// Largest solicited sequence.
    pub max_burst_bytes: u32,
    /// Most unsolicited data per command.
    pub first_burst_bytes: u32,
    /// Longest text request over all its PDUs. A login may have 16 KiB at most.
    pub text_bytes: usize,
}

impl Default for ArrayLimits {
    fn default() -> Self {
        Self {
            sessions: 1024,
            connections_per_peer: 512,
            half_open_connections: 1024,
            half_open_per_peer: 512,
            login_timeout_s: 15.0,
            idle_timeout_s: 0.0,
            nop_interval_s: 0.0,
            nop_timeout_s: 30.0,
            stall_timeout_s: 60.0,
            pressed_stall_timeout_s: 2.0,
            memory_bytes: 256 << 20,
            commands_per_session: 128,
            connections_per_session: 8,
            max_recv_data_segment_bytes: 262_144,
            max_burst_bytes: 1_048_576,
            first_burst_bytes: 262_144,
            text_bytes: 65_536,
        }
    }
}

/// One iSCSI target.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetConfig {
    /// Its iSCSI name.
    pub name: String,
    /// A name for people.
    #[serde(default)]
    pub alias: Option<String>,
    /// Names of the initiators that may log in and see it in discovery; the last character may be `*`; `null`: all
    /// initiators.
    #[serde(default)]
    pub initiators: Option<Vec<String>>,
    /// The authentication of initiators.
    #[serde(default)]
    pub chap: Option<ChapSettings>,
    /// Sends every login to this `host:port` instead.
    #[serde(default)]
    pub redirect: Option<String>,
    /// Its logical units.
    #[serde(default)]
    pub volumes: Vec<VolumeConfig>,
}

/// CHAP of one target. `Debug` does not show the secrets.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChapSettings {
    /// `"sha3-256"`, `"sha256"`, `"sha1"` and `"md5"`: the first one that the initiator supports too is used.
    #[serde(default = "default_algorithms")]
    pub algorithms: Vec<String>,
    /// The initiator's user name.
    pub user: String,
    /// The initiator's secret.
    pub secret: String,
    /// The name under which the target proves itself.
    #[serde(default)]
    pub mutual_user: Option<String>,
    /// The target's secret.
    #[serde(default)]
    pub mutual_secret: Option<String>,
}

impl fmt::Debug for ChapSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { algorithms, user, mutual_user, .. } = self;
        write!(f, "ChapSettings({algorithms:?}, {user:?}, mutual {mutual_user:?})")
    }
}

/// One logical unit, and where its bytes are.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeConfig {
    /// Logical unit number.
    pub lun: u16,
    /// Name in messages; also the unit's serial number.
    pub name: String,
    /// Where its bytes are.
    #[serde(default)]
    pub kind: VolumeKind,
    /// File or block device of a file volume.
    #[serde(default)]
    pub path: Option<String>,
    /// The pool of a thin volume.
    #[serde(default)]
    pub pool: Option<String>,
    /// The RAID set whose capacity is the volume.
    #[serde(default)]
    pub raid_set: Option<String>,
    /// Capacity; may be left out for a file or a thin volume that exists. A RAID set has its own.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// Logical block size.
    #[serde(default = "default_sector")]
    pub sector_bytes: u32,
    /// Physical block size.
    #[serde(default = "default_sector")]
    pub physical_sector_bytes: u32,
    /// Refuse writes.
    #[serde(default)]
    pub read_only: bool,
    /// Report a volatile write cache; off = every write is durable before it is acknowledged.
    #[serde(default)]
    pub write_cache: bool,
    /// Data in memory survives a power cut: required for a write cache on a RAID set or in a pool.
    #[serde(default)]
    pub power_protected: bool,
    /// Access through portal groups, by tag, if it differs from that of the group.
    #[serde(default)]
    pub alua: BTreeMap<u16, AluaState>,
}

/// See [`VolumeConfig::kind`].
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum VolumeKind {
    /// Lost when the array stops.
    #[default]
    Memory,
    /// In a file or on a block device.
    File,
    /// Thin, in a pool.
    Pool,
    /// A whole RAID set.
    Raid,
}

fn default_name() -> String {
    "array".into()
}

fn default_portals() -> Vec<PortalConfig> {
    vec![PortalConfig::at("127.0.0.1:3260")]
}

fn default_port() -> u16 {
    3260
}

fn default_group() -> u16 {
    1
}

fn default_algorithms() -> Vec<String> {
    Algorithm::ALL.map(|algorithm| algorithm.name().into()).into()
}

fn default_sector() -> u32 {
    512
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}

#[cfg(test)]
mod tests {
    use super::{AluaState, ArrayConfig, ArrayLimits, PortalConfig, VolumeKind};

    #[test]
    fn the_smallest_configuration_has_defaults() {
        let json = r#"{"targets": [{"name": "iqn.2026-11.lab.linerate:a",
            "volumes": [{"lun": 0, "name": "v", "size_bytes": 1048576}]}]}"#;
        let config: ArrayConfig = serde_json::from_str(json).unwrap();
        assert_eq!((config.workers, config.limits), (1, ArrayLimits::default()));
        let volume = &config.targets[0].volumes[0];
        assert_eq!((volume.kind, volume.sector_bytes, volume.write_cache), (VolumeKind::Memory, 512, false));
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let error = serde_json::from_str::<ArrayConfig>(r#"{"targets": [], "portal": []}"#).unwrap_err();
        assert!(error.to_string().contains("`portal`"), "{error}");
    }

    #[test]
    fn portals_are_texts_or_objects() {
        let json = r#"{"portals": ["10.0.0.1:3260", {"address": "[::1]:1", "group": 2}, {"interface": "p0"}],
            "portal_groups": [{"tag": 2, "alua": "standby"}],
            "targets": [{"name": "iqn.2026-11.lab.linerate:a",
                "volumes": [{"lun": 0, "name": "v", "size_bytes": 512, "alua": {"2": "unavailable"}}]}]}"#;
        let config: ArrayConfig = serde_json::from_str(json).unwrap();
        let [first, second, third] = &config.portals[..] else { panic!() };
        assert_eq!(*first, PortalConfig::at("10.0.0.1:3260"));
        assert_eq!((second.address.as_deref(), second.group), (Some("[::1]:1"), 2));
        assert_eq!((third.interface.as_deref(), third.port, third.group), (Some("p0"), 3260, 1));
        assert_eq!(config.portal_groups[0].alua, AluaState::Standby);
        assert_eq!(config.targets[0].volumes[0].alua[&2], AluaState::Unavailable);
        let wrong =
            serde_json::from_str::<ArrayConfig>(r#"{"portals": [{"tag": 1}], "targets": []}"#).unwrap_err();
        assert!(wrong.to_string().contains("`tag`"), "{wrong}");
    }

    #[test]
    fn secrets_do_not_show() {
        let json = r#"{"user": "alice", "secret": "tops3cretvalue"}"#;
        let chap: super::ChapSettings = serde_json::from_str(json).unwrap();
        assert!(!format!("{chap:?}").contains("tops3cret"));
    }
}
