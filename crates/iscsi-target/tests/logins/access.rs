//! Admission of logins: names of initiators, rules for secrets, permitted hashes.

use crate::support::{
    Client,
    logins::{Who, status},
};
use linerate_iscsi_proto::pdu::{LoginStatus, Stage};
use linerate_iscsi_target::{Array, ArrayConfig};
use serde_json::{Value, json};

const OPEN: &str = "iqn.2026-11.lab.linerate:open";
const HOST1: &str = "iqn.2026-11.lab.linerate:for-host1";
const RACK: &str = "iqn.2026-11.lab.linerate:for-rack";
const FORBIDDEN: (u8, u8) = (LoginStatus::FORBIDDEN.class, LoginStatus::FORBIDDEN.detail);
const UNAUTHENTICATED: (u8, u8) =
    (LoginStatus::AUTHENTICATION_FAILED.class, LoginStatus::AUTHENTICATION_FAILED.detail);

fn started(target: &Value) -> Result<Array, String> {
    let json = json!({"portals": ["127.0.0.1:0"], "targets": target});
    let config: ArrayConfig = serde_json::from_value(json).unwrap();
    Array::start(config).map_err(|error| error.to_string())
}

fn three_targets() -> Array {
    let volumes = json!([{"lun": 0, "name": "v", "size_bytes": 1 << 20}]);
    started(&json!([
        {"name": OPEN, "volumes": volumes},
        {"name": HOST1, "volumes": volumes, "initiators": ["iqn.2026-11.LAB.linerate:Host1"]},
        {"name": RACK, "volumes": volumes, "initiators": ["iqn.1991-05.com.microsoft:*", "eui.02004567a425678d"]},
    ]))
    .unwrap()
}

fn login(array: &Array, initiator: &str, target: &str) -> (u8, u8) {
    let text = format!("InitiatorName={initiator}\0TargetName={target}\0");
    status(Some(Client::connect(array.portals()[0]).log_in(1, &text))).unwrap()
}

#[test]
fn a_target_admits_the_initiators_that_it_names() {
    let array = three_targets();
    let expected = [
        ("iqn.2026-11.lab.linerate:host1", [(0, 0), (0, 0), FORBIDDEN]),
        ("IQN.2026-11.lab.linerate:HOST1", [(0, 0), (0, 0), FORBIDDEN]),
        ("iqn.2026-11.lab.linerate:host10", [(0, 0), FORBIDDEN, FORBIDDEN]),
        ("iqn.1991-05.com.microsoft:db.example.org", [(0, 0), FORBIDDEN, (0, 0)]),
        ("eui.02004567A425678D", [(0, 0), FORBIDDEN, (0, 0)]),
    ];
    for (initiator, answers) in expected {
        let got = [OPEN, HOST1, RACK].map(|target| login(&array, initiator, target));
        assert_eq!(got, answers, "{initiator}");
    }
    let none = "iqn.2026-11.lab.linerate:none";
    let missing = (LoginStatus::NOT_FOUND.class, LoginStatus::NOT_FOUND.detail);
    assert_eq!(login(&array, "iqn.2026-11.lab.linerate:host1", none), missing);
}

#[test]
fn discovery_shows_what_the_initiator_may_log_in_to() {
    let array = three_targets();
    let seen = |initiator: &str, asked: &str| {
        let listed = Client::discover_as(array.portals()[0], initiator, asked);
        listed.split('\0').filter_map(|pair| pair.strip_prefix("TargetName=")).map(String::from).collect()
    };
    let all = |initiator: &str| -> Vec<String> { seen(initiator, "All") };
    assert_eq!(all("iqn.2026-11.lab.linerate:host1"), [OPEN, HOST1]);
    assert_eq!(all("iqn.1991-05.com.microsoft:db"), [OPEN, RACK]);
    assert_eq!(all("iqn.2026-11.lab.linerate:other"), [OPEN]);
    let by_name: Vec<String> = seen("iqn.2026-11.lab.linerate:other", HOST1);
    assert!(by_name.is_empty(), "asking for it by name shows no more: {by_name:?}");
}

#[test]
fn names_that_admit_no_one_are_refused() {
    let refused = |initiators: Value| {
        started(&json!([{"name": OPEN, "initiators": initiators}])).err().expect("refused")
    };
    assert!(refused(json!([])).contains("leave it out"), "{}", refused(json!([])));
    assert!(refused(json!(["host1"])).contains("starts with 'iqn.'"), "{}", refused(json!(["host1"])));
    let inside = refused(json!(["iqn.*:host1"]));
    assert!(inside.contains("iqn.*:host1") && inside.contains("may end a name"), "{inside}");
}

#[test]
fn secrets_that_protect_nothing_are_refused() {
    let refused = |chap: Value| started(&json!([{"name": OPEN, "chap": chap}])).err().expect("refused");
    let long = "x".repeat(256);
    for (secret, why) in [("", "is empty"), ("eleven byte", "has 11 bytes"), (long.as_str(), "at most 255")] {
        let said = refused(json!({"user": "alice", "secret": secret}));
        assert!(said.contains("`chap.secret`") && said.contains(why), "{said}");
        assert!(secret.is_empty() || !said.contains(secret), "{said}");
        let said = refused(json!({
            "user": "alice", "secret": "twelve bytes", "mutual_user": "array", "mutual_secret": secret}));
        assert!(said.contains("`chap.mutual_secret`") && said.contains(why), "{said}");
    }
    let same = refused(json!({
        "user": "alice", "secret": "twelve bytes", "mutual_user": "array", "mutual_secret": "twelve bytes"}));
    assert!(same.contains("different secrets"), "{same}");
}

#[test]
fn a_hash_that_the_file_leaves_out_is_refused() {
    let chap =
        |algorithms: Value| json!({"user": "alice", "secret": "twelve bytes", "algorithms": algorithms});
    let array = started(&json!([{"name": OPEN, "chap": chap(json!(["sha3-256", "sha256"]))}])).unwrap();
    let mut client = Client::connect(array.portals()[0]);
    let names = format!("InitiatorName=iqn.2026-11.lab.linerate:host\0TargetName={OPEN}\0AuthMethod=CHAP\0");
    assert_eq!(status(client.say(1, Stage::Security, None, &names)), Some((0, 0)));
    assert_eq!(status(client.say(1, Stage::Security, None, "CHAP_A=5,6\0")), Some(UNAUTHENTICATED));
    let array = started(&json!([{"name": OPEN, "chap": chap(json!(["sha1", "md5"]))}])).unwrap();
    let who = Who {
        initiator: "iqn.2026-11.lab.linerate:host",
        target: OPEN,
        user: "alice",
        secret: "twelve bytes",
        isid: 1,
    };
    assert_eq!(Client::connect(array.portals()[0]).prove(who), Some((0, 0)));
    let unknown = started(&json!([{"name": OPEN, "chap": chap(json!(["sha512"]))}])).err().unwrap();
    assert!(unknown.contains("sha3-256"), "{unknown}");
}
