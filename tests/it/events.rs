//! What happens in a run, as it is told while it happens.

use std::future::{Future, pending};
use std::task::Poll;
use std::time::Duration;

use afterboot::{Event, Events, GateState, Governor, Monkey, OpenedBy, Outcome, Profile, Queue, Task};
use tokio::runtime;
use tokio::time::{sleep, timeout};
use tokio_test::{assert_pending, assert_ready, task};

use crate::common::{breathe, fast, ms, secs, silence, soon, within};

/// All events that are there, in short.
async fn told(events: &mut Events) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(Some((_, event))) = timeout(Duration::ZERO, events.next()).await {
        told.push(short(&event));
    }
    told
}

fn short(event: &Event) -> String {
    match event {
        Event::Declared { task, queue: Queue::Normal, .. } => format!("{task} declared"),
        Event::Declared { task, .. } => format!("{task} declared idle"),
        Event::Started { task, .. } => format!("{task} started"),
        Event::Delayed { task, .. } => format!("{task} delayed"),
        Event::Ended { task, outcome, .. } => format!("{task} {}", outcome.word()),
        Event::Starved { task, .. } => format!("{task} starved"),
        Event::Slow { task, .. } => format!("{task} slow"),
        Event::GateOpened { gate: GateState::Open { by, .. }, .. } => format!("gate by {by}"),
        Event::LongTask { who, length, .. } => format!("{who} long {}", length.as_millis()),
        Event::ShuttingDown => "shutting down".to_owned(),
        Event::Lagged { missed, .. } => format!("{missed} missed"),
        other => format!("{other:?}"),
    }
}

/// I30, I4, I6, I14: a whole run, in the order in which it happened; c was held too long.
#[tokio::test(start_paused = true)]
async fn events_come_in_the_order_in_which_things_happened() {
    silence();
    let governor = fast(1);
    let mut events = governor.events();
    let a = governor.govern(Task::new("a", || async { Err::<(), _>("no") }));
    governor.govern(Task::new("b", || async {}).after(&a));
    governor.govern(Task::new("c", || async {}).after_settled(&a).idle());
    governor.govern(Task::new("d", || async {}).when(false));
    governor.govern(Task::new("e", || sleep(secs(31))).when_at_start(|| true));
    governor.govern(Task::new("f", pending::<()>).when_at_start(|| false));
    within(governor.report().finished()).await;
    within(governor.shutdown(ms(1))).await;
    assert_eq!(
        told(&mut events).await,
        [
            "a declared",
            "b declared",
            "c declared idle",
            "d declared",
            "d skipped",
            "e declared",
            "f declared",
            "a started",
            "a failed",
            "b skipped",
            "e started",
            "gate by quiet",
            "c started",
            "c completed",
            "e slow",
            "e completed",
            "f started",
            "f skipped",
            "shutting down",
        ]
    );
    assert_eq!(within(events.next()).await, None);
    assert_eq!(within(events.next()).await, None, "and it stays over");
}

/// I30, I6: numbers, moments and outcomes are those of the report.
#[tokio::test(start_paused = true)]
async fn an_event_says_when_and_which_as_the_report_does() {
    let governor = fast(1);
    let mut events = governor.events();
    for _ in 0..2 {
        governor.govern(Task::new("x", || sleep(ms(20))));
    }
    let report = within(governor.report().finished()).await;
    within(governor.shutdown(ms(1))).await;
    let mut seen = 0;
    while let Some((at, event)) = within(events.next()).await {
        let (number, expected) = match &event {
            Event::Declared { number, .. } => {
                (*number, Some(report.tasks[usize::try_from(*number).unwrap()].declared))
            }
            Event::Started { number, .. } => {
                (*number, report.tasks[usize::try_from(*number).unwrap()].started)
            }
            Event::Ended { number, outcome: Outcome::Completed, .. } => {
                (*number, report.tasks[usize::try_from(*number).unwrap()].finished)
            }
            _ => continue,
        };
        assert_eq!(Some(at), expected, "{number}: {event:?}");
        seen += 1;
    }
    assert_eq!(seen, 6);
}

