//! Two arrays, each with a pool, over real sockets: both have the same data at a point, in both directions.

use linerate_io::EpollDriver;
use linerate_iscsi_initiator::{
    Credentials, Disk, LunAddress, PortalAddress, Secret, SessionOptions, ToolError,
};
use linerate_iscsi_target::{Array, ArrayConfig};
use linerate_storage::controller::{Reply, StorageError};
use serde_json::{Value, json};
use std::{thread, time::Duration};

const VOLUME_BYTES: u64 = 8 << 20;

struct Site {
    array: Array,
    name: &'static str,
}

impl Site {
    fn new(name: &'static str) -> Self {
        let config = json!({
            "name": name,
            "portals": ["127.0.0.1:0"],
            "storage": {
                "disks": [{"name": "d0", "kind": "memory", "size_bytes": 64 << 20},
                    {"name": "d1", "kind": "memory", "size_bytes": 64 << 20}],
                "raid_sets": [{"name": "r0", "level": "raid1", "disks": ["d0", "d1"]}],
                "pools": [{"name": "p0", "raid_sets": ["r0"], "page_bytes": 65536}]
            },
            "targets": [
                {"name": format!("iqn.2026-11.lab.linerate:{name}"), "volumes": []}
            ]
        });
        let config: ArrayConfig = serde_json::from_value(config).unwrap();
        Self { array: Array::start(config).unwrap(), name }
    }

    fn ask(&self, verb: &str, fields: Value) -> Result<Value, StorageError> {
        let Value::Object(fields) = fields else { panic!("{verb} takes an object") };
        let reply: Reply = self.array.replicate(verb, fields)?;
        Ok(Value::Object(reply))
    }

    fn manage(&self, command: Value) -> Result<Reply, StorageError> {
        self.array.manage(&serde_json::from_value(command).unwrap())
    }

    fn portal(&self) -> String {
        self.array.portals()[0].to_string()
    }

    fn host(&self, lun: u16) -> Disk<EpollDriver> {
        let target = format!("iqn.2026-11.lab.linerate:{}", self.name);
        let address = LunAddress { portal: PortalAddress::parse(&self.portal()).unwrap(), target, lun };
        let options = SessionOptions::default();
        Disk::open(EpollDriver::new().unwrap(), &address, &options, &Credentials::default()).unwrap()
    }

    /// A sender of a copy, as its real source or as another array.
    fn sender(&self, access: &Value, secret: &str) -> Result<Disk<EpollDriver>, ToolError> {
        let target = access["target"].as_str().unwrap().to_owned();
        let portal = PortalAddress::parse(&self.portal()).unwrap();
        let credentials = Credentials {
            user: Some("source".into()),
            secret: Some(Secret::new(secret)),
            ..Credentials::default()
        };
        let address = LunAddress { portal, target, lun: 0 };
        Disk::open(EpollDriver::new().unwrap(), &address, &SessionOptions::default(), &credentials)
    }

    fn pair(&self, partner: &Self) -> Value {
        json!({"here": self.name, "partner": partner.name})
    }

