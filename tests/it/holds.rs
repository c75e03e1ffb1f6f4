//! After the opening: an application that gets busy again holds idle starts, for a while.

use std::time::Duration;

use afterboot::{Governor, Profile, Task, WaitReason};
use tokio::time::{advance, sleep};

use crate::common::{ms, secs};

fn governor() -> Governor {
    let profile = Profile::default().concurrency(1).delay(Duration::ZERO).pulse(Duration::ZERO);
    Governor::builder().profile(profile).quiet(secs(1)).build().unwrap()
}

/// I23: a stall after the opening holds the next idle start for `resume_quiet`, and the report says so.
#[tokio::test(start_paused = true)]
async fn a_long_task_of_the_application_holds_the_next_idle_start() {
    let governor = governor();
    governor.govern(Task::new("first", || sleep(secs(1))).idle());
    let second = governor.govern(Task::new("second", || async {}).idle());
    sleep(ms(1_900)).await; // `first` runs, the gate is open
    advance(ms(80)).await;
    sleep(ms(400)).await;
    assert!(!second.is_finished());
    assert!(matches!(governor.snapshot().held_by, Some(WaitReason::LongTask { .. })));
    let report = governor.report().finished().await;
    let started = report.task("second").unwrap().started.unwrap();
    assert!(started >= ms(2_470) && started < ms(2_520), "{started:?}");
    let [hold] = &report.holds[..] else { panic!("{report}") };
    assert_eq!((hold.task.as_str(), hold.number), ("second", 1));
    assert!(report.to_string().contains("holds: 1 idle starts"), "{report}");
}

/// I23: too much in flight holds an idle start until it is over, but no longer than `max_hold`.
#[tokio::test(start_paused = true)]
async fn requests_in_flight_hold_an_idle_start_at_most_max_hold() {
    let governor = governor();
    governor.govern(Task::new("first", || sleep(secs(1))).idle());
    for name in ["second", "third"] {
        governor.govern(Task::new(name, || async {}).idle());
    }
    sleep(ms(1_500)).await;
    let requests = [(); 3].map(|()| governor.in_flight("GET /"));
    sleep(secs(8)).await;
    drop(requests);
    let report = governor.report().finished().await;
    let started = |name| report.task(name).unwrap().started.unwrap();
    // `first` ended at 2 s; five seconds later the second may start, and the third only when the requests are over.
    assert!(started("second") >= ms(7_000) && started("second") < ms(7_050), "{report}");
    assert!(started("third") >= ms(9_990) && started("third") < ms(10_050), "{report}");
    assert_eq!(report.holds.len(), 2);
    assert!(
        matches!(&report.holds[0].why, WaitReason::InFlight { requests, .. } if &**requests == "3 in flight: GET / (3)")
    );
}

/// I23: normal tasks are not held, nor what is demanded, nor what runs.
#[tokio::test(start_paused = true)]
async fn only_ordinary_idle_starts_are_held() {
    let governor = governor();
    let running = governor.govern(Task::new("running", || sleep(secs(2))).idle());
    sleep(ms(1_500)).await;
    let _requests = [(); 3].map(|()| governor.in_flight("GET /"));
    running.wait().await.unwrap();
    let held = governor.govern(Task::new("held", || async {}).idle());
    governor.govern(Task::new("normal", || async {})).wait().await.unwrap();
    let demanded = governor.govern(Task::new("demanded", || async {}).idle());
    demanded.demand().await.unwrap();
    assert!(!held.is_finished());
    let report = governor.report().finished().await;
    assert!(report.task("normal").unwrap().finished.unwrap() < ms(3_100), "{report}");
    assert!(report.task("held").unwrap().started.unwrap() >= ms(8_000), "{report}");
}

/// I23: what governed tasks do to the loop holds nothing, and a window of zero never holds.
#[tokio::test(start_paused = true)]
async fn a_window_of_zero_never_holds() {
    let profile = Profile::default().concurrency(1).delay(Duration::ZERO).pulse(Duration::ZERO);
    let governor =
        Governor::builder().profile(profile).quiet(secs(1)).resume_quiet(Duration::ZERO).build().unwrap();
    governor.govern(Task::new("first", || sleep(secs(1))).idle());
    governor.govern(Task::new("second", || async {}).idle());
    sleep(ms(1_900)).await;
    advance(ms(200)).await;
    let report = governor.report().finished().await;
    assert!(report.holds.is_empty(), "{report}");
    assert!(report.task("second").unwrap().started.unwrap() < ms(2_150), "{report}");
}
