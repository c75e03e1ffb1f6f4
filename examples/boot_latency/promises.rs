//! What the governed rows must show beside the others, judged on the figures of this very run.

use crate::figures::Figures;
use crate::options::Options;
use crate::output::{Row, find};
use crate::round::Flavor;
use crate::strategy::Strategy;
use crate::tasks::Block;

/// With nothing running, a p99 beyond this says that the machine was busy with something else.
const BUSY_MS: f64 = 1.0;

/// One line a promise: kept or missed, and by which figures.
pub(crate) fn judge(rows: &[Row], options: &Options) -> Vec<String> {
    if options.tuned {
        return vec!["not judged: the promises are about the default profile without a monkey".into()];
    }
    if options.synthetic == Some(Block::Burn) {
        return vec!["not judged: with --block burn the machine's spare cores are measured as well".into()];
    }
    let mut lines = Vec::new();
    for flavor in Flavor::BOTH {
        let figures = |strategy| find(rows, flavor, strategy);
        if let Some(p99) = figures(Strategy::Nothing).and_then(|f| f.p99_ms).filter(|p99| *p99 > BUSY_MS) {
            lines.push(format!(
                "void    {flavor}: the machine is busy: nothing has p99 {p99:.2} ms > {BUSY_MS} ms"
            ));
        }
        let judged = match (options.synthetic, flavor) {
            (Some(_), Flavor::CurrentThread) => one_worker(&figures),
            (Some(_), Flavor::MultiThread) => two_workers(&figures),
            (None, _) => real(&figures),
        };
        for (claim, value, limit) in judged.unwrap_or_default() {
            let verdict = if value <= limit { "kept  " } else { "MISSED" };
            lines.push(format!("{verdict}  {flavor}: {claim}: {value:.2}, at most {limit:.2}"));
        }
    }
    lines
}

/// A claim, its value, and what it may be at most.
type Judged = Option<Vec<(&'static str, f64, f64)>>;

fn one_worker<'a>(figures: &dyn Fn(Strategy) -> Option<&'a Figures>) -> Judged {
    let governed = figures(Strategy::Governed)?;
    let p99 = governed.p99_ms?;
    Some(vec![
        ("p99 governed / longest poll", p99 / governed.longest_poll_ms?, 1.1),
        ("p99 governed / spawn_all", p99 / figures(Strategy::SpawnAll)?.p99_ms?, 1.0 / 8.0),
        ("finish governed / join_all", governed.boot_ms? / figures(Strategy::JoinAll)?.boot_ms?, 1.05),
    ])
}

fn two_workers<'a>(figures: &dyn Fn(Strategy) -> Option<&'a Figures>) -> Judged {
    let p99 = figures(Strategy::Governed)?.p99_ms?;
    let nothing = figures(Strategy::Nothing)?.p99_ms?;
    let join_all = figures(Strategy::JoinAll)?.p99_ms?;
    Some(vec![
        ("p99 governed, ms, by nothing", p99, f64::max(3.0 * nothing, nothing + 1.0)),
        ("p99 governed, ms, by spawn_all", p99, figures(Strategy::SpawnAll)?.p99_ms? / 50.0),
        ("p99 governed, ms, by join_all", p99, f64::max(2.0 * join_all, join_all + 1.0)),
    ])
}

fn real<'a>(figures: &dyn Fn(Strategy) -> Option<&'a Figures>) -> Judged {
    let governed = figures(Strategy::Governed)?;
    let mut judged = Vec::new();
    for (strategy, p99, slow) in [
        (Strategy::SpawnAll, "p99 governed, ms, by spawn_all", "over 50 ms governed, by spawn_all"),
        (Strategy::Semaphore, "p99 governed, ms, by semaphore", "over 50 ms governed, by semaphore"),
    ] {
        let rival = figures(strategy)?;
        judged.push((p99, governed.p99_ms?, rival.p99_ms?.next_down()));
        judged.push((slow, governed.over_50ms, rival.over_50ms));
    }
    Some(judged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options;

    fn row(flavor: Flavor, strategy: Strategy, p99_ms: f64) -> Row {
        let figures = Figures {
            p50_ms: Some(p99_ms),
            p99_ms: Some(p99_ms),
            max_ms: Some(p99_ms),
            over_50ms: 0.0,
            longest_poll_ms: Some(60.0),
            boot_ms: Some(600.0),
            idle_start_ms: None,
            idle_finish_ms: None,
            tasks: 10,
            requests: 300,
        };
        Row { flavor, strategy, figures }
    }

    fn options(line: &str) -> Options {
        match options::parse(line.split(' ').map(str::to_owned)) {
            Ok(options::Command::Run(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_governor_no_better_than_spawn_all_has_missed() {
        let rows = [Strategy::Nothing, Strategy::JoinAll, Strategy::SpawnAll, Strategy::Governed]
            .map(|strategy| row(Flavor::CurrentThread, strategy, 0.9));
        let lines = judge(&rows, &options("--synthetic"));
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("MISSED") && lines[1].contains("spawn_all"), "{}", lines[1]);
    }

    #[test]
    fn a_busy_machine_makes_the_run_void() {
        let lines = judge(&[row(Flavor::MultiThread, Strategy::Nothing, 1.2)], &options("--synthetic"));
        assert!(lines[0].starts_with("void"), "{lines:?}");
    }

    #[test]
    fn only_the_defaults_are_judged() {
        let rows = [row(Flavor::CurrentThread, Strategy::Governed, 0.9)];
        for line in ["--synthetic --block burn", "--profile concurrency=1", "--monkey #0"] {
            assert!(judge(&rows, &options(line))[0].starts_with("not judged"), "{line}");
        }
    }
}
