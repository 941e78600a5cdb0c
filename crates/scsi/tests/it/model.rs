//! Random commands: compared with a map of blocks, and without a model, to find panics.

use crate::support::{Lab, Session, caw, cdb_10, cdb_16, config};
use linerate_scsi::{Status, UnitConfig};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Small, so that commands overlap; larger than one stripe, so that some do not.
const MODEL_BLOCKS: u64 = 600;
const MODEL_BLOCK: usize = 4096;

/// One byte represents a whole block.
type Model = BTreeMap<u64, u8>;

#[derive(Clone, Debug)]
enum Command {
    Write { lba: u64, bytes: Vec<u8>, verify: bool },
    Read { lba: u64, blocks: u8 },
    WriteSame { lba: u64, blocks: u16, byte: u8, unmap: bool },
    Unmap { ranges: Vec<(u64, u16)> },
    CompareAndWrite { lba: u64, guess: Option<u8>, bytes: Vec<u8> },
    OrWrite { lba: u64, bytes: Vec<u8> },
    Verify { lba: u64, bytes: Vec<u8> },
    Reset,
}

fn any_command() -> impl Strategy<Value = Command> {
    let lba = || 0..MODEL_BLOCKS + 2;
    let bytes = || proptest::collection::vec(0_u8..4, 1..5);
    prop_oneof![
        4 => (lba(), bytes(), any::<bool>())
            .prop_map(|(lba, bytes, verify)| Command::Write { lba, bytes, verify }),
        3 => (lba(), 0_u8..9).prop_map(|(lba, blocks)| Command::Read { lba, blocks }),
        2 => (lba(), 0_u16..400, 0_u8..4, any::<bool>())
            .prop_map(|(lba, blocks, byte, unmap)| Command::WriteSame { lba, blocks, byte, unmap }),
        2 => proptest::collection::vec((lba(), 0_u16..50), 0..4).prop_map(|ranges| Command::Unmap { ranges }),
        3 => (lba(), proptest::option::of(0_u8..4), bytes())
            .prop_map(|(lba, guess, bytes)| Command::CompareAndWrite { lba, guess, bytes }),
        2 => (lba(), bytes()).prop_map(|(lba, bytes)| Command::OrWrite { lba, bytes }),
        1 => (lba(), bytes()).prop_map(|(lba, bytes)| Command::Verify { lba, bytes }),
        1 => Just(Command::Reset),
    ]
}

fn spread(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [*byte; MODEL_BLOCK]).collect()
}

fn current(model: &Model, lba: u64, blocks: u64) -> Vec<u8> {
    (lba..lba + blocks).map(|lba| model.get(&lba).copied().unwrap_or(0)).collect()
}

fn inside(lba: u64, blocks: u64) -> bool {
    lba + blocks <= MODEL_BLOCKS
}

/// Runs an UNMAP on the unit and on the model.
fn unmap(session: &Session, model: &mut Model, ranges: &[(u64, u16)]) -> (Status, bool) {
    let fits = ranges.iter().all(|(lba, blocks)| inside(*lba, u64::from(*blocks)));
    let mut list = vec![0; 8];
    list[2..4].copy_from_slice(&(ranges.len() as u16 * 16).to_be_bytes());
    for (lba, blocks) in ranges {
        list.extend_from_slice(&lba.to_be_bytes());
        list.extend_from_slice(&u32::from(*blocks).to_be_bytes());
        list.extend_from_slice(&[0; 4]);
        if fits {
            model.retain(|at, _| !(*lba..*lba + u64::from(*blocks)).contains(at));
        }
    }
    let [high, low] = (list.len() as u16).to_be_bytes();
    (session.write(&[0x42, 0, 0, 0, 0, 0, 0, high, low, 0], &list).status, fits)
}