    /// Waits until a copy has ended; returns its status.
    fn copied(&self) -> Value {
        for _ in 0..3000 {
            let status = self.ask("replica_status", json!({"group": "g"})).unwrap();
            if status["progress"]["is_running"] == false {
                return status;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the copy does not come to an end");
    }
}

fn copy(from: &Site, portal: &str, begun: &Value) -> Value {
    let link = json!({ "portal": portal });
    let fields = json!({"answer": begun["answer"], "access": begun["access"], "link": link});
    from.ask("replica_copy", fields).unwrap();
    from.copied()
}

fn begin(from: &Site, to: &Site, volumes: &[&str]) -> Value {
    let prepare = json!({"group": "g", "volumes": volumes, "pair": from.pair(to)});
    let offer = from.ask("replica_prepare", prepare).unwrap();
    to.ask("replica_begin", json!({"offer": offer, "pair": to.pair(from), "partner": from.name})).unwrap()
}

fn transfer(from: &Site, to: &Site, volumes: &[&str]) -> u64 {
    let begun = begin(from, to, volumes);
    let status = copy(from, &to.portal(), &begun);
    let commit = &status["progress"]["commit"];
    assert!(commit.is_object(), "{status}");
    to.ask("replica_commit", json!({"commit": commit, "pair": to.pair(from), "partner": from.name})).unwrap();
    from.ask("replica_confirm", json!({"commit": commit})).unwrap();
    status["progress"]["sent_bytes"].as_u64().unwrap()
}

#[test]
fn volumes_follow_over_iscsi_there_and_back() {
    let (here, there) = (Site::new("here"), Site::new("there"));
    for name in ["v0", "v1"] {
        let command = json!({"verb": "create_volume", "name": name, "size_bytes": VOLUME_BYTES});
        here.manage(command).unwrap();
    }
    let (mut v0, mut v1) = (here.host(0), here.host(1));
    let old = vec![7; 1 << 20];
    v0.write(65536, &old).unwrap();
    v1.write(0, &old).unwrap();
    assert_eq!(transfer(&here, &there, &["v0", "v1"]), 2 << 20, "pages that were written, and no others");
    v0.write(4096, &[9; 4096]).unwrap();
    assert_eq!(transfer(&here, &there, &["v0", "v1"]), 65536, "the page that changed");

    // An incomplete transfer, and its late writes, are never visible.
    v0.write(65536, &vec![1; 65536]).unwrap();
    let begun = begin(&here, &there, &["v0", "v1"]);
    let access = &begun["access"];
    let secret = access["login"]["secret"].as_str().unwrap();
    let mut late = there.sender(access, secret).unwrap();
    assert!(there.sender(access, "not its secret").is_err(), "only the source gets in");
    late.write(65536, &[2; 4096]).unwrap();
    let replica = there.manage(json!({"verb": "resize", "volume": "v0", "size_bytes": 4096}));
    assert!(replica.unwrap_err().to_string().contains("is a replica"));
    there.ask("replica_promote", json!({"group": "g", "force": true})).unwrap();
    assert!(late.write(65536, &[2; 4096]).is_err(), "the partner is gone");
    assert!(there.sender(access, secret).is_err(), "the target of a transfer that is over is gone");

    // Hosts find the promoted volumes with the contents of the second point.
    let mut bytes = vec![0; 1 << 20];
    there.host(0).read(65536, &mut bytes).unwrap();
    assert!(bytes == old, "v0 was promoted to the point");
    let offer = here.ask("replica_prepare", json!({"group": "g", "pair": here.pair(&there)})).unwrap();
    let refused = there.ask("replica_begin", json!({"offer": offer, "pair": there.pair(&here)}));
    assert!(refused.unwrap_err().to_string().contains("is primary"));
    here.ask("replica_demote", json!({"group": "g"})).unwrap();
    assert!(v0.write(0, &[3; 4096]).is_err(), "hosts are kept out of a replica");
    transfer(&there, &here, &["v0", "v1"]);
    there.ask("replica_give", json!({"group": "g", "claim": "c"})).unwrap();
    here.ask("replica_promote", json!({"group": "g", "claim": "c"})).unwrap();
    assert!(v0.write(0, &[3; 4096]).is_err(), "hosts wait until the partner has passed its role");
    assert!(there.host(0).write(0, &[3; 4096]).is_err(), "and are kept out there");
    let id = here.ask("replica_status", json!({"group": "g"})).unwrap()["id"].clone();
    let pass = json!({"group": "g", "claim": "c", "id": id, "pair": there.pair(&here), "partner": "here"});
    there.ask("replica_pass", pass).unwrap();
    here.ask("replica_take", json!({"group": "g", "claim": "c"})).unwrap();
    v0.read(65536, &mut bytes).unwrap();
    assert!(bytes == old, "v0 is what it was at the point");
    v0.read(4096, &mut bytes[..4096]).unwrap();
    assert_eq!(bytes[..4096], [9; 4096]);
    v1.read(0, &mut bytes).unwrap();
    assert!(bytes == old, "v1 is what it was at the point");
    let status = serde_json::to_value(here.array.report()).unwrap();
    assert_eq!(status["storage"]["volumes"][0]["replica"]["role"], "primary");
}

#[test]
fn a_copy_goes_only_where_it_was_prepared() {
    let (here, there, other) = (Site::new("here"), Site::new("there"), Site::new("other"));
    here.manage(json!({"verb": "create_volume", "name": "v0", "size_bytes": VOLUME_BYTES})).unwrap();
    here.host(0).write(0, &[7; 4096]).unwrap();
    // The portal leads to another array, or back to the source; both wait for a copy of their own.
    other.manage(json!({"verb": "create_volume", "name": "w", "size_bytes": VOLUME_BYTES})).unwrap();
    for wrong in [&other, &here] {
        let begun = begin(&here, &there, &["v0"]);
        let status = copy(&here, &wrong.portal(), &begun);
        let error = status["progress"]["error"].as_str().unwrap().to_owned();
        assert!(error.contains("is not the partner's"), "{error}");
        assert_eq!(wrong.array.stats().writes, u64::from(wrong.name == "here"), "nothing was written there");
    }
    assert_eq!(transfer(&here, &there, &["v0"]), 65536, "the right way still works");
}

#[test]
fn an_array_is_no_partner_of_its_own() {
    let here = Site::new("here");
    here.manage(json!({"verb": "create_volume", "name": "v0", "size_bytes": VOLUME_BYTES})).unwrap();
    let prepare = json!({"group": "g", "volumes": ["v0"], "pair": here.pair(&here)});
    let refused = here.ask("replica_prepare", prepare).unwrap_err();
    assert!(refused.to_string().contains("is this array itself"), "{refused}");
}
