//! A boot whose tasks are retried, and whose failures are reported home at most once in eight days.
//!
//! `cargo run --example report_failed_boot --features retry` twice: the first run reports, the second keeps silent. The day
//! of the last report is kept in the folder for temporary files; real programs use a folder of their own.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use afterboot::retry::{BackoffPolicy, Limits, ReportDecision, ReportThrottle, RetryPolicy};
use afterboot::{Governor, Outcome, Report, Task};

/// A server that is down for the first two calls, and another that stays down.
fn flaky() -> impl FnMut() -> std::future::Ready<Result<&'static str, String>> + Send {
    let mut calls = 0;
    move || {
        calls += 1;
        std::future::ready(if calls > 2 {
            Ok("licence valid")
        } else {
            Err(format!("call {calls}: no answer"))
        })
    }
}

/// What a report home would carry: the tasks that gave no value though they ran.
fn failures(report: &Report) -> Vec<String> {
    let failed = report.tasks.iter().filter(|task| matches!(task.outcome, Some(Outcome::Failed(_))));
    failed.map(|task| format!("{} after {} attempts", task.name, task.attempts)).collect()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // A boot should know soon: quick waits, three retries, each attempt at most two seconds.
    let backoff = BackoffPolicy::builder().max_delay(Duration::from_millis(600)).build()?;
    let policy = RetryPolicy::from(backoff).limits(Limits::default().max_retries(3));

    let governor = Governor::builder().name("failing boot").build()?;
    governor.govern(
        Task::retryable("licence check", flaky(), policy.clone()).attempt_timeout(Duration::from_secs(2)),
    );
    governor.govern(Task::retryable("telemetry", || async { Err::<(), _>("connection refused") }, policy));
    let report = governor.report().finished().await;
    println!("{report}\n");

    let throttle = ReportThrottle::builder(std::env::temp_dir().join("afterboot-example-last-report"))
        .every_days(8)
        .origins([env!("CARGO_CRATE_NAME")])
        .build_name(env!("CARGO_PKG_VERSION"))
        .channel("example")
        .build()?;
    match throttle.should_report(module_path!()) {
        ReportDecision::Report(stamp) => println!("reported on day {}: {:?}", stamp.today, failures(&report)),
        ReportDecision::Silent(why) => println!("kept silent ({why:?}): {:?}", failures(&report)),
    }
    Ok(())
}
