//! The report as one page that needs nothing but itself.
//!
//! Names are untrusted: here they are escaped, and the script puts them into the page as text alone. The policy in the
//! page's head lets only this style and this script run, whatever else should get in.

use std::fmt::Write;

use serde::Serialize;

use super::headlines::{Piece, Sentence};
use super::table::fit;
use super::{Report, TaskReport};
use crate::base::text::Plain;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/data.js"),
    include_str!("page/scale.js"),
    include_str!("page/waterfall.js"),
    include_str!("page/table.js"),
    include_str!("page/page.js"),
);
/// Of the two above, as the browser counts them; a test opens the page and says what they must be.
const STYLE_HASH: &str = "sha256-hIx16CbG8tDB48uBw80+6ESmiyuiVjt+6XdHEaA3Gu0=";
const SCRIPT_HASH: &str = "sha256-/keppEhGz+pk9D3o6gVo/Z4saLHZCjf9u6CGuCpj11c=";

const LABELS: [&str; 4] = ["Tasks", "Gate", "Long tasks", "Critical chain"];

/// What the script draws from: the report itself, and what is put into words here so that there is one wording.
#[derive(Serialize)]
struct Data<'a> {
    report: &'a Report,
    chain: Vec<u64>,
    /// How each task ended, in the order of `tasks`, then `late_tasks`.
    outcomes: Vec<String>,
    /// What each of `long_tasks` is attributed to.
    culprits: Vec<String>,
    /// The reason of each of `holds`.
    reasons: Vec<String>,
    gate: String,
}

impl Report {
    /// Returns the report as one self-contained HTML page with a summary, a waterfall chart and a table. The page loads
    /// no other resource, has a light and a dark theme and can be printed. It contains the whole report as JSON, in the
    /// element `data` under the key `report`.
    ///
    /// ```no_run
    /// # fn f(report: afterboot::Report) -> std::io::Result<()> {
    /// std::fs::write("boot.html", report.to_html())
    /// # }
    /// ```
    ///
    /// # Panics
    /// Never: all keys are strings and all numbers are finite.
    pub fn to_html(&self) -> String {
        let mut page =
            String::with_capacity(TEMPLATE.len() + STYLE.len() + SCRIPT.len() + 1024 * self.tasks.len());
        for part in TEMPLATE.split("{{") {
            let Some((key, rest)) = part.split_once("}}") else {
                page.push_str(part);
                continue;
            };
            match key {
                "style" => page.push_str(STYLE),
                "script" => page.push_str(SCRIPT),
                "style_hash" => page.push_str(STYLE_HASH),
                "script_hash" => page.push_str(SCRIPT_HASH),
                "governor" => page.push_str(&escaped(&Plain(&self.governor, 80).to_string())),
                "story" => self.write_story(&mut page),
                "facts" => self.write_facts(&mut page),
                "data" => page.push_str(&self.data()),
                _ => unreachable!("the template names {key}"),
            }
            page.push_str(rest);
        }
        page
    }

    fn write_story(&self, page: &mut String) {
        for (label, sentence) in LABELS.iter().zip(self.sentences()) {
            writeln!(page, "<li><h2>{label}</h2><p>{}</p></li>", html(&sentence)).expect(WRITES);
        }
    }

    fn write_facts(&self, page: &mut String) {
        let mut facts = vec![("profile", self.profile.clone()), ("taken at", fit(self.taken))];
        if let Some(monkey) = &self.monkey {
            let victim = monkey.victim.as_deref().unwrap_or("no task");
            let text = format!("{victim} by {}; {} (seed {})", fit(monkey.delay), monkey.delivery, self.seed);
            facts.push(("monkey", text));
        }
        for (label, count) in [("declared late", self.late), ("ended, not listed", self.forgotten)] {
            if count > 0 {
                facts.push((label, count.to_string()));
            }
        }
        let lane = fit(self.cost.lane_time);
        facts.push((
            "overhead",
            format!("{} polls, {} probe runs, {lane} in the lane", self.cost.polls, self.cost.looks),
        ));
        for (label, text) in facts {
            let text = escaped(&Plain(&text, 160).to_string());
            writeln!(page, "<div><dt>{label}</dt><dd><bdi>{text}</bdi></dd></div>").expect(WRITES);
        }
    }

    fn data(&self) -> String {
        let outcome = |task: &TaskReport| match &task.outcome {
            Some(outcome) => outcome.to_string(),
            None if task.started.is_some() => "running".to_owned(),
            None => "waiting".to_owned(),
        };
        let data = Data {
            report: self,
            chain: self.critical_chain(),
            outcomes: self.listed().map(outcome).collect(),
            culprits: self.long_tasks.iter().map(|long| long.culprit()).collect(),
            reasons: self.holds.iter().map(|hold| hold.why.to_string()).collect(),
            gate: self.gate.to_string(),
        };
        let json = serde_json::to_string(&data).expect("a report has only string keys and finite numbers");
        harmless(&json)
    }
}

const WRITES: &str = "writing to a string does not fail";

/// JSON that can stand in a script element: these characters occur only inside strings.
fn harmless(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(text, "\\u{:04x}", u32::from(c)).expect(WRITES);
            }
            _ => text.push(c),
        }
    }
    text
}

fn html(sentence: &Sentence) -> String {
    let mut text = String::new();
    for piece in &sentence.0 {
        match piece {
            Piece::Words(words) => text.push_str(&escaped(words)),
            Piece::Name(name) => write!(text, "<b><bdi>{}</bdi></b>", escaped(name)).expect(WRITES),
            Piece::Foreign(foreign) => write!(text, "<bdi>{}</bdi>", escaped(foreign)).expect(WRITES),
        }
    }
    text
}

fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(c),
        }
    }
    html
}
