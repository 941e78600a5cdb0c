//! Portal groups: each is a port of the SCSI target, with its own sessions and access states.

use crate::support::{Client, IQN, SIZE_BYTES, wait_for};
use linerate_iscsi_proto::pdu::Response;
use linerate_iscsi_target::{Array, ArrayChange, ArrayConfig, ArrayError, ChangeError, SessionStats};
use std::net::SocketAddr;

const CHECK_CONDITION: u8 = 2;

/// Two portals in group 1, one in group 7; `extra` is added to the configuration, `volume` to the first volume.
fn try_array(extra: &str, volume: &str) -> Result<Array, ArrayError> {
    let json = format!(
        r#"{{"portals": ["127.0.0.1:0", "127.0.0.2:0", {{"address": "127.0.0.3:0", "group": 7}}], {extra}
            "targets": [{{"name": "{IQN}", "volumes": [
                {{"lun": 0, "name": "v0", "size_bytes": {SIZE_BYTES}, {volume} "write_cache": false}},
                {{"lun": 1, "name": "v1", "size_bytes": 1048576}}]}}]}}"#
    );
    Array::start(serde_json::from_str::<ArrayConfig>(&json).unwrap())
}

fn array() -> (Array, [SocketAddr; 3]) {
    let array = try_array("", "").unwrap();
    let portals = array.portals().try_into().unwrap();
    (array, portals)
}

fn change(array: &Array, json: &str) -> Result<(), ChangeError> {
    array.change(&serde_json::from_str::<ArrayChange>(json).unwrap())
}

/// Data of a command that reads, or the sense key and code of its error.
fn ask(client: &mut Client, cdb: &[u8], len: u32) -> Result<Vec<u8>, (u8, u16)> {
    let mut padded = [0; 16];
    padded[..cdb.len()].copy_from_slice(cdb);
    let command = client.command(padded, len > 0, false, len);
    client.send(|bhs| command.emit(bhs), &[]);
    let pdu = client.receive().unwrap();
    match pdu.response {
        Response::DataIn(_) => Ok(pdu.data),
        Response::Scsi(response) if response.status == CHECK_CONDITION => {
            let sense = &pdu.data[2..];
            Err((sense[2] & 0x0F, u16::from_be_bytes([sense[12], sense[13]])))
        }
        Response::Scsi(response) if response.status == 0 => Ok(Vec::new()),
        other => panic!("{other:?}"),
    }
}

const READY: [u8; 6] = [0; 6];
const GROUPS: [u8; 12] = [0xA3, 0x0A, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];

/// State and tag of each target port group.
fn states(client: &mut Client) -> Vec<(u16, u8)> {
    let list = ask(client, &GROUPS, 256).unwrap();
    list[4..].chunks(12).map(|row| (u16::from_be_bytes([row[2], row[3]]), row[0] & 0x0F)).collect()
}

fn is_open(client: &mut Client) -> bool {
    client.socket.set_read_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
    let mut byte = [0];
    !matches!(std::io::Read::read(&mut client.socket, &mut byte), Ok(0))
}

#[test]
fn portals_are_told_with_their_group() {
    let (_array, [first, second, third]) = array();
    let expected = format!(
        "TargetName={IQN}\0TargetAddress={first},1\0TargetAddress={second},1\0TargetAddress={third},7\0"
    );
    assert_eq!(Client::discover(third), expected);
    let mut client = Client::connect(third);
    let text = format!("InitiatorName=iqn.2026-11.lab.linerate:host\0TargetName={IQN}\0");
    let answer = String::from_utf8(client.log_in(1, &text).data).unwrap();
    assert!(answer.split('\0').any(|pair| pair == "TargetPortalGroupTag=7"), "{answer:?}");
}

