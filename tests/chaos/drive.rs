//! Runs one program to its end, whatever that is.

use std::sync::Arc;
use std::time::Duration;

use afterboot::{Governor, Monkey, Profile, Report};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use crate::body::World;
use crate::program::{Act, Ending, Program};

/// What is left of a program.
pub(crate) struct Left {
    pub(crate) world: Arc<World>,
    pub(crate) report: Report,
    /// Spawned tasks that were alive a while after the end.
    pub(crate) alive: usize,
    /// Whether all tasks ended by themselves where they were to.
    pub(crate) finished: bool,
}

/// Of the tokio clock: a paused one makes it no time, and a real one never comes near it.
const NEVER: Duration = Duration::from_secs(30);

pub(crate) fn run(program: &Program) -> Left {
    let runtime = if program.multi_thread {
        Builder::new_multi_thread().worker_threads(2).enable_all().build()
    } else {
        Builder::new_current_thread().enable_all().start_paused(true).build()
    };
    let runtime = runtime.expect("there are threads enough");
    let (world, done) = runtime.block_on(async {
        let world = World::new(governor(program), program);
        act(&world, program).await;
        let done = end(&world, program).await;
        (world, done)
    });
    match program.ending {
        Ending::Background => runtime.shutdown_background(),
        Ending::Timeout => runtime.shutdown_timeout(Duration::from_millis(100)),
        _ => drop(runtime),
    }
    let (report, alive, finished) = match done {
        Some((alive, finished)) => (world.governor.report().current(), alive, finished),
        None => (after_the_loss(&world), 0, true),
    };
    Left { world, report, alive, finished }
}

fn governor(program: &Program) -> Governor {
    let profile = Profile::default()
        .concurrency(program.concurrency)
        .delay(Duration::from_millis(program.delay))
        .pulse(Duration::from_millis(program.pulse));
    let mut builder = Governor::builder()
        .profile(profile)
        .seed(program.seed)
        .quiet(Duration::from_millis(30))
        .gate_timeout(Duration::from_millis(40))
        .max_hold(Duration::from_millis(20))
        .stuck_after(Duration::from_millis(10));
    if program.await_ready {
        builder = builder.await_ready();
    }
    if let Some(delay) = program.monkey {
        builder = builder.monkey(Monkey::random(Duration::from_millis(delay)));
    }
    builder.build().expect("the programs are valid")
}

async fn act(world: &Arc<World>, program: &Program) {
    let mut listeners = Vec::new();
    for act in &program.acts {
        match act {
            Act::Declare(declared) => world.declare(declared),
            Act::Sleep(millis) => sleep(Duration::from_millis(*millis)).await,
            Act::Demand(place) => {
                if let Some(handle) = world.handle(*place) {
                    drop(handle.demand());
                }
            }
            Act::GiveUp(place, millis) => {
                if let Some(handle) = world.handle(*place) {
                    let _ = timeout(Duration::from_millis(*millis), handle.demand()).await;
                }
            }
            Act::Cancel(place) => {
                if let Some(handle) = world.handle(*place) {
                    handle.cancel();
                }
            }
            Act::Ready => world.governor.ready(),
            Act::OpenGate => world.governor.open_gate(),
            Act::Report => drop(world.governor.report()),
            Act::Listen => listeners.push(world.governor.events()),
            Act::Snapshot => drop(world.governor.snapshot()),
        }
    }
}

/// None where the runtime is to go away in the middle.
async fn end(world: &Arc<World>, program: &Program) -> Option<(usize, bool)> {
    let mut finished = true;
    match program.ending {
        Ending::Background | Ending::Timeout | Ending::Drop => return None,
        Ending::Finished => {
            // Late tasks too, so the handles are asked and not the run.
            let patience = if program.endless { Duration::from_millis(60) } else { NEVER };
            let all = async {
                while let Some(handle) = unfinished(world) {
                    let _ = handle.wait().await;
                }
            };
            finished = timeout(patience, all).await.is_ok() || program.endless;
            world.governor.shutdown(Duration::from_millis(5)).await;
        }
        Ending::Shutdown(millis) => drop(world.governor.shutdown(Duration::from_millis(millis)).await),
        Ending::ShutdownTwice(millis) => {
            let _ = timeout(Duration::from_millis(millis), world.governor.shutdown(NEVER * 2)).await;
            world.governor.shutdown(Duration::from_millis(millis)).await;
        }
    }
    // Whoever is inside a poll, or blocks, may still return, and wake, spawn and declare.
    let metrics = tokio::runtime::Handle::current().metrics();
    let quiet = async {
        while metrics.num_alive_tasks() > 0 || world.bodies.load(std::sync::atomic::Ordering::SeqCst) > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    let _ = timeout(NEVER, quiet).await;
    Some((metrics.num_alive_tasks(), finished))
}

fn unfinished(world: &World) -> Option<afterboot::TaskHandle<()>> {
    world.handles.lock().unwrap().iter().find(|handle| !handle.is_finished()).cloned()
}

/// A poll that was in progress may still declare tasks: they resolve at once.
fn after_the_loss(world: &Arc<World>) -> Report {
    let elsewhere: Runtime = Builder::new_current_thread().enable_time().build().expect("a thread");
    elsewhere.block_on(async {
        let all = async {
            while let Some(handle) = unfinished(world) {
                let _ = handle.wait().await;
            }
            while world.bodies.load(std::sync::atomic::Ordering::SeqCst) > 0 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = timeout(NEVER, all).await;
    });
    world.governor.report().current()
}
