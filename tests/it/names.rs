//! Names come from anywhere.

use std::fmt::Debug;
use std::future::pending;
use std::sync::{Arc, OnceLock};

use afterboot::{Delivery, Event, Governor, Monkey, Outcome, Profile, SkipReason, Task, TaskHandle};
use futures::FutureExt;
use tokio::time::{advance, sleep};
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::common::{Log, breathe, ended, fast, ms, secs, started, within};

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
    assert!(cycle.contains("would deadlock") && harmless(&cycle), "{cycle:?}");
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

/// A governor whose second task of the name `dup` fails at once, while the first one runs for 10 s.
fn two_of_a_name(concurrency: usize) -> (Governor, [TaskHandle<()>; 2]) {
    let governor = fast(concurrency);
    let first = governor.govern(Task::new("dup", || sleep(secs(10))));
    let second = governor.govern(Task::new("dup", || async { Err::<(), _>("no") }));
    (governor, [first, second])
}

/// I39: to who comes after it, declared before its end or after it, and to who waits for it.
#[tokio::test(start_paused = true)]
async fn who_is_skipped_because_of_a_second_task_of_a_name_is_told_which() {
    let (governor, [_, dup]) = two_of_a_name(2);
    let before = governor.govern(Task::new("before its end", || async {}).after(&dup));
    let error = within(dup.wait()).await.unwrap_err();
    assert_eq!((error.task(), error.to_string().as_str()), ("dup#2", "task \"dup#2\" failed: no"));
    let after = governor.govern(Task::new("after its end", || async {}).after(&dup));
    for skipped in [before, after] {
        let error = within(skipped.wait()).await.unwrap_err();
        let reason = SkipReason::Predecessor("dup#2".into());
        assert_eq!(error.outcome(), Some(&Outcome::Skipped(reason)));
    }
    let report = governor.report().current();
    for name in ["before its end", "after its end"] {
        assert_eq!(report.task(name).unwrap().waited_for, ["dup#2"]);
    }
    assert_eq!(ended(&report, "dup#2").word(), "failed");
}

/// I39, I30: in each event.
#[tokio::test(start_paused = true)]
async fn events_tell_tasks_of_one_name_apart() {
    let governor = fast(1);
    let mut events = governor.events();
    let dup = || Task::new("dup", || sleep(secs(40)));
    let _handles = governor.govern_all([dup(), dup()]);
    within(governor.report().finished()).await;
    let mut told = Vec::new();
    while let Some(Some((_, event))) = events.next().now_or_never() {
        told.push(match event {
            Event::Declared { task, number, .. } => ("declared", task.to_string(), number),
            Event::Started { task, number, .. } => ("started", task.to_string(), number),
            Event::Slow { task, number, .. } => ("slow", task.to_string(), number),
            Event::Ended { task, number, .. } => ("ended", task.to_string(), number),
            other => panic!("{other:?}"),
        });
    }
    told.sort_by_key(|(_, _, number)| *number);
    let of = |name: &str, number| {
        ["declared", "started", "slow", "ended"].map(|what| (what, name.to_owned(), number)).to_vec()
    };
    assert_eq!(told, [of("dup", 0), of("dup#2", 1)].concat());
}

/// I39, I15.
#[tokio::test(start_paused = true)]
async fn the_monkey_is_given_the_name_under_which_a_task_is_shown() {
    for (asked, number) in [("dup", 0), ("dup#2", 1), ("dup#3", 2)] {
        let profile = Profile::default().delay(ms(0)).pulse(ms(0));
        let governor =
            Governor::builder().profile(profile).monkey(Monkey::task(asked, secs(60))).build().unwrap();
        for _ in 0..3 {
            governor.govern(Task::new("dup", || async {}));
        }
        let run = governor.report();
        sleep(secs(1)).await;
        assert_eq!(governor.snapshot().delayed.as_deref(), Some(asked));
        let report = within(run.finished()).await;
        let monkey = report.monkey.as_ref().unwrap();
        assert_eq!((monkey.victim.as_deref(), monkey.victim_number), (Some(asked), Some(number)));
        assert_eq!(monkey.delivery, Delivery::Delivered);
        assert!(started(&report, asked) >= secs(60), "{report}");
    }
}

