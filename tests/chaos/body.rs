//! What the tasks of a program do, and what is watched meanwhile.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use afterboot::{Governor, Task, TaskHandle};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::program::{Declared, Program, Step};

/// One program while it runs.
pub(crate) struct World {
    pub(crate) governor: Governor,
    concurrency: usize,
    multi_thread: bool,
    /// Every handle there is, in the order of declaration as far as this list knows it.
    pub(crate) handles: Mutex<Vec<TaskHandle<()>>>,
    /// Tasks in their bodies that neither wait for a handle nor block.
    busy: AtomicUsize,
    polling: AtomicUsize,
    /// Governed polls that were in progress at once.
    pub(crate) overlaps: AtomicUsize,
    /// Starts that found no slot free or lent: who, and how many were busy.
    pub(crate) over_the_limit: Mutex<Vec<(String, usize)>>,
    /// Bodies that began, per task.
    pub(crate) begun: Mutex<Vec<String>>,
    /// Bodies that have not been dropped.
    pub(crate) bodies: AtomicUsize,
}

impl World {
    pub(crate) fn new(governor: Governor, program: &Program) -> Arc<World> {
        Arc::new(World {
            governor,
            concurrency: program.concurrency,
            multi_thread: program.multi_thread,
            handles: Mutex::default(),
            busy: AtomicUsize::new(0),
            polling: AtomicUsize::new(0),
            overlaps: AtomicUsize::new(0),
            over_the_limit: Mutex::default(),
            begun: Mutex::default(),
            bodies: AtomicUsize::new(0),
        })
    }

    pub(crate) fn handle(&self, place: usize) -> Option<TaskHandle<()>> {
        let handles = self.handles.lock().unwrap();
        handles.get(place % handles.len().max(1)).cloned()
    }

    pub(crate) fn declare(self: &Arc<World>, declared: &Declared) {
        // The list is locked meanwhile, so that names and places agree. `govern` runs no code of the task.
        let mut handles = self.handles.lock().unwrap();
        let name = handles.len().to_string();
        let mut task =
            if declared.blocking { self.blocking(&name, declared) } else { self.future(&name, declared) };
        if declared.idle {
            task = task.idle();
        }
        task = task.when(declared.condition);
        if let Some(answer) = declared.at_start {
            task = task.when_at_start(move || answer);
        }
        if let Some(limit) = declared.timeout {
            task = task.timeout(Duration::from_millis(limit));
        }
        if let Some(limit) = declared.no_later_than {
            task = task.no_later_than(Duration::from_millis(limit));
        }
        for (place, settled_will_do) in &declared.after {
            let Some(predecessor) = handles.get(place % handles.len().max(1)) else { continue };
            task = if *settled_will_do { task.after_settled(predecessor) } else { task.after(predecessor) };
        }
        handles.push(self.governor.govern(task));
    }

    fn future(self: &Arc<World>, name: &str, declared: &Declared) -> Task<()> {
        let (world, steps) = (Arc::clone(self), declared.steps.clone());
        let (of, captured) = (name.to_owned(), Body::new(self));
        Task::new(name.to_owned(), move || {
            let busy = Busy::begin(&world, of, true);
            Watched { world: Arc::clone(&world), body: Box::pin(perform(world, steps, busy, captured)) }
        })
    }

