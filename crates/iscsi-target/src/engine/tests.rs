//! Workers and the engine's thread in turn on the same volume.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::target::IscsiTarget;
use linerate_io::{Region, system::now_ns};
use linerate_iscsi_proto::chap::{Algorithm, ChapConfig, ChapSecret, Credentials};
use linerate_scsi::Inventory;
use linerate_storage::controller::DiskState;
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

const MIB: u64 = 1 << 20;
const LEN: u64 = 4096;
/// The part of the volume that each worker writes.
const SHARE_BYTES: u64 = 2 * MIB;
const WORKERS: usize = 2;
const OPERATIONS: usize = 4_000;

/// A volume of a pool on RAID 10 of memory, and its workers.
fn rig() -> (Engines, Vec<Client>) {
    let (engines, answers) = start(&serde_json::json!({
        "disks": [{"name": "d", "count": 5, "size_bytes": 32 * MIB}],
        "raid_sets": [{"name": "r", "level": "raid10", "disks": ["d0", "d1", "d2", "d3"], "initialise": "assume_clean"}],
        "pools": [{"name": "p", "raid_sets": ["r"], "page_bytes": 65536}],
    }));
    let volume = open(&engines, "v", "p");
    let clients = answers.into_iter().enumerate().map(|(number, answers)| {
        let buffer = Region::anonymous(LEN).unwrap();
        Client { handles: engines.handles(), volume, number, buffer, answers, sent: 0 }
    });
    let clients = clients.collect();
    (engines, clients)
}

/// At most two engines, and the answers for each worker.
fn start(storage: &serde_json::Value) -> (Engines, Vec<mpsc::Receiver<FinishedOperation>>) {
    let storage = serde_json::from_value(storage.clone()).unwrap();
    let engines = Engines::start(&storage, 2, linerate_io::Preference::Auto, WaitMode::Block).unwrap();
    let (senders, answers): (Vec<_>, Vec<_>) = (0..WORKERS).map(|_| mpsc::channel()).unzip();
    let deliver = |sender: mpsc::Sender<FinishedOperation>| -> Deliver {
        Arc::new(move |finished| finished.drain(..).for_each(|one| sender.send(one).unwrap()))
    };
    let (array, groups, transfers) = ("a".into(), Vec::new(), Arc::default());
    let exports = Exports { array, groups, targets: vec![target()], transfers };
    engines.introduce(&senders.into_iter().map(deliver).collect::<Vec<_>>(), &exports);
    engines.serves(false);
    (engines, answers)
}

fn target() -> Arc<IscsiTarget> {
    let inventory = Inventory::new(Vec::new()).unwrap();
    let login = Credentials { name: "u".into(), secret: ChapSecret::new("0123456789abcdef") };
    let chap = ChapConfig::new(&[Algorithm::Sha256], login, None).unwrap();
    Arc::new(IscsiTarget::by_secret("iqn.2026-01.x:t".into(), chap, inventory))
}

/// The number of a volume of a pool, which is made if it is missing.
fn open(engines: &Engines, name: &str, pool: &str) -> VolumeNumber {
    let volume =
        serde_json::json!({"lun": 0, "name": name, "kind": "pool", "pool": pool, "size_bytes": 8 * MIB});
    engines.open(&serde_json::from_value(volume).unwrap()).unwrap().volume
}

/// A worker with one buffer.
struct Client {
    handles: EngineHandles,
    volume: VolumeNumber,
    number: usize,
    buffer: Arc<Region>,
    answers: mpsc::Receiver<FinishedOperation>,
    /// Operations that needed the engine's thread.
    sent: usize,
}

impl Client {
    fn ask(&mut self, operation: Operation) {
        let memory = vec![BufferPart { region: Arc::clone(&self.buffer), offset: 0, len: LEN as u32 }];
        let (volume, worker) = (self.volume, self.number);
        let request = OperationRequest { volume, operation, memory, in_place: None, worker, tag: 7 };
        let answer = self.perform(request);
        assert_eq!((answer.tag, answer.memory.len()), (7, 1));
        answer.outcome.moved(LEN as usize).unwrap();
    }

