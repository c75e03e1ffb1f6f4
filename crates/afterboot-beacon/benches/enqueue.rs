//! What a post costs, beside the floor and at any depth of the queue. Ratios within one run count, not the nanoseconds:
//! `cargo bench -p afterboot-beacon --bench enqueue`. Rounds are interleaved, figures are medians of rounds, and each
//! round asserts that every event is where it should be. Fails where a promise is missed.
#![expect(clippy::print_stdout, reason = "a program's results")]

#[path = "../tests/support/server.rs"]
#[expect(dead_code, reason = "shared with the tests, which ask it more")]
mod collector;
#[path = "floor/mod.rs"]
mod floor;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use afterboot_beacon::Beacon;
use afterboot_beacon::testing::ScriptedTransport;

use crate::collector::{Mode, Server};
use crate::floor::{DATA, EVENT, Floor, Times, USER, instant};

/// How much is measured.
struct Size {
    rounds: usize,
    events: usize,
    depths: &'static [usize],
    judged: bool,
}

const FULL: Size =
    Size { rounds: 9, events: 100_000, depths: &[1_000, 10_000, 100_000, 1_000_000], judged: true };
/// Without `--bench`, as `cargo test --benches` runs it: does it work?
const TRIAL: Size = Size { rounds: 1, events: 2_000, depths: &[1_000, 10_000], judged: false };

/// p50 of a post beside p50 of the floor.
const PROMISED: f64 = 1.25;
/// p50 at the deepest queue beside p50 at the shallowest.
const FLAT: f64 = 1.3;
/// So many posts are timed at a depth.
const WINDOW: usize = 1_000;

