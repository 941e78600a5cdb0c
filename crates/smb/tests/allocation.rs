//! After the start, an I/O allocates nothing: counted on the thread of the client.

#![allow(clippy::unwrap_used, reason = "a test's unwrap is an assertion")]

mod fake;
mod peers;

use fake::Fake;
use linerate_io::{Completion, Driver, EpollDriver, Region, RegionId, Seg, Wait};
use linerate_smb::{
    EncryptionChoice, SigningChoice, SmbAddress, SmbClient, SmbCredentials, SmbFileId, SmbIo, SmbIoDone,
    SmbMode, SmbOp, SmbOptions,
};
use peers::Samba;

const DEPTH: u32 = 16;
const LEN: u32 = 4096;

/// A closed loop of reads of both kinds and writes.
struct Loop {
    driver: EpollDriver,
    client: SmbClient,
    file: SmbFileId,
    region: RegionId,
    done: Vec<SmbIoDone>,
    completions: Vec<Completion<<EpollDriver as Driver>::Socket>>,
}

impl Loop {
    fn start(address: &SmbAddress, options: &SmbOptions, credentials: SmbCredentials) -> Self {
        let mut driver = EpollDriver::new().unwrap();
        let mut client = SmbClient::new();
        let region = Region::anonymous(u64::from(DEPTH * LEN)).unwrap();
        let region = client.attach(&mut driver, &region);
        let mode = SmbMode { write: true, create_bytes: None };
        let file = client.open(&mut driver, address, options, credentials, mode).unwrap();
        client.wait_ready(&mut driver).unwrap();
        let (done, completions) = (Vec::with_capacity(64), Vec::with_capacity(64));
        Self { driver, client, file, region, done, completions }
    }

    fn submit(&mut self, slot: u32, round: u32) {
        let seg = Seg { region: self.region, offset: u64::from(slot * LEN), len: LEN };
        let op = match round % 3 {
            0 => SmbOp::Read(None),
            1 => SmbOp::Read(Some(seg)),
            _ => SmbOp::Write { from: seg, durable: false },
        };
        let io = SmbIo { slot, op, offset_bytes: u64::from(slot * LEN), len_bytes: LEN };
        self.client.submit(self.file, &io).unwrap();
    }

    fn run(&mut self, ios: u32) {
        let mut started = DEPTH.min(ios);
        let mut ended = 0;
        (0..started).for_each(|slot| self.submit(slot, slot));
        while ended < ios {
            self.client.flush(&mut self.driver);
            let until = self.driver.now() + 10_000_000;
            self.driver.poll(Wait::Until(until), &mut self.completions).unwrap();
            while let Some(completion) = self.completions.pop() {
                self.client.handle_completion(&mut self.driver, completion, &mut self.done);
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

    fn allocates_nothing_once_warm(mut self) {
        // Queues grow to the largest batch so far, which a busy machine may produce later than an idle one.
        let counts: Vec<u64> = (0..5)
            .map(|_| allocation_counter::measure(|| self.run(2000)).count_total)
            .take_while(|&count| count > 0)
            .collect();
        assert!(counts.len() < 5, "allocations per 2000 I/Os: {counts:?}");
    }
}

#[test]
fn no_allocation_per_io() {
    let fake = Fake::good();
    let credentials = SmbCredentials::of_user(None, None);
    Loop::start(&fake.address(), &SmbOptions::default(), credentials).allocates_nothing_once_warm();
}

#[test]
fn no_allocation_per_io_that_is_signed_or_encrypted() {
    let Some(samba) = Samba::start("") else { return };
    std::fs::write(samba.path("a.img"), vec![0; (DEPTH * LEN) as usize]).unwrap();
    let address = SmbAddress::parse(&samba.url("share", "a.img")).unwrap();
    let signed = SmbOptions { signing: SigningChoice::On, ..SmbOptions::default() };
    let sealed = SmbOptions { encryption: EncryptionChoice::On, ..SmbOptions::default() };
    for options in [signed, sealed] {
        let credentials = SmbCredentials::of_user(Some(Samba::USER), Some(Samba::PASSWORD));
        Loop::start(&address, &options, credentials).allocates_nothing_once_warm();
    }
}