/// Runs a command on the unit and on the model; only the model decides whether it must be GOOD.
fn step(session: &Session, model: &mut Model, command: &Command) -> Result<(), TestCaseError> {
    let (status, expected) = match command {
        Command::Write { lba, bytes, verify } => {
            let opcode = if *verify { 0x8E } else { 0x8A };
            let flags = if *verify { 0x02 } else { 0 };
            let cdb = cdb_16(opcode, flags, *lba, bytes.len() as u32);
            let fits = inside(*lba, bytes.len() as u64);
            if fits {
                model.extend((*lba..).zip(bytes.iter().copied()));
            }
            (session.write(&cdb, &spread(bytes)).status, fits)
        }
        Command::Read { lba, blocks } => {
            let len = u32::from(*blocks) * MODEL_BLOCK as u32;
            let outcome = session.read(&cdb_10(0x28, 0, *lba as u32, u16::from(*blocks)), len);
            let fits = inside(*lba, u64::from(*blocks));
            if fits {
                prop_assert_eq!(&outcome.data, &spread(&current(model, *lba, u64::from(*blocks))));
            }
            (outcome.status, fits)
        }
        Command::WriteSame { lba, blocks, byte, unmap } => {
            let cdb = cdb_10(0x41, if *unmap { 8 } else { 0 }, *lba as u32, *blocks);
            let fits = *blocks > 0 && inside(*lba, u64::from(*blocks));
            if fits {
                model.extend((*lba..*lba + u64::from(*blocks)).map(|lba| (lba, *byte)));
            }
            (session.write(&cdb, &spread(&[*byte])).status, fits)
        }
        Command::Unmap { ranges } => unmap(session, model, ranges),
        Command::CompareAndWrite { lba, guess, bytes } => {
            let fits = inside(*lba, bytes.len() as u64);
            let have = current(model, *lba, bytes.len() as u64);
            let want = guess.map_or(have.clone(), |guess| vec![guess; bytes.len()]);
            let writes = fits && want == have;
            if writes {
                model.extend((*lba..).zip(bytes.iter().copied()));
            }
            let out = [spread(&want), spread(bytes)].concat();
            (session.write(&caw(*lba, bytes.len() as u8), &out).status, writes)
        }
        Command::OrWrite { lba, bytes } => {
            let fits = inside(*lba, bytes.len() as u64);
            if fits {
                for (lba, byte) in (*lba..).zip(bytes) {
                    *model.entry(lba).or_insert(0) |= byte;
                }
            }
            (session.write(&cdb_16(0x8B, 0, *lba, bytes.len() as u32), &spread(bytes)).status, fits)
        }
        Command::Verify { lba, bytes } => {
            let same = inside(*lba, bytes.len() as u64) && current(model, *lba, bytes.len() as u64) == *bytes;
            (session.write(&cdb_16(0x8F, 0x02, *lba, bytes.len() as u32), &spread(bytes)).status, same)
        }
        Command::Reset => {
            session.lab.unit(0).reset();
            session.expect_attention(0x2903);
            (Status::Good, true)
        }
    };
    prop_assert_eq!(status == Status::Good, expected, "{:?}", command);
    Ok(())
}

fn model_unit() -> UnitConfig {
    UnitConfig { capacity_blocks: MODEL_BLOCKS, block_bytes: MODEL_BLOCK as u32, ..config(0) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_medium_is_what_the_model_says(commands in proptest::collection::vec(any_command(), 1..60)) {
        let session = Lab::with([model_unit()]).login("a");
        let mut model = Model::new();
        for command in &commands {
            step(&session, &mut model, command)?;
        }
        let volume = session.lab.volumes[&0].borrow();
        let expected = spread(&current(&model, 0, MODEL_BLOCKS));
        prop_assert!(volume.bytes == expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Any CDB with any data and any expectation ends in a reply, and leaves nothing locked.
    #[test]
    fn no_command_falls_over(
        mut cdb: [u8; 16],
        opcode in proptest::sample::select(vec![
            0x00_u8, 0x03, 0x08, 0x0A, 0x12, 0x15, 0x1A, 0x1B, 0x25, 0x28, 0x2A, 0x2E, 0x2F, 0x34,
            0x35, 0x37, 0x41, 0x42, 0x4D, 0x55, 0x5A, 0x5E, 0x5F, 0x83, 0x84, 0x88, 0x89, 0x8A,
            0x8B, 0x8E, 0x8F, 0x90, 0x91, 0x93, 0x9E, 0xA0, 0xA3, 0xA8, 0xAA, 0xAE, 0xAF, 0xB7,
            0xFF,
        ]),
        keep in proptest::collection::vec(any::<bool>(), 15),
        out in proptest::collection::vec(any::<u8>(), 0..3000),
        in_bytes in 0_u32..3000,
    ) {
        cdb[0] = opcode;
        // Mostly zeros: a CDB that is all noise never gets past the first check.
        for (byte, keep) in cdb[1..].iter_mut().zip(keep) {
            *byte = if keep { *byte % 16 } else { 0 };
        }
        let session = Lab::with([config(0)]).login("a");
        let outcome = session.run(&cdb, in_bytes, &out);
        prop_assert!(outcome.data.len() <= in_bytes as usize);
        prop_assert_eq!(outcome.status == Status::CheckCondition, !outcome.sense.is_empty());
        let swap = session.write(&caw(0, 0), &[]).status;
        prop_assert!(matches!(swap, Status::Good | Status::CheckCondition));
    }
}