fn main() -> ExitCode {
    let size = if std::env::args().any(|arg| arg == "--bench") { FULL } else { TRIAL };
    let kept = [beside_the_floor(&size), at_depths(&size)];
    if size.judged && kept.contains(&false) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Without a server nothing ever leaves.
fn beacon(server: Option<&Server>) -> Beacon {
    let builder = Beacon::builder("shop").user(USER).max_events(2_000_000).max_bytes(1 << 30);
    let builder = match server {
        Some(server) => builder.endpoint(&server.url()),
        None => builder.transport(ScriptedTransport::accepting()),
    };
    let beacon = builder.build().expect("a valid configuration");
    if server.is_none() {
        beacon.notify_offline();
    }
    beacon
}

#[derive(Clone, Copy)]
enum How {
    Basic,
    Vital,
    Merged,
}

fn post(beacon: &Beacon, how: How, seq: u64) {
    let post = beacon.post(EVENT, &DATA);
    match how {
        How::Basic => drop(post),
        How::Vital => drop(post.vital()),
        How::Merged => drop(post.merge_by(KEYS[seq as usize % KEYS.len()])),
    }
}

const KEYS: [&str; 4] = ["search box", "basket", "scroll", "volume"];

fn timed(times: &mut Vec<u64>, mut act: impl FnMut(u64)) {
    for seq in 0..times.capacity() as u64 {
        let begun = instant();
        act(seq);
        times.push(begun.elapsed().as_nanos() as u64);
    }
}

struct Row {
    name: &'static str,
    offline: bool,
    how: How,
    threads: usize,
}

const ROWS: [Row; 6] = [
    Row { name: "post, nothing leaves", offline: true, how: How::Basic, threads: 1 },
    Row { name: "post, a server acks meanwhile", offline: false, how: How::Basic, threads: 1 },
    Row { name: "post().vital()", offline: true, how: How::Vital, threads: 1 },
    Row { name: "post().merge_by(one of 4 keys)", offline: true, how: How::Merged, threads: 1 },
    Row { name: "post, 2 threads", offline: true, how: How::Basic, threads: 2 },
    Row { name: "post, 4 threads", offline: true, how: How::Basic, threads: 4 },
];

fn floor_round(events: usize, threads: usize) -> (Times, f64) {
    let floor = Arc::new(Floor::default());
    let each = events / threads;
    let mut times = on_threads(threads, each, {
        let floor = Arc::clone(&floor);
        move |times| {
            for seq in 0..each as u64 {
                times.push(floor.post(seq, &DATA).as_nanos() as u64);
            }
        }
    });
    assert_eq!(floor.events(), (each * threads) as u64);
    (Times::of(&mut times), floor.bytes_per_event())
}

fn round(row: &Row, events: usize) -> Times {
    let server = (!row.offline).then(|| Server::start(Mode::Ok));
    let beacon = beacon(server.as_ref());
    let each = events / row.threads;
    let (how, posting) = (row.how, beacon.clone());
    let mut times = on_threads(row.threads, each, move |times| timed(times, |seq| post(&posting, how, seq)));
    let posted = (each * row.threads) as u64;
    if let Some(server) = &server {
        let flushed = beacon.flush_blocking(Duration::from_secs(60));
        assert!(flushed.complete, "{flushed:?}");
        assert_eq!(flushed.counters.acked, posted);
        assert_eq!(server.look(|ledger| ledger.accepted.len()) as u64, posted);
    }
    let counters = beacon.counters();
    assert!(counters.balances(), "{counters:?}");
    assert_eq!(counters.posted, posted);
    assert_eq!(counters.dropped_in_all(), 0);
    let merged = counters.merged > 0;
    assert_eq!(merged, matches!(how, How::Merged), "{counters:?}");
    // There is nothing to save: the next round should not wait for it.
    drop(beacon.shutdown_blocking(Duration::ZERO));
    Times::of(&mut times)
}

/// Begun together, so that they are in each other's way from the first event on.
fn on_threads(
    threads: usize,
    each: usize,
    work: impl Fn(&mut Vec<u64>) + Clone + Send + 'static,
) -> Vec<u64> {
    if threads == 1 {
        let mut times = Vec::with_capacity(each);
        work(&mut times);
        return times;
    }
    let go = Arc::new(AtomicBool::new(false));
    let working: Vec<_> = (0..threads)
        .map(|_| {
            let (work, go) = (work.clone(), Arc::clone(&go));
            thread::spawn(move || {
                let mut times = Vec::with_capacity(each);
                while !go.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                work(&mut times);
                times
            })
        })
        .collect();
    go.store(true, Ordering::Release);
    working.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
}

fn beside_the_floor(size: &Size) -> bool {
    let threads = [1, 2, 4];
    let mut floors: Vec<Vec<Times>> = vec![Vec::new(); threads.len()];
    let mut rows: Vec<Vec<Times>> = vec![Vec::new(); ROWS.len()];
    let mut bytes = 0.0;
    for _ in 0..size.rounds {
        for (row, times) in ROWS.iter().zip(&mut rows) {
            if let Some(at) = threads.iter().position(|&of_floor| of_floor == row.threads) {
                let (floor, of_event) = floor_round(size.events, row.threads);
                floors[at].push(floor);
                bytes = of_event;
            }
            times.push(round(row, size.events));
        }
    }
    println!("{} events a round, medians of {} rounds; ns a post\n", size.events, size.rounds);
    println!("{:<38} {:>7} {:>7} {:>7} {:>11}", "", "p50", "p99", "mean", "p50 / floor");
    let floors: Vec<Times> = floors.iter().map(|rounds| Times::median(rounds)).collect();
    for (floor, threads) in floors.iter().zip(threads) {
        line(&format!("floor, {threads} thread(s)"), *floor, None);
    }
    let mut promised = f64::INFINITY;
    for (at, (row, rounds)) in ROWS.iter().zip(&rows).enumerate() {
        let times = Times::median(rounds);
        let floor = threads.iter().position(|&threads| threads == row.threads).map(|at| floors[at].p50);
        let ratio = floor.map(|floor| times.p50 / floor);
        line(row.name, times, ratio);
        if at == 0 {
            promised = ratio.unwrap_or(promised);
        }
    }
    println!("\nthe floor's queue takes {bytes:.0} bytes an event");
    judge(size, promised, PROMISED, "p50 of a post beside the floor's")
}

fn line(name: &str, times: Times, ratio: Option<f64>) {
    let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
    println!("{name:<38} {:>7.0} {:>7.0} {:>7.0} {ratio:>11}", times.p50, times.p99, times.mean);
}

fn at_depths(size: &Size) -> bool {
    let mut rounds: Vec<Vec<Times>> = vec![Vec::new(); size.depths.len()];
    for _ in 0..size.rounds {
        let beacon = beacon(None);
        let mut queued = 0;
        for (&depth, rounds) in size.depths.iter().zip(&mut rounds) {
            for seq in queued..depth {
                post(&beacon, How::Basic, seq as u64);
            }
            let mut times = Vec::with_capacity(WINDOW);
            timed(&mut times, |seq| post(&beacon, How::Basic, seq));
            queued = depth + WINDOW;
            assert_eq!(beacon.counters().queued, queued as u64);
            rounds.push(Times::of(&mut times));
        }
        drop(beacon.shutdown_blocking(Duration::ZERO));
    }
    println!("\n{:<38} {:>7} {:>7} {:>7} {:>11}", "queued already", "p50", "p99", "mean", "p50 / first");
    let medians: Vec<Times> = rounds.iter().map(|rounds| Times::median(rounds)).collect();
    for (depth, times) in size.depths.iter().zip(&medians) {
        line(&depth.to_string(), *times, Some(times.p50 / medians[0].p50));
    }
    println!();
    let deepest = medians.last().map_or(f64::INFINITY, |times| times.p50);
    judge(size, deepest / medians[0].p50, FLAT, "p50 at the deepest queue beside the shallowest")
}

fn judge(size: &Size, ratio: f64, at_most: f64, what: &str) -> bool {
    let kept = ratio <= at_most;
    let verdict = match (size.judged, kept) {
        (false, _) => "not judged: a trial",
        (true, true) => "kept",
        (true, false) => "MISSED",
    };
    println!("{what}: {ratio:.2}, promised {at_most}: {verdict}");
    kept
}
