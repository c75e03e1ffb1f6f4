//! What a reader does: sort, search, hover, go through it by keyboard, zoom, print.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::time::Duration;

use afterboot::{Queue, TaskReport};
use serde_json::json;

use crate::reports::{boot, many};
use crate::tab::{Tab, open};

const COLUMNS: [&str; 13] = [
    "#",
    "task",
    "queue",
    "outcome",
    "declared",
    "queued",
    "started",
    "finished",
    "waited",
    "ran",
    "polls",
    "longest poll",
    "marks",
];

/// How two tasks stand in a column; none where that is not looked at here.
fn compare(column: &str, a: &TaskReport, b: &TaskReport, rising: bool) -> Option<Ordering> {
    let way = |order: Ordering| if rising { order } else { order.reverse() };
    let last = |a: Option<Duration>, b: Option<Duration>| match (a, b) {
        (Some(a), Some(b)) => way(a.cmp(&b)),
        (a, b) => a.is_none().cmp(&b.is_none()),
    };
    let longest = |task: &TaskReport| (task.polls > 0).then_some(task.longest_poll);
    let outcome = |task: &TaskReport| task.outcome.as_ref().map(ToString::to_string);
    let queue = |task: &TaskReport| if task.queue == Queue::Idle { "idle" } else { "normal" };
    Some(match column {
        "#" => way(a.number.cmp(&b.number)),
        "task" => way(a.name.cmp(&b.name)),
        "queue" => way(queue(a).cmp(queue(b))),
        "outcome" => way(outcome(a).cmp(&outcome(b))),
        "declared" => way(a.declared.cmp(&b.declared)),
        "queued" => last(a.queued, b.queued),
        "started" => last(a.started, b.started),
        "finished" => last(a.finished, b.finished),
        "waited" => last(a.waited(), b.waited()),
        "ran" => last(a.ran(), b.ran()),
        "polls" => way(a.polls.cmp(&b.polls)),
        "longest poll" => last(longest(a), longest(b)),
        _ => return None,
    })
}

fn order(tab: &mut Tab) -> Vec<u64> {
    tab.texts_of("#table tbody td:first-child").iter().map(|text| text.parse().expect("a number")).collect()
}

#[test]
fn the_table_sorts_by_every_column_both_ways_and_by_keyboard() {
    let report = boot();
    let mut tab = open(&report);
    let arrows: Vec<String> = tab.texts_of("#table th").iter().map(|t| t.replace(" ↑", "")).collect();
    assert_eq!(arrows, COLUMNS);
    // Another column first, so that each click below is the first on its column.
    tab.eval("document.querySelectorAll('#table th button')[12].click()");
    for (place, column) in COLUMNS.iter().enumerate().take(12) {
        tab.eval(&format!("document.querySelectorAll('#table th button')[{place}].focus()"));
        for rising in [true, false] {
            tab.press("Enter");
            let mut tasks: Vec<&TaskReport> = report.tasks.iter().chain(&report.late_tasks).collect();
            tasks.sort_by_key(|task| task.number);
            tasks.sort_by(|a, b| compare(column, a, b, rising).expect("a known column"));
            let expected: Vec<u64> = tasks.iter().map(|task| task.number).collect();
            assert_eq!(order(&mut tab), expected, "{column}, rising: {rising}");
            let sorted = format!("document.querySelectorAll('#table th')[{place}].getAttribute('aria-sort')");
            assert_eq!(tab.text(&sorted), if rising { "ascending" } else { "descending" });
            assert_eq!(tab.number("document.querySelectorAll('#table [aria-sort]').length"), 1.0);
        }
    }
}

#[test]
fn the_search_looks_at_names_queues_and_outcomes_and_says_how_many() {
    let report = boot();
    let mut tab = open(&report);
    for (typed, found) in [
        ("Cache", &["migrate cache", "warm cache"][..]),
        ("newer than", &["migrate cache"]),
        ("lent", &["suggestions"]),
        ("no such", &[]),
    ] {
        tab.eval("document.getElementById('search').select(), document.getElementById('search').focus()");
        tab.type_text(typed);
        let names: BTreeSet<String> = tab.texts_of("#names bdi").into_iter().collect();
        assert_eq!(names, found.iter().map(|name| (*name).to_owned()).collect(), "{typed}");
        assert_eq!(tab.number("document.querySelectorAll('#table tbody tr').length"), found.len() as f64);
        assert_eq!(tab.texts_of("#found"), [format!("{} of 12 tasks", found.len())]);
    }
    tab.eval("document.getElementById('search').select()");
    tab.type_text("idle");
    assert_eq!(tab.texts_of("#names bdi").len(), 5);
    tab.eval("document.getElementById('only-chain').click()");
    assert_eq!(tab.texts_of("#names bdi"), ["search index", "thumbnails"]);
}

