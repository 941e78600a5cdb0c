//! Valid specifications, and invalid ones that are refused with the place of the fault.

use super::*;
use serde_json::{Value, json};

fn small() -> Value {
    json!({
        "version": 1,
        "switches": [{"name": "sw1"}, {"name": "sw2", "settings": {"flow_control": "pfc",
            "lossless_priorities": [3], "schedule": {"kind": "ets", "shares": {"3": 50, "0": 50}}}}],
        "ports": [{"name": "h1.p0", "switch": "sw1", "wire": {"rate_bits_per_s": 1_000_000_000},
            "interfaces": [
                {"netns": "/proc/1/fd/5", "interface": "san0", "mtu": 9000, "vlan": 10, "priority": 3},
                {"netns": "/proc/1/fd/5", "interface": "lan0", "vlan": 20}]}],
        "trunks": [{"name": "isl", "a": "sw1", "b": "sw2", "links": 2}]
    })
}

fn refused(path: &str, value: Value) -> String {
    let mut spec = small();
    *spec.pointer_mut(path).unwrap() = value;
    FabricSpec::from_json(&spec.to_string()).unwrap_err().to_string()
}

#[test]
fn a_small_network_is_taken_with_its_defaults() {
    let spec = FabricSpec::from_json(&small().to_string()).unwrap();
    assert_eq!(spec.ports[0].nic, NicConfig::default());
    assert_eq!(spec.ports[0].interfaces[1].mtu, 1500);
    assert_eq!(spec.switches[0].settings, SwitchConfig::default());
    let again = FabricSpec::from_json(&serde_json::to_string(&spec).unwrap()).unwrap();
    assert_eq!(again, spec);
}

#[test]
fn nonsense_is_refused_with_its_place() {
    assert!(refused("/version", json!(2)).starts_with("version 2"));
    assert!(refused("/ports/0/switch", json!("sw9")).starts_with("ports.h1.p0.switch"));
    assert!(
        refused("/ports/0/wire/rate_bits_per_s", json!(0)).starts_with("ports.h1.p0.wire.rate_bits_per_s")
    );
    assert!(refused("/ports/0/interfaces", json!([])).contains("at least one"));
    assert!(refused("/ports/0/interfaces/0/interface", json!("lan0")).contains("same name"));
    assert!(refused("/ports/0/interfaces/0/vlan", json!(4095)).contains("interfaces.san0.vlan"));
    assert!(refused("/ports/0/interfaces/0/vlan", json!(20)).contains("different VLANs"));
    assert!(refused("/trunks/0/b", json!("sw1")).contains("circle"));
    assert!(refused("/trunks/0/name", json!("h1.p0")).contains("two ports or trunks"));
    assert!(refused("/switches/1/name", json!("sw1")).contains("two switches"));
    assert!(refused("/switches/1/settings", json!({"bufer": 1})).contains("unknown field"));
}

#[test]
fn addresses_are_unicast() {
    assert_eq!(parse_mac("02:00:00:00:01:fF"), Some([2, 0, 0, 0, 1, 255]));
    for text in [
        "",
        "02:00:00:00:01",
        "02:00:00:00:01:00:00",
        "03:00:00:00:01:00",
        "00:00:00:00:00:00",
        "2:0:0:0:1:0",
    ] {
        assert_eq!(parse_mac(text), None, "{text}");
    }
}

#[test]
fn a_change_touches_only_what_it_names() {
    let change = ChangeSpec::from_json(
        r#"{"ports": {"h1.p0": {"wire": {"delay_ns": 200000}, "nic": {"rsc": true}, "mtu": {"san0": 1500}}},
            "switches": {"sw2": {"headroom_bytes": 9000}}}"#,
    )
    .unwrap();
    let port = &change.ports["h1.p0"];
    let wire = port.wire.apply(&WireConfig::default());
    assert_eq!(wire, WireConfig { delay_ns: 200_000, ..WireConfig::default() });
    assert!(port.nic.apply(&NicConfig::default()).rsc);
    let switch = change.switches["sw2"].apply(&SwitchConfig::default());
    assert_eq!(switch.headroom_bytes, Some(9000));
    assert!(ChangeSpec::from_json(r#"{"links": {}}"#).is_err());
}
