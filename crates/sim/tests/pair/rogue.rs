//! A rogue initiator beside the verified one: a session of several connections on a target of its own. It announces
//! data and does not send it, aborts from another connection, resets, closes in the middle, and logs in again without a
//! logout.
//!
//! Data that it sends for a task after the answer that the task has ended is poison. No volume may hold poison, neither
//! its own nor another one. Data that it writes after such an answer, or after a login that ended everything, must
//! stay: no older data may overwrite it.

use crate::choices::{BLOCK, BLOCKS, ROGUE};
use linerate_io::{Buffer, Completion, Driver, Handle, Nanos, Outgoing, SocketOptions, Wait};
use linerate_sim::{Rng, SimDriver};
use std::collections::{BTreeMap, VecDeque};

const BHS: usize = 48;
const NO_TAG: u32 = u32::MAX;
const CONNECTIONS: u16 = 3;
const TASKS_MAX: usize = 8;
/// How long it pauses when nothing happens: one of these.
const IDLE_NS: [Nanos; 3] = [10_000, 200_000, 2_000_000];

/// Every word of data that must not reach a volume.
pub(crate) const POISON: u64 = 0xDEAD_BEEF_0BAD_F00D;

/// A write that has begun.
#[derive(Clone, Copy, Debug)]
struct Task {
    first: usize,
    blocks: usize,
    /// Every word of its data.
    fill: u64,
    /// The array has answered that it has ended.
    over: bool,
}

/// The contents of a block of its volume.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Writes to it in progress.
    writers: u32,
    /// Two writes were in progress at once, so it is unknown which one was last.
    mixed: bool,
    fill: Option<u64>,
}

/// The task of a task management request in progress; None: all tasks.
type Victim = Option<u32>;

#[derive(Default)]
struct Connection {
    stream: Option<Handle>,
    connected: bool,
    logged_in: bool,
    sending: bool,
    outbox: VecDeque<u8>,
    inbox: Vec<u8>,
    /// Payload that was announced and not sent: its task and bytes.
    owed: Option<(u32, u32)>,
    exp_stat_sn: u32,
}

/// See the file's text.
pub(crate) struct Rogue {
    driver: SimDriver,
    rng: Rng,
    connections: Vec<Connection>,
    tsih: u16,
    cmd_sn: u32,
    /// The last number inside the window.
    max_cmd_sn: u32,
    next_itt: u32,
    tasks: BTreeMap<u32, Task>,
    /// Numbered commands that are not sent yet, so that later ones on other connections arrive early.
    late: Vec<(u16, [u8; BHS])>,
    /// R2Ts that wait to be answered.
    granted: Vec<(u16, [u8; BHS])>,
    managing: BTreeMap<u32, Victim>,
    blocks: [Block; BLOCKS as usize],
    idle_ns: Nanos,
    stopped: bool,
    pub(crate) answered: u64,
    pub(crate) poisoned: u64,
}

fn word(bhs: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bhs[at..at + 4].try_into().unwrap())
}

impl Rogue {
    pub(crate) fn new(driver: SimDriver, mut rng: Rng) -> Self {
        let idle_ns = IDLE_NS[rng.range(0, IDLE_NS.len() as u64 - 1) as usize];
        Self {
            driver,
            rng,
            connections: (0..CONNECTIONS).map(|_| Connection::default()).collect(),
            tsih: 0,
            cmd_sn: 1,
            max_cmd_sn: 1,
            next_itt: 1,
            tasks: BTreeMap::new(),
            late: Vec::new(),
            granted: Vec::new(),
            managing: BTreeMap::new(),
            blocks: [Block::default(); BLOCKS as usize],
            idle_ns,
            stopped: false,
            answered: 0,
            poisoned: 0,
        }
    }

