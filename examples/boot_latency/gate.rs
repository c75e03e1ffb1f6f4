//! Does the governor's own work keep its gate shut, or hold an idle start? Boots without requests, one after the other,
//! beside a control thread that only sleeps and so tells what the machine itself took.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use afterboot::{GateState, OpenedBy, Report};

use crate::{Failure, clock};

/// How late the gate may open after a whole quiet window.
const LATE: Duration = Duration::from_millis(20);
/// A run in which the control thread lost this much says more about the machine than about the governor: it is repeated.
const LOST: Duration = Duration::from_millis(10);

/// Boots until `runs` of them had the machine's time, and fails where one of those is not as promised. No more runs are
/// repeated than count.
pub(crate) fn check(runs: usize, boot: impl Fn() -> Result<Report, Failure>) -> Result<String, Failure> {
    let (mut opened, mut repeated) = (Vec::new(), 0);
    while opened.len() < runs {
        let (report, lost) = beside_control(&boot);
        let report = report?;
        let late = judge(&report);
        if lost >= LOST && late.is_err() {
            repeated += 1;
            if repeated > runs {
                return Err(
                    format!("the machine took {LOST:?} from a sleeping thread in {repeated} runs").into()
                );
            }
            continue;
        }
        opened.push(late.map_err(|why| format!("run {}: {why}\n\n{report}", opened.len() + 1))?);
    }
    opened.sort_unstable();
    Ok(format!(
        "{runs} boots, {repeated} more repeated: no long task, no hold; the gate opened {:.1} ms after the quiet window \
         (median; {:.1} to {:.1})",
        clock::millis(opened[runs / 2]),
        clock::millis(opened[0]),
        clock::millis(opened[runs - 1])
    ))
}

/// How long after the quiet window the gate opened, or what was not as promised.
fn judge(report: &Report) -> Result<Duration, String> {
    if let Some(long) = report.long_tasks.first() {
        return Err(format!("a long task of {:?} by {}", long.length, long.culprit()));
    }
    if let Some(hold) = report.holds.first() {
        return Err(format!("{} was held by {}", hold.task, hold.why));
    }
    let (GateState::Open { by: OpenedBy::Quiet, at, .. }, Some(ready)) = (&report.gate, report.ready) else {
        return Err(format!("the gate: {}", report.gate));
    };
    let late = at.saturating_sub(ready + report.gate_rules.quiet);
    if late > LATE {
        return Err(format!("the gate opened {late:?} after the quiet window"));
    }
    Ok(late)
}

/// The report, and how late a sleeping thread was at most.
fn beside_control(boot: impl Fn() -> Result<Report, Failure>) -> (Result<Report, Failure>, Duration) {
    const NAP: Duration = Duration::from_millis(1);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let control = scope.spawn(|| {
            let mut lost = Duration::ZERO;
            while !over.load(Relaxed) {
                let begun = clock::now();
                clock::hold(NAP);
                lost = lost.max(begun.elapsed().saturating_sub(NAP));
            }
            lost
        });
        let report = boot();
        over.store(true, Relaxed);
        (report, control.join().unwrap_or(Duration::MAX))
    })
}
