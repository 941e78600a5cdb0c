//! The handle of a running fabric: start, query, change, stop.

use crate::{
    engine::{Engine, FabricRequest},
    plan::{ChangeFailure, FabricPlan, TapFailure},
    report::FabricStats,
    spec::{ChangeSpec, FabricSpec, SpecError},
};
use linerate_blame::Blame;
use linerate_io::Waker;
use linerate_link::Nanos;
use std::{
    io,
    sync::mpsc::{Sender, channel, sync_channel},
    thread::{self, JoinHandle},
};
use thiserror::Error;

/// A network that carries packets, on a thread of its own, until it is dropped or stopped.
#[derive(Debug)]
pub struct Fabric {
    /// None once stopped.
    requests: Option<Sender<FabricRequest>>,
    waker: Waker,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Fabric {
    /// Makes all TAPs and carries packets between them from now on.
    pub fn start(spec: &FabricSpec) -> Result<Self, FabricError> {
        spec.validate()?;
        let spec = spec.clone();
        let (requests, inbox) = channel();
        let (ready, started) = sync_channel(1);
        // Packets are shared within the thread only, so the thread builds its own objects.
        let work = move || {
            let engine =
                FabricPlan::build(&spec).map_err(FabricError::from).and_then(|(plan, network, hosts)| {
                    Engine::new(plan, network, hosts).map_err(FabricError::Host)
                });
            match engine {
                Ok(mut engine) => {
                    drop(ready.send(Ok(engine.poller.waker())));
                    // Nothing is logged here: the logger may wait for a caller that waits for this thread.
                    engine.run(&inbox)
                }
                Err(error) => {
                    drop(ready.send(Err(error)));
                    Ok(())
                }
            }
        };
        let builder = thread::Builder::new().name("linerate-fabric".into());
        let thread = Some(builder.spawn(work).map_err(FabricError::Host)?);
        let waker = started.recv().map_err(|_| FabricError::Died)??;
        Ok(Self { requests: Some(requests), waker, thread })
    }

    /// Counters since the start.
    pub fn stats(&self) -> Result<FabricStats, FabricError> {
        let (reply, answer) = sync_channel(1);
        self.ask(FabricRequest::Stats(reply))?;
        answer.recv().map_err(|_| FabricError::Died)
    }

    /// Applies a change while packets flow, and returns the monotonic time at which it took effect. If anything in it
    /// is wrong nothing changes.
    pub fn change(&self, change: ChangeSpec) -> Result<Nanos, FabricError> {
        let (reply, answer) = sync_channel(1);
        self.ask(FabricRequest::Change(change, reply))?;
        match answer.recv().map_err(|_| FabricError::Died)? {
            Ok(at) => Ok(at),
            Err(ChangeFailure::Spec(error)) => Err(error.into()),
            Err(ChangeFailure::Host(at, error)) => Err(FabricError::Tap { at, error }),
        }
    }

    /// Ends the fabric and removes its TAPs. Returns the error that ended it earlier, if there was one.
    pub fn stop(mut self) -> Result<(), FabricError> {
        match self.hang_up() {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(FabricError::Host(error)),
            Some(Err(_)) => Err(FabricError::Died),
        }
    }

    fn ask(&self, request: FabricRequest) -> Result<(), FabricError> {
        let requests = self.requests.as_ref().ok_or(FabricError::Died)?;
        requests.send(request).map_err(|_| FabricError::Died)?;
        self.waker.wake();
        Ok(())
    }

    fn hang_up(&mut self) -> Option<thread::Result<io::Result<()>>> {
        self.requests = None;
        self.waker.wake();
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        // No other reader is left for the error that ended it.
        if let Some(Ok(Err(error))) = self.hang_up() {
            log::error!("the fabric stopped: {error}");
        }
    }
}

/// Why a fabric cannot start, change or continue.
#[derive(Debug, Error)]
pub enum FabricError {
    /// The specification or the change is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// An interface could not be made or changed.
    #[error("{at}: {error}")]
    Tap {
        /// The port and the interface.
        at: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// Some other refusal of the operating system.
    #[error("the fabric cannot run: {0}")]
    Host(io::Error),
    /// Its thread has ended.
    #[error("the fabric has ended")]
    Died,
}

impl FabricError {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Spec(_) => Blame::User,
            Self::Tap { .. } | Self::Host(_) => Blame::Host,
            Self::Died => Blame::Us,
        }
    }
}

impl From<TapFailure> for FabricError {
    fn from(failure: TapFailure) -> Self {
        Self::Tap { at: failure.at, error: failure.error }
    }
}
