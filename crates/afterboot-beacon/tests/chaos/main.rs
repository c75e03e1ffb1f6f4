//! Chaos: random programs of posts of every kind, users, checkpoints, jumps of the clock, and faults of the network, the disk,
//! the wall clock and the threads, over a whole beacon with its real spool, and over the next one that finds what it left; each with a deadline.
//! `world.rs` says what must hold.
//!
//! ```sh
//! cargo test -p afterboot-beacon --test chaos                                          # the committed seeds, and some
//! AFTERBOOT_CHAOS=0..20000 cargo test --release -p afterboot-beacon --test chaos       # more
//! AFTERBOOT_CHAOS=1234 cargo test -p afterboot-beacon --test chaos -- --nocapture      # one, and its program
//! ```
//!
//! The clock is tokio's, paused; the disk's thread is real, so a seed repeats the program and nearly its timing.

mod random;
mod program;
mod server;
mod world;

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

use crate::program::Program;

/// What is run where nothing else is asked for.
const SEEDS: Range<u64> = 0..40;

/// Seeds that failed once.
const COMMITTED: &[u64] = &[136, 155];

/// No program comes near it unless it hangs: one that spins keeps virtual time where it is.
const DEADLINE: Duration = Duration::from_secs(120);

const THREADS: usize = 4;

/// B1, B2, B6, B8, B16, B18, B23, B25, B28, B29, B31, B32
#[test]
fn every_law_holds_in_every_program() {
    let asked = std::env::var("AFTERBOOT_CHAOS").ok();
    let seeds =
        asked.as_deref().map_or(SEEDS, |text| range(text).expect("AFTERBOOT_CHAOS: a seed, or from..to"));
    if seeds.end - seeds.start == 1 {
        describe(seeds.start);
    }
    let failures = run_all(COMMITTED.iter().copied().chain(seeds).collect());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn range(text: &str) -> Option<Range<u64>> {
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (from.parse().ok()?, to.parse().ok()?),
        None => (text.parse().ok()?, text.parse::<u64>().ok()?.checked_add(1)?),
    };
    (from < to).then_some(from..to)
}

#[expect(clippy::print_stderr, reason = "somebody replays one seed and wants to see what it does")]
fn describe(seed: u64) {
    eprintln!("{:#?}", Program::of(seed));
}

fn check(seed: u64) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| world::run(&Program::of(seed)))).map_err(|panic| text(&*panic))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

/// Runs each on one of the threads; stops at a handful of failures, or at the first that hangs.
fn run_all(seeds: Vec<u64>) -> Vec<String> {
    let seeds = Arc::new(seeds);
    let next = Arc::new(AtomicUsize::new(0));
    let running = Arc::new(Mutex::new(BTreeMap::new()));
    let (report, reports) = mpsc::channel::<(u64, Result<(), String>)>();
    for _ in 0..THREADS {
        let (seeds, next, running) = (Arc::clone(&seeds), Arc::clone(&next), Arc::clone(&running));
        let report = report.clone();
        thread::spawn(move || {
            while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
                running.lock().unwrap().insert(seed, Instant::now());
                let verdict = check(seed);
                running.lock().unwrap().remove(&seed);
                if report.send((seed, verdict)).is_err() {
                    return;
                }
            }
        });
    }
    drop(report);
    let mut failures = Vec::new();
    while failures.len() < 5 {
        match reports.recv_timeout(Duration::from_secs(1)) {
            Ok((_, Ok(()))) => {}
            Ok((seed, Err(why))) => failures.push(format!("seed {seed}: {why}\n  {}", replay(seed))),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let running = running.lock().unwrap();
                let hangs = running.iter().filter(|(_, since)| since.elapsed() > DEADLINE);
                failures.extend(hangs.map(|(seed, _)| format!("seed {seed}: it hangs\n  {}", replay(*seed))));
                if !failures.is_empty() {
                    break;
                }
            }
        }
    }
    failures
}

fn replay(seed: u64) -> String {
    format!(
        "AFTERBOOT_CHAOS={seed} cargo test -p afterboot-beacon --test chaos -- --nocapture; then add it to COMMITTED"
    )
}