/// I30, I12, I15.
#[tokio::test(start_paused = true)]
async fn gate_long_tasks_and_the_monkey_are_told() {
    let profile = Profile::default().delay(ms(0)).pulse(ms(0)).monkey(Monkey::index(0, secs(60)));
    let governor = Governor::builder().profile(profile).await_ready().build().unwrap();
    let mut events = governor.events();
    governor.govern(Task::new("victim", || async {}).idle());
    governor.report();
    sleep(secs(1)).await;
    governor.quiet().record("first paint", ms(120));
    governor.quiet().record("too short to be told", ms(49));
    governor.open_gate();
    governor.open_gate();
    sleep(secs(70)).await;
    assert_eq!(
        told(&mut events).await,
        [
            "victim declared idle",
            "first paint long 120",
            "gate by open_gate()",
            "victim delayed",
            "victim started",
            "victim completed"
        ]
    );
}

/// I30, I14: how many, and then the oldest that are kept, without a gap.
#[tokio::test(start_paused = true)]
async fn a_listener_that_is_too_slow_is_told_how_much_it_missed() {
    let governor = fast(1);
    let mut events = governor.events();
    for _ in 0..1_000 {
        governor.govern(Task::new("task", pending::<()>).when(false));
    }
    let Event::Lagged { missed, .. } = within(events.next()).await.unwrap().1 else {
        panic!("nothing was missed")
    };
    assert_eq!(missed, 2_000 - 1_024);
    for n in 488..1_000 {
        let Event::Declared { number, .. } = within(events.next()).await.unwrap().1 else { panic!("at {n}") };
        assert_eq!(number, n);
        let Event::Ended { number, .. } = within(events.next()).await.unwrap().1 else { panic!("at {n}") };
        assert_eq!(number, n);
    }
    assert_pending!(task::spawn(events.next()).poll());
}

/// I30, I14: one end that ends more tasks than are kept: each event names its own.
#[tokio::test(start_paused = true)]
async fn an_event_names_its_task_though_its_record_has_fallen_out() {
    let governor = fast(1);
    governor.report();
    for _ in 0..1_024 {
        governor.govern(Task::new("late", pending::<()>).idle());
    }
    let mut events = governor.events();
    within(governor.shutdown(ms(1))).await;
    let mut ended = Vec::new();
    while let Some((_, event)) = within(events.next()).await {
        if let Event::Ended { task, number, .. } = event {
            let name = if number == 0 { "late".to_owned() } else { format!("late#{}", number + 1) };
            assert_eq!(*task, name, "of number {number}, the {}th", ended.len());
            ended.push(number);
        }
    }
    assert!(ended.into_iter().eq(0..1_024));
}

/// I30: Each hears all, from its own beginning on, whatever the others do.
#[tokio::test(start_paused = true)]
async fn several_listeners_hear_the_same_and_one_that_leaves_takes_nothing_away() {
    let governor = fast(1);
    let mut first = governor.events();
    governor.govern(Task::new("a", || async {}).when(false));
    let mut second = governor.events();
    governor.govern(Task::new("b", || async {}).when(false));
    assert_eq!(told(&mut second).await, ["b declared", "b skipped"]);
    drop(second);
    governor.govern(Task::new("c", || async {}).when(false));
    let all = told(&mut first).await;
    assert_eq!(all, ["a declared", "a skipped", "b declared", "b skipped", "c declared", "c skipped"]);
}

/// I30: What nobody listens to is not written: a new listener hears nothing of it and has missed nothing.
#[tokio::test(start_paused = true)]
async fn a_listener_hears_nothing_of_what_was_before_it() {
    let governor = fast(1);
    for round in 0..3 {
        for _ in 0..1_500 {
            governor.govern(Task::new("unheard", || async {}).when(false));
        }
        let mut events = governor.events();
        assert_pending!(task::spawn(events.next()).poll());
        governor.govern(Task::new(format!("heard in {round}"), || async {}).when(false));
        let heard = ["declared", "skipped"].map(|what| format!("heard in {round} {what}"));
        assert_eq!(told(&mut events).await, heard);
        governor.govern(Task::new("left behind", || async {}).when(false));
    }
}

/// I30: Cancel safety: what is dropped before it has an event has taken none, and has left no waker.
#[tokio::test(start_paused = true)]
async fn a_wait_for_an_event_that_is_given_up_loses_none() {
    let governor = fast(1);
    let mut events = governor.events();
    for n in 0..10 {
        {
            let mut given_up = task::spawn(events.next());
            assert_pending!(given_up.poll());
            governor.govern(Task::new(format!("{n}"), || async {}).when(false));
            assert!(given_up.is_woken());
        }
        assert_eq!(told(&mut events).await, [format!("{n} declared"), format!("{n} skipped")]);
    }
}

