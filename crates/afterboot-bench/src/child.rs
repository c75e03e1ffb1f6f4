//! A process that measures one client and says what it found, a line of JSON a phase.

use std::io::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::args::{Args, Mode, Outcome};
use crate::clients;
use crate::event::Checkout;
use crate::measure;

/// How long a client may take to deliver what is queued, where it can be told.
const PATIENCE: Duration = Duration::from_secs(50);
/// The same where nobody answers.
const PATIENCE_HUNG: Duration = Duration::from_secs(5);

/// Enough to see the slope, and so few that every client's default limits hold them.
const HEAP_FROM: u32 = 200;
const HEAP_TO: u32 = 1_000;
/// Threads that take events over do so in this time.
const SETTLE: Duration = Duration::from_millis(400);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Phase {
    Enqueued(Enqueued),
    Finished(Finished),
    Heap(Heap),
    Saved(Saved),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Enqueued {
    pub(crate) p50_ns: u32,
    pub(crate) p99_ns: u32,
    pub(crate) per_second: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Finished {
    pub(crate) seconds: f64,
    /// From before the first event to here.
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_kib: u64,
    /// What the client tells its caller of how it went.
    pub(crate) told: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Heap {
    /// Of a client that was built and has no event.
    pub(crate) idle: i64,
    pub(crate) per_event: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) wakeups: u64,
    pub(crate) cpu_seconds: f64,
    pub(crate) seconds: f64,
}

pub(crate) fn say(phase: &Phase) -> Outcome {
    let mut line = serde_json::to_string(phase)?;
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Calls `post` for each event: at once, or evenly at the rate.
pub(crate) fn paced(events: u32, rate: Option<u32>, mut post: impl FnMut(u32)) {
    let begin = measure::now();
    for n in 0..events {
        if let Some(rate) = rate {
            let due = Duration::from_secs_f64(f64::from(n) / f64::from(rate));
            let ahead = due.saturating_sub(begin.elapsed());
            // A sleep a millisecond at most: at a high rate several events share one.
            if ahead >= Duration::from_millis(1) {
                measure::pause(ahead);
            }
        }
        post(n);
    }
}

pub(crate) fn measure(args: &Args) -> Outcome {
    let mut client = clients::build(args.one_client()?, &args.url, patience(args.mode))?;
    let mut took = Vec::with_capacity(args.events as usize);
    let cpu = measure::cpu();
    let begin = measure::now();
    paced(args.events, args.rate, |n| {
        let event = Checkout::new(n);
        let before = measure::now();
        client.post(&event);
        took.push(u32::try_from(before.elapsed().as_nanos()).unwrap_or(u32::MAX));
    });
    let per_second = f64::from(args.events) / begin.elapsed().as_secs_f64();
    let end = measure::now();
    took.sort_unstable();
    let enqueued = Enqueued {
        p50_ns: measure::percentile(&took, 0.5),
        p99_ns: measure::percentile(&took, 0.99),
        per_second,
    };
    say(&Phase::Enqueued(enqueued))?;
    let told = client.finish(patience(args.mode));
    say(&Phase::Finished(Finished {
        seconds: end.elapsed().as_secs_f64(),
        cpu_seconds: (measure::cpu() - cpu).as_secs_f64(),
        peak_kib: measure::peak_kib(),
        told,
    }))
}

fn patience(mode: Mode) -> Duration {
    match mode {
        Mode::Ok => PATIENCE,
        Mode::Hung => PATIENCE_HUNG,
    }
}

/// Against a sink that does not answer: what is posted stays.
pub(crate) fn heap(args: &Args) -> Outcome {
    let before = measure::heap();
    let mut client = clients::build(args.one_client()?, &args.url, PATIENCE_HUNG)?;
    measure::pause(SETTLE);
    let idle = measure::heap() - before;
    let mut after = |events: std::ops::Range<u32>| {
        for n in events {
            client.post(&Checkout::new(n));
        }
        measure::pause(SETTLE);
        measure::heap()
    };
    let few = after(0..HEAP_FROM);
    let many = after(HEAP_FROM..HEAP_TO);
    let per_event = (many - few) as f64 / f64::from(HEAP_TO - HEAP_FROM);
    say(&Phase::Heap(Heap { idle, per_event }))?;
    // Nobody answers: to end the client in order would take as long as it has patience.
    std::process::exit(0);
}
