//! The report: everybody is in it, it is readable whatever the names are, and it comes when it should.

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;

use afterboot::{Governor, Outcome, Queue, Report, Task, TaskReport};
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};
use tokio_test::{assert_pending, assert_ready};

use crate::common::{boom, breathe, ended, fast, ms, paced, secs, silence, soon, within};

/// One task of every end, and two that have none.
async fn of_every_kind(governor: &Governor) {
    silence();
    governor.govern(Task::new("completed", || async {}));
    let failed = governor.govern(Task::new("failed", || async { Err::<(), _>("no") }));
    governor.govern(Task::new("panicked", boom));
    governor.govern(Task::new("timed out", pending::<()>).timeout(ms(5)));
    governor.govern(Task::new("condition", || async {}).when(false));
    governor.govern(Task::new("predecessor", || async {}).after(&failed));
    governor.govern(Task::new("cancelled", || async {}).idle()).cancel();
    governor.govern(Task::new("invalid", || async {}).timeout(ms(0)));
    governor.govern(Task::new("running", pending::<()>));
    governor.govern(Task::new("waiting", || async {}).idle());
    sleep(secs(1)).await;
}

/// I14.
#[tokio::test(start_paused = true)]
async fn every_declared_task_is_in_the_report_with_how_it_ended_or_why_it_has_not() {
    let governor = fast(3);
    of_every_kind(&governor).await;
    let report = governor.report().current();
    let words =
        |task: &TaskReport| format!("{}: {}", task.name, task.outcome.as_ref().map_or("-", Outcome::word));
    let words: Vec<String> = report.tasks.iter().map(words).collect();
    assert_eq!(
        words.join(", "),
        "completed: completed, failed: failed, panicked: panicked, timed out: timed out, condition: skipped, \
         predecessor: skipped, cancelled: cancelled, invalid: invalid, running: -, waiting: -"
    );
    assert_eq!(report.task("predecessor").unwrap().waited_for, ["failed"]);
    assert_eq!(report.task("waiting").unwrap().queue, Queue::Idle);
    let report = within(governor.shutdown(ms(10))).await;
    for name in ["running", "waiting"] {
        assert_eq!(ended(&report, name).to_string(), "cancelled (shutdown)");
    }
    assert_eq!(report.tasks.len(), 10);
}

/// Columns as a terminal counts them: wide for the Han, kana and Hangul blocks and for emoji.
fn columns(line: &str) -> usize {
    line.chars()
        .map(|c| match c {
            '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => 2,
            '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}' => 2,
            _ => 1,
        })
        .sum()
}

#[track_caller]
fn narrow(report: &Report) {
    let text = report.to_string();
    for line in text.lines() {
        assert!(columns(line) <= 100, "{} columns: {line}", columns(line));
    }
}

#[track_caller]
fn aligned(report: &Report) {
    let text = report.to_string();
    let head = text.lines().find(|line| line.ends_with("  outcome")).expect("there is a head");
    let outcome = columns(head) - "outcome".len();
    let rows = text.lines().skip_while(|line| *line != head).skip(1).take(report.tasks.len());
    for (row, task) in rows.zip(&report.tasks) {
        let mut at = 0;
        let rest: String = row
            .chars()
            .skip_while(|c| {
                let here = at < outcome;
                at += columns(&c.to_string());
                here
            })
            .collect();
        let word = task.outcome.as_ref().map_or("", Outcome::word);
        assert!(rest.starts_with(word), "not aligned: {row}");
    }
}

/// I20.
#[tokio::test(start_paused = true)]
async fn hostile_and_long_names_neither_widen_the_table_nor_reach_the_terminal() {
    silence();
    let long = "long ".repeat(200);
    let governor = Governor::builder().name(format!("\x1b]0;title\x07{long}")).build().unwrap();
    let names = [
        "\x1b[2J\x1b[H",
        "a\nb\r\n",
        "\u{202e}gpj.exe",
        "\u{2067}\u{200f}",
        "\t\t\0",
        "",
        "\u{9b}31m",
        "\u{85}",
    ];
    for name in names.into_iter().chain([long.as_str()]) {
        governor.govern(Task::new(name.to_owned(), move || async {
            Err::<(), _>("\x1b[31m\u{202e}\n".repeat(30))
        }));
    }
    let report = within(governor.report().finished()).await;
    narrow(&report);
    aligned(&report);
    let text = report.to_string();
    assert_eq!(text.lines().count(), 5 + report.tasks.len(), "{text}");
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert_eq!(text.chars().find(|&c| (c.is_control() && c != '\n') || turns(c)), None, "{text}");
    assert_eq!(report.task("\x1b[2J\x1b[H").unwrap().number, 0, "the data keeps the name as it was given");
}

/// I20: the Arabic letter mark turns the line as its two sisters do.
#[tokio::test(start_paused = true)]
async fn the_arabic_letter_mark_does_not_reach_the_terminal() {
    let governor = fast(1);
    governor.govern(Task::new("a\u{61c}1", || async {}));
    let text = within(governor.report().finished()).await.to_string();
    assert!(!text.contains('\u{61c}'), "{text:?}");
}

