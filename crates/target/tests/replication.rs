//! Two arrays, each with a pool, over real sockets: what one has at a point the other has too, there and back.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may wait and may fail loudly")]

use linerate_array::controller::{Reply, StorageError};
use linerate_initiator::{Credentials, Disk, LunAddress, PortalAddress, Secret, SessionOptions};
use linerate_io::EpollDriver;
use linerate_target::{Array, ArrayConfig};
use serde_json::{Value, json};
use std::{thread, time::Duration};

const SECRET: &str = "a secret of partners";
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
                {"name": format!("iqn.2026-11.lab.linerate:{name}"), "volumes": []},
                {"name": format!("iqn.2026-11.lab.linerate:{name}:replication"),
                    "chap": {"user": "partner", "secret": SECRET}, "volumes": []}
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
        self.array.manage(serde_json::from_value(command).unwrap())
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

    fn partner(&self, lun: u16) -> Disk<EpollDriver> {
        let target = format!("iqn.2026-11.lab.linerate:{}:replication", self.name);
        let address = LunAddress { portal: PortalAddress::parse(&self.portal()).unwrap(), target, lun };
        let credentials = Credentials {
            user: Some("partner".into()),
            secret: Some(Secret::new(SECRET)),
            ..Credentials::default()
        };
        Disk::open(EpollDriver::new().unwrap(), &address, &SessionOptions::default(), &credentials).unwrap()
    }

    /// Waits until a copy is over; its status.
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

fn copy(from: &Site, to: &Site, begun: &Value) -> Value {
    let link = json!({"portal": to.portal(), "chap_user": "partner", "chap_secret": SECRET});
    let fields = json!({"answer": begun["answer"], "access": begun["access"], "link": link});
    from.ask("replica_copy", fields).unwrap();
    from.copied()
}

fn transfer(from: &Site, to: &Site, volumes: &[&str]) -> u64 {
    let offer =
        from.ask("replica_prepare", json!({"group": "g", "volumes": volumes, "to": to.name})).unwrap();
    let begun = to.ask("replica_begin", json!({"offer": offer, "partner": from.name})).unwrap();
    let status = copy(from, to, &begun);
    let commit = &status["progress"]["commit"];
    assert!(commit.is_object(), "{status}");
    to.ask("replica_commit", json!({"commit": commit, "partner": from.name})).unwrap();
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

    // Half a transfer, and what it wrote late, never shows.
    v0.write(65536, &vec![1; 65536]).unwrap();
    let offer = here.ask("replica_prepare", json!({"group": "g"})).unwrap();
    let begun = there.ask("replica_begin", json!({"offer": offer, "partner": "here"})).unwrap();
    let lun = begun["access"]["luns"][0].as_u64().unwrap() as u16;
    let mut late = there.partner(lun);
    late.write(65536, &[2; 4096]).unwrap();
    let replica = there.manage(json!({"verb": "resize", "volume": "v0", "size_bytes": 4096}));
    assert!(replica.unwrap_err().to_string().contains("is a replica"));
    there.ask("replica_promote", json!({"group": "g"})).unwrap();
    assert!(late.write(65536, &[2; 4096]).is_err(), "a late write meets nobody");

    // Hosts find the promoted volumes as they were at the second point.
    let mut bytes = vec![0; 1 << 20];
    there.host(0).read(65536, &mut bytes).unwrap();
    assert!(bytes == old, "v0 was promoted to the point");
    let refused = there.ask("replica_begin", json!({"offer": offer, "partner": "here"}));
    assert!(refused.unwrap_err().to_string().contains("is primary"));
    here.ask("replica_demote", json!({"group": "g"})).unwrap();
    assert!(v0.write(0, &[3; 4096]).is_err(), "hosts are kept out of a replica");
    transfer(&there, &here, &["v0", "v1"]);
    here.ask("replica_promote", json!({"group": "g"})).unwrap();
    v0.read(65536, &mut bytes).unwrap();
    assert!(bytes == old, "v0 is what it was at the point");
    v0.read(4096, &mut bytes[..4096]).unwrap();
    assert_eq!(bytes[..4096], [9; 4096]);
    v1.read(0, &mut bytes).unwrap();
    assert!(bytes == old, "v1 is what it was at the point");
    let status = serde_json::to_value(here.array.report()).unwrap();
    assert_eq!(status["storage"]["volumes"][0]["replica"]["role"], "primary");
}
