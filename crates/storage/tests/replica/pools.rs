//! The same between two real pools, over the service's verbs.

use bytes::{Bytes, BytesMut};
use futures::{
    FutureExt,
    future::{LocalBoxFuture, ready},
};
use linerate_sim::{Rng, for_each_seed};
use linerate_storage::{
    Disk, Executor, Runtime,
    disk::MemoryDisk,
    pool::{Pool, PoolConfig},
    replica::{
        Fence, Link, ReplicaError,
        service::{Access, Fields, LinkSpec, Login, Service, Surroundings},
    },
};
use serde_json::{Value, json};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use crate::link::Cable;

const PAGE_BYTES: u64 = 16 * 1024;
const POOL_BYTES: u64 = 24 << 20;

/// State that both arrays share: exported fences, by the target's name.
#[derive(Clone)]
struct San {
    runtime: Runtime,
    rng: Rc<RefCell<Rng>>,
    shown: Rc<RefCell<BTreeMap<String, Vec<Rc<Fence>>>>>,
    made: Rc<Cell<u64>>,
    locked: Rc<RefCell<Vec<String>>>,
}

impl Surroundings for San {
    fn show(
        &self,
        group: &str,
        fences: Vec<Rc<Fence>>,
    ) -> LocalBoxFuture<'static, Result<Access, ReplicaError>> {
        self.made.set(self.made.get() + 1);
        let luns = (0..fences.len() as u16).collect();
        let target = format!("{group}.{}", self.made.get());
        self.shown.borrow_mut().insert(target.clone(), fences);
        ready(Ok(Access { target, luns, login: Login::default() })).boxed_local()
    }

    fn withdraw(&self, group: &str) -> LocalBoxFuture<'static, ()> {
        self.shown.borrow_mut().retain(|target, _| !target.starts_with(group));
        ready(()).boxed_local()
    }

    fn admit(&self, volumes: &[String], hosts: bool) -> LocalBoxFuture<'static, ()> {
        let mut locked = self.locked.borrow_mut();
        locked.retain(|volume| !volumes.contains(volume));
        if !hosts {
            locked.extend(volumes.iter().cloned());
        }
        ready(()).boxed_local()
    }

    fn connect(&self, _spec: &LinkSpec, access: &Access) -> Result<Rc<dyn Link>, ReplicaError> {
        let fences = self.shown.borrow()[&access.target].clone();
        Ok(Rc::new(Cable::new(fences, self.runtime.clone(), Rc::clone(&self.rng))))
    }

    fn now_s(&self) -> f64 {
        self.runtime.now() as f64 / 1e9
    }

    fn random(&self) -> u64 {
        self.rng.borrow_mut().next_u64()
    }
}

struct Array {
    name: String,
    pool: Pool,
    service: Rc<Service>,
    san: San,
}

impl Array {
    async fn new(san: &San, name: &str) -> Self {
        let disk = Rc::new(MemoryDisk::new(name, POOL_BYTES, 512).unwrap());
        let mut config = PoolConfig::new("p0");
        config.page_bytes = PAGE_BYTES;
        let pool = Pool::create(san.runtime.clone(), config, disk).await.unwrap();
        let san = San { locked: Rc::default(), ..san.clone() };
        let pools = vec![("p0".to_owned(), pool.clone())];
        let service = Service::open(san.runtime.clone(), Rc::new(san.clone()), pools).await.unwrap();
        Self { name: name.to_owned(), pool, service, san }
    }

    async fn ask(&self, verb: &str, value: Value) -> Result<Value, ReplicaError> {
        let Value::Object(fields) = value else { panic!("{verb} takes an object") };
        let reply: Fields = self.service.manage(verb, fields).await?;
        Ok(Value::Object(reply))
    }

    fn pair(&self, partner: &Self) -> Value {
        json!({"here": self.name, "partner": partner.name})
    }

    async fn bytes(&self, volume: &str) -> Vec<u8> {
        let volume = self.pool.volume(volume).unwrap();
        volume.read(0, BytesMut::zeroed(volume.size_bytes() as usize)).await.unwrap().to_vec()
    }

