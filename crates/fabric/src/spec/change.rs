//! Changes of a running fabric: only the given keys change.

use super::SpecError;
use linerate_link::{FaultConfig, FlowControl, LinkConfig, NicConfig, Schedule, SwitchConfig, WireConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Changes by name. All of them are checked before the first takes effect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeSpec {
    /// Port -> its changes.
    pub ports: BTreeMap<String, PortChange>,
    /// Trunk -> its changes.
    pub trunks: BTreeMap<String, TrunkChange>,
    /// Switch -> its changes.
    pub switches: BTreeMap<String, SwitchChange>,
}

/// Changes of one port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PortChange {
    /// Of the cable.
    pub wire: WireChange,
    /// Of the card.
    pub nic: NicChange,
    /// See [`super::PortSpec::queue_bytes`].
    pub queue_bytes: Option<u64>,
    /// Interface (by its name on this port) -> MTU. The fabric changes it on the interface as well.
    pub mtu: BTreeMap<String, u32>,
    /// Link of the cable, counted from 0 -> its changes. The host loses its carrier when the last one goes down.
    pub links: BTreeMap<u32, LinkChange>,
}

/// Changes of one trunk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrunkChange {
    /// Of the cable.
    pub wire: WireChange,
    /// See [`super::TrunkSpec::queue_bytes`].
    pub queue_bytes: Option<u64>,
    /// Link of the cable, counted from 0 -> its changes.
    pub links: BTreeMap<u32, LinkChange>,
}

/// Generates the changes of a configuration: every field optional, and `apply` that overlays them.
macro_rules! change_of {
    ($(#[$doc:meta])* $name:ident of $config:ty { $($field:ident: $kind:ty),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $(
                #[doc = concat!("See the field of the same name of [`", stringify!($config), "`].")]
                pub $field: Option<$kind>,
            )+
        }

        impl $name {
            /// The configuration with the changes.
            pub fn apply(&self, config: &$config) -> $config {
                let mut changed = config.clone();
                $(
                    if let Some(value) = &self.$field {
                        changed.$field = value.clone().into();
                    }
                )+
                changed
            }
        }
    };
}

change_of! {
    /// Changes of a cable.
    WireChange of WireConfig { rate_bits_per_s: u64, delay_ns: u64, jitter_ns: u64, loss: f64, up: bool }
}

change_of! {
    /// Changes of one link. Each direction's faults change as a whole.
    LinkChange of LinkConfig { up: bool, outbound: FaultConfig, inbound: FaultConfig }
}

change_of! {
    /// Changes of a card.
    NicChange of NicConfig {
        tx_ring_frames: u32,
        rx_ring_frames: u32,
        moderation_us: u32,
        moderation_frames: u32,
        rsc: bool,
        pause_rx: bool,
        pause_tx: bool,
        schedule: Schedule,
    }
}

change_of! {
    /// Changes of a switch.
    SwitchChange of SwitchConfig {
        up: bool,
        queue_bytes: u64,
        buffer_bytes: u64,
        mtu: u32,
        flow_control: FlowControl,
        lossless_priorities: Vec<u8>,
        xoff_bytes: u64,
        xon_bytes: u64,
        headroom_bytes: u64,
        ecn_threshold_bytes: u64,
        schedule: Schedule,
    }
}

impl ChangeSpec {
    /// Reads the JSON form. Values are checked when they are applied.
    pub fn from_json(text: &str) -> Result<Self, SpecError> {
        serde_json::from_str(text).map_err(|error| SpecError::Json(error.to_string()))
    }
}