/// I39, I24: the attribution of a long task, and of the start that it held.
#[tokio::test(start_paused = true)]
async fn a_long_task_is_that_of_the_one_that_made_it() {
    let governor = Governor::builder().profile(Profile::default().pulse(ms(0))).build().unwrap();
    governor.govern(Task::new("dup", || async {}));
    governor.govern(Task::new("dup", || async {
        sleep(secs(1)).await;
        advance(ms(80)).await;
    }));
    let idle = || Task::new("idle", || async {}).idle();
    let _handles = governor.govern_all([idle(), idle()]);
    sleep(secs(2)).await;
    let why = governor.gate().to_string();
    assert!(why.contains("by dup#2 until"), "{why}");
    let report = within(governor.report().finished()).await;
    let who: Vec<_> = report.long_tasks.iter().map(|long| long.who.as_deref()).collect();
    assert_eq!(who, [Some("dup#2")]);
}

/// I39, I25: along a cycle, and in what a task waited for.
#[tokio::test(start_paused = true)]
async fn the_path_of_a_cycle_tells_tasks_of_one_name_apart() {
    let governor = fast(2);
    let own = Arc::new(OnceLock::<TaskHandle<Vec<String>>>::new());
    governor.govern(Task::new("dup", || async {}));
    let inner = Arc::clone(&own);
    let waits = Task::value("dup", move || async move {
        let error = inner.get().expect("it was declared").wait().await.unwrap_err();
        error.cycle_path().to_vec()
    });
    let second = own.get_or_init(|| governor.govern(waits)).clone();
    let third = governor.govern(Task::new("waits", move || async move { second.wait().await.map(|_| ()) }));
    within(third.wait()).await.unwrap();
    assert_eq!(*own.get().unwrap().try_get().unwrap().unwrap(), ["dup#2", "dup#2"]);
    let report = within(governor.report().finished()).await;
    assert!(report.task("waits").unwrap().awaited.iter().all(|name| name == "dup#2"), "{report}");
}

/// I39, I24: in the log and in the span.
#[tokio::test(start_paused = true)]
async fn log_lines_and_spans_tell_tasks_of_one_name_apart() {
    let named = Log::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(Naming(named.clone())));
    let governor = fast(2);
    governor.govern(Task::new("dup", || async {}));
    governor.govern(Task::new("dup", || async {
        sleep(secs(40)).await;
        Err::<(), _>("no")
    }));
    within(governor.report().finished()).await;
    let mut named = named.all();
    named.sort_unstable();
    let expected = [
        "span: dup",
        "span: dup#2",
        "task did not complete: dup#2",
        "task ended: dup",
        "running for 30 s: dup#2",
    ];
    let mut expected = expected.map(str::to_owned);
    expected.sort_unstable();
    assert_eq!(named, expected);
}

/// Keeps which task a span or an event of the governor's names.
struct Naming(Log);

impl Naming {
    fn keep(&self, Fields { message, task }: Fields) {
        if !task.is_empty() {
            self.0.add(format!("{message}: {task}"));
        }
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    task: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "name" {
            self.message = "span".to_owned();
            self.task = value.to_owned();
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "task" => self.task = format!("{value:?}"),
            _ => {}
        }
    }
}

impl<S: Subscriber> Layer<S> for Naming {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        self.keep(fields);
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.keep(fields);
    }
}

/// I39: whatever has been declared and forgotten meanwhile, a number is given once while one of its name is known.
#[tokio::test(start_paused = true)]
async fn a_service_that_uses_one_name_for_ever_tells_its_last_thousand_apart() {
    let governor = fast(1);
    governor.report();
    for n in 1..=3_000 {
        let error =
            governor.govern(Task::new("dup", || async {}).when(false)).try_get().unwrap().unwrap_err();
        assert_eq!(error.task(), if n == 1 { "dup".to_owned() } else { format!("dup#{n}") });
    }
    let report = governor.report().current();
    let names = report.late_tasks.iter().map(|task| task.name.clone());
    assert!(names.eq((2_001..=3_000).map(|n| format!("dup#{n}"))));
}

/// I39: who declares `a#2` in so many words keeps it, and the second `a` gets the next number that is free.
#[tokio::test(start_paused = true)]
async fn a_name_with_a_number_of_its_own_is_left_to_its_task() {
    let governor = fast(1);
    for name in ["a#2", "a", "a", "a#3"] {
        governor.govern(Task::new(name, || async {}));
    }
    let report = within(governor.report().finished()).await;
    let names: Vec<&str> = report.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a#2", "a", "a#3", "a#3#2"]);
}
