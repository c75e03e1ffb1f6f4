//! Names, reasons and errors are text, whatever stands in them (C13).

use afterboot::Report;
use serde_json::{Value, json};

use crate::reports::{boot, changed};
use crate::tab::open;

fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "</script><script>window.hacked = 1</script>",
        "<img src=x onerror=\"window.hacked = 1\">",
        "<!--<script>",
        "\"><svg onload=alert(1)>",
        "=HYPERLINK(\"x\")",
        "{{script}}",
        "\u{1b}]0;title\u{7}\u{1b}[2J",
        "\u{202e}gpj.exe\u{2066}",
        "שלום \u{200f}(1)",
        "a\u{2028}b\0c",
    ]
    .map(str::to_owned)
    .into();
    names.push(format!("{}end", "long ".repeat(2_000)));
    names.push("😀".repeat(10_000));
    names
}

/// Every text that comes from outside is hostile.
fn hostile() -> Report {
    let names = names();
    let evil = &names[0];
    changed(&boot(), |json| {
        let (tasks, late) = (json["tasks"].take(), json["late_tasks"].take());
        let give = |task: (usize, &Value)| {
            let mut task = (task.0, task.1.clone()).1;
            task["waited_for"] = json!([evil]);
            task["awaited"] = json!([names[1]]);
            task
        };
        let mut tasks: Vec<Value> = tasks.as_array().into_iter().flatten().enumerate().map(give).collect();
        for (task, name) in tasks.iter_mut().zip(&names) {
            task["name"] = json!(name);
        }
        tasks[3]["outcome"] = json!({ "kind": "failed", "detail": names[1] });
        json["tasks"] = json!(tasks);
        json["late_tasks"] = late;
        json["late_tasks"][0]["name"] = json!(names[11]);
        json["governor"] = json!(evil);
        json["profile"] = json!(names[1]);
        json["interactive_failed"] = json!(evil);
        json["monkey"]["victim"] = json!(evil);
        json["monkey"]["asked"] = json!(evil);
        json["long_tasks"][0]["who"] = json!(evil);
        json["holds"][0]["task"] = json!(evil);
        json["holds"][0]["why"] = json!({ "in_flight": { "requests": evil } });
    })
}

/// As the page shows a name, cut after so many characters.
fn shown(name: &str, limit: usize) -> String {
    let invisible = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let show = |c: char| if invisible(c) { format!("\\u{{{:x}}}", u32::from(c)) } else { c.to_string() };
    let cut = if name.chars().count() > limit { "…" } else { "" };
    name.chars().take(limit).map(show).collect::<String>() + cut
}

#[test]
fn hostile_names_are_shown_as_text_and_become_no_element() {
    let report = hostile();
    let mut tab = open(&report);
    assert_eq!(tab.number("document.querySelectorAll('script').length"), 2.0);
    for element in ["img", "iframe", "a", "[onerror]", "[onload]", "object", "link", "base"] {
        assert_eq!(tab.number(&format!("document.querySelectorAll('{element}').length")), 0.0, "{element}");
    }
    assert_eq!(tab.eval("window.hacked ?? null"), Value::Null);
    let drawn = tab.texts_of("#names bdi");
    let listed = tab.texts_of("#table td:nth-child(2) bdi");
    for task in report.tasks.iter().chain(&report.late_tasks) {
        let name = shown(&task.name, 200);
        assert!(drawn.contains(&name), "{name} is not in the waterfall");
        assert!(listed.contains(&name), "{name} is not in the table");
    }
    assert_eq!(tab.texts_of(".story p"), report.headlines());
    assert_eq!(tab.texts_of("h1"), ["</script><script>window.hacked = 1</script>"]);
}

#[test]
fn no_name_turns_or_widens_what_stands_around_it() {
    let mut tab = open(&hostile());
    let loose = "[...document.querySelectorAll('#names div, #table td:nth-child(2), .story b')].filter((e) => \
                 e.className !== 'application' && e.firstChild?.nodeName !== 'BDI').length";
    assert_eq!(tab.number(loose), 0.0, "a name without its bdi");
    assert_eq!(tab.text("getComputedStyle(document.querySelector('#names bdi')).unicodeBidi"), "isolate");
    assert!(tab.number("document.documentElement.scrollWidth") <= 1280.0);
    let heights = "new Set([...document.querySelectorAll('#names div')].map((e) => e.offsetHeight)).size";
    assert_eq!(tab.number(heights), 1.0, "a name makes its row higher than its bar");
    assert_eq!(tab.eval("document.body.innerText.isWellFormed()"), true, "a character is cut in two");
}

#[test]
fn the_tip_shows_hostile_text_as_text() {
    let mut tab = open(&hostile());
    let bars = tab.number("document.querySelectorAll('#bars .bar').length");
    assert!(bars > 12.0);
    for bar in 0..bars as usize {
        tab.eval(&format!("document.querySelectorAll('#bars .bar')[{bar}].focus()"));
        assert_eq!(tab.eval("document.getElementById('tip').hidden"), false);
        assert_eq!(tab.number("document.querySelectorAll('#tip img, #tip script, #tip svg').length"), 0.0);
    }
    assert_eq!(tab.eval("window.hacked ?? null"), Value::Null);
    // The first bar is the long task's.
    tab.eval("document.querySelector('#bars .bar').focus()");
    assert!(
        tab.text("document.getElementById('tip').textContent")
            .contains("by </script><script>window.hacked = 1</script>")
    );
}

/// A report from elsewhere may hold any times.
#[test]
fn impossible_times_break_no_script() {
    let longest = json!({ "secs": 4_000_000_000_u64, "nanos": 999_999_999 });
    let zero = json!({ "secs": 0, "nanos": 0 });
    let report = changed(&boot(), |json| {
        json["tasks"][0]["finished"] = longest.clone();
        json["tasks"][1]["started"] = longest.clone();
        json["tasks"][2]["finished"] = zero.clone();
        json["tasks"][6]["after"] = json!([7, 99_999, u64::MAX]);
        json["tasks"][7]["number"] = json!(u64::MAX);
        json["long_tasks"][0]["length"] = longest.clone();
        json["holds"][0]["until"] = zero.clone();
        json["taken"] = zero;
    });
    let mut tab = open(&report);
    tab.eval("document.getElementById('fold').click()");
    let bad = "[...document.querySelectorAll('#bars *, #strip *')].filter((e) => \
               [...e.attributes].some((a) => /NaN|Infinity|undefined/.test(a.value))).length";
    assert_eq!(tab.number(bad), 0.0);
    // Nor does a run in which nothing happened.
    let empty = changed(&report, |json| {
        for list in ["tasks", "late_tasks", "long_tasks", "holds"] {
            json[list] = json!([]);
        }
        json["gate"] = json!({ "shut": { "why": "no_idle_task", "until": null } });
        json["monkey"] = Value::Null;
    });
    drop(tab);
    let mut tab = open(&empty);
    assert_eq!(tab.number(bad), 0.0);
    assert_eq!(tab.texts_of("#found"), ["0 tasks"]);
}
