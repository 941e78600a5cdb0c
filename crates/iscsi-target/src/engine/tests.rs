//! Workers and the engine's thread in turn on the same volume.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use linerate_io::{Region, system::now_ns};
use std::{
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
fn rig() -> (Engine, Vec<Client>) {
    let storage = serde_json::json!({
        "disks": [{"name": "d", "count": 5, "size_bytes": 32 * MIB}],
        "raid_sets": [{"name": "r", "level": "raid10", "disks": ["d0", "d1", "d2", "d3"], "initialise": "assume_clean"}],
        "pools": [{"name": "p", "raid_sets": ["r"], "page_bytes": 65536}],
    });
    let volume = serde_json::json!({"lun": 0, "name": "v", "kind": "pool", "size_bytes": 8 * MIB});
    let storage = serde_json::from_value(storage).unwrap();
    let engine = Engine::start(storage, linerate_io::Preference::Auto, WaitMode::Block).unwrap();
    let (senders, answers): (Vec<_>, Vec<_>) = (0..WORKERS).map(|_| mpsc::channel()).unzip();
    let deliver = |sender: mpsc::Sender<FinishedOperation>| -> Deliver {
        Box::new(move |finished| finished.drain(..).for_each(|one| sender.send(one).unwrap()))
    };
    let exports =
        Exports { array: "a".into(), groups: Vec::new(), targets: Vec::new(), transfers: Arc::default() };
    engine.introduce(senders.into_iter().map(deliver).collect(), exports);
    engine.serves(false);
    let volume = engine.open(&serde_json::from_value(volume).unwrap()).unwrap().volume;
    let clients = answers.into_iter().enumerate().map(|(number, answers)| {
        let buffer = Region::anonymous(LEN).unwrap();
        Client { engine: engine.handle(), volume, number, buffer, answers, sent: 0 }
    });
    let clients = clients.collect();
    (engine, clients)
}

/// A worker with one buffer.
struct Client {
    engine: EngineHandle,
    volume: u32,
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
        self.engine.perform(now_ns(), &mut quota, &mut requests, &mut waiting, &mut finished);
        self.sent += waiting.len();
        self.engine.send(&mut waiting);
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
    let (engine, mut clients) = rig();
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
        engine.status().unwrap();
    }
    panic!("no write was done by the worker");
}

#[test]
fn a_read_may_leave_its_bytes_where_the_disks_have_them() {
    let (engine, mut clients) = rig();
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
    let manage = |command: serde_json::Value| engine.manage(serde_json::from_value(command).unwrap());
    manage(serde_json::json!({"verb": "snapshot", "volumes": ["v"], "name": "s"})).unwrap();
    client.write(0, 7);
    manage(serde_json::json!({"verb": "delete_snapshot", "volume": "v", "snapshot": "s"})).unwrap();
    client.write(MIB, 8);
    assert!(holds(6));
}

#[test]
fn a_worker_leaves_what_is_beyond_the_limit() {
    let (engine, clients) = rig();
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
            let mut requests: VecDeque<_> = (0..5).map(request).collect();
            client.engine.perform(now_ns(), &mut quota, &mut requests, &mut waiting, &mut finished);
            if waiting.is_empty() {
                let tags: Vec<u64> = finished.iter().map(|answer| answer.tag).collect();
                let left: Vec<u64> = requests.iter().map(|request| request.tag).collect();
                return (tags, left);
            }
            engine.status().unwrap();
        }
        panic!("no read was done by the worker");
    };
    let first_two = (vec![0, 1], vec![2, 3, 4]);
    assert_eq!(perform(Quota { operations: 2, bytes: u64::MAX }), first_two);
    assert_eq!(perform(Quota { operations: 9, bytes: LEN + 1 }), first_two);
}

#[test]
fn workers_and_the_thread_take_turns() {
    let (engine, clients) = rig();
    let left = AtomicUsize::new(WORKERS);
    let manage = |command: serde_json::Value| engine.manage(serde_json::from_value(command).unwrap());
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
