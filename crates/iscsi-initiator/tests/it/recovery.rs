//! Loss and recovery: I/O in flight is sent again once, in order, under the same ISID; timeouts end hanging I/O.

use crate::fake::{Fake, READ, WRITE, is, options, scsi};
use linerate_io::{Driver, EpollDriver, Nanos, Region, RegionId, Seg, Wait};
use linerate_iscsi_initiator::{
    Blame, Credentials, DeviceId, Disk, Event, EventKind, Initiator, IoDone, IoError, IoOp, IoRequest,
    IoSink, LunAddress, ReadInto, SessionOptions, Sharing, ToolError,
};
use linerate_iscsi_proto::pdu::*;
use std::io;
use std::sync::{Arc, Mutex, mpsc};

/// An initiator with one device, driven step by step.
struct Rig {
    driver: EpollDriver,
    initiator: Initiator,
    device: DeviceId,
    region: Arc<Region>,
    region_id: RegionId,
    heard: Heard,
}

#[derive(Default)]
struct Heard {
    done: Vec<IoDone>,
    events: Vec<EventKind>,
}

impl IoSink for Heard {
    fn done(&mut self, done: IoDone) {
        self.done.push(done);
    }

    fn event(&mut self, event: Event) {
        self.events.push(event.kind);
    }
}

impl Rig {
    fn open(fake: &Fake, options: &SessionOptions) -> Self {
        let mut driver = EpollDriver::new().unwrap();
        let mut initiator = Initiator::new();
        let region = Region::anonymous(1 << 20).unwrap();
        let region_id = initiator.attach(&mut driver, &region);
        let (address, credentials) = LunAddress::parse(&fake.url()).unwrap();
        let device = initiator.open(&mut driver, &address, options, &credentials, Sharing::Own).unwrap();
        let mut heard = Heard::default();
        initiator.wait_ready(&mut driver, &mut heard).unwrap();
        assert_eq!(heard.events, [EventKind::DeviceReady]);
        heard.events.clear();
        Self { driver, initiator, device, region, region_id, heard }
    }

    /// Writes one block whose bytes are all `value`.
    fn write(&mut self, slot: u32, block: u64, value: u8) {
        let offset = u64::from(slot) * 512;
        self.region.fill(offset, 512, &[value]);
        let op = IoOp::Write(Seg { region: self.region_id, offset, len: 512 });
        let request = IoRequest { slot, op, offset_bytes: block * 512, len_bytes: 512 };
        self.initiator.submit(self.device, &request).unwrap();
    }

    fn read(&mut self, slot: u32, block: u64) {
        let op = IoOp::Read(ReadInto::Nothing);
        let request = IoRequest { slot, op, offset_bytes: block * 512, len_bytes: 512 };
        self.initiator.submit(self.device, &request).unwrap();
    }

    /// Runs for so long.
    fn rest(&mut self, ns: Nanos) {
        let until = self.driver.now() + ns;
        let mut completions = Vec::new();
        while self.driver.now() < until {
            self.initiator.flush(&mut self.driver);
            self.driver.poll(Wait::Until(until), &mut completions).unwrap();
            for completion in completions.drain(..) {
                self.initiator.handle_completion(&mut self.driver, completion, &mut self.heard);
            }
        }
    }

    /// Runs until `count` I/Os have ended, at most ten seconds.
    fn run(&mut self, count: usize) {
        let limit = self.driver.now() + 10_000_000_000;
        let mut completions = Vec::new();
        while self.heard.done.len() < count {
            assert!(self.driver.now() < limit, "I/Os end: {:?}", self.heard.done);
            self.initiator.flush(&mut self.driver);
            let deadline: Nanos = self.initiator.next_deadline().unwrap_or(limit).min(limit);
            self.driver.poll(Wait::Until(deadline), &mut completions).unwrap();
            for completion in completions.drain(..) {
                let stranger =
                    self.initiator.handle_completion(&mut self.driver, completion, &mut self.heard);
                assert!(stranger.is_none());
            }
            let now = self.driver.now();
            self.initiator.on_time(&mut self.driver, now, &mut self.heard);
        }
    }
}