/// I20: a name in a script of wide characters is long sooner.
#[tokio::test(start_paused = true)]
async fn wide_characters_count_for_two_columns() {
    let governor = fast(1);
    governor.govern(Task::new("\u{691c}\u{7d22}\u{7d22}\u{5f15}".repeat(8), || async {}));
    governor.govern(Task::new("\u{691c}\u{7d22}", || async {}));
    let report = within(governor.report().finished()).await;
    narrow(&report);
    aligned(&report);
}

/// The headline counts every kind of end, and there are many.
#[tokio::test(start_paused = true)]
async fn a_run_of_every_kind_of_end_is_no_wider_than_any_other() {
    let governor = fast(3);
    of_every_kind(&governor).await;
    narrow(&governor.report().current());
    aligned(&governor.report().current());
}

/// I14: two tasks are told apart, whatever they are called.
#[tokio::test(start_paused = true)]
async fn tasks_of_the_same_name_are_numbered() {
    let governor = fast(1);
    for name in ["a", "b", "a", "a"] {
        governor.govern(Task::new(name, || async {}));
    }
    let report = within(governor.report().finished()).await;
    let names: Vec<&str> = report.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "a#2", "a#3"]);
}

/// I14: also where somebody called his task `a#2`.
#[tokio::test(start_paused = true)]
async fn no_two_tasks_are_shown_under_one_name() {
    let governor = fast(1);
    for name in ["a#2", "a", "a"] {
        governor.govern(Task::new(name, || async {}));
    }
    let report = within(governor.report().finished()).await;
    let names: Vec<&str> = report.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a#2", "a", "a#3"]);
}

/// I14: what is declared later is counted, and what a task in scope declares is in scope.
#[tokio::test(start_paused = true)]
async fn late_tasks_are_counted_and_children_of_tasks_in_scope_are_in_scope() {
    let governor = fast(3);
    let declare = governor.clone();
    governor.govern(Task::new("parent", move || async move {
        sleep(secs(1)).await;
        let inner = declare.clone();
        declare.govern(Task::new("child", move || async move {
            inner.govern(Task::new("grandchild", || sleep(secs(1))));
        }));
    }));
    let run = governor.report();
    let late = governor.clone();
    governor.govern(Task::new("late", move || async move {
        late.govern(Task::new("late child", pending::<()>));
    }));
    let report = within(run.finished()).await;
    let names: Vec<&str> = report.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["parent", "child", "grandchild"]);
    assert_eq!(report.late, 2);
    assert!(report.to_string().contains("late: 2 declared after report(), not listed"), "{report}");
    assert!(report.taken >= secs(2) && report.taken < ms(2_010), "{report}");
}

/// I14: a blocking closure is the task's own code too.
#[tokio::test]
async fn children_of_a_blocking_task_in_scope_are_in_scope() {
    let governor = fast(3);
    let declare = governor.clone();
    governor.govern(Task::blocking("parent", move || {
        declare.govern(Task::new("child", || async {}));
    }));
    let report = soon(governor.report().finished()).await;
    assert!(report.task("child").is_some(), "{report}");
}

/// I16.
#[tokio::test(start_paused = true)]
async fn finished_and_started_resolve_at_once_where_all_has_ended() {
    let governor = fast(3);
    assert_ready!(tokio_test::task::spawn(fast(3).report().finished()).poll());
    for _ in 0..10 {
        governor.govern(Task::new("quick", || async {}));
    }
    sleep(secs(1)).await;
    let run = governor.report();
    let report = assert_ready!(tokio_test::task::spawn(run.finished()).poll());
    assert_eq!(report.tasks.len(), 10);
    assert_ready!(tokio_test::task::spawn(run.started()).poll());
}

/// I16: at the last start, and not at the next end.
#[tokio::test(start_paused = true)]
async fn started_resolves_when_the_last_task_starts_whoever_ends_when() {
    let governor = paced(3, ms(1), ms(1));
    for name in ["first", "last"] {
        governor.govern(Task::new(name, || sleep(secs(10))));
    }
    let run = governor.report();
    let mut started = tokio_test::task::spawn(run.started());
    assert_pending!(started.poll());
    let report = within(run.started()).await;
    assert!(report.taken < ms(20), "{report}");
    assert!(started.is_woken());
    assert!(report.tasks.iter().all(|task| task.started.is_some() && task.outcome.is_none()));
}

/// I16.
#[tokio::test(start_paused = true)]
async fn a_task_that_awaits_the_end_does_not_wait_for_itself_nor_for_another_that_does() {
    let governor = fast(3);
    for name in ["reporter", "other reporter"] {
        let inner = governor.clone();
        governor.govern(Task::new(name, move || async move {
            sleep(ms(1)).await;
            inner.report().finished().await;
        }));
    }
    governor.govern(Task::new("work", || sleep(secs(3))));
    let report = within(governor.report().finished()).await;
    assert_eq!(ended(&report, "work"), Outcome::Completed);
    assert_eq!(report.task("reporter").unwrap().outcome, None, "shown as running: {report}");
    breathe().await;
    let report = governor.report().current();
    assert!(report.tasks.iter().all(|task| task.outcome == Some(Outcome::Completed)), "{report}");
    assert!(report.taken < ms(3_010), "{report}");
}

