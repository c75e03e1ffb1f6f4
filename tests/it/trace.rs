//! The Chrome trace: its form, and that everything is in it.

use std::collections::{BTreeMap, BTreeSet};

use afterboot::{Governor, Profile, Report, Task};
use serde_json::{Value, json};
use tokio::time::{advance, sleep};

use crate::common::{ms, within};

async fn boot() -> Report {
    let governor = Governor::builder()
        .name("orders")
        .profile(Profile::default().concurrency(2))
        .quiet(ms(500))
        .record_segments()
        .build()
        .unwrap();
    let first = governor.govern(Task::new("first", || sleep(ms(10))));
    let second = governor.govern(Task::new("second", || sleep(ms(20))));
    governor.govern(Task::new("third", || sleep(ms(5))).after(&first).after(&second));
    governor.govern(Task::new("off", || async {}).when(false));
    let index = governor.govern(Task::new("index", || sleep(ms(300))).idle());
    governor.govern(Task::new("pictures", || async {}).idle().after(&index));
    let run = governor.report();
    sleep(ms(40)).await;
    advance(ms(120)).await;
    index.wait().await.unwrap();
    within(run.finished()).await
}

fn events(report: &Report) -> Vec<Value> {
    let trace: Value = serde_json::from_str(&report.to_chrome_trace()).expect("it is JSON");
    assert_eq!(trace["displayTimeUnit"], "ms");
    trace["traceEvents"].as_array().expect("events").clone()
}

/// Of this phase and, where one is given, category.
fn of<'a>(events: &'a [Value], phase: &str, category: &str) -> Vec<&'a Value> {
    events.iter().filter(|e| e["ph"] == phase && (category.is_empty() || e["cat"] == category)).collect()
}

/// As the format's description and Perfetto's importer want it.
#[tokio::test(start_paused = true)]
async fn every_event_has_the_fields_of_its_phase() {
    for event in events(&boot().await) {
        let phase = event["ph"].as_str().expect("a phase");
        assert!(event["name"].is_string() && event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
        assert!(event["pid"] != 0, "Perfetto keeps 0 for itself: {event}");
        let time = |key: &str| event[key].as_f64().is_some_and(|time| time >= 0.0);
        let right = match phase {
            "M" => event["args"].is_object(),
            "X" => time("ts") && time("dur") && event["cat"].is_string(),
            "i" => time("ts") && ["g", "t"].contains(&event["s"].as_str().unwrap_or_default()),
            "s" => time("ts") && event["id"].is_u64() && event["bp"] == Value::Null,
            "f" => time("ts") && event["id"].is_u64() && event["bp"] == "e",
            _ => false,
        };
        assert!(right, "{event}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_task_has_a_row_a_wait_and_a_run_and_each_predecessor_an_arrow() {
    let report = boot().await;
    let events = events(&report);
    let rows: BTreeMap<u64, &str> = of(&events, "M", "")
        .into_iter()
        .filter(|e| e["name"] == "thread_name" && e["pid"] == 2)
        .map(|e| (e["tid"].as_u64().unwrap(), e["args"]["name"].as_str().unwrap()))
        .collect();
    let names: Vec<&str> = rows.values().copied().collect();
    assert_eq!(names, ["first", "second", "third", "off", "index", "pictures"]);
    assert_eq!(of(&events, "X", "run").len(), 5);
    assert_eq!(
        of(&events, "X", "wait").len(),
        report.tasks.iter().filter(|task| task.queued.is_some()).count()
    );
    let segments: usize = report.tasks.iter().map(|task| task.segments.len()).sum();
    assert_eq!(of(&events, "X", "poll").len(), segments);
    assert!(segments >= 9, "{segments}");
    assert_eq!(of(&events, "i", "end").len(), 1);
    assert_eq!(of(&events, "i", "end")[0]["name"], "skipped (condition)");

    let arrow = |event: &&Value| (event["id"].as_u64().unwrap(), rows[&event["tid"].as_u64().unwrap()]);
    let from: BTreeMap<u64, &str> = of(&events, "s", "").iter().map(arrow).collect();
    let to: BTreeMap<u64, &str> = of(&events, "f", "").iter().map(arrow).collect();
    assert!(from.keys().eq(to.keys()), "each arrow has both ends");
    let arrows: BTreeSet<(&str, &str)> = from.iter().map(|(id, name)| (*name, to[id])).collect();
    assert_eq!(arrows, [("first", "third"), ("second", "third"), ("index", "pictures")].into());
}

#[tokio::test(start_paused = true)]
async fn times_are_microseconds_and_an_arrow_leaves_from_inside_its_run() {
    let report = boot().await;
    let events = events(&report);
    let runs = of(&events, "X", "run");
    let started: Vec<_> = report.tasks.iter().filter(|task| task.started.is_some()).collect();
    for (run, task) in runs.iter().zip(started) {
        assert_eq!(run["ts"], json!(task.started.unwrap().as_secs_f64() * 1e6), "{}", task.name);
        assert_eq!(run["dur"], json!(task.ran().unwrap().as_secs_f64() * 1e6), "{}", task.name);
        assert_eq!(run["args"]["outcome"], "completed");
    }
    for start in of(&events, "s", "") {
        let run = runs.iter().find(|run| run["tid"] == start["tid"]).expect("it has a run");
        let (at, begun) = (start["ts"].as_f64().unwrap(), run["ts"].as_f64().unwrap());
        assert!(at >= begun && at < begun + run["dur"].as_f64().unwrap(), "{start} is not inside {run}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_applications_rows_show_long_tasks_holds_and_the_gate() {
    let report = boot().await;
    let mut json = serde_json::to_value(&report).unwrap();
    let hold = json!({ "task": "index", "number": 4, "since": { "secs": 0, "nanos": 5_000_000 },
        "until": { "secs": 0, "nanos": 9_000_000 }, "why": "window" });
    // Two at the same time: a row each.
    json["holds"] = json!([hold, hold]);
    let report: Report = serde_json::from_value(json).unwrap();
    assert_eq!(report.long_tasks.len(), 1);
    let events = events(&report);
    let long = of(&events, "X", "long task");
    assert_eq!(long.len(), 1);
    assert_eq!(long[0]["name"], "unknown");
    assert_eq!(long[0]["dur"], json!(report.long_tasks[0].length.as_secs_f64() * 1e6));
    let holds = of(&events, "X", "hold");
    assert_eq!((holds.len(), &holds[0]["dur"]), (2, &json!(4000.0)));
    assert_ne!(holds[0]["tid"], holds[1]["tid"]);
    assert_ne!(holds[0]["tid"], long[0]["tid"]);
    let gate = of(&events, "i", "gate");
    assert_eq!((gate.len(), &gate[0]["s"]), (1, &json!("g")));
    assert!(holds.iter().chain(&long).chain(&gate).all(|event| event["pid"] == 1));
}