#[test]
fn commands_in_flight_are_sent_again_in_order_under_the_same_isid() {
    let (tell, told) = mpsc::channel();
    let fake = Fake::start(move |peer, n| {
        peer.login()?;
        tell.send((n, peer.logins.last().map(|login| (login.isid, login.tsih)), Vec::new())).ok();
        if n == 0 {
            // Receives all eight writes, runs every second one and answers none.
            for number in 0..8 {
                let (request, data) = peer.serve_until(is(WRITE))?;
                if number % 2 == 0 {
                    let (block, _) = crate::fake::range(&scsi(&request).cdb);
                    peer.disk.lock().unwrap()[block * 512..][..512].copy_from_slice(&data);
                }
            }
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut order = Vec::new();
        for _ in 0..8 {
            let (request, data) = peer.serve_until(is(WRITE))?;
            order.push(data[0]);
            peer.command(&scsi(&request), &data)?;
        }
        tell.send((n, None, order)).ok();
        peer.serve()
    });
    let mut rig = Rig::open(&fake, &options());
    for slot in 0..8 {
        rig.write(slot, u64::from(slot), slot as u8 + 1);
    }
    rig.run(8);
    assert!(rig.heard.done.iter().all(|done| done.result == Ok(())));
    let restored = EventKind::SessionRestored { retried_commands: 8 };
    assert!(matches!(&rig.heard.events[..], [EventKind::SessionLost(_), last] if *last == restored));
    let (first, second, order) = (told.recv().unwrap(), told.recv().unwrap(), told.recv().unwrap());
    assert_eq!(first.1, second.1, "same ISID, TSIH 0: the target ends the old session");
    assert_eq!(second.1.unwrap().1, 0);
    assert_eq!(order.2, [1, 2, 3, 4, 5, 6, 7, 8]);
    for block in 0..8 {
        assert_eq!(fake.disk.lock().unwrap()[block * 512], block as u8 + 1);
    }
}

#[test]
fn a_newer_write_never_overtakes_an_older_one_that_is_sent_again() {
    // BUSY for the older write; the newer write to the same block must not be sent before the older one is done.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let fake = Fake::start(move |peer, _| {
        peer.login()?;
        let (request, _) = peer.serve_until(is(WRITE))?;
        peer.ended(scsi(&request).itt, 0x08, &[])?;
        loop {
            let (request, data) = peer.serve_until(is(WRITE))?;
            log.lock().unwrap().push(data[0]);
            peer.command(&scsi(&request), &data)?;
        }
    });
    let mut rig = Rig::open(&fake, &options());
    rig.write(0, 5, 1);
    // Wait until BUSY has arrived, then send the newer write while the older one pauses.
    rig.rest(1_000_000);
    rig.write(1, 5, 2);
    rig.write(2, 900, 3);
    rig.run(3);
    let order: Vec<u8> = seen.lock().unwrap().clone();
    let (old, new) =
        (order.iter().position(|v| *v == 1).unwrap(), order.iter().position(|v| *v == 2).unwrap());
    assert!(old < new, "{order:?}");
    assert_eq!(fake.disk.lock().unwrap()[5 * 512], 2);
}

#[test]
fn busy_task_set_full_and_unit_attentions_are_tried_again() {
    let fake = Fake::start(|peer, _| {
        peer.login()?;
        for status in [0x08, 0x28] {
            let (request, _) = peer.serve_until(is(READ))?;
            peer.ended(scsi(&request).itt, status, &[])?;
        }
        for _ in 0..3 {
            let (request, _) = peer.serve_until(is(READ))?;
            peer.check(scsi(&request).itt, &[0, 4, 0x72, 6, 0x29, 0])?;
        }
        peer.serve()
    });
    let mut rig = Rig::open(&fake, &options());
    rig.read(0, 0);
    rig.run(1);
    assert_eq!(rig.heard.done[0].result, Ok(()));
}

