//! A server that answers late, in another order and in pieces: what was written is what is read, over many seeds.

use crate::fake::{FILE_BYTES, Fake, Peer};
use linerate_io::{Driver, EpollDriver, Region, Seg, Wait};
use linerate_smb::{SmbClient, SmbCredentials, SmbIo, SmbIoDone, SmbMode, SmbOp, SmbOptions};
use std::io;

const SEEDS: u64 = 300;
const SLOTS: u32 = 16;
const SLOT_BYTES: u32 = 128 * 1024;
const IOS: u32 = 300;

/// Splitmix64, so that a failure can be repeated by its seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % most
    }
}

/// Collects requests that are there, answers them in random order, some with PENDING first, in random pieces.
fn serve_shuffled(peer: &mut Peer, dice: &mut Dice) -> io::Result<()> {
    loop {
        let mut waiting = vec![peer.read()?];
        while peer.has_more() && waiting.len() < 8 {
            waiting.push(peer.read()?);
        }
        let mut bytes = Vec::new();
        while !waiting.is_empty() {
            let asked = waiting.swap_remove(dice.below(waiting.len() as u64) as usize);
            if asked.command() != 12 && dice.below(4) == 0 {
                peer.raw(&bytes)?;
                bytes.clear();
                peer.pend(&asked, dice.below(1 << 40))?;
                // A late answer grants nothing: its credits came with the first one.
                let credits = std::mem::take(&mut peer.credits);
                bytes.extend(peer.answer(&asked)?);
                peer.credits = credits;
            } else {
                bytes.extend(peer.answer(&asked)?);
            }
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((1 + dice.below(20_000) as usize).min(rest.len()));
            peer.raw(piece)?;
            rest = after;
            if dice.below(16) == 0 {
                std::thread::yield_now();
            }
        }
    }
}

/// Random reads and writes, none of which overlaps a write in flight.
fn run(seed: u64) {
    let fake = Fake::start(move |peer| {
        peer.credits = 6;
        peer.log_on()?;
        serve_shuffled(peer, &mut Dice(seed))
    });
    let mut driver = EpollDriver::new().unwrap();
    let mut client = SmbClient::new();
    let region = Region::anonymous(u64::from(SLOTS * SLOT_BYTES)).unwrap();
    let region_id = client.attach(&mut driver, &region);
    let mode = SmbMode { write: true, create_bytes: None };
    let credentials = SmbCredentials::of_user(None, None);
    let file = client.open(&mut driver, &fake.address(), &SmbOptions::default(), credentials, mode).unwrap();
    client.wait_ready(&mut driver).unwrap();
    let mut dice = Dice(seed ^ 0xABCD);
    let mut expected = vec![0u8; FILE_BYTES];
    let mut busy: Vec<Option<(usize, usize, bool)>> = vec![None; SLOTS as usize];
    let (mut started, mut ended, mut last_at) = (0, 0, driver.now());
    let (mut done, mut completions) = (Vec::<SmbIoDone>::new(), Vec::new());
    while ended < IOS {
        for slot in 0..SLOTS {
            if busy[slot as usize].is_some() || started == IOS {
                continue;
            }
            let len = 1 + dice.below(u64::from(SLOT_BYTES)) as usize;
            let at = dice.below((FILE_BYTES - len) as u64) as usize;
            let overlaps = |other: &(usize, usize, bool)| at < other.0 + other.1 && other.0 < at + len;
            if busy.iter().flatten().any(overlaps) {
                continue;
            }
            let write = dice.below(2) == 0;
            let seg = Seg { region: region_id, offset: u64::from(slot * SLOT_BYTES), len: len as u32 };
            if write {
                let data: Vec<u8> = (0..len).map(|at| (at as u64 ^ dice.0) as u8).collect();
                region.write(seg.offset, &data);
                expected[at..at + len].copy_from_slice(&data);
            } else {
                region.fill(seg.offset, len as u64, &[0xCC]);
            }
            let op = if write { SmbOp::Write { from: seg, durable: false } } else { SmbOp::Read(Some(seg)) };
            let io = SmbIo { slot, op, offset_bytes: at as u64, len_bytes: len as u32 };
            client.submit(file, &io).unwrap();
            busy[slot as usize] = Some((at, len, write));
            started += 1;
        }
        client.flush(&mut driver);
        driver.poll(Wait::Until(driver.now() + 5_000_000_000), &mut completions).unwrap();
        // A wait may end early.
        last_at = if completions.is_empty() { last_at } else { driver.now() };
        assert!(driver.now() < last_at + 5_000_000_000, "seed {seed}: nothing came for 5 s");
        for completion in completions.drain(..) {
            client.handle_completion(&mut driver, completion, &mut done);
        }
        let now = driver.now();
        client.on_time(&mut driver, now, &mut done);
        for end in done.drain(..) {
            assert_eq!(end.result, Ok(()), "seed {seed}");
            let (at, len, write) = busy[end.slot as usize].take().unwrap();
            if !write {
                let place = u64::from(end.slot * SLOT_BYTES);
                let wrong = region.compare(place, &expected[at..at + len]);
                assert_eq!(wrong, None, "seed {seed}: read of {len} at {at}");
            }
            ended += 1;
        }
    }
    assert!(*fake.disk.lock().unwrap() == expected, "seed {seed}");
}

#[test]
fn what_was_written_is_read_from_answers_in_any_order_and_in_pieces() {
    (0..SEEDS).for_each(run);
}
