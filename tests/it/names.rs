//! Names come from anywhere.

use std::future::pending;

use afterboot::{Event, Governor, Task};

use crate::common::{breathe, fast, ms, secs, within};

/// Clears the screen, rings, turns the line, ends it.
const HOSTILE: &str = "a\x1b[2J\x07\u{202e}b\r\nc\u{200b}\u{61c}";

fn harmless(text: &str) -> bool {
    let turns = ['\u{61c}', '\u{200b}', '\u{200e}', '\u{200f}', '\u{202e}', '\u{2066}', '\u{2028}'];
    !text.contains(char::is_control) && !text.contains(turns)
}

/// I20: what a readiness endpoint prints into a log.
#[tokio::test(start_paused = true)]
async fn a_snapshot_shows_hostile_names_harmlessly() {
    let governor = Governor::builder().name("boot").max_in_flight(0).build().unwrap();
    governor.govern(Task::new(HOSTILE, pending::<()>));
    governor.govern(Task::new("idle", pending::<()>).idle());
    let _guard = governor.in_flight(HOSTILE);
    breathe().await;
    tokio::time::sleep(ms(5)).await;
    let text = governor.snapshot().to_string();
    assert!(harmless(&text), "{text:?}");
    assert_eq!(governor.snapshot().running[0].name, HOSTILE, "as data it is what it was");
}

/// I20: the governor's own name is no better than the others.
#[tokio::test(start_paused = true)]
async fn a_snapshot_shows_a_hostile_governors_name_harmlessly() {
    let governor = Governor::builder().name(HOSTILE).build().unwrap();
    let text = governor.snapshot().to_string();
    assert!(harmless(&text), "{text:?}");
}

/// I20: in errors, of tasks, of predecessors, along a cycle; and in what the gate says.
#[tokio::test(start_paused = true)]
async fn errors_and_the_gate_show_hostile_names_harmlessly() {
    let governor = fast(1);
    let bad = governor.govern(Task::new(HOSTILE, pending::<()>).when(false));
    let after = governor.govern(Task::new("after", pending::<()>).after(&bad));
    for error in [bad.try_get().unwrap().unwrap_err(), after.try_get().unwrap().unwrap_err()] {
        assert!(harmless(&error.to_string()), "{error:?}");
        assert!(harmless(&error.outcome().unwrap().to_string()), "{error:?}");
    }
    let own = std::sync::Arc::new(std::sync::OnceLock::<afterboot::TaskHandle<String>>::new());
    let inner = std::sync::Arc::clone(&own);
    let waits = Task::value(HOSTILE, move || async move {
        let own = inner.get().expect("it was declared").clone();
        own.wait().await.err().map(|error| error.to_string()).unwrap_or_default()
    });
    let cycle = within(own.get_or_init(|| governor.govern(waits)).wait()).await.unwrap();
    assert!(cycle.contains("would never end") && harmless(&cycle), "{cycle:?}");
    governor.govern(Task::new("idle", pending::<()>).idle());
    governor.quiet().record(HOSTILE, secs(1));
    assert!(harmless(&governor.gate().to_string()), "{}", governor.gate());
}

/// I14: free text, whatever its length; the empty one too.
#[tokio::test(start_paused = true)]
async fn any_text_is_a_name() {
    let governor = fast(3);
    let long = "索".repeat(10_000);
    let names = ["", " ", "\0", "\"quoted\"", "a#2", "#1", long.as_str()];
    let mut events = governor.events();
    for name in names {
        governor.govern(Task::new(name.to_owned(), || async {}));
    }
    let report = within(governor.report().finished()).await;
    let told: Vec<&str> = report.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(told, names);
    for name in names {
        let Some((_, Event::Declared { task, .. })) = within(events.next()).await else { panic!("{name:?}") };
        assert_eq!(&*task, name);
    }
    assert!(report.to_string().lines().all(|line| line.chars().count() <= 100));
}

/// I14: two of the same name are two, to the monkey the first one counts, and errors and events keep what was given.
#[tokio::test(start_paused = true)]
async fn the_number_tells_tasks_of_one_name_apart() {
    let governor = fast(1);
    let mut events = governor.events();
    let handles = [(); 3].map(|()| governor.govern(Task::new("x", pending::<()>).when(false)));
    let report = governor.report().so_far();
    let shown: Vec<_> = report.tasks.iter().map(|task| (task.name.as_str(), task.number)).collect();
    assert_eq!(shown, [("x", 0), ("x#2", 1), ("x#3", 2)]);
    assert!(handles.iter().all(|handle| handle.try_get().unwrap().unwrap_err().task() == "x"));
    for expected in [0, 0, 1, 1, 2, 2] {
        match within(events.next()).await.unwrap().1 {
            Event::Declared { task, number, .. } | Event::Ended { task, number, .. } => {
                assert_eq!((&*task, number), ("x", expected));
            }
            other => panic!("{other:?}"),
        }
    }
}