    fn perform(&mut self, request: OperationRequest) -> FinishedOperation {
        let (mut requests, mut waiting, mut finished) = ([request].into(), Vec::new(), Vec::new());
        let mut quota = Quota { operations: 1, bytes: LEN };
        self.handles.perform(now_ns(), &mut quota, &mut requests, &mut waiting, &mut finished);
        self.sent += waiting.len();
        self.handles.send(&mut waiting);
        finished.pop().unwrap_or_else(|| self.answers.recv().unwrap())
    }

    fn write(&mut self, offset_bytes: u64, byte: u8) {
        self.buffer.write(0, &[byte; LEN as usize]);
        self.ask(Operation::Write { offset_bytes, durable: true });
    }

    fn reads_as(&mut self, offset_bytes: u64, byte: u8) {
        self.buffer.write(0, &[!byte; LEN as usize]);
        self.ask(Operation::Read { offset_bytes, in_place: false });
        let mut found = [0; LEN as usize];
        self.buffer.read(0, &mut found);
        assert!(found.iter().all(|one| *one == byte), "{} instead of {byte} at {offset_bytes}", found[0]);
    }
}

#[test]
fn a_worker_does_what_needs_no_waiting() {
    let (engines, mut clients) = rig();
    let client = &mut clients[0];
    // The first write needs a page, and flags on disk.
    client.write(0, 1);
    assert_eq!(client.sent, 1);
    // When the mapping of the page is durable, the thread has no more work, and sleeps.
    for byte in (2..=255).cycle().take(20_000) {
        let before = client.sent;
        client.write(0, byte);
        client.reads_as(0, byte);
        if client.sent == before {
            return;
        }
        engines.status().unwrap();
    }
    panic!("no write was done by the worker");
}

#[test]
fn a_read_may_leave_its_bytes_where_the_disks_have_them() {
    let (engines, mut clients) = rig();
    let client = &mut clients[0];
    client.write(0, 5);
    client.buffer.write(0, &[0; LEN as usize]);
    let memory = vec![BufferPart { region: Arc::clone(&client.buffer), offset: 0, len: LEN as u32 }];
    let operation = Operation::Read { offset_bytes: 0, in_place: true };
    let in_place = Some(InPlace::default());
    let request = OperationRequest { volume: client.volume, operation, memory, in_place, worker: 0, tag: 7 };
    let found = client.perform(request).in_place.unwrap();
    assert_eq!(client.buffer.compare(0, &[0; LEN as usize]), None, "nothing was copied");
    let lens: u64 = found.parts.iter().map(|part| u64::from(part.len)).sum();
    assert_eq!(lens, LEN);
    // The volume's later bytes are seen there, but those of no other volume.
    client.write(0, 6);
    let holds = |byte: u8| {
        let is =
            |part: &BufferPart| part.region.compare(part.offset, &vec![byte; part.len as usize]).is_none();
        found.parts.iter().all(is)
    };
    assert!(holds(6));
    let manage = |command: serde_json::Value| engines.manage(&serde_json::from_value(command).unwrap());
    manage(serde_json::json!({"verb": "snapshot", "volumes": ["v"], "name": "s"})).unwrap();
    client.write(0, 7);
    manage(serde_json::json!({"verb": "delete_snapshot", "volume": "v", "snapshot": "s"})).unwrap();
    client.write(MIB, 8);
    assert!(holds(6));
}

