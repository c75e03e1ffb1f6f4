//! An event loop with `Rc` state keeps its frame rate while it boots.
//!
//! A single-threaded application draws a frame every 16 ms and has ten side tasks of about 60 ms CPU each to do
//! before it is complete. They share its state, so they are not `Send`. Naively they are all spawned at once; governed,
//! each gets its tick, and they give it back every few milliseconds. Printed: how late the frames came.
//!
//! `cargo run --release --example local_ui`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use afterboot::{Governor, LocalTask, yield_if_due};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, MissedTickBehavior, interval};

const FRAME: Duration = Duration::from_millis(16);
const TASKS: u64 = 10;

/// What the side tasks fill and the frames show; no lock, no `Send`.
#[derive(Default)]
struct Ui {
    words: BTreeMap<u64, u64>,
    frames: u64,
}

type State = Rc<RefCell<Ui>>;

/// A side task: counts how long the Collatz sequences of a range are. A polite one gives its tick back now and then, and
/// borrows the state only in between.
async fn analyse(state: State, part: u64, polite: bool) {
    for block in 0..300 {
        let mut longest = 0;
        for start in (part * 600_000 + block * 2_000)..(part * 600_000 + (block + 1) * 2_000) {
            let (mut n, mut steps) = (start.max(1), 0);
            while n != 1 {
                n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
                steps += 1;
            }
            longest = longest.max(steps);
        }
        *state.borrow_mut().words.entry(longest).or_default() += 1;
        if polite {
            yield_if_due().await;
        }
    }
}

/// Draws until told to stop; gives how late each frame was.
async fn draw(state: State, done: Rc<RefCell<bool>>) -> Vec<Duration> {
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut late = Vec::new();
    while !*done.borrow() {
        let due = frames.tick().await;
        late.push(Instant::now() - due);
        state.borrow_mut().frames += 1;
    }
    late
}

#[derive(Clone, Copy)]
enum Boot {
    Naive,
    Governed,
}

async fn run(boot: Boot) -> Result<(Vec<Duration>, Duration), Box<dyn std::error::Error>> {
    let state = State::default();
    let done = Rc::new(RefCell::new(false));
    let drawing = spawn_local(draw(Rc::clone(&state), Rc::clone(&done)));
    tokio::time::sleep(FRAME * 3).await;
    let began = Instant::now();
    match boot {
        Boot::Naive => {
            // What one writes without a governor: every task at once, each to its end.
            let tasks: Vec<_> =
                (0..TASKS).map(|part| spawn_local(analyse(Rc::clone(&state), part, false))).collect();
            for task in tasks {
                task.await?;
            }
        }
        Boot::Governed => {
            let governor = Governor::builder().build_local()?;
            for part in 0..TASKS {
                let state = Rc::clone(&state);
                governor.govern(LocalTask::new(format!("part {part}"), move || analyse(state, part, true)));
            }
            let report = governor.as_send().report().finished().await;
            println!("{report}\n");
        }
    }
    let took = began.elapsed();
    *done.borrow_mut() = true;
    Ok((drawing.await?, took))
}

fn show(name: &str, mut late: Vec<Duration>, took: Duration) {
    late.sort_unstable();
    let at = |share: usize| late[((late.len() - 1) * share).div_ceil(100)].as_secs_f64() * 1e3;
    let missed = late.iter().filter(|late| **late > FRAME).count();
    println!(
        "{name:<9} {:>4} frames  late by p50 {:>6.1} ms  p99 {:>6.1} ms  max {:>6.1} ms  more than a frame {missed:>3}  boot {:>5} ms",
        late.len(),
        at(50),
        at(99),
        at(100),
        took.as_millis()
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    LocalSet::new()
        .run_until(async {
            let governed = run(Boot::Governed).await?;
            let naive = run(Boot::Naive).await?;
            show("naive", naive.0, naive.1);
            show("governed", governed.0, governed.1);
            Ok(())
        })
        .await
}
