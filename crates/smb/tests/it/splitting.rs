//! I/Os that are longer than one request: split, and one I/O for the caller.

use crate::fake::{Fake, Peer};
use crate::peers::Samba;
use linerate_io::{Driver, EpollDriver, Region, Seg};
use linerate_smb::wire::body::{ReadRequest, WriteRequest};
use linerate_smb::wire::body_of;
use linerate_smb::wire::status::Status;
use linerate_smb::{
    SmbAddress, SmbClient, SmbCredentials, SmbDisk, SmbIo, SmbIoDone, SmbIoError, SmbMode, SmbOp, SmbOptions,
    SmbToolError,
};
use std::io;
use std::sync::{Arc, Mutex};

const LEN: u32 = 100_000;

fn options(max_io_bytes: u32) -> SmbOptions {
    SmbOptions { max_io_bytes: Some(max_io_bytes), command_timeout_s: 2.0, ..SmbOptions::default() }
}

/// Answers reads and writes, keeps their lengths, and refuses the one at `wrong_at`.
fn serve(peer: &mut Peer, lens: &Mutex<Vec<u32>>, wrong_at: Option<u64>) -> io::Result<()> {
    peer.log_on()?;
    loop {
        let asked = peer.read()?;
        let (at, len) = match asked.command() {
            8 => body_of(&asked.message)
                .map(|body: &ReadRequest| (body.offset.get(), body.length.get()))
                .unwrap(),
            9 => body_of(&asked.message)
                .map(|body: &WriteRequest| (body.offset.get(), body.length.get()))
                .unwrap(),
            _ => {
                let bytes = peer.answer(&asked)?;
                peer.raw(&bytes)?;
                continue;
            }
        };
        lens.lock().unwrap().push(len);
        if Some(at) == wrong_at {
            peer.refuse(&asked, Status::DISK_FULL)?;
        } else {
            let bytes = peer.answer(&asked)?;
            peer.raw(&bytes)?;
        }
    }
}

fn fake(wrong_at: Option<u64>) -> (Fake, Arc<Mutex<Vec<u32>>>) {
    let lens = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lens);
    (Fake::start(move |peer| serve(peer, &seen, wrong_at)), lens)
}

/// Runs one write and then one read of [`LEN`] bytes, and returns their ends.
fn run(fake: &Fake, options: &SmbOptions) -> Vec<SmbIoDone> {
    let mut driver = EpollDriver::new().unwrap();
    let mut client = SmbClient::new();
    let region = Region::anonymous(u64::from(LEN) * 2).unwrap();
    let id = client.attach(&mut driver, &region);
    let mode = SmbMode { write: true, create_bytes: None };
    let credentials = SmbCredentials::of_user(None, None);
    let file = client.open(&mut driver, &fake.address(), options, credentials, mode).unwrap();
    client.wait_ready(&mut driver).unwrap();
    let data: Vec<u8> = (0..LEN).map(|at| (at / 251) as u8).collect();
    region.write(0, &data);
    let (from, into) = [0, LEN].map(|at| Seg { region: id, offset: at.into(), len: LEN }).into();
    let ops = [SmbOp::Write { from, durable: false }, SmbOp::Read(Some(into))];
    let mut done = Vec::<SmbIoDone>::new();
    for (slot, op) in (0..).zip(ops) {
        client.submit(file, &SmbIo { slot, op, offset_bytes: 4096, len_bytes: LEN }).unwrap();
        while done.len() <= slot as usize {
            client.flush(&mut driver);
            let mut completions = Vec::new();
            let until = driver.now() + 5_000_000_000;
            driver.poll(linerate_io::Wait::Until(until), &mut completions).unwrap();
            assert!(driver.now() < until, "nothing came");
            for completion in completions {
                client.handle_completion(&mut driver, completion, &mut done);
            }
        }
    }
    if done.iter().all(|end| end.result.is_ok()) {
        assert_eq!(region.compare(LEN.into(), &data), None, "what was written is not what was read");
    }
    done
}

#[test]
fn an_io_longer_than_max_io_is_several_requests_and_one_io() {
    let (fake, lens) = fake(None);
    let done = run(&fake, &options(32_768));
    assert_eq!(done, [0, 1].map(|slot| SmbIoDone { slot, result: Ok(()) }));
    assert_eq!(*lens.lock().unwrap(), [32_768, 32_768, 32_768, 1696].repeat(2));
}

#[test]
fn an_io_longer_than_the_server_permits_is_split_too() {
    let lens = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lens);
    let fake = Fake::start(move |peer| {
        peer.max_bytes = 65_536;
        serve(peer, &seen, None)
    });
    let done = run(&fake, &SmbOptions::default());
    assert!(done.iter().all(|end| end.result.is_ok()), "{done:?}");
    assert_eq!(*lens.lock().unwrap(), [65_536, 34_464].repeat(2));
    let disk = fake.open(&options(1 << 20)).unwrap();
    let facts = disk.facts();
    assert_eq!((facts.max_io_bytes, facts.max_read_bytes, facts.max_write_bytes), (65_536, 65_536, 65_536));
}

#[test]
fn an_io_fails_if_one_of_its_parts_fails() {
    let (fake, _) = fake(Some(4096 + 32_768));
    let done = run(&fake, &options(32_768));
    let failed = Err(SmbIoError::Refused(Status::DISK_FULL));
    assert_eq!(done, [0, 1].map(|slot| SmbIoDone { slot, result: failed }));
}

#[test]
fn samba_stores_what_was_split() {
    let Some(samba) = Samba::start("") else { return };
    let address = SmbAddress::parse(&samba.url("share", "a.img")).unwrap();
    let sent: Vec<u8> = (0..3_000_001_u32).map(|at| (at / 7) as u8 ^ (at >> 9) as u8).collect();
    for options in [
        options(4096),
        options(999),
        SmbOptions { signing: linerate_smb::SigningChoice::On, ..options(65_536) },
    ] {
        let credentials = SmbCredentials::of_user(Some(Samba::USER), Some(Samba::PASSWORD));
        let mode = SmbMode { write: true, create_bytes: Some(4 << 20) };
        let mut disk =
            SmbDisk::open(EpollDriver::new().unwrap(), &address, &options, credentials, mode).unwrap();
        assert_eq!(disk.facts().max_io_bytes, options.max_io_bytes.unwrap());
        assert_eq!(disk.facts().max_read_bytes, 8 << 20);
        disk.write(511, &sent).unwrap();
        assert!(std::fs::read(samba.path("a.img")).unwrap()[511..511 + sent.len()] == sent);
        let mut back = vec![0; sent.len()];
        disk.read(511, &mut back).unwrap();
        assert!(back == sent, "{options:?}");
        let error = disk.read((4 << 20) - 70_000, &mut vec![0; 140_000]).unwrap_err();
        assert!(matches!(error, SmbToolError::Io(SmbIoError::Short { .. })), "{error}");
        disk.close().unwrap();
        std::fs::write(samba.path("a.img"), []).unwrap();
    }
}