fn focused(tab: &mut Tab) -> String {
    tab.text("document.activeElement.getAttribute('aria-label') ?? document.activeElement.id")
}

#[test]
fn the_keyboard_reaches_every_bar_and_each_says_what_it_is() {
    let report = boot();
    let mut tab = open(&report);
    let stops = "document.querySelectorAll('#bars [tabindex=\"0\"]').length";
    assert_eq!(tab.number(stops), 1.0, "one stop in all");
    tab.eval("document.getElementById('fold').focus()");
    tab.press("Tab");
    assert_eq!(focused(&mut tab), "long task of 116 ms at 324 ms by unknown");
    let labels =
        tab.texts("[...document.querySelectorAll('#bars .bar')].map((b) => b.getAttribute('aria-label'))");
    for label in &labels {
        assert_eq!(focused(&mut tab), *label);
        assert_eq!(tab.eval("document.getElementById('tip').hidden"), false, "{label}");
        let name = label.split(": ").next().expect("a name");
        assert!(tab.text("document.getElementById('tip').textContent").contains(name), "{label}");
        tab.press("ArrowRight");
    }
    assert_eq!(focused(&mut tab), *labels.last().expect("there are bars"), "it stays at the end");
    tab.press("Escape");
    assert_eq!(tab.eval("document.getElementById('tip').hidden"), true);
    tab.press("Home");
    tab.press("ArrowDown");
    assert_eq!(focused(&mut tab), "configuration: ran 40.0 ms from 1.0 ms, completed");
    tab.press("ArrowDown");
    assert_eq!(focused(&mut tab), "notifications: ran 160 ms from 2.0 ms, completed");
    tab.press("ArrowUp");
    assert!(focused(&mut tab).starts_with("configuration: ran"));
    tab.press("ArrowLeft");
    assert_eq!(focused(&mut tab), "configuration: waited 1.0 ms");
    assert_eq!(tab.number(stops), 1.0);
    tab.press("Tab");
    assert_eq!(tab.eval("document.activeElement.closest('#bars') === null"), true);
    assert_eq!(tab.eval("document.getElementById('tip').hidden"), true);
}

#[test]
fn hovering_a_row_shows_its_times() {
    let mut tab = open(&boot());
    tab.eval("document.getElementById('chart').scrollIntoView()");
    let middle = |tab: &mut Tab, side: &str| tab.number(&format!("(({side}) + 0.5) | 0"));
    let row = "[...document.querySelectorAll('#names div')].find((e) => e.textContent === 'search index').getBoundingClientRect()";
    let x = middle(&mut tab, "document.getElementById('bars').getBoundingClientRect().right - 20");
    let y = middle(&mut tab, &format!("{row}.top + {row}.height / 2"));
    tab.mouse("mouseMoved", x, y);
    let tip = tab.text("document.getElementById('tip').innerText");
    for text in ["search index", "completed", "420 ms", "2.44 s", "critical chain"] {
        assert!(tip.contains(text), "{text} is not in {tip}");
    }
    tab.mouse("mouseMoved", 5.0, 5.0);
    assert_eq!(tab.eval("document.getElementById('tip').hidden"), true);
}

#[test]
fn dragging_over_the_time_line_zooms_and_a_button_comes_back() {
    let mut tab = open(&many(300));
    let wide =
        "Math.max(...[...document.querySelectorAll('#bars .run')].map((b) => +b.getAttribute('width')))";
    let before = tab.number(wide);
    let left = tab.number("document.getElementById('strip').getBoundingClientRect().left");
    let y = tab.number("document.getElementById('strip').getBoundingClientRect().top + 30");
    assert_eq!(tab.eval("document.getElementById('whole').hidden"), true);
    tab.mouse("mousePressed", left + 100.0, y);
    tab.mouse("mouseMoved", left + 150.0, y);
    tab.mouse("mouseReleased", left + 200.0, y);
    assert!(tab.number(wide) > 3.0 * before);
    assert_eq!(tab.eval("document.getElementById('whole').hidden"), false);
    tab.eval("document.getElementById('whole').click()");
    assert_eq!(tab.number(wide), before);
}

#[test]
fn paper_gets_everything_and_no_controls() {
    let mut tab = open(&many(300));
    let pdf = tab.send("Page.printToPDF", json!({ "preferCSSPageSize": true }));
    let bytes = pdf["data"].as_str().expect("a document").len() / 4 * 3;
    assert!(bytes > 20_000, "{bytes} bytes");
    tab.send("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    for (selector, property, value) in [
        (".tools", "display", "none"),
        ("#chart", "maxHeight", "none"),
        ("#chart", "overflow", "visible"),
        (".scroll", "overflow", "visible"),
        ("th", "position", "static"),
    ] {
        let style = format!("getComputedStyle(document.querySelector('{selector}')).{property}");
        assert_eq!(tab.text(&style), value, "{selector}");
    }
}