/// I30: One wait that is polled a second time, after its event has come.
#[tokio::test(start_paused = true)]
async fn a_wait_for_an_event_is_woken_by_it() {
    let governor = fast(1);
    let mut events = governor.events();
    let mut waiting = task::spawn(events.next());
    assert_pending!(waiting.poll());
    governor.open_gate();
    assert!(waiting.is_woken());
    let (_, event) = assert_ready!(waiting.poll()).unwrap();
    assert!(matches!(event, Event::GateOpened { gate: GateState::Open { by: OpenedBy::Manual, .. }, .. }));
}

/// I30, I14: not before the last task has ended, and a listener that waits is told.
#[tokio::test(start_paused = true)]
async fn the_stream_ends_after_a_shutdown_when_all_has_ended() {
    let governor = fast(1);
    let mut events = governor.events();
    governor.govern(Task::new("runs", || sleep(ms(50))));
    breathe().await;
    let mut late = governor.events();
    let listening = tokio::spawn(async move {
        let mut heard = Vec::new();
        while let Some((_, event)) = late.next().await {
            heard.push(short(&event));
        }
        heard
    });
    breathe().await;
    within(governor.shutdown(secs(1))).await;
    assert_eq!(within(listening).await.unwrap(), ["shutting down", "runs completed"]);
    assert_eq!(told(&mut events).await, ["runs declared", "runs started", "shutting down", "runs completed"]);
    let mut too_late = governor.events();
    assert_eq!(within(too_late.next()).await, None, "nothing comes any more");
}

/// I30, I14: a governor that is shut down before it had a task.
#[tokio::test(start_paused = true)]
async fn the_stream_of_a_governor_without_tasks_ends_with_its_shutdown() {
    let governor = fast(1);
    let mut events = governor.events();
    let mut waiting = task::spawn(async move {
        assert_eq!(events.next().await.unwrap().1, Event::ShuttingDown);
        events.next().await
    });
    assert_pending!(waiting.poll());
    within(governor.shutdown(ms(1))).await;
    assert_eq!(within(waiting).await, None);
}

/// I30, I14: the loss of the runtime is told to a listener on another one.
#[tokio::test]
async fn the_stream_ends_with_the_runtime() {
    let other = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let governor = Governor::builder().runtime(other.handle().clone()).build().unwrap();
    let mut events = governor.events();
    governor.govern(Task::new("runs", pending::<()>));
    while !matches!(soon(events.next()).await, Some((_, Event::Started { .. }))) {}
    other.shutdown_background();
    assert!(matches!(soon(events.next()).await, Some((_, Event::ShuttingDown))));
    let Some((_, Event::Ended { outcome, .. })) = soon(events.next()).await else { panic!() };
    assert_eq!(outcome.word(), "cancelled");
    assert_eq!(soon(events.next()).await, None);
}

/// I30, I18: a listener may be dropped, made and asked from inside a task.
#[tokio::test(start_paused = true)]
async fn a_governed_task_may_listen_to_its_own_run() {
    let governor = fast(1);
    let inner = governor.clone();
    let heard = governor.govern(Task::value("listens", move || async move {
        let mut events = inner.events();
        inner.govern(Task::new("other", || async {}).when(false));
        let mut next = Box::pin(events.next());
        std::future::poll_fn(|cx| match next.as_mut().poll(cx) {
            Poll::Ready(Some((_, event))) => Poll::Ready(short(&event)),
            other => panic!("{other:?}"),
        })
        .await
    }));
    assert_eq!(*within(heard.wait()).await.unwrap(), "other declared");
}

/// I30, I14: nothing more can come when nobody can declare a task and none is left.
#[tokio::test(start_paused = true)]
async fn the_events_end_when_the_last_handle_is_dropped_and_what_was_queued_has_ended() {
    let governor = fast(1);
    let mut events = governor.events();
    governor.govern(Task::new("queued", || sleep(ms(20))));
    let other = governor.clone();
    drop(governor);
    let listening = tokio::spawn(async move {
        let mut ended = 0;
        while let Some((_, event)) = events.next().await {
            ended += usize::from(matches!(event, Event::Ended { .. }));
        }
        ended
    });
    sleep(secs(1)).await;
    assert!(!listening.is_finished(), "another handle could still declare");
    drop(other);
    assert_eq!(within(listening).await.unwrap(), 1);

    let governor = fast(1);
    let mut events = governor.events();
    drop(governor);
    assert!(within(events.next()).await.is_none());
}
