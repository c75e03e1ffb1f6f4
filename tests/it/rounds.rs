//! Runs of short polls on multi_thread: nobody is accused of what nobody did. Real time, beside a control thread that
//! tells whether the machine itself ran.

use std::time::Duration;

use afterboot::{Governor, Profile, Report, Task, yield_if_due};
use tokio::runtime::Runtime;

use crate::common::{hold, ms, steady, two_workers};

const QUIET: Duration = Duration::from_millis(150);

fn governor(runtime: &Runtime) -> Governor {
    Governor::builder()
        .runtime(runtime.handle().clone())
        .profile(Profile::default().delay(Duration::ZERO).pulse(Duration::ZERO))
        .quiet(QUIET)
        .build()
        .unwrap()
}

/// Polls of 4 ms, each with its tick.
async fn chain(polls: u32) {
    for _ in 0..polls {
        hold(ms(4));
        tokio::task::yield_now().await;
    }
}

fn report_of(runtime: &Runtime, governor: &Governor) -> Report {
    runtime.block_on(governor.report().finished())
}

/// I33: the governor's own short polls are no freeze of the application; they hold neither the gate nor an idle start.
#[test]
fn chains_of_governed_polls_below_50_ms_are_no_long_task_and_hold_nothing() {
    steady(
        || {
            let runtime = two_workers();
            let governor = governor(&runtime);
            governor.govern(Task::new("idle", || chain(50)).idle());
            governor.govern(Task::new("second idle", || chain(20)).idle());
            for name in ["a", "b", "c"] {
                governor.govern(Task::new(name, || chain(40)));
            }
            report_of(&runtime, &governor)
        },
        |report| {
            assert_eq!(report.long_tasks, []);
            assert_eq!(report.holds, []);
        },
    );
}

/// I33: two governors on one runtime do not accuse each other.
#[test]
fn another_governors_chain_is_no_long_task() {
    steady(
        || {
            let runtime = two_workers();
            let (governor, other) = (governor(&runtime), governor(&runtime));
            governor.govern(Task::new("idle", || async {}).idle());
            for name in ["a", "b", "c"] {
                other.govern(Task::new(name, || chain(40)));
            }
            runtime.block_on(other.report().finished());
            report_of(&runtime, &governor)
        },
        |report| assert_eq!(report.long_tasks, []),
    );
}

/// I33: an application's loop that gives its ticks back is no long task.
#[test]
fn an_applications_chain_that_yields_if_due_is_no_long_task() {
    steady(
        || {
            let runtime = two_workers();
            let governor = governor(&runtime);
            governor.govern(Task::new("idle", || async {}).idle());
            let chain = runtime.spawn(async {
                for _ in 0..200 {
                    hold(ms(2));
                    yield_if_due().await;
                }
            });
            runtime.block_on(chain).unwrap();
            report_of(&runtime, &governor)
        },
        |report| assert_eq!(report.long_tasks, []),
    );
}

/// I12, I33: a stall of the application's is seen among governed polls too.
#[test]
fn a_stall_directly_behind_governed_polls_is_seen_and_named() {
    steady(
        || {
            let runtime = two_workers();
            let governor = governor(&runtime);
            governor.govern(Task::new("idle", || async {}).idle());
            let watching = governor.clone();
            governor.govern(Task::new("chain", move || async move {
                for n in 0..60 {
                    hold(ms(4));
                    if n % 20 == 10 {
                        // Woken by this poll, it runs directly behind it on the same worker.
                        tokio::spawn(watching.observe("the application", async { hold(ms(70)) }));
                    }
                    tokio::task::yield_now().await;
                }
            }));
            report_of(&runtime, &governor)
        },
        |report| {
            let who: Vec<_> = report.long_tasks.iter().map(|long| long.who.as_deref()).collect();
            assert_eq!(who, [Some("the application"); 3], "{:?}", report.long_tasks);
        },
    );
}
