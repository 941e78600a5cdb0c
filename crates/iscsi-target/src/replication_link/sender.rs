//! The thread that sends a copy to the partner.

use super::{
    Inbox, LinkOperation, LinkRequest, LinkRoute, Wake, closed,
    inflight::{InFlightCommands, LinkCommand, LinkCommandKind, SLOT_BYTES},
};
use linerate_blame::Blame;
use linerate_io::{Driver, Nanos, RegionId, Wait, open_driver, with_driver};
use linerate_iscsi_initiator::{DeviceId, DeviceState, Initiator, IoDone, IoError, IoOp, IoRequest, Sharing};
use linerate_storage::replica::LinkError;

/// Time limit of a logout.
const LOGOUT_NS: Nanos = 1_000_000_000;
/// The longest range that one UNMAP names.
const DISCARD_BYTES: u64 = 1 << 30;

/// The main function of the thread.
pub(super) fn run(route: &LinkRoute, inbox: &Inbox, wake: &Wake) {
    let error = match open_driver(route.driver) {
        Ok(driver) => with_driver!(driver, |driver| serve(driver, route, inbox, wake)),
        Err(error) => LinkError::Broken(error.to_string()),
    };
    inbox.close(error.clone());
    for request in inbox.take().0 {
        let _ = request.reply.send(Err(error.clone()));
    }
    wake();
}

/// Serves until the link is closed or broken; returns the reason.
fn serve<D: Driver>(mut driver: D, route: &LinkRoute, inbox: &Inbox, wake: &Wake) -> LinkError {
    let waker = driver.waker();
    // It is set only here.
    let _ = inbox.wake.set(Box::new(move || D::wake(&waker)));
    let mut sender = match ReplicationSender::new(&mut driver, route) {
        Ok(sender) => sender,
        Err(error) => return error,
    };
    let error = loop {
        let (requests, is_closed) = inbox.take();
        if is_closed {
            break closed();
        }
        let volumes = route.volumes.len();
        for request in requests {
            sender.in_flight.add(request, |request, number| split(request, number, volumes));
        }
        if let Err(error) = sender.turn(&mut driver) {
            break error;
        }
        wake();
    };
    sender.in_flight.fail_all(&error);
    wake();
    // Errors of the logout are ignored.
    let _ = sender.initiator.close(&mut driver, LOGOUT_NS, &mut Vec::new());
    error
}

/// Splits a request into commands that each fit a slot.
fn split(request: &LinkRequest, number: usize, volumes: usize) -> Vec<LinkCommand> {
    let command = |volume, kind, offset_bytes, len_bytes| LinkCommand {
        request: number,
        kind,
        volume,
        offset_bytes,
        len_bytes,
    };
    match &request.operation {
        LinkOperation::Write { volume, offset_bytes, data } => (0..data.len())
            .step_by(SLOT_BYTES as usize)
            .map(|from| {
                let len = (data.len() - from).min(SLOT_BYTES as usize) as u32;
                command(*volume, LinkCommandKind::Write { from }, offset_bytes + from as u64, len)
            })
            .collect(),
        LinkOperation::Discard { volume, offset_bytes, len_bytes } => (0..*len_bytes)
            .step_by(DISCARD_BYTES as usize)
            .map(|from| {
                let len = (len_bytes - from).min(DISCARD_BYTES) as u32;
                command(*volume, LinkCommandKind::Discard, offset_bytes + from, len)
            })
            .collect(),
        LinkOperation::Flush => {
            (0..volumes).map(|volume| command(volume, LinkCommandKind::Sync, 0, 0)).collect()
        }
    }
}

struct ReplicationSender {
    initiator: Initiator,
    devices: Vec<DeviceId>,
    region: RegionId,
    in_flight: InFlightCommands,
    done: Vec<IoDone>,
    is_ready: bool,
}

impl ReplicationSender {
    fn new<D: Driver>(driver: &mut D, route: &LinkRoute) -> Result<Self, LinkError> {
        let in_flight = InFlightCommands::new().map_err(|error| LinkError::Broken(error.to_string()))?;
        let mut initiator = Initiator::new();
        let region = initiator.attach(driver, in_flight.region());
        let open = |address| {
            let (options, credentials) = (&route.options, &route.credentials);
            initiator.open(driver, address, options, credentials, Sharing::Shared)
        };
        let devices: Result<Vec<_>, _> = route.volumes.iter().map(open).collect();
        let devices = devices.map_err(|error| LinkError::Setup(error.to_string()))?;
        Ok(Self { initiator, devices, region, in_flight, done: Vec::new(), is_ready: false })
    }

    /// Sends commands, waits for completions, and returns results.
    fn turn<D: Driver>(&mut self, driver: &mut D) -> Result<(), LinkError> {
        self.check_devices()?;
        if self.is_ready {
            self.submit()?;
        }
        self.initiator.flush(driver);
        let wait = self.initiator.next_deadline().map_or(Wait::Forever, Wait::Until);
        let mut completions = Vec::new();
        driver.poll(wait, &mut completions).map_err(|error| LinkError::Broken(error.to_string()))?;
        for completion in completions {
            self.initiator.handle_completion(driver, completion, &mut self.done);
        }
        self.initiator.on_time(driver, driver.now(), &mut self.done);
        for IoDone { slot, result, .. } in std::mem::take(&mut self.done) {
            self.in_flight.done(slot, result.map_err(|error| link_error(&error)));
        }
        Ok(())
    }

    /// Whether all volumes can be written; an error if one never will.
    fn check_devices(&mut self) -> Result<(), LinkError> {
        let mut is_ready = true;
        for device in &self.devices {
            match self.initiator.state(*device) {
                DeviceState::Ready => {}
                DeviceState::Opening => is_ready = false,
                // The partner itself sent the target and the secrets.
                DeviceState::Failed(failure) if failure.blame == Blame::User => {
                    return Err(LinkError::Setup(format!(
                        "the portal is not the partner's, or the partner has begun anew: {}; name a portal of the partner",
                        failure.message
                    )));
                }
                DeviceState::Failed(failure) => return Err(LinkError::Broken(failure.message.clone())),
            }
        }
        self.is_ready = is_ready;
        Ok(())
    }

    fn submit(&mut self) -> Result<(), LinkError> {
        while let Some((slot, command)) = self.in_flight.next() {
            let op = match command.kind {
                LinkCommandKind::Write { from } => {
                    IoOp::Write(self.in_flight.load(slot, &command, from, self.region))
                }
                LinkCommandKind::Discard => IoOp::Discard,
                LinkCommandKind::Sync => IoOp::Sync,
            };
            let LinkCommand { offset_bytes, len_bytes, .. } = command;
            let request = IoRequest { slot, op, offset_bytes, len_bytes };
            let device = *self.devices.get(command.volume).ok_or_else(closed)?;
            self.initiator.submit(device, &request).map_err(|error| LinkError::Refused(error.to_string()))?;
        }
        Ok(())
    }
}

/// Converts an I/O's error for the copy.
fn link_error(error: &IoError) -> LinkError {
    match error {
        IoError::CheckCondition(_) | IoError::Status(_) | IoError::DeviceChanged => {
            LinkError::Refused(error.to_string())
        }
        _ => LinkError::Broken(error.to_string()),
    }
}
