//! With our own array over loopback, on both drivers: data, authentication, discovery, and the end of the array during
//! a run.

use linerate_io::{Driver, Preference, open_driver, with_driver};
use linerate_iscsi_initiator::{
    Blame, Credentials, DigestChoice, Disk, IoError, LunAddress, Secret, SessionOptions, ToolError, discover,
};
use linerate_iscsi_target::{Array, ArrayConfig};
use serde_json::{Value, json};

const IQN: &str = "iqn.2026-11.lab.linerate:own";

fn options() -> SessionOptions {
    SessionOptions { login_timeout_s: 5.0, replacement_timeout_s: 1.0, ..SessionOptions::default() }
}

fn array(chap: &Value) -> (Array, String) {
    let volumes = json!([
        { "lun": 0, "name": "a", "kind": "memory", "size_bytes": 16 << 20, "sector_bytes": 512 },
        { "lun": 3, "name": "b", "kind": "memory", "size_bytes": 8 << 20, "sector_bytes": 4096,
          "physical_sector_bytes": 4096 },
    ]);
    let config: ArrayConfig = serde_json::from_value(json!({
        "portals": ["127.0.0.1:0"],
        "targets": [{ "name": IQN, "chap": chap, "volumes": volumes }],
    }))
    .unwrap();
    let array = Array::start(config).unwrap();
    let portal = array.portals()[0].to_string();
    (array, portal)
}

fn address(portal: &str, lun: u16) -> LunAddress {
    LunAddress::parse(&format!("iscsi://{portal}/{IQN}/{lun}")).unwrap().0
}

fn moves_data<D: Driver>(driver: D, portal: &str, options: &SessionOptions) {
    let mut disk = Disk::open(driver, &address(portal, 0), options, &Credentials::default()).unwrap();
    for len in [512_usize, 8192, 65_536, 3 << 20] {
        let sent: Vec<u8> = (0..len).map(|at| (at ^ (at >> 8)) as u8).collect();
        disk.write(4096, &sent).unwrap();
        let mut back = vec![0; len];
        disk.read(4096, &mut back).unwrap();
        assert!(sent == back, "{len} bytes");
    }
    disk.sync().unwrap();
    assert_eq!(disk.session_facts().unwrap().logins, 1);
    disk.close().unwrap();
}

#[test]
fn data_survives_on_both_drivers_under_every_way_of_moving_it() {
    let (_array, portal) = array(&Value::Null);
    let crc = DigestChoice::Crc32c;
    let ways = [
        options(),
        SessionOptions { immediate_data: false, initial_r2t: true, ..options() },
        SessionOptions { first_burst_bytes: 4096, max_burst_bytes: 16_384, ..options() },
        SessionOptions { max_recv_data_segment_bytes: 512, ..options() },
        SessionOptions { header_digest: crc, data_digest: crc, ..options() },
    ];
    for way in &ways {
        for preference in [Preference::Epoll, Preference::IoUring] {
            // If io_uring is blocked, it cannot be tested.
            let Ok(any) = open_driver(preference) else { continue };
            with_driver!(any, |driver| moves_data(driver, &portal, way));
        }
    }
}

#[test]
fn discovery_tells_luns_and_sizes() {
    let (_array, portal) = array(&Value::Null);
    let found = discover(&portal, &options(), &Credentials::default()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].iqn, IQN);
    let luns: Vec<_> = found[0].luns.iter().map(|l| (l.lun, l.capacity_bytes, l.block_bytes)).collect();
    assert_eq!(luns, [(0, 16 << 20, 512), (3, 8 << 20, 4096)]);
    assert!(found[0].luns.iter().all(|lun| lun.failure.is_none() && !lun.vendor.is_empty()));
    let told: Vec<_> = found[0]
        .luns
        .iter()
        .map(|l| (l.physical_block_bytes, l.lowest_aligned_block, l.optimal_io_bytes, l.write_cache))
        .collect();
    let told_of_b = (Some(4096), Some(0), Some(1 << 20), Some(false));
    assert_eq!(told, [(Some(512), Some(0), Some(1 << 20), Some(false)), told_of_b]);
    assert!(
        found[0].luns[0].unit_id.starts_with("naa.") && found[0].luns[0].unit_id != found[0].luns[1].unit_id
    );
}

#[test]
fn discovery_of_one_target_does_not_log_in_to_another() {
    let (_array, portal) = array(&json!({ "user": "joe", "secret": "joes-secret-123" }));
    let ask = |name: &str| {
        discover(&format!("iscsi://{portal}/{name}"), &options(), &Credentials::default()).unwrap()
    };
    assert!(ask(IQN)[0].wrong_credentials);
    assert_eq!(ask("iqn.2026-11.lab.linerate:other"), []);
}

#[test]
fn authentication_both_ways_and_its_failures() {
    let chap = json!({ "user": "joe", "secret": "joes-secret-123", "mutual_user": "array",
                       "mutual_secret": "arrays-secret-456" });
    let (_array, portal) = array(&chap);
    let with = |secret: &str, mutual: Option<&str>| Credentials {
        user: Some("joe".into()),
        secret: Some(Secret::new(secret)),
        mutual_user: mutual.map(|_| "array".into()),
        mutual_secret: mutual.map(Secret::new),
    };
    let open = |credentials: &Credentials| {
        let Ok(any) = open_driver(Preference::Epoll) else { panic!("no driver") };
        with_driver!(any, |driver| {
            Disk::open(driver, &address(&portal, 0), &options(), credentials).map(|_| ())
        })
    };
    open(&with("joes-secret-123", None)).unwrap();
    open(&with("joes-secret-123", Some("arrays-secret-456"))).unwrap();
    for (credentials, words) in [
        (with("wrong-secret-000", None), "authentication failure"),
        (Credentials::default(), "authentication failure"),
        (with("joes-secret-123", Some("not-the-arrays-1")), "not who it should be"),
    ] {
        let error = open(&credentials).unwrap_err();
        assert_eq!(error.blame(), Blame::User, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(!error.to_string().contains("secret-"), "{error}");
    }
}

#[test]
fn a_wrong_lun_or_target_name_is_the_users_to_mend() {
    let (_array, portal) = array(&Value::Null);
    let open = |address: &LunAddress| {
        let Ok(any) = open_driver(Preference::Epoll) else { panic!("no driver") };
        with_driver!(any, |driver| {
            Disk::open(driver, address, &options(), &Credentials::default()).map(|_| ())
        })
    };
    let error = open(&address(&portal, 7)).unwrap_err();
    assert_eq!(error.blame(), Blame::User, "{error}");
    assert!(error.to_string().contains("no such LUN"), "{error}");
    let unknown = LunAddress { target: "iqn.2026-11.lab.linerate:unknown".into(), ..address(&portal, 0) };
    let error = open(&unknown).unwrap_err();
    assert_eq!(error.blame(), Blame::User, "{error}");
    assert!(error.to_string().contains("target not found"), "{error}");
}

#[test]
fn an_array_that_ends_mid_run_fails_what_waits_within_the_replacement_timeout() {
    let (array, portal) = array(&Value::Null);
    let Ok(any) = open_driver(Preference::Epoll) else { panic!("no driver") };
    with_driver!(any, |driver| {
        let mut disk = Disk::open(driver, &address(&portal, 0), &options(), &Credentials::default()).unwrap();
        array.stop();
        let error = disk.read(0, &mut [0; 512]).unwrap_err();
        let lost = matches!(error, ToolError::Io { error: IoError::SessionLost, .. } | ToolError::Submit(_));
        assert!(lost, "{error}");
    });
}