#[test]
fn each_group_is_a_port_with_designators_of_its_own() {
    let (_array, [first, _, third]) = array();
    for (portal, tag) in [(first, 1_u8), (third, 7)] {
        let mut client = Client::login(portal, 1, "");
        client.clear_attention();
        let page = ask(&mut client, &[0x12, 1, 0x83, 4, 0, 0], 1024).unwrap();
        let name = format!("{IQN},t,{tag:#06x}\0");
        let relative = [0x51, 0x94, 0, 4, 0, 0, 0, tag];
        let group = [0x51, 0x95, 0, 4, 0, 0, 0, tag];
        for wanted in [&relative[..], &group, name.as_bytes()] {
            assert!(
                page.windows(wanted.len()).any(|window| window == wanted),
                "{wanted:02x?} in {page:02x?}"
            );
        }
        let inquiry = ask(&mut client, &[0x12, 0, 0, 0, 96, 0], 96).unwrap();
        assert_eq!((inquiry[5] & 0x30, inquiry[6] & 0x10), (0x10, 0x10), "implicit ALUA, MULTIP");
        assert_eq!(states(&mut client), [(1, 0), (7, 0)]);
    }
}

/// RFC 7143 section 6.3.5: a session is identified by its portal group, not by the portal.
#[test]
fn a_session_is_replaced_through_any_portal_of_its_group_and_no_other() {
    let (array, [first, second, third]) = array();
    let mut one = Client::login(first, 1, "");
    let mut other = Client::login(third, 1, "");
    other.clear_attention();
    wait_for(&array, "both live", |stats| stats.sessions == 2);
    let mut again = Client::login(second, 1, "");
    assert!(!is_open(&mut one), "the old session ended");
    again.clear_attention();
    other.write(0, &[1; 512]);
    assert_eq!(again.read(0, 512), [1; 512]);
    wait_for(&array, "two are left", |stats| (stats.sessions, stats.connections) == (2, 2));
}