#[test]
fn a_worker_leaves_what_is_beyond_the_limit() {
    const REQUESTS: u64 = 20;
    let (engines, clients) = rig();
    let client = &clients[0];
    let request = |tag| OperationRequest {
        volume: client.volume,
        operation: Operation::Read { offset_bytes: tag * LEN, in_place: false },
        memory: vec![BufferPart { region: Arc::clone(&client.buffer), offset: 0, len: LEN as u32 }],
        in_place: None,
        worker: 0,
        tag,
    };
    // The thread may be awake: then it gets all of them.
    let perform = |quota: Quota| {
        for _ in 0..1000 {
            let (mut waiting, mut finished, mut quota) = (Vec::new(), Vec::new(), quota);
            let mut requests: VecDeque<_> = (0..REQUESTS).map(request).collect();
            client.handles.perform(now_ns(), &mut quota, &mut requests, &mut waiting, &mut finished);
            if waiting.is_empty() {
                let tags: Vec<u64> = finished.iter().map(|answer| answer.tag).collect();
                let left: Vec<u64> = requests.iter().map(|request| request.tag).collect();
                return (tags, left);
            }
            engines.status().unwrap();
        }
        panic!("no read was done by the worker");
    };
    let first_two = (vec![0, 1], (2..REQUESTS).collect());
    assert_eq!(perform(Quota { operations: 2, bytes: u64::MAX }), first_two);
    assert_eq!(perform(Quota { operations: 99, bytes: LEN + 1 }), first_two);
    let all = ((0..REQUESTS).collect(), Vec::new());
    assert_eq!(perform(Quota { operations: 99, bytes: u64::MAX }), all, "in several visits");
}

#[test]
fn workers_and_the_thread_take_turns() {
    let (engines, clients) = rig();
    let left = AtomicUsize::new(WORKERS);
    let manage = |command: serde_json::Value| engines.manage(&serde_json::from_value(command).unwrap());
    thread::scope(|scope| {
        for mut client in clients {
            let left = &left;
            scope.spawn(move || {
                let number = client.number as u64;
                let mut rng = fastrand::Rng::with_seed(number);
                let mut expected = vec![0; (SHARE_BYTES / LEN) as usize];
                let mut writes = 0;
                for _ in 0..OPERATIONS {
                    let at = rng.usize(0..expected.len());
                    let offset = number * SHARE_BYTES + at as u64 * LEN;
                    if rng.bool() {
                        expected[at] = rng.u8(..);
                        client.write(offset, expected[at]);
                        writes += 1;
                    }
                    client.reads_as(offset, expected[at]);
                }
                left.fetch_sub(1, Relaxed);
                // How many depends on the machine: the thread is awake while it is managed.
                assert!(client.sent < OPERATIONS + writes, "every operation needed the thread");
            });
        }
        manage(serde_json::json!({"verb": "fail_disk", "disk": "d1"})).unwrap();
        let disk = serde_json::json!({"name": "n", "size_bytes": 32 * MIB});
        manage(serde_json::json!({"verb": "replace_disk", "disk": "d1", "new": disk})).unwrap();
        for number in 0.. {
            if left.load(Relaxed) == 0 {
                break;
            }
            let name = format!("s{number}");
            manage(serde_json::json!({"verb": "snapshot", "volumes": ["v"], "name": name})).unwrap();
            manage(serde_json::json!({"verb": "delete_snapshot", "volume": "v", "snapshot": name})).unwrap();
        }
    });
}

/// Two pools that share nothing, and a RAID set that is in none.
fn two_pools() -> (Engines, Vec<mpsc::Receiver<FinishedOperation>>) {
    start(&serde_json::json!({
        "disks": [{"name": "d", "count": 4, "size_bytes": 32 * MIB}],
        "raid_sets": [
            {"name": "r0", "level": "raid1", "disks": ["d1", "d0"], "initialise": "assume_clean"},
            {"name": "r1", "level": "raid0", "disks": ["d2"]},
            {"name": "r2", "level": "raid0", "disks": ["d3"]}],
        "pools": [
            {"name": "p1", "raid_sets": ["r1"], "page_bytes": 65536},
            {"name": "p0", "raid_sets": ["r0"], "page_bytes": 65536}],
    }))
}