    fn blocking(self: &Arc<World>, name: &str, declared: &Declared) -> Task<()> {
        let (world, steps) = (Arc::clone(self), declared.steps.clone());
        let (of, captured) = (name.to_owned(), Body::new(self));
        Task::blocking(name.to_owned(), move || {
            let _captured = captured;
            // The closure begins later than its task has started, so it says nothing about that start.
            let mut busy = Busy::begin(&world, of, false);
            for step in steps {
                match step {
                    Step::Await(millis) | Step::Block(millis) => block(millis),
                    // It lends its slot as well. A paused clock stands still meanwhile, so that would be a hang.
                    Step::Wait(place) if world.multi_thread => {
                        let Some(handle) = world.handle(place) else { continue };
                        busy.lend();
                        // On a thread of its own it comes back at a moment that the lane does not know.
                        let _ = Handle::current().block_on(handle.wait());
                    }
                    Step::Cancel(place) => {
                        if let Some(handle) = world.handle(place) {
                            handle.cancel();
                        }
                    }
                    Step::Declare(declared) => world.declare(&declared),
                    Step::Panic => panic!("boom"),
                    Step::Fail => return Err("it fails"),
                    _ => {}
                }
            }
            Ok(())
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "programs that block are what is tested")]
fn block(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

async fn perform(
    world: Arc<World>,
    steps: Vec<Step>,
    mut busy: Busy,
    captured: Body,
) -> Result<(), &'static str> {
    let _captured = captured;
    let mut bombs = Vec::new();
    for step in steps {
        match step {
            Step::Await(millis) => sleep(Duration::from_millis(millis)).await,
            Step::Yield => tokio::task::yield_now().await,
            Step::Burn(turns) => {
                for turn in 0..turns * 100 {
                    std::hint::black_box(turn);
                }
                afterboot::yield_if_due().await;
            }
            Step::Block(millis) => {
                busy.lend();
                block(millis);
                busy.take_back();
            }
            Step::Spawn { waits_for, panics, joined } => {
                let handle = waits_for.and_then(|place| world.handle(place));
                let child = tokio::spawn(async move {
                    if let Some(handle) = handle {
                        let _ = timeout(Duration::from_millis(3), handle.wait()).await;
                    }
                    assert!(!panics, "boom in a child");
                });
                if joined {
                    let _ = child.await;
                }
            }
            Step::Wait(_) | Step::WaitFor(..) | Step::WaitAndBlock(..) | Step::Demand(_) => {
                busy.lend();
                wait(&world, step).await;
                busy.take_back();
            }
            Step::Cancel(place) => {
                if let Some(handle) = world.handle(place) {
                    handle.cancel();
                }
            }
            Step::Declare(declared) => world.declare(&declared),
            Step::AwaitTheEnd(millis) => {
                busy.lend();
                let _ = timeout(Duration::from_millis(millis), world.governor.report().finished()).await;
                busy.take_back();
            }
            Step::WakeLater(millis) => wake_later(millis).await,
            Step::Panic => panic!("boom"),
            Step::PanicWhenDropped => bombs.push(Bomb),
            Step::Fail => return Err("it fails"),
            Step::NeverEnd => pending().await,
        }
    }
    Ok(())
}

async fn wait(world: &World, step: Step) {
    let (Step::Wait(place) | Step::WaitFor(place, _) | Step::WaitAndBlock(place, _) | Step::Demand(place)) =
        step
    else {
        return;
    };
    let Some(handle) = world.handle(place) else { return };
    match step {
        Step::WaitFor(_, millis) => drop(timeout(Duration::from_millis(millis), handle.wait()).await),
        Step::WaitAndBlock(_, millis) => {
            let mut blocked = false;
            let mut wait = pin!(handle.wait());
            poll_fn(|cx| {
                let polled = wait.as_mut().poll(cx);
                if !std::mem::replace(&mut blocked, true) {
                    block(millis);
                }
                polled.map(drop)
            })
            .await;
        }
        Step::Demand(_) => drop(handle.demand().await),
        _ => drop(handle.wait().await),
    }
}

/// A foreign task wakes this one, at a time of its own.
async fn wake_later(millis: u64) {
    let mut asked = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut asked, true) {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(millis)).await;
            waker.wake();
        });
        Poll::Pending
    })
    .await;
}

/// Counts bodies that have not been dropped.
struct Body(Arc<World>);

impl Body {
    fn new(world: &Arc<World>) -> Body {
        world.bodies.fetch_add(1, Ordering::SeqCst);
        Body(Arc::clone(world))
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.0.bodies.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("boom in a destructor");
        }
    }
}

/// A task that holds a slot and does not lend it.
struct Busy {
    world: Arc<World>,
    counted: bool,
}

impl Busy {
    fn begin(world: &Arc<World>, name: String, starts_now: bool) -> Busy {
        let before = world.busy.fetch_add(1, Ordering::SeqCst);
        if starts_now && before >= world.concurrency {
            world.over_the_limit.lock().unwrap().push((name.clone(), before));
        }
        world.begun.lock().unwrap().push(name);
        Busy { world: Arc::clone(world), counted: true }
    }

    fn lend(&mut self) {
        if std::mem::take(&mut self.counted) {
            self.world.busy.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn take_back(&mut self) {
        if !std::mem::replace(&mut self.counted, true) {
            self.world.busy.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.lend();
    }
}

/// Watches that polls do not overlap.
struct Watched {
    world: Arc<World>,
    body: Pin<Box<dyn Future<Output = Result<(), &'static str>> + Send>>,
}

/// Also where a poll panics.
struct InAPoll<'a>(&'a World);

impl Drop for InAPoll<'_> {
    fn drop(&mut self) {
        self.0.polling.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Future for Watched {
    type Output = Result<(), &'static str>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let world = Arc::clone(&self.world);
        if world.polling.fetch_add(1, Ordering::SeqCst) > 0 {
            world.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        let _in_a_poll = InAPoll(&world);
        self.body.as_mut().poll(cx)
    }
}