/// I16: it is left out only as long as it awaits.
#[tokio::test(start_paused = true)]
async fn a_task_that_has_given_up_awaiting_the_end_is_waited_for_again() {
    let governor = fast(3);
    let inner = governor.clone();
    governor.govern(Task::new("impatient", move || async move {
        timeout(ms(10), inner.report().finished()).await.unwrap_err();
        sleep(secs(5)).await;
    }));
    governor.govern(Task::new("other", || sleep(secs(1))));
    let report = within(governor.report().finished()).await;
    assert_eq!(ended(&report, "impatient"), Outcome::Completed);
}

#[cfg(feature = "serde")]
mod json {
    use serde_json::Value;

    use super::*;

    /// Polls are measured on the machine's clock: the same length for all.
    fn masked(report: &Report) -> Value {
        let mut json: Value = serde_json::from_str(&report.to_json()).unwrap();
        for task in json["tasks"].as_array_mut().unwrap() {
            task["longest_poll"] = serde_json::json!({ "secs": 0, "nanos": 20_000 });
        }
        json
    }

    /// I14.
    #[tokio::test(start_paused = true)]
    async fn the_json_says_its_version_and_gives_the_report_back() {
        let governor = Governor::builder().seed(u64::MAX).build().unwrap();
        of_every_kind(&governor).await;
        let report = governor.report().current();
        let json = report.to_json();
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["version"], 1);
    }

    /// I17: a paused run is the same every time, so its table can be shown here.
    #[tokio::test(start_paused = true)]
    async fn the_table_of_a_run() {
        silence();
        let governor = Governor::builder().seed(7).build().unwrap();
        let senders = governor.govern(Task::new("senders", || sleep(ms(120))));
        governor.govern(Task::new("notifications", boom));
        governor.govern(Task::new("search index", || sleep(secs(2))).idle().after(&senders));
        governor.govern(Task::new("suggestions", pending::<()>).idle().timeout(secs(1)));
        governor.govern(Task::new("survey", || async {}).when(false));
        let report = within(governor.report().finished()).await;
        let report: Report = serde_json::from_value(masked(&report)).unwrap();
        insta::assert_snapshot!(report, @"
        boot: 5 tasks; last start 5.00 s, last end 7.00 s
        outcomes: 2 completed, 1 panicked, 1 timed out, 1 skipped
        gate: opened by quiet at 5.004 s; last reason to wait: the quiet window
        profile: concurrency=3,delay=1ms,pulse=1ms
            # task                       queue    waited      ran  polls  longest  outcome
            0 senders                    normal   1.0 ms   120 ms      2    20 µs  completed
            1 notifications              normal   2.0 ms     0 µs      1    20 µs  panicked: boom
            2 search index               idle     4.88 s   2.00 s      2    20 µs  completed
            3 suggestions                idle     5.00 s   1.00 s      2    20 µs  timed out
            4 survey                     normal        -        -      0        -  skipped (condition)
        ");
    }

    /// I20: the largest numbers are no wider than their columns.
    #[tokio::test(start_paused = true)]
    async fn the_largest_numbers_do_not_widen_the_table() {
        let governor = fast(1);
        governor.govern(Task::new("x".repeat(80), || async { Err::<(), _>("y".repeat(80)) }));
        let mut json = masked(&within(governor.report().finished()).await);
        let forever = serde_json::json!({ "secs": 4_000_000_000_u64, "nanos": 999_999_999 });
        json["tasks"][0]["number"] = 1_000_000.into();
        json["tasks"][0]["polls"] = u32::MAX.into();
        for key in ["longest_poll", "finished", "started"] {
            json["tasks"][0][key] = forever.clone();
        }
        json["last_start"] = forever;
        narrow(&serde_json::from_value(json).unwrap());
    }
}

/// I40: on a current_thread runtime nobody else runs while a poll lasts.
#[tokio::test(start_paused = true)]
async fn the_event_loop_goes_round_while_a_long_report_is_made() {
    let governor = fast(3);
    for _ in 0..8_000 {
        governor.govern(Task::new("task", || async {}));
    }
    let run = governor.report();
    within(run.finished()).await;
    let rounds = Rc::new(Cell::new(0));
    let local = LocalSet::new();
    let counted = Rc::clone(&rounds);
    local.spawn_local(async move {
        loop {
            counted.set(counted.get() + 1);
            tokio::task::yield_now().await;
        }
    });
    let report = local.run_until(run.finished()).await;
    assert_eq!(report.tasks.len(), 8_000);
    assert!(rounds.get() >= 10, "{} rounds of the loop", rounds.get());
}
