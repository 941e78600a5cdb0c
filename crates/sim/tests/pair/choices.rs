//! Choices by the seed before the first byte: the array, the session options, the authentication.

use linerate_iscsi_initiator::{ConnectionPolicy, Credentials, DigestChoice, Secret, SessionOptions};
use linerate_iscsi_target::ArrayConfig;
use linerate_sim::Rng;
use serde_json::{Value, json};

pub(crate) const TARGET: &str = "iqn.2026-11.lab.linerate:sim";
/// The target of the rude initiator.
pub(crate) const ROGUE: &str = "iqn.2026-11.lab.linerate:rogue";
pub(crate) const BLOCK: u64 = 512;
/// Blocks of each LUN.
pub(crate) const BLOCKS: u64 = 128;
/// The possible LUNs; one of them needs the other form of address.
pub(crate) const LUNS: [u16; 3] = [0, 5, 300];

/// The wishes of both sides.
pub(crate) struct Choices {
    pub(crate) array: ArrayConfig,
    pub(crate) options: SessionOptions,
    pub(crate) credentials: Credentials,
    pub(crate) luns: usize,
    pub(crate) shared: bool,
}

fn one_of<T: Copy>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.range(0, values.len() as u64 - 1) as usize]
}

impl Choices {
    /// `impatient` sessions abort slow commands.
    pub(crate) fn new(rng: &mut Rng, impatient: bool) -> Self {
        let luns = rng.range(1, LUNS.len() as u64) as usize;
        let (chap, credentials) = proofs(rng);
        Choices {
            array: array(rng, luns, &chap),
            options: options(rng, impatient),
            credentials,
            luns,
            shared: rng.chance(50),
        }
    }
}

fn array(rng: &mut Rng, luns: usize, chap: &Value) -> ArrayConfig {
    let in_files = rng.chance(50);
    let volume = |lun: &u16| {
        let (kind, path) =
            if in_files { ("file", json!(format!("/sim/v{lun}"))) } else { ("memory", Value::Null) };
        json!({ "lun": lun, "name": format!("v{lun}"), "kind": kind, "path": path,
                "size_bytes": BLOCKS * BLOCK, "sector_bytes": BLOCK })
    };
    // FirstBurstLength may not exceed MaxBurstLength (RFC 7143 13.14).
    let (first, burst) = one_of(rng, &[(512, 1024), (512, 65_536), (3000, 8192), (65_536, 65_536)]);
    let volumes: Vec<Value> = LUNS[..luns].iter().map(volume).collect();
    let mut rogue = volume(&0);
    (rogue["name"], rogue["path"]) =
        (json!("rogue"), if in_files { json!("/sim/rogue") } else { Value::Null });
    serde_json::from_value(json!({
        "name": "sim",
        "portals": ["127.0.0.1:3260"],
        "limits": {
            "login_timeout_s": 5.0, "nop_interval_s": 5.0, "nop_timeout_s": 5.0,
            "commands_per_session": one_of(rng, &[1, 2, 4, 32]),
            "max_recv_data_segment_bytes": one_of(rng, &[512, 1000, 4096, 65_536]),
            "max_burst_bytes": burst,
            "first_burst_bytes": first,
            "connections_per_session": one_of(rng, &[1, 2, 8]),
        },
        "targets": [
            { "name": TARGET, "chap": chap, "volumes": volumes },
            { "name": ROGUE, "volumes": [rogue] },
        ],
    }))
    .unwrap()
}

fn options(rng: &mut Rng, impatient: bool) -> SessionOptions {
    let digest =
        |rng: &mut Rng| one_of(rng, &[DigestChoice::None, DigestChoice::Offer, DigestChoice::Crc32c]);
    let (first, burst) = one_of(rng, &[(512, 1000), (512, 65_536), (2000, 4096), (16_384, 65_536)]);
    SessionOptions {
        header_digest: digest(rng),
        data_digest: digest(rng),
        immediate_data: rng.chance(60),
        initial_r2t: rng.chance(50),
        first_burst_bytes: first,
        max_burst_bytes: burst,
        max_outstanding_r2t: one_of(rng, &[1, 2, 7]),
        max_recv_data_segment_bytes: one_of(rng, &[512, 1500, 4096, 65_536]),
        login_timeout_s: 3.0,
        command_timeout_s: if impatient { one_of(rng, &[0.06, 0.2]) } else { 120.0 },
        replacement_timeout_s: 3600.0,
        ping_interval_s: 1.0,
        ping_timeout_s: 2.0,
        connections: one_of(rng, &[1, 1, 2, 3]),
        connection_policy: one_of(rng, &[ConnectionPolicy::RoundRobin, ConnectionPolicy::LeastQueueDepth]),
        ..SessionOptions::default()
    }
}

/// No authentication, one-way or mutual CHAP.
fn proofs(rng: &mut Rng) -> (Value, Credentials) {
    let (secret, mutual_secret) = ("what the array must hear", "what the initiator must hear");
    let algorithms = one_of(rng, &[&["md5"][..], &["sha256"], &["sha256", "md5"]]);
    let credentials = Credentials {
        user: Some("alice".into()),
        secret: Some(Secret::new(secret)),
        mutual_user: None,
        mutual_secret: None,
    };
    match rng.range(0, 2) {
        0 => (Value::Null, Credentials::default()),
        1 => (json!({ "algorithms": algorithms, "user": "alice", "secret": secret }), credentials),
        _ => (
            json!({ "algorithms": algorithms, "user": "alice", "secret": secret,
                    "mutual_user": "array", "mutual_secret": mutual_secret }),
            Credentials {
                mutual_user: Some("array".into()),
                mutual_secret: Some(Secret::new(mutual_secret)),
                ..credentials
            },
        ),
    }
}