fn manage(engines: &Engines, command: serde_json::Value) -> Result<Reply, String> {
    engines.manage(&serde_json::from_value(command).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn commands_find_the_engine_that_knows_their_name() {
    let (engines, _answers) = two_pools();
    let volumes = [open(&engines, "v0", "p0"), open(&engines, "v1", "p1")];
    assert_eq!(volumes.map(|volume| volume.engine), [0, 1]);
    for volume in ["v0", "v1"] {
        let snapshot = serde_json::json!({"verb": "snapshot", "volumes": [volume], "name": "s"});
        manage(&engines, snapshot).unwrap();
        let name = format!("clone-of-{volume}");
        let clone = serde_json::json!({"verb": "clone", "volume": volume, "snapshot": "s", "name": name});
        manage(&engines, clone).unwrap();
        manage(&engines, serde_json::json!({"verb": "resize", "volume": volume, "size_bytes": 16 * MIB}))
            .unwrap();
    }
    let status = engines.status().unwrap();
    let names: Vec<_> = status.disks.iter().map(|disk| &*disk.name).collect();
    assert_eq!(names, ["d0", "d1", "d2", "d3"]);
    let names: Vec<_> = status.raid_sets.iter().map(|set| &*set.name).collect();
    assert_eq!(names, ["r0", "r1", "r2"]);
    let names: Vec<_> = status.pools.iter().map(|pool| &*pool.name).collect();
    assert_eq!(names, ["p1", "p0"], "in the order of the configuration");
    let volumes: Vec<_> = status.volumes.iter().map(|one| (&*one.volume.name, &*one.pool, one.lun)).collect();
    let exported = [("clone-of-v0", "p0", Some(0)), ("clone-of-v1", "p1", Some(1))];
    assert_eq!(volumes, [&exported[..], &[("v0", "p0", None), ("v1", "p1", None)]].concat());
    manage(&engines, serde_json::json!({"verb": "fail_disk", "disk": "d1"})).unwrap();
    let disks = engines.status().unwrap().disks;
    let failed: Vec<_> = disks.iter().map(|disk| disk.state == DiskState::Failed).collect();
    assert_eq!(failed, [false, true, false, false]);
    manage(&engines, serde_json::json!({"verb": "delete", "volume": "clone-of-v1"})).unwrap();
    manage(&engines, serde_json::json!({"verb": "scrub", "raid_set": "r0"})).unwrap();
}

#[test]
fn names_are_unique_on_the_array_and_a_refusal_lists_all_of_them() {
    let (engines, _answers) = two_pools();
    open(&engines, "v0", "p0");
    open(&engines, "v1", "p1");
    let refused = |command| manage(&engines, command).unwrap_err();
    let unknown = refused(serde_json::json!({"verb": "resize", "volume": "x", "size_bytes": MIB}));
    assert_eq!(unknown, "there is no volume \"x\"; there are: v0, v1");
    let unnamed = refused(serde_json::json!({"verb": "snapshot", "volumes": [], "name": "s"}));
    assert_eq!(unnamed, "name the volume; there are: v0, v1");
    let unknown = refused(serde_json::json!({"verb": "fail_disk", "disk": "x"}));
    assert_eq!(unknown, "there is no disk \"x\"; there are: d0, d1, d3, d2");
    let unknown = refused(serde_json::json!({"verb": "scrub", "raid_set": "x"}));
    assert_eq!(unknown, "there is no RAID set \"x\"; there are: r0, r2, r1");
    let create = |name: &str, pool: Option<&str>| {
        let verb = "create_volume";
        serde_json::json!({"verb": verb, "name": name, "pool": pool, "size_bytes": MIB})
    };
    assert_eq!(refused(create("w", None)), "name the pool; there are: p1, p0");
    assert_eq!(refused(create("w", Some("x"))), "there is no pool \"x\"; there are: p1, p0");
    let taken = "there is a volume \"v0\" already; choose another name";
    assert_eq!(refused(create("v0", Some("p1"))), taken);
    let volume = serde_json::json!({"lun": 0, "name": "v0", "kind": "pool", "pool": "p1", "size_bytes": MIB});
    let volume = serde_json::from_value(volume).unwrap();
    assert_eq!(engines.open(&volume).unwrap_err().to_string(), taken);
    let new = serde_json::json!({"name": "d2", "size_bytes": 32 * MIB});
    let replace = serde_json::json!({"verb": "replace_disk", "disk": "d0", "new": new});
    assert_eq!(refused(replace), "there is a disk \"d2\" already; choose another name");
    let group = serde_json::from_value(serde_json::json!({"group": "g"})).unwrap();
    let unknown = engines.replicate("replica_status", group).unwrap_err().to_string();
    assert_eq!(unknown, "there is no replication group \"g\" on this array");
}

#[test]
fn a_group_is_received_in_the_engine_of_its_pool_and_its_verbs_find_it() {
    let (engines, _answers) = two_pools();
    open(&engines, "v0", "p0");
    let offer = |group: &str, volume: &str| {
        serde_json::json!({
            "pair": {"here": "a", "partner": "b"},
            "pool": "p1",
            "offer": {
                "group": group, "id": "1", "from": "b", "to": "a", "keep": 1,
                "point": {"name": "replica-0000000000000001", "at_s": 1.0},
                "volumes": [{"name": volume, "size_bytes": MIB, "bases": []}]},
        })
    };
    let ask = |verb: &str, fields: serde_json::Value| {
        let serde_json::Value::Object(fields) = fields else { unreachable!("fields are an object") };
        engines.replicate(verb, fields).map_err(|error| error.to_string())
    };
    let taken = ask("replica_begin", offer("g", "v0")).unwrap_err();
    assert!(taken.contains("a volume \"v0\" exists here and is no replica"), "{taken}");
    let begun = ask("replica_begin", offer("g", "w")).unwrap();
    assert!(begun.contains_key("access"));
    let status = engines.status().unwrap();
    let placed: Vec<_> = status.volumes.iter().map(|one| (&*one.volume.name, &*one.pool)).collect();
    assert_eq!(placed, [("v0", "p0"), ("w", "p1")]);
    let status = ask("replica_status", serde_json::json!({"group": "g"})).unwrap();
    assert_eq!(status["volumes"], serde_json::json!(["w"]));
    // Again, and now the group says where it is.
    let mut again = offer("g", "w");
    again["pool"] = serde_json::Value::Null;
    ask("replica_begin", again).unwrap();
    let prepare = serde_json::json!({"group": "h", "pair": {"here": "a", "partner": "b"}, "volumes": ["v0"]});
    ask("replica_prepare", prepare).unwrap();
    assert_eq!(ask("replica_status", serde_json::json!({"group": "h"})).unwrap()["role"], "primary");
}

#[test]
fn a_worker_finds_the_engine_of_each_request() {
    let (engines, mut answers) = two_pools();
    let volumes = [open(&engines, "v0", "p0"), open(&engines, "v1", "p1")];
    let (handles, answers) = (engines.handles(), answers.remove(0));
    let buffers: Vec<_> = (0..8).map(|_| Region::anonymous(LEN).unwrap()).collect();
    let run = |operation: &dyn Fn(u64) -> Operation| {
        let request = |tag: u64| OperationRequest {
            volume: volumes[tag as usize % 2],
            operation: operation(tag / 2 * LEN),
            memory: vec![BufferPart {
                region: Arc::clone(&buffers[tag as usize]),
                offset: 0,
                len: LEN as u32,
            }],
            in_place: None,
            worker: 0,
            tag,
        };
        let (mut waiting, mut finished) = (Vec::new(), Vec::new());
        let mut requests: VecDeque<_> = (0..8).map(request).collect();
        let mut quota = Quota { operations: 8, bytes: u64::MAX };
        handles.perform(now_ns(), &mut quota, &mut requests, &mut waiting, &mut finished);
        assert!(requests.is_empty());
        let asked = waiting.len();
        handles.send(&mut waiting);
        assert!(waiting.is_empty(), "an engine has ended");
        finished.extend((0..asked).map(|_| answers.recv().unwrap()));
        let mut tags: Vec<_> = finished.iter().map(|answer| answer.tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, (0..8).collect::<Vec<_>>());
        for answer in finished {
            answer.outcome.moved(LEN as usize).unwrap();
        }
    };
    for (tag, buffer) in (1..).zip(&buffers) {
        buffer.write(0, &[tag; LEN as usize]);
    }
    run(&|offset_bytes| Operation::Write { offset_bytes, durable: true });
    for buffer in &buffers {
        buffer.write(0, &[0; LEN as usize]);
    }
    run(&|offset_bytes| Operation::Read { offset_bytes, in_place: false });
    for (tag, buffer) in (1..).zip(&buffers) {
        assert_eq!(buffer.compare(0, &[tag; LEN as usize]), None, "tag {tag}");
    }
}
