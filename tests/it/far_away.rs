//! The longest duration that can be said, given to everything that takes one: refused by the field's name, or it runs
//! and is far away.

use std::future::pending;
use std::time::Duration;

use afterboot::{Builder, Governor, LocalTask, Monkey, Profile, Report, Task};
use tokio::time::sleep;

use crate::common::{fast, ms, secs, within};

const MAX: Duration = Duration::MAX;

/// I21, I12: a gate opens some day.
#[tokio::test(start_paused = true)]
async fn the_longest_time_for_a_gate_to_stay_shut_is_refused_by_its_name() {
    for (field, builder) in
        [("gate_timeout", Governor::builder().gate_timeout(MAX)), ("quiet", Governor::builder().quiet(MAX))]
    {
        let error = builder.build().unwrap_err().to_string();
        let named = error.lines().any(|line| line.starts_with(&format!("{field}: {MAX:?}; allowed: ")));
        assert!(named, "{error}");
    }
}

/// I9, I21: what rests for ever starts when somebody needs it.
#[tokio::test(start_paused = true)]
async fn the_longest_duration_in_a_setting_of_the_builder_runs_a_boot_to_its_end() {
    let profile = |profile: Profile| Governor::builder().profile(profile);
    let read_back = |profile: Profile| profile.to_string().parse().unwrap();
    let settings: [(&str, Builder); 9] = [
        ("delay", profile(Profile::default().delay(MAX))),
        ("pulse", profile(Profile::default().pulse(MAX))),
        ("random monkey", Governor::builder().monkey(Monkey::random(MAX)).seed(1)),
        ("monkey by name", Governor::builder().monkey(Monkey::task("normal", MAX))),
        ("monkey by index", Governor::builder().monkey(Monkey::index(1, MAX))),
        ("monkey in text", profile(read_back(Profile::default().monkey(Monkey::index(1, MAX))))),
        ("resume_quiet", Governor::builder().resume_quiet(MAX)),
        ("max_hold", Governor::builder().resume_quiet(MAX).max_hold(MAX)),
        ("stuck_after", Governor::builder().stuck_after(MAX)),
    ];
    for (setting, builder) in settings {
        let governor = builder.record_segments().build().unwrap();
        let normal = governor.govern(Task::new("normal", || sleep(secs(1))));
        let idle = governor.govern(Task::new("idle", || sleep(secs(1))).idle());
        let blocking = governor.govern(Task::blocking("blocking", || Ok::<_, std::io::Error>(())));
        governor.open_gate();
        governor.quiet().record("frozen", MAX);
        sleep(secs(60)).await;
        assert!(!governor.snapshot().to_string().is_empty());
        for ended in
            [within(normal.demand()).await, within(idle.demand()).await, within(blocking.demand()).await]
        {
            ended.unwrap_or_else(|error| panic!("{setting}: {error}"));
        }
        is_shown(&within(governor.shutdown(MAX)).await);
    }
}

/// I11, I27: also beside a task that does not end.
#[tokio::test(start_paused = true)]
async fn the_longest_duration_in_an_option_of_a_task_is_no_limit() {
    let governor = fast(2);
    let endless = governor.govern(Task::new("endless", pending::<()>).timeout(MAX));
    let idle = governor.govern(Task::new("idle", || sleep(secs(1))).idle().no_later_than(MAX).timeout(MAX));
    within(idle.wait()).await.unwrap();
    sleep(secs(86_400 * 365)).await;
    assert!(!endless.is_finished());
    endless.cancel();
    is_shown(&within(governor.shutdown(MAX)).await);
}

/// I11: the options of a local task are those of a task.
#[tokio::test(start_paused = true)]
async fn the_longest_duration_in_an_option_of_a_local_task_is_no_limit() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let governor = Governor::builder().build_local().unwrap();
            let task = LocalTask::new("idle", || sleep(secs(1))).idle().no_later_than(MAX).timeout(MAX);
            within(governor.govern(task).wait()).await.unwrap();
            is_shown(&within(governor.as_send().shutdown(MAX)).await);
        })
        .await;
}

/// I11, I9: an attempt without a limit, and a rest that only a demand ends.
#[cfg(feature = "retry")]
#[tokio::test(start_paused = true)]
async fn the_longest_duration_in_an_option_of_a_retryable_task_is_far_away() {
    use afterboot_retry::{BackoffPolicy, Jitter, Limits, RetryPolicy, Schedule};
    let backoff =
        BackoffPolicy::builder().schedule(Schedule::Constant(MAX)).max_delay(MAX).jitter(Jitter::NONE);
    let limits = Limits::unlimited().max_elapsed(MAX).max_retry_after(MAX).new_outage_after(MAX);
    let policy = RetryPolicy::from(backoff.build().unwrap()).limits(limits).retry_after_spread(MAX);
    let mut attempts = 0;
    let run = move || {
        attempts += 1;
        let failed = attempts == 1;
        async move {
            sleep(secs(1)).await;
            if failed { Err(std::io::Error::other("down")) } else { Ok(()) }
        }
    };
    let governor = fast(1);
    let resting = governor.govern(Task::retryable("resting", run, policy).attempt_timeout(MAX).timeout(MAX));
    sleep(secs(86_400 * 365)).await;
    assert!(!resting.is_finished());
    within(resting.demand()).await.unwrap();
    is_shown(&within(governor.shutdown(MAX)).await);
}

/// I6: it waits for the tasks as long as they take.
#[tokio::test(start_paused = true)]
async fn the_longest_shutdown_waits_for_a_task_that_takes_a_year() {
    let governor = fast(1);
    let year = governor.govern(Task::new("year", || sleep(secs(86_400 * 365))));
    sleep(ms(10)).await;
    is_shown(&within_years(governor.shutdown(MAX)).await);
    assert!(year.try_get().expect("it has ended").is_ok());
}

async fn within_years<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(secs(86_400 * 365 * 2), future).await.expect("it hangs")
}

/// I17: in virtual time a century is no time.
#[tokio::test(start_paused = true)]
async fn a_run_is_replayed_under_the_longest_delay_and_pulse() {
    let governor = Governor::builder().record_segments().build().unwrap();
    for name in ["one", "two"] {
        governor.govern(Task::new(name, || sleep(secs(1))));
    }
    governor.govern(Task::new("idle", || sleep(secs(1))).idle());
    let report = within(governor.report().finished()).await;
    let replay = report.replay(&Profile::default().delay(MAX).pulse(MAX)).unwrap();
    assert!(replay.last_start > Some(secs(86_400 * 365 * 100)), "{replay:?}");
}

/// Whatever draws a report.
fn is_shown(report: &Report) {
    assert!(!report.to_string().is_empty());
    #[cfg(feature = "serde")]
    assert!(!report.to_json().is_empty() && !report.to_chrome_trace().is_empty());
    #[cfg(feature = "page")]
    assert!(!report.to_html().is_empty());
}
