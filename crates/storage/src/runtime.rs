//! Tasks and timers of one thread. Time is an argument: from the thread of a real array, from a test, or from
//! [`Executor::run_in_virtual_time`], which jumps from timer to timer.

use futures::{
    FutureExt,
    channel::oneshot,
    executor::{LocalPool, LocalSpawner},
    future::{LocalBoxFuture, pending, ready},
    task::LocalSpawnExt,
};
use linerate_io::Nanos;
use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::BinaryHeap,
    fmt,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

/// Runs tasks until they all wait.
#[derive(Debug)]
pub struct Executor {
    pool: LocalPool,
    runtime: Runtime,
}

/// A task's access to its executor: spawn, read the clock, sleep. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    spawner: LocalSpawner,
    time: Rc<Time>,
}

#[derive(Default)]
struct Time {
    now: Cell<Nanos>,
    /// Timers in order of their instants; timers of one instant in the order of their creation.
    timers: RefCell<BinaryHeap<Reverse<Timer>>>,
    made: Cell<u64>,
    /// A task was started, or a timer set, since the executor ran.
    has_news: Cell<bool>,
}

#[derive(Debug)]
struct Timer {
    at: Nanos,
    number: u64,
    waker: Waker,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl Default for Executor {
    fn default() -> Self {
        Self::new()
    }
}

impl Executor {
    /// An executor whose clock starts at 0.
    pub fn new() -> Self {
        let pool = LocalPool::new();
        let runtime = Runtime { spawner: pool.spawner(), time: Rc::default() };
        Self { pool, runtime }
    }

    /// Runtime for tasks.
    pub fn runtime(&self) -> Runtime {
        self.runtime.clone()
    }

    /// Moves the clock to `now`, which is not before the last time, wakes the tasks that slept until then, and runs
    /// tasks until all of them wait.
    pub fn run(&mut self, now: Nanos) {
        self.advance(now);
        let time = &self.runtime.time;
        loop {
            time.wake_due();
            self.pool.run_until_stalled();
            // A task may have asked to sleep until an instant in the past.
            if time.next().is_none_or(|at| at > time.now.get()) {
                return time.has_news.set(false);
            }
        }
    }

    /// Moves the clock to `now`, and runs nothing.
    pub fn advance(&self, now: Nanos) {
        let time = &self.runtime.time;
        time.now.set(time.now.get().max(now));
    }

    /// Whether a task was started or a timer was set since the last [`Executor::run`].
    pub fn has_news(&self) -> bool {
        self.runtime.time.has_news.get()
    }

    /// When the next sleeping task must wake.
    pub fn next_timer(&self) -> Option<Nanos> {
        self.runtime.time.next()
    }

    /// Runs `future` to its end in virtual time: whenever all tasks wait, the clock jumps to the next timer.
    ///
    /// Returns None if all tasks wait and no timer is left: a deadlock.
    pub fn run_in_virtual_time<T: 'static>(
        &mut self,
        future: impl Future<Output = T> + 'static,
    ) -> Option<T> {
        let result = Rc::new(Cell::new(None));
        let into = Rc::clone(&result);
        self.runtime.spawn(async move { into.set(Some(future.await)) });
        self.run(self.runtime.now());
        loop {
            if let Some(value) = result.take() {
                return Some(value);
            }
            let at = self.next_timer()?;
            self.run(at);
        }
    }
}

impl Runtime {
    /// The executor's clock.
    pub fn now(&self) -> Nanos {
        self.time.now.get()
    }