    /// Ends all of it.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        for task in self.tasks.values().filter(|task| !task.over) {
            self.blocks[task.first..task.first + task.blocks].fill(Block::default());
        }
        self.tasks.clear();
        (0..CONNECTIONS).for_each(|cid| self.close(cid));
    }

    pub(crate) fn turn(&mut self) {
        let mut completions = Vec::new();
        let wait = if self.stopped { Wait::Forever } else { Wait::Until(self.driver.now() + self.idle_ns) };
        self.driver.poll(wait, &mut completions).unwrap();
        for completion in completions {
            self.complete(completion);
        }
        if !self.stopped {
            for _ in 0..self.rng.range(0, 3) {
                self.act();
            }
        }
        (0..CONNECTIONS).for_each(|cid| self.flush(cid));
    }

    fn at(&mut self, cid: u16) -> &mut Connection {
        &mut self.connections[usize::from(cid)]
    }

    fn cid_of(&self, stream: Handle) -> Option<u16> {
        (0..CONNECTIONS).find(|cid| self.connections[usize::from(*cid)].stream == Some(stream))
    }

    fn complete(&mut self, completion: Completion<linerate_sim::SimSocket>) {
        match completion {
            Completion::Connected { stream, result } => {
                let Some(cid) = self.cid_of(stream) else { return };
                if result.is_err() {
                    return self.close(cid);
                }
                self.at(cid).connected = true;
                self.log_in(cid);
                self.driver.recv(stream, &[], Buffer::new(65_536));
            }
            Completion::Received { stream, result, buffer } => {
                let Some(cid) = self.cid_of(stream) else { return };
                let count = result.unwrap_or(0);
                if count == 0 {
                    return self.close(cid);
                }
                self.at(cid).inbox.extend_from_slice(&buffer.as_slice()[..count]);
                self.driver.recv(stream, &[], buffer);
                self.parse(cid);
            }
            Completion::Sent { stream, .. } => {
                if let Some(cid) = self.cid_of(stream) {
                    self.at(cid).sending = false;
                }
            }
            _ => {}
        }
    }

    /// The connection is lost; without the first one the session is lost.
    fn close(&mut self, cid: u16) {
        let connection = std::mem::take(self.at(cid));
        if let Some(stream) = connection.stream {
            self.driver.close(stream);
        }
        if connection.logged_in {
            // Error recovery level 0: the session ends with any of its connections.
            self.forget_session();
            (0..CONNECTIONS).for_each(|cid| self.close(cid));
        }
    }

    /// The session has ended. None of its data may be written once the next login is answered.
    fn forget_session(&mut self) {
        (self.tsih, self.cmd_sn) = (0, 1);
        for task in std::mem::take(&mut self.tasks).into_values() {
            self.end_write(&task, None);
        }
        self.late.clear();
        self.granted.clear();
        self.managing.clear();
    }

    fn begin_write(&mut self, task: &Task) {
        for block in &mut self.blocks[task.first..task.first + task.blocks] {
            block.mixed = block.writers > 0;
            block.writers += 1;
            block.fill = None;
        }
    }

    /// A write has ended: GOOD with its data, or ended before.
    fn end_write(&mut self, task: &Task, fill: Option<u64>) {
        if task.over {
            return;
        }
        for block in &mut self.blocks[task.first..task.first + task.blocks] {
            block.writers -= 1;
            block.fill = if block.mixed { None } else { fill };
            block.mixed &= block.writers > 0;
        }
    }

    /// The required contents of its volume, by block, as far as known.
    pub(crate) fn expected(&self) -> impl Iterator<Item = Option<u64>> {
        self.blocks.iter().map(|block| block.fill)
    }

    fn is_over(&mut self, itt: u32) {
        if let Some(task) = self.tasks.get(&itt).copied() {
            self.end_write(&task, None);
            self.tasks.insert(itt, Task { over: true, ..task });
        }
    }

    fn log_in(&mut self, cid: u16) {
        let keys = if self.tsih == 0 { "MaxConnections=4\0InitialR2T=Yes\0ImmediateData=No\0" } else { "" };
        let text = format!("InitiatorName=iqn.2026-11.lab.linerate:rogue\0TargetName={ROGUE}\0{keys}");
        let mut bhs = [0; BHS];
        (bhs[0], bhs[1], bhs[8], bhs[13]) = (0x43, 0x87, 0x80, 7);
        bhs[14..16].copy_from_slice(&self.tsih.to_be_bytes());
        bhs[20..22].copy_from_slice(&cid.to_be_bytes());
        bhs[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        self.send(cid, bhs, text.as_bytes());
    }

    fn send(&mut self, cid: u16, mut bhs: [u8; BHS], data: &[u8]) {
        bhs[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let outbox = &mut self.at(cid).outbox;
        outbox.extend(bhs);
        outbox.extend(data);
        outbox.extend(std::iter::repeat_n(0, data.len().next_multiple_of(4) - data.len()));
    }

    fn flush(&mut self, cid: u16) {
        let connection = self.at(cid);
        let Some(stream) = connection.stream else { return };
        if !connection.connected || connection.sending || connection.outbox.is_empty() {
            return;
        }
        let bytes: Vec<u8> = connection.outbox.drain(..).collect();
        connection.sending = true;
        let mut list = Outgoing::new();
        list.push_bytes(&bytes);
        self.driver.send(stream, Box::new(list));
    }

    fn parse(&mut self, cid: u16) {
        loop {
            let inbox = &mut self.at(cid).inbox;
            let Some(bhs) = inbox.get(..BHS) else { return };
            let len = (word(bhs, 4) & 0x00ff_ffff).next_multiple_of(4) as usize;
            if inbox.len() < BHS + len {
                return;
            }
            let bhs: [u8; BHS] = bhs.try_into().unwrap();
            inbox.drain(..BHS + len);
            self.receive(cid, &bhs);
        }
    }

    fn receive(&mut self, cid: u16, bhs: &[u8; BHS]) {
        let itt = word(bhs, 16);
        let max_cmd_sn = word(bhs, 32);
        if self.tsih == 0 || max_cmd_sn.wrapping_sub(self.max_cmd_sn) < 1 << 31 {
            self.max_cmd_sn = max_cmd_sn;
        }
        match bhs[0] & 0x3f {
            0x23 => {
                if bhs[36] != 0 {
                    return self.close(cid);
                }
                self.tsih = u16::from_be_bytes([bhs[14], bhs[15]]);
                let connection = self.at(cid);
                connection.logged_in = true;
                connection.exp_stat_sn = word(bhs, 24).wrapping_add(1);
            }
            0x31 => self.granted.push((cid, *bhs)),
            0x21 => {
                self.count_status(cid, bhs);
                if let Some(task) = self.tasks.remove(&itt) {
                    assert!(!task.over, "a task that is over is answered");
                    self.end_write(&task, (bhs[3] == 0).then_some(task.fill));
                }
            }
            0x22 => {
                self.count_status(cid, bhs);
                self.answered += 1;
                let complete = bhs[2] == 0;
                match self.managing.remove(&itt).filter(|_| complete) {
                    Some(Some(victim)) => self.is_over(victim),
                    Some(None) => {
                        let all: Vec<u32> = self.tasks.keys().copied().collect();
                        for itt in all {
                            self.is_over(itt);
                        }
                    }
                    None => {}
                }
            }
            0x20 if word(bhs, 20) != NO_TAG => self.answer_ping(cid, bhs),
            0x20 | 0x3f => self.count_status(cid, bhs),
            _ => {}
        }
    }

    fn count_status(&mut self, cid: u16, bhs: &[u8; BHS]) {
        self.at(cid).exp_stat_sn = word(bhs, 24).wrapping_add(1);
    }

    fn answer_ping(&mut self, cid: u16, ping: &[u8; BHS]) {
        if self.at(cid).owed.is_some() {
            // In the middle of a data segment no answer can be sent.
            return;
        }
        let mut bhs = self.request(cid, 0x40, 0x80);
        bhs[16..20].copy_from_slice(&NO_TAG.to_be_bytes());
        bhs[20..24].copy_from_slice(&ping[20..24]);
        self.send(cid, bhs, &[]);
    }

    fn request(&mut self, cid: u16, opcode: u8, flags: u8) -> [u8; BHS] {
        let mut bhs = [0; BHS];
        (bhs[0], bhs[1]) = (opcode, flags);
        bhs[16..20].copy_from_slice(&self.next_itt.to_be_bytes());
        bhs[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        bhs[28..32].copy_from_slice(&self.at(cid).exp_stat_sn.to_be_bytes());
        bhs
    }

    /// Performs an action, if it is possible now.
    fn act(&mut self) {
        let cid = self.rng.range(0, u64::from(CONNECTIONS) - 1) as u16;
        let leader_is_in = self.connections[0].logged_in;
        let connection = self.at(cid);
        if connection.stream.is_none() {
            if cid == 0 || leader_is_in {
                self.connect(cid);
            }
            return;
        }
        if !connection.logged_in {
            return;
        }
        if let Some((itt, left)) = connection.owed {
            return self.pay(cid, itt, left);
        }
        if let Some(at) = self.late.iter().position(|(of, _)| *of == cid) {
            let (_, command) = self.late.swap_remove(at);
            return self.send(cid, command, &[]);
        }
        match self.rng.range(0, 99) {
            0..40 => self.write(cid),
            40..75 => self.answer_r2t(cid),
            75..88 => self.abort(cid),
            88..94 => self.reset(cid),
            94..96 => self.log_in_over(),
            96 => self.close(cid),
            _ => {}
        }
    }

    fn connect(&mut self, cid: u16) {
        let addr = "127.0.0.1:3260".parse().unwrap();
        let stream = self.driver.connect(addr, &SocketOptions::default()).unwrap();
        self.at(cid).stream = Some(stream);
    }

    fn write(&mut self, cid: u16) {
        // A reset does not end tasks that are sent after it.
        let live = self.tasks.values().filter(|task| !task.over).count();
        let is_full = self.cmd_sn == self.max_cmd_sn.wrapping_add(1) || live >= TASKS_MAX;
        if is_full || self.managing.values().any(Option::is_none) {
            return;
        }
        let over = self.tasks.values().rfind(|task| task.over).copied();
        let (first, blocks) = match over {
            // Tasks that have ended must not overwrite this.
            Some(task) if self.rng.chance(50) => (task.first as u64, task.blocks as u64),
            _ => {
                let blocks = self.rng.range(1, 48);
                (self.rng.range(0, BLOCKS - blocks), blocks)
            }
        };
        let len = (blocks * BLOCK) as u32;
        let mut bhs = self.request(cid, 0x01, 0xa1);
        bhs[20..24].copy_from_slice(&len.to_be_bytes());
        bhs[32] = 0x2a;
        bhs[34..38].copy_from_slice(&(first as u32).to_be_bytes());
        bhs[39..41].copy_from_slice(&(blocks as u16).to_be_bytes());
        if self.rng.chance(20) {
            self.late.push((cid, bhs));
        } else {
            self.send(cid, bhs, &[]);
        }
        let fill = u64::from(self.next_itt) << 32 | 0x1111_1111;
        let (first, blocks) = (first as usize, blocks as usize);
        let task = Task { first, blocks, fill, over: false };
        self.begin_write(&task);
        self.tasks.insert(self.next_itt, task);
        (self.next_itt, self.cmd_sn) = (self.next_itt + 1, self.cmd_sn.wrapping_add(1));
    }

    /// Announces the data that an R2T requests, and sends some of it.
    fn answer_r2t(&mut self, cid: u16) {
        let Some(at) = self.granted.iter().position(|(of, _)| *of == cid) else { return };
        let (_, r2t) = self.granted.swap_remove(at);
        let (itt, len) = (word(&r2t, 16), word(&r2t, 44));
        let mut bhs = [0; BHS];
        (bhs[0], bhs[1]) = (0x05, 0x80);
        bhs[8..24].copy_from_slice(&r2t[8..24]);
        bhs[5..8].copy_from_slice(&len.to_be_bytes()[1..]);
        bhs[40..44].copy_from_slice(&r2t[40..44]);
        bhs[28..32].copy_from_slice(&self.at(cid).exp_stat_sn.to_be_bytes());
        let connection = self.at(cid);
        connection.outbox.extend(bhs);
        connection.owed = Some((itt, len.next_multiple_of(4)));
    }

    /// Sends some of the announced payload, or nothing for now.
    fn pay(&mut self, cid: u16, itt: u32, left: u32) {
        if self.rng.chance(60) {
            return;
        }
        let task = self.tasks.get(&itt);
        let over = task.is_none_or(|task| task.over);
        let fill = task.filter(|task| !task.over).map_or(POISON, |task| task.fill);
        let len = if self.rng.chance(50) { left } else { self.rng.range(1, u64::from(left)) as u32 };
        self.poisoned += u64::from(over);
        // The remaining length shows where in a word the last piece ended: segments are whole words.
        let skip = (8 - left % 8) as usize % 8;
        let bytes = fill.to_le_bytes().into_iter().cycle().skip(skip).take(len as usize);
        let connection = &mut self.connections[usize::from(cid)];
        connection.outbox.extend(bytes);
        connection.owed = (left > len).then_some((itt, left - len));
    }

    fn manage(&mut self, cid: u16, function: u8, victim: Victim) {
        let mut bhs = self.request(cid, 0x42, 0x80 | function);
        bhs[20..24].copy_from_slice(&victim.unwrap_or(NO_TAG).to_be_bytes());
        self.send(cid, bhs, &[]);
        self.managing.insert(self.next_itt, victim);
        self.next_itt += 1;
    }

    fn abort(&mut self, cid: u16) {
        let live: Vec<u32> = self.tasks.iter().filter(|(_, task)| !task.over).map(|(itt, _)| *itt).collect();
        if !live.is_empty() && self.managing.is_empty() {
            let itt = live[self.rng.range(0, live.len() as u64 - 1) as usize];
            self.manage(cid, 1, Some(itt));
        }
    }

    /// ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET or TARGET WARM RESET.
    fn reset(&mut self, cid: u16) {
        if self.managing.is_empty() {
            let function = [2, 4, 5, 6][self.rng.range(0, 3) as usize];
            self.manage(cid, function, None);
        }
    }

    /// Another session of the same initiator port ends the current one.
    fn log_in_over(&mut self) {
        let streams: Vec<Handle> = self.connections.iter_mut().filter_map(|at| at.stream.take()).collect();
        self.forget_session();
        self.connections.iter_mut().for_each(|connection| *connection = Connection::default());
        self.connect(0);
        // The old ones stay open until the array closes them; their missing data is never sent.
        drop(streams);
    }
}