    /// Random writes, unmaps and sizes.
    async fn work(&self, volumes: &[String], rng: &Rc<RefCell<Rng>>) {
        let range = |low, high| rng.borrow_mut().range(low, high);
        let pieces = range(0, 12);
        for _ in 0..pieces {
            let volume = &volumes[range(0, volumes.len() as u64 - 1) as usize];
            if range(1, 100) <= 10 {
                self.pool.resize(volume, range(1, 20) * 8192).await.unwrap();
            }
            let volume = self.pool.volume(volume).unwrap();
            let first = range(0, volume.size_bytes() / 4096 - 1) * 4096;
            let len = range(1, 8) * 4096;
            let len = len.min(volume.size_bytes() - first);
            if range(1, 100) <= 30 {
                volume.discard(first, len).await.unwrap();
            } else {
                let data = Bytes::from(vec![range(1, 255) as u8; len as usize]);
                volume.write(first, data, false).await.unwrap();
            }
        }
    }
}

/// The steps of a transfer, which the lab plane sends over HTTP.
async fn transfer(
    from: &Array,
    to: &Array,
    mut prepare: Value,
    runtime: &Runtime,
) -> Result<(), ReplicaError> {
    prepare["pair"] = from.pair(to);
    let offer = from.ask("replica_prepare", prepare).await?;
    let begin = json!({"offer": offer, "pair": to.pair(from), "partner": "other"});
    let begun = to.ask("replica_begin", begin).await?;
    let options = json!({"piece_bytes": 8192, "checkpoint_bytes": 65536});
    let copy = json!({"answer": begun["answer"], "access": begun["access"],
        "link": {"portal": "192.0.2.1:3260"}, "options": options});
    from.ask("replica_copy", copy).await?;
    let status = loop {
        let status = from.ask("replica_status", json!({"group": "g"})).await?;
        if status["progress"]["is_running"] == false {
            break status;
        }
        runtime.sleep(10_000).await;
    };
    let commit = &status["progress"]["commit"];
    assert!(commit.is_object(), "{status}");
    to.ask("replica_commit", json!({"commit": commit, "pair": to.pair(from), "partner": "other"})).await?;
    from.ask("replica_confirm", json!({"commit": commit})).await?;
    Ok(())
}

#[test]
fn two_pools_follow_each_other_there_and_back() {
    for_each_seed(60, |seed| {
        let mut executor = Executor::new();
        let runtime = executor.runtime();
        assert!(executor.run_in_virtual_time(there_and_back(runtime, seed)).is_some(), "a deadlock");
    });
}

async fn there_and_back(runtime: Runtime, seed: u64) {
    let rng = Rc::new(RefCell::new(Rng::new(seed)));
    let san = San {
        runtime: runtime.clone(),
        rng: Rc::clone(&rng),
        shown: Rc::default(),
        made: Rc::default(),
        locked: Rc::default(),
    };
    let mut from = Array::new(&san, "a").await;
    let mut to = Array::new(&san, "b").await;
    let volumes = ["v0".to_owned(), "v1".to_owned()];
    for volume in &volumes {
        let size_bytes = rng.borrow_mut().range(1, 20) * 8192;
        from.pool.create_volume(volume, size_bytes).await.unwrap();
    }
    for _ in 0..4 {
        let transfers = rng.borrow_mut().range(1, 3);
        for _ in 0..transfers {
            from.work(&volumes, &rng).await;
            let prepare = json!({"group": "g", "volumes": volumes, "keep": 2});
            transfer(&from, &to, prepare, &runtime).await.unwrap();
        }
        let mut known = Vec::new();
        for volume in &volumes {
            known.push(from.bytes(volume).await);
        }
        // The old primary continues for a while; the new one must not have these writes, unless it gets the last point.
        from.work(&volumes, &rng).await;
        let is_told = rng.borrow_mut().chance(30);
        if is_told {
            let last = json!({"group": "g", "keep": 2, "last": true});
            transfer(&from, &to, last, &runtime).await.unwrap();
            assert_eq!(*from.san.locked.borrow(), volumes, "hosts are kept out for the last point");
            for (volume, known) in volumes.iter().zip(&mut known) {
                *known = from.bytes(volume).await;
            }
        }
        assert_eq!(*to.san.locked.borrow(), volumes, "hosts are kept out of a replica");
        to.ask("replica_promote", json!({"group": "g", "force": true})).await.unwrap();
        assert!(to.san.locked.borrow().is_empty());
        for (volume, known) in volumes.iter().zip(known) {
            assert!(to.bytes(volume).await == known, "{volume} is not what it was at the point");
        }
        let again = json!({"group": "g", "pair": from.pair(&to)});
        let offer = from.ask("replica_prepare", again).await.unwrap();
        let refused = to.ask("replica_begin", json!({"offer": offer, "pair": to.pair(&from)})).await;
        assert!(matches!(refused, Err(ReplicaError::IsPrimary(_))), "{refused:?}");
        from.ask("replica_demote", json!({"group": "g"})).await.unwrap();
        std::mem::swap(&mut from, &mut to);
    }
}

