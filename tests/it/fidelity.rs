//! How near replays come to real runs: the figures under "What if" in `DESIGN.md`.
//!
//! ```text
//! cargo test --release --features replay --test it replays_come_this_near -- --ignored --nocapture
//! ```

use std::sync::Mutex;

use afterboot::{Replay, Report};

use crate::replay::{Planning, order, run};

const SEEDS: std::ops::Range<u64> = 1000..1040;
const RUNS: usize = 3;

/// How far the ends of two runs are apart, in percent of the first, and whether their orders are the same.
type Apart = (f64, bool);

fn apart(was: &Report, is: &Replay) -> Apart {
    let (was_end, is_end) = (was.last_finish.unwrap().as_secs_f64(), is.last_finish.unwrap().as_secs_f64());
    ((is_end - was_end).abs() / was_end * 100.0, is.start_order == order(was))
}

/// All runs at this concurrency, those of one program together; several at once, as they only sleep.
fn runs_at(concurrency: usize) -> Vec<Vec<Report>> {
    let seeds = Mutex::new(SEEDS);
    let runs = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(seed) = { seeds.lock().unwrap().next() } {
                    let mut planning = Planning::of(seed);
                    planning.profile = planning.profile.concurrency(concurrency);
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    let reports = (0..RUNS).map(|_| runtime.block_on(run(&planning))).collect::<Vec<_>>();
                    runs.lock().unwrap().push((seed, reports));
                }
            });
        }
    });
    let mut runs = runs.into_inner().unwrap();
    runs.sort_by_key(|(seed, _)| *seed);
    runs.into_iter().map(|(_, reports)| reports).collect()
}

#[expect(clippy::print_stderr, reason = "a measurement's result")]
fn print(what: &str, mut pairs: Vec<Apart>) {
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let at = |part: f64| pairs[((pairs.len() - 1) as f64 * part) as usize].0;
    let near = pairs.iter().filter(|(off, _)| *off <= 5.0).count();
    let same = pairs.iter().filter(|(_, same)| *same).count();
    eprintln!(
        "{what}: {} pairs; ends differ by {:.2} % (median), {:.2} % (90 % of them), {:.1} % (largest); {near} within 5 %; {same} of \
         the same order",
        pairs.len(),
        at(0.5),
        at(0.9),
        at(1.0),
    );
}

fn pairs<'a>(
    from: &'a [Vec<Report>],
    to: &'a [Vec<Report>],
) -> impl Iterator<Item = (&'a Report, &'a Report)> {
    from.iter()
        .zip(to)
        .flat_map(|(from, to)| from.iter().flat_map(move |one| to.iter().map(move |other| (one, other))))
}

#[test]
#[ignore = "a measurement in real time: for a machine that does nothing else"]
fn replays_come_this_near() {
    let runs = [1, 3].map(|concurrency| (concurrency, runs_at(concurrency)));
    for (from, recorded) in &runs {
        for (to, real) in &runs {
            let replayed = |(one, other): (&Report, &Report)| {
                apart(other, &one.replay(&other.profile.parse().unwrap()).unwrap())
            };
            if from == to {
                let own = recorded.iter().flatten().map(|report| replayed((report, report)));
                print(&format!("recorded at {from}, played as it was"), own.collect());
            } else {
                let estimates = pairs(recorded, real).map(replayed);
                print(&format!("recorded at {from}, estimated for {to}"), estimates.collect());
            }
        }
    }
    for (concurrency, real) in &runs {
        let others = pairs(real, real).filter(|(one, other)| !std::ptr::eq(*one, *other));
        let between = others.map(|(one, other)| {
            let (one_end, other_end) = (one.last_finish.unwrap(), other.last_finish.unwrap());
            let off = one_end.abs_diff(other_end).as_secs_f64() / one_end.as_secs_f64() * 100.0;
            (off, order(one) == order(other))
        });
        print(&format!("real runs at {concurrency}, one beside the other"), between.collect());
    }
}