#[test]
fn a_group_in_standby_refuses_the_medium_until_it_is_active_again() {
    let (array, [first, _, third]) = array();
    let (mut one, mut other) = (Client::login(first, 1, ""), Client::login(third, 1, ""));
    one.clear_attention();
    other.clear_attention();
    one.write(8, &[9; 512]);
    change(&array, r#"{"alua": [{"group": 7, "state": "standby"}]}"#).unwrap();
    assert_eq!(ask(&mut one, &READY, 0), Err((6, 0x2A06)));
    assert_eq!(ask(&mut other, &READY, 0), Err((6, 0x2A06)));
    assert_eq!(states(&mut other), [(1, 0), (7, 2)]);
    assert_eq!(ask(&mut other, &crate::support::read10(8, 512), 512), Err((2, 0x040B)));
    assert_eq!(one.read(8, 512), [9; 512]);
    change(
        &array,
        r#"{"alua": [{"group": 7, "state": "active_non_optimized", "volume": "v0", "target": null}]}"#,
    )
    .unwrap();
    assert_eq!(ask(&mut other, &READY, 0), Err((6, 0x2A06)));
    assert_eq!(other.read(8, 512), [9; 512]);
    assert_eq!(states(&mut other), [(1, 0), (7, 1)]);
}

#[test]
fn a_volume_may_begin_in_a_state_of_its_own() {
    let groups = r#""portal_groups": [{"tag": 7, "alua": "unavailable"}],"#;
    let array =
        try_array(groups, r#""alua": {"1": "active_non_optimized", "7": "active_optimized"},"#).unwrap();
    let mut client = Client::login(array.portals()[0], 1, "");
    client.clear_attention();
    assert_eq!(states(&mut client), [(1, 1), (7, 0)]);
    let mut list = client.command([0; 16], true, false, 256);
    list.cdb[..12].copy_from_slice(&GROUPS);
    list.lun = linerate_iscsi_proto::pdu::Lun(1 << 48);
    client.send(|bhs| list.emit(bhs), &[]);
    client.receive().unwrap(); // power on
    (list.itt, list.cmd_sn, client.cmd_sn) = (list.itt + 100, client.cmd_sn, client.cmd_sn + 1);
    client.send(|bhs| list.emit(bhs), &[]);
    let data = client.receive().unwrap().data;
    assert_eq!((data[4], data[16]), (0, 3), "what the group says, for a volume that says nothing");
}

#[test]
fn a_change_that_is_wrong_anywhere_changes_nothing() {
    let (array, [first, ..]) = array();
    let mut client = Client::login(first, 1, "");
    client.clear_attention();
    let good = r#"{"group": 7, "state": "standby"}"#;
    for (bad, error) in [
        (r#"{"group": 2, "state": "standby"}"#, ChangeError::Group(2)),
        (r#"{"group": 1, "state": "standby", "volume": "v9"}"#, ChangeError::Volume("v9".into())),
        (r#"{"group": 1, "state": "standby", "target": "iqn.x"}"#, ChangeError::Target("iqn.x".into())),
    ] {
        assert_eq!(change(&array, &format!(r#"{{"alua": [{good}, {bad}]}}"#)), Err(error));
    }
    assert_eq!(ask(&mut client, &READY, 0), Ok(Vec::new()), "no attention was raised");
    assert_eq!(states(&mut client), [(1, 0), (7, 0)]);
}

#[test]
fn groups_that_cannot_be_are_refused_by_name() {
    let said = |extra: &str, volume: &str| try_array(extra, volume).err().map(|error| error.to_string());
    let zero = said(r#""portal_groups": [{"tag": 0}],"#, "").unwrap();
    assert!(zero.contains("1 to 65535"), "{zero}");
    let twice = said(r#""portal_groups": [{"tag": 7}, {"tag": 7}],"#, "").unwrap();
    assert!(twice.contains("group 7 twice"), "{twice}");
    let unknown = said("", r#""alua": {"3": "standby"},"#).unwrap();
    assert!(unknown.contains("portal group 3") && unknown.contains("v0"), "{unknown}");
}

#[test]
fn a_portal_is_an_address_or_an_interface_that_there_is() {
    let start = |portal: &str| {
        let json = format!(r#"{{"portals": [{portal}], "targets": [{{"name": "{IQN}"}}]}}"#);
        Array::start(serde_json::from_str(&json).unwrap())
    };
    let array = start(r#"{"interface": "lo", "port": 0, "group": 3}"#).unwrap();
    assert!(array.portals().iter().any(|portal| portal.ip().is_loopback()), "{:?}", array.portals());
    assert!(array.report().by_portal.iter().all(|portal| portal.group == 3));
    let missing = start(r#"{"interface": "nosuch0"}"#).err().unwrap().to_string();
    assert!(missing.contains("\"nosuch0\""), "{missing}");
    assert!(matches!(start(r#"{"group": 3}"#), Err(ArrayError::PortalPlace)));
}

#[test]
fn each_session_is_counted_for_itself() {
    let (array, [first, _, third]) = array();
    let (mut one, mut other) = (Client::login(first, 1, ""), Client::login(third, 2, ""));
    one.clear_attention();
    other.clear_attention();
    one.write(0, &[1; 4096]);
    one.read(0, 8192);
    let _discovery = Client::connect(first)
        .log_in(3, "InitiatorName=iqn.2026-11.lab.linerate:host\0SessionType=Discovery\0");
    let rows = |count: u64| -> Vec<SessionStats> {
        wait_for(&array, "the session is published", |_| {
            let report = array.report();
            report.by_session.iter().any(|row| row.commands == count && row.group == 1)
        });
        array.report().by_session
    };
    let all = rows(4);
    let row = |group: u16| all.iter().find(|row| row.group == group && row.target.is_some()).unwrap();
    let (mine, theirs) = (row(1), row(7));
    assert_eq!(
        (mine.initiator.as_str(), mine.isid.as_str()),
        ("iqn.2026-11.lab.linerate:host", "800000000001")
    );
    assert_eq!((mine.portal, mine.peer), (first, one.socket.local_addr().unwrap()));
    assert_eq!((mine.luns, mine.luns_used, mine.outstanding), (2, 1, 0));
    assert_eq!((mine.reads, mine.read_bytes, mine.writes, mine.written_bytes), (1, 8192, 1, 4096));
    assert_eq!((theirs.portal, theirs.commands, theirs.reads), (third, 2, 0));
    assert!(mine.tsih != theirs.tsih && mine.heard_monotonic_ns >= mine.since_monotonic_ns);
    let json = serde_json::to_value(array.report()).unwrap();
    assert_eq!((&json["commands"], json["by_portal"].as_array().unwrap().len()), (&6.into(), 3));
}