    /// Starts a task. It ends with its executor at the latest.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.time.has_news.set(true);
        // This fails only when the executor is gone, and with it everything that tasks could use.
        let _ = self.spawner.spawn_local(task);
    }

    /// Begins `work` at once, and runs it to its end even if no caller awaits the result.
    pub fn start<T: 'static>(&self, work: impl Future<Output = T> + 'static) -> LocalBoxFuture<'static, T> {
        let mut work = Box::pin(work);
        if let Some(value) = work.as_mut().now_or_never() {
            return Box::pin(ready(value));
        }
        let (sender, receiver) = oneshot::channel();
        self.spawn(async move {
            // This fails only if the caller has stopped waiting.
            let _ = sender.send(work.await);
        });
        Box::pin(async move {
            match receiver.await {
                Ok(value) => value,
                Err(_) => pending().await, // the executor is gone
            }
        })
    }

    /// Sleeps until `at` on the executor's clock.
    pub fn sleep_until(&self, at: Nanos) -> Sleep {
        Sleep { time: Rc::clone(&self.time), at, waker: None }
    }

    /// Sleeps for `len`.
    pub fn sleep(&self, len: Nanos) -> Sleep {
        self.sleep_until(self.now().saturating_add(len))
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl Time {
    fn next(&self) -> Option<Nanos> {
        self.timers.borrow().peek().map(|Reverse(timer)| timer.at)
    }

    fn wake_due(&self) {
        while self.next().is_some_and(|at| at <= self.now.get()) {
            let timer = self.timers.borrow_mut().pop();
            if let Some(Reverse(timer)) = timer {
                timer.waker.wake();
            }
        }
    }
}

/// See [`Runtime::sleep_until`].
pub struct Sleep {
    time: Rc<Time>,
    at: Nanos,
    /// The task that its timer wakes.
    waker: Option<Waker>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.at <= self.time.now.get() {
            return Poll::Ready(());
        }
        // Another task than before may poll a future: then the timer must wake that task.
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.waker = Some(context.waker().clone());
            let number = self.time.made.replace(self.time.made.get() + 1);
            let timer = Timer { at: self.at, number, waker: context.waker().clone() };
            self.time.timers.borrow_mut().push(Reverse(timer));
            self.time.has_news.set(true);
        }
        Poll::Pending
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("at", &self.at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_wake_in_order_and_time_jumps() {
        let mut executor = Executor::new();
        let runtime = executor.runtime();
        let woken = Rc::new(RefCell::new(Vec::new()));
        for len in [30, 10, 20, 10] {
            let (runtime, woken) = (runtime.clone(), Rc::clone(&woken));
            runtime.clone().spawn(async move {
                runtime.sleep(len).await;
                woken.borrow_mut().push((runtime.now(), len));
            });
        }
        let last = runtime.clone();
        let end = executor.run_in_virtual_time(async move {
            last.sleep(1_000_000_000).await;
            last.now()
        });
        assert_eq!(end, Some(1_000_000_000));
        assert_eq!(*woken.borrow(), [(10, 10), (10, 10), (20, 20), (30, 30)]);
    }

    #[test]
    fn a_sleeper_that_changes_tasks_wakes_the_new_one() {
        let mut executor = Executor::new();
        let mut sleep = executor.runtime().sleep_until(10);
        let first = Pin::new(&mut sleep).poll(&mut Context::from_waker(Waker::noop()));
        assert!(first.is_pending());
        assert_eq!(executor.run_in_virtual_time(sleep), Some(()));
    }

    #[test]
    fn work_begins_at_once_and_ends_though_nobody_waits() {
        let mut executor = Executor::new();
        let runtime = executor.runtime();
        let steps = Rc::new(Cell::new(0));
        let (inside, sleep) = (Rc::clone(&steps), runtime.sleep(10));
        drop(runtime.start(async move {
            inside.set(1);
            sleep.await;
            inside.set(2);
        }));
        assert_eq!(steps.get(), 1);
        executor.run(10);
        assert_eq!(steps.get(), 2);
    }

    #[test]
    fn tasks_and_timers_of_others_are_news_until_it_runs() {
        let mut executor = Executor::new();
        let runtime = executor.runtime();
        assert!(!executor.has_news());
        executor.advance(7);
        assert_eq!((runtime.now(), executor.has_news()), (7, false));
        runtime.spawn(runtime.sleep(10));
        assert!(executor.has_news());
        executor.run(7);
        assert_eq!((executor.has_news(), executor.next_timer()), (false, Some(17)));
    }

    #[test]
    fn waiting_for_nothing_is_a_deadlock() {
        let mut executor = Executor::new();
        assert_eq!(executor.run_in_virtual_time(futures::future::pending::<()>()), None);
    }

    #[test]
    fn a_told_clock_wakes_only_who_is_due() {
        let mut executor = Executor::new();
        let runtime = executor.runtime();
        let done = Rc::new(Cell::new(0));
        for at in [5, 15] {
            let (done, sleep) = (Rc::clone(&done), runtime.sleep_until(at));
            runtime.spawn(async move {
                sleep.await;
                done.set(done.get() + 1);
            });
        }
        executor.run(0);
        assert_eq!((done.get(), executor.next_timer()), (0, Some(5)));
        executor.run(14);
        assert_eq!((done.get(), executor.next_timer()), (1, Some(15)));
        executor.run(15);
        assert_eq!((done.get(), executor.next_timer()), (2, None));
    }
}
