//! Connects the tasks of a thread with its driver: file disks, and time.
//!
//! Tasks do not see the driver. A file disk queues its requests. Between two rounds of tasks the [`Host`] gives all of them
//! to the driver, which submits them with one system call. So an operation costs no system call of its own, and disks need
//! no type parameter.

mod files;
mod memory;
mod queue;
mod tasks;

pub use files::Files;
pub(crate) use queue::{Queue, Request, Transfer, Work};
pub use tasks::Tasks;

use crate::{
    disk::{FileConfig, FileDisk},
    runtime::Runtime,
};
use linerate_io::{Completion, Driver, Wait, WaitMode, Waiter};
use std::{future::Future, io};

/// One thread's driver and tasks. Its owner calls [`Host::turn`] in a loop.
pub struct Host<D: Driver> {
    driver: D,
    waiter: Waiter,
    tasks: Tasks,
    /// Completions for the owner that arrived while [`Host::block_on`] ran.
    held: Vec<Completion<D::Socket>>,
}

impl<D: Driver> Host<D> {
    /// A host without tasks, which sleeps while it waits.
    pub fn new(driver: D) -> Self {
        Self {
            tasks: Tasks::new(driver.now()),
            driver,
            waiter: Waiter::new(WaitMode::Block),
            held: Vec::new(),
        }
    }

    /// Runtime for tasks.
    pub fn runtime(&self) -> Runtime {
        self.tasks.runtime()
    }

    /// Opens file disks; tasks can use it too.
    pub fn files(&self) -> Files {
        self.tasks.files()
    }

    /// The driver, for everything that is not a disk. Completions of the owner's file operations are returned by
    /// [`Host::turn`], like all others.
    pub fn driver(&mut self) -> &mut D {
        &mut self.driver
    }

    /// Opens a file disk; see [`Files::open`].
    pub fn open_file(&mut self, config: &FileConfig) -> io::Result<FileDisk> {
        let (files, config) = (self.files(), config.clone());
        self.block_on(async move { files.open(&config).await })?
    }

    /// Runs tasks and submits their file requests. Then waits for a completion as `wait` says (a sleeping task may end
    /// the wait), and runs the tasks that waited for it. Completions that do not belong to a file disk are appended to
    /// `out`.
    ///
    /// Only the driver's waker ends a wait from another thread; a task's waker does not.
    pub fn turn(&mut self, wait: Wait, out: &mut Vec<Completion<D::Socket>>) -> io::Result<()> {
        self.tasks.run(&mut self.driver)?;
        out.append(&mut self.held);
        let wait = if out.is_empty() { wait } else { Wait::Never };
        self.tasks.wait(&mut self.driver, &mut self.waiter, wait, out)?;
        self.tasks.run(&mut self.driver)
    }

    /// Runs `future` to its end. It must not depend on what the owner does between turns.
    pub fn block_on<T: 'static>(&mut self, future: impl Future<Output = T> + 'static) -> io::Result<T> {
        self.tasks.block_on(&mut self.driver, &mut self.waiter, &mut self.held, future)
    }
}
