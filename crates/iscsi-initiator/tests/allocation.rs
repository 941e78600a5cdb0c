//! After the start, an I/O allocates nothing: counted on the thread of the initiator.

#![allow(clippy::unwrap_used, reason = "a test's unwrap is an assertion")]

mod fake;

use fake::Fake;
use linerate_io::{Completion, Driver, EpollDriver, Region, Seg, Wait};
use linerate_iscsi_initiator::{
    DeviceId, Initiator, IoDone, IoOp, IoRequest, LunAddress, MultipathOptions, PathSpec, Policy,
    PortalAddress, ReadInto, SessionOptions, Sharing,
};

const DEPTH: u32 = 16;
const LEN: u32 = 4096;

/// A closed loop of reads of every kind and writes.
struct Loop {
    driver: EpollDriver,
    initiator: Initiator,
    device: DeviceId,
    region: linerate_io::RegionId,
    done: Vec<IoDone>,
    completions: Vec<Completion<<EpollDriver as Driver>::Socket>>,
}

impl Loop {
    fn submit(&mut self, slot: u32, round: u32) {
        let seg = Seg { region: self.region, offset: u64::from(slot * LEN), len: LEN };
        let op = match round % 4 {
            0 => IoOp::Read(ReadInto::Nothing),
            1 => IoOp::Read(ReadInto::Shown),
            2 => IoOp::Read(ReadInto::Segment(seg)),
            _ => IoOp::Write(seg),
        };
        let request = IoRequest { slot, op, offset_bytes: u64::from(slot * LEN), len_bytes: LEN };
        self.initiator.submit(self.device, &request).unwrap();
    }

    fn run(&mut self, ios: u32) {
        let mut started = DEPTH.min(ios);
        let mut ended = 0;
        (0..started).for_each(|slot| self.submit(slot, slot));
        while ended < ios {
            self.initiator.flush(&mut self.driver);
            let until = self.driver.now() + 10_000_000;
            self.driver.poll(Wait::Until(until), &mut self.completions).unwrap();
            while let Some(completion) = self.completions.pop() {
                self.initiator.handle_completion(&mut self.driver, completion, &mut self.done);
            }
            while let Some(done) = self.done.pop() {
                assert_eq!(done.result, Ok(()));
                ended += 1;
                if started < ios {
                    self.submit(done.slot, started);
                    started += 1;
                }
            }
        }
    }
}

fn fake() -> Fake {
    Fake::start(|peer, _| {
        peer.login()?;
        peer.serve()
    })
}

/// Counts over a device that `open` opens.
fn no_allocation_once_warm(open: impl FnOnce(&mut Initiator, &mut EpollDriver) -> DeviceId) {
    let mut driver = EpollDriver::new().unwrap();
    let mut initiator = Initiator::new();
    let region = Region::anonymous(u64::from(DEPTH * LEN)).unwrap();
    let region = initiator.attach(&mut driver, &region);
    let device = open(&mut initiator, &mut driver);
    initiator.wait_ready(&mut driver, &mut Vec::<IoDone>::new()).unwrap();
    let (done, completions) = (Vec::with_capacity(64), Vec::with_capacity(64));
    let mut cycle = Loop { driver, initiator, device, region, done, completions };
    // Queues grow to the largest batch so far, which a busy machine may produce later than an idle one.
    let counts: Vec<u64> = (0..5)
        .map(|_| allocation_counter::measure(|| cycle.run(2000)).count_total)
        .take_while(|&count| count > 0)
        .collect();
    assert!(counts.len() < 5, "allocations per 2000 I/Os: {counts:?}");
}

#[test]
fn no_allocation_per_io_over_one_session() {
    let fake = fake();
    let (address, credentials) = LunAddress::parse(&fake.url()).unwrap();
    let options = SessionOptions::default();
    no_allocation_once_warm(|initiator, driver| {
        initiator.open(driver, &address, &options, &credentials, Sharing::Own).unwrap()
    });
}

#[test]
fn no_allocation_per_io_over_several_paths() {
    let policies = [Policy::RoundRobin, Policy::LeastQueueDepth, Policy::LeastBlocks, Policy::ServiceTime];
    for policy in policies {
        let fakes = [fake(), fake()];
        let (address, credentials) = LunAddress::parse(&fakes[0].url()).unwrap();
        let spec = |fake: &Fake| PathSpec {
            portal: Some(PortalAddress::from(fake.addr)),
            ..PathSpec::named(fake.addr.to_string())
        };
        let paths = [spec(&fakes[0]), spec(&fakes[1])];
        let (options, multipath) =
            (SessionOptions::default(), MultipathOptions { policy, ..MultipathOptions::default() });
        no_allocation_once_warm(|initiator, driver| {
            initiator.open_paths(driver, &address, &paths, &multipath, &options, &credentials).unwrap()
        });
    }
}