#[test]
fn a_partner_receives_its_own_and_does_nothing_else() {
    let mut executor = Executor::new();
    let runtime = executor.runtime();
    let end = executor.run_in_virtual_time(async move {
        let san = San {
            runtime: runtime.clone(),
            rng: Rc::new(RefCell::new(Rng::new(1))),
            shown: Rc::default(),
            made: Rc::default(),
            locked: Rc::default(),
        };
        let (from, to) = (Array::new(&san, "a").await, Array::new(&san, "b").await);
        from.pool.create_volume("v0", 8192).await.unwrap();
        let prepare = json!({"group": "g", "volumes": ["v0"]});
        transfer(&from, &to, prepare, &runtime).await.unwrap();
        let offer = from.ask("replica_prepare", json!({"group": "g", "pair": from.pair(&to)})).await.unwrap();
        let itself = json!({"here": "a", "partner": "a"});
        let alone = json!({"group": "alone", "volumes": ["v0"], "pair": itself});
        let refused = from.ask("replica_prepare", alone).await;
        assert!(matches!(refused, Err(ReplicaError::Itself(_))), "{refused:?}");
        let stranger = json!({"here": "b", "partner": "stranger"});
        let refused = to.ask("replica_begin", json!({"offer": offer, "pair": stranger})).await;
        assert!(matches!(refused, Err(ReplicaError::NotMeant { .. })), "{refused:?}");
        let mut theirs = offer.clone();
        theirs["from"] = "stranger".into();
        let refused = to.ask("replica_begin", json!({"offer": theirs, "pair": stranger})).await;
        assert!(matches!(refused, Err(ReplicaError::OtherPartner { .. })), "{refused:?}");
        let mut other = offer.clone();
        other["id"] = "another one".into();
        let refused = to.ask("replica_begin", json!({"offer": other, "pair": to.pair(&from)})).await;
        assert!(matches!(refused, Err(ReplicaError::OtherGroup(_))), "{refused:?}");
        let verb = to.ask("replica_promote", json!({"group": "g", "partner": "other"})).await;
        assert!(verb.unwrap_err().to_string().contains("may not ask"));
        // A volume of the owner must not be used as a replica.
        to.pool.create_volume("v9", 8192).await.unwrap();
        from.pool.create_volume("v9", 8192).await.unwrap();
        let prepare = json!({"group": "h", "volumes": ["v9"], "pair": from.pair(&to)});
        let other = from.ask("replica_prepare", prepare).await.unwrap();
        let begin = json!({"offer": other, "pair": to.pair(&from), "partner": "other"});
        let taken = to.ask("replica_begin", begin).await;
        assert!(matches!(taken, Err(ReplicaError::NameTaken { .. })), "{taken:?}");
    });
    assert!(end.is_some(), "a deadlock");
}
