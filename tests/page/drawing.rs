//! Where the bars stand, against the report they are drawn from.

use std::time::Duration;

use afterboot::{Report, TaskReport};
use serde_json::Value;

use crate::reports::{boot, many};
use crate::tab::{Tab, open};

/// Pixels.
const NEAR: f64 = 0.05;
/// What is shorter is drawn so wide, to be seen at all.
const LEAST: f64 = 1.5;

struct Bar {
    label: String,
    kind: String,
    x: f64,
    width: f64,
}

fn bars(tab: &mut Tab) -> Vec<Bar> {
    let list = tab.eval(
        "[...document.querySelectorAll('#bars .bar')].map((b) => ({ label: b.getAttribute('aria-label'), \
         kind: b.getAttribute('class'), x: +b.getAttribute('x'), width: +b.getAttribute('width') }))",
    );
    let bar = |value: &Value| Bar {
        label: value["label"].as_str().expect("each bar says what it is").to_owned(),
        kind: value["kind"].as_str().expect("a class").to_owned(),
        x: value["x"].as_f64().expect("a place"),
        width: value["width"].as_f64().expect("a width"),
    };
    list.as_array().expect("a list").iter().map(bar).collect()
}

fn all(report: &Report) -> impl Iterator<Item = &TaskReport> {
    report.tasks.iter().chain(&report.late_tasks)
}

#[track_caller]
fn bar_of<'a>(bars: &'a [Bar], task: &TaskReport, kind: &str) -> &'a Bar {
    let start = format!("{}: ", task.name);
    let mut found = bars.iter().filter(|bar| bar.label.starts_with(&start) && has(bar, kind));
    let bar = found.next().unwrap_or_else(|| panic!("{} has no bar of kind {kind}", task.name));
    assert!(found.next().is_none(), "{} has two bars of kind {kind}", task.name);
    bar
}

fn has(bar: &Bar, kind: &str) -> bool {
    bar.kind.split(' ').any(|class| class == kind)
}

/// The last moment of anything, which the right edge stands for.
fn end(report: &Report) -> f64 {
    let tasks = all(report).filter_map(|task| task.finished);
    let long = report.long_tasks.iter().map(|long| long.start + long.length);
    tasks.chain(long).max().unwrap_or_default().as_secs_f64()
}

#[track_caller]
fn at_scale(tab: &mut Tab, report: &Report) {
    let width = tab.number("document.getElementById('bars').viewBox.baseVal.width") - 110.0;
    let place = |time: Duration| time.as_secs_f64() / end(report) * width;
    let bars = bars(tab);
    let check = |bar: &Bar, from: Duration, to: Duration| {
        assert!((bar.x - place(from)).abs() < NEAR, "{} stands at {}, not {}", bar.label, bar.x, place(from));
        let wide = (place(to) - place(from)).max(LEAST);
        assert!((bar.width - wide).abs() < NEAR, "{} is {} wide, not {wide}", bar.label, bar.width);
    };
    for task in all(report) {
        if let (Some(queued), Some(end)) = (task.queued, task.started.or(task.finished)) {
            check(bar_of(&bars, task, "wait"), queued, end);
        }
        if let (Some(started), Some(finished)) = (task.started, task.finished) {
            check(bar_of(&bars, task, "run"), started, finished);
        }
    }
    let count = |kind: &str| bars.iter().filter(|bar| has(bar, kind)).count();
    assert_eq!(count("run"), all(report).filter(|task| task.started.is_some()).count());
    assert_eq!(count("wait"), all(report).filter(|task| task.queued.is_some()).count());
    assert_eq!(count("none"), all(report).filter(|task| task.started.is_none()).count());
    assert_eq!(count("hold"), report.holds.len());
    assert_eq!(count("long"), report.long_tasks.len());
    let long: Vec<&Bar> = bars.iter().filter(|bar| has(bar, "long")).collect();
    for (bar, long) in long.iter().zip(&report.long_tasks) {
        check(bar, long.start, long.start + long.length);
    }
}

#[test]
fn bars_stand_where_the_report_says_and_are_as_long_as_it_says() {
    let report = boot();
    let mut tab = open(&report);
    tab.eval("document.getElementById('fold').click()");
    at_scale(&mut tab, &report);
    tab.resize(900, 700);
    tab.settle();
    at_scale(&mut tab, &report);
}

#[test]
fn three_hundred_bars_too() {
    let report = many(300);
    at_scale(&mut open(&report), &report);
}

#[test]
fn a_folded_stretch_leaves_the_order_and_the_proportions_of_the_rest() {
    let report = boot();
    let mut tab = open(&report);
    assert!(tab.eval("document.getElementById('fold').checked") == true);
    let folded = bars(&mut tab);
    tab.eval("document.getElementById('fold').click()");
    let unfolded = bars(&mut tab);
    let mut rates: Vec<f64> = Vec::new();
    for task in all(&report).filter(|task| task.ran().is_some_and(|ran| ran.as_millis() >= 10)) {
        let (now, before) = (bar_of(&folded, task, "run"), bar_of(&unfolded, task, "run"));
        rates.push(now.width / before.width);
    }
    let (least, most) =
        rates.iter().fold((f64::MAX, 0.0_f64), |(least, most), r| (least.min(*r), most.max(*r)));
    assert!(least > 1.3, "folding gives the bars room: {least}");
    assert!(most - least < 0.01, "{least} to {most}");
}

#[test]
fn the_picture_marks_what_the_report_says() {
    let report = boot();
    let mut tab = open(&report);
    let bars = bars(&mut tab);
    let named = |kind: &str| -> Vec<String> {
        let fit = bars.iter().filter(|bar| has(bar, kind));
        fit.map(|bar| bar.label.split(": ").next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(named("critical"), ["search index", "thumbnails"]);
    assert_eq!(named("bad"), ["migrate cache"]);
    assert_eq!(named("lent"), ["suggestions"]);
    assert_eq!(named("hold"), ["old logs"]);
    assert_eq!(named("monkey"), ["telemetry"]);
    assert_eq!(tab.number("document.querySelectorAll('#bars .demanded').length"), 1.0);
    assert_eq!(tab.number("document.querySelectorAll('#bars .link').length"), 1.0);
    assert_eq!(tab.number("document.querySelectorAll('#bars .gate').length"), 1.0);
    assert_eq!(tab.texts_of("#strip .gate-note"), ["gate opens, 2.44 s"]);
    assert_eq!(tab.texts_of(".corner"), ["running, up to 2"]);
    assert_eq!(tab.texts_of("#names .critical"), ["search index", "thumbnails"]);
    // The legend names what there is, and nothing else.
    let shown =
        "[...document.querySelectorAll('[data-of]')].filter((e) => !e.hidden).map((e) => e.dataset.of)";
    assert_eq!(tab.texts(shown), ["hold", "monkey", "demanded", "lent", "long", "gate"]);
}
