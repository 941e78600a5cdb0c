//! The memory for sends, and the requests with unfinished commands.

use super::LinkRequest;
use linerate_io::{Region, RegionId, Seg};
use linerate_storage::replica::LinkError;
use std::{collections::VecDeque, io, sync::Arc};

/// Most commands in flight, each with its own memory.
pub(super) const SLOTS: u32 = 64;
/// Longest write of one command.
pub(super) const SLOT_BYTES: u32 = 256 * 1024;

/// The purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkCommand {
    pub(super) request: usize,
    pub(super) kind: LinkCommandKind,
    pub(super) volume: usize,
    pub(super) offset_bytes: u64,
    pub(super) len_bytes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkCommandKind {
    /// Bytes of the job from here on.
    Write {
        from: usize,
    },
    Discard,
    Sync,
}

/// A request with unfinished commands.
struct OpenRequest {
    request: LinkRequest,
    commands: usize,
    error: Option<LinkError>,
}

/// Slots, parts that wait for one, and requests that wait for their parts.
pub(super) struct InFlightCommands {
    region: Arc<Region>,
    free: Vec<u32>,
    /// By slot: the job that it works for.
    used: Vec<usize>,
    pub(super) waiting: VecDeque<LinkCommand>,
    requests: Vec<Option<OpenRequest>>,
}

impl InFlightCommands {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            region: Region::anonymous(u64::from(SLOTS) * u64::from(SLOT_BYTES))?,
            free: (0..SLOTS).collect(),
            used: vec![0; SLOTS as usize],
            waiting: VecDeque::new(),
            requests: Vec::new(),
        })
    }

    pub(super) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Adds a request as parts; `split` marks them with the request's number.
    pub(super) fn add(
        &mut self,
        request: LinkRequest,
        split: impl FnOnce(&LinkRequest, usize) -> Vec<LinkCommand>,
    ) {
        let number = self.requests.iter().position(Option::is_none).unwrap_or(self.requests.len());
        let commands = split(&request, number);
        let open = OpenRequest { request, commands: commands.len(), error: None };
        if number == self.requests.len() {
            self.requests.push(None);
        }
        self.requests[number] = Some(open);
        if commands.is_empty() {
            self.finish(number, Ok(()));
        }
        self.waiting.extend(commands);
    }

    /// The next part for which a slot is free.
    pub(super) fn next(&mut self) -> Option<(u32, LinkCommand)> {
        let command = *self.waiting.front()?;
        let slot = self.free.pop()?;
        self.waiting.pop_front();
        self.used[slot as usize] = command.request;
        Some((slot, command))
    }

    /// Copies the bytes of a part to its slot.
    pub(super) fn load(&self, slot: u32, command: &LinkCommand, from: usize, region: RegionId) -> Seg {
        let offset = u64::from(slot) * u64::from(SLOT_BYTES);
        if let Some(Some(OpenRequest {
            request: LinkRequest { operation: super::LinkOperation::Write { data, .. }, .. },
            ..
        })) = self.requests.get(command.request)
        {
            self.region.write(offset, &data[from..from + command.len_bytes as usize]);
        }
        Seg { region, offset, len: command.len_bytes }
    }

    /// The command of a slot has ended.
    pub(super) fn done(&mut self, slot: u32, result: Result<(), LinkError>) {
        self.free.push(slot);
        let number = self.used[slot as usize];
        let Some(open) = self.requests[number].as_mut() else {
            unreachable!("a request stays until its last command is over");
        };
        open.commands -= 1;
        if let Err(error) = result {
            open.error.get_or_insert(error);
        }
        if open.commands == 0 {
            let result = open.error.take().map_or(Ok(()), Err);
            self.finish(number, result);
        }
    }

    fn finish(&mut self, number: usize, result: Result<(), LinkError>) {
        if let Some(open) = self.requests[number].take() {
            // The caller may have stopped waiting.
            let _ = open.request.reply.send(result);
        }
    }

    /// Ends all jobs.
    pub(super) fn fail_all(&mut self, error: &LinkError) {
        self.waiting.clear();
        for number in 0..self.requests.len() {
            self.finish(number, Err(error.clone()));
        }
    }
}