#[test]
fn a_command_that_hangs_is_aborted_and_its_late_answer_is_a_strangers() {
    let fake = Fake::start(|peer, _| {
        peer.login()?;
        let (hung, _) = peer.serve_until(is(READ))?;
        let (abort, _) = peer.serve_until(|request| matches!(request, Request::TaskManagement(_)))?;
        let Request::TaskManagement(abort) = abort else { return Ok(()) };
        assert_eq!(abort.function, TaskFunction::AbortTask);
        assert_eq!(abort.referenced_itt, scsi(&hung).itt);
        let sn = peer.status();
        let reply = TaskManagementResponse { result: TaskResult::Complete, itt: abort.itt, sn };
        peer.send(&Response::TaskManagement(reply), &[])?;
        peer.serve()
    });
    let mut rig = Rig::open(&fake, &SessionOptions { command_timeout_s: 0.2, ..options() });
    rig.read(0, 0);
    rig.run(1);
    assert_eq!(rig.heard.done[0].result, Err(IoError::Timeout));
    rig.read(1, 0);
    rig.run(2);
    assert_eq!(rig.heard.done[1].result, Ok(()));
}

#[test]
fn a_target_that_falls_silent_is_found_by_ping() {
    let fake = Fake::start(|peer, n| {
        peer.login()?;
        if n == 0 {
            peer.serve_until(is(READ))?;
            // Continues to read, and sends nothing more.
            while peer.read().is_ok() {}
        }
        peer.serve()
    });
    let quick = SessionOptions { ping_interval_s: 0.1, ping_timeout_s: 0.2, ..options() };
    let mut rig = Rig::open(&fake, &quick);
    rig.read(0, 0);
    rig.run(1);
    assert_eq!(rig.heard.done[0].result, Ok(()));
    assert!(
        matches!(&rig.heard.events[0], EventKind::SessionLost(why) if why.contains("ping")),
        "{:?}",
        rig.heard.events
    );
}

#[test]
fn a_session_that_does_not_come_back_fails_what_waits() {
    let fake = Fake::start(|peer, n| {
        if n > 0 {
            return Ok(());
        }
        peer.login()?;
        peer.serve_until(is(READ)).map(|_| ())
    });
    let mut rig = Rig::open(&fake, &SessionOptions { replacement_timeout_s: 0.5, ..options() });
    rig.read(0, 0);
    rig.run(1);
    assert_eq!(rig.heard.done[0].result, Err(IoError::SessionLost));
    let request = IoRequest { slot: 1, op: IoOp::Sync, offset_bytes: 0, len_bytes: 0 };
    assert!(rig.initiator.submit(rig.device, &request).is_err());
}

#[test]
fn a_logout_that_the_target_asks_for_drains_and_comes_back() {
    let fake = Fake::start(|peer, n| {
        peer.login()?;
        if n > 0 {
            return peer.serve();
        }
        let (request, _) = peer.serve_until(is(READ))?;
        let sn = peer.status();
        let (event, lun) = (AsyncEvent::LogoutRequest, Lun(0));
        let (parameter1, parameter2, parameter3) = (0, 0, 2);
        let ask =
            AsyncMessage { event, vendor_code: 0, lun, sn, parameter1, parameter2, parameter3, data_len: 0 };
        peer.send(&Response::Async(ask), &[])?;
        // I/O in flight still ends before the logout.
        peer.command(&scsi(&request), &[])?;
        let (logout, _) = peer.serve_until(|request| !matches!(request, Request::NopOut(_)))?;
        assert!(matches!(logout, Request::Logout(_)), "{logout:?}");
        peer.answer(&logout, &[])
    });
    let mut rig = Rig::open(&fake, &options());
    rig.read(0, 0);
    rig.run(1);
    rig.read(1, 0);
    rig.run(2);
    assert!(rig.heard.done.iter().all(|done| done.result == Ok(())));
    assert!(matches!(rig.heard.events[0], EventKind::AsyncMessage(_)), "{:?}", rig.heard.events);
}

