//! Several tasks declared at once, and several governors side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afterboot::{Governor, Profile, Task};
use tokio::time::sleep;

use crate::common::{Log, count, fast, ms, secs, started, within};

fn value<T: Send + Sync + 'static>(name: &'static str, value: T) -> Task<T> {
    Task::value(name, || async { value })
}

/// I3: in their order, behind what was declared before.
#[tokio::test(start_paused = true)]
async fn an_array_and_a_vec_are_declared_in_their_order_and_give_their_handles_in_it() {
    let governor = fast(1);
    let log = Log::default();
    let logged = |n: u64| {
        let log = log.clone();
        Task::value(format!("{n}"), move || async move {
            log.add(n.to_string());
            n
        })
    };
    let first = governor.govern(logged(0));
    let array = governor.govern_all([logged(1), logged(2), logged(3)]);
    let list = governor.govern_all((4..100).map(logged).collect::<Vec<_>>());
    let report = within(governor.report().finished()).await;
    assert!(log.all().iter().enumerate().all(|(n, name)| *name == n.to_string()), "{:?}", log.all());
    assert!(report.tasks.iter().zip(0..).all(|(task, n)| task.number == n && task.name == n.to_string()));
    let values =
        [first].into_iter().chain(array).chain(list).map(|handle| *handle.try_get().unwrap().unwrap());
    assert!(values.eq(0..100));
}

/// I8: nothing is something too.
#[tokio::test(start_paused = true)]
async fn a_list_of_nothing_declares_nothing() {
    let governor = fast(1);
    let none: [Task<()>; 0] = [];
    let [] = governor.govern_all(none);
    assert!(governor.govern_all(Vec::<Task<String>>::new()).is_empty());
    assert_eq!(governor.snapshot().declared, 0);
    assert!(within(governor.report().finished()).await.tasks.is_empty());
}

/// I3: each of a type of its own.
#[tokio::test(start_paused = true)]
async fn a_tuple_of_one_to_twelve_gives_each_handle_its_type() {
    let governor = fast(3);
    let (one,) = governor.govern_all((value("one", 1_u8),));
    let (text, _) = governor.govern_all((value("text", "two"), value("unit", ())));
    let (a, b, c, d, e, f, g, h, i, j, k, l) = governor.govern_all((
        value("a", 1_u8),
        value("b", 2_u16),
        value("c", 3_u32),
        value("d", 4_u64),
        value("e", 5_i8),
        value("f", 6_i16),
        value("g", 7_i32),
        value("h", 8_i64),
        value("i", 'i'),
        value("j", "j"),
        value("k", vec![11]),
        value("l", Some("twelve")),
    ));
    let report = within(governor.report().finished()).await;
    assert_eq!((*one.await.unwrap(), *text.await.unwrap()), (1, "two"));
    assert_eq!((*a.await.unwrap(), *b.await.unwrap(), *c.await.unwrap(), *d.await.unwrap()), (1, 2, 3, 4));
    assert_eq!((*e.await.unwrap(), *f.await.unwrap(), *g.await.unwrap(), *h.await.unwrap()), (5, 6, 7, 8));
    assert_eq!((*i.await.unwrap(), *j.await.unwrap(), *l.await.unwrap()), ('i', "j", Some("twelve")));
    assert_eq!(*k.await.unwrap(), [11]);
    let names: Vec<&str> = report.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["one", "text", "unit", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]);
}

/// I8, I14: a wrong one among good ones is its own affair.
#[tokio::test(start_paused = true)]
async fn a_wrong_task_in_a_list_does_not_harm_the_others() {
    let governor = fast(3);
    let (good, wrong, last) =
        governor.govern_all((value("good", 1), value("wrong", 2).timeout(ms(0)), value("last", 3)));
    assert!(wrong.try_get().expect("at once").unwrap_err().is_invalid());
    assert_eq!((*within(good.wait()).await.unwrap(), *within(last.wait()).await.unwrap()), (1, 3));
}