#[test]
fn closing_while_read_data_arrives_ends_the_read_once() {
    let fake = Fake::start(|peer, _| {
        peer.login()?;
        let (request, _) = peer.serve_until(is(READ))?;
        let mut bhs = [0; BHS_BYTES];
        let pdu = peer.last_data(scsi(&request).itt, 0, 0, 512, Residual::None);
        Response::DataIn(pdu).emit(&mut bhs);
        peer.raw(&bhs)?;
        peer.raw(&[7; 100])?;
        loop {
            let (request, _) = peer.read()?;
            if matches!(request, Request::Logout(_)) {
                peer.raw(&[7; 412])?;
                return peer.answer(&request, &[]);
            }
        }
    });
    let mut rig = Rig::open(&fake, &options());
    rig.read(0, 0);
    rig.read(1, 1);
    rig.rest(100_000_000);
    rig.initiator.close(&mut rig.driver, 3_000_000_000, &mut rig.heard).unwrap();
    let ends: Vec<_> = rig.heard.done.iter().map(|done| (done.slot, done.result)).collect();
    assert_eq!(ends, [(0, Err(IoError::Closed)), (1, Err(IoError::Closed))]);
}

#[test]
fn a_closed_window_holds_commands_back_until_it_opens() {
    let fake = Fake::start(|peer, _| {
        peer.login()?;
        peer.window = 1;
        peer.serve()
    });
    let mut rig = Rig::open(&fake, &options());
    for slot in 0..20 {
        rig.write(slot, u64::from(slot), 9);
    }
    rig.run(20);
    assert!(rig.heard.done.iter().all(|done| done.result == Ok(())));
    assert_eq!(fake.disk.lock().unwrap()[..20 * 512], [9; 20 * 512]);
}

#[test]
fn an_expired_login_during_recovery_is_tried_again() {
    let fake = Fake::start(|peer, n| match n {
        0 => {
            peer.login()?;
            peer.serve_until(is(READ)).map(|_| ())
        }
        1 => peer.read().map(|_| ()),
        2 => {
            let (Request::Login(login), _) = peer.read()? else { return Ok(()) };
            peer.login_reply(&login, LoginStatus::UNAVAILABLE, "")
        }
        _ => {
            peer.login()?;
            peer.serve()
        }
    });
    let (address, _) = LunAddress::parse(&fake.url()).unwrap();
    let driver = EpollDriver::new().unwrap();
    let mut disk = Disk::open(driver, &address, &options(), &Credentials::default()).unwrap();
    let result: Result<(), ToolError> = disk.read(0, &mut [0; 512]);
    result.unwrap();
    assert_eq!(disk.session_facts().unwrap().logins, 2);
}

/// Loses the session with a write in flight; after the recovery the LUN has these blocks and this product. Returns the
/// end of the write, the later events, and whether the write reached the disk.
fn comes_back_as(blocks: u64, product: [u8; 16]) -> (Result<(), IoError>, Vec<EventKind>, bool) {
    let fake = Fake::start(move |peer, n| {
        peer.login()?;
        if n == 0 {
            return peer.serve_until(is(WRITE)).map(|_| ());
        }
        (peer.blocks, peer.product) = (blocks, product);
        peer.serve()
    });
    let mut rig = Rig::open(&fake, &options());
    rig.write(0, 3, 7);
    rig.run(1);
    let again = IoRequest { slot: 1, op: IoOp::Sync, offset_bytes: 0, len_bytes: 0 };
    assert_eq!(rig.initiator.submit(rig.device, &again).is_ok(), rig.heard.done[0].result.is_ok());
    let events = rig.heard.events.split_off(2);
    let written = fake.disk.lock().unwrap()[3 * 512] == 7;
    (rig.heard.done[0].result, events, written)
}

#[test]
fn another_or_a_smaller_lun_after_a_new_login_gets_no_io() {
    for (blocks, product) in
        [(crate::fake::BLOCKS - 1, [b' '; 16]), (crate::fake::BLOCKS, *b"ANOTHER PRODUCT ")]
    {
        let (result, events, written) = comes_back_as(blocks, product);
        assert_eq!((result, written), (Err(IoError::DeviceChanged), false));
        let [EventKind::DeviceFailed(failure)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(failure.blame, Blame::Peer);
        assert!(failure.message.contains("after a new login"), "{failure}");
    }
}

#[test]
fn the_same_lun_may_have_grown() {
    let (result, events, written) = comes_back_as(2 * crate::fake::BLOCKS, [b' '; 16]);
    assert_eq!((result, events, written), (Ok(()), vec![], true));
}