/// I14, I39: they are told apart in order of declaration.
#[tokio::test(start_paused = true)]
async fn names_that_are_given_twice_are_numbered_over_lists_too() {
    let governor = fast(1);
    let fails = |name: &'static str| Task::new(name, || async { Err::<(), _>("no") });
    let handles = governor.govern_all([fails("x"), fails("x"), fails("x#2"), fails("x"), fails("y")]);
    let report = within(governor.report().finished()).await;
    let names: Vec<&str> = report.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["x", "x#2", "x#2#2", "x#3", "y"]);
    assert_eq!(handles[1].try_get().unwrap().unwrap_err().task(), "x#2");
    assert_eq!(report.task("x#2").unwrap().number, 1);
}

/// I2, I5: slots, pulse and gate are each governor's own.
#[tokio::test(start_paused = true)]
async fn governors_side_by_side_keep_their_own_limits() {
    let limits = [(1, ms(0)), (2, ms(20)), (5, ms(3))];
    let governors = limits.map(|(concurrency, pulse)| {
        let profile = Profile::default().concurrency(concurrency).delay(ms(0)).pulse(pulse);
        Governor::builder().name(format!("of {concurrency}")).profile(profile).build().unwrap()
    });
    let peaks = governors.each_ref().map(|governor| {
        let (flying, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..20 {
            let (flying, peak) = (Arc::clone(&flying), Arc::clone(&peak));
            governor.govern(Task::new("task", move || async move {
                peak.fetch_max(flying.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                sleep(ms(100)).await;
                flying.fetch_sub(1, Ordering::Relaxed);
            }));
        }
        peak
    });
    for ((governor, (concurrency, pulse)), peak) in governors.iter().zip(limits).zip(peaks) {
        let report = within(governor.report().finished()).await;
        assert_eq!(report.governor, format!("of {concurrency}"));
        assert_eq!((count(&report, "completed"), peak.load(Ordering::Relaxed)), (20, concurrency));
        let starts: Vec<_> = report.tasks.iter().filter_map(|task| task.started).collect();
        assert!(starts.windows(2).all(|pair| pair[1] >= pair[0] + pulse), "{report}");
    }
}

/// I12, I14: gate, scope and shutdown of one are nothing to the other.
#[tokio::test(start_paused = true)]
async fn what_is_said_to_one_governor_is_not_said_to_the_other() {
    let (mine, other) = (fast(1), fast(1));
    let here = mine.govern(value("here", 1).idle());
    let there = other.govern(value("there", 2).idle());
    mine.open_gate();
    within(here.wait()).await.unwrap();
    assert!(!there.is_finished());
    within(mine.shutdown(secs(1))).await;
    mine.report();
    assert_eq!(*within(there.wait()).await.unwrap(), 2);
    assert_eq!(other.report().current().tasks.len(), 1);
    assert_eq!(other.report().current().late, 0);
}

/// I8: its number may be that of a task of this governor's.
#[tokio::test(start_paused = true)]
async fn a_handle_of_another_governor_is_invalid_and_ties_nothing() {
    let (mine, other) = (fast(1), fast(1));
    let foreign = other.govern(value("foreign", 1).idle());
    let own = mine.govern(value("own", 2).idle());
    for task in [value("one", 3).after(&foreign), value("both", 4).after(&own).after(&foreign)] {
        let error = mine.govern(task).try_get().expect("at once").unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("another governor"), "{error}");
    }
    let report = within(mine.report().finished()).await;
    assert!(report.tasks.iter().all(|task| task.waited_for.is_empty() && !task.promoted), "{report}");
    assert!(started(&report, "own") >= secs(5), "{report}");
}

/// I9: to wait for another governor's task is no wait in this one, so no slot is lent and no cycle seen.
#[tokio::test(start_paused = true)]
async fn a_task_may_wait_for_one_of_another_governor() {
    let (mine, other) = (fast(1), fast(1));
    let there = other.govern(Task::value("there", || async {
        sleep(secs(1)).await;
        7
    }));
    let here = mine.govern(Task::new("here", move || async move { there.wait().await.map(|value| *value) }));
    mine.govern(value("next", ()));
    let report = within(mine.report().finished()).await;
    assert_eq!(*here.await.unwrap(), 7);
    assert!(report.task("here").unwrap().awaited.is_empty());
    assert!(started(&report, "next") >= secs(1), "its slot is not lent: {report}");
}
